"""Two questions about points: how many are in each box of a grid, and the counts and sums of Voronoi cells.

Both add, for each row, a vector of integers that depends on that row and on the question alone.
"""

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery
from discreet.query.body import GRID_REACH, Body, Norm, shrunk
from discreet.query.normal import NormalForm, integer_of, names_of
from discreet.types import Floats, Ints

# Of weights and radii. Points in a chunk may stand for 2^36 rows before a sum of vectors leaves 2^53.
LARGEST_POINT_WEIGHT = 2**27
# How far away a centre may be.
FARTHEST_CENTER = 2**20
# So many points are looked at together: their distances to some centres stay in the processor's cache.
CHUNK = 2**14


@dataclass(frozen=True, slots=True)
class Boxes(NormalForm):
    """How many points are in each box of a regular grid, `bins[j]` of them along axis j.

    A point z is in the box floor((z_j + reach_j)·bins_j/(2·reach_j + 1)) along axis j: integer arithmetic. With one bin
    along every axis it is the number of points. `columns` are those of a table; an array of points has none.

    >>> Boxes(Body((2, 2)), (5, 1)).measure(np.array([[0.0, -2.0], [1.0, 2.0]])).tolist()
    [1, 0, 1, 0, 0]
    """

    body: Body
    bins: tuple[int, ...]
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", tuple(integer_of(each, "bins") for each in self.bins))
        object.__setattr__(self, "columns", names_of(self.columns))
        if len(self.bins) != self.body.dimensions or min(self.bins) < 1:
            raise BadQuery(f"bins is {self.bins}; there is one number of at least 1 for each coordinate.")

    @property
    def size(self) -> int:
        """How many boxes there are."""
        return prod(self.bins)

    def measure(self, points: Floats, rows: Ints | None = None) -> Ints:
        """The counts, the last axis varying fastest. `rows` says how many rows each point stands for."""
        places = np.zeros(points.shape[1], dtype=np.int64)
        for axis, (side, bins) in enumerate(zip(self.body.reach, self.bins, strict=True)):
            places *= bins
            places += (points[axis].astype(np.int64) + side) * bins // (2 * side + 1)
        if rows is None:
            return np.bincount(places, minlength=self.size)
        counts = np.zeros(self.size, dtype=np.int64)
        np.add.at(counts, places, rows)
        return counts

    def middles(self) -> NDArray[np.float64]:
        """The middle of every box, a row each, in the order of the counts."""
        sides = [
            (np.arange(bins) + 0.5) * (2 * side + 1) / bins - side - 0.5
            for side, bins in zip(self.body.reach, self.bins, strict=True)
        ]
        return np.array(list(product(*sides)))


@dataclass(frozen=True, slots=True)
class Clusters(NormalForm):
    """The counts and sums of the points nearest to each of some centres: k times 1 + d integers.

    A point z belongs to the centre c_j with the least Σ (z − c_j)², the first of several. There it adds `weight` to the
    first number of that centre and the vector v to the others: v = z, or, if there is a `radius`, z − c_j scaled down
    to this norm. The weight decides how the noise divides between counts and sums: all get the same.

    >>> pair = Clusters(Body((4,)), ((-2,), (3,)), weight=10)
    >>> pair.measure(np.array([[-4.0, -1.0, 2.0]])).tolist()
    [20, -5, 10, 2]
    """

    body: Body
    centers: tuple[tuple[int, ...], ...]
    weight: int
    radius: int | None = None
    norm: Norm = "l1"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        centers = tuple(tuple(integer_of(place, "centers") for place in center) for center in self.centers)
        object.__setattr__(self, "centers", centers)
        object.__setattr__(self, "weight", integer_of(self.weight, "weight"))
        object.__setattr__(self, "radius", None if self.radius is None else integer_of(self.radius, "radius"))
        object.__setattr__(self, "columns", names_of(self.columns))
        shaped = self.centers and all(len(center) == self.body.dimensions for center in self.centers)
        # Vectors to a centre are squared as they are; products with a centre far away still fit.
        most = max(self.body.reach) if self.radius is not None else FARTHEST_CENTER
        if max(self.body.reach) > 2 * GRID_REACH:
            raise BadQuery(
                f"reach is {max(self.body.reach)}; it is at most {2 * GRID_REACH}, so that all sums are exact."
            )
        if not shaped or max(abs(place) for center in self.centers for place in center) > most:
            raise BadQuery(f"centers must be integer vectors of {self.body.dimensions} numbers up to {most}.")
        if not 1 <= self.weight <= LARGEST_POINT_WEIGHT or not (
            self.radius is None or 1 <= self.radius <= LARGEST_POINT_WEIGHT
        ):
            raise BadQuery(f"weight is {self.weight} and radius is {self.radius}; both are whole and at least 1.")

    @property
    def size(self) -> int:
        """How many integers the answer has."""
        return len(self.centers) * (1 + self.body.dimensions)

    @property
    def effect(self) -> Body:
        """Where the vectors lie that rows add."""
        return self.body if self.radius is None else Body((self.radius,) * self.body.dimensions, self.norm)

    def measure(self, points: Floats, rows: Ints | None = None) -> Ints:
        """The counts (times the weight) and sums of every centre, one centre after the other."""
        labels, weights = nearest_center(points, self.centers), None if rows is None else rows.astype(np.float64)
        if self.radius is None:
            moves = points
        else:
            centers = np.array(self.centers, dtype=np.float64).T
            moves = shrunk(points - centers[:, labels], self.radius, self.norm)
        many, sums = len(self.centers), np.empty((len(self.centers), 1 + self.body.dimensions), dtype=np.int64)
        sums[:, 0] = np.bincount(labels, weights, minlength=many)
        sums[:, 0] *= self.weight
        for axis, move in enumerate(moves):
            sums[:, 1 + axis] = np.bincount(labels, move if weights is None else move * weights, minlength=many)
        return sums.ravel()


def nearest_center(points: Floats, centers: tuple[tuple[int, ...], ...]) -> NDArray[np.int64]:
    """The place of the nearest centre of each point (a column): the first one, of several.

    |z − c|² is least where |c|² − 2 z·c is. Coordinates are integers of at most 2^15, so whatever order the products
    are added in, every number on the way is an integer below 2^53, and the result is exact: the same for a row wherever
    it lies in memory and whatever lies beside it.
    """
    matrix = np.array(centers, dtype=np.float64)
    gaps = (-2.0 * matrix) @ points
    gaps += (matrix * matrix).sum(axis=1)[:, None]
    return np.asarray(np.argmin(gaps, axis=0))
