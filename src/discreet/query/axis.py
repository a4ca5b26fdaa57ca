"""How the functions on the cells of a column fall apart: into constants, and flat parts orthogonal to all others.

A category has one part besides the constants, its contrasts (functions that add up to zero). An ordered column has one
part for each level of the Haar wavelets: level l compares the two halves of each of 2^(l−1) equal blocks, so a range is
made of few of them. A column of two cells has one level. For Haar, the cells are padded to a power of two with cells in
which no row can be.

*Flat* means that the rows of the measuring matrix of a part look the same from every cell: all its columns have one
norm, so the most that one person can move a measurement is known exactly, and is the same for everyone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.schema.column import Column


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
        """What a row of the measuring matrix times itself is, as it acts on the part: MᵀM = gain · projection.

        So a measurement with noise of variance s² knows the part with precision gain/s².
        """
        if part == 0:
            return self.padded
        return self.padded // 2 ** (part - 1) if self.levels else self.cells**2

    def squared_norm(self, part: int) -> int:
        """The squared length of every column of the measuring matrix: how far one row of the table moves it."""
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
