"""The additive Chernoff bound beside exact tails."""

from collections.abc import Callable
from math import exp

import numpy as np
from scipy.stats import binom

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.report.plot import Line, plot
from discreet.types import Numbers

SIZES = (1, 2, 5, 20, 100, 1000)
CHANCES = (0.01, 0.1, 0.3, 0.5, 0.9)
Bound = Callable[[Numbers, int], Numbers]


def chernoff(away: Numbers, size: int) -> Numbers:
    """2e^(−2λ²n)."""
    return 2 * np.exp(-2 * away**2 * size)


def tails(masses: Numbers, mean: float, size: int) -> tuple[Numbers, Numbers]:
    """For a sum with these masses on 0, 1, 2, …: every distance of its average from the mean, and Pr[at least that]."""
    away = np.abs(np.arange(masses.size) / (masses.size - 1) - mean)
    order = np.argsort(-away, kind="stable")
    reached = np.cumsum(masses[order])
    # Outcomes at the same distance on the other side belong to the same tail.
    last = np.searchsorted(-away[order], -away[order] + 1e-12, side="right") - 1
    return away[order], np.minimum(reached[last], 1.0)


def worst_coins(bound: Bound) -> float:
    """The largest ratio of exact tail to bound, over coins of all these chances, numbers and distances."""
    worst = 0.0
    for size in SIZES:
        for chance in CHANCES:
            away, tail = tails(binom.pmf(np.arange(size + 1), size, chance), chance, size)
            worst = max(worst, _largest_ratio(tail, bound(away, size)))
    return worst


def worst_thirds(bound: Bound) -> float:
    """The same for averages of numbers that are 0, ½ or 1 with probability ⅓ each, by convolution."""
    masses, worst = np.ones(1), 0.0
    for size in range(1, 61):
        masses = np.convolve(masses, np.full(3, 1 / 3))
        away, tail = tails(masses, 0.5, size)
        worst = max(worst, _largest_ratio(tail, bound(away, size)))
    return worst


def _largest_ratio(tail: Numbers, bound: Numbers) -> float:
    some = bound > 1e-290
    return float((tail[some] / bound[some]).max())


def judge(what: str, ratio: float) -> Finding:
    """No tail is above the bound."""
    return Finding(f"{what}: exact tail over 2e^(−2λ²n), largest", "at most 1", f"{ratio:.4f}", ratio <= 1)


def run() -> Outcome:
    """All tails, and those of a hundred fair coins as a curve."""
    findings = (
        judge(f"coins, {len(SIZES) * len(CHANCES)} laws, every λ to a bound of 10⁻²⁹⁰", worst_coins(chernoff)),
        judge("numbers 0, ½, 1, up to 60 of them, every λ", worst_thirds(chernoff)),
    )
    away, tail = tails(binom.pmf(np.arange(101), 100, 0.5), 0.5, 100)
    some = sorted((float(x), float(y)) for x, y in zip(away, tail, strict=True) if x <= 0.35)
    figure = plot(
        "The average of 100 fair coins: Pr[|S − ½| ≥ λ]",
        [
            Line("2e^(−2λ²n)", [(step / 100, min(1.0, 2 * exp(-0.02 * step**2))) for step in range(36)], "second"),
            Line("exact", some, "ours"),
        ],
        x="λ",
        y="probability",
        log_y=True,
    )
    return Outcome(findings, figure)


CLAIM = Claim(
    name="chernoff-bound",
    source="001 Thm. 1.2",
    title="The additive Chernoff bound",
    statement="For independent Xᵢ in [0, 1] with average S, Pr[|S − E S| ≥ λ] ≤ 2e^(−2λ²n) for every λ.",
    run=run,
)
