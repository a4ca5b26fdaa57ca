"""Noisy marginals as means of products of features, evaluated by matrix products.

A feature is a function of one column: a row of a measuring matrix (`query.residual`), or a cell of a whole marginal. In
a mixture of products the mean of a product of features on different columns is Σ_k w_k Π f_k, where f_k is the mean of
the feature in component k. So one matrix product gives all numbers that were measured on pairs of columns, and those
on single columns too, with a feature that is always 1. Many small measurements of three columns share one product
(`Cube`), a large one has products of its own (`block_features.py`), and the rest are multiplied one by one (`Higher`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.block_features import FeatureBlock, block_of, row_products
from discreet.query.residual import axis_of
from discreet.schema.domain import Domain
from discreet.types import Numbers, Reals

# All products of features are computed, also of those never measured together: up to this many for each number.
WASTE = 64
# The values and the weights of all products of three features: 64 MB each.
MOST_CUBED = 2**8


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """Measurements of products of three of the features at `places`.

    `values` and `weight` (1/variance, 0 where nothing was measured) have a row for each two features and a column for
    the third. They are symmetric: each number is there six times.
    """

    places: NDArray[np.int64]
    values: Reals
    weight: Reals

    def single(self) -> "Cube":
        """The same in single precision."""
        return replace(self, values=self.values.astype(np.float32), weight=self.weight.astype(np.float32))

    @property
    def each_once(self) -> NDArray[np.bool_]:
        """A mask that has each number in one of its six places."""
        first, second, third = np.ogrid[: len(self.places), : len(self.places), : len(self.places)]
        return np.asarray(((first < second) & (second < third)).reshape(self.values.shape))

    def means(self, means: Reals, weights: Reals) -> Reals:
        """The mean of each product, for the means of the features in each component."""
        chosen = means[self.places]
        return np.asarray(row_products(chosen * weights, chosen) @ chosen.T)

    def add(self, means: Reals, weights: Reals, total: float, slopes: Reals, along: Reals) -> float:
        """Add the slopes along the means of the features (over w) and along the weights; the loss."""
        chosen = means[self.places]
        residual = self.means(means, weights)
        residual *= total
        residual -= self.values
        pull = self.weight * residual
        loss = float(np.vdot(pull, residual)) / 12
        steep = (pull @ chosen).reshape(len(chosen), len(chosen), -1)
        steep *= chosen
        moved = steep.sum(axis=1)
        moved *= total / 2
        slopes[self.places] += moved
        along += np.einsum("fk,fk->k", chosen, moved) / 3
        return loss


def cube_of(measurements: Sequence[tuple[Sequence[slice], Numbers, float]]) -> Cube | None:
    """Small measurements of three columns as one cube of features; None if most of the cube would be unused."""
    if not measurements:
        return None
    places = np.array(
        sorted({each for here, _, _ in measurements for place in here for each in range(place.start, place.stop)})
    )
    size = len(places)
    if size > MOST_CUBED or size**3 > WASTE * sum(seen.size for _, seen, _ in measurements):
        return None
    values, weight = np.zeros((size, size, size)), np.zeros((size, size, size))
    for here, seen, precision in measurements:
        inside = [slice(*np.searchsorted(places, (place.start, place.stop)).tolist()) for place in here]
        for order in permutations(range(3)):
            at = tuple(inside[each] for each in order)
            values[at], weight[at] = seen.transpose(order), precision
    return Cube(places, values.reshape(size * size, size), weight.reshape(size * size, size))


# Tables of features by features: 128 MB each.
MOST_FEATURES = 2**12

# Measurements of three columns or more with at least this many numbers are multiplied as matrices.
LARGE = 64
MOST_TURNS = 16

# A part of a column; None is the whole marginal.
MeasuredPart = tuple[str, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class Higher:
    """Numbers measured on equally many columns: the places of their features, a row for each column."""

    places: NDArray[np.int64]
    # For each row of `places`, the matrix that adds a value for each number to the feature at its place.
    scatter: tuple[Any, ...]
    values: Reals
    weight: Reals

    def single(self) -> "Higher":
        """The same in single precision."""
        scatter = tuple(each.astype(np.float32) for each in self.scatter)
        return Higher(self.places, scatter, self.values.astype(np.float32), self.weight.astype(np.float32))

    def add(self, means: Reals, weights: Reals, total: float, slopes: Reals, along: Reals) -> float:
        """Add the slopes along the means of the features (over w) and along the weights; the loss."""
        chosen = means[self.places]
        products = chosen.prod(axis=0)
        residual = total * (products @ weights) - self.values
        pull = self.weight * residual
        for place, scatter in enumerate(self.scatter):
            others = np.delete(chosen, place, axis=0).prod(axis=0)
            slopes += scatter @ (total * pull[:, None] * others)
        along += total * (pull @ products)
        return float(pull @ residual) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features that were measured, and the measured values for every pair of features.

    The means of the features are `matrix` times the tables of a product, cell by cell, plus `shift`; the first feature
    is the constant 1. `values` and `weight` have a row and a column for each feature and are symmetric; the weight is
    0 where nothing was measured. `numbers` is how many independent numbers were measured.
    """

    matrix: Any
    transposed: Any
    shift: Reals
    values: Reals
    weight: Reals
    higher: tuple[Higher, ...]
    cube: Cube | None
    blocks: tuple[FeatureBlock, ...]
    numbers: int

    def single(self) -> "Features":
        """The same in single precision: half the memory, twice the speed, and an error far below the noise."""
        return Features(
            self.matrix.astype(np.float32),
            self.transposed.astype(np.float32),
            self.shift.astype(np.float32),
            self.values.astype(np.float32),
            self.weight.astype(np.float32),
            tuple(each.single() for each in self.higher),
            None if self.cube is None else self.cube.single(),
            tuple(each.single() for each in self.blocks),
            self.numbers,
        )

    def missed_share(self, product: Reals, total: float, deviations: float) -> float:
        """The share of the numbers that a product of single columns misses by more than noise would.

        A number is missed if it is more than `deviations` away; the share that noise alone would put there is
        subtracted.
        """
        from math import erfc

        means = self.matrix @ product + self.shift[:, None]
        apart = [np.sqrt(self.weight) * (total * (means @ means.T) - self.values)]
        seen = [self.weight > 0]
        for each in self.higher:
            apart.append(np.sqrt(each.weight) * (total * means[each.places, 0].prod(axis=0) - each.values))
            seen.append(each.weight > 0)
        if self.cube is not None:
            apart.append(np.sqrt(self.cube.weight) * (total * self.cube.means(means, np.ones(1)) - self.cube.values))
            seen.append(self.cube.each_once & (self.cube.weight > 0))
        for block in self.blocks:
            apart.append(block.weight**0.5 * (total * block.means(means, np.ones(1)) - block.values))
            seen.append(np.ones_like(block.values, dtype=np.bool_))
        # Numbers on pairs are stored twice.
        apart[0], seen[0] = np.triu(apart[0]), np.triu(seen[0])
        number = sum(np.count_nonzero(each) for each in seen)
        many = sum(np.count_nonzero(np.abs(each[here]) > deviations) for each, here in zip(apart, seen, strict=True))
        by_noise = erfc(deviations / 2**0.5)
        return max(0.0, (many / max(number, 1) - by_noise) / (1 - by_noise))

    @property
    def turns(self) -> int:
        """The number of steps that visit all blocks: each step sees about as many of their numbers as of pairs."""
        return max(1, min(MOST_TURNS, sum(block.size for block in self.blocks) // self.weight.size))

    def loss(
        self, tables: Reals, weights: Reals, total: float, *, turn: int | None = None
    ) -> tuple[float, Reals, Reals]:
        """Σ weight/2 · (measured − value)² of a mixture, and its slopes along the tables and the weights.

        where `tables` has a row for each cell of each column and a column for each component. With the means F of
        the features, measured = total · F diag(weights) Fᵀ. With a `turn` the blocks of that turn represent all.
        """
        losses, slopes, along = self.losses(tables[:, None, :], weights[None, :], total, turn=turn)
        return float(losses[0]), slopes[:, 0], along[0]

    def losses(
        self, tables: Reals, weights: Reals, total: float, *, turn: int | None = None
    ) -> tuple[Reals, Reals, Reals]:
        """The losses of several mixtures at once, and their slopes: `tables` and `weights` have an axis for them.

        It is the last but one: a row for each cell, then the mixtures, then their components.
        """
        cells, *mixtures = tables.shape
        means = self.matrix @ tables.reshape(cells, -1)
        means += self.shift[:, None]
        # A view with the axis of the mixtures first, for matrix products.
        each = means.reshape(-1, *mixtures).swapaxes(0, 1)
        scaled = each * np.sqrt(weights)[:, None, :]
        residual = scaled @ scaled.swapaxes(1, 2)
        residual *= total
        residual -= self.values
        pull = self.weight * residual
        # Each number is stored twice, on either side of the diagonal.
        losses = np.einsum("mfg,mfg->m", pull, residual) / 4
        slopes = np.empty_like(means)
        steep = slopes.reshape(-1, *mixtures).swapaxes(0, 1)
        np.matmul(pull, each, out=steep)
        slopes *= total
        along = np.einsum("mfk,mfk->mk", each, steep) / 2
        turns = 1 if turn is None else self.turns
        blocks = self.blocks[(turn or 0) % turns :: turns]
        for place in range(len(weights) if self.higher or self.cube or blocks else 0):
            one = each[place], weights[place], total, steep[place], along[place]
            losses[place] += sum(group.add(*one) for group in self.higher)
            losses[place] += 0.0 if self.cube is None else self.cube.add(*one)
            losses[place] += turns * sum(block.add(*one, times=turns) for block in blocks)
        steep *= weights[:, None, :]
        return losses, (self.transposed @ slopes).reshape(tables.shape), along


def mixture_features(measurements: Iterable[NoisyMarginal], domain: Domain) -> Features:
    """The features of some measurements. Measurements of the same numbers are joined by inverse variance."""
    from scipy.sparse import csr_array

    joined = _joined(measurements, domain)
    places, matrix, shift = _stacked(joined, domain)
    size = len(shift)
    values, weight = np.zeros((size, size)), np.zeros((size, size))
    higher: dict[int, list[tuple[list[slice], Numbers, float]]] = {}
    blocks: list[FeatureBlock] = []
    cube = cube_of(
        [([places[each] for each in measured], *said) for measured, said in joined.items() if len(measured) == 3]
    )
    for measured, (seen, precision) in joined.items():
        here = [places[each] for each in measured]
        if len(here) == 3 and cube is not None:
            continue
        if len(here) > 2 and seen.size >= LARGE:
            blocks.append(block_of(here, seen, precision))
            continue
        if len(here) > 2:
            higher.setdefault(len(here), []).append((here, seen, precision))
            continue
        rows, columns = (*here, slice(0, 1))[:2]
        values[rows, columns], weight[rows, columns] = seen.reshape(len(seen), -1), precision
    numbers = sum(prod(_freedom(name, part, domain) for name, part in measured) for measured in joined)
    groups = tuple(_higher(higher[columns], size) for columns in sorted(higher))
    return Features(
        matrix, csr_array(matrix.T), shift, values + values.T, weight + weight.T, groups, cube, tuple(blocks), numbers
    )


def _joined(
    measurements: Iterable[NoisyMarginal], domain: Domain
) -> dict[tuple[MeasuredPart, ...], tuple[Numbers, float]]:
    """The estimate of each residual, and 1/variance of each of its numbers."""
    joined: dict[tuple[MeasuredPart, ...], tuple[Numbers, float]] = {}
    for measurement in measurements:
        values = _possible(measurement, domain)
        if not measurement.columns or not 0 < measurement.weight < np.inf or not np.isfinite(values).all():
            raise BadParameter(
                f"a measurement of {measurement.columns} has weight {measurement.weight}; it must have columns, a "
                "finite weight above 0 and finite values. Give the total as total=, and exact values a large weight."
            )
        parts = (None,) * len(measurement.columns) if measurement.parts is None else measurement.parts
        key = tuple(zip(measurement.columns, parts, strict=True))
        before, precision = joined.get(key, (values, 0.0))
        together = precision + measurement.weight
        joined[key] = before + (measurement.weight / together) * (values - before), together
    return joined


def _stacked(
    joined: Iterable[tuple[MeasuredPart, ...]], domain: Domain
) -> tuple[dict[MeasuredPart, slice], Any, Numbers]:
    """Where the features of each part lie, the matrix of all features, and what is added to it."""
    from scipy.sparse import coo_array, csr_array

    starts = dict(zip(domain, np.cumsum([0, *domain.shape]).tolist(), strict=False))
    places: dict[MeasuredPart, slice] = {}
    entries, shift, end = [(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))], [np.ones(1)], 1
    for name, part in dict.fromkeys(each for measured in joined for each in measured):
        rows, constant = _rows(name, part, domain)
        row, cell = np.nonzero(rows)
        entries.append((rows[row, cell], end + row, starts[name] + cell))
        shift.append(np.full(len(rows), constant))
        places[name, part] = slice(end, end + len(rows))
        end += len(rows)
        if end > MOST_FEATURES:
            raise TooLarge(
                f"the measurements have more than {MOST_FEATURES} features of single columns, the most that a mixture "
                "is fitted to. Leave out columns with many cells."
            )
    entry, row, cell = (np.concatenate(each) for each in zip(*entries, strict=True))
    matrix = csr_array(coo_array((entry, (row, cell)), shape=(end, sum(domain.shape))))
    return places, matrix, np.concatenate(shift)


def _higher(group: Sequence[tuple[list[slice], Numbers, float]], size: int) -> Higher:
    """The numbers of measurements on equally many columns."""
    from scipy.sparse import csr_array

    grids = [np.meshgrid(*(np.arange(each.start, each.stop) for each in here), indexing="ij") for here, _, _ in group]
    places = np.concatenate([np.reshape(grid, (len(grid), -1)) for grid in grids], axis=1)
    count = np.arange(places.shape[1])
    scatter = tuple(csr_array((np.ones(len(count)), (row, count)), shape=(size, len(count))) for row in places)
    values = np.concatenate([seen.ravel() for _, seen, _ in group])
    return Higher(places, scatter, values, np.repeat([p for _, _, p in group], [seen.size for _, seen, _ in group]))


def _rows(name: str, part: int | None, domain: Domain) -> tuple[Numbers, float]:
    """The features of a part: a row for each, and what is added to its mean."""
    axis = axis_of(domain[name])
    if part is None:
        return np.eye(axis.cells), 0.0
    if not axis.levels:
        # The contrasts n·I − J of a distribution: its cells add up to 1, so J takes 1 from each.
        return axis.cells * np.eye(axis.cells), -1.0
    matrix = axis.measure(part).astype(np.float64)
    return matrix[np.any(matrix != 0, axis=1)], 0.0


def _freedom(name: str, part: int | None, domain: Domain) -> int:
    """The degrees of freedom of a part: contrasts sum to zero, and rows that measure only padding have none."""
    rows, constant = _rows(name, part, domain)
    return len(rows) - (constant != 0)


def _possible(measurement: NoisyMarginal, domain: Domain) -> Numbers:
    """The values of a measurement, projected to those that some table could have: the rest is noise."""
    parts = (None,) * len(measurement.columns) if measurement.parts is None else measurement.parts
    axes = [axis_of(domain[name]) for name in measurement.columns]
    if len(parts) != len(axes) or not all(
        part is None or 0 < part < axis.parts for part, axis in zip(parts, axes, strict=True)
    ):
        raise BadQuery(
            f"a measurement of {measurement.columns} has parts {measurement.parts}; there must be one for each column, "
            f"from 1 to {[axis.parts - 1 for axis in axes]}."
        )
    shape = tuple(axis.cells if part is None else axis.rows(part) for axis, part in zip(axes, parts, strict=True))
    values = np.asarray(measurement.values, dtype=np.float64)
    if values.size != prod(shape):
        raise BadQuery(
            f"a measurement of {measurement.columns}, parts {parts}, has {values.size} numbers; it must have "
            f"{prod(shape)}."
        )
    values = values.reshape(shape)
    for place, (axis, part) in enumerate(zip(axes, parts, strict=True)):
        if part is not None and axis.levels:
            values = np.compress(np.any(axis.measure(part) != 0, axis=1), values, axis=place)
        elif part is not None:
            values = values - values.mean(axis=place, keepdims=True)
    return values
