"""The error of marginals by noise alone: a forecast from public facts, before anything is paid.

Errors are Σ |answer − truth| over the cells of a marginal, over the number of rows: from 0 to 2 for tables, and without
limit for raw numbers. A model that knows more than one marginal at a time has less error than any of these. Proofs:
allocate.md §6
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, pi, prod, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import histogram_sensitivity
from discreet.numeric import Number, positive
from discreet.release.error.interactions import Spread, guessed_column
from discreet.release.methods.residual_workload import asked_marginals
from discreet.release.task import Goal, Precisions
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.types import Columns, Numbers

NoiseShape = Literal["gaussian", "laplace"]


@dataclass(frozen=True, slots=True)
class NoiseErrorTuning:
    """Constants of the forecast. Set by hand: they bound its work and its rounding."""

    # Cells are put into at most this many groups of similar counts; smaller cells, relative to the largest, are one.
    most_groups: int = 256
    smallest_count: float = 1e-12
    # Halvings of the interval in which the level of the projection is searched.
    halvings: int = 60


NOISE_ERROR = NoiseErrorTuning()


def spread_of(counts: "NDArray[np.float64] | NDArray[np.int64]") -> Spread:
    """The spread of a table of *public* counts, say of a model: no true table is a public one.

    >>> spread_of(np.array([5, 0, 5, 2])).counts.tolist(), spread_of(np.array([5, 0, 5, 2])).cells.tolist()
    ([0.0, 2.0, 5.0], [1.0, 1.0, 2.0])
    """
    values, times = np.unique(np.asarray(counts, dtype=np.float64), return_counts=True)
    return _grouped(values, times.astype(np.float64))


def guessed_spread(domain: Domain, columns: Iterable[str], rows: float) -> Spread:
    """A guess from public sizes: in each column the shares of the cells are as r^−s, and columns are independent.

    where s is `InteractionTuning.cell_exponent` and r = 1, 2, … numbers the cells of a column.

    >>> from discreet.schema.column import Categories
    >>> guessed_spread(Domain({"city": Categories([*"abc"], outside="a", missing="a")}), ["city"], 49).counts.round(6)
    array([ 4.,  9., 36.])
    """
    found = Spread(np.array([float(rows)]), np.ones(1))
    for name in columns:
        shares = guessed_column(domain[name].size)
        counts = np.multiply.outer(found.counts, shares).ravel()
        found = _grouped(counts, np.repeat(found.cells, len(shares)))
    return found


def raw_error(cells: int, rows: float, deviation: float, *, noise: NoiseShape = "gaussian") -> float:
    """The mean error of numbers as they are, each with noise of this standard deviation.

    It is cells · √(2/π) · deviation/rows for Gaussian noise, and cells · deviation/(√2 rows) for Laplace noise.

    >>> round(raw_error(100, 1000, 10.0), 4), round(raw_error(100, 1000, 10.0, noise="laplace"), 4)
    (0.7979, 0.7071)
    """
    absolute: float = (2 / pi if noise == "gaussian" else 1 / 2) ** 0.5
    return cells * absolute * deviation / rows


def projected_error(spread: Spread, deviation: float, *, noise: NoiseShape = "gaussian") -> float:
    """The approximate mean error after projection to the nearest table with the same number of rows.

    The nearest point of the simplex is max(y − t, 0) for the t at which it adds up to the number of rows. t is taken as
    the number at which it does so in the mean: then the error of a cell with x rows is E|Y − t| − E max(t − x − Y, 0),
    Y being the noise. That the sum is known takes one part in k off the variance of k cells.

    >>> people = Spread(counts=np.array([0.0, 1000.0]), cells=np.array([999.0, 1.0]))
    >>> round(projected_error(people, 10.0), 3), round(raw_error(1000, 1000, 10.0), 3)
    (0.049, 7.979)
    """
    if not 0 < deviation < inf:
        return 0.0 if deviation == 0 else 2.0
    counts, cells, rows = spread.counts, spread.cells, spread.rows
    low, high = 0.0, float(counts.max()) + 40 * deviation
    for _ in range(NOISE_ERROR.halvings):
        level = (low + high) / 2
        kept = float(cells @ _excess(level - counts, deviation, noise))
        low, high = (level, high) if kept > rows else (low, level)
    off = _excess(np.array([level, -level]), deviation, noise).sum() - _excess(counts - level, deviation, noise)
    return min(2.0, float(cells @ off) / rows * sqrt(1 - 1 / float(cells.sum())))


def lattice_errors(
    goal: Goal,
    precisions: Precisions,
    rows: Number,
    *,
    projected: bool = False,
    spreads: "Mapping[Columns, Spread] | None" = None,
) -> Numbers:
    """The mean error of each marginal of a goal that is computed from residuals with these precisions.

    The cells of a marginal share their mean variance. With `projected`, the marginal is moved to the nearest table; the
    spread of its rows is given by `spreads` or guessed.
    """
    asked = asked_marginals(goal)
    deviations = np.sqrt(asked.variances(asked.joined(precisions)) / asked.answers)
    return _errors(goal, deviations, rows, "gaussian", projected, spreads or {})


def marginal_errors(
    goal: Goal,
    unit: Unit,
    rows: Number,
    *,
    budget: Number,
    noise: NoiseShape = "gaussian",
    projected: bool = False,
    spreads: "Mapping[Columns, Spread] | None" = None,
) -> Numbers:
    """The mean error of each marginal of a goal if every marginal is measured by itself: the lattice's baseline.

    The `budget` is squared mu for Gaussian noise and epsilon for Laplace noise, and is split so that the weighted mean
    of the raw errors is least: as (weight · cells)^(2/3) for Gaussian and as (weight · cells)^(1/2) for Laplace noise.
    """
    amount = float(positive("budget", budget))
    cells, deviations = np.array([float(goal.cells(scope)) for scope in goal.scopes]), []
    worth = np.array([weight for _, weight in goal.weights]) * cells
    shares = worth ** (2 / 3 if noise == "gaussian" else 1 / 2)
    for scope, share in zip(goal.scopes, (amount * shares / shares.sum()).tolist(), strict=True):
        moves = histogram_sensitivity(goal.cells(scope), unit, droppable=goal.domain.drops)
        variance = float(moves.l2_squared) / share if noise == "gaussian" else 2 * (float(moves.l1) / share) ** 2
        deviations.append(variance**0.5)
    return _errors(goal, np.array(deviations), rows, noise, projected, spreads or {})


def mean_error(goal: Goal, errors: Numbers) -> float:
    """The weighted mean of the errors of the marginals of a goal."""
    return float(np.array([weight for _, weight in goal.weights]) @ errors)


def _errors(
    goal: Goal,
    deviations: Numbers,
    rows: Number,
    noise: NoiseShape,
    projected: bool,
    spreads: Mapping[Columns, Spread],
) -> Numbers:
    many, found = float(positive("rows", rows)), []
    # Marginals of columns alike have the same forecast.
    guessed: dict[tuple[int, ...], Spread] = {}
    for scope, deviation in zip(goal.scopes, deviations.tolist(), strict=True):
        sizes = tuple(sorted(goal.domain[name].size for name in scope))
        if not projected:
            found.append(raw_error(prod(sizes), many, deviation, noise=noise))
            continue
        if scope not in spreads and sizes not in guessed:
            guessed[sizes] = guessed_spread(goal.domain, scope, many)
        found.append(projected_error(spreads.get(scope) or guessed[sizes], deviation, noise=noise))
    return np.array(found)


def _excess(beyond: Numbers, deviation: float, noise: NoiseShape) -> Numbers:
    """The mean of max(Y − beyond, 0), Y being the noise."""
    from scipy.special import ndtr

    if noise == "laplace":
        scale = deviation / 2**0.5
        return scale / 2 * np.exp(-np.abs(beyond) / scale) + np.maximum(-beyond, 0.0)
    scaled = beyond / deviation
    density = np.exp(-(scaled**2) / 2) / (2 * pi) ** 0.5
    excess: Numbers = deviation * (density - scaled * ndtr(-scaled))
    return excess


def _grouped(counts: Numbers, cells: Numbers) -> Spread:
    """The same rows in at most `most_groups` groups, from the smallest counts to the largest."""
    largest, most = float(counts.max()), NOISE_ERROR.most_groups
    if len(counts) <= most or largest <= 0:
        order = np.argsort(counts, kind="stable")
        return Spread(counts[order], cells[order])
    depth = np.log(np.maximum(counts / largest, NOISE_ERROR.smallest_count))
    group = np.minimum(((1 - depth / min(float(depth.min()), -1e-9)) * most).astype(np.int64), most - 1)
    rows = np.bincount(group, weights=cells * counts, minlength=most)
    many = np.bincount(group, weights=cells, minlength=most).astype(np.float64, copy=False)
    return Spread(rows[many > 0] / many[many > 0], many[many > 0])
