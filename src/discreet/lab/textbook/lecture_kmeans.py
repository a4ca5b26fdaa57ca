"""The lecture's private k-means, exactly as in the notes. Proof: kmeans.md"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.lab.random import normals, truths, uniforms
from discreet.learn.kmeans.lloyd import Center, Clustering
from discreet.learn.kmeans.noisy_points import PrivatePoints
from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.query.points import FARTHEST_CENTER, Body, Clusters
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import points_sensitivity

LECTURE_ROUNDS = 6


def lecture_fit(
    points: PrivatePoints, clusters: int, *, epsilon: Fraction, rounds: int | None = None, average: int = 1
) -> Clustering:
    """Algorithm 2 of the notes: T rounds, in each of them noise Lap(2/e') on all counts and sums, with e' = e/2T.

    There are 6 rounds by default. The unit of length is the largest L1 norm of a point, so that ‖x‖₁ ≤ 1.
    The first centres are uniform in the body; so is the next centre of a cluster whose noisy count is below 1. The
    centres of the last round are the answer, or the means over the last `average` rounds. A count is a whole number of
    rows and a sum one of grid points; counted in grid points too, all of them get the same discrete noise, at once.

    The noise is for replacing a row (sensitivity 2), so it is more than enough for adding or removing one.

    [002 Alg. 2; 002 Prop. 2.1]; proof: kmeans.md
    """
    rounds = rounds or LECTURE_ROUNDS
    body, unit_length = points.body, max(1, points.body.l1)
    centers = uniform_centers(body, clusters)
    path = [centers]
    for _ in range(rounds):
        question = Clusters(body, centers, weight=unit_length, columns=points.columns)
        mechanism = lecture_round(question, points.unit, epsilon=epsilon, rounds=rounds)
        noisy = mechanism.release(points.evaluate(question)).reshape(clusters, -1).astype(np.float64)
        counts = noisy[:, :1] / unit_length
        means = np.rint(np.clip(noisy[:, 1:] / np.maximum(counts, 1.0), -FARTHEST_CENTER, FARTHEST_CENTER))
        fresh = uniform_centers(body, clusters)
        centers = tuple(
            tuple(int(place) for place in mean) if count >= 1 else anew
            for count, mean, anew in zip(counts[:, 0], means, fresh, strict=True)
        )
        path.append(centers)
    last = np.rint(np.mean(np.array(path[max(1, len(path) - average) :]), axis=0))
    return Clustering(tuple(tuple(int(place) for place in center) for center in last), tuple(path))


def lecture_round(question: Clusters, unit: Unit, *, epsilon: Fraction, rounds: int) -> Mechanism[NDArray[np.int64]]:
    """The noise of one round: e/T-DP, of scale 2/e' in units of rows and of ‖x‖₁ = 1."""
    exchange = Unit(unit.key, unit.contributions, "replace_one")
    return laplace(epsilon=epsilon / rounds, sensitivity=points_sensitivity(question, exchange, droppable=True))


def uniform_centers(body: Body, many: int) -> tuple[Center, ...]:
    """Grid points uniform in a body, up to rounding; they depend on no row.

    >>> len(uniform_centers(Body((5, 5), "l1"), 3))
    3
    """
    size = body.dimensions
    if body.norm == "linf":
        drawn = 2 * uniforms(size, many) - 1
    elif body.norm == "l2":
        normal = normals(size, many)
        drawn = normal / np.sqrt((normal**2).sum(axis=0)) * uniforms(many) ** (1 / size)
    else:
        # The gaps between sorted uniform numbers are uniform in the simplex.
        steps = np.diff(np.sort(uniforms(size, many), axis=0), axis=0, prepend=0.0)
        drawn = np.where(truths(0.5, size, many), steps, -steps)
    inside = body.clipped(np.rint(drawn * np.array(body.reach, dtype=np.float64)[:, None]))
    return tuple(tuple(int(place) for place in point) for point in inside.T)
