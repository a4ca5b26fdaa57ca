"""Private k-means: a noisy grid to begin with, then a few rounds of Lloyd's algorithm with noisy counts and sums.

How the budget is divided follows from a forecast of the error, computed from what is public and what was released.
Proof, and the forecast: kmeans.md
"""

from dataclasses import dataclass
from math import exp, pi

import numpy as np
from numpy.typing import NDArray

from discreet.learn.look import Look
from discreet.learn.purse import Purse
from discreet.learn.seeds import Seeds, choose_bins, scattered_seeds, seeds_of_boxes
from discreet.mechanism.public import public
from discreet.query.body import Body, Norm
from discreet.query.clusters import LARGEST_POINT_WEIGHT, Boxes, Clusters
from discreet.types import Floats

Center = tuple[int, ...]

# The shares of the number of rows (where it is not public) and of the grid.
SHARE_OF_TOTAL, SHARE_OF_GRID = 0.03, 0.4
MOST_ROUNDS = 8
# A round leaves about this part of the error of the centres that it began with; from blobs, not from the benchmark.
KEPT = 0.4
# An error of this part of the spread of a cluster adds its square, a ten-thousandth, to the sum of squares.
ENOUGH = 0.01
# Vectors are cut off so many standard deviations above their usual length, or not at all.
_BEYOND = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
# A round gets at least this part of what the last one gets.
_LEAST = 1 / 64
_WEIGHTS = 2.0 ** np.arange(-6, 3.5, 0.5)


@dataclass(frozen=True, slots=True)
class Fit:
    """What was found: centres in grid points, and after each round the centres that were then."""

    centers: tuple[Center, ...]
    path: tuple[tuple[Center, ...], ...]

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.path) - 1


def fit(look: Look, clusters: int, purse: Purse, rounds: int | None = None) -> Fit:
    """Centres, for the whole of a purse and not more. Everything it decides follows from releases."""
    body, left = look.body, 1.0
    total = Boxes(body, (1,) * body.dimensions, look.columns)
    if look.sensitivity(total).l1 == 0:
        rows = float(public().release(look.evaluate(total))[0])
    else:
        left -= SHARE_OF_TOTAL
        rows = float(_released(look, total, purse, SHARE_OF_TOTAL)[0])
    seeds, spent = _seeds(look, clusters, purse, rows)
    plan = plan_rounds(purse, left - spent, body, seeds, rounds)
    centers, error = seeds.centers, seeds.error
    path = [_snapped(centers, body)]
    counts = seeds.rows
    for share in plan:
        step = best_step(purse, share, body, path[-1], counts, seeds.spread, error)
        question = Clusters(body, path[-1], step.weight, step.radius, step.norm, look.columns)
        noisy = _released(look, question, purse, share).reshape(clusters, -1).astype(np.float64)
        found = noisy[:, 0] / step.weight
        # Of a cluster with hardly any rows the noise says nothing: it stays where it is.
        counts = np.where(found > 0, found, np.minimum(counts, 1.0))
        surely = found > 2 * step.count_deviation
        sums = noisy[:, 1:] if step.radius is not None else noisy[:, 1:] - found[:, None] * np.array(path[-1])
        move = sums / np.maximum(found, 1.0)[:, None]
        pull = trust(error, step.error)
        centers = np.array(path[-1]) + np.where(surely[:, None], pull * move, 0.0)
        error = after(error, step.error)
        path.append(_snapped(centers, body))
    return Fit(path[-1], tuple(path))


def _seeds(look: Look, clusters: int, purse: Purse, rows: float) -> tuple[Seeds, float]:
    """Where to begin, and the share that it cost."""
    body = look.body
    halves = Boxes(body, (2,) + (1,) * (body.dimensions - 1), look.columns)
    moves = look.sensitivity(halves)
    deviation = purse.variance(SHARE_OF_GRID, float(moves.l1), float(moves.l2_squared)) ** 0.5
    bins = choose_bins(body, clusters, rows, deviation)
    boxes = Boxes(body, bins, look.columns)
    if boxes.size == 1:
        return scattered_seeds(body, rows, clusters), 0.0
    noisy = _released(look, boxes, purse, SHARE_OF_GRID)
    side = 2 * max(body.reach) / max(bins)
    return seeds_of_boxes(boxes.middles(), noisy, rows, clusters, side=side, deviation=deviation), SHARE_OF_GRID


def _released(look: Look, question: Boxes | Clusters, purse: Purse, share: float) -> NDArray[np.int64]:
    mechanism = purse.mechanism(purse.part(share), look.sensitivity(question))
    return mechanism.release(look.evaluate(question))


def _snapped(centers: Floats, body: Body) -> tuple[Center, ...]:
    """The nearest grid points of the body."""
    inside = body.clipped(np.rint(np.clip(centers, -(2.0**20), 2.0**20)).T).T
    return tuple(tuple(int(place) for place in center) for center in inside)


def require_drawable(look: Look, clusters: int, purse: Purse) -> None:
    """Refuse, before anything is paid, a budget so small that its noise cannot be drawn."""
    body = look.body
    widest = Clusters(
        body, ((0,) * body.dimensions,) * clusters, min(8 * body.l1 + 1, LARGEST_POINT_WEIGHT), columns=look.columns
    )
    purse.mechanism(purse.part(1 / 1000), look.sensitivity(widest))


