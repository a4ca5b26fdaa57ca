"""What the pieces of the lattice cost and give: their prices, one by one and together, and how well they are known.

Proofs: allocate.md §2 and §4
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from discreet.cache import memoize
from discreet.known.family import axes_of
from discreet.known.known import Known
from discreet.privacy.sensitivity import residual_sensitivity
from discreet.query.axis import Axis
from discreet.release.goal import Asked
from discreet.schema.unit import Unit
from discreet.types import Columns, Ints, Numbers

# For each exchange, a share for each kind (columns) in each of its blocks (rows); in a block they add up to 1.
Shares = tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Blocks alike whose pieces, where people are exchanged, cost less together than one by one.

    An exchange of two rows is of a kind: on each axis the cells are the same, or two of a category, or part at one of
    the levels (source/contribution.md, Lemma 6). `places` has a row for each block; `lengths` is what a unit of weight
    of a piece adds to the squared length of a person's effect; `cosines` has a matrix (kinds by parts) for each axis.
    """

    places: Ints
    lengths: Numbers
    cosines: tuple[Numbers, ...]

    def any_shares(self) -> Numbers:
        """Shares of the kinds of exchange to begin with."""
        kinds = prod(len(matrix) for matrix in self.cosines)
        return np.full((len(self.places), kinds), 1 / kinds)

    def moves(self, weight: Numbers) -> Numbers:
        """What each kind of exchange makes of these weights in each block; the largest is what the block costs."""
        lengths = self.lengths * weight[self.places]
        moves: Numbers = 2 * (lengths.sum(axis=1, keepdims=True) - _along(self.cosines, lengths))
        return moves

    def prices(self, shares: Numbers) -> Numbers:
        """The price of a unit of weight of each piece, as a mean over the kinds of exchange with these shares."""
        turned = tuple(matrix.T for matrix in self.cosines)
        prices: Numbers = 2 * self.lengths * (shares.sum(axis=1, keepdims=True) - _along(turned, shares))
        return prices


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """What every piece of a table of energies costs and gives, and how well it is known.

    A weight w buys noise of variance gain/w, rounded: precision 1/(1/w + 1/(12 gain)), for price · w. `most` is the
    weight at which the noise is 1, below which the lattice does not go. `exchanges` are the blocks with a joint price;
    for them `price` is a mean over the kinds of exchange.
    """

    price: Numbers
    most: Numbers
    rounding: Numbers
    known: Numbers
    exchanges: tuple[Exchange, ...] = ()

    def reached(self, weight: Numbers) -> Numbers:
        """The precision of every piece after so much is bought."""
        return self.known + weight / (1 + weight * self.rounding)

    def bought(self, reached: Numbers) -> Numbers:
        """What was bought if these precisions are reached; nothing of what costs nothing."""
        missing = np.zeros(reached.shape)
        np.subtract(reached, self.known, out=missing, where=(self.known < np.inf) & (self.price > 0))
        missing = np.clip(missing, 0.0, self.most / (1 + self.most * self.rounding))
        return np.minimum(missing / (1 - missing * self.rounding), self.most)

    def mended(self, weight: Numbers, shares: Shares) -> "tuple[Market, Shares]":
        """With prices nearer to those of the kinds of exchange that move these weights most: their shares grow."""
        price, grown = self.price.copy(), []
        for each, share in zip(self.exchanges, shares, strict=True):
            # The square of the textbook's factor takes about half as many rounds.
            more = share * each.moves(weight) ** 2
            most = more.sum(axis=1, keepdims=True)
            more = np.divide(more, most, out=share.copy(), where=most > 0)
            price[each.places] = each.prices(more)
            grown.append(more)
        return (replace(self, price=price) if grown else self), tuple(grown)

    def cost(self, weight: Numbers) -> float:
        """What these weights cost, block by block."""
        together = sum(float(each.moves(weight).max(axis=1).sum()) for each in self.exchanges)
        alone = self.price.copy()
        for each in self.exchanges:
            alone[each.places] = 0.0
        return together + float(alone @ weight)


