"""The expected privacy loss is at most ε²/2: 000 §4.3."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, log, tanh
from typing import Any

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import truths, uniforms
from discreet.mechanism import laplace, noisy_max, randomized_response
from discreet.mechanism.protocol import Law, Mechanism
from discreet.report.plot import Line, plot

PAIRS = 20_000


def run() -> Outcome:
    """Exact expectations of mechanisms, and thousands of random pairs of laws whose ratios are within e^±ε."""
    epsilons = [0.05 * place for place in range(1, 61)]
    lines = [
        Line("ε²/2, as claimed", [(e, e**2 / 2) for e in epsilons], "cap"),
        Line("ε tanh(ε/2): the worst", [(e, e * tanh(e / 2)) for e in epsilons], "third"),
        Line("Laplace, continuous", [(e, laplace_expectation(e)) for e in epsilons], "ours"),
    ]
    title = "The expected privacy loss, over the largest one"
    return Outcome(findings(), plot(title, lines, x="ε, the largest loss", y="expected loss"))


def findings(response: Callable[..., Mechanism[Any]] = randomized_response) -> tuple[Finding, ...]:
    """For some epsilons, three mechanisms and random laws."""
    found = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(2)):
        bound, e = float(epsilon) ** 2 / 2, float(epsilon)
        count, chosen = laplace(epsilon=epsilon, sensitivity=1), noisy_max(epsilon=epsilon, sensitivity=1)
        survey = response(epsilon=epsilon)
        losses = {
            "randomized response": expectation(survey.law([0]), survey.law([1])),
            "Laplace": expectation(count.law([3], beside=[[4]]), count.law([4], beside=[[3]])),
            "noisy max": expectation(chosen.law([3, 2, 1]), chosen.law([2, 3, 2])),
        }
        for name, value in losses.items():
            found.append(Finding(f"E[L] of {name}, ε = {e:g}", f"at most {bound:g}", f"{value:.6f}", value <= bound))
        worst = random_laws(e)
        found.append(
            Finding(
                f"largest of {PAIRS:,} random pairs of laws with ratios within e^±{e:g}",
                f"at most ε tanh(ε/2) = {e * tanh(e / 2):.6f}",
                f"{worst:.6f}",
                0 < worst <= e * tanh(e / 2) * (1 + 1e-9),
            )
        )
    return tuple(found)


def expectation(one: Law, other: Law) -> float:
    """E[L] under the first law: the relative entropy."""
    pairs = [(float(p.mid()), float(other.probabilities[outcome].mid())) for outcome, p in one.probabilities.items()]
    return sum(p * log(p / q) for p, q in pairs)


def laplace_expectation(epsilon: float) -> float:
    """Of continuous Laplace noise: ε − 1 + e^−ε."""
    return epsilon - 1 + exp(-epsilon)


def random_laws(epsilon: float) -> float:
    """The largest relative entropy of random laws of four outcomes, scaled until a ratio is e^±ε."""
    q = uniforms(PAIRS, 4) ** 3 + 1e-6
    q /= q.sum(axis=1, keepdims=True)
    # Ratios e^±ε wherever the sum allows it: those are the extreme pairs.
    up = truths(0.5, PAIRS, 4)
    ratio = np.where(up, exp(epsilon), exp(-epsilon))
    p = q * ratio
    p /= p.sum(axis=1, keepdims=True)
    logs = np.log(p / q)
    scale = np.minimum(1.0, epsilon / np.maximum(np.abs(logs).max(axis=1), 1e-9))
    mixed = q + (p - q) * np.maximum(scale - 1e-12, 0)[:, None] * 0.999
    inside = np.abs(np.log(mixed / q)).max(axis=1) <= epsilon
    entropy = (mixed * np.log(mixed / q)).sum(axis=1)
    return float(entropy[inside].max())


CLAIM = Claim(
    name="expected-loss",
    source="000 §4.3",
    title="The expected loss is at most half the square of the largest",
    statement="If |L| ≤ ε always, then E[L] ≤ ε²/2 under M(D). (The best bound is ε tanh(ε/2): randomized "
    "response has it.)",
    run=run,
)
