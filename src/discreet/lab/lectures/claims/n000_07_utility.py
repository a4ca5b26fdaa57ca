"""The economic reading: expected utility falls by e^{−ε} at most. 000 §2."""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import ROUNDING
from discreet.lab.random import uniforms
from discreet.meaning import expected_utility, least_share
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism

UTILITIES = 2000


def run() -> Outcome:
    """A count with and without one person, valued at random and at worst."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """What taking part leaves of the expected utility, over random utilities and for the worst."""
    found = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(2)):
        count, floor = make(epsilon=epsilon, sensitivity=1), exp(-epsilon)
        with_me, without = count.law([4], beside=[[3], [8], [0]]), count.law([3], beside=[[4], [8], [0]])
        outcomes = list(with_me.probabilities)
        shares = []
        for values in uniforms(UTILITIES, len(outcomes)):
            utility = dict(zip(outcomes, (values**8).tolist(), strict=True)).__getitem__
            shares.append(expected_utility(with_me, utility) / expected_utility(without, utility))
        least = least_share(with_me, without)
        found += [
            Finding(
                f"ε = {float(epsilon):g}: the share left to {UTILITIES:,} people with random utilities",
                f"at least e^−ε = {floor:.4f}",
                f"{min(shares):.4f} to {max(shares):.4f}",
                min(shares) >= floor * (1 - ROUNDING),
            ),
            Finding(
                f"ε = {float(epsilon):g}: the share left to who values the worst outcome only",
                f"{floor:.6f}: no better bound is true",
                f"{least:.6f}, exactly",
                abs(least / floor - 1) < ROUNDING,
            ),
        ]
    return tuple(found)


CLAIM = Claim(
    name="utility",
    source="000 §2",
    title="Taking part leaves e^{−ε} of what you may hope for",
    statement="For every utility u ≥ 0 over outcomes, E[u(M(D))] ≥ e^{−ε} E[u(M(D without me))].",
    run=run,
)
