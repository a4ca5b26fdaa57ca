"""Every update of multiplicative weights brings the model closer to the truth by at least η(gap − η)."""

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import truths, uniforms
from discreet.lab.textbook.multiplicative_weights import relative_entropy, updated
from discreet.report.plot import Line, plot

CASES = 300
RATES = (0.01, 0.1, 0.3)


def least_excess(rate: float, step: float | None = None) -> tuple[float, float]:
    """Over made-up rounds: the smallest fall less η(gap − η), and the same less η·gap − η²/8.

    Truths from even to one cell, queries with weights 0 and 1 and between. `step` is the rate that is really used.
    """
    lemma, sharp = [], []
    for case in range(CASES):
        cells = 2 ** (1 + case % 6)
        truth, model = (uniforms(cells) ** (1 + 8 * (case % 3)) + 1e-9 for _ in range(2))
        truth, model = truth / truth.sum(), model / model.sum()
        query = uniforms(cells) if case % 2 else truths(0.5, cells).astype(np.float64)
        true = float(query @ truth)
        gap = abs(float(query @ model) - true)
        moved = updated(model, query, true, error=2 * (rate if step is None else step), rule="exponential")
        fall = relative_entropy(truth, model) - relative_entropy(truth, moved)
        lemma.append(fall - rate * (gap - rate))
        sharp.append(fall - rate * gap + rate**2 / 8)
    return min(lemma), min(sharp)


def judge(rate: float, found: tuple[float, float]) -> Finding:
    """The lemma's bound, and a sharper one (lab/textbook/multiplicative_weights.md), up to rounding."""
    return Finding(
        f"fall less η(|gap| − η), η = {rate:g}, smallest of {CASES}",
        "at least 0; less η|gap| − η²/8 too",
        f"{found[0]:.2e}; {found[1]:.2e}",
        found[0] >= -1e-12 and found[1] >= -1e-12,
    )


def run() -> Outcome:
    """Single updates; and the fall against the gap for one query on half of the cells, where all is in closed form."""
    rate = RATES[1]
    gaps = [step / 50 for step in range(0, 26)]
    half = np.array([1.0, 0.0])

    def fall(gap: float) -> float:
        truth, model = np.array([0.5 - gap, 0.5 + gap]), np.array([0.5, 0.5])
        moved = updated(model, half, 0.5 - gap, error=2 * rate, rule="exponential") if gap else model
        return relative_entropy(truth, model) - relative_entropy(truth, moved)

    figure = plot(
        "How much one update lowers the potential, η = 0.1",
        [
            Line("exact, half of the cells", [(gap, fall(gap)) for gap in gaps[1:]], "ours"),
            Line("η(gap − η), Lemma 6", [(gap, rate * (gap - rate)) for gap in gaps[1:]], "second"),
        ],
        x="gap",
        y="fall of the relative entropy",
    )
    return Outcome(tuple(judge(rate, least_excess(rate)) for rate in RATES), figure)


CLAIM = Claim(
    name="weights-potential",
    source="003 Lemma 6",
    title="Every update lowers the potential",
    statement="With Φ the relative entropy from the truth to the model, an update lowers Φ by at least "
    "η|q(D^(t−1)) − q(D)| − η².",
    run=run,
)
