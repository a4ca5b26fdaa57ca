"""The red team: what an attacker learns from exact answers, from rounded ones and from private ones; and the audit."""

from discreet.lab.attack.attack_outcome import Learnt, Outcome
from discreet.lab.attack.differencing import Difference, difference
from discreet.lab.attack.epsilon_audit import Audited, audit, draws_of, fast_draws_of
from discreet.lab.attack.experiments import (
    attack_by_differencing,
    attack_by_posterior,
    attack_by_reconstruction,
    attack_by_tracing,
)
from discreet.lab.attack.limit import best_guess, largest_area, luckiest_area, luckiest_share, secret_budget
from discreet.lab.attack.people import People, choose_people
from discreet.lab.attack.posterior import Belief, belief, posterior
from discreet.lab.attack.random_questions import random_questions
from discreet.lab.attack.reconstruction import reconstruct
from discreet.lab.attack.subjects import Subject, subjects
from discreet.lab.attack.target import answering, rounded
from discreet.lab.attack.tracing import Traced, trace

__all__ = [
    "Audited",
    "Belief",
    "Difference",
    "Learnt",
    "Outcome",
    "People",
    "Subject",
    "Traced",
    "answering",
    "attack_by_differencing",
    "attack_by_posterior",
    "attack_by_reconstruction",
    "attack_by_tracing",
    "audit",
    "belief",
    "best_guess",
    "choose_people",
    "difference",
    "draws_of",
    "fast_draws_of",
    "largest_area",
    "luckiest_area",
    "luckiest_share",
    "posterior",
    "random_questions",
    "reconstruct",
    "rounded",
    "secret_budget",
    "subjects",
    "trace",
]
