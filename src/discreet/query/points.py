"""Where points with integer coordinates may lie: a box about the middle, or a ball in it.

Two questions about points: how many are in each box of a grid, and the counts and sums of Voronoi cells.

Both add, for each row, a vector of integers that depends on that row and on the question alone.
"""

from dataclasses import dataclass
from itertools import pairwise, product
from math import isqrt, prod
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, BadQuery, BadSchema
from discreet.schema.column import Bins, Integers
from discreet.schema.domain import Domain
from discreet.types import Floats, Ints
from discreet.values import NormalForm, integer_of, names_of

# Points are integers held as doubles. All that is computed with them stays below 2^53, so it is exact in any order.
Norm = Literal["linf", "l1", "l2"]

# Half of the longest side, in grid points: coordinates fit 16 bits.
GRID_REACH = 2**14
# A number beyond this is outside; its distance does not matter.
_FAR = 4.0 * GRID_REACH
# With at most this many coordinates, each at most 2^15, no sum of their products leaves 2^53.
MOST_DIMENSIONS = 2**12


@dataclass(frozen=True, slots=True)
class Body(NormalForm):
    """Integer vectors z with |z_j| ≤ reach_j for every j, and for "l1" and "l2" with a norm of at most the radius.

    The radius of a ball is its reach, the same along every axis.

    >>> Body((4, 4)).l1, Body((4, 4)).l2_squared, Body((4, 4), "l1").l1
    (8, 32, 4)
    """

    reach: tuple[int, ...]
    norm: Norm = "linf"

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", tuple(integer_of(each, "reach") for each in self.reach))
        if self.norm not in get_args(Norm):
            raise BadParameter(f'norm is {self.norm!r}; it must be "linf", "l1" or "l2". Leave it out for a box.')
        if not 1 <= len(self.reach) <= MOST_DIMENSIONS:
            raise BadQuery(f"there are {len(self.reach)} coordinates; a point has 1 to {MOST_DIMENSIONS}.")
        if self.norm != "linf" and len(set(self.reach)) > 1:
            raise BadParameter(f"norm is {self.norm!r} and the bounds differ; a ball has one radius. Use a box.")

    @property
    def dimensions(self) -> int:
        """How many coordinates a point has."""
        return len(self.reach)

    @property
    def l1(self) -> int:
        """The largest sum of absolute coordinates."""
        if self.norm == "linf":
            return sum(self.reach)
        return self.reach[0] if self.norm == "l1" else isqrt(self.dimensions * self.reach[0] ** 2)

    @property
    def l2_squared(self) -> int:
        """The largest sum of squared coordinates."""
        return sum(side**2 for side in self.reach) if self.norm == "linf" else self.reach[0] ** 2

    @property
    def linf(self) -> int:
        """The largest coordinate."""
        return max(self.reach)

    def clipped(self, points: Floats) -> Floats:
        """The points (a column each) moved into the body, each by itself: cut off in a box, scaled down to a ball."""
        if self.norm == "linf":
            reach = np.array(self.reach, dtype=np.float64)[:, None]
            return np.clip(points, -reach, reach)
        return shrunk(points, self.reach[0], self.norm)


def shrunk(points: Floats, radius: int, norm: Norm) -> Floats:
    """Each point (a column of integers), scaled towards zero until its norm is at most the radius: integers again.

    A point z with norm above r becomes trunc(z r/t), with t the norm, rounded up to an integer. Truncating makes
    nothing longer, so the norm is at most r, exactly: kmeans.md, Lemma 2.

    >>> shrunk(np.array([[6.0, 1.0], [-8.0, 1.0]]), 5, "l2").tolist()
    [[3.0, 1.0], [-4.0, 1.0]]
    """
    length = norms(points, norm)
    # The factor is r/r = 1 for points that are short enough.
    length = np.maximum(length, radius)
    return np.trunc(points * radius / length)


def norms(points: Floats, norm: Norm) -> Floats:
    """The norm of each point (a column of integers), rounded up to an integer, exactly."""
    if norm == "linf":
        return np.asarray(np.abs(points).max(axis=0))
    if norm == "l1":
        return np.asarray(np.abs(points).sum(axis=0))
    squares = (points * points).sum(axis=0)
    root = np.floor(np.sqrt(squares))
    return np.asarray(root + (root * root < squares))


@dataclass(frozen=True, slots=True)
class Coordinate:
    """How the cells of a column become a coordinate: cell c, of the first `cells`, is at step·c + start."""

    column: str
    step: int
    start: int
    cells: int

    @property
    def reach(self) -> int:
        """The largest distance from the middle."""
        return -self.start


