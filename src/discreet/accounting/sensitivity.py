"""Sensitivity: the most that one person can change a vector of integers. All sensitivities are computed here.

A vector query adds, for each row, the *effect* of the row's cell: a vector of integers. Everything below is the
largest distance that exchanging, adding or removing one person's rows can make, in three norms.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.errors import BadParameter
from discreet.numeric import Number, positive
from discreet.schema.unit import Unit

if TYPE_CHECKING:
    from discreet.query.residual import Axis

Direction = Literal[-1, 0, 1]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change between neighbours: the sum of the moves, their squared length, and the largest one.

    `direction` is the way in which a further person moves all values: 1 is up (counts under `add_remove`), −1 is down,
    0 is some up and some down, or not known. Selections and sparse vector need less noise where there is one.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction
    direction: Direction = 0

    @property
    def monotone(self) -> bool:
        """Whether neighbours move all values the same way."""
        return self.direction != 0

    def covers(self, other: "Sensitivity") -> bool:
        """Whether noise calibrated to this is enough for a vector that moves like `other`."""
        return (
            other.l1 <= self.l1
            and other.l2_squared <= self.l2_squared
            and other.linf <= self.linf
            and self.direction in (0, other.direction)
        )


@memoize(4096)
def scalar_sensitivity(lowest: int, highest: int, unit: Unit, *, droppable: bool = False) -> Sensitivity:
    """The sensitivity of one sum of per-row weights between `lowest` and `highest`.

    >>> scalar_sensitivity(0, 1, Unit())
    Sensitivity(l1=Fraction(1, 1), l2_squared=Fraction(1, 1), linf=Fraction(1, 1), direction=1)
    >>> scalar_sensitivity(10, 12, Unit(neighbors="replace_one")).l1
    Fraction(2, 1)
    """
    return matrix_sensitivity([[lowest, highest]], unit, droppable=droppable)


@memoize(4096)
def histogram_sensitivity(
    cells: int, unit: Unit, *, weights: tuple[int, int] = (1, 1), droppable: bool = False
) -> Sensitivity:
    """The sensitivity of the sums in all cells: each row adds its weight, between the two given, to one of them.

    Exact if a row of any cell can have either weight, and an upper bound otherwise.

    >>> histogram_sensitivity(10, Unit()).l1, histogram_sensitivity(10, Unit(neighbors="replace_one")).l1
    (Fraction(1, 1), Fraction(2, 1))
    """
    effects = np.kron(np.eye(min(cells, 2), dtype=object), np.array([weights], dtype=object))
    return matrix_sensitivity(effects, unit, droppable=droppable)


def matrix_sensitivity(
    effects: Sequence[Sequence[int]] | NDArray[np.int64], unit: Unit, *, droppable: bool = False
) -> Sensitivity:
    """The sensitivity of a vector of sums: `effects[i][x]` is what a row in cell x adds to value i.

    With one row a person and `replace_one`, the largest distance between two columns; otherwise a person may also
    have no rows, so the zero column counts as one, and each of m rows adds its own distance. The zero column counts
    too if rows are `droppable`: a row exchanged for one that the schema drops takes its whole effect with it.

    >>> matrix_sensitivity([[10, 12]], Unit(neighbors="replace_one"), droppable=True).l1
    Fraction(12, 1)
    """
    table = np.array(effects, dtype=object)
    largest = max(int(table.max()), -int(table.min()))
    if 4 * largest**2 * len(table) < 2**63:
        table = np.unique(table.astype(np.int64), axis=1)
    if unit.neighbors == "replace_one" and (unit.key is not None or droppable):
        table = np.hstack([table, np.zeros((len(table), 1), dtype=table.dtype)])
    if unit.neighbors == "add_remove":
        norms = _norms(table)
    else:
        pairs = [_norms(table - column[:, None]) for column in table.T]
        norms = max(l1 for l1, _, _ in pairs), max(l2 for _, l2, _ in pairs), max(linf for _, _, linf in pairs)
    rows = unit.contributions
    return Sensitivity(
        l1=Fraction(rows * norms[0]),
        l2_squared=Fraction(rows**2 * norms[1]),
        linf=Fraction(rows * norms[2]),
        direction=_direction(int(table.min()), int(table.max()), unit),
    )


@memoize(4096)
def residual_sensitivity(axes: "tuple[tuple[Axis, int], ...]", unit: Unit, *, droppable: bool = False) -> Sensitivity:
    """The sensitivity of one residual: a Kronecker product of one part of each axis, none of them the constants.

    All its columns have one squared length N². With m rows a person, the squared L2 is m² N² under `add_remove` and
    m² · 2N² (1 + c) under `replace_one`, exactly, where −c is the smallest cosine between two columns of one of the
    axes. L∞ is exact too; L1 (which no Gaussian noise asks for) is exact under `add_remove`, with one axis, and with an
    ordered one, and otherwise at most twice too large. Proof: source/contribution.md

    >>> from discreet.query.residual import axis_of_size
    >>> sex, city = (axis_of_size(2, ordered=False), 1), (axis_of_size(5, ordered=False), 1)
    >>> residual_sensitivity((sex, city), Unit()).l2_squared
    Fraction(20, 1)
    >>> residual_sensitivity((sex, city), Unit(neighbors="replace_one")).l2_squared
    Fraction(80, 1)
    """
    if not axes:
        return scalar_sensitivity(1, 1, unit, droppable=droppable)
    l1, l2_squared, linf = (prod(norms) for norms in zip(*(_part_norms(*pair) for pair in axes), strict=True))
    if unit.neighbors == "replace_one":
        # A row that goes and none that comes moves less than a row exchanged, so it does not matter what is dropped.
        further = 1 + max(Fraction(*axis.opposite(part)) for axis, part in axes)
        stretch = further if len(axes) == 1 else 2, 2 * further, further
    else:
        stretch = 1, Fraction(1), Fraction(1)
    rows = unit.contributions
    return Sensitivity(
        l1=Fraction(rows * l1 * stretch[0]),
        l2_squared=Fraction(rows**2 * l2_squared * stretch[1]),
        linf=Fraction(rows * linf * stretch[2]),
    )


def pieces_sensitivity(
    axes: "Sequence[Axis]", weights: Mapping[tuple[int, ...], Fraction], unit: Unit, *, droppable: bool = False
) -> Sensitivity:
    """The sensitivity of several residuals as one vector, each divided by the standard deviation of its noise.

    `weights` has 1/sigma² of each residual, named by its part on each axis, 0 for the constants. All columns of the
    matrix of a residual V have one squared length N_V², so the squared L2 under `add_remove` is Σ N_V²/sigma_V².
    Exchanging a row is of a kind: on each axis the cells are the same, or two of a category, or of the two halves of a
    block of one level. The kind decides the cosine of every residual, and the squared L2 is the largest over all
    kinds of

        Σ_V N_V²/sigma_V² · 2 (1 − Π over the axes of their cosine),

    exactly. It is at most the sum of those of the residuals, and often much less. L1 and L∞ are loose bounds.
    Proof: source/contribution.md

    >>> from discreet.query.residual import axis_of_size
    >>> sex, both = (1, 0), (1, 1)
    >>> axes = (axis_of_size(2, ordered=False), axis_of_size(2, ordered=False))
    >>> pieces_sensitivity(axes, {sex: Fraction(1), both: Fraction(1)}, Unit()).l2_squared
    Fraction(2, 1)
    >>> pieces_sensitivity(axes, {(1, 0): Fraction(1), (0, 1): Fraction(1)}, Unit(neighbors="replace_one")).l2_squared
    Fraction(8, 1)
    >>> pieces_sensitivity(axes, {(1, 0): Fraction(1), (1, 1): Fraction(1)}, Unit(neighbors="replace_one")).l2_squared
    Fraction(8, 1)
    """
    denominator = lcm(*(weight.denominator for weight in weights.values()))
    lengths = np.zeros(tuple(axis.parts for axis in axes), dtype=object)
    for place, weight in weights.items():
        norm = prod(axis.squared_norm(part) for axis, part in zip(axes, place, strict=True))
        lengths[place] = norm * weight.numerator * (denominator // weight.denominator)
    total = int(lengths.sum())
    if unit.neighbors == "replace_one":
        most = _largest_exchange(axes, lengths, total)
        # One of the two persons may have no rows, and then only the rows of the other change anything.
        most = max(most, Fraction(total)) if unit.key is not None or droppable else most
    else:
        most = Fraction(total)
    squared = unit.contributions**2 * most / denominator
    longest = isqrt(int(squared)) + 1
    numbers = sum(prod(axis.rows(part) for axis, part in zip(axes, place, strict=True)) for place in weights)
    return Sensitivity(l1=Fraction(longest * numbers), l2_squared=squared, linf=Fraction(longest))


def _largest_exchange(axes: "Sequence[Axis]", lengths: NDArray[Any], total: int) -> Fraction:
    """The largest squared distance over all kinds of exchange, from the squared lengths of the residuals."""
    left, scale = lengths, 1
    for place, axis in enumerate(axes):
        left = np.moveaxis(np.tensordot(_cosines(axis), left, axes=(1, place)), 0, place)
        scale *= 1 if axis.levels else max(axis.cells - 1, 1)
    return Fraction(2 * (total * scale - int(left.min())), scale)


@memoize(1024)
def _cosines(axis: "Axis") -> NDArray[Any]:
    """The cosine of every part (columns) for each kind of exchange (rows, the first being none).

    For a category times n − 1: they are 1 and −1/(n − 1). On a Haar axis two cells that part at level j are in the same
    half of every block above, in the two halves of one block at j, and in different blocks below.
    """
    if axis.parts == 1:
        return np.ones((1, 1), dtype=object)
    if not axis.levels:
        return np.array([[axis.cells - 1, axis.cells - 1], [axis.cells - 1, -1]], dtype=object)
    kinds = np.arange(axis.parts)[:, None]
    parts = np.arange(axis.parts)[None, :]
    cosines = np.where(parts < kinds, 1, np.where(parts == kinds, -1, 0))
    cosines[0] = 1
    return cosines.astype(object)


@memoize(4096)
def clusters_sensitivity(
    clusters: int, unit: Unit, *, weight: int, l1: int, l2_squared: int, linf: int, droppable: bool = False
) -> Sensitivity:
    """The sensitivity of counts and sums of clusters: a row adds `weight` to one count, and a vector to its sums.

    The vectors have these norms at most, and with v there may be −v. Under `add_remove` a row moves one count and one
    sum. Exchanged rows move two clusters if they are in different ones; in the same one the count stays and the sum
    moves by v − v', at most twice the length of one. Exact where vectors attain the norms and both cases are possible.
    Proof: learn/kmeans/kmeans.md

    >>> clusters_sensitivity(3, Unit(), weight=2, l1=3, l2_squared=5, linf=2).l1
    Fraction(5, 1)
    >>> clusters_sensitivity(3, Unit(neighbors="replace_one"), weight=1, l1=3, l2_squared=5, linf=2).l2_squared
    Fraction(20, 1)
    """
    alone = (weight + l1, weight**2 + l2_squared, max(weight, linf))
    if unit.neighbors == "add_remove":
        moves = [alone]
    else:
        moves = [(2 * l1, 4 * l2_squared, 2 * linf)]
        moves += [(2 * alone[0], 2 * alone[1], alone[2])] if clusters > 1 else []
        moves += [alone] if unit.key is not None or droppable else []
    rows = unit.contributions
    return Sensitivity(
        l1=Fraction(rows * max(move[0] for move in moves)),
        l2_squared=Fraction(rows**2 * max(move[1] for move in moves)),
        linf=Fraction(rows * max(move[2] for move in moves)),
    )


def bounded_sensitivity(ranges: Sequence[tuple[int, int]], unit: Unit, *, droppable: bool = False) -> Sensitivity:
    """An upper bound for a vector of sums, from the lowest and highest weight of each alone.

    >>> bounded_sensitivity([(0, 1), (0, 1)], Unit()).l2_squared
    Fraction(2, 1)
    """
    # Thousands of queries have few different ranges.
    each = [
        (scalar_sensitivity(low, high, unit, droppable=droppable), times)
        for (low, high), times in Counter(ranges).items()
    ]
    return Sensitivity(
        l1=sum((times * one.l1 for one, times in each), Fraction(0)),
        l2_squared=sum((times * one.l2_squared for one, times in each), Fraction(0)),
        linf=max(one.linf for one, _ in each),
        direction=_direction(min(low for low, _ in ranges), max(high for _, high in ranges), unit),
    )


def _part_norms(axis: "Axis", part: int) -> tuple[int, int, int]:
    """The L1 norm, the squared L2 norm and the largest entry of every column of a measuring matrix."""
    return (1, 1, 1) if axis.levels else (2 * (axis.cells - 1), axis.squared_norm(part), axis.cells - 1)


def _direction(lowest: int, highest: int, unit: Unit) -> Direction:
    """The way in which the rows of a further person move values, if each of them weighs between these."""
    if unit.neighbors != "add_remove":
        return 0
    if lowest >= 0:
        return 1
    return -1 if highest <= 0 else 0


def _norms(moves: NDArray[Any]) -> tuple[int, int, int]:
    """The largest sum of absolute values, sum of squares and absolute value of a column."""
    sizes = np.abs(moves)
    return int(sizes.sum(axis=0).max()), int((sizes * sizes).sum(axis=0).max()), int(sizes.max())


SensitivityNorm = Literal["l1", "l2_squared", "linf"]
NORMS: tuple[SensitivityNorm, ...] = ("l1", "l2_squared", "linf")


def read_sensitivity(sensitivity: Sensitivity | Number, norm: SensitivityNorm) -> Sensitivity:
    """A sensitivity, from one or from a plain number that holds in every norm; the norm in use must be above zero.

    >>> read_sensitivity(2, "l1").l2_squared
    Fraction(4, 1)
    """
    if not isinstance(sensitivity, Sensitivity):
        step = "Give exact.sensitivity, or a number, say 1."
        number = positive("sensitivity", sensitivity, next_step=step)
        return Sensitivity(l1=number, l2_squared=number**2, linf=number)
    if getattr(sensitivity, norm) <= 0:
        raise BadParameter(
            f"the {norm} sensitivity is {getattr(sensitivity, norm)}; noise needs one above 0. "
            "A value that no person can move is public: answer it without a mechanism."
        )
    return sensitivity
