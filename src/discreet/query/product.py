"""The weight of a row as a product of small tables: one for each column, or for a few columns together.

A product never needs the table over all its columns: its extremes, its sum over a marginal and its support are
products of the same of its factors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.schema.column import Column
from discreet.schema.domain import Domain
from discreet.types import Ints
from discreet.values import (
    LARGEST_INTEGER,
    NormalForm,
    all_of,
    integer_of,
    integers_of,
    names_of,
    shortened,
    unwritable,
)

# Factors that share columns are multiplied into one: with at most this many cells, unless one has all the columns.
MOST_COMBINED = 2**12
# The most multiplications for one product; more if one of its factors is large.
MOST_MULTIPLIED = 2**16


@dataclass(frozen=True, eq=False, repr=False)
class Factor(NormalForm):
    """An integer weight for each cell of some columns, which are sorted. Compared and hashed by its numbers.

    The columns may be given in any order, with the axes of the weights in that order.

    >>> Factor(("sex",), np.array([1, 0, 0])) == Factor(("sex",), np.array([1, 0, 0]))
    True
    >>> Factor(("sex", "age"), [[1, 2, 3], [4, 5, 6]])
    Factor(('age', 'sex'), [[1, 4], [2, 5], [3, 6]])
    """

    columns: tuple[str, ...]
    weights: Ints

    def __post_init__(self) -> None:
        columns, weights = names_of(self.columns), integers_of(self.weights, "weights")
        if weights.ndim != len(columns) or 0 in weights.shape:
            raise BadQuery(
                f"the weights of {shortened(columns)} have shape {weights.shape}; there is one axis for each column, "
                "with a number for each cell."
            )
        order = sorted(range(len(columns)), key=columns.__getitem__)
        if order != list(range(len(columns))):
            weights = unwritable(weights.transpose(order))
        object.__setattr__(self, "columns", tuple(columns[axis] for axis in order))
        object.__setattr__(self, "weights", weights)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return (self.columns, self.weights.shape, blake2b(self.weights.data).digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __lt__(self, other: "Factor") -> bool:
        return self._identity < other._identity

    @cached_property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest weight."""
        return int(self.weights.min()), int(self.weights.max())

    @property
    def largest(self) -> int:
        """The largest absolute weight."""
        return max(map(abs, self.range))

    def spread(self, columns: Sequence[str]) -> Ints:
        """The weights with an axis for each of these columns, in their order, of length 1 for those not named here."""
        axes = {name: axis for axis, name in enumerate(self.columns)}
        shape = [self.weights.shape[axes[name]] if name in axes else 1 for name in columns]
        return self.weights.transpose([axes[name] for name in columns if name in axes]).reshape(shape)

    def __repr__(self) -> str:
        shown = np.array2string(self.weights, threshold=8, edgeitems=3, separator=", ").replace("\n", "")
        return f"Factor({self.columns!r}, {shown})"


