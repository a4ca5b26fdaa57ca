"""k Laplace answers under advanced composition: their noise and their largest error. 000 Proposition 14."""

from collections.abc import Callable
from fractions import Fraction
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import Repeat, epsilon
from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.lab.lectures.chance import median_margin, often_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.source.source import Exact

EPSILON, DELTA, SIZES, SESSIONS, BETA = 1.0, 1e-6, (10, 100, 1000, 10_000), 200, 0.05
ONE = scalar_sensitivity(0, 1, Unit(neighbors="replace_one"))


def run() -> Outcome:
    """Draw sessions of k answers and take the largest error of each, in units of the scale."""
    lines = [
        Line("measured, median", [(k, float(np.median(largest_errors(k)))) for k in SIZES], "ours", dots=True),
        Line("ln k", [(k, log(k)) for k in SIZES], "second"),
        Line("√(ln k), as in the notes", [(k, sqrt(log(k))) for k in SIZES], "third"),
    ]
    title = "The largest of k errors, in units of the scale of the noise"
    return Outcome(findings(), plot(title, lines, x="answers k", y="largest error / λ", log_x=True, floor=0.0), NOTE)


NOTE = """The largest of k Laplace draws is about λ ln k, so log k is outside of the root: α is of the order of
√(k ln(1/δ))·ln k/(εn), as in the proof in the notes. In the proposition itself it was put under the root."""


def each_epsilon(k: int) -> Fraction:
    """ε₀ with kε₀²/2 + ε₀√(2k ln(1/δ)) = ε, rounded down."""
    root = sqrt(2 * k * log(1 / DELTA))
    return Fraction(int(1e9 * (sqrt(root**2 + 2 * k * EPSILON) - root) / k), 10**9)


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """For some k: the price of all answers, the scale, and the largest error beside both formulas."""
    found = []
    for k in SIZES:
        each = make(epsilon=each_epsilon(k), sensitivity=1)
        price = epsilon(Repeat(each.event, k), delta=DELTA, by="advanced")
        errors, scale = largest_errors(k, make), 1 / float(each_epsilon(k))
        within = int((errors * scale <= scale * log(k / BETA)).sum())
        low, high = median_margin(errors)
        garbled, right = sqrt(log(k)), log(k / log(2))
        found += [
            Finding(
                f"k = {k:,}: scale λ (δ = 10⁻⁶), and what all answers cost",
                f"about √(2k ln(1/δ))/ε = {sqrt(2 * k * log(1 / DELTA)):.1f}; ε = 1",
                f"{scale:.1f}; ε = {price:.4f}",
                price <= EPSILON and scale < 1.3 * sqrt(2 * k * log(1 / DELTA)),
            ),
            Finding(
                f"k = {k:,}: sessions whose largest error is within λ ln(k/β), β = {BETA:g}",
                f"at least {1 - BETA:.0%}",
                f"{within} of {SESSIONS}",
                often_enough(within, SESSIONS, 1 - BETA),
            ),
        ]
    found.append(
        Finding(
            f"k = {k:,}: median of the largest error, in units of λ",
            f"about ln(k/ln 2) = {right:.2f}; the notes' order √(ln k) = {garbled:.2f}",
            f"{np.median(errors):.2f}",
            low <= right <= high and low > 2 * garbled,
        )
    )
    return tuple(found)


def largest_errors(k: int, make: Callable[..., Mechanism[Any]] = laplace) -> NDArray[np.float64]:
    """Of some sessions of k answers, each about a count of 0; in units of the declared scale."""
    # Each answer is a release of its own; together they are drawn faster.
    zeros = Exact(np.zeros(k * SESSIONS, dtype=np.int64), ONE)
    draws = make(epsilon=each_epsilon(k), sensitivity=1).release(zeros)
    found: NDArray[np.float64] = np.abs(draws.reshape(SESSIONS, k)).max(axis=1) * float(each_epsilon(k))
    return found


CLAIM = Claim(
    name="laplace-advanced",
    source="000 Prop. 14",
    title="k counts with noise √k: log k is outside of the root",
    statement="Laplace noise of scale λ = O(√(k log(1/δ))/(εn)) on each of k counting queries is (ε, δ)-DP and "
    "accurate to α of the order λ log k. The notes print √(k log(1/δ) log k)/(εn).",
    run=run,
    correction=True,
)
