"""Check a claim of privacy on all neighbouring tables of a small domain, exactly, and report the worst pair."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Event, total_loss
from discreet.accounting.filter import accounting_for
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.protocol import Interactive, Mechanism
from discreet.numeric import Number, ball, precision, rational, whole
from discreet.schema.unit import Unit
from discreet.verify.divergence import DIVERGENCE_BITS, Interval, Span, hockey_stick, largest_loss

# How many rows each cell has. Rows have no order, so this is the table.
CellCounts = tuple[int, ...]


def tables(cells: int, rows: int) -> list[CellCounts]:
    """Every table over `cells` cells with at most `rows` rows.

    >>> tables(2, 2)
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    """
    whole("cells", cells, least=1)
    whole("rows", rows, least=0)
    return [counts for counts in product(range(rows + 1), repeat=cells) if sum(counts) <= rows]


def are_neighbors(one: CellCounts, other: CellCounts, unit: Unit, *, droppable: bool = False) -> bool:
    """Whether one person can make the difference. A `droppable` row may be exchanged for one that no cell counts.

    >>> are_neighbors((1, 0), (0, 1), Unit()), are_neighbors((1, 0), (0, 1), Unit(neighbors="replace_one"))
    (False, True)
    """
    gained = sum(max(b - a, 0) for a, b in zip(one, other, strict=True))
    lost = sum(max(a - b, 0) for a, b in zip(one, other, strict=True))
    if one == other:
        return False
    if unit.neighbors == "add_remove":
        return min(gained, lost) == 0 and max(gained, lost) <= unit.contributions
    if unit.key is None:
        return max(gained, lost) == 1 if droppable else gained == lost == 1
    # A person may be exchanged for one with fewer rows, or with none.
    return max(gained, lost) <= unit.contributions


def neighboring_tables(
    cells: int, rows: int, unit: Unit, *, droppable: bool = False
) -> Iterator[tuple[CellCounts, CellCounts]]:
    """Every pair of neighbours among `tables(cells, rows)`, once.

    >>> len(list(neighboring_tables(2, 2, Unit())))
    6
    """
    every = tables(cells, rows)
    for place, one in enumerate(every):
        for other in every[place + 1 :]:
            if are_neighbors(one, other, unit, droppable=droppable):
                yield one, other


def neighboring_rows(categories: int, rows: int) -> Iterator[tuple[CellCounts, CellCounts]]:
    """Every pair of lists of categories, one for each row, that differ in one row: for the local model.

    >>> list(neighboring_rows(2, 1))
    [((0,), (1,))]
    """
    for one in product(range(categories), repeat=rows):
        for place in range(rows):
            for value in range(one[place] + 1, categories):
                yield one, (*one[:place], value, *one[place + 1 :])


Values = tuple[int, ...]
AnyMechanism = Mechanism[Any] | Interactive[Any, Any]
Query = Sequence[Sequence[int]] | NDArray[np.int64] | Callable[[CellCounts], Sequence[int]]

# Equality of a claimed and a computed number is decided to this relative precision; accountings round up by 2^-64.
RESOLUTION = Fraction(1, 2**60)


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a mechanism claims and what is true over all pairs that were checked.

    `measure` says what the two numbers are. `holds`: the true one is provably at most the claimed one (or equal to
    within 2^−60). `tight`: they are equal to within 2^−60. `worst_pair` are the true values that attain it.
    """

    claimed: float
    exact: Interval
    tight: bool
    worst_pair: tuple[Values, Values] | None
    holds: bool
    measure: str
    pairs: int

    @property
    def refuted(self) -> bool:
        """The true number is provably above the claimed one; `worst_pair` shows it."""
        return self.exact.lower > self.claimed * (1 + 2**-50)

    def __repr__(self) -> str:
        word = "IS FALSE" if self.refuted else "is not decided"
        if self.holds:
            word = "holds, and is tight" if self.tight else "holds"
        low, high = self.exact
        found = f"is {low:.6g}" if high - low <= 1e-6 * high or low == inf else f"is between {low:.6g} and {high:.6g}"
        worst = "" if self.worst_pair is None else f", worst at {list(self.worst_pair[0])} | {list(self.worst_pair[1])}"
        return (
            f"the claim {word}: {self.measure} {found}, claimed {self.claimed:.6g} "
            f"({self.pairs} pair{'s' if self.pairs != 1 else ''}{worst})"
        )


