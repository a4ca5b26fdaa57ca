"""The orthogonal parts of the functions on the cells of a column: the constants, and flat parts.

A category has one part besides the constants, its contrasts (functions that add up to zero). An ordered column has one
part for each level of the Haar wavelets: level l compares the two halves of each of 2^(l−1) equal blocks, so a range is
made of few of them. A column of two cells has one level. For Haar, the cells are padded to a power of two with cells in
which no row can be.

*Flat* means that all columns of the measuring matrix of a part have one norm, so the most that one person can move a
measurement is known exactly, and is the same for everyone.

Residuals: vector queries that together make up all marginals, as in ResidualPlanner.

A residual takes one part of each named column (`axis.py`), and the constants of all others.

Several residuals measured together as one vector; each residual has its own noise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.errors import BadQuery, TooLarge
from discreet.numeric import positive
from discreet.schema.column import Column
from discreet.schema.domain import Domain
from discreet.values import NormalForm, names_of


@dataclass(frozen=True)
class Axis:
    """The parts of one column of `cells` cells. Part 0 is the constants; `levels` is 0 for categories.

    >>> Axis(4, levels=0).measure(1).tolist()
    [[3, -1, -1, -1], [-1, 3, -1, -1], [-1, -1, 3, -1], [-1, -1, -1, 3]]
    >>> Axis(3, levels=2).measure(1).tolist(), Axis(3, levels=2).measure(2).tolist()
    ([[1, 1, -1]], [[1, -1, 0], [0, 0, 1]])
    """

    cells: int
    levels: int

    @property
    def parts(self) -> int:
        """How many parts there are, the constants included; a column of one cell has no other."""
        return 1 if self.cells == 1 else 1 + max(1, self.levels)

    @property
    def padded(self) -> int:
        """The number of cells with those that hold no row."""
        return 2**self.levels if self.levels else self.cells

    def rows(self, part: int) -> int:
        """How many rows the measuring matrix of a part has."""
        if part == 0:
            return 1
        return 2 ** (part - 1) if self.levels else self.cells

    def gain(self, part: int) -> int:
        """The factor in MᵀM = gain · projection onto the part, where M is the measuring matrix.

        So a measurement with noise of variance s² has precision gain/s² for the part.
        """
        if part == 0:
            return self.padded
        return self.padded // 2 ** (part - 1) if self.levels else self.cells**2

    def squared_norm(self, part: int) -> int:
        """The squared length of every column of the measuring matrix: by how much one row of the table moves it."""
        return 1 if part == 0 or self.levels else self.cells * (self.cells - 1)

    def opposite(self, part: int) -> tuple[int, int]:
        """The smallest cosine between two columns of the measuring matrix, as −numerator/denominator.

        Two cells of a category are at −1/(n − 1); the two halves of a block are at −1.
        """
        if part == 0:
            return (0, 1)
        return (1, 1) if self.levels else (1, self.cells - 1)

    def measure(self, part: int) -> NDArray[np.int64]:
        """The measuring matrix: rows by cells."""
        return self.apply(part, np.eye(self.cells, dtype=np.int64), axis=0)

    def apply(self, part: int, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """The measuring matrix times an array along one of its axes, exactly for integers."""
        if part == 0:
            return np.asarray(values.sum(axis=axis, keepdims=True))
        if not self.levels:
            return np.asarray(self.cells * values - values.sum(axis=axis, keepdims=True))
        moved = np.moveaxis(values, axis, -1)
        block = self.padded >> part
        # Only blocks that begin before the last cell hold anything.
        whole = -(-self.cells // block)
        room = whole * block - self.cells
        filled = np.concatenate([moved, np.zeros((*moved.shape[:-1], room), dtype=moved.dtype)], axis=-1)
        sums = filled.reshape(*moved.shape[:-1], whole, block).sum(axis=-1)
        halves = np.zeros((*moved.shape[:-1], 2**part), dtype=moved.dtype)
        halves[..., :whole] = sums
        return np.moveaxis(halves[..., 0::2] - halves[..., 1::2], -1, axis)

    def adjoint(self, part: int, values: NDArray[Any]) -> NDArray[Any]:
        """The measuring matrix of a part, transposed, times the last axis of an array: from rows back to cells.

        >>> Axis(3, levels=2).adjoint(2, np.array([5, 7])).tolist()
        [5, -5, 7]
        """
        if part == 0:
            return np.repeat(values, self.cells, axis=-1)
        if not self.levels:
            return np.asarray(self.cells * values - values.sum(axis=-1, keepdims=True))
        halves = np.stack([values, -values], axis=-1).reshape(*values.shape[:-1], -1)
        return np.repeat(halves, self.padded >> part, axis=-1)[..., : self.cells]

    def apply_all(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """The measuring matrices of all parts, one after the other, the constants first: `starts`, each one later."""
        if not self.levels:
            parts = [self.apply(part, values, axis) for part in range(self.parts)]
            return np.concatenate(parts, axis=axis)
        moved = np.moveaxis(values, axis, -1)
        padding = np.zeros((*moved.shape[:-1], self.padded - self.cells), dtype=moved.dtype)
        sums, found = np.concatenate([moved, padding], axis=-1), []
        while sums.shape[-1] > 1:
            found.append(sums[..., 0::2] - sums[..., 1::2])
            sums = sums[..., 0::2] + sums[..., 1::2]
        return np.moveaxis(np.concatenate([sums, *reversed(found)], axis=-1), -1, axis)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each part begins when all parts but the constants lie one after the other, and where the last ends."""
        starts = [0]
        for part in range(1, self.parts):
            starts.append(starts[-1] + self.rows(part))
        return tuple(starts)


