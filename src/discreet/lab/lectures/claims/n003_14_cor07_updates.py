"""Multiplicative weights are wrong at most ln|X|/η² times, however the questions are chosen."""

from math import log

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import conjunction_effects, histogram_of_classes
from discreet.lab.textbook.multiplicative_weights import Learned, multiplicative_weights
from discreet.report.plot import Line, plot
from discreet.types import Numbers

COLUMNS, ROWS = 6, 2_000
RATES = (0.02, 0.05, 0.1)


def truths() -> dict[str, Numbers]:
    """Tables of 64 cells as distributions: made-up people, and all rows in one cell, which is farthest from even."""
    people = histogram_of_classes(COLUMNS, ROWS) / ROWS
    return {"people of four classes": people, "all in one cell": np.eye(2**COLUMNS)[-1]}


def learn(truth: Numbers, rate: float) -> Learned:
    """Ask again and again the conjunction, or single cell, on which the model is most wrong, until none is."""
    queries = np.concatenate([conjunction_effects(COLUMNS), np.eye(2**COLUMNS)])

    def worst(model: Numbers) -> Numbers | None:
        gaps = np.abs(queries @ (model - truth))
        place = int(gaps.argmax())
        return queries[place] if gaps[place] > 2 * rate else None

    return multiplicative_weights(worst, truth, error=2 * rate, rule="exponential")


def judge(what: str, rate: float, found: Learned) -> Finding:
    """At most ln|X|/η² updates; each lowers the potential by at least η²."""
    bound = log(2**COLUMNS) / rate**2
    falls = -np.diff(found.potentials)
    holds = found.updates <= bound and bool((falls >= rate**2 * (1 - 1e-9)).all())
    return Finding(
        f"updates, {what}, η = {rate:g}",
        f"at most ln|X|/η² = {bound:,.0f}; each lowers Φ by {rate**2:.4g}",
        f"{found.updates}; the least fall is {falls.min(initial=np.inf):.4g}",
        holds,
    )


def run() -> Outcome:
    """The hardest questions there are, of two tables, at three rates."""
    every = truths()
    found = {(what, rate): learn(truth, rate) for what, truth in every.items() for rate in RATES}
    rate = RATES[1]
    shown = [(what, found[what, rate].potentials) for what in every]
    longest = max(len(potentials) for _, potentials in shown)
    curves = [
        Line(what, list(enumerate(potentials)), style)
        for (what, potentials), style in zip(shown, ("ours", "second"), strict=True)
    ]
    floor = [(t, log(2**COLUMNS) - rate**2 * t) for t in (0, longest)]
    figure = plot(
        "The potential after each update, η = 0.05",
        [*curves, Line("ln|X| − η²t", floor, "cap")],
        x="updates t",
        y="relative entropy",
    )
    return Outcome(tuple(judge(what, rate, learned) for (what, rate), learned in found.items()), figure)


CLAIM = Claim(
    name="weights-updates",
    source="003 Cor. 7",
    title="Few questions teach the whole table",
    statement="Algorithm 1, with threshold τ = 2η, performs at most ln|X|/η² updates on any sequence of queries.",
    run=run,
)
