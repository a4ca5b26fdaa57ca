"""The method "lattice" (ResidualPlanner): the budget is split over residuals so that the workload's error is least.

A `Market` has the price of each residual, the joint prices of residuals that cost less together, and their known
precisions. All of it is public arithmetic on the schema, the workload and what is known. Proofs: allocate.md §2 to §4
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, frexp, prod
from typing import Any, Literal

import numpy as np

from discreet.accounting.sensitivity import residual_sensitivity
from discreet.cache import memoize
from discreet.errors import BadParameter, TooLarge
from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import GaussianResiduals
from discreet.model.interface import Model
from discreet.model.mixture.ensemble import Tell
from discreet.noise.sample import LARGEST_SCALE
from discreet.numeric import Number, positive
from discreet.plan.allocation import water_level
from discreet.plan.plan import Measure, Procedure, Steps
from discreet.query.residual import Axis, Measurement, Residual, axes_of
from discreet.release.methods.direct import refine_row_count
from discreet.release.methods.fitting import fitted_to_all, too_large_to_fit
from discreet.release.methods.residual_workload import asked_marginals
from discreet.release.task import Brief, Goal, Precisions, ResidualWorkload
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Ints, Numbers

# For each exchange, a share for each kind (columns) in each of its blocks (rows); in a block they add up to 1.
ExchangeShares = tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Blocks with the same axes whose residuals, under `replace_one`, cost less together than one by one.

    An exchange of two rows has a kind: on each axis the two cells are equal, or two categories, or separate at one of
    the levels (source/contribution.md, Lemma 6). `places` has a row for each block; `lengths` is what a unit of weight
    of a residual adds to the squared length of a person's effect; `cosines` has a matrix (kinds by parts) for each
    axis.
    """

    places: Ints
    lengths: Numbers
    cosines: tuple[Numbers, ...]

    def equal_shares(self) -> Numbers:
        """Equal shares of the kinds of exchange, to begin with."""
        kinds = prod(len(matrix) for matrix in self.cosines)
        return np.full((len(self.places), kinds), 1 / kinds)

    def moves(self, weight: Numbers) -> Numbers:
        """The squared effect of each kind of exchange on each block with these weights; a block costs the largest."""
        lengths = self.lengths * weight[self.places]
        moves: Numbers = 2 * (lengths.sum(axis=1, keepdims=True) - _along(self.cosines, lengths))
        return moves

    def prices(self, shares: Numbers) -> Numbers:
        """The price of a unit of weight of each residual, as a mean over the kinds of exchange with these shares."""
        turned = tuple(matrix.T for matrix in self.cosines)
        prices: Numbers = 2 * self.lengths * (shares.sum(axis=1, keepdims=True) - _along(turned, shares))
        return prices


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """The price and gain of every residual of a table of energies, and its known precision.

    A weight w buys noise of variance gain/w, rounded: precision 1/(1/w + 1/(12 gain)), for price · w. `most` is the
    weight at which the noise is 1, below which the lattice does not go. `exchanges` are the blocks with a joint price;
    for them `price` is a mean over the kinds of exchange.
    """

    price: Numbers
    most: Numbers
    rounding: Numbers
    known: Numbers
    exchanges: tuple[Exchange, ...] = ()

    def reached(self, weight: Numbers) -> Numbers:
        """The precision of every residual after these weights are bought."""
        return self.known + weight / (1 + weight * self.rounding)

    def bought(self, reached: Numbers) -> Numbers:
        """The weights that reach these precisions; 0 for residuals that cost nothing."""
        missing = np.zeros(reached.shape)
        np.subtract(reached, self.known, out=missing, where=(self.known < np.inf) & (self.price > 0))
        missing = np.clip(missing, 0.0, self.most / (1 + self.most * self.rounding))
        return np.minimum(missing / (1 - missing * self.rounding), self.most)

    def reweighted(self, weight: Numbers, shares: ExchangeShares) -> "tuple[Market, ExchangeShares]":
        """The market with larger shares for the kinds of exchange that move these weights most, and those shares."""
        price, grown = self.price.copy(), []
        for each, share in zip(self.exchanges, shares, strict=True):
            # The square of the textbook's factor takes about half as many rounds.
            more = share * each.moves(weight) ** 2
            most = more.sum(axis=1, keepdims=True)
            more = np.divide(more, most, out=share.copy(), where=most > 0)
            price[each.places] = each.prices(more)
            grown.append(more)
        return (replace(self, price=price) if grown else self), tuple(grown)

    def cost(self, weight: Numbers) -> float:
        """The price of these weights, summed over the blocks."""
        together = sum(float(each.moves(weight).max(axis=1).sum()) for each in self.exchanges)
        alone = self.price.copy()
        for each in self.exchanges:
            alone[each.places] = 0.0
        return together + float(alone @ weight)


