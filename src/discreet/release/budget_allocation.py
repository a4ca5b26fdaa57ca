"""Steps of measurement that a budget buys: water-filling of residuals, noisy distances, and the count of rows.

Residuals rise to one level (`plan.allocation.water_level`) or to one multiple of their weights, and what is known
already is not paid for again. The steps have noise that can be drawn exactly, and cost together at most the budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import pi, sqrt

import numpy as np

from discreet.accounting.filter import loss
from discreet.cache import memoize
from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import GaussianResiduals, Step
from discreet.estimate.residual_lattice import ResidualBlock
from discreet.model.interface import total_of
from discreet.plan.allocation import water_level
from discreet.plan.plan import Distances, Measure, Procedure, Request, Steps
from discreet.plan.steps import lattice_step
from discreet.query.linear import Marginal
from discreet.query.residual import Axis, axes_of
from discreet.schema.domain import Domain
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

ROW_COUNT = Marginal(())


@dataclass(frozen=True, slots=True)
class AllocationTuning:
    """Constants of the allocation. Set by hand: they decide how exactly a budget is used up, not for what."""

    # The share of the budget for a first count of the rows: that of "mixture", which bench/release.py chose.
    first_count: Fraction = Fraction(1, 500)
    # The noise of a residual is rounded, to a short fraction and then to whole numbers, so it costs a little more than
    # its precision: the next try aims this much lower.
    rounding_margin: float = 1e-7
    # The search for a common level ends after this many tries, when at most this part of the budget is left, or when
    # it has aimed at this many times the budget without using it up.
    level_tries: int = 20
    left_over: float = 1e-5
    largest_aim: float = 64.0
    # Noise of a standard deviation below 1 is not drawn (`steps.sigma_for`): a step raises the precision of a residual
    # by at most this part of its gain.
    largest_rise: float = 0.9
    # The step of one marginal is resized until it costs this part of its units, in at most this many tries.
    step_price: float = 0.9999
    step_tries: int = 8


ALLOCATION = AllocationTuning()


def steps_within(known: Estimator, wanted: Mapping[Columns, float], units: float) -> Steps:
    """Steps that raise every residual of all the columns of each scope to the same multiple of its `wanted` share.

    The multiple is as large as `units` (of squared mu) allow; a residual that is known better stays as it is.
    """
    scopes = [columns for columns, share in wanted.items() if share > 0]
    if not scopes or units <= 0:
        return Steps(())
    blocks = [known.lattice.block(columns) for columns in scopes]
    price = np.concatenate([block.price.ravel() for block in blocks])
    before = np.concatenate([block.precision.ravel() for block in blocks])
    room = np.concatenate([_largest_rise(block).ravel() for block in blocks])
    sizes = [block.price.size for block in blocks]
    shares = np.repeat([wanted[columns] for columns in scopes], sizes)
    aim, best = units, Steps(())
    for _ in range(ALLOCATION.level_tries):
        level = water_level(shares, price, before, aim, most=room)
        steps = [_raised(known, columns, level * wanted[columns]) for columns in scopes]
        found = Steps(tuple(step for step in steps if step is not None))
        if best.price < found.price <= units:
            best = found
        # Together residuals may cost less than one by one (where persons are replaced), or a little more.
        used_up = (1 - ALLOCATION.left_over) * units <= found.price <= units
        largest_aim = ALLOCATION.largest_aim * units
        if not found.price or used_up or aim == largest_aim:
            break
        aim = min(aim * (1 - ALLOCATION.rounding_margin) * units / found.price, largest_aim)
    return best


def _largest_rise(block: ResidualBlock) -> Numbers:
    """The most precision that one measurement can add to each residual: beyond it, rounding would exceed the noise."""
    gains = [np.array([axis.gain(part) for part in range(1, axis.parts)]) for axis in block.axes]
    found: Numbers = reduce(np.multiply.outer, gains, np.ones(())) * (12 / 13) * (1 - ALLOCATION.rounding_margin)
    return found


def _raised(known: Estimator, columns: Columns, precision: float) -> GaussianResiduals | None:
    view = known.lattice.view(columns)
    if view is None:
        return None
    precisions = view.precision.copy()
    top = (slice(1, None),) * len(columns)
    block = known.lattice.block(columns)
    precisions[top] = np.maximum(precisions[top], np.minimum(precision, block.precision + _largest_rise(block)))
    return lattice_step(known, columns, precisions)


@dataclass(frozen=True, slots=True, eq=False)
class ResidualPrices:
    """Facts of the schema about the residuals of a marginal: tensors with an entry for each choice of parts.

    A residual that is constant in some columns is spread over their cells, `spread` of them: its own precision p is
    p · spread in the cells of the marginal. `freedom` is its number of degrees of freedom, `most` the most by which one
    step can raise its own precision. The total is not a residual.
    """

    spread: Numbers
    freedom: Numbers
    most: Numbers
    cells: int


def residual_prices(domain: Domain, scope: Columns) -> ResidualPrices:
    """The residuals of the marginal of some columns."""
    return _prices_of(axes_of(domain, scope))


@memoize(1 << 14)
def _prices_of(axes: tuple[Axis, ...]) -> ResidualPrices:
    spread = _products([[axis.padded, *[1] * (axis.parts - 1)] for axis in axes])
    freedom = _products([[1, *(_freedom(axis, part) for part in range(1, axis.parts))] for axis in axes])
    gain = _products([[1, *(axis.gain(part) for part in range(1, axis.parts))] for axis in axes])
    return ResidualPrices(spread, freedom, ALLOCATION.largest_rise * gain, int(np.prod([axis.cells for axis in axes])))


def noise_after(known: Estimator, scope: Columns, units: float) -> float:
    """The expected L1 distance between a marginal and what is known of it after measuring it for these units.

    √(2/π) · cells · σ, where σ² = Σ over its residuals of freedom/(cells · precision) is the variance of one cell.
    """
    found = _risen(known, scope, units)
    prices = residual_prices(known.domain, scope)
    precision = (found * prices.spread).ravel()[1:]
    if not np.all(precision > 0):
        return float("inf")
    variance = float(np.sum(prices.freedom.ravel()[1:] / precision)) / prices.cells
    return sqrt(2 / pi) * prices.cells * sqrt(variance)


def rising_step(known: Estimator, scope: Columns, units: float) -> GaussianResiduals | None:
    """The step that raises all residuals of a marginal to one level for these units; None if they buy nothing."""
    paid, best = units, None
    for _ in range(ALLOCATION.step_tries):
        step = lattice_step(known, scope, _risen(known, scope, paid))
        if step is None:
            break
        if step.price <= units:
            best = step
            if step.price >= ALLOCATION.step_price * units:
                break
        # Exchanging one row for another moves all residuals together less than each by itself; and noise is rounded.
        paid *= (1 + ALLOCATION.step_price) / 2 * units / step.price
    return best


def _risen(known: Estimator, scope: Columns, units: float) -> Numbers:
    """The precision of each residual after water-filling with these units; the total stays as it is."""
    view = known.lattice.view(scope)
    assert view is not None, "candidates have a view"
    prices = residual_prices(known.domain, scope)
    height = (view.precision * prices.spread).ravel()[1:]
    width = (view.price / prices.spread).ravel()[1:]
    level = water_level(np.ones_like(height), width, height, units)
    risen = np.maximum(view.precision, level / prices.spread)
    risen = np.minimum(risen, view.precision + prices.most)
    risen.reshape(-1)[0] = view.precision.reshape(-1)[0]
    return risen


def _freedom(axis: Axis, part: int) -> int:
    return axis.rows(part) if axis.levels else axis.cells - 1


def _products(factors: list[list[int]]) -> Numbers:
    one = np.ones(())
    return reduce(np.multiply.outer, [np.array(each, dtype=np.float64) for each in factors], one)


def distances_for(
    known: Estimator, scopes: Sequence[Columns], expected: Sequence[Numbers], units: float, why: str
) -> Distances:
    """The request for the distances of some marginals from what is expected of them, for at most these units."""
    sigma = Fraction(deviation_for(known, scopes, units)).limit_denominator(10**6) + Fraction(1, 10**6)
    whole = tuple(np.rint(each).astype(np.int64).ravel() for each in expected)
    return Distances(tuple(scopes), whole, sigma, why)


def deviation_for(known: Estimator, scopes: Sequence[Columns], units: float) -> float:
    """The deviation of the noise of each of these distances for these units, in rows."""
    moves = sum(float(sensitivity_of(Marginal(scope), known.domain, known.lattice.unit).l1) ** 2 for scope in scopes)
    return float((moves / units) ** 0.5)


def measure_row_count(known: Estimator, units: Fraction) -> Procedure[Fraction]:
    """Count the rows for at most these units; returns the cost, which is 0 if they are known as well already."""
    step = count_step(known, units)
    if step is None:
        return Fraction(0)
    request = Measure(Steps((step,)), "the number of rows, for a release")
    yield request
    return price_of_request(known, request)


def count_step(known: Estimator, units: Fraction) -> Step | None:
    """The step that counts the rows for these units; None if the count is known as well already."""
    moves = sensitivity_of(ROW_COUNT, known.domain, known.lattice.unit)
    if moves.l1 == 0 or units <= 0:
        return None
    return known.count_step(units, total_of(known.lattice)[1])


def price_of_request(known: Estimator, request: Request) -> Fraction:
    """The price of a request in the units of the estimator: squared mu, or epsilon."""
    event = request.event(known.domain, known.lattice.unit)
    return Fraction(loss(event, by=known.accounting))
