"""What one person can move depends on who counts as a neighbour: one who is exchanged, or one who comes or goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet import verify
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.schema.unit import Unit

Neighbors = Literal["replace_one", "add_remove"]
CELLS, ROWS = 3, 4
# What a row of each cell adds to each number.
COUNT = [[1, 0, 0]]
HISTOGRAM = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@dataclass(frozen=True, slots=True)
class Moves:
    """The largest move of a query over all pairs of neighbours: the sum of the moves, and their squared length."""

    l1: int
    l2_squared: int


def measure(effects: Sequence[Sequence[int]], neighbors: Neighbors) -> Moves:
    """Enumerate all pairs of neighbouring tables of at most four rows in three cells."""
    pairs = verify.neighboring_tables(CELLS, ROWS, Unit(neighbors=neighbors))
    moves = [[sum(e * (a - b) for e, a, b in zip(row, *pair, strict=True)) for row in effects] for pair in pairs]
    return Moves(max(sum(map(abs, move)) for move in moves), max(sum(m * m for m in move) for move in moves))


def judge(what: str, claimed: Moves, found: Moves, product: Sensitivity) -> Finding:
    """The notes' number, the one found by looking at all pairs, and the one that the product calibrates noise to."""
    agree = found == claimed and product.l1 == claimed.l1 and product.l2_squared == claimed.l2_squared
    return Finding(what, _shown(claimed.l1, claimed.l2_squared), _shown(found.l1, found.l2_squared), agree)


def run() -> Outcome:
    """A count and a histogram, for exchanged and for added people."""
    findings = []
    metrics: dict[Neighbors, tuple[str, Moves]] = {
        "replace_one": ("Hamming", Moves(2, 2)),
        "add_remove": ("set difference", Moves(1, 1)),
    }
    for neighbors, (metric, histogram) in metrics.items():
        for what, effects, claimed in (("a count", COUNT, Moves(1, 1)), ("a histogram", HISTOGRAM, histogram)):
            product = matrix_sensitivity(effects, Unit(neighbors=neighbors))
            findings.append(judge(f"{what}, {metric}", claimed, measure(effects, neighbors), product))
    return Outcome(tuple(findings))


def _shown(l1: int | Fraction, l2_squared: int | Fraction) -> str:
    return f"{l1} in L1, {'√' if l2_squared > 1 else ''}{l2_squared} in L2"


CLAIM = Claim(
    name="adjacency",
    source="004 §1.1",
    title="Two notions of a neighbour",
    statement="Between neighbours a count moves by 1. A histogram moves by 2 in L1 and √2 in L2 if a row is replaced "
    "(Hamming distance 1), and by 1 in both if a row is added or removed (set difference 1).",
    run=run,
)
