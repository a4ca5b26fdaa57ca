"""Queries in the form of the kernel `contract`: products of weights of single columns, in flat arrays."""

from collections.abc import Iterable, Mapping
from itertools import product as combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.query.product import Factor, Product
from discreet.schema.domain import Domain
from discreet.types import Ints, Numbers

# A weight on several columns together is expanded into cells up to this many; beyond, it is summed over a marginal.
MOST_JOINT_CELLS = 2**16


class ProductTerms:
    """Products gathered for one walk. `owners` says whose each term is; `whole` are products to sum over a marginal."""

    __slots__ = (
        "_begins",
        "_columns",
        "_domain",
        "_end",
        "_number",
        "_places",
        "_weights",
        "coefficients",
        "owners",
        "whole",
    )

    def __init__(self, domain: Domain, number: Mapping[str, int]) -> None:
        self._domain, self._number = domain, number
        self.owners: list[int] = []
        self.coefficients: list[int] = []
        self.whole: list[tuple[int, Product]] = []
        self._begins, self._columns, self._places = [0], list[int](), list[int]()
        self._weights: list[NDArray[np.int64]] = []
        self._end = 0

    def add(self, owner: int, product: Product) -> None:
        """The terms of a product."""
        single, joint = [], []
        for factor in product.factors:
            if len(factor.columns) == 1:
                single.append((factor.columns[0], factor.weights))
            else:
                joint.append(factor)
        if not joint:
            self._add(owner, product.coefficient, single)
            return
        for factor in joint:
            self._check(factor.columns, factor.weights)
        if prod(self._domain[name].size for name in product.columns) <= MOST_JOINT_CELLS:
            self.whole.append((owner, product))
            return
        cells = prod(int(np.count_nonzero(factor.weights)) for factor in joint)
        if cells > MOST_JOINT_CELLS:
            raise TooLarge(
                f"the weights on {', '.join(product.columns)} have {cells} cells together that are not zero; the limit "
                f"is {MOST_JOINT_CELLS}. Ask with conditions on single columns."
            )
        for weight, units in _apart(joint, self._domain):
            self._add(owner, product.coefficient * weight, [*single, *units])

    def _add(self, owner: int, coefficient: int, factors: Iterable[tuple[str, Ints]]) -> None:
        for name, weights in factors:
            self._check((name,), weights)
            self._columns.append(self._number[name])
            self._places.append(self._end)
            self._weights.append(weights)
            self._end += weights.size
        self._begins.append(len(self._columns))
        self.owners.append(owner)
        self.coefficients.append(coefficient)

    def _check(self, columns: tuple[str, ...], weights: Ints) -> None:
        shape = tuple([self._domain[name].size for name in columns])
        if shape != weights.shape:
            raise BadQuery(
                f"the query was made for other columns: {columns} has {shape} cells in this domain and "
                f"{weights.shape} in the query. Make it again for this domain."
            )

    def arrays(self) -> tuple[Ints, Ints, Ints, Numbers]:
        """Where the factors of each term begin, their columns, where their weights begin, and these."""
        weights = np.concatenate(self._weights).astype(np.float64) if self._weights else np.zeros(1)
        begins, columns, places = np.array(self._begins), np.array(self._columns, int), np.array(self._places, int)
        return begins, columns, places, weights


def _apart(factors: Iterable[Factor], domain: Domain) -> Iterable[tuple[int, list[tuple[str, Ints]]]]:
    """All combinations of a cell of each factor: the product of their weights, and an indicator of each code."""
    cells = [
        [(int(factor.weights[tuple(place)]), factor.columns, place.tolist()) for place in np.argwhere(factor.weights)]
        for factor in factors
    ]
    for chosen in combinations(*cells):
        units = [
            (name, np.eye(1, domain[name].size, code, dtype=np.int64)[0])
            for _, columns, place in chosen
            for name, code in zip(columns, place, strict=True)
        ]
        yield prod(weight for weight, _, _ in chosen), units
