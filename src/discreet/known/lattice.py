"""The lattice of residuals: for every few columns, how well each of their parts is known, and what is known of it.

Functions on the cells of some columns S fall apart into orthogonal pieces, one for each choice of a part in each column
(lattice.md). Measurements of one piece add up their precisions; a query is the sum of its pieces; its variance is the
sum of theirs. The pieces of one set of columns, all of them not constant, lie together in a `Block`.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, combinations, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.known.family import axes_of
from discreet.known.reading import Numbers
from discreet.known.shelf import Shelf
from discreet.query.axis import Axis
from discreet.query.residual import Residual
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.effect import sensitivity_of

Columns = tuple[str, ...]

# What is gathered for questions to come: numbers of eight bytes, so 128 MB.
MOST_NUMBERS = 2**24
# Views of more pieces or cells than this are not made: such questions are measured directly.
MOST_PIECES, MOST_CELLS = 2**13, 2**20


@dataclass(slots=True, eq=False)
class Block:
    """What is known of the pieces of some columns in which none of them is constant.

    `precision` and `uses` have an axis for each column with an entry for each of its parts: 1/variance, and how many
    questions have paid for the piece. `price` is what a unit of precision costs (in squared mu). `values` estimates the
    measuring matrices times the true marginal, all parts of a column one after the other.
    """

    columns: Columns
    axes: tuple[Axis, ...]
    price: Numbers
    precision: Numbers
    uses: Numbers
    values: Numbers | None = None
    version: int = 0


@dataclass(slots=True, eq=False)
class View:
    """All pieces of some columns, constants included, as tensors with an axis for each column and an entry a part."""

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
    """Everything that was measured piece by piece. `domain` and `unit` say what a piece costs."""

    domain: Domain
    unit: Unit
    blocks: dict[Columns, Block] = field(default_factory=dict)
    views: Shelf[Columns, View] = field(default_factory=lambda: Shelf(MOST_NUMBERS))
    version: int = 0

    def block(self, columns: Columns) -> Block:
        """The block of some columns, as yet unknown if nothing was measured."""
        found = self.blocks.get(columns)
        if found is None:
            axes = axes_of(self.domain, columns)
            shape = tuple(axis.parts - 1 for axis in axes)
            price = price_of(columns, self.domain, self.unit)
            # What no person can move costs nothing; it is known once it is told.
            found = Block(columns, axes, price, np.zeros(shape), np.zeros(shape))
            self.blocks[columns] = found
        return found

    def size(self, residual: Residual) -> int:
        """How many numbers a residual has."""
        axes = self.block(residual.columns).axes
        return prod(axis.rows(part) for axis, (_, part) in zip(axes, residual.parts, strict=True))

    def add(self, residual: Residual, *, variance: float, values: NDArray[np.int64] | None) -> None:
        """Learn a measurement whose numbers have noise of this variance; without values only how well it is known."""
        block = self.block(residual.columns)
        parts = tuple(part - 1 for _, part in residual.parts)
        gain = prod(axis.gain(part + 1) for axis, part in zip(block.axes, parts, strict=True))
        precision = gain / variance if variance else np.inf
        before = float(block.precision[parts])
        block.precision[parts] = before + precision
        if values is not None and before < np.inf:
            self._learn(block, parts, values, 1.0 if precision == np.inf else precision / (before + precision))
        block.version += 1
        self.version += 1

    def _learn(self, block: Block, parts: tuple[int, ...], values: NDArray[np.int64], weight: float) -> None:
        """Move the estimate of one piece towards new values, by this weight."""
        if block.values is None:
            block.values = np.zeros(tuple(axis.starts[-1] for axis in block.axes))
        places = tuple(slice(*axis.starts[part : part + 2]) for axis, part in zip(block.axes, parts, strict=True))
        new = values.astype(np.float64).reshape(block.values[places].shape)
        for place, axis in enumerate(block.axes):
            if not axis.levels:
                # Contrasts add up to zero: what the noise says beyond that is about nothing.
                new = new - new.mean(axis=place, keepdims=True)
        block.values[places] += weight * (new - block.values[places])

    def use(self, columns: Columns) -> None:
        """Count a question on these columns that was paid for: it has used all their pieces, raised or not."""
        for chosen in subsets(columns):
            self.block(chosen).uses += 1

    def view(self, columns: Columns) -> View | None:
        """All pieces of some columns, or None if there are too many."""
        found = self.views.get(columns)
        if found is not None and found.checked == self.version:
            return found
        stamp = self._stamp(columns)
        if found is not None and found.stamp == stamp:
            found.checked = self.version
            return found
        axes = axes_of(self.domain, columns)
        shape = tuple(axis.parts for axis in axes)
        if prod(shape) > MOST_PIECES or prod(axis.cells for axis in axes) > MOST_CELLS:
            return None
        price, precision = np.empty(shape), np.empty(shape)
        for chosen in subsets(columns):
            block, places = self.block(chosen), inside(columns, chosen)
            price[places], precision[places] = block.price, block.precision
        known = precision > 0
        inverse = np.divide(1.0, precision, out=np.zeros(shape), where=known)
        view = View(
            columns, stamp, self.version, price, precision, inverse, (~known).astype(np.float64), not known.all()
        )
        # Four tensors, and the values when somebody asks for them.
        room = 4 * price.size + prod(1 + axis.starts[-1] for axis in axes) + 64
        self.views.put(columns, view, room=room)
        return view

    def uses_of(self, columns: Columns) -> Numbers:
        """How many questions have paid for each piece of a view, now."""
        uses = np.empty(tuple(axis.parts for axis in axes_of(self.domain, columns)))
        for chosen in subsets(columns):
            uses[inside(columns, chosen)] = self.block(chosen).uses
        return uses

    def gathered(self, view: View) -> Numbers:
        """The estimates of all pieces of a view: an axis for each column, its total first, then its measurements."""
        axes = axes_of(self.domain, view.columns)
        values = np.zeros(tuple(1 + axis.starts[-1] for axis in axes))
        for chosen in subsets(view.columns):
            block = self.blocks.get(chosen)
            places = inside(view.columns, chosen)
            if block is not None and block.values is not None:
                values[places] = block.values
        return values

    def _stamp(self, columns: Columns) -> int:
        blocks = self.blocks
        return sum(blocks[chosen].version for chosen in subsets(columns) if chosen in blocks)


def variance_of(sigma: float) -> float:
    """The variance of rounded Gaussian noise: rounding adds that of a uniform number.

    For sigma ≥ 1, to which the planner keeps, this is right to eight digits.
    """
    return sigma * sigma + 1 / 12


@lru_cache(maxsize=1 << 16)
def subsets(columns: Columns) -> tuple[Columns, ...]:
    """All subsets of some columns, in their order, the empty one first."""
    return tuple(chain.from_iterable(combinations(columns, size) for size in range(len(columns) + 1)))


@lru_cache(maxsize=1 << 18)
def inside(columns: Columns, chosen: Columns) -> tuple[Any, ...]:
    """Where a block lies in a view: all parts but the constants of the chosen columns, the constants of the others."""
    return tuple(slice(1, None) if name in chosen else 0 for name in columns)


def price_of(columns: Columns, domain: Domain, unit: Unit) -> Numbers:
    """What a unit of precision of each piece of a block costs, in squared mu: sensitivity² over gain."""
    axes = axes_of(domain, columns)
    price = np.empty(tuple(axis.parts - 1 for axis in axes))
    for place in product(*(range(1, axis.parts) for axis in axes)):
        moves = sensitivity_of(Residual(tuple(zip(columns, place, strict=True))), domain, unit)
        gain = prod(axis.gain(part) for axis, part in zip(axes, place, strict=True))
        price[tuple(part - 1 for part in place)] = float(moves.l2_squared) / gain
    return price
