"""The interface of models, and the noisy marginals that they are fitted to.

A model answers every query as a table would, in expected numbers of rows. A lattice of residuals lists its
measurements as noisy marginals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.estimate.residual_lattice import Lattice, ResidualBlock, subsets
from discreet.query.linear import MOST_DENSE_CELLS, Linear
from discreet.query.residual import axis_of
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# Rows as codes: for each column, the cell of each row.
Coded = dict[str, NDArray[np.int64]]


class Model(Protocol):
    """A distribution over the cells of a domain, times a number of rows. Data and synthetic rows meet it too."""

    @property
    def domain(self) -> Domain:
        """What a row may be."""

    @property
    def total(self) -> float:
        """How many rows there are, or are thought to be."""

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns, with an axis for each in the order given."""

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""

    def rows(self, number: int) -> Coded:
        """Draw `number` rows from the distribution."""


def shape_of(domain: Domain, columns: Sequence[str]) -> tuple[int, ...]:
    """How many cells each of some columns has; refuses a marginal that would be too large, before it is made."""
    if isinstance(columns, str) or len(set(columns)) < len(columns):
        raise BadQuery(f'columns is {columns!r}; it must be a list, each named once. Write ["age", "sex"].')
    shape = tuple(domain[name].size for name in columns)
    if prod(shape) > MOST_DENSE_CELLS:
        raise TooLarge(
            f"the marginal of {', '.join(columns)} has {prod(shape)} cells; the limit is {MOST_DENSE_CELLS}."
        )
    return shape


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """A noisy measurement of a marginal: M m + noise, where m is the marginal of some sorted columns.

    `parts` has a part for each column, none of them 0, and M is the product of their measuring matrices
    (`query.axis`); without parts M is the identity: the whole marginal. `weight` is 1/variance of the noise of each
    number, so the loss of a model is weight/2 · ‖M m − values‖².
    """

    columns: Columns
    parts: tuple[int, ...] | None
    values: Numbers
    weight: float

    def residual(self, marginal: Numbers, domain: Domain) -> Numbers:
        """M m − values, for a marginal with an axis for each column."""
        return self._measured(marginal, domain) - self.values

    def _measured(self, marginal: Numbers, domain: Domain) -> Numbers:
        if self.parts is None:
            return marginal
        for place, (name, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            marginal = axis_of(domain[name]).apply(part, marginal, axis=place)
        return marginal

    def gradient(self, residual: Numbers, domain: Domain) -> Numbers:
        """weight · Mᵀ residual: how the loss moves with each cell of the marginal."""
        back = residual
        if self.parts is not None:
            for place, (name, part) in enumerate(zip(self.columns, self.parts, strict=True)):
                matrix = axis_of(domain[name]).measure(part).astype(np.float64)
                back = np.moveaxis(np.tensordot(matrix, back, axes=(0, place)), 0, place)
        return self.weight * back


# A weight must be finite: an exact value counts as one rounded to an integer, with variance 1/12.
LARGEST_WEIGHT = 12.0


def noisy_marginals(lattice: Lattice, scopes: Iterable[Sequence[str]]) -> list[NoisyMarginal]:
    """The estimates of a lattice for some scopes: one for each residual of them and of their subsets.

    Residuals that were never measured are left out, and the total too: see `total_of`. The results are in the order of
    their columns and parts, whatever the order of the scopes.
    """
    wanted = {chosen for scope in scopes for chosen in subsets(tuple(sorted(scope))) if chosen}
    known = [lattice.blocks[columns] for columns in sorted(wanted) if columns in lattice.blocks]
    return [measurement for block in known for measurement in _block_marginals(block)]


def total_of(lattice: Lattice) -> tuple[float, float]:
    """The estimated number of rows, and the variance of the estimate: infinite if it was never measured."""
    block = lattice.blocks.get(())
    if block is None or block.values is None or not block.precision[()]:
        return 0.0, float("inf")
    return float(block.values[()]), 1.0 / float(block.precision[()])


def _block_marginals(block: ResidualBlock) -> Iterable[NoisyMarginal]:
    if block.values is None:
        return
    for parts in product(*(range(1, axis.parts) for axis in block.axes)):
        precision = float(block.precision[tuple(part - 1 for part in parts)])
        if not precision:
            continue
        places = tuple(slice(*axis.starts[part - 1 : part + 1]) for axis, part in zip(block.axes, parts, strict=True))
        gain = prod(axis.gain(part) for axis, part in zip(block.axes, parts, strict=True))
        values = np.array(block.values[places])
        yield NoisyMarginal(block.columns, parts, values, min(precision / gain, LARGEST_WEIGHT))
