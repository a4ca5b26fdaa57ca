"""What a share of a budget buys of a marginal: all its pieces rise to one level; those known better are left alone."""

from dataclasses import dataclass
from functools import reduce
from math import pi, sqrt

import numpy as np

from discreet.cache import memoize
from discreet.known.family import axes_of
from discreet.known.known import Known
from discreet.known.steps import GaussianResiduals
from discreet.plan.fill import water_level
from discreet.plan.step import lattice_step
from discreet.query.axis import Axis
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# Noise below a deviation of 1 is not drawn (`target.sigma_for`): no look raises a piece by more than this of its gain.
MOST_RISE = 0.9
# A look is sized again until it costs nearly what it may; no price is found by more tries than this.
NEARLY, TRIES = 0.9999, 8


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Of the pieces of a marginal, as tensors with an entry for each choice of parts: what the schema says.

    A piece that is constant in some columns is spread over their cells, `spread` of them: a precision p of its own is
    p · spread in the cells of the marginal. `freedom` is in how many directions it varies, `most` how far one look can
    raise its own precision. The total is no piece.
    """

    spread: Numbers
    freedom: Numbers
    most: Numbers
    cells: int


def pieces_of(domain: Domain, scope: Columns) -> Pieces:
    """The pieces of the marginal of some columns."""
    return _pieces(axes_of(domain, scope))


@memoize(1 << 14)
def _pieces(axes: tuple[Axis, ...]) -> Pieces:
    spread = _products([[axis.padded, *[1] * (axis.parts - 1)] for axis in axes])
    freedom = _products([[1, *(_freedom(axis, part) for part in range(1, axis.parts))] for axis in axes])
    gain = _products([[1, *(axis.gain(part) for part in range(1, axis.parts))] for axis in axes])
    return Pieces(spread, freedom, MOST_RISE * gain, int(np.prod([axis.cells for axis in axes])))


def noise_after(known: Known, scope: Columns, units: float) -> float:
    """The expected L1 distance between a marginal and what is known of it after a look for so many units.

    √(2/π) · cells · σ, where σ² = Σ over its pieces of freedom/(cells · precision) is the variance of one cell.
    """
    found = _risen(known, scope, units)
    pieces = pieces_of(known.domain, scope)
    precision = (found * pieces.spread).ravel()[1:]
    if not np.all(precision > 0):
        return float("inf")
    variance = float(np.sum(pieces.freedom.ravel()[1:] / precision)) / pieces.cells
    return sqrt(2 / pi) * pieces.cells * sqrt(variance)


def rising_step(known: Known, scope: Columns, units: float) -> GaussianResiduals | None:
    """The look that raises all pieces of a marginal as far as so many units go; None if they buy nothing."""
    paid, best = units, None
    for _ in range(TRIES):
        step = lattice_step(known, scope, _risen(known, scope, paid))
        if step is None:
            break
        if step.price <= units:
            best = step
            if step.price >= NEARLY * units:
                break
        # Exchanging one row for another moves all pieces together less than each by itself; and noise is rounded.
        paid *= (1 + NEARLY) / 2 * units / step.price
    return best


def _risen(known: Known, scope: Columns, units: float) -> Numbers:
    """The own precision of each piece when so many units have been poured in, the total left as it is."""
    view = known.lattice.view(scope)
    assert view is not None, "candidates have a view"
    pieces = pieces_of(known.domain, scope)
    height = (view.precision * pieces.spread).ravel()[1:]
    width = (view.price / pieces.spread).ravel()[1:]
    level = water_level(np.ones_like(height), width, height, units)
    risen = np.maximum(view.precision, level / pieces.spread)
    risen = np.minimum(risen, view.precision + pieces.most)
    risen.reshape(-1)[0] = view.precision.reshape(-1)[0]
    return risen


def _freedom(axis: Axis, part: int) -> int:
    return axis.rows(part) if axis.levels else axis.cells - 1


def _products(factors: list[list[int]]) -> Numbers:
    one = np.ones(())
    return reduce(np.multiply.outer, [np.array(each, dtype=np.float64) for each in factors], one)
