"""Multiplicative weights is wrong only so often, even when asked the worst: 000 Claim 15."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers
from discreet.lab.textbook.multiplicative_weights import Learned, most_updates, multiplicative_weights
from discreet.report.plot import Line, plot

CASES = ((2**6, 0.1), (2**10, 0.1), (2**10, 0.05), (2**14, 0.1))


def run() -> Outcome:
    """An adversary asks, at each step, the counting query on which the model is furthest off."""
    results = {case: attacked(*case) for case in CASES}
    worst = results[2**10, 0.1]
    bound = 4 * log(2**10) / 0.1**2
    ends = [(0.0, worst.potentials[0]), (float(worst.updates), worst.potentials[0] - worst.updates * 0.1**2 / 4)]
    lines = [
        Line("claimed: falls by α²/4", ends, "cap"),
        Line("KL(D ‖ model)", [(float(t), value) for t, value in enumerate(worst.potentials)], "ours"),
    ]
    title = f"The potential over updates, N = 1,024 cells, α = 0.1; at most {bound:.0f} updates are claimed"
    figure = plot(title, lines, x="updates", y="relative entropy to the truth", floor=0.0)
    return Outcome(findings(results), figure)


def findings(results: dict[tuple[int, float], Learned]) -> tuple[Finding, ...]:
    """Updates and the least fall of the potential, beside the claim."""
    found = []
    for (cells, error), learned in results.items():
        bound, falls = 4 * log(cells) / error**2, -np.diff(learned.potentials)
        found += [
            Finding(
                f"updates, N = {cells:,}, α = {error:g}",
                f"at most 4 ln N/α² = {bound:,.0f}",
                f"{learned.updates}; our bound is {most_updates(cells, error, 'linear'):,}",
                0 < learned.updates <= bound,
            ),
            Finding(
                f"least fall of the potential in an update, N = {cells:,}, α = {error:g}",
                f"at least α²/4 = {error**2 / 4:g}",
                f"{falls.min():.5f}",
                bool(falls.min() >= error**2 / 4),
            ),
        ]
    return tuple(found)


def attacked(cells: int, error: float, learn: Callable[..., Learned] = multiplicative_weights) -> Learned:
    """Learn a table with few rows while an adversary who knows it asks the worst question every time."""
    truth = np.bincount(integers(cells, 12), minlength=cells) / 12

    def worst(model: NDArray[Any]) -> NDArray[np.float64] | None:
        # The counting query of all cells that the model has too little of is off by their total variation distance.
        query = (model < truth).astype(np.float64)
        return query if float(query @ (truth - model)) > error else None

    return learn(worst, truth, error=error, rule="linear")


CLAIM = Claim(
    name="multiplicative-weights-updates",
    source="000 Claim 15",
    title="However it is asked, the model is wrong at most 4 ln N/α² times",
    statement="For any table and any sequence of queries, Algorithm 1 makes O(log |X|/α²) updates: KL(D ‖ D̂) ≤ ln |X| "
    "at the start, and each update lowers it by α²/4 at least.",
    run=run,
)
