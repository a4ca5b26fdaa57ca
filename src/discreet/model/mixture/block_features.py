"""Large measurements of three columns or more, each evaluated by a few matrix products."""

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.types import Reals

Real = TypeVar("Real", bound=np.floating[Any])


@dataclass(frozen=True, slots=True, eq=False)
class FeatureBlock:
    """A measurement of the products of some features: each of the first columns' with each of the last column's.

    `places` are the features of each column, those of the column with most of them last; `values` has a row for each
    product of the others and a column for each of the last. `weight` is 1/variance of each number.
    """

    places: tuple[slice, ...]
    values: Reals
    weight: float

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(self.values.size)

    def single(self) -> "FeatureBlock":
        """The same in single precision."""
        return replace(self, values=self.values.astype(np.float32))

    def means(self, means: Reals, weights: Reals) -> Reals:
        """The mean of each product, for the means of the features in each component."""
        *first, last = (means[place] for place in self.places)
        return np.asarray((reduce(row_products, first) * weights) @ last.T)

    def add(self, means: Reals, weights: Reals, total: float, slopes: Reals, along: Reals, times: float) -> float:
        """Add `times` the slopes along the means of the features (over w) and along the weights; return the loss."""
        *first, last = (means[place] for place in self.places)
        products = reduce(row_products, first)
        residual = total * ((products * weights) @ last.T) - self.values
        scale = np.float32(times * total * self.weight)
        slopes[self.places[-1]] += scale * (residual.T @ products)
        rest = (scale * (residual @ last)).reshape(*(len(each) for each in first), -1)
        for place, each in enumerate(first):
            # The slope along one column: the others are multiplied in and summed over.
            here = rest
            for other in range(len(first) - 1, -1, -1):
                if other != place:
                    shape = [1] * rest.ndim
                    shape[other], shape[-1] = len(first[other]), rest.shape[-1]
                    here = (here * first[other].reshape(shape)).sum(axis=other, keepdims=True)
            moved = here.reshape(len(each), -1)
            slopes[self.places[place]] += moved
            if place == 0:
                along += np.einsum("fk,fk->k", each, moved)
        return self.weight * float(np.vdot(residual, residual)) / 2


def row_products(first: NDArray[Real], second: NDArray[Real]) -> NDArray[Real]:
    """The products of every two rows, the second varying faster."""
    return np.asarray((first[:, None, :] * second[None, :, :]).reshape(-1, first.shape[1]))


def block_of(places: list[slice], values: Reals, weight: float) -> FeatureBlock:
    """A measurement, its columns in the order of their sizes."""
    order = np.argsort([each.stop - each.start for each in places], kind="stable").tolist()
    arranged = np.transpose(values, order)
    rows = prod(arranged.shape[:-1])
    return FeatureBlock(tuple(places[at] for at in order), np.ascontiguousarray(arranged.reshape(rows, -1)), weight)
