"""Private k-means: seeds from a noisy grid of counts, then a few rounds of Lloyd's algorithm with noisy sums.

The budget is split by a forecast of the error, which is computed from public values and from what was released.
Proof, and the forecast: kmeans.md
"""

from dataclasses import dataclass
from math import exp, pi

import numpy as np
from numpy.typing import NDArray

from discreet.learn.kmeans.noisy_points import BudgetSplit, PrivatePoints
from discreet.learn.kmeans.seeding import Seeds, choose_bins, scattered_seeds, seeds_of_boxes
from discreet.mechanism.public import public
from discreet.query.points import LARGEST_POINT_WEIGHT, Body, Boxes, Clusters, Norm
from discreet.types import Floats

Center = tuple[int, ...]

# The shares of the number of rows (where it is not public) and of the grid.
TOTAL_SHARE, GRID_SHARE = 0.03, 0.4
MOST_PLANNED_ROUNDS = 8
# A round without noise leaves about this part of the error of its centres; measured on blobs, not on the benchmark.
CONTRACTION = 0.4
# Errors below this part of the spread of a cluster do not matter: they add its square to the sum of squares.
NEGLIGIBLE_ERROR = 0.01
# Vectors are clipped at a norm this many standard deviations above the mean norm, or not at all.
_DEVIATIONS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
# A round gets at least this part of what the last one gets.
_LEAST_SHARE = 1 / 64
_WEIGHTS = 2.0 ** np.arange(-6, 3.5, 0.5)


@dataclass(frozen=True, slots=True)
class Clustering:
    """The centres, in grid points, and the path to them: the centres at the start and after each round."""

    centers: tuple[Center, ...]
    path: tuple[tuple[Center, ...], ...]

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.path) - 1


def fit_centers(points: PrivatePoints, clusters: int, budget: BudgetSplit, rounds: int | None = None) -> Clustering:
    """Find centres, for at most the whole of a budget. Every decision follows from what was released."""
    body, left = points.body, 1.0
    total = Boxes(body, (1,) * body.dimensions, points.columns)
    if points.sensitivity(total).l1 == 0:
        rows = float(public().release(points.evaluate(total))[0])
    else:
        left -= TOTAL_SHARE
        rows = float(_measure(points, total, budget, TOTAL_SHARE)[0])
    seeds, spent = _seeds(points, clusters, budget, rows)
    plan = round_shares(budget, left - spent, body, seeds, rounds)
    centers, error = seeds.centers, seeds.error
    path = [_snap(centers, body)]
    counts = seeds.rows
    for share in plan:
        step = best_step(budget, share, body, path[-1], counts, seeds.spread, error)
        question = Clusters(body, path[-1], step.weight, step.radius, step.norm, points.columns)
        noisy = _measure(points, question, budget, share).reshape(clusters, -1).astype(np.float64)
        found = noisy[:, 0] / step.weight
        # In a cluster with hardly any rows the noise dominates: its centre stays where it is.
        counts = np.where(found > 0, found, np.minimum(counts, 1.0))
        is_large = found > 2 * step.count_deviation
        sums = noisy[:, 1:] if step.radius is not None else noisy[:, 1:] - found[:, None] * np.array(path[-1])
        move = sums / np.maximum(found, 1.0)[:, None]
        pull = step_length(error, step.error)
        centers = np.array(path[-1]) + np.where(is_large[:, None], pull * move, 0.0)
        error = error_after(error, step.error)
        path.append(_snap(centers, body))
    return Clustering(path[-1], tuple(path))


def _seeds(points: PrivatePoints, clusters: int, budget: BudgetSplit, rows: float) -> tuple[Seeds, float]:
    """The first centres, and the share of the budget that they cost."""
    body = points.body
    halves = Boxes(body, (2,) + (1,) * (body.dimensions - 1), points.columns)
    moves = points.sensitivity(halves)
    deviation = budget.variance(GRID_SHARE, float(moves.l1), float(moves.l2_squared)) ** 0.5
    bins = choose_bins(body, clusters, rows, deviation)
    boxes = Boxes(body, bins, points.columns)
    if boxes.size == 1:
        return scattered_seeds(body, rows, clusters), 0.0
    noisy = _measure(points, boxes, budget, GRID_SHARE)
    side = 2 * max(body.reach) / max(bins)
    return seeds_of_boxes(boxes.middles(), noisy, rows, clusters, side=side, deviation=deviation), GRID_SHARE


def _measure(points: PrivatePoints, question: Boxes | Clusters, budget: BudgetSplit, share: float) -> NDArray[np.int64]:
    mechanism = budget.mechanism(budget.part(share), points.sensitivity(question))
    return mechanism.release(points.evaluate(question))


def _snap(centers: Floats, body: Body) -> tuple[Center, ...]:
    """The nearest grid points of the body."""
    inside = body.clipped(np.rint(np.clip(centers, -(2.0**20), 2.0**20)).T).T
    return tuple(tuple(int(place) for place in center) for center in inside)


def require_drawable(points: PrivatePoints, clusters: int, budget: BudgetSplit) -> None:
    """Raise, before anything is paid, if the budget is so small that its noise cannot be drawn."""
    body = points.body
    widest = Clusters(
        body, ((0,) * body.dimensions,) * clusters, min(8 * body.l1 + 1, LARGEST_POINT_WEIGHT), columns=points.columns
    )
    budget.mechanism(budget.part(1 / 1000), points.sensitivity(widest))


# --- The forecast ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LloydStep:
    """The parameters of a round, weight of counts and clipping radius; and the predicted error of a coordinate."""

    weight: int
    radius: int | None
    norm: Norm
    error: float
    count_deviation: float


