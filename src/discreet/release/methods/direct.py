"""The method "direct": each marginal of the goal is measured whole, and one model is fitted to all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import inf

import numpy as np

from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import TooLarge
from discreet.estimate.estimator import Estimator
from discreet.estimate.residual_lattice import subsets
from discreet.model.interface import Model, total_of
from discreet.model.mixture.ensemble import Tell
from discreet.plan.plan import Measure, Procedure, Steps
from discreet.query.linear import Marginal
from discreet.query.residual import axes_of
from discreet.release.budget_allocation import ALLOCATION, ROW_COUNT, measure_row_count
from discreet.release.error.noise_error import lattice_errors, mean_error
from discreet.release.methods.fitting import fitted_to_all, too_large_to_fit
from discreet.release.methods.mixture import shares_of
from discreet.release.methods.residual_workload import traces
from discreet.release.task import Brief, Goal, Precisions
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns


@dataclass(frozen=True, slots=True)
class DirectTuning:
    """Constants of the method where delta is 0. Set by hand; no benchmark measures the result."""

    # The share of the budget for a first count of the rows, if their number is not public.
    first_count: Fraction = Fraction(1, 50)
    # The count is lowered by this many of its deviations: if there are few rows, single columns are the safer choice.
    count_deviations: float = 2.0
    # The mean L1 distance of marginals of three columns from what single columns, and pairs, predict.
    unexplained_by_singles: float = 0.4
    unexplained_by_pairs: float = 0.05


DIRECT = DirectTuning()


@dataclass(frozen=True, slots=True)
class Depth:
    """Marginals of at most `columns` columns, measured instead of a goal, and the goal's expected error then."""

    columns: int
    weights: Mapping[Columns, float]
    error: float


def direct_release(brief: Brief, tell: Tell | None = None) -> Procedure[Model]:
    """Measure each marginal with noise of its own, and fit a model that is consistent and nowhere negative.

    Each marginal gets a part of the budget as (weight · cells)^(2/3) with Gaussian noise and as (weight · cells)^(1/2)
    with Laplace noise, which minimises the weighted noise. A marginal that is known better than its part would buy is
    not measured. Where delta is 0, epsilons add up and many marginals cost much: then their pairs or single columns are
    measured instead, if that lowers the expected error (`depths`).

    It is right for a few marginals and much budget. Limits: the number of all cells (`too_large_to_fit`); it does not
    adapt to its own measurements; k marginals have √k times the noise of one (k times, where delta is 0), so other
    methods are better for all triples of many columns. The forecast of `depths` uses sizes and rows, not how much the
    columns of this table depend on each other.
    """
    known, goal = brief.known, brief.goal
    refused = too_large_to_fit(goal)
    if refused:
        raise TooLarge(refused)
    weights, left = dict(goal.weights), brief.units
    if known.accounting == "pure":
        left -= yield from measure_row_count(known, left * DIRECT.first_count)
        rows, variance = total_of(known.lattice)
        weights = dict(best_depth(goal, known, rows - DIRECT.count_deviations * variance**0.5, left).weights)
    else:
        shares = _shares(known, goal, weights, left).items()
        implied = sum(1 / (known.marginal_step(scope, share).variance * goal.cells(scope)) for scope, share in shares)
        left -= yield from refine_row_count(known, goal, left, implied=implied)
    steps = direct_steps(known, goal, weights, left)
    if steps.steps:
        yield Measure(steps, "marginals by themselves, for a release")
    return fitted_to_all(known, goal, known.squared_mu_for(brief.units, len(weights)), tell)


def refine_row_count(known: Estimator, goal: Goal, units: Fraction, *, implied: float = 0.0) -> Procedure[Fraction]:
    """Count the rows with a small share of the units, and with more if the rows are few; returns the cost.

    An error of the number of rows is an error of every marginal. `implied` is the precision that later measurements
    will give the number anyway: it need not be paid for here. Units are squared mu.
    """
    cost = yield from measure_row_count(known, units * ALLOCATION.first_count)
    rows, variance = total_of(known.lattice)
    moves = float(sensitivity_of(ROW_COUNT, known.domain, known.lattice.unit).l2_squared)
    if not moves or not variance:
        return cost
    wanted = shares_of(goal, rows, float(units), public=False).total * float(units) / moves
    lacking = Fraction(max(0.0, wanted - implied - 1 / variance) * moves)
    return cost + (yield from measure_row_count(known, lacking))


