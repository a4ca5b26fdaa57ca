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
from discreet.schema.domain import Domain

Weights = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Factor:
    """An integer weight for each cell of some columns. Compared and hashed by its numbers.

    >>> Factor(("sex",), np.array([1, 0, 0])) == Factor(("sex",), np.array([1, 0, 0]))
    True
    """

    columns: tuple[str, ...]
    weights: Weights

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.int64)
        if weights.ndim != len(self.columns) or 0 in weights.shape:
            raise BadQuery(
                f"the weights of {self.columns} have shape {weights.shape}; there is one axis for each column, "
                "with a number for each cell."
            )
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return (self.columns, self.weights.shape, blake2b(np.ascontiguousarray(self.weights).data).digest())

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

    def __repr__(self) -> str:
        shown = np.array2string(self.weights, threshold=8, edgeitems=3, separator=", ").replace("\n", "")
        return f"Factor({self.columns!r}, {shown})"


@dataclass(frozen=True)
class Product:
    """`coefficient` times the factors, which are on different columns; columns not named weigh 1."""

    factors: tuple[Factor, ...]
    coefficient: int = 1

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the weight depends on, sorted."""
        return tuple(sorted(name for factor in self.factors for name in factor.columns))

    @cached_property
    def magnitude(self) -> int:
        """The largest absolute weight."""
        return abs(self.coefficient) * prod(max(map(abs, factor.range)) for factor in self.factors)

    @cached_property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest weight, exactly: the factors vary on their own."""
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

    def times(self, name: str, weights: Weights) -> "Product":
        """The product of this and of a weight for each cell of one column."""
        for factor in self.factors:
            if name in factor.columns:
                shape = [-1 if column == name else 1 for column in factor.columns]
                if max(map(abs, factor.range)) * max(abs(int(weights.min())), abs(int(weights.max()))) >= 2**63:
                    raise TooLarge(f'the weights of column "{name}" do not fit in 64 bits. Declare a smaller range.')
                merged = Factor(factor.columns, factor.weights * weights.reshape(shape))
                return product([merged, *(other for other in self.factors if other is not factor)], self.coefficient)
        return product([*self.factors, Factor((name,), weights)], self.coefficient)


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


def product(factors: Iterable[Factor], coefficient: int = 1) -> Product:
    """The product in normal form: sorted factors, none constant."""
    kept = []
    for factor in factors:
        low, high = factor.range
        if low == high:
            coefficient *= low
        else:
            kept.append(factor)
    return Product(tuple(sorted(kept)) if coefficient else (), coefficient)


def box(masks: Mapping[str, NDArray[np.bool_]]) -> Product:
    """The product that weighs 1 where every mask is true and 0 elsewhere.

    >>> box({"sex": np.array([True, False])})
    Product(factors=(Factor(('sex',), [1, 0]),), coefficient=1)
    """
    return product([Factor((name,), mask.astype(np.int64)) for name, mask in masks.items()])


def merge(products: Iterable[Product]) -> tuple[Product, ...]:
    """The same sum in fewer products: those that differ in one factor are added up, f·g + f·h = f·(g + h)."""
    current = [each for each in products if each.coefficient]
    if len(current) == 1:
        return tuple(current)
    while True:
        merged = _merge_once(current)
        if len(merged) == len(current):
            return tuple(sorted(merged, key=lambda each: (each.columns, each.factors)))
        current = merged


def _merge_once(products: list[Product]) -> list[Product]:
    for columns in sorted({factor.columns for each in products for factor in each.factors} | {()}):
        groups: dict[tuple[Factor, ...] | Product, list[Product]] = {}
        for each in products:
            others = tuple(factor for factor in each.factors if factor.columns != columns)
            alone = len(others) == len(each.factors)
            groups.setdefault(Product(others) if alone else others, []).append(each)
        products = [total for group in groups.values() for total in _sum(columns, group)]
    return products


def _sum(columns: tuple[str, ...], group: list[Product]) -> list[Product]:
    """The sum of products that are alike except for the factor on `columns` and the coefficient."""
    if len(group) == 1:
        return group
    changing = [[factor for factor in each.factors if factor.columns == columns] for each in group]
    others = [factor for factor in group[0].factors if factor.columns != columns]
    if not changing[0]:
        coefficient = sum(each.coefficient for each in group)
        return [product(others, coefficient)] if coefficient else []
    if sum(each.magnitude for each in group) >= 2**63:
        return group
    summed = sum(each.coefficient * factor.weights for each, (factor,) in zip(group, changing, strict=True))
    total = product([*others, Factor(columns, np.asarray(summed))])
    return [total] if total.coefficient else []
