"""Residuals: vector queries that together make up all marginals, as in ResidualPlanner.

A residual takes one part of each named column (`axis.py`), and the constants of all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.query.axis import Axis, axis_of
from discreet.query.normal import NormalForm, names_of
from discreet.schema.domain import Domain

# Cells of the marginal that is measured. No entry of a measuring matrix is larger than the number of its cells.
MOST_RESIDUAL_CELLS = 2**20


@dataclass(frozen=True, slots=True)
class Residual(NormalForm):
    """The vector query that measures one cell of the lattice: what a marginal says that its own marginals do not.

    `parts` has a pair (column, part) for each named column, sorted; of none, it is the total. The measuring matrix is
    the Kronecker product, in that order, of those of the parts (`axis.py`); it acts on the marginal of the columns.

    >>> from discreet.schema.column import Boolean, Integers
    >>> domain = Domain({"age": Integers(0, 2, missing="drop"), "sex": Boolean()})
    >>> both = Residual((("sex", 1), ("age", 2)))
    >>> both.columns, both.shape(domain), both.measure(np.array([[5, 0], [2, 2], [1, 4]]), domain).tolist()
    (('age', 'sex'), (2, 1), [[5], [-3]])
    """

    parts: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, (tuple, list)) or not all(map(_is_part, self.parts)):
            raise BadQuery(
                f"parts is {self.parts!r}; it must be pairs of a column and the number of a part, 1 or more. "
                'Write [("age", 1), ("sex", 1)].'
            )
        names = names_of([name for name, _ in self.parts], "parts")
        parts = zip(names, (int(part) for _, part in self.parts), strict=True)
        object.__setattr__(self, "parts", tuple(sorted(parts)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The named columns, sorted: it measures more than their constants. The order of the axes."""
        return tuple([name for name, _ in self.parts])

    scope = columns

    def axes(self, domain: Domain) -> tuple[tuple[Axis, int], ...]:
        """The axis and the part of each column, if the domain has them and their marginal can be counted."""
        axes = tuple([(axis_of(domain[name]), part) for name, part in self.parts])
        cells = 1
        for place, (axis, part) in enumerate(axes):
            cells *= axis.cells
            if part >= axis.parts:
                raise BadQuery(_no_part(self.columns[place], part, axis.parts - 1))
        if cells > MOST_RESIDUAL_CELLS:
            raise TooLarge(
                f"the marginal of {', '.join(self.columns)} has {cells} cells; a residual is measured on at most "
                f"{MOST_RESIDUAL_CELLS}. Ask for fewer columns."
            )
        return axes

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """How many rows the measuring matrix of each part has."""
        return tuple(axis.rows(part) for axis, part in self.axes(domain))

    def size(self, domain: Domain) -> int:
        """How many numbers are measured."""
        return prod(self.shape(domain))

    def measure(self, counts: NDArray[Any] | Sequence[Any], domain: Domain) -> NDArray[Any]:
        """The measuring matrix times a marginal on its columns: exact integers, beyond 64 bits as Python's."""
        axes, values = self.axes(domain), np.asarray(counts)
        shape = tuple(axis.cells for axis, _ in axes)
        if values.shape != shape or values.dtype.kind not in "iubO":
            raise BadQuery(
                f"the residual is on {self.columns} of {shape} cells and was given {values.shape} of {values.dtype}; "
                "it needs integer counts with an axis for each of its columns."
            )
        # No sum on the way is larger than this. Half of the 64 bits is left for the rounding of the floats.
        largest = float(np.abs(values.astype(np.float64)).sum()) * prod(shape)
        values = values.astype(np.int64 if largest < 2**62 else object)
        for place, (axis, part) in enumerate(axes):
            values = axis.apply(part, values, place)
        return values


def _is_part(pair: object) -> bool:
    match pair:
        case (str(), bool()):
            return False
        case (str(), int() | np.integer() as part):
            return bool(part >= 1)
    return False


def _no_part(name: str, part: int, last: int) -> str:
    if not last:
        return f'column "{name}" has one cell, so it has no part {part}: all its functions are constant. Leave it out.'
    return f'column "{name}" has no part {part}; its parts besides the constants are 1 to {last}. Name one of them.'
