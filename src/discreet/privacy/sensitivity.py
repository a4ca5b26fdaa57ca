"""How far one person can move a vector of integers. The one place where sensitivities are computed.

A vector query adds, for each row, the *effect* of the row's cell: a vector of integers. Everything below is the
largest distance that exchanging, adding or removing one person's rows can make, in three norms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.schema.unit import Unit


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change between neighbours: the sum of the moves, their squared length, and the largest one.

    `monotone` says that neighbours move all values the same way, which sparse vector and noisy-max can use.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction
    monotone: bool = False

    def covers(self, other: "Sensitivity") -> bool:
        """Whether noise calibrated to this is enough for a vector that moves like `other`."""
        return (
            other.l1 <= self.l1
            and other.l2_squared <= self.l2_squared
            and other.linf <= self.linf
            and (other.monotone or not self.monotone)
        )


def scalar_sensitivity(lowest: int, highest: int, unit: Unit) -> Sensitivity:
    """Of one sum of per-row weights between `lowest` and `highest`.

    >>> scalar_sensitivity(0, 1, Unit())
    Sensitivity(l1=Fraction(1, 1), l2_squared=Fraction(1, 1), linf=Fraction(1, 1), monotone=True)
    >>> scalar_sensitivity(10, 12, Unit(neighbors="replace_one")).l1
    Fraction(2, 1)
    """
    return matrix_sensitivity([[lowest, highest]], unit)


def histogram_sensitivity(cells: int, unit: Unit) -> Sensitivity:
    """Of the counts of all cells together: each row counts in exactly one.

    >>> histogram_sensitivity(10, Unit()).l1, histogram_sensitivity(10, Unit(neighbors="replace_one")).l1
    (Fraction(1, 1), Fraction(2, 1))
    """
    return matrix_sensitivity(np.eye(min(cells, 2), dtype=np.int64), unit)


def matrix_sensitivity(effects: Sequence[Sequence[int]] | NDArray[np.int64], unit: Unit) -> Sensitivity:
    """Of a vector of sums: `effects[i][x]` is what a row in cell x adds to value i.

    With one row a person and `replace_one`, the largest distance between two columns; otherwise a person may also
    have no rows, so the zero column counts as one, and each of m rows adds its own distance.
    """
    columns = [tuple(int(value) for value in column) for column in zip(*effects, strict=True)]
    columns = list(dict.fromkeys(columns))
    nobody = (0,) * len(effects)
    if unit.neighbors == "add_remove":
        moves = columns
    else:
        ends = columns if unit.key is None else list(dict.fromkeys([*columns, nobody]))
        moves = [tuple(a - b for a, b in zip(p, q, strict=True)) for p in ends for q in ends] or [nobody]
    rows = unit.contributions
    return Sensitivity(
        l1=Fraction(rows * max(sum(map(abs, move)) for move in moves)),
        l2_squared=Fraction(rows**2 * max(sum(value * value for value in move) for move in moves)),
        linf=Fraction(rows * max(max(map(abs, move), default=0) for move in moves)),
        monotone=unit.neighbors == "add_remove" and _one_way(columns),
    )


def _one_way(columns: Sequence[Sequence[int]]) -> bool:
    values = [value for column in columns for value in column]
    return min(values, default=0) >= 0 or max(values, default=0) <= 0