def check(
    mechanism_for: Callable[[Sensitivity], AnyMechanism],
    query: Query,
    unit: Unit,
    *,
    rows: int = 2,
    cells: int | None = None,
    sensitivity: Sensitivity | None = None,
    droppable: bool = False,
    epsilon: Number | None = None,
) -> Verdict:
    """Check a mechanism's claim on a query over *all* neighbouring tables with at most `rows` rows.

    `query` is a matrix, `query[i][x]` being what a row in cell x adds to value i, whose sensitivity is computed; or
    any function from a table (the number of rows in each cell) to integers, and then `cells` and `sensitivity` are
    needed. `mechanism_for(sensitivity)` builds the mechanism. What is claimed is read off its event: an epsilon, or,
    for events that have none (and wherever `epsilon` is given), a delta at that epsilon. Say `droppable` if the schema
    drops rows outside its domain: a replaced row may then vanish.

    >>> from discreet.mechanism import laplace
    >>> check(lambda s: laplace(epsilon=1, sensitivity=s), [[1, 0], [0, 1]], Unit(neighbors="replace_one"))
    the claim holds, and is tight: epsilon is 1, claimed 1 (3 pairs, worst at [0, 1] | [1, 0])
    >>> check(lambda s: laplace(epsilon=1, sensitivity=s.linf), [[1, 0], [0, 1]], Unit(neighbors="replace_one"))
    the claim IS FALSE: epsilon is 2, claimed 1 (3 pairs, worst at [0, 1] | [1, 0])
    """
    if callable(query):
        if cells is None or sensitivity is None:
            raise BadParameter(
                f"query is a function, cells is {cells!r} and sensitivity is {sensitivity!r}; a function needs both. "
                "Give the number of cells and the Sensitivity, or the query as a matrix."
            )
        evaluate, count, moves = query, cells, sensitivity
    else:
        matrix = np.asarray(query, dtype=np.int64)
        evaluate, count = (lambda table: (matrix @ np.array(table, dtype=np.int64)).tolist()), matrix.shape[1]
        moves = matrix_sensitivity(matrix, unit, droppable=droppable) if sensitivity is None else sensitivity
    neighbors = neighboring_tables(count, rows, unit, droppable=droppable)
    values = [(tuple(evaluate(one)), tuple(evaluate(other))) for one, other in neighbors]
    pairs = dict.fromkeys(pair for pair in values if pair[0] != pair[1])
    return check_pairs(mechanism_for(moves), pairs, epsilon=epsilon)


def check_pairs(
    mechanism: AnyMechanism, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], *, epsilon: Number | None = None
) -> Verdict:
    """Check a mechanism's claim on given pairs of neighbouring true values, in both directions.

    >>> from discreet.mechanism import name_and_shame
    >>> check_pairs(name_and_shame(delta=0.01), [([0, 1], [0, 0])])
    the claim holds, and is tight: delta at epsilon 1 is 0.01, claimed 0.01 (1 pair, worst at [0, 1] | [0, 0])
    """
    measure, claimed, distance = _claim(mechanism.event, epsilon)
    worst, worst_pair, checked = Span(ball(0), ball(0)), None, 0
    for one, other in pairs:
        checked += 1
        here, there = mechanism.law(one, beside=[other]), mechanism.law(other, beside=[one])
        for found in (distance(here, there), distance(there, here)):
            if worst_pair is None or _above(found, worst):
                worst_pair = (tuple(one), tuple(other))
            worst = _larger(worst, found)
    with precision(DIVERGENCE_BITS):
        room = ball(RESOLUTION * max(claimed, RESOLUTION))
        holds = worst.upper is not None and bool(worst.upper <= ball(claimed) + room)
        tight = worst.lower is not None and holds and bool(worst.lower >= ball(claimed) - room)
    return Verdict(float(claimed), worst.rounded(), tight, worst_pair, holds, measure, checked)


def curve(
    mechanism: AnyMechanism, pairs: Iterable[tuple[Sequence[int], Sequence[int]]], epsilons: Iterable[Number]
) -> tuple[tuple[float, Interval], ...]:
    """The exact privacy curve: for each epsilon the smallest delta that these pairs allow.

    >>> from discreet.mechanism import laplace
    >>> [(e, round(d.upper, 4)) for e, d in curve(laplace(epsilon=1, sensitivity=1), [([0], [1])], [0, 0.5, 1])]
    [(0.0, 0.4621), (0.5, 0.2876), (1.0, 0.0)]
    """
    laws = [(mechanism.law(a, beside=[b]), mechanism.law(b, beside=[a])) for a, b in pairs]
    points = []
    for given in epsilons:
        exact, worst = rational("epsilon", given), Span(ball(0), ball(0))
        for here, there in laws:
            for found in (hockey_stick(here, there, exact), hockey_stick(there, here, exact)):
                worst = _larger(worst, found)
        points.append((float(exact), worst.rounded()))
    return tuple(points)


def _claim(event: Event, epsilon: Number | None) -> tuple[str, Fraction, Callable[..., Span]]:
    """What an event claims: in words, as a number, and how to compute what is true."""
    pure = total_loss(event, accounting_for("pure"))
    if epsilon is None and pure != inf:
        return "epsilon", Fraction(pure), largest_loss
    at = Fraction(1) if epsilon is None else rational("epsilon", epsilon)
    claims = []
    for name in ("basic", "gaussian", "concentrated"):
        accounting = accounting_for(name)
        claims.append(Fraction(accounting.delta(total_loss(event, accounting), at)))
    return f"delta at epsilon {float(at):g}", min(claims), lambda one, other: hockey_stick(one, other, at)


def _larger(one: Span, other: Span) -> Span:
    lower = None if one.lower is None or other.lower is None else max(one.lower, other.lower)
    upper = None if one.upper is None or other.upper is None else max(one.upper, other.upper)
    return Span(lower, upper)


def _above(found: Span, worst: Span) -> bool:
    if found.lower is None or worst.lower is None:
        return found.lower is None and worst.lower is not None
    # Ties within rounding go to the first, so that the simplest example is shown.
    return bool(found.lower > worst.lower + ball(RESOLUTION))