def market_of(asked: Asked, known: Known) -> Market:
    """What the pieces of a table of energies cost and give, and how well they are known."""
    unit, droppable = known.lattice.unit, known.domain.drops
    price, gain, before = np.zeros(asked.size), np.zeros(asked.size), np.zeros(asked.size)
    alike: dict[tuple[Axis, ...], list[int]] = {}
    for columns, start in asked.starts.items():
        axes = axes_of(asked.domain, columns)
        prices, gains = terms(axes, unit, droppable=droppable)
        end = start + prices.size
        price[start:end], gain[start:end] = prices.ravel(), gains.ravel()
        block = known.lattice.blocks.get(columns)
        if block is not None:
            before[start:end] = block.precision.ravel()
        if unit.neighbors == "replace_one" and prices.size > 1:
            alike.setdefault(axes, []).append(start)
    # What no person can move costs nothing, and is known once it is told.
    before[price == 0] = np.inf
    exchanges = tuple(_exchange(axes, starts, unit) for axes, starts in alike.items())
    for each in exchanges:
        price[each.places] = each.prices(each.any_shares())
    return Market(price, gain, 1 / (12 * gain), before, exchanges)


def market_of_block(columns: Columns, known: Known) -> Market:
    """The same for the pieces of one block, as tensors, one by one."""
    axes = axes_of(known.domain, columns)
    price, gain = terms(axes, known.lattice.unit, droppable=known.domain.drops)
    block = known.lattice.blocks.get(columns)
    return Market(price, gain, 1 / (12 * gain), np.zeros(gain.shape) if block is None else block.precision)


@memoize(4096)
def terms(axes: tuple[Axis, ...], unit: Unit, *, droppable: bool) -> tuple[Numbers, Numbers]:
    """The price of a unit of precision, and the gain, of every piece of a block by itself.

    The price is sensitivity² over gain, as `residual_sensitivity` has it: the squared lengths of the columns of the
    measuring matrices times m², and times 2 (1 + c) where people are exchanged.

    where m is the number of rows of a person, and −c the smallest cosine between two columns of one of the axes.
    """
    if not axes:
        return np.array(float(residual_sensitivity((), unit, droppable=droppable).l2_squared)), np.array(1.0)
    gain, opposite = np.ones(()), np.zeros(())
    for axis in axes:
        parts = range(1, axis.parts)
        gain = np.multiply.outer(gain, np.array([float(axis.gain(part)) for part in parts]))
        cosines = np.array([float(Fraction(*axis.opposite(part))) for part in parts])
        opposite = np.maximum.outer(opposite, cosines)
    stretch = 2 * (1 + opposite) if unit.neighbors == "replace_one" else 1.0
    return _lengths(axes, unit) * stretch, gain


def _lengths(axes: tuple[Axis, ...], unit: Unit) -> Numbers:
    """What a unit of weight of each piece of a block adds to the squared length of a person's effect."""
    found = np.full((), float(unit.contributions) ** 2)
    for axis in axes:
        each = [axis.squared_norm(part) / axis.gain(part) for part in range(1, axis.parts)]
        found = np.multiply.outer(found, np.array(each))
    return found


def _exchange(axes: tuple[Axis, ...], starts: list[int], unit: Unit) -> Exchange:
    lengths = _lengths(axes, unit)
    places = np.array(starts)[:, None] + np.arange(lengths.size)
    return Exchange(places, lengths.ravel(), tuple(_cosines(axis) for axis in axes))


def _cosines(axis: Axis) -> Numbers:
    """The cosine of every part but the constants (columns) for each kind of exchange (rows, the first being none)."""
    if not axis.levels:
        return np.array([[1.0], [-1 / (axis.cells - 1)]])
    kinds, parts = np.arange(axis.parts)[:, None], np.arange(1, axis.parts)[None, :]
    found = np.where(parts < kinds, 1.0, np.where(parts == kinds, -1.0, 0.0))
    found[0] = 1.0
    return found


def _along(matrices: tuple[Numbers, ...], rows: Numbers) -> Numbers:
    """A matrix for each axis times the tensors that the rows are."""
    tensor: Any = rows.reshape(len(rows), *(matrix.shape[1] for matrix in matrices))
    for place, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, place + 1)), 0, place + 1)
    flat: Numbers = tensor.reshape(len(rows), prod(len(matrix) for matrix in matrices))
    return flat
