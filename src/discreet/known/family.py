"""A family of questions of one form: a sum of products of weights; one question, or one for each cell of a GROUP BY.

For each column there is a table of weights with an axis for the cells of the group (one, if the column is not grouped)
and one for the products. Nothing is ever multiplied out over the cells of several columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from discreet.known.reading import Numbers, Reading, read, read_cells, read_factor
from discreet.query.axis import Axis, axis_of
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Factor, Product
from discreet.schema.domain import Domain

# A weight over several columns at once is taken apart into so many products at most.
MOST_PRODUCTS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Σ_j coefficient_j · Π over the columns of the weight of product j: one number, or one for each cell of groups.

    `readings[i]` is of column i: its rows are (cell of the group, product), the product varying fastest; `cells[i]` is
    how many cells of the group the column has, or 1.
    """

    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    readings: tuple[Reading, ...]
    cells: tuple[int, ...]
    coefficients: Numbers

    @property
    def products(self) -> int:
        """How many products are added up."""
        return len(self.coefficients)

    @property
    def size(self) -> int:
        """How many questions there are."""
        return prod(self.cells)


def family_of(question: Linear | Marginal, domain: Domain) -> Family | None:
    """The family of a question, or None if it would need too many products."""
    if isinstance(question, Linear):
        return _of_linear(question, domain)
    return _of_marginal(question, domain)


def _of_linear(query: Linear, domain: Domain) -> Family | None:
    columns = query.scope
    axes = axes_of(domain, columns)
    if len(query.products) == 1 and all(len(factor.columns) == 1 for factor in query.products[0].factors):
        # The usual case, and the one that must be quick.
        (each,) = query.products
        by_name = {factor.columns[0]: factor for factor in each.factors}
        readings = tuple(read_factor(axis, by_name[name]) for name, axis in zip(columns, axes, strict=True))
        return Family(columns, axes, readings, (1,) * len(columns), np.array([float(each.coefficient)]))
    products = _separated(query)
    if products is None:
        return None
    rows = [_rows(products, name, axis) for name, axis in zip(columns, axes, strict=True)]
    coefficients = np.array([float(each.coefficient) for each in products])
    return Family(
        columns,
        axes,
        tuple(read(axis, weights) for axis, weights in zip(axes, rows, strict=True)),
        (1,) * len(columns),
        coefficients,
    )


def _of_marginal(question: Marginal, domain: Domain) -> Family | None:
    columns = question.scope
    axes = axes_of(domain, columns)
    products = (Product(()),) if question.weight is None else _separated(question.weight)
    if products is None:
        return None
    readings, cells = [], []
    for name, axis in zip(columns, axes, strict=True):
        grouped = name in question.columns
        weights = _rows(products, name, axis)
        cells.append(axis.cells if grouped else 1)
        if not grouped:
            readings.append(read(axis, weights))
        elif len(products) == 1 and np.all(weights == 1):
            readings.append(read_cells(axis))
        else:
            # Row (cell, product): the weight of the product in that cell, and zero elsewhere.
            spread = np.eye(axis.cells)[:, None, :] * weights[None, :, :]
            readings.append(read(axis, spread.reshape(-1, axis.cells)))
    coefficients = np.array([float(each.coefficient) for each in products])
    return Family(columns, axes, tuple(readings), tuple(cells), coefficients)


@lru_cache(maxsize=1 << 14)
def axes_of(domain: Domain, columns: tuple[str, ...]) -> tuple[Axis, ...]:
    """The axes of some columns."""
    return tuple(axis_of(domain[name]) for name in columns)


def _rows(products: tuple[Product, ...], name: str, axis: Axis) -> Numbers:
    """The weights of each product on one column."""
    weights = np.ones((len(products), axis.cells))
    for place, each in enumerate(products):
        for factor in each.factors:
            if factor.columns == (name,):
                weights[place] = factor.weights
    return weights


def _separated(query: Linear) -> tuple[Product, ...] | None:
    """The same sum, in products of weights of one column each."""
    found: list[Product] = []
    for each in query.products:
        for piece in _split(each):
            found.append(piece)
            if len(found) > MOST_PRODUCTS:
                return None
    return tuple(found)


def _split(each: Product) -> Iterator[Product]:
    """A product whose factors are on one column each: a table over several is cut along all of them but the longest."""
    wide = next((factor for factor in each.factors if len(factor.columns) > 1), None)
    if wide is None:
        yield each
        return
    others = tuple(factor for factor in each.factors if factor is not wide)
    cut = min(range(len(wide.columns)), key=lambda axis: wide.weights.shape[axis])
    left = wide.columns[:cut] + wide.columns[cut + 1 :]
    for cell in range(wide.weights.shape[cut]):
        slab = np.take(wide.weights, cell, axis=cut)
        if slab.any():
            here = np.zeros(wide.weights.shape[cut], dtype=np.int64)
            here[cell] = 1
            pieces = (Factor((wide.columns[cut],), here), Factor(left, slab))
            yield from _split(Product((*others, *pieces), each.coefficient))
