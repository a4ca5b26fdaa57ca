"""Randomized response is unbiased; the standard deviation in the notes is garbled. 000 §3.1."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, isclose, sqrt

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import moments
from discreet.mechanism import estimate_counts, randomized_response
from discreet.mechanism.protocol import Law

PEOPLE = 9
TRUTH = (1, 1, 0, 0, 1, 0, 0, 0, 0)


def run() -> Outcome:
    """All 2⁹ reports of nine people, with their exact probabilities, and the estimate that each gives."""
    return Outcome(findings())


def findings(law_of: Callable[[Fraction], Law] | None = None) -> tuple[Finding, ...]:
    """Mean and standard deviation of the estimate beside both formulas."""
    found = []
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        p = exp(epsilon) / (1 + exp(epsilon))
        law = law_of(epsilon) if law_of else randomized_response(epsilon=epsilon).law(TRUTH)
        mean, deviation = moments(law, lambda reports, e=epsilon: _estimate(reports, e))  # type: ignore[misc]
        right, garbled = (
            sqrt(p * (1 - p)) / ((2 * p - 1) * sqrt(PEOPLE)),
            sqrt(p * (1 - p) / (2 * p - 1)) * sqrt(PEOPLE),
        )
        found += [
            Finding(
                f"mean of the estimate, p = {p:.3f}",
                f"q(D) = {sum(TRUTH)}/{PEOPLE} = {sum(TRUTH) / PEOPLE:.6f}",
                f"{mean:.6f}",
                isclose(mean, sum(TRUTH) / PEOPLE, abs_tol=1e-9),
            ),
            Finding(
                f"standard deviation, p = {p:.3f}, n = {PEOPLE}",
                f"√(p(1−p))/((2p−1)√n) = {right:.6f}; the notes read {garbled:.3f}",
                f"{deviation:.6f}",
                isclose(deviation, right, rel_tol=1e-9) and not isclose(deviation, garbled, rel_tol=0.1),
            ),
        ]
    return tuple(found)


def _estimate(reports: tuple[int, ...], epsilon: Fraction) -> float:
    return float(estimate_counts(np.array(reports), epsilon=epsilon).fractions[1])


CLAIM = Claim(
    name="randomized-response-deviation",
    source="000 §3.1",
    title="The error of randomized response falls with √n",
    statement="The estimate (mean(r) − (1 − p))/(2p − 1) is unbiased with standard deviation √(p(1−p))/((2p−1)√n). The "
    "notes' typesetting, √(p(1−p)/(2p−1))·√n, would grow with n.",
    run=run,
    correction=True,
)
