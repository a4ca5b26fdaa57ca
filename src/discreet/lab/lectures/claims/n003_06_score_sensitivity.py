"""BLR's score moves by at most 1/n: every pair of small tables is enumerated."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import conjunction_effects
from discreet.mechanism import imbalance_effects
from discreet.schema.unit import Unit

ROWS, FEW, COLUMNS = 4, 3, 2
UNIT = Unit(neighbors="replace_one")
Matrix = Sequence[Sequence[int]]


def largest_move(effects: Matrix) -> Fraction:
    """The largest |s(D, y) − s(D′, y)| over all neighbours D, D′ of n rows and all tables y of m rows, exactly."""
    weights = np.asarray(effects, dtype=np.int64)
    cells = weights.shape[1]
    tables = [table for table in verify.tables(cells, ROWS) if sum(table) == ROWS]
    small = [np.bincount(chosen, minlength=cells) for chosen in combinations_with_replacement(range(cells), FEW)]
    # m·n times the score, a whole number.
    answers = np.array([weights @ y for y in small])
    score = {t: -np.abs(FEW * (weights @ np.array(t)) - ROWS * answers).max(axis=1) for t in tables}
    pairs = [(a, b) for a in tables for b in tables if verify.are_neighbors(a, b, UNIT)]
    return Fraction(max(int(np.abs(score[a] - score[b]).max()) for a, b in pairs), ROWS * FEW)


def judge(what: str, found: Fraction) -> Finding:
    """GS is 1/n, for counts."""
    return Finding(f"largest move of the score, {what}", f"1/n = 1/{ROWS}", f"{found}", found == Fraction(1, ROWS))


def judge_product(effects: Matrix) -> Finding:
    """What the product calibrates to: mn times the score moves by m."""
    moves = matrix_sensitivity(imbalance_effects(np.asarray(effects), rows=FEW), UNIT).linf
    return Finding(
        "what the product calibrates to, for mn times the score",
        f"m = {FEW}",
        f"{moves}",
        moves == FEW,
    )


def run() -> Outcome:
    """All tables of four rows, all candidates of three; points, and conjunctions of two columns."""
    points = np.eye(3, dtype=np.int64).tolist()
    conjunctions = conjunction_effects(COLUMNS).tolist()
    findings = (
        judge("3 point queries", largest_move(points)),
        judge("4 conjunctions of 2 columns", largest_move(conjunctions)),
        judge_product(conjunctions),
    )
    return Outcome(findings)


CLAIM = Claim(
    name="score-sensitivity",
    source="003 §2.1.1",
    title="BLR's score has sensitivity 1/n",
    statement="s(D, D̂) = −max_q |q(D) − q(D̂)| has GS ≤ 1/n, since a counting query has.",
    run=run,
)
