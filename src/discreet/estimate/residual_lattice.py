"""The lattice of residuals: for every set of columns that was measured, an estimate and a precision of each.

A function on the cells of some columns S is a sum of orthogonal residuals, one for each choice of a part in each column
(lattice.md). Precisions of measurements of one residual add up; a query is the sum of its residuals, and its variance
the sum of theirs. All residuals that belong to one set of columns lie together in a `ResidualBlock`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.cache import LruCache, memoize
from discreet.estimate.separable import Family, energies_of
from discreet.query.residual import Axis, Residual, axes_of
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.types import Columns, Numbers

# Cached for later questions: numbers of eight bytes, so 32 MB.
MOST_LATTICE_NUMBERS = 2**22
# Views of more residuals or numbers than this are not made: such questions are measured directly.
MOST_RESIDUALS, MOST_LATTICE_CELLS = 2**13, 2**20
# The subsets of up to this number of columns are cached: there are at most 64.
FEW_COLUMNS = 6


@dataclass(slots=True, eq=False)
class ResidualBlock:
    """What is known of the residuals that vary in every one of some columns.

    `precision` has an axis for each column with an entry for each of its parts: 1/variance. `price` is what a unit of
    precision costs (in squared mu). `values` estimates the measuring matrices times the true marginal, all parts of a
    column one after the other.
    """

    columns: Columns
    axes: tuple[Axis, ...]
    price: Numbers
    precision: Numbers
    values: Numbers | None = None
    version: int = 0


@dataclass(slots=True, eq=False)
class View:
    """All residuals of some columns and of their subsets, as tensors: an axis for a column, an entry for a part."""

    columns: Columns
    stamp: int
    checked: int
    price: Numbers
    precision: Numbers
    inverse: Numbers
    unknown: Numbers
    partial: bool
    values: Numbers | None = None


@dataclass(eq=False)
class Lattice:
    """The residuals that were measured. `domain` and `unit` decide what a residual costs.

    Only what was measured has a block: an estimate leaves nothing behind. `used` counts the questions on some columns
    that were paid for.
    """

    domain: Domain
    unit: Unit
    blocks: dict[Columns, ResidualBlock] = field(default_factory=dict)
    used: Counter[Columns] = field(default_factory=Counter)
    views: LruCache[Columns, View] = field(default_factory=lambda: LruCache(MOST_LATTICE_NUMBERS))
    version: int = 0

    def block(self, columns: Columns) -> ResidualBlock:
        """The block of some columns; an empty one, which is not kept, if nothing was measured."""
        found = self.blocks.get(columns)
        if found is None:
            axes = axes_of(self.domain, columns)
            every = precision_prices(axes, self.unit, droppable=self.domain.drops)
            price = np.asarray(every[(slice(1, None),) * len(axes)])
            # A residual that no person can move costs nothing; it is known once it is public.
            found = ResidualBlock(columns, axes, price, np.zeros(price.shape))
        return found

    def size(self, residual: Residual) -> int:
        """How many numbers a residual has."""
        axes = axes_of(self.domain, residual.columns)
        return prod(axis.rows(part) for axis, (_, part) in zip(axes, residual.parts, strict=True))

    def add(self, residual: Residual, *, variance: float, values: NDArray[np.int64] | None) -> None:
        """Learn a measurement whose numbers have noise of this variance; without values only how well it is known."""
        block = self.blocks.setdefault(residual.columns, self.block(residual.columns))
        parts = tuple(part - 1 for _, part in residual.parts)
        gain = prod(axis.gain(part + 1) for axis, part in zip(block.axes, parts, strict=True))
        precision = gain / variance if variance else np.inf
        before = float(block.precision[parts])
        block.precision[parts] = before + precision
        if values is not None and before < np.inf:
            self._learn(block, parts, values, 1.0 if precision == np.inf else precision / (before + precision))
        block.version += 1
        self.version += 1

    def _learn(self, block: ResidualBlock, parts: tuple[int, ...], values: NDArray[np.int64], weight: float) -> None:
        """Move the estimate of one residual towards new values, by this weight."""
        if block.values is None:
            block.values = np.zeros(tuple(axis.starts[-1] for axis in block.axes))
        places = tuple(slice(*axis.starts[part : part + 2]) for axis, part in zip(block.axes, parts, strict=True))
        new = values.astype(np.float64).reshape(block.values[places].shape)
        for place, axis in enumerate(block.axes):
            if not axis.levels:
                # Contrasts add up to zero, so the mean of the noisy values carries no information.
                new = new - new.mean(axis=place, keepdims=True)
        block.values[places] += weight * (new - block.values[places])

    def use(self, columns: Columns) -> None:
        """Count a question on these columns that was paid for: it has used all their residuals, measured or not."""
        self.used[columns] += 1

    def view(self, columns: Columns) -> View | None:
        """All residuals of some columns, or None if there are too many."""
        axes = axes_of(self.domain, columns)
        # First of all, because the rest takes time in proportion to the residuals.
        if not is_viewed(axes):
            return None
        found = self.views.get(columns)
        if found is not None and found.checked == self.version:
            return found
        measured = self._measured(columns)
        stamp = sum(block.version for block, _ in measured)
        if found is not None and found.stamp == stamp:
            found.checked = self.version
            return found
        price = precision_prices(axes, self.unit, droppable=self.domain.drops)
        precision = np.zeros(price.shape)
        for block, places in measured:
            precision[places] = block.precision
        known = precision > 0
        inverse = np.divide(1.0, precision, out=np.zeros(price.shape), where=known)
        view = View(
            columns, stamp, self.version, price, precision, inverse, (~known).astype(np.float64), not known.all()
        )
        # Four tensors, and the values once they are needed.
        room = 4 * price.size + numbers_in(axes) + 64
        self.views.put(columns, view, size=room)
        return view

    def viewed(self, columns: Columns) -> View:
        """The view of columns that have one: those of a family."""
        view = self.view(columns)
        assert view is not None, "a family has a view"
        return view

    def uses_of(self, columns: Columns) -> Numbers:
        """How often each residual of a view was paid for: by questions on all columns in which it varies."""
        axes = axes_of(self.domain, columns)
        uses = np.zeros((2,) * len(axes))
        for scope, times in self.used.items():
            uses[tuple(int(name in scope) for name in columns)] += times
        for place in range(len(axes)):
            # A question on a column and others has paid for the others too.
            constant, varying = np.take(uses, 0, axis=place), np.take(uses, 1, axis=place)
            uses = np.stack([constant + varying, varying], axis=place)
        for place, axis in enumerate(axes):
            uses = np.repeat(uses, [1, axis.parts - 1], axis=place)
        return uses

    def gathered(self, view: View) -> Numbers:
        """The estimates of all residuals of a view: an axis for each column, its total first, then its measurements."""
        if view.values is None:
            axes = axes_of(self.domain, view.columns)
            values = np.zeros(tuple(1 + axis.starts[-1] for axis in axes))
            for block, places in self._measured(view.columns):
                if block.values is not None:
                    values[places] = block.values
            view.values = values
        return view.values

    def values(self, family: Family, view: View) -> Numbers:
        """The estimate of each question of a family."""
        values = self.gathered(view)
        if not family.columns:
            return np.asarray(family.coefficients.sum() * values)
        if family.products == 1:
            for reading in family.readings:
                values = reading.values(values, 0, 1)
            return np.asarray(family.coefficients[0] * values.reshape(family.cells))
        total = np.zeros(family.cells)
        for place, coefficient in enumerate(family.coefficients):
            part = values
            for reading in family.readings:
                part = reading.values(part, place, family.products)
            total += coefficient * part.reshape(family.cells)
        return total

    def estimate_one(self, family: Family, view: View) -> tuple[Numbers, Numbers]:
        """The value and the variance of one question with one product: the usual case, quickly."""
        energies = np.ones(1)
        value = self.gathered(view)
        for place in range(len(family.columns)):
            reading = family.listed(place)
            energies = np.multiply.outer(energies, reading.energies[0]).ravel()
            value = np.tensordot(reading.vectors[0], value, 1)
        coefficient = float(family.coefficients[0])
        variance = float(energies @ view.inverse.ravel()) * coefficient**2
        if view.partial and float(energies @ view.unknown.ravel()) > 0:
            variance = inf
        return np.array(coefficient * float(value)), np.array(variance)

    def _measured(self, columns: Columns) -> list[tuple[ResidualBlock, tuple[Any, ...]]]:
        """The measured blocks inside some columns, and where each lies in a view."""
        return [(self.blocks[chosen], inside(columns, chosen)) for chosen in among(self.blocks, columns)]


def variances_of(family: Family, view: View) -> Numbers:
    """The variance of each question of a family; infinite where one of its residuals was never measured."""
    variances = weighed_energies(family, view.inverse)
    if not view.partial:
        return variances
    return np.where(weighed_energies(family, view.unknown) > 0, inf, variances)


def largest_variance(family: Family, view: View) -> float:
    """The largest of these. For one product there is one number for each kind of cell; mostly there is one kind."""
    if family.products > 1:
        return float(variances_of(family, view).max())
    known, unknown = (_largest(family, weights) for weights in (view.inverse, view.unknown))
    return inf if unknown > 0 else known


def _largest(family: Family, weights: Numbers) -> float:
    for reading in family.readings:
        weights = np.tensordot(weights, reading.kinds, axes=(0, 1))
    return float(family.coefficients[0] ** 2 * weights.max())


def weighed_energies(family: Family, weights: Numbers) -> Numbers:
    """The energies of each question, added up with a weight for each residual."""
    if family.products > 1:
        energies, depth = energies_of(family), len(family.columns)
        return np.asarray(np.tensordot(energies, weights, depth) if depth else energies * weights)
    for reading in family.readings:
        # One column after the other: no table of all residuals of all cells is made.
        weights = reading.weighed(weights)
    return np.asarray(family.coefficients[0] ** 2 * weights.reshape(family.cells))


def among(known: Mapping[Columns, object], columns: Columns) -> list[Columns]:
    """Those of some sets of columns that lie inside others, smaller ones first.

    All subsets are looked up, or all sets are gone through, whichever are fewer: a question on forty columns has 2^40
    subsets, and almost none of them was measured.

    >>> among({("a", "b"): 1, ("b", "c"): 2, ("b",): 3}, ("a", "b", "d"))
    [('b',), ('a', 'b')]
    """
    if 2 ** len(columns) <= len(known):
        return [chosen for chosen in subsets(columns) if chosen in known]
    names = frozenset(columns)
    found = [chosen for chosen in known if names.issuperset(chosen)]
    order = {name: place for place, name in enumerate(columns)}
    return sorted(found, key=lambda chosen: (len(chosen), [order[name] for name in chosen]))


def is_viewed(axes: Sequence[Axis]) -> bool:
    """Whether a view of some columns is made: it has few enough residuals, cells and numbers."""
    pieces, cells = prod(axis.parts for axis in axes), prod(axis.cells for axis in axes)
    return pieces <= MOST_RESIDUALS and cells <= MOST_LATTICE_CELLS and numbers_in(axes) <= 2 * MOST_LATTICE_CELLS


def numbers_in(axes: Sequence[Axis]) -> int:
    """How many numbers measure all residuals of some columns together."""
    return prod(1 + axis.starts[-1] for axis in axes)


def variance_of(sigma: float) -> float:
    """The variance of rounded Gaussian noise: rounding adds that of a uniform number.

    The planner uses sigma ≥ 1 only, for which this is right to eight digits.
    """
    return sigma * sigma + 1 / 12


def subsets(columns: Columns) -> tuple[Columns, ...]:
    """All subsets of some columns, in their order, the empty one first."""
    return _few_subsets(columns) if len(columns) <= FEW_COLUMNS else _subsets(columns)


def _subsets(columns: Columns) -> tuple[Columns, ...]:
    return tuple(chain.from_iterable(combinations(columns, size) for size in range(len(columns) + 1)))


_few_subsets = memoize(1 << 12)(_subsets)


def inside(columns: Columns, chosen: Columns) -> tuple[Any, ...]:
    """Where a block lies in a view: all parts but the constants of the chosen columns, the constants of the others."""
    return tuple(slice(1, None) if name in chosen else 0 for name in columns)


@memoize(512)
def precision_prices(axes: tuple[Axis, ...], unit: Unit, *, droppable: bool) -> Numbers:
    """What a unit of precision of each residual costs, in squared mu: sensitivity² over gain (`residual_sensitivity`).

    An axis for each column, with an entry for each part, the constants first, which add neither norm
    nor gain. All factors are whole numbers, so that the price is rounded once.
    """
    sizes = [range(1, axis.parts) for axis in axes]
    norms = _outer(np.multiply, [[1, *map(axis.squared_norm, parts)] for axis, parts in zip(axes, sizes, strict=True)])
    gains = _outer(np.multiply, [[1, *map(axis.gain, parts)] for axis, parts in zip(axes, sizes, strict=True)])
    if unit.neighbors == "replace_one":
        # Two cells of a category of n, or the halves of a block, where n is 2, are 1 + 1/(n − 1) apart.
        alike = [2.0 if axis.levels else float(axis.cells) for axis in axes]
        least = _outer(np.minimum, [[np.inf, *([n] * len(parts))] for n, parts in zip(alike, sizes, strict=True)])
        with np.errstate(invalid="ignore"):
            norms = np.where(np.isinf(least), norms, norms * 2 * least / (least - 1))
    price = np.array(unit.contributions**2 * norms / gains)
    price[(0,) * len(axes)] = float(scalar_sensitivity(1, 1, unit, droppable=droppable).l2_squared)
    price.setflags(write=False)
    return price


def _outer(join: np.ufunc, rows: Sequence[Sequence[float]]) -> Numbers:
    """All combinations of one number of each row."""
    found = np.full((), np.inf if join is np.minimum else 1.0)
    for row in rows:
        found = join.outer(found, np.array(row, dtype=np.float64))
    return np.array(found)
