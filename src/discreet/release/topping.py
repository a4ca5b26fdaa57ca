"""Measurements that a budget buys: all residuals of some columns rise to one multiple of their shares.

What is known already is not paid again. The level is `plan.fill.water_level`; here it becomes steps with noise that can
be drawn, whose joint price is what the budget allows.
"""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from discreet.known.known import Known
from discreet.known.lattice import Block
from discreet.known.steps import GaussianResiduals
from discreet.plan.fill import water_level
from discreet.plan.plan import Steps
from discreet.plan.step import lattice_step
from discreet.types import Columns, Numbers

# The noise of a residual is rounded, to a short fraction and then to whole numbers, so it costs a little more than its
# precision: the next try aims this much lower.
_ROUNDING_MARGIN = 1e-7
# The search for a level ends after this many tries, when at most this part of the budget is left, or when it has aimed
# at this many times the budget without using it up.
_TRIES, _LEFT_OVER, _LARGEST_AIM = 20, 1e-5, 64.0


def steps_within(known: Known, wanted: Mapping[Columns, float], units: float) -> Steps:
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
    for _ in range(_TRIES):
        level = water_level(shares, price, before, aim, most=room)
        steps = [_raised(known, columns, level * wanted[columns]) for columns in scopes]
        found = Steps(tuple(step for step in steps if step is not None))
        if best.price < found.price <= units:
            best = found
        # Together residuals may cost less than one by one (where persons are replaced), or a little more.
        used_up = (1 - _LEFT_OVER) * units <= found.price <= units
        if not found.price or used_up or aim == _LARGEST_AIM * units:
            break
        aim = min(aim * (1 - _ROUNDING_MARGIN) * units / found.price, _LARGEST_AIM * units)
    return best


def _largest_rise(block: Block) -> Numbers:
    """How far one measurement can raise each residual: with more precision its noise would be below rounding."""
    gains = [np.array([axis.gain(part) for part in range(1, axis.parts)]) for axis in block.axes]
    found: Numbers = reduce(np.multiply.outer, gains, np.ones(())) * (12 / 13) * (1 - _ROUNDING_MARGIN)
    return found


def _raised(known: Known, columns: Columns, precision: float) -> GaussianResiduals | None:
    view = known.lattice.view(columns)
    if view is None:
        return None
    precisions = view.precision.copy()
    top = (slice(1, None),) * len(columns)
    block = known.lattice.block(columns)
    precisions[top] = np.maximum(precisions[top], np.minimum(precision, block.precision + _largest_rise(block)))
    return lattice_step(known, columns, precisions)
