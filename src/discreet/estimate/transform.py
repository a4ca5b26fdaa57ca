"""The transform of weights on one column: their mean, and their coefficient in each part of the column.

The weights are explicit rows (`Listed`), or the indicators of all cells of a GROUP BY (`EachCell`). The second kind is
never written out as rows: n cells would need n × n numbers, and everything follows from n.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.cache import LruCache, memoize
from discreet.query.product import Factor
from discreet.query.residual import Axis
from discreet.types import Numbers

# The square of a relative error of a sum of doubles, with room to spare.
SQUARED_ROUNDING = 1e-27
# Up to this number of cells the measuring matrix is cached; beyond, it is applied level by level.
_MOST_KEPT = 256
# Readings of weights that several questions use: numbers of eight bytes, so 32 MB.
_KEPT: "LruCache[tuple[Axis, Factor], Listed]" = LruCache(2**22)
# The most kinds of cells of a GROUP BY that are distinguished.
_MOST_KINDS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """One or more weights on a column of n cells, each as its mean f̄ and the parts of f − f̄.

    `vectors` has a row for each weight: f̄, then M(f − f̄)/gain for the measuring matrix M of each part, so that the
    weighted sum of a marginal is the product of this row with (its total, its measurements). `units` is M(f −
    f̄)/√gain, so that plain inner products are those of the parts. `energies` has the squared length of each part of
    each weight, f̄² first. Of a sum of products there is a row for each product.
    """

    axis: Axis
    vectors: Numbers
    units: Numbers
    energies: Numbers

    @property
    def kinds(self) -> Numbers:
        """The energies that occur, each at least once."""
        return self.energies

    def means(self, products: int) -> Numbers:
        """The mean of each weight: (cell, product)."""
        return self.vectors[:, 0].reshape(-1, products)

    def values(self, estimate: Numbers, product: int, products: int) -> Numbers:
        """The estimated value of one product: the first axis becomes the last, of cells."""
        return np.tensordot(estimate, self.vectors[product::products], axes=(0, 1))

    def weighed(self, weights: Numbers) -> Numbers:
        """The energies added up with a weight for each part: its first axis becomes the last, of cells."""
        return np.tensordot(weights, self.energies, axes=(0, 1))

    def gram(self, products: int) -> Numbers:
        """The inner products of each part of each two products: (part, cell, product, product)."""
        means, units = self.means(products), self.units.reshape(len(self.units) // products, products, -1)
        parts = [means[:, :, None] * means[:, None, :]]
        parts += [units[:, :, a:b] @ units[:, :, a:b].transpose(0, 2, 1) for a, b in pairwise(self.axis.starts)]
        return np.stack(parts)

    def meet(self, other: "Listed", products: int) -> Numbers:
        """The inner products of each part with each of other weights: (part, cell, product, other)."""
        starts, other_means = self.axis.starts, other.vectors[:, 0]
        means, units = self.means(products), self.units.reshape(len(self.units) // products, products, -1)
        both = np.empty((len(starts), *means.shape, len(other_means)))
        np.multiply(means[:, :, None], other_means, out=both[0])
        if units.shape[0] * units.shape[1] == 1 and len(starts) > 2:
            both[1:, 0, 0] = np.add.reduceat(units[0, 0] * other.units, starts[:-1], axis=1).T
            return both
        for part, (begin, end) in enumerate(pairwise(starts), start=1):
            both[part] = units[:, :, begin:end] @ other.units[:, begin:end].T
        return both


@dataclass(frozen=True, eq=False)
class EachCell:
    """The indicators of all cells of a column, each times the weight that every product has there.

    `weights` has a row for each product and a column for each cell; None is one product that weighs 1 everywhere. All
    results are those of `Listed` for the rows (cell, product), in time and memory proportional to the cells.
    """

    axis: Axis
    weights: Numbers | None = None

    @cached_property
    def _rows(self) -> tuple[Numbers, NDArray[np.intp]]:
        """The energies of the indicators that differ, and which of them each cell has; they are few.

        All cells of a category have the same. On a Haar axis of n cells, f − f̄ is 1/n off on all declared cells, which
        changes the energy of a block that is neither full nor empty: one block a level, and its halves differ.
        """
        axis, n = self.axis, self.axis.cells
        kind = np.zeros(n, dtype=np.intp)
        if not axis.levels:
            return np.array([[n**-2.0, (1 - 1 / n) ** 2 + (n - 1) * n**-2.0]]), kind
        said = [axis.apply(part, np.ones(n), axis=0) for part in range(1, axis.parts)]
        here = [0]
        for part, numbers in enumerate(said, start=1):
            half = axis.padded >> part
            for block in np.flatnonzero(numbers).tolist():
                for start in (2 * half * block, 2 * half * block + half):
                    if start < n:
                        kind[start : start + half] = len(here)
                        here.append(start)
        cells = np.array(here)
        rows = np.empty((len(here), axis.parts))
        rows[:, 0] = n**-2.0
        for part, numbers in enumerate(said, start=1):
            half = axis.padded >> part
            sign = 1.0 - 2.0 * (cells // half % 2)
            own = numbers[cells // (2 * half)]
            squares = (sign - own / n) ** 2 + (float(numbers @ numbers) - own**2) / n**2
            rows[:, part] = squares / axis.gain(part)
        rows[rows < SQUARED_ROUNDING] = 0.0
        return rows, kind

    @property
    def energies(self) -> Numbers:
        """The squared length of each part of each row, the mean first."""
        rows, kind = self._rows
        if self.weights is None:
            return rows[kind]
        return (self.weights.T[:, :, None] ** 2 * rows[kind][:, None, :]).reshape(-1, self.axis.parts)

    @cached_property
    def kinds(self) -> Numbers:
        """The energies that occur, each at least once; of very many, the largest of each part."""
        rows, kind = self._rows
        if self.weights is None:
            return rows
        sizes, which = np.unique(np.abs(self.weights), return_inverse=True)
        pairs = np.unique(which.reshape(self.weights.shape) * len(rows) + kind)
        if len(pairs) <= _MOST_KINDS:
            return np.asarray(sizes[pairs // len(rows), None] ** 2 * rows[pairs % len(rows)])
        largest = [np.abs(self.weights[:, kind == each]).max(initial=0.0) for each in range(len(rows))]
        return np.asarray((np.array(largest)[:, None] ** 2 * rows).max(axis=0, keepdims=True))

    def means(self, products: int) -> Numbers:
        """The mean of each row: (cell, product)."""
        return np.full((self.axis.cells, products), 1 / self.axis.cells) * self._weights.T

    def values(self, estimate: Numbers, product: int, products: int) -> Numbers:
        """The estimated value of one product: the first axis becomes the last, of cells."""
        flat = np.moveaxis(estimate, 0, -1)
        starts = self.axis.starts
        found = flat[..., :1] / self.axis.cells + np.zeros(self.axis.cells)
        for part, (begin, end) in enumerate(pairwise(starts), start=1):
            found += self._back(flat[..., 1 + begin : 1 + end] / self.axis.gain(part), part)
        return found if self.weights is None else found * self.weights[product]

    def weighed(self, weights: Numbers) -> Numbers:
        """The energies of one product added up with a weight for each part: the first axis becomes the last."""
        rows, kind = self._rows
        found = np.tensordot(weights, rows, axes=(0, 1))[..., kind]
        return found if self.weights is None else found * self.weights[0] ** 2

    def gram(self, products: int) -> Numbers:
        """The inner products of each part of each two products: (part, cell, product, product)."""
        rows, kind = self._rows
        both = self._weights.T[:, :, None] * self._weights.T[:, None, :]
        return rows.T[:, kind, None, None] * both

    def meet(self, other: Listed, products: int) -> Numbers:
        """The inner products of each part with each of other weights: (part, cell, product, other)."""
        axis = self.axis
        found = np.empty((axis.parts, axis.cells, len(other.units)))
        found[0] = other.vectors[:, 0] / axis.cells
        for part, (begin, end) in enumerate(pairwise(axis.starts), start=1):
            found[part] = self._back(other.units[:, begin:end] / axis.gain(part) ** 0.5, part).T
        return found[:, :, None, :] * self._weights.T[:, :, None]

    @property
    def _weights(self) -> Numbers:
        return np.ones((1, self.axis.cells)) if self.weights is None else self.weights

    def _back(self, numbers: Numbers, part: int) -> Numbers:
        """The measuring matrix of a part, transposed, times the last axis; less the mean over the declared cells."""
        found = self.axis.adjoint(part, numbers)
        return np.asarray(found - found.mean(axis=-1, keepdims=True))


Transformed = Listed | EachCell


def as_listed(reading: Transformed) -> Listed:
    """The reading of a column that is not grouped: its rows are listed."""
    assert isinstance(reading, Listed), "the cells of a group are not listed"
    return reading


def read(axis: Axis, weights: Numbers) -> Listed:
    """Take apart the rows of a matrix of weights, one column for each cell.

    The constants are those on the declared cells: f − f̄ is zero on the cells that pad a Haar axis, so what is constant
    stays constant and no query has a part that its column does not ask for.
    """
    means = weights.mean(axis=1, keepdims=True)
    measured = _measured(axis, weights - means)
    gains = _gains(axis)
    units = measured / np.sqrt(gains)
    energies = np.empty((len(weights), axis.parts))
    energies[:, 0] = means[:, 0] ** 2
    if axis.parts > 1:
        energies[:, 1:] = np.add.reduceat(units * units, axis.starts[:-1], axis=1)
        # The rounding error of a part that is zero must not count as energy.
        energies[energies < SQUARED_ROUNDING * (weights * weights).sum(axis=1, keepdims=True)] = 0.0
    return Listed(axis, np.hstack([means, measured / gains]), units, energies)


def read_factor(axis: Axis, factor: Factor) -> Listed:
    """The reading of one weight, cached: several questions use the same ones."""
    found = _KEPT.get((axis, factor))
    if found is None:
        found = read(axis, factor.weights.astype(np.float64)[None, :])
        _KEPT.put((axis, factor), found, size=3 * factor.weights.size + 100)
    return found


def _measured(axis: Axis, centred: Numbers) -> Numbers:
    if axis.parts == 1:
        return np.zeros((len(centred), 0))
    if not axis.levels:
        return axis.cells * centred
    if axis.cells <= _MOST_KEPT:
        return centred @ _matrix(axis).T
    return axis.apply_all(centred, axis=1)[:, 1:]


@memoize(64)
def _matrix(axis: Axis) -> Numbers:
    return np.vstack([axis.measure(part) for part in range(1, axis.parts)]).astype(np.float64)


@memoize(64)
def _gains(axis: Axis) -> Numbers:
    """The gain of each measured row, or the one that all have."""
    if not axis.levels:
        return np.array([float(axis.gain(1))]) if axis.parts > 1 else np.ones(0)
    return np.repeat(
        np.array([axis.gain(part) for part in range(1, axis.parts)], dtype=np.float64),
        [axis.rows(part) for part in range(1, axis.parts)],
    )
