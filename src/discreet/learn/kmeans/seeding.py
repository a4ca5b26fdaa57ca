"""Seeds of k-means: the clusters of a noisy grid of counts, or, if no grid helps, points at large distances.

The clusters of the grid come from a greedy k-means of its weighted cells, with swaps; it is deterministic and uses
released numbers only.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.query.points import Body
from discreet.types import Floats

# The number of places that are tried as a further centre, and the most iterations of moving centres.
_TRIED, _MOVES = 64, 60
# A swap must lower the cost by at least this part.
_GAIN = 1e-3


class Partition(NamedTuple):
    """Centres, the weight of each, and the mean squared distance to them."""

    centers: Floats
    weights: Floats
    cost: float


def partition(places: Floats, weights: Floats, clusters: int) -> Partition:
    """Centres of weighted places (rows) with a small sum of squared distances.

    Centres are added greedily, one by one; then they move to the means of their places; then the one whose removal
    costs least is moved to the best further place, as long as that lowers the cost. Nothing is random.

    >>> partition(np.array([[0.0], [1.0], [9.0]]), np.array([1.0, 1.0, 2.0]), 2).centers.ravel().tolist()
    [0.5, 9.0]
    """
    centers = np.empty((0, places.shape[1]))
    for _ in range(clusters):
        centers = np.vstack([centers, _best_further(places, weights, _gaps(places, centers))])
    best = _lloyd(places, weights, centers)
    for _ in range(3 * clusters):
        if clusters == 1:
            break
        more = np.vstack([best.centers, _best_further(places, weights, _gaps(places, best.centers))])
        trial = _lloyd(places, weights, np.delete(more, _cheapest_removal(places, weights, more), axis=0))
        if trial.cost > best.cost * (1 - _GAIN):
            break
        best = trial
    return best


def _gaps(places: Floats, centers: Floats) -> Floats:
    """The squared distance of each place to its nearest centre; infinite if there is none."""
    if not len(centers):
        return np.full(len(places), np.inf)
    return np.asarray(_squares(places, centers).min(axis=1))


def _squares(places: Floats, centers: Floats) -> Floats:
    squares = (places**2).sum(axis=1)[:, None] - 2 * places @ centers.T + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(squares, 0.0))


def _best_further(places: Floats, weights: Floats, gaps: Floats) -> Floats:
    """The place that, as a further centre, leaves the least cost; the mean, if it is the first."""
    if np.isinf(gaps).all():
        return np.asarray(np.average(places, axis=0, weights=weights))
    likely = np.argsort(-weights * gaps, kind="stable")[:_TRIED]
    left = np.minimum(gaps[:, None], _squares(places, places[likely]))
    return np.asarray(places[likely[int(np.argmin(weights @ left))]])


def _cheapest_removal(places: Floats, weights: Floats, centers: Floats) -> int:
    """The centre, but for the last one, whose removal leaves the least cost."""
    squares = _squares(places, centers)
    order = np.argpartition(squares, 1, axis=1)[:, :2]
    rows = np.arange(len(places))
    worse = weights * (squares[rows, order[:, 1]] - squares[rows, order[:, 0]])
    removal_cost = np.bincount(order[:, 0], worse, minlength=len(centers))
    return int(np.argmin(removal_cost[:-1]))


def _lloyd(places: Floats, weights: Floats, centers: Floats) -> Partition:
    """Move centres to the means of their places until that changes nothing."""
    many = len(centers)
    for _ in range(_MOVES):
        labels = np.argmin(_squares(places, centers), axis=1)
        mass = np.bincount(labels, weights, minlength=many)
        sums = np.array([np.bincount(labels, weights * axis, minlength=many) for axis in places.T]).T
        moved = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], centers)
        if np.allclose(moved, centers, rtol=0, atol=1e-9 * np.abs(places).max() + 1e-300):
            break
        centers = moved
    squares = _squares(places, centers)
    labels = np.argmin(squares, axis=1)
    mass = np.bincount(labels, weights, minlength=many)
    return Partition(centers, mass.astype(np.float64), float(weights @ squares.min(axis=1) / weights.sum()))


# As many boxes as Su et al. found best: (n·epsilon/10)^(2d/(2 + d)); but never more than the second number, and only
# while the noise of all boxes together is at most the third number times the rows.
_TEN, MOST_BOXES, _NOISE = 10.0, 2**17, 2.5
# And at least this many for each cluster.
_PER_CLUSTER = 3
# Points among which those at large distances from each other are chosen.
_DRAWN = 1024


@dataclass(frozen=True, slots=True)
class Seeds:
    """Centres to begin with and what is known of their clusters, all in grid points.

    `rows` is the approximate number of rows of each, `spread` the root mean square distance of a coordinate from its
    centre, and `error` the approximate one of a coordinate of a centre from the best centre.
    """

    centers: Floats
    rows: Floats
    spread: float
    error: float


def choose_bins(body: Body, clusters: int, rows: float, deviation: float) -> tuple[int, ...]:
    """The number of boxes along each axis, for about this number of rows and this deviation of the noise of a count.

    One along every axis means that no grid helps.

    >>> choose_bins(Body((16384, 16384)), 3, 2000, 7)
    (6, 6)
    """
    dimensions, longest = body.dimensions, max(1, *body.reach)
    wanted = (max(rows, 1.0) * 2**0.5 / deviation / _TEN) ** (2 / (2 + dimensions))

    def bins(sides: int) -> tuple[int, ...]:
        return tuple(max(1, min(round(sides * side / longest), 2 * side + 1)) for side in body.reach)

    # Two along each axis show at least on which side of the middle the rows are.
    least = next((sides for sides in range(2, MOST_BOXES + 1) if prod(bins(sides)) >= _PER_CLUSTER * clusters), 2)
    sides = max(least, round(wanted))
    while sides > least and (prod(bins(sides)) > MOST_BOXES or prod(bins(sides)) * deviation > _NOISE * rows):
        sides -= 1
    return bins(sides) if prod(bins(sides)) <= MOST_BOXES else (1,) * dimensions


def seeds_of_boxes(
    middles: Floats, noisy: NDArray[np.int64], rows: float, clusters: int, *, side: float, deviation: float
) -> Seeds:
    """The clusters of the boxes, weighted by their noisy counts after projection to possible counts."""
    weights = nearest_counts(noisy.astype(np.float64), max(rows, 1.0))
    kept = weights > 0
    found = partition(middles[kept], weights[kept], clusters)
    dimensions = middles.shape[1]
    spread = (found.cost / dimensions) ** 0.5
    mass = np.maximum(found.weights, 1.0)
    # The variance of a cluster's mean by the noise of its boxes, and by the size of the boxes.
    boxes = kept.sum() / clusters
    noise = deviation**2 * boxes * spread**2 * float((1 / mass).mean()) ** 2
    return Seeds(found.centers, mass, max(spread, side / 12**0.5), float((noise + side**2 / 24) ** 0.5))


def nearest_counts(noisy: Floats, total: float) -> Floats:
    """The nearest numbers that are not negative and have this sum (projection to the simplex).

    >>> nearest_counts(np.array([5.0, -3.0, 1.0]), 4.0).tolist()
    [4.0, 0.0, 0.0]
    """
    down = np.sort(noisy)[::-1]
    shifts = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    last = int(np.flatnonzero(down > shifts)[-1])
    return np.asarray(np.maximum(noisy - shifts[last], 0.0))


def scattered_seeds(body: Body, rows: float, clusters: int) -> Seeds:
    """Centres at large distances from each other and inside the body, chosen without reading a row.

    Of many points drawn uniformly in the half of the body about the middle, each next one is that at the largest
    distance from those before: a greedy packing of spheres.
    """
    half = Body(tuple(max(1, side // 2) for side in body.reach), body.norm)
    reach = np.array(half.reach, dtype=np.float64)[:, None]
    uniform = np.reshape(noise.uniform_below(2**40, size=body.dimensions * _DRAWN), (body.dimensions, _DRAWN)) / 2**40
    drawn = half.clipped(np.rint((2 * uniform - 1) * reach)).T
    chosen = [0]
    gaps = ((drawn - drawn[0]) ** 2).sum(axis=1)
    while len(chosen) < clusters:
        chosen.append(int(np.argmax(gaps)))
        gaps = np.minimum(gaps, ((drawn - drawn[chosen[-1]]) ** 2).sum(axis=1))
    spread = (sum(side**2 for side in half.reach) / body.dimensions / 3) ** 0.5
    return Seeds(drawn[chosen], np.full(clusters, max(rows, clusters) / clusters), spread, spread)