def market_of(asked: ResidualWorkload, known: Estimator) -> Market:
    """The prices and gains of the residuals of a table of energies, and their known precisions."""
    unit, droppable = known.lattice.unit, known.domain.drops
    price, gain, before = np.zeros(asked.size), np.zeros(asked.size), np.zeros(asked.size)
    alike: dict[tuple[Axis, ...], list[int]] = {}
    for columns, start in asked.starts.items():
        axes = axes_of(asked.domain, columns)
        prices, gains = terms(axes, unit, droppable=droppable)
        end = start + prices.size
        price[start:end], gain[start:end] = prices.ravel(), gains.ravel()
        block = known.lattice.blocks.get(columns)
        if block is not None:
            before[start:end] = block.precision.ravel()
        if unit.neighbors == "replace_one" and prices.size > 1:
            alike.setdefault(axes, []).append(start)
    # What no person can move costs nothing, and is known once it was released.
    before[price == 0] = np.inf
    exchanges = tuple(_exchange(axes, starts, unit) for axes, starts in alike.items())
    for each in exchanges:
        price[each.places] = each.prices(each.equal_shares())
    return Market(price, gain, 1 / (12 * gain), before, exchanges)


def market_of_block(columns: Columns, known: Estimator) -> Market:
    """The same for the residuals of one block, as tensors, one by one."""
    axes = axes_of(known.domain, columns)
    price, gain = terms(axes, known.lattice.unit, droppable=known.domain.drops)
    block = known.lattice.blocks.get(columns)
    return Market(price, gain, 1 / (12 * gain), np.zeros(gain.shape) if block is None else block.precision)


@memoize(4096)
def terms(axes: tuple[Axis, ...], unit: Unit, *, droppable: bool) -> tuple[Numbers, Numbers]:
    """The price of a unit of precision, and the gain, of every residual of a block by itself.

    The price is sensitivity² over gain, as `residual_sensitivity` has it: the squared lengths of the columns of the
    measuring matrices times m², and times 2 (1 + c) under `replace_one`.

    where m is the number of rows of a person, and −c the smallest cosine between two columns of one of the axes.
    """
    if not axes:
        return np.array(float(residual_sensitivity((), unit, droppable=droppable).l2_squared)), np.array(1.0)
    gain, opposite = np.ones(()), np.zeros(())
    for axis in axes:
        parts = range(1, axis.parts)
        gain = np.multiply.outer(gain, np.array([float(axis.gain(part)) for part in parts]))
        cosines = np.array([float(Fraction(*axis.opposite(part))) for part in parts])
        opposite = np.maximum.outer(opposite, cosines)
    stretch = 2 * (1 + opposite) if unit.neighbors == "replace_one" else 1.0
    return _lengths(axes, unit) * stretch, gain


def _lengths(axes: tuple[Axis, ...], unit: Unit) -> Numbers:
    """What a unit of weight of each residual of a block adds to the squared length of a person's effect."""
    found = np.full((), float(unit.contributions) ** 2)
    for axis in axes:
        each = [axis.squared_norm(part) / axis.gain(part) for part in range(1, axis.parts)]
        found = np.multiply.outer(found, np.array(each))
    return found


def _exchange(axes: tuple[Axis, ...], starts: list[int], unit: Unit) -> Exchange:
    lengths = _lengths(axes, unit)
    places = np.array(starts)[:, None] + np.arange(lengths.size)
    return Exchange(places, lengths.ravel(), tuple(_cosines(axis) for axis in axes))


def _cosines(axis: Axis) -> Numbers:
    """The cosine of every part but the constants (columns) for each kind of exchange (rows, the first being none)."""
    if not axis.levels:
        return np.array([[1.0], [-1 / (axis.cells - 1)]])
    kinds, parts = np.arange(axis.parts)[:, None], np.arange(1, axis.parts)[None, :]
    found = np.where(parts < kinds, 1.0, np.where(parts == kinds, -1.0, 0.0))
    found[0] = 1.0
    return found


def _along(matrices: tuple[Numbers, ...], rows: Numbers) -> Numbers:
    """A matrix for each axis times the tensors that the rows are."""
    tensor: Any = rows.reshape(len(rows), *(matrix.shape[1] for matrix in matrices))
    for place, matrix in enumerate(matrices):
        tensor = np.moveaxis(np.tensordot(matrix, tensor, axes=(1, place + 1)), 0, place + 1)
    flat: Numbers = tensor.reshape(len(rows), prod(len(matrix) for matrix in matrices))
    return flat


