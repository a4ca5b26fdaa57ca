"""Separable queries, sums of products of weights of single columns: one query, or one for each cell of a GROUP BY.

For each column there is a table of weights with an axis for the cells of the group (one, if the column is not grouped)
and one for the products. Nothing is ever multiplied out over the cells of several columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from discreet.estimate.transform import EachCell, Listed, Transformed, as_listed, read, read_factor
from discreet.query.linear import Linear, Marginal
from discreet.query.product import MOST_COMBINED, Factor, Product
from discreet.query.residual import Axis, axes_of
from discreet.schema.domain import Domain
from discreet.types import Numbers

# The most products into which a weight over several columns is taken apart.
MOST_PRODUCTS = 512
# The largest table that is made for a family, and the most multiplications for one of its numbers (`is_small`).
MOST_TABLE, MOST_PRODUCT_WORK = 2**22, 2**29
# An energy below this share of the products that are added up is rounding error.
TINY = 1e-15
# Products of different signs that are larger than this together are added up exactly first. Then a weight of 1 that
# remains of them is far above TINY.
MOST_CANCELLED = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Σ_j coefficient_j · Π over the columns of the weight of product j: one number, or one for each cell of groups.

    `readings[i]` is of column i: its rows are (cell of the group, product), the product varying fastest; `cells[i]` is
    how many cells of the group the column has, or 1. A column that is not grouped has a `Listed` reading.
    """

    columns: tuple[str, ...]
    axes: tuple[Axis, ...]
    readings: tuple[Transformed, ...]
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

    @property
    def room(self) -> int:
        """About how many numbers it holds."""
        return sum(4 * self.products * axis.cells for axis in self.axes) + 10 * self.products

    def listed(self, place: int) -> Listed:
        """The reading of a column that is not grouped."""
        return as_listed(self.readings[place])


def is_small(products: int, axes: Sequence[Axis], cells: Sequence[int]) -> bool:
    """Whether a sum of this number of products can be read: no table on the way may be too large.

    One product needs only its weights. A sum needs the weights of every product on every column, the inner products of
    each two products in each part of a column, and the energies of every residual of every cell.
    """
    if products == 1:
        return True
    pieces, numbers = prod(axis.parts for axis in axes), prod(1 + axis.starts[-1] for axis in axes)
    both = products**2 * max((axis.parts * size for axis, size in zip(axes, cells, strict=True)), default=1)
    half = len(axes) // 2
    listed = [
        products**2 * prod(axis.parts * size for axis, size in zip(axes[part], cells[part], strict=True))
        for part in (slice(None, half), slice(half, None))
    ]
    return (
        products * sum(axis.cells for axis in axes) <= MOST_TABLE
        and max(both, *listed) <= MOST_TABLE
        and prod(cells) * pieces <= MOST_TABLE
        and products * numbers <= 4 * MOST_TABLE
        and products**2 * prod(cells) * pieces <= MOST_PRODUCT_WORK
    )


def family_of(question: Linear | Marginal, domain: Domain) -> Family | None:
    """The family of a question, or None if it would need too many products, or tables that are too large."""
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
    products = _separated(query, domain)
    if products is None or not is_small(len(products), axes, (1,) * len(axes)):
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
    products = (Product(()),) if question.weight is None else _separated(question.weight, domain)
    sizes = [axis.cells if name in question.columns else 1 for name, axis in zip(columns, axes, strict=True)]
    if products is None or not is_small(len(products), axes, sizes):
        return None
    readings: list[Transformed] = []
    cells: list[int] = []
    for name, axis in zip(columns, axes, strict=True):
        grouped = name in question.columns
        weights = _rows(products, name, axis)
        cells.append(axis.cells if grouped else 1)
        if not grouped or axis.cells == 1:
            readings.append(read(axis, weights))
        else:
            alike = len(products) == 1 and np.all(weights == 1)
            readings.append(EachCell(axis, None if alike else weights))
    coefficients = np.array([float(each.coefficient) for each in products])
    return Family(columns, axes, tuple(readings), tuple(cells), coefficients)


def _rows(products: tuple[Product, ...], name: str, axis: Axis) -> Numbers:
    """The weights of each product on one column."""
    weights = np.ones((len(products), axis.cells))
    for place, each in enumerate(products):
        for factor in each.factors:
            if factor.columns == (name,):
                weights[place] = factor.weights
    return weights


def _separated(query: Linear, domain: Domain) -> tuple[Product, ...] | None:
    """The same sum, in products of weights of one column each."""
    found: list[Product] = []
    products = query.products
    if _cancels(products):
        # If large products nearly cancel, their sum in doubles would be mostly rounding error: they are added exactly.
        if prod(domain[name].size for name in query.scope) > MOST_COMBINED:
            return None
        table = query.table(domain)
        products = (Product((Factor(query.scope, table),)),) if table.any() else (Product((), 0),)
    for each in products:
        for piece in _split(each):
            found.append(piece)
            if len(found) > MOST_PRODUCTS:
                return None
    return tuple(found)


def _cancels(products: Sequence[Product]) -> bool:
    """Whether products of different signs are so large that their sum in doubles may be mostly rounding error."""
    if len(products) == 1 or sum(each.magnitude for each in products) <= MOST_CANCELLED:
        return False
    ranges = [each.range for each in products]
    return min(low for low, _ in ranges) < 0 < max(high for _, high in ranges)


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


def energies_of(family: Family) -> Numbers:
    """The squared length of each residual of each question: an axis for each column's cells, then for its parts."""
    depth = len(family.columns)
    if family.products > 1:
        return _energies_of_sums(family)
    tensor = np.full((1,) * 0, family.coefficients[0] ** 2)
    for reading in family.readings:
        tensor = np.multiply.outer(tensor, reading.energies)
    if depth > 1:
        tensor = tensor.transpose([*range(0, 2 * depth, 2), *range(1, 2 * depth, 2)])
    return tensor


def _energies_of_sums(family: Family) -> Numbers:
    """The same where products are added up: each two of them count.

    The columns are taken in two halves: for each two products only the residuals of a half are listed.
    """
    middle = len(family.readings) // 2
    left, right = (_pairs(each, family.products) for each in (family.readings[:middle], family.readings[middle:]))
    mix = np.multiply.outer(family.coefficients, family.coefficients).ravel()
    left = left * mix
    energies = left.reshape(-1, len(mix)) @ right.reshape(-1, len(mix)).T
    gross = np.abs(left).sum(axis=1) @ np.abs(right).sum(axis=1).T
    energies = energies.reshape(*left.shape[:2], *right.shape[:2]).transpose(0, 2, 1, 3)
    energies = np.where(energies > family.products * TINY * gross[:, :, None, None], energies, 0.0)
    return energies.reshape(*family.cells, *(axis.parts for axis in family.axes))


def _pairs(readings: Sequence[Transformed], products: int) -> Numbers:
    """The inner products of each residual of some columns, for each two products: (cell, residual, two products)."""
    tensor: Numbers = np.ones((1, 1, products * products))
    for reading in readings:
        both = reading.gram(products).transpose(1, 0, 2, 3).reshape(-1, reading.axis.parts, products * products)
        tensor = tensor[:, None, :, None] * both[None, :, None, :]
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], -1, products * products)
    return tensor


def room_of(question: Linear | Marginal) -> int:
    """About how many numbers of eight bytes a question takes itself."""
    linear = question.weight if isinstance(question, Marginal) else question
    products = () if linear is None else linear.products
    return 200 + sum(100 + factor.weights.size for each in products for factor in each.factors)
