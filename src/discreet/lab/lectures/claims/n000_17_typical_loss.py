"""Most of the time the loss of k mechanisms is about √k·ε, and not √(kε): 000 §4.3."""

from math import exp, sqrt

import numpy as np
from scipy.stats import binom

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.report.plot import Line, plot

EPSILON = 0.01


def run() -> Outcome:
    """The exact distribution of the total loss of k randomized responses."""
    sizes = [10, 30, 100, 300, 1000, 3000, 10_000]
    lines = [
        Line("kε, the worst case", [(k, k * EPSILON) for k in sizes], "cap"),
        Line("√(kε), as in the notes", [(k, sqrt(k * EPSILON)) for k in sizes], "third"),
        Line("95 % of the loss", [(k, quantile(k, EPSILON)) for k in sizes], "ours", dots=True),
        Line("√k·ε", [(k, sqrt(k) * EPSILON) for k in sizes], "second"),
    ]
    title = "The total privacy loss of k mechanisms of ε = 0.01 each"
    return Outcome(findings(), plot(title, lines, x="mechanisms k", y="total loss", log_x=True, log_y=True))


def findings(epsilon: float = EPSILON) -> tuple[Finding, ...]:
    """The standard deviation of the total loss, and the part of runs in which it is above each of the two."""
    found = []
    for k in (100, 1000, 10_000):
        p = exp(epsilon) / (1 + exp(epsilon))
        deviation = 2 * sqrt(k * p * (1 - p)) * epsilon
        typical, garbled = sqrt(k) * epsilon, sqrt(k * epsilon)
        beyond = [exceeded(k, epsilon, level) for level in (typical, garbled)]
        found += [
            Finding(
                f"standard deviation of the total loss, k = {k:,}, ε = {epsilon:g}",
                f"√k·ε = {typical:.4g}; the notes' √(kε) = {garbled:.4g}",
                f"{deviation:.4g}, exactly",
                abs(deviation / typical - 1) < epsilon and deviation < garbled / 5,
            ),
            Finding(
                f"probability that it exceeds each, k = {k:,}",
                "moderate; next to nothing",
                f"{beyond[0]:.3f}; {beyond[1]:.1e}",
                0.05 < beyond[0] < 0.7 and beyond[1] < 1e-4,
            ),
        ]
    return tuple(found)


def exceeded(k: int, epsilon: float, level: float) -> float:
    """Pr[|loss| > level]: the loss is (2j − k)ε where j of k reports are true."""
    reports, p = np.arange(k + 1), exp(epsilon) / (1 + exp(epsilon))
    return float(binom.pmf(reports, k, p)[np.abs((2 * reports - k) * epsilon) > level].sum())


def quantile(k: int, epsilon: float) -> float:
    """What |loss| is within, 19 times in 20."""
    reports, p = np.arange(k + 1), exp(epsilon) / (1 + exp(epsilon))
    losses = np.abs((2 * reports - k) * epsilon)
    order = np.argsort(losses)
    return float(losses[order][np.searchsorted(np.cumsum(binom.pmf(reports, k, p)[order]), 0.95)])


CLAIM = Claim(
    name="typical-loss",
    source="000 §4.3",
    title="The typical total loss is √k·ε",
    statement="k mechanisms of ε each rarely reach the worst case kε; most of the time their total loss is about √k·ε "
    "(for ε√k < 1). The notes print √(kε).",
    run=run,
    correction=True,
)
