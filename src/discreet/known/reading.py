"""A weight on the cells of one column, taken apart: its mean, and what it says to each part of the column."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.query.axis import Axis
from discreet.query.product import Factor

Numbers = NDArray[np.float64]

# The square of a relative error of a sum of doubles, with room to spare.
ROUNDING = 1e-27
# Up to so many cells the measuring matrix is kept; beyond, it is applied level by level.
_MOST_KEPT = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One or more weights on a column of n cells, each as its mean f̄ and the parts of f − f̄.

    `vectors` has a row for each weight: f̄, then M(f − f̄)/gain for the measuring matrix M of each part, so that the
    weighted sum of a marginal is the product of this row with (its total, its measurements). `units` is M(f − f̄)/√gain,
    so that plain inner products are those of the parts. `energies` has the squared length of each part of each weight,
    f̄² first.
    """

    axis: Axis
    vectors: Numbers
    units: Numbers
    energies: Numbers


def read(axis: Axis, weights: Numbers) -> Reading:
    """Take apart the rows of a matrix of weights, one column for each cell.

    The constants are those on the declared cells: f − f̄ is zero on the cells that pad a Haar axis, so what is constant
    stays constant and no query has a part that its column does not ask for.
    """
    means = weights.mean(axis=1, keepdims=True)
    measured = _measured(axis, weights - means)
    gains = _gains(axis)
    units = measured / np.sqrt(gains)
    energies = np.empty((len(weights), axis.parts))
    energies[:, 0] = means[:, 0] ** 2
    if axis.parts > 1:
        energies[:, 1:] = np.add.reduceat(units * units, axis.starts[:-1], axis=1)
        # What rounding leaves of a part that is not there must not look like a question.
        energies[energies < ROUNDING * (weights * weights).sum(axis=1, keepdims=True)] = 0.0
    return Reading(axis, np.hstack([means, measured / gains]), units, energies)


@lru_cache(maxsize=1 << 14)
def read_factor(axis: Axis, factor: Factor) -> Reading:
    """The reading of one weight; questions come back to the same ones."""
    return read(axis, factor.weights.astype(np.float64)[None, :])


@lru_cache(maxsize=256)
def read_cells(axis: Axis) -> Reading:
    """The readings of the indicators of all cells."""
    return read(axis, np.eye(axis.cells))


def _measured(axis: Axis, centred: Numbers) -> Numbers:
    if axis.parts == 1:
        return np.zeros((len(centred), 0))
    if not axis.levels:
        return axis.cells * centred
    if axis.cells <= _MOST_KEPT:
        return centred @ _matrix(axis).T
    return np.hstack([axis.apply(part, centred, axis=1) for part in range(1, axis.parts)])


@lru_cache(maxsize=64)
def _matrix(axis: Axis) -> Numbers:
    return np.vstack([axis.measure(part) for part in range(1, axis.parts)]).astype(np.float64)


@lru_cache(maxsize=1024)
def _gains(axis: Axis) -> Numbers:
    """The gain of each measured row."""
    return np.repeat(
        np.array([axis.gain(part) for part in range(1, axis.parts)], dtype=np.float64),
        [axis.rows(part) for part in range(1, axis.parts)],
    )