# --- The forecast ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """What a round asks: the weight of counts, where vectors are cut off; and what error that gives a coordinate."""

    weight: int
    radius: int | None
    norm: Norm
    error: float
    count_deviation: float


def best_step(
    purse: Purse, share: float, body: Body, centers: tuple[Center, ...], counts: Floats, spread: float, error: float
) -> Step:
    """The weight and the radius with the least predicted error, for a share of the purse."""
    norm: Norm = "l1" if purse.noise == "laplace" else "l2"
    norm = body.norm if body.norm == "l1" else norm
    dimensions, mass = body.dimensions, np.maximum(counts, 1.0)
    # The excess of squared distances is Σ n_j·error_j², and the error of a mean of n_j rows falls with n_j.
    few = float((1 / mass).sum() / mass.sum())
    away = float((np.array(centers, dtype=np.float64) ** 2).sum(axis=1).mean())
    near = dimensions * max(error, spread / 10) ** 2
    best: Step | None = None
    for beyond in (None, *_BEYOND):
        radius = None if beyond is None else cut(norm, dimensions, spread, beyond)
        if radius is not None and radius >= (body.l1 if norm == "l1" else body.l2_squared**0.5):
            continue
        length = body.l1 if radius is None else radius
        squared = body.l2_squared if radius is None else radius**2
        bias = 0.0 if beyond is None else spread * exp(-beyond - 1)
        # Relations and rows of persons change every variance by about the same factor, so this is for one row.
        weights = np.maximum(np.rint(_WEIGHTS * (length if norm == "l1" else squared**0.5)), 1.0)
        variances = purse.variance(share, weights + length, weights**2 + squared)
        shift = away if radius is None else near
        errors = (variances * (dimensions + shift / weights**2) * few / dimensions + bias**2) ** 0.5
        least = int(np.argmin(errors))
        # Looking at whole vectors is quicker, so they are cut off only where that gains something.
        if best is None or errors[least] ** 2 < best.error**2 - (best.radius is None) * (ENOUGH * spread) ** 2:
            deviation = float(variances[least] ** 0.5 / weights[least])
            best = Step(min(int(weights[least]), LARGEST_POINT_WEIGHT), radius, norm, float(errors[least]), deviation)
    assert best is not None
    return best


def cut(norm: Norm, dimensions: int, spread: float, beyond: float) -> int:
    """A length so many standard deviations above the mean length of a Gaussian vector."""
    if norm == "l1":
        usual, deviation = dimensions * (2 / pi) ** 0.5, (dimensions * (1 - 2 / pi)) ** 0.5
    else:
        usual, deviation = dimensions**0.5, 0.5**0.5
    return max(1, min(LARGEST_POINT_WEIGHT, int(spread * (usual + beyond * deviation) + 0.5)))


def trust(before: float, noise: float) -> float:
    """How far to go towards a new estimate: all the way, or less if it is noisier than what was known is wrong."""
    gain = (1 - KEPT) * before**2
    return min(1.0, gain / ((1 - KEPT) ** 2 * before**2 + noise**2)) if gain else 0.0


def after(before: float, noise: float) -> float:
    """The error of a centre after a round that began with one and had the other."""
    pull = trust(before, noise)
    return float(((1 - pull * (1 - KEPT)) ** 2 * before**2 + pull**2 * noise**2) ** 0.5)


def plan_rounds(purse: Purse, left: float, body: Body, seeds: Seeds, rounds: int | None) -> list[float]:
    """The share of each round: as few rounds as leave hardly more than the least error, later ones with more."""
    centers = _snapped(seeds.centers, body)

    def outcome(shares: list[float]) -> float:
        error = seeds.error
        for share in shares:
            error = after(error, best_step(purse, share, body, centers, seeds.rows, seeds.spread, error).error)
        return error

    plans = [shares_of(number, left, purse.power) for number in ([rounds] if rounds else range(1, MOST_ROUNDS + 1))]
    errors = [outcome(plan) ** 2 for plan in plans]
    return next(
        plan for plan, error in zip(plans, errors, strict=True) if error <= min(errors) + (ENOUGH * seeds.spread) ** 2
    )


def foreseen(look: Look, clusters: int, purse: Purse) -> float:
    """About the error of a centre, before anything is known of the rows: for choosing between two kinds of noise."""
    body = look.body
    rows, spread = 1000.0 * clusters, max(body.reach) / 8
    seeds = Seeds(np.zeros((clusters, body.dimensions)), np.full(clusters, rows / clusters), spread, spread / 2)
    shares = plan_rounds(purse, 1 - SHARE_OF_TOTAL - SHARE_OF_GRID, body, seeds, None)
    error = seeds.error
    for share in shares:
        error = after(
            error, best_step(purse, share, body, _snapped(seeds.centers, body), seeds.rows, spread, error).error
        )
    return error


def shares_of(rounds: int, left: float, power: int) -> list[float]:
    """The noise of a round is damped by those after it, so the best shares grow by the same factor each time.

    Σ KEPT^(2(T − t))/share_t^p is least where share_t is as KEPT^(2(T − t)/(1 + p)).

    >>> [round(share, 3) for share in shares_of(3, 1.0, 2)]
    [0.16, 0.295, 0.544]
    """
    sizes = [max(KEPT ** (2 * (rounds - 1 - place) / (1 + power)), _LEAST) for place in range(rounds)]
    return [left * size / sum(sizes) for size in sizes]