@dataclass(frozen=True)
class Product(NormalForm):
    """`coefficient` times the factors; columns not named weigh 1.

    However it is given, it is held in normal form: the factors are on different columns, none of them is constant, they
    are sorted, and there are none if the coefficient is 0. Given factors that share a column are multiplied.

    >>> Product([Factor(("sex",), [0, 2]), Factor(("city",), [3, 3]), Factor(("sex",), [5, 1])])
    Product(factors=(Factor(('sex',), [0, 2]),), coefficient=3)
    """

    factors: tuple[Factor, ...]
    coefficient: int = 1

    def __post_init__(self) -> None:
        coefficient, given = integer_of(self.coefficient, "coefficient"), all_of(Factor, self.factors, "factors")
        kept = []
        for factor in _apart(given) if coefficient else ():
            low, high = factor.range
            if low == high:
                coefficient *= low
            else:
                kept.append(factor)
        factors = tuple(sorted(kept, key=lambda factor: factor.columns)) if coefficient else ()
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "coefficient", coefficient)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the weight depends on, sorted."""
        return tuple(sorted(name for factor in self.factors for name in factor.columns))

    @cached_property
    def magnitude(self) -> int:
        """The largest absolute weight."""
        return abs(self.coefficient) * prod(factor.largest for factor in self.factors)

    @cached_property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest weight, exactly: the factors vary independently."""
        return interval_product([(self.coefficient,) * 2, *(factor.range for factor in self.factors)])

    def range_on_support(self) -> tuple[int, int]:
        """The lowest and the highest weight among those that are not zero."""
        ranges = []
        for factor in self.factors:
            support = factor.weights[factor.weights != 0]
            ranges.append((int(support.min()), int(support.max())))
        return interval_product([(self.coefficient,) * 2, *ranges])

    def support(self, name: str) -> NDArray[np.bool_] | None:
        """The cells of one column that can have a weight other than zero; None if the column is not named."""
        for factor in self.factors:
            if name in factor.columns:
                others = tuple(axis for axis, column in enumerate(factor.columns) if column != name)
                reached: NDArray[np.bool_] = np.any(factor.weights != 0, axis=others)
                return reached
        return None

    def support_size(self, scope: Iterable[str], domain: Domain) -> int:
        """How many cells of `scope` have a weight other than zero."""
        free = prod(domain[name].size for name in scope if name not in self.columns)
        return free * prod(int(np.count_nonzero(factor.weights)) for factor in self.factors)

    def contract(self, array: NDArray[Any], columns: Sequence[str]) -> Any:
        """The sum over the cells of `array` times their weight, one factor at a time."""
        left = list(columns)
        for factor in self.factors:
            axes = [left.index(name) for name in factor.columns]
            array = np.tensordot(array, factor.weights.astype(array.dtype), axes=(axes, range(len(axes))))
            left = [name for name in left if name not in factor.columns]
        return self.coefficient * array.sum()

    def times(self, name: str, weights: Ints) -> "Product":
        """The product of this and of a weight for each cell of one column."""
        return Product((*self.factors, Factor((name,), weights)), self.coefficient)


