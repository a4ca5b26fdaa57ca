"""How a budget is split over the lattice: to the pieces by which the answers gain most for what they cost.

Everything here is public arithmetic on the schema, the questions and what is known already. Proofs: allocate.md
"""

from collections.abc import Mapping
from fractions import Fraction
from math import floor, frexp
from typing import Literal

import numpy as np

from discreet.errors import BadParameter
from discreet.known.known import Known
from discreet.known.steps import GaussianResiduals
from discreet.noise.sample import LARGEST_SCALE
from discreet.parameter import Number, positive
from discreet.plan.fill import water_level
from discreet.plan.plan import Steps
from discreet.query.measurement import Measurement
from discreet.query.residual import Residual
from discreet.release.energies import asked_marginals
from discreet.release.goal import Asked, Goal, Precisions
from discreet.release.market import Market, market_of, market_of_block
from discreet.source.effect import sensitivity_of
from discreet.types import Columns, Numbers

Norm = Literal["l2", "l1"]

# Noise is written as 2^j/k with so many bits of k, and the budget is filled up to this share of it, never above.
BITS, FULL = 36, 1 - 2**-34
# A budget of which this share is spent is spent.
ENOUGH = 1 - Fraction(1, 10**9)
# Rounds of the searches; how little a round may still change, and how far a joint price may be from the largest move.
_ROUNDS, _EXACT, _NEAR = 40, 1e-10, 2e-3


def allocate(asked: Asked | Goal, known: Known, *, budget: Number, norm: Norm = "l2") -> Precisions:
    """The precisions of all pieces at which the answers are best, for this price (in squared mu) beyond what is known.

    `l2` minimises Σ weight · variance over all answers, `l1` minimises Σ weight · √variance (√(2/π) of which is the
    mean absolute error), where the answers of a row share their mean variance. With v the demand for a piece, c its
    price and K how well it is known, it is raised to max(K, t √(v/c)), and t spends the budget.

    >>> from discreet.release.goal import goal_of
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
    amount = float(positive("budget", budget)) * FULL
    table = asked_marginals(asked) if isinstance(asked, Goal) else asked
    market = market_of(table, known)
    return table.split(market.reached(_search(table, market, amount, norm)))


def as_steps(known: Known, precisions: Mapping[Columns, Numbers], *, budget: Number | None = None) -> Steps:
    """The measurements that raise the lattice to these precisions: one for each block that lacks something.

    If there is a `budget`, they cost that much to one part in 10^9, and never more, in exact arithmetic: where people
    are exchanged, the parts of a block cost less together than one by one, and what is left buys more of all of them.
    Something is left only where all noise is 1 already.
    """
    lacking = {columns: market_of_block(columns, known).bought(reached) for columns, reached in precisions.items()}
    wanted = {columns: weight for columns, weight in lacking.items() if weight.any()}
    if budget is None:
        return _steps(wanted, 1.0, known)[0]
    limit, scale, found = positive("budget", budget), 1.0, Steps(())
    for _ in range(_ROUNDS):
        steps, spent = _steps(wanted, scale, known)
        if spent <= limit:
            found = steps
            if spent >= limit * ENOUGH or _has_least_noise(steps):
                break
        scale *= float(limit / spent) * FULL
    return found


def _search(asked: Asked, market: Market, budget: float, norm: Norm) -> Numbers:
    """The best weights for a price. Where the price or the norm is not linear, a linear one is mended in rounds.

    √x is below each of its tangents, which ask for variances with weights. A joint price is the largest mean over the
    kinds of exchange, with shares that grow for the kinds by which people move more.
    """
    rows, shares = asked.weights, tuple(each.any_shares() for each in market.exchanges)
    for _ in range(_ROUNDS):
        weight = _filled(asked.demand(rows), market, budget)
        before = rows
        if norm == "l1":
            variances = asked.variances(market.reached(weight))
            tangents = np.divide(asked.answers, variances, out=np.zeros_like(variances), where=variances > 0)
            rows = asked.weights * np.sqrt(tangents)
        market, shares = market.mended(weight, shares)
        if market.cost(weight) <= budget * (1 + _NEAR) and np.allclose(rows, before, rtol=_EXACT, atol=0.0):
            break
    # The shares are never quite right, and the largest move is what is paid for.
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


def _steps(wanted: Mapping[Columns, Numbers], scale: float, known: Known) -> tuple[Steps, Fraction]:
    """The measurements that buy so many times these weights, and their price."""
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
    """The pieces of a block with noise of standard deviation 1/root; without those that are all noise."""
    pieces = [
        (Residual(tuple((name, part + 1) for name, part in zip(columns, place, strict=True))), _noise(root))
        for place, root in zip(np.ndindex(roots.shape), roots.ravel().tolist(), strict=True)
        if root * LARGEST_SCALE > 2
    ]
    return Measurement(tuple(pieces)) if pieces else None


def _noise(root: float) -> Fraction:
    """The standard deviation 1/root as 2^j/k, rounded up by a hair: its inverse square is a short number.

    >>> _noise(0.25), 0 < _noise(0.3) - 1 / Fraction(0.3) < 1e-9
    (Fraction(4, 1), True)
    """
    mantissa, exponent = frexp(root)
    return Fraction(2 ** (BITS - exponent), floor(mantissa * 2**BITS))


def _has_least_noise(steps: Steps) -> bool:
    return all(
        sigma == 1
        for step in steps.steps
        if isinstance(step, GaussianResiduals)
        for _, sigma in step.measurement.pieces
    )