ErrorNorm = Literal["l2", "l1"]


@dataclass(frozen=True, slots=True)
class PlannerTuning:
    """Tolerances of search and rounding, set by hand (tests/release/test_residual_allocation.py has the optima)."""

    # A standard deviation is written as 2^j/k, where k has this many bits.
    noise_bits: int = 36
    # The search plans for this part of the budget, so that rounding never passes it.
    planned_share: float = 1 - 2**-34
    # A budget is spent when this part of it is.
    spent_share: Fraction = 1 - Fraction(1, 10**9)
    # Rounds of a search, at most.
    rounds: int = 40
    # A search ends when a round changes weights by less than the first (relative), and the joint price exceeds the
    # budget by less than the second.
    weight_tolerance: float = 1e-10
    price_tolerance: float = 2e-3


PLANNER = PlannerTuning()


def allocate(asked: ResidualWorkload | Goal, known: Estimator, *, budget: Number, norm: ErrorNorm = "l2") -> Precisions:
    """The precisions of all residuals that minimise the error, for this price (in squared mu) beyond what is known.

    `l2` minimises Σ weight · variance over all answers, `l1` minimises Σ weight · √variance (times √(2/π) it is the
    mean absolute error), where the answers of a row share their mean variance. A residual with demand v, price c and
    known precision K is raised to max(K, t √(v/c)), with the t that spends the budget.

    >>> from discreet.estimate.gaussian_estimator import GaussianLattice
    >>> from discreet.release.task import goal_of
    >>> from discreet.schema.column import Boolean
    >>> from discreet.schema.domain import Domain
    >>> from discreet.schema.unit import Unit
    >>> people = Domain({"old": Boolean(), "ill": Boolean()})
    >>> goal, known = goal_of([["old", "ill"]], people), GaussianLattice.nothing(people, Unit())
    >>> {columns: precision.round(4).tolist() for columns, precision in allocate(goal, known, budget=0.04).items()}
    {(): 0.01, ('ill',): [0.02], ('old',): [0.02], ('ill', 'old'): [[0.04]]}

    [Xiao et al. 2023, ResidualPlanner, for nothing known]; proof: allocate.md
    """
    if norm not in ("l2", "l1"):
        raise BadParameter(
            f'norm is {norm!r}; it must be "l2" (variances) or "l1" (absolute errors). Give one of them.'
        )
    amount = float(positive("budget", budget)) * PLANNER.planned_share
    table = asked_marginals(asked) if isinstance(asked, Goal) else asked
    market = market_of(table, known)
    return table.split(market.reached(_search(table, market, amount, norm)))


def as_steps(known: Estimator, precisions: Mapping[Columns, Numbers], *, budget: Number | None = None) -> Steps:
    """The measurements that raise the lattice to these precisions: one for each block below them.

    If there is a `budget`, they cost that much to one part in 10^9, and never more, in exact arithmetic: under
    `replace_one` the residuals of a block cost less together than one by one, and the rest buys more of all of them.
    Budget is left only where all noise is 1 already.
    """
    lacking = {columns: market_of_block(columns, known).bought(reached) for columns, reached in precisions.items()}
    wanted = {columns: weight for columns, weight in lacking.items() if weight.any()}
    if budget is None:
        return _steps(wanted, 1.0, known)[0]
    limit, scale, found = positive("budget", budget), 1.0, Steps(())
    for _ in range(PLANNER.rounds):
        steps, spent = _steps(wanted, scale, known)
        if spent <= limit:
            found = steps
            if spent >= limit * PLANNER.spent_share or _has_least_noise(steps):
                break
        scale *= float(limit / spent) * PLANNER.planned_share
    return found


def _search(asked: ResidualWorkload, market: Market, budget: float, norm: ErrorNorm) -> Numbers:
    """The best weights for a price. Where the price or the norm is not linear, it is linearised anew in each round.

    √x is below each of its tangents, which are weighted variances. A joint price is the largest mean over the kinds of
    exchange; the shares of the kinds with the largest effect grow.
    """
    rows, shares = asked.weights, tuple(each.equal_shares() for each in market.exchanges)
    for _ in range(PLANNER.rounds):
        weight = _filled(asked.demand(rows), market, budget)
        before = rows
        if norm == "l1":
            variances = asked.variances(market.reached(weight))
            tangents = np.divide(asked.answers, variances, out=np.zeros_like(variances), where=variances > 0)
            rows = asked.weights * np.sqrt(tangents)
        market, shares = market.reweighted(weight, shares)
        if market.cost(weight) <= budget * (1 + PLANNER.price_tolerance) and np.allclose(
            rows, before, rtol=PLANNER.weight_tolerance, atol=0.0
        ):
            break
    # The shares are approximate, and the largest effect is what is paid for.
    return weight * (budget / max(budget, market.cost(weight)))


