"""The dense model: a weight for every cell of a small domain, with exact answers and multiplicative updates."""

from collections.abc import Sequence
from math import exp, prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.model.dense.ranges import SLIP, range_kernels, runs_of
from discreet.model.interface import Coded
from discreet.model.quasi_random import uniform
from discreet.numeric import whole
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.schema.domain import Domain
from discreet.types import Bools, Columns, Numbers

# More cells than this are refused before anything is allocated: 8 bytes each.
MOST_MODEL_CELLS = 2**24
# Below this many cells numpy is done before a compiler would be loaded.
FEW_CELLS = 2**14
# One update multiplies a weight by at most e^LARGEST_STEP and at least e^−LARGEST_STEP.
LARGEST_STEP = 150.0
# No weight is less than this part of the total after a renormalisation, so that none becomes zero: a cell
# with weight zero could never be scaled up again. Together with a step it stays above the smallest normal double,
# e^−708.
_SMALLEST = exp(-550.0)
# The largest relative error of the running total; before it may be exceeded, the total is summed anew.
MOST_DOUBT = 2.0**-33


class Dense:
    """A positive weight for every cell, unnormalised, with a running total; `total` rows in all.

    A count touches the cells of its box and no others. The columns of `order` are laid out first, so that a box that
    chooses among these is one run of memory, or a few: name the columns most asked about.

    >>> from discreet.query.aggregates import count
    >>> from discreet.query.predicate import col
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"smoker": Boolean(), "old": Boolean()})
    >>> model = Dense(people, total=100)
    >>> smokers = count(people, col("smoker") == True)
    >>> round(model.answer(smokers), 6)
    50.0
    >>> model.update(smokers, step=1.0)
    >>> round(model.answer(smokers), 6), model.marginal(["smoker"]).round(1).tolist()
    (73.105858, [26.9, 73.1])
    """

    def __init__(
        self,
        domain: Domain,
        *,
        total: float = 1.0,
        weights: NDArray[np.float64] | None = None,
        order: Sequence[str] = (),
        most_cells: int = MOST_MODEL_CELLS,
    ) -> None:
        """Start with equal weights, or with `weights`, which has an axis for each column in the order of the domain."""
        if domain.size > whole("most_cells", most_cells, least=1):
            raise TooLarge(
                f"a dense model of this domain has {domain.size} cells and needs {8 * domain.size} bytes; the limit is "
                f"{most_cells} cells. Open the table with fewer columns or coarser ones, or take another model."
            )
        self._domain, self._columns = domain, _layout(domain, order)
        self._shape = tuple(domain[name].size for name in self._columns)
        self.total = total
        if weights is None:
            self._weights, self._mass = np.ones(domain.size), float(domain.size)
        else:
            self._weights, self._mass = self._read(weights), 1.0
        # Bounds on the error of the running total, and on the move of a weight since the last renormalisation.
        self._doubt, self._reach = SLIP * self._mass, 0.0
        if weights is not None:
            self._renormalise()

    @property
    def domain(self) -> Domain:
        """What a row may be."""
        return self._domain

    @property
    def columns(self) -> Columns:
        """The columns in the order of memory, the one that varies slowest first."""
        return self._columns

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns, with an axis for each in the order given."""
        return self._counted(columns) * (self.total / self._mass)

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""
        for each in query.products:
            self._require(each)
        return self.total / self._mass * sum(self._weighed(each) for each in query.products)

    def rows(self, number: int) -> Coded:
        """Draw `number` rows from the distribution."""
        edges = np.cumsum(self._weights)
        places = uniform(whole("number", number)) * edges[-1]
        cells = np.unravel_index(np.searchsorted(edges, places, side="right"), self._shape)
        return {name: codes.astype(np.int64) for name, codes in sorted(zip(self._columns, cells, strict=True))}

    def update(self, query: Linear, *, step: float) -> None:
        """Multiply the weight of each cell x by exp(step · q(x)), in place. Only the box of the query is touched.

        For a query of weights 0 and 1 a factor 1 − a on its cells is step=log(1 − a), and a factor 1 − a on all other
        cells is step=−log(1 − a), but for the normalisation, which changes no answer.
        """
        highest = query.range(self._domain)[1]
        if any(each.range[0] < 0 for each in query.products):
            # Between products a weight may be larger or smaller than at the end.
            highest = sum(each.magnitude for each in query.products)
        farthest = abs(step) * highest
        if not farthest <= LARGEST_STEP:
            raise BadParameter(
                f"step is {step!r}; times the largest weight of the query it must be at most {LARGEST_STEP:g} in size, "
                "so that no weight becomes too small for a double. Take several steps."
            )
        if self._reach + farthest > LARGEST_STEP:
            self._renormalise()
        self._reach += farthest
        for each in query.products:
            self._scale(each, step)

    def recount(self) -> None:
        """Sum the total again; done before the relative error of the running total could exceed `MOST_DOUBT`."""
        self._mass = self._boxed(Product(()), None)
        self._doubt = SLIP * self._mass

    def _scale(self, product: Product, step: float) -> None:
        found = _box(product)
        if found is None:
            self._scale_all(product, step)
            return
        masks, weight = found
        factor = exp(step * weight)
        before = self._boxed_of(masks, factor)
        self._mass += (factor - 1.0) * before
        # The sum of the box is off by SLIP of it at most, and each operation on the total by 2^−53 of the larger side.
        self._doubt += SLIP * abs(factor - 1.0) * before + 2.0**-52 * (self._mass + before * (1.0 + factor))
        if not self._doubt <= MOST_DOUBT * self._mass:
            self.recount()

    def _scale_all(self, product: Product, step: float) -> None:
        """Scale by a product that is not constant on a box, with a table over its columns."""
        table = np.array(step * product.coefficient)
        for factor in product.factors:
            axes = [self._columns.index(name) for name in factor.columns]
            spread = np.transpose(factor.weights, np.argsort(axes))
            table = table * spread.reshape([size if at in axes else 1 for at, size in enumerate(self._shape)])
        self._weights.reshape(self._shape)[...] *= np.exp(table)
        self.recount()

    def _weighed(self, product: Product) -> float:
        """The sum over the cells of weight times the product."""
        if _box(product) is None:
            return float(product.contract(self._counted(product.columns), product.columns))
        return self._boxed(product, None)

    def _boxed(self, product: Product, factor: float | None) -> float:
        found = _box(product)
        assert found is not None, "the product is a box"
        return found[1] * self._boxed_of(found[0], factor)

    def _boxed_of(self, masks: dict[str, Bools], factor: float | None) -> float:
        """The sum of the weights in a box; with a factor, they are scaled by it afterwards."""
        chosen = [masks.get(name) for name in self._columns]
        if self._weights.size < FEW_CELLS:
            places = [np.arange(size) if mask is None else np.flatnonzero(mask) for size, mask in self._sized(chosen)]
            at = np.ix_(*places)
            view = self._weights.reshape(self._shape)
            before = float(view[at].sum())
            if factor is not None:
                view[at] *= factor
            return before
        runs = runs_of(self._shape, chosen)
        if factor is None:
            return runs.total(self._weights, range_kernels())
        return runs.scale(self._weights, factor, range_kernels())

    def _sized(self, chosen: Sequence[Bools | None]) -> list[tuple[int, Bools | None]]:
        return list(zip(self._shape, chosen, strict=True))

    def _counted(self, columns: Sequence[str]) -> Numbers:
        """The weights added up to some columns, with an axis for each in the order given."""
        kept = [self._columns.index(name) for name in _known(self._domain, columns)]
        # Neighbouring axes that are added up together are one: numpy is slow with many short axes.
        shape, dropped, last = list[int](), list[int](), False
        for at, size in enumerate(self._shape):
            drop = at not in kept
            if drop and last:
                shape[-1] *= size
            else:
                shape.append(size)
                if drop:
                    dropped.append(len(shape) - 1)
            last = drop
        summed: Numbers = np.asarray(self._weights.reshape(shape).sum(axis=tuple(dropped)))
        return np.transpose(summed, [sorted(kept).index(at) for at in kept])

    def _require(self, product: Product) -> None:
        """Refuse a product that was made for columns of other sizes."""
        for factor in product.factors:
            shape = tuple(self._domain[name].size for name in factor.columns)
            if shape != factor.weights.shape:
                raise BadQuery(
                    f"the query was made for other columns: {factor.columns} has {shape} cells in this domain and "
                    f"{factor.weights.shape} in the query. Make it again for this domain."
                )

    def _renormalise(self) -> None:
        """Scale the weights to sum 1, each large enough to stay a normal double in the steps to come."""
        self.recount()
        self._weights *= 1.0 / self._mass
        np.maximum(self._weights, _SMALLEST, out=self._weights)
        self.recount()
        self._reach = 0.0

    def _read(self, weights: NDArray[np.float64]) -> Numbers:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != self._domain.shape:
            raise BadParameter(
                f"weights have the shape {given.shape}; the domain has {self._domain.shape}. Give one for each cell."
            )
        if not (np.isfinite(given).all() and (given >= 0).all() and 0 < given.sum() < 1e300):
            raise BadParameter("weights have no mass, or negative or infinite ones; give finite ones, some above 0.")
        names = list(self._domain)
        return np.ascontiguousarray(given.transpose([names.index(name) for name in self._columns])).ravel().copy()

    def __repr__(self) -> str:
        return f"<Dense: {prod(self._shape)} cells of {', '.join(self._columns)}; {self.total:g} rows>"


def _layout(domain: Domain, order: Sequence[str]) -> Columns:
    first = _known(domain, order)
    return (*first, *(name for name in domain if name not in first))


def _known(domain: Domain, columns: Sequence[str]) -> Columns:
    """These columns, each of them in the domain and named once."""
    if isinstance(columns, str) or len(set(columns)) < len(columns):
        raise BadQuery(f'columns is {columns!r}; it must be a list in which each is named once. Write ["age", "sex"].')
    for name in columns:
        domain[name]
    return tuple(columns)


def _box(product: Product) -> tuple[dict[str, Bools], int] | None:
    """The masks of a product that has one weight in a box and 0 elsewhere, and that weight; None if it is no box."""
    masks, weight = dict[str, Bools](), product.coefficient
    for factor in product.factors:
        mask: Bools = factor.weights != 0
        values = factor.weights[mask]
        if len(factor.columns) != 1 or not values.size or (values != values[0]).any():
            return None
        masks[factor.columns[0]] = mask
        weight *= int(values[0])
    return masks, weight