def coordinates_of(domain: Domain, columns: tuple[str, ...]) -> tuple[Coordinate, ...]:
    """The coordinates of columns of numbers, the middle of every declared range at 0 and its ends at about ±GRID_REACH.

    >>> coordinates_of(Domain({"age": Integers(0, 4)}), ("age",))
    (Coordinate(column='age', step=8192, start=-16384, cells=5),)
    """
    if not columns or len(set(columns)) < len(columns):
        raise BadQuery(f"columns is {columns!r}; points need different columns, at least one. Name them.")
    return tuple(_coordinate(name, domain) for name in columns)


def body_of(domain: Domain, columns: tuple[str, ...]) -> Body:
    """The box of the points that some columns of numbers make.

    >>> body_of(Domain({"age": Integers(0, 4), "hours": Integers(0, 99)}), ("age", "hours"))
    Body(reach=(16384, 16335), norm='linf')
    """
    return Body(tuple(each.reach for each in coordinates_of(domain, columns)))


def middle_and_step(domain: Domain, name: str) -> tuple[float, float]:
    """The value in the middle of the first declared cell of a column of numbers, and the step to the next."""
    column = domain[name]
    if isinstance(column, Integers):
        return float(column.lower), 1.0
    if isinstance(column, Bins) and column.kind == "number":
        ends = [*column.edges, column.top + 1 if column.whole else column.top]
        steps = {after - before for before, after in pairwise(ends)}
        if len(steps) == 1:
            step = steps.pop()
            return float(ends[0] + (step - (1 if column.whole else 0)) / 2), float(step)
        raise BadSchema(
            f'the bins of "{name}" differ in width; points need bins of one width. Leave the column out; the owner can '
            "declare it with even Bins or as Integers."
        )
    raise BadSchema(f'column "{name}" has no numbers; points need Integers or even Bins of numbers. Leave it out.')


def _coordinate(name: str, domain: Domain) -> Coordinate:
    middle_and_step(domain, name)
    column: Any = domain[name]
    last = column.inside - 1
    if last > 2 * GRID_REACH:
        raise BadSchema(
            f'"{name}" has {last + 1} cells; a coordinate has at most {2 * GRID_REACH + 1}. '
            "The owner can declare it with Bins."
        )
    # The middle is between two cells if there is an even number of them, so a step is two halves.
    half = max(1, round(GRID_REACH / last)) if last else 1
    return Coordinate(name, 2 * half, -half * last, column.inside)


@dataclass(frozen=True, slots=True)
class Grid:
    """How numbers become integers: x is at (x − middle)/unit, rounded and moved into the body."""

    middle: tuple[float, ...]
    units: tuple[float, ...]
    body: Body

    def rounded(self, rows: Floats) -> Floats:
        """Rows as integer points, a column each, moved into the body: number by number, then row by row."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows.T - np.array(self.middle)[:, None]) / np.array(self.units)[:, None]
        # Numbers far outside are cut off first; infinities and NaN must not become integers.
        return self.body.clipped(np.rint(np.clip(np.nan_to_num(scaled, nan=0.0), -_FAR, _FAR)))

    def values(self, points: Floats) -> Floats:
        """Integer points, a row each, as numbers."""
        return np.asarray(np.array(self.middle) + points * np.array(self.units))


def grid_of_columns(domain: Domain, columns: tuple[str, ...]) -> Grid:
    """The grid of columns of numbers, each scaled by its own declared range.

    >>> from discreet.schema.column import Integers
    >>> grid_of_columns(Domain({"age": Integers(0, 4)}), ("age",)).middle
    (2.0,)
    """
    coordinates = coordinates_of(domain, columns)
    first = [middle_and_step(domain, name) for name in columns]
    return Grid(
        tuple(start + step * (each.cells - 1) / 2 for (start, step), each in zip(first, coordinates, strict=True)),
        tuple(step / each.step for (_, step), each in zip(first, coordinates, strict=True)),
        body_of(domain, columns),
    )


# The largest weight and radius. The points of a chunk may represent 2^36 rows before a sum of vectors exceeds 2^53.
LARGEST_POINT_WEIGHT = 2**27
# The largest coordinate of a centre.
FARTHEST_CENTER = 2**20
# Points handled at a time: their distances to some centres stay in the processor's cache.
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
            raise BadQuery(f"bins is {self.bins}; there must be one number of at least 1 for each coordinate.")

    @property
    def size(self) -> int:
        """How many boxes there are."""
        return prod(self.bins)

    def measure(self, points: Floats, rows: Ints | None = None) -> Ints:
        """The counts, the last axis varying fastest. `rows` says how many rows each point represents."""
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