def best_step(
    budget: BudgetSplit,
    share: float,
    body: Body,
    centers: tuple[Center, ...],
    counts: Floats,
    spread: float,
    error: float,
) -> LloydStep:
    """The weight and the radius with the least predicted error, for a share of the budget."""
    norm: Norm = "l1" if budget.noise == "laplace" else "l2"
    norm = body.norm if body.norm == "l1" else norm
    dimensions, mass = body.dimensions, np.maximum(counts, 1.0)
    # The excess of squared distances is Σ n_j·error_j², and the error of a mean of n_j rows falls with n_j.
    few = float((1 / mass).sum() / mass.sum())
    from_origin = float((np.array(centers, dtype=np.float64) ** 2).sum(axis=1).mean())
    from_center = dimensions * max(error, spread / 10) ** 2
    best: LloydStep | None = None
    for beyond in (None, *_DEVIATIONS):
        radius = None if beyond is None else clipping_radius(norm, dimensions, spread, beyond)
        if radius is not None and radius >= (body.l1 if norm == "l1" else body.l2_squared**0.5):
            continue
        length = body.l1 if radius is None else radius
        squared = body.l2_squared if radius is None else radius**2
        bias = 0.0 if beyond is None else spread * exp(-beyond - 1)
        # Neighbours and contributions change every variance by about the same factor, so this is for one added row.
        weights = np.maximum(np.rint(_WEIGHTS * (length if norm == "l1" else squared**0.5)), 1.0)
        variances = budget.variance(share, weights + length, weights**2 + squared)
        shift = from_origin if radius is None else from_center
        errors = (variances * (dimensions + shift / weights**2) * few / dimensions + bias**2) ** 0.5
        least = int(np.argmin(errors))
        # Unclipped vectors are measured faster, so they are clipped only where that lowers the error.
        if (
            best is None
            or errors[least] ** 2 < best.error**2 - (best.radius is None) * (NEGLIGIBLE_ERROR * spread) ** 2
        ):
            deviation = float(variances[least] ** 0.5 / weights[least])
            best = LloydStep(
                min(int(weights[least]), LARGEST_POINT_WEIGHT), radius, norm, float(errors[least]), deviation
            )
    assert best is not None
    return best


def clipping_radius(norm: Norm, dimensions: int, spread: float, beyond: float) -> int:
    """A norm `beyond` standard deviations above the mean norm of a Gaussian vector."""
    if norm == "l1":
        usual, deviation = dimensions * (2 / pi) ** 0.5, (dimensions * (1 - 2 / pi)) ** 0.5
    else:
        usual, deviation = dimensions**0.5, 0.5**0.5
    return max(1, min(LARGEST_POINT_WEIGHT, int(spread * (usual + beyond * deviation) + 0.5)))


def step_length(before: float, noise: float) -> float:
    """The part of the way to a new estimate: all of it, or less if its noise exceeds the error of the centre."""
    gain = (1 - CONTRACTION) * before**2
    return min(1.0, gain / ((1 - CONTRACTION) ** 2 * before**2 + noise**2)) if gain else 0.0


def error_after(before: float, noise: float) -> float:
    """Centre error after one noisy Lloyd step from error `before` with noise `noise`."""
    pull = step_length(before, noise)
    return float(((1 - pull * (1 - CONTRACTION)) ** 2 * before**2 + pull**2 * noise**2) ** 0.5)


def round_shares(budget: BudgetSplit, left: float, body: Body, seeds: Seeds, rounds: int | None) -> list[float]:
    """The growing shares of the rounds; as few rounds as have nearly the least predicted error."""
    centers = _snap(seeds.centers, body)

    def outcome(shares: list[float]) -> float:
        error = seeds.error
        for share in shares:
            error = error_after(error, best_step(budget, share, body, centers, seeds.rows, seeds.spread, error).error)
        return error

    plans = [
        growing_shares(number, left, budget.power)
        for number in ([rounds] if rounds else range(1, MOST_PLANNED_ROUNDS + 1))
    ]
    errors = [outcome(plan) ** 2 for plan in plans]
    return next(
        plan
        for plan, error in zip(plans, errors, strict=True)
        if error <= min(errors) + (NEGLIGIBLE_ERROR * seeds.spread) ** 2
    )


def predicted_error(points: PrivatePoints, clusters: int, budget: BudgetSplit) -> float:
    """The predicted error of a centre for a typical table; the kind of noise is chosen by it."""
    body = points.body
    rows, spread = 1000.0 * clusters, max(body.reach) / 8
    seeds = Seeds(np.zeros((clusters, body.dimensions)), np.full(clusters, rows / clusters), spread, spread / 2)
    shares = round_shares(budget, 1 - TOTAL_SHARE - GRID_SHARE, body, seeds, None)
    error = seeds.error
    for share in shares:
        error = error_after(
            error, best_step(budget, share, body, _snap(seeds.centers, body), seeds.rows, spread, error).error
        )
    return error


def growing_shares(rounds: int, left: float, power: int) -> list[float]:
    """The shares of the rounds, `left` in all: later rounds damp the noise of earlier ones, so the best shares grow.

    Σ CONTRACTION^(2(T − t))/share_t^p is least where share_t is as CONTRACTION^(2(T − t)/(1 + p)).

    >>> [round(share, 3) for share in growing_shares(3, 1.0, 2)]
    [0.16, 0.295, 0.544]
    """
    sizes = [max(CONTRACTION ** (2 * (rounds - 1 - place) / (1 + power)), _LEAST_SHARE) for place in range(rounds)]
    return [left * size / sum(sizes) for size in sizes]