@memoize(1024)
def axis_of_size(cells: int, *, ordered: bool) -> Axis:
    """The axis of a column with this many cells.

    >>> axis_of_size(2, ordered=False), axis_of_size(75, ordered=True)
    (Axis(cells=2, levels=1), Axis(cells=75, levels=7))
    """
    haar = ordered or cells == 2
    return Axis(cells, levels=(cells - 1).bit_length() if haar else 0)


def axis_of(column: Column) -> Axis:
    """The axis of a column; its extra cells come after the declared ones."""
    return axis_of_size(column.size, ordered=column.ordered)


# Cells of the marginal that is measured. No entry of a measuring matrix is larger than the number of its cells.
MOST_RESIDUAL_CELLS = 2**20


@dataclass(frozen=True, slots=True)
class Residual(NormalForm):
    """The vector query that measures one residual of the lattice: what a marginal adds to its own marginals.

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


@dataclass(frozen=True, slots=True)
class Measurement(NormalForm):
    """Residuals, each with the standard deviation of the noise that its numbers will get.

    Together they are one vector; divided by its noise, one person can move it by less than the sum of what each
    residual allows, because no exchange of a row moves all of them most.

    >>> sex, both = Residual((("sex", 1),)), Residual((("city", 1), ("sex", 1)))
    >>> Measurement(((sex, Fraction(10)), (both, Fraction(20)))).columns
    ('city', 'sex')
    """

    pieces: tuple[tuple[Residual, Fraction], ...]

    def __post_init__(self) -> None:
        listed = tuple(self.pieces) if isinstance(self.pieces, Iterable) else ()
        given = [tuple(piece) if isinstance(piece, (tuple, list)) else () for piece in listed]
        if not given or not all(len(piece) == 2 and isinstance(piece[0], Residual) for piece in given):
            raise BadQuery("a measurement has no Residual, or something else among them. Give pairs (Residual, sigma).")
        if len({residual for residual, _ in given}) < len(given):
            raise BadQuery("a measurement has the same residual twice; each is measured once, with less noise.")
        object.__setattr__(self, "pieces", tuple((residual, positive("sigma", sigma)) for residual, sigma in given))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the residuals, sorted."""
        return tuple(sorted({name for residual, _ in self.pieces for name in residual.columns}))

    def measure(self, counts: NDArray[np.int64], domain: Domain) -> NDArray[Any]:
        """The residuals of a marginal on all its columns, one after the other: exact integers."""
        columns, axes = self.columns, tuple(axis_of(domain[name]) for name in self.columns)
        values = measure_all(counts, axes)
        return np.concatenate([values[residual_slices(columns, axes, residual)].ravel() for residual, _ in self.pieces])

    def stretches(self, domain: Domain) -> tuple[tuple[Fraction, int], ...]:
        """The noise of each residual and how many numbers it has, in order."""
        return tuple((sigma, residual.size(domain)) for residual, sigma in self.pieces)


def measure_all(counts: NDArray[np.int64], axes: Sequence[Axis]) -> NDArray[Any]:
    """All parts of every axis of a marginal, the constants first: exact integers."""
    # No number on the way is larger than this; beyond 64 bits Python's integers are used.
    largest = float(np.abs(counts.astype(np.float64)).sum()) * prod(axis.cells for axis in axes)
    values: NDArray[Any] = counts if largest < 2**62 else counts.astype(object)
    for place, axis in enumerate(axes):
        values = axis.apply_all(values, place)
    return values


def residual_slices(columns: tuple[str, ...], axes: tuple[Axis, ...], residual: Residual) -> tuple[slice, ...]:
    """Where the numbers of a residual lie when all parts of every axis are measured, the constants first."""
    parts = dict(residual.parts)
    ends = [(axis, parts.get(name, 0)) for name, axis in zip(columns, axes, strict=True)]
    return tuple(
        slice(0, 1) if not part else slice(1 + axis.starts[part - 1], 1 + axis.starts[part]) for axis, part in ends
    )


def axes_of(domain: Domain, columns: tuple[str, ...]) -> tuple[Axis, ...]:
    """The axes of some columns."""
    # Nothing is kept for a domain: to find it among others, equal ones would be compared value by value.
    return tuple(axis_of(domain[name]) for name in columns)