def _filled(demand: Numbers, market: Market, budget: float) -> Numbers:
    """The weights that minimise Σ demand/precision for a price of the budget: water filling.

    A weight is (t √(demand/price) − known)/(1 + known · rounding), between 0 and `most`, with the one t that spends it
    all.
    """
    wanted = (demand > 0) & (market.price > 0) & (market.known < np.inf)
    price, most, known = market.price[wanted], market.most[wanted], market.known[wanted]
    divisor, share = 1 + known * market.rounding[wanted], np.sqrt(demand[wanted] / price)
    level = water_level(share, price, known, budget, most=most, divisor=divisor)
    result = np.zeros_like(demand)
    result[wanted] = np.clip((level * share - known) / divisor, 0.0, most)
    return result


def _steps(wanted: Mapping[Columns, Numbers], scale: float, known: Estimator) -> tuple[Steps, Fraction]:
    """The measurements that buy `scale` times these weights, and their price."""
    found, spent = [], Fraction(0)
    for columns, weight in wanted.items():
        gain = market_of_block(columns, known).most
        measurement = _measurement(columns, np.minimum(np.sqrt(scale * weight / gain), 1.0))
        if measurement is not None:
            price = sensitivity_of(measurement, known.domain, known.lattice.unit).l2_squared
            found.append(GaussianResiduals(measurement, float(price)))
            spent += price
    return Steps(tuple(found)), spent


def _measurement(columns: Columns, roots: Numbers) -> Measurement | None:
    """The residuals of a block with noise of standard deviation 1/root; without those that would be all noise."""
    residuals = [
        (Residual(tuple((name, part + 1) for name, part in zip(columns, place, strict=True))), _noise(root))
        for place, root in zip(np.ndindex(roots.shape), roots.ravel().tolist(), strict=True)
        if root * LARGEST_SCALE > 2
    ]
    return Measurement(tuple(residuals)) if residuals else None


def _noise(root: float) -> Fraction:
    """The standard deviation 1/root as 2^j/k, rounded up slightly: its inverse square is a short number.

    >>> _noise(0.25), 0 < _noise(0.3) - 1 / Fraction(0.3) < 1e-9
    (Fraction(4, 1), True)
    """
    mantissa, exponent = frexp(root)
    return Fraction(2 ** (PLANNER.noise_bits - exponent), floor(mantissa * 2**PLANNER.noise_bits))


def _has_least_noise(steps: Steps) -> bool:
    return all(
        sigma == 1
        for step in steps.steps
        if isinstance(step, GaussianResiduals)
        for _, sigma in step.measurement.pieces
    )


def lattice(brief: Brief, tell: Tell | None = None) -> Procedure[Model]:
    """Measure every residual of the workload with the precisions that minimise the absolute error, and fit a model.

    The split is `allocate`'s: no other measurement of residuals with Gaussian noise has less noise for this budget
    (ResidualPlanner, where nothing is known). What is known already counts, and only the missing precision is paid for.
    The number of rows, if it is not public, is counted first: its error is an error of every marginal, which the split,
    computed for the noise of single cells, ignores.

    Limits: the split is best for answers that are read from the residuals. A fitted model gains where residuals that
    are mostly noise are left out, which "mixture" does and this method does not. It needs Gaussian noise, and the
    number of all cells is limited (`too_large_to_fit`).
    """
    known, goal = brief.known, brief.goal
    if not known.measures_residuals:
        raise BadParameter(
            "method is 'lattice' and delta is 0; it measures residuals with Gaussian noise, which needs a delta above "
            '0. Take method="direct", or a budget with a delta.'
        )
    refused = too_large_to_fit(goal)
    if refused:
        raise TooLarge(refused)
    left = brief.units
    left -= yield from refine_row_count(known, goal, left)
    asked = goal if brief.asked is None else brief.asked
    steps = as_steps(known, allocate(asked, known, budget=left, norm="l1"), budget=left)
    if steps.steps:
        yield Measure(steps, "pieces of marginals, for a release")
    return fitted_to_all(known, goal, float(brief.units), tell)
