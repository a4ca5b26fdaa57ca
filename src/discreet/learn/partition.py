"""k-means of a few weighted places: what is done with released numbers, the same way every time."""

from typing import NamedTuple

import numpy as np

from discreet.types import Floats

# How many places are tried as a further centre, and how often centres move.
_TRIED, _MOVES = 64, 60
# A swap must gain at least this part of what is left.
_GAIN = 1e-3


class Partition(NamedTuple):
    """Centres, the weight of each, and the mean squared distance to them."""

    centers: Floats
    weights: Floats
    cost: float


def partition(places: Floats, weights: Floats, clusters: int) -> Partition:
    """Centres of weighted places (rows) that leave a small sum of squared distances.

    Centres are added one by one, where they help most; then they move to the means of their places; then the one that
    is missed least is taken to where it helps most, as long as that helps. Nothing is random.

    >>> partition(np.array([[0.0], [1.0], [9.0]]), np.array([1.0, 1.0, 2.0]), 2).centers.ravel().tolist()
    [0.5, 9.0]
    """
    centers = np.empty((0, places.shape[1]))
    for _ in range(clusters):
        centers = np.vstack([centers, _best_further(places, weights, _gaps(places, centers))])
    best = _settled(places, weights, centers)
    for _ in range(3 * clusters):
        if clusters == 1:
            break
        more = np.vstack([best.centers, _best_further(places, weights, _gaps(places, best.centers))])
        trial = _settled(places, weights, np.delete(more, _least_missed(places, weights, more), axis=0))
        if trial.cost > best.cost * (1 - _GAIN):
            break
        best = trial
    return best


def _gaps(places: Floats, centers: Floats) -> Floats:
    """The squared distance of each place to its nearest centre; of all places to the origin, if there is none."""
    if not len(centers):
        return np.full(len(places), np.inf)
    return np.asarray(_squares(places, centers).min(axis=1))


def _squares(places: Floats, centers: Floats) -> Floats:
    squares = (places**2).sum(axis=1)[:, None] - 2 * places @ centers.T + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(squares, 0.0))


def _best_further(places: Floats, weights: Floats, gaps: Floats) -> Floats:
    """The place that, as a further centre, leaves least; the mean, if it is the first."""
    if np.isinf(gaps).all():
        return np.asarray(np.average(places, axis=0, weights=weights))
    likely = np.argsort(-weights * gaps, kind="stable")[:_TRIED]
    left = np.minimum(gaps[:, None], _squares(places, places[likely]))
    return np.asarray(places[likely[int(np.argmin(weights @ left))]])


def _least_missed(places: Floats, weights: Floats, centers: Floats) -> int:
    """The centre without which the others do best, the last one excepted."""
    squares = _squares(places, centers)
    order = np.argpartition(squares, 1, axis=1)[:, :2]
    rows = np.arange(len(places))
    worse = weights * (squares[rows, order[:, 1]] - squares[rows, order[:, 0]])
    missed = np.bincount(order[:, 0], worse, minlength=len(centers))
    return int(np.argmin(missed[:-1]))


def _settled(places: Floats, weights: Floats, centers: Floats) -> Partition:
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