def direct_steps(known: Estimator, goal: Goal, weights: Mapping[Columns, float], units: Fraction) -> Steps:
    """The steps that measure some marginals for at most these units; those that are known better are left out."""
    wanted = dict(weights)
    while wanted:
        shares = _shares(known, goal, wanted, units)
        steps = {scope: known.marginal_step(scope, share) for scope, share in shares.items()}
        lacking = {scope: step for scope, step in steps.items() if step.variance < known_variance(known, scope)}
        if len(lacking) == len(wanted):
            return Steps(tuple(lacking.values()))
        wanted = {scope: weights[scope] for scope in lacking}
    return Steps(())


def known_variance(known: Estimator, scope: Columns) -> float:
    """The mean variance of the cells of a marginal, by the lattice or by its direct measurement, whichever is less."""
    answer = known.direct_answers.get(Marginal(scope))
    before = inf if answer is None else answer.variance
    blocks = known.lattice.blocks
    if any(chosen not in blocks or not blocks[chosen].precision.all() for chosen in subsets(scope)):
        return before
    view = known.lattice.view(scope)
    if view is None:
        return before
    energies = reduce(np.multiply.outer, [traces(axis) for axis in axes_of(known.domain, scope)], np.ones(()))
    return min(before, float((energies * view.inverse).sum()) / Marginal(scope).size(known.domain))


def depths(goal: Goal, known: Estimator, rows: float, units: Fraction) -> list[Depth]:
    """The choices where delta is 0: to measure the marginals of the goal, or all marginals of fewer of their columns.

    The expected error is that of the noise, after projection to tables, and the distance of typical tables from what
    marginals of these few columns predict (`DirectTuning`).
    """
    deep = max(map(len, goal.scopes))
    return [_depth(goal, known, columns, rows, units) for columns in range(1, deep + 1)]


def best_depth(goal: Goal, known: Estimator, rows: float, units: Fraction) -> Depth:
    """The depth with the least expected error."""
    return min(depths(goal, known, rows, units), key=lambda depth: depth.error)


def _depth(goal: Goal, known: Estimator, columns: int, rows: float, units: Fraction) -> Depth:
    weights = goal.weights_at_depth(columns)
    each = DIRECT.unexplained_by_singles if columns == 1 else DIRECT.unexplained_by_pairs
    unexplained = sum(weight * each for scope, weight in goal.weights if len(scope) > columns)
    errors = lattice_errors(goal, _precisions(goal, known, weights, units), max(rows, 1.0), projected=True)
    return Depth(columns, weights, mean_error(goal, errors) + unexplained)


def _precisions(goal: Goal, known: Estimator, weights: Mapping[Columns, float], units: Fraction) -> Precisions:
    """The expected precisions of residuals. Those that no marginal has are left to the model, and have no noise."""
    found: Precisions = {}
    for scope in ((), *goal.below):
        shape = tuple(axis.parts - 1 for axis in axes_of(goal.domain, scope))
        found[scope] = np.full(shape, inf)
    for scope, share in _shares(known, goal, weights, units).items():
        variance = known.marginal_step(scope, share).variance
        for chosen in subsets(scope):
            others = goal.cells(scope) / goal.cells(chosen)
            before = found[chosen]
            found[chosen] = np.where(np.isfinite(before), before, 0.0) + 1 / (variance * others)
    return found


def _shares(known: Estimator, goal: Goal, weights: Mapping[Columns, float], units: Fraction) -> dict[Columns, Fraction]:
    """The budget, split exactly over the marginals that a person can move."""
    power = 1 / (1 + known.rate)
    worth = {scope: Fraction((weight * goal.cells(scope)) ** power) for scope, weight in weights.items()}
    moved = {scope: each for scope, each in worth.items() if _moves(known, scope).l1 > 0}
    every = sum(moved.values())
    return {scope: units * each / every for scope, each in moved.items()}


def _moves(known: Estimator, scope: Columns) -> Sensitivity:
    return sensitivity_of(Marginal(scope), known.domain, known.lattice.unit)