def interval_product(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The extremes of a product of numbers, each in its own interval.

    >>> interval_product([(-1, 2), (3, 4)])
    (-4, 8)
    """
    low = high = 1
    for lowest, highest in ranges:
        ends = [low * lowest, low * highest, high * lowest, high * highest]
        low, high = min(ends), max(ends)
    return low, high


def _apart(factors: Sequence[Factor]) -> list[Factor]:
    """The same product, in factors on pairwise different columns."""
    apart: list[Factor] = []
    left = max(MOST_MULTIPLIED, 4 * max((factor.weights.size for factor in factors), default=0))
    for factor in factors:
        met = [other for other in apart if not set(other.columns).isdisjoint(factor.columns)]
        if met:
            apart = [other for other in apart if all(other is not each for each in met)]
            factor = _multiplied([*met, factor])
            left -= (len(met) + 1) * factor.weights.size
            if left < 0:
                raise TooLarge(
                    f"{len(factors)} factors share columns; to multiply them takes more than {MOST_MULTIPLIED:,} "
                    "multiplications. Give factors on different columns, or one on all of them."
                )
        apart.append(factor)
    return apart


def _multiplied(factors: Sequence[Factor]) -> Factor:
    """One factor on all columns of several, exactly; refuses what has too many cells or leaves 64 bits."""
    sizes = _sizes(factors)
    cells = prod(sizes.values())
    if cells > max(MOST_COMBINED, *(factor.weights.size for factor in factors)):
        raise TooLarge(
            f"factors that share columns have {cells} cells together; the limit is {MOST_COMBINED}. Give factors on "
            "different columns, or one on all of them."
        )
    if prod(factor.largest for factor in factors) > LARGEST_INTEGER:
        names = ", ".join(sizes)
        raise TooLarge(f'the weights of column "{names[:60]}" do not fit in 64 bits. Use smaller weights.')
    columns = tuple(sorted(sizes))
    weights = np.ones([sizes[name] for name in columns], dtype=np.int64)
    for factor in factors:
        weights *= factor.spread(columns)
    return Factor(columns, weights)


def _sizes(factors: Iterable[Factor]) -> dict[str, int]:
    """How many cells each column has: the same in every factor, or else numpy would stretch one to fit the other."""
    sizes: dict[str, int] = {}
    for factor in factors:
        for name, size in zip(factor.columns, factor.weights.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise BadQuery(
                    f'column "{name[:60]}" has {sizes[name]} cells in one factor and {size} in another; it has as many '
                    "as the schema declares. Make the query again for this table."
                )
    return sizes


def box(masks: Mapping[str, NDArray[np.bool_]]) -> Product:
    """The product that weighs 1 where every mask is true and 0 elsewhere.

    >>> box({"sex": np.array([True, False])})
    Product(factors=(Factor(('sex',), [1, 0]),), coefficient=1)
    """
    return Product(tuple(Factor((name,), mask.astype(np.int64)) for name, mask in masks.items()))


def merge(products: Iterable[Product]) -> tuple[Product, ...]:
    """The same sum in fewer products: those that differ in one factor are added up, f·g + f·h = f·(g + h)."""
    current = [each for each in all_of(Product, products, "products") if each.coefficient]
    if len(current) == 1:
        return tuple(current)
    _sizes(factor for each in current for factor in each.factors)
    while True:
        merged = _merge_once(current)
        if len(merged) == len(current):
            return tuple(sorted(merged, key=lambda each: (each.columns, each.factors)))
        current = merged


def _merge_once(products: list[Product]) -> list[Product]:
    # Factors are numbered: hundreds of products are compared on dozens of columns.
    numbers: dict[Factor, int] = {}

    def named(each: Product) -> dict[tuple[str, ...], int]:
        return {factor.columns: numbers.setdefault(factor, len(numbers)) for factor in each.factors}

    current = [(each, named(each)) for each in products]
    for columns in sorted({factor.columns for each in products for factor in each.factors} | {()}):
        groups: dict[tuple[bool, tuple[int, ...]], list[tuple[Product, dict[tuple[str, ...], int]]]] = {}
        for each, names in current:
            others = tuple([number for name, number in names.items() if name != columns])
            groups.setdefault((columns in names, others), []).append((each, names))
        current = []
        for group in groups.values():
            if len(group) == 1:
                current += group
            else:
                current += [(total, named(total)) for total in _sum(columns, [each for each, _ in group])]
    return [each for each, _ in current]


def _sum(columns: tuple[str, ...], group: list[Product]) -> list[Product]:
    """The sum of products that are alike except for the factor on `columns` and the coefficient."""
    changing = [[factor for factor in each.factors if factor.columns == columns] for each in group]
    others = [factor for factor in group[0].factors if factor.columns != columns]
    if not changing[0]:
        coefficient = sum(each.coefficient for each in group)
        return [Product(tuple(others), coefficient)] if coefficient else []
    if sum(each.magnitude for each in group) >= 2**63:
        return group
    summed = sum(each.coefficient * factor.weights for each, (factor,) in zip(group, changing, strict=True))
    total = Product((*others, Factor(columns, np.asarray(summed))))
    return [total] if total.coefficient else []


# A query keeps one weight for each cell of a column that it names.
MOST_COLUMN_WEIGHTS = 2**22


def column_of(domain: Domain, name: str) -> Column:
    """The column, if a query can hold a weight for each of its cells."""
    column = domain[name]
    if column.size > MOST_COLUMN_WEIGHTS:
        raise TooLarge(
            f'column "{name}" has {column.size} cells; a query has at most {MOST_COLUMN_WEIGHTS} weights on a column. '
            "Ask about another column; the owner can declare this one with Bins."
        )
    return column
