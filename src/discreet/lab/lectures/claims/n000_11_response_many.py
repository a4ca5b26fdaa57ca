"""Randomized response with k answers: private and unbiased for the whole histogram. 000 §3.1, more than two values."""

from collections.abc import Callable
from fractions import Fraction
from math import isclose
from typing import Any

import numpy as np

from discreet import verify
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import moments
from discreet.mechanism import Estimate, estimate_counts, randomized_response
from discreet.mechanism.protocol import Mechanism

TRUTH = (0, 2, 2, 1, 2, 0)


def run() -> Outcome:
    """All reports of six people with three answers, and all neighbours of two people with four."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = randomized_response) -> tuple[Finding, ...]:
    """The exact loss for some k, and the exact mean and deviation of the estimated histogram for k = 3."""
    found = []
    for categories in (3, 4, 5):
        survey = make(epsilon=Fraction(1), categories=categories)
        verdict = verify.check_pairs(survey, verify.neighboring_rows(categories, 2))
        found.append(
            Finding(
                f"loss with {categories} answers, ε = 1",
                "1",
                f"{verdict.exact.upper:.9g}, exactly, over {verdict.pairs} pairs",
                verdict.exact.upper <= 1 + 1e-12 and verdict.exact.lower >= 1 - 1e-12,
            )
        )
    law = make(epsilon=Fraction(1), categories=3).law(TRUTH)
    widest = estimated(TRUTH).deviation
    for value in range(3):
        mean, deviation = moments(law, lambda reports, at=value: float(estimated(reports).counts[at]))  # type: ignore[misc]
        found.append(
            Finding(
                f"mean of the estimated number of people who say {value}",
                f"{TRUTH.count(value)}",
                f"{mean:.9f}, ± {deviation:.3f}",
                isclose(mean, TRUTH.count(value), abs_tol=1e-9) and deviation <= widest,
            )
        )
    return tuple(found)


def estimated(reports: tuple[int, ...]) -> Estimate:
    """The histogram that the reports speak for."""
    return estimate_counts(np.array(reports), epsilon=1, categories=3)


CLAIM = Claim(
    name="randomized-response-many",
    source="000 §3.1",
    title="With k answers, the whole histogram is estimated without bias",
    statement="Report the truth with probability e^ε/(e^ε + k − 1) and any other answer with 1/(e^ε + k − 1): ε-DP, "
    "and (r_x − nq)/(p − q) is an unbiased count of each answer.",
    run=run,
)
