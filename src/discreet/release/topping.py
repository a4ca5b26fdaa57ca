"""Raising what is known of many columns at once, on one budget: what is known already is not paid again."""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from discreet.known.known import Known
from discreet.known.lattice import Block
from discreet.known.steps import GaussianResiduals
from discreet.plan.plan import Steps
from discreet.plan.step import lattice_step
from discreet.types import Columns, Numbers

# What is bought costs between this much less than the budget, in parts of it, and the budget. The noise of a piece is
# rounded, to a short fraction and then to whole numbers, so it costs a little more than its precision.
_HAIR = 1e-7
_TRIES, _HALVINGS, _FEW_HALVINGS = 20, 100, 50
# A budget of which no more than this part is left is used up.
_NEAR = 1e-5
# A budget that cannot be used up is not tried with more than this many times as much.
_MOST = 64.0


def topped(known: Known, wanted: Mapping[Columns, float], units: float) -> Steps:
    """Steps that raise every piece of all the columns of each scope to the same multiple of what is `wanted` of it.

    The multiple is as large as so many `units` (of squared mu) allow; a piece that is known better stays as it is.
    """
    scopes = [columns for columns, precision in wanted.items() if precision > 0]
    blocks = [known.lattice.block(columns) for columns in scopes]
    if not scopes or units <= 0:
        return Steps(())
    price = np.concatenate([block.price.ravel() for block in blocks])
    before = np.concatenate([block.precision.ravel() for block in blocks])
    most = np.concatenate([_most(block).ravel() for block in blocks])
    share = np.concatenate(
        [np.full(block.price.size, wanted[columns]) for columns, block in zip(scopes, blocks, strict=True)]
    )
    aim, best = units, Steps(())
    for _ in range(_TRIES):
        times = _multiple(price, before, most, share, aim)
        steps = [_raised(known, columns, times * wanted[columns]) for columns in scopes]
        found = Steps(tuple(step for step in steps if step is not None))
        if best.price < found.price <= units:
            best = found
        # Pieces together may cost less than one by one (where persons are replaced), or a hair more.
        if not found.price or (1 - _NEAR) * units <= found.price <= units or aim == _MOST * units:
            break
        aim = min(aim * (1 - _HAIR) * units / found.price, _MOST * units)
    return best


def raised(before: Numbers, wanted: Numbers, price: Numbers, units: float) -> Numbers:
    """Precisions raised to one multiple of what is wanted, for so many units; what is known better stays as it is.

    >>> raised(np.array([0.0, 3.0]), np.ones(2), np.ones(2), 2.0).round(6).tolist()
    [2.0, 3.0]
    """
    payable = (price > 0) & (wanted > 0) & np.isfinite(before)
    if not payable.any():
        return before
    cost, start, share = price[payable], before[payable], wanted[payable]
    low, high = 0.0, float((units / cost + start).max() / share.min())
    for _ in range(_FEW_HALVINGS):
        middle = (low + high) / 2
        enough = float(cost @ np.maximum(0.0, middle * share - start)) > units
        low, high = (low, middle) if enough else (middle, high)
    return np.where(payable, np.maximum(before, low * wanted), before)


def _most(block: Block) -> Numbers:
    """The precision beyond which a piece is not raised at once: its noise would be less than rounding allows."""
    gains = [np.array([axis.gain(part) for part in range(1, axis.parts)]) for axis in block.axes]
    found: Numbers = reduce(np.multiply.outer, gains, np.ones(())) * (12 / 13) * (1 - _HAIR) + block.precision
    return found


def _multiple(price: Numbers, before: Numbers, most: Numbers, share: Numbers, units: float) -> float:
    """The multiple of the shares at which what is missing costs so many units."""
    payable = np.isfinite(before) & (price > 0)
    price, before, most, share = price[payable], before[payable], most[payable], share[payable]
    if not price.size:
        return 0.0
    low, high = 0.0, float((units / price + before).max() / share.min())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        cost = float(price @ np.maximum(0.0, np.minimum(middle * share, most) - before))
        low, high = (middle, high) if cost <= units else (low, middle)
    return low


def _raised(known: Known, columns: Columns, precision: float) -> GaussianResiduals | None:
    view = known.lattice.view(columns)
    if view is None:
        return None
    precisions = view.precision.copy()
    top = (slice(1, None),) * len(columns)
    precisions[top] = np.maximum(precisions[top], np.minimum(precision, _most(known.lattice.block(columns))))
    return lattice_step(known, columns, precisions)
