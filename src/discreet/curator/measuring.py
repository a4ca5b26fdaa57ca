"""From a step of a plan to the mechanism that does it."""

import numpy as np
from numpy.typing import NDArray

from discreet.known.steps import GaussianQuery, GaussianResiduals, Step
from discreet.mechanism.gaussian import gaussian
from discreet.mechanism.laplace import laplace
from discreet.mechanism.pieces import gaussian_pieces
from discreet.mechanism.protocol import Mechanism
from discreet.plan.plan import measured
from discreet.source.effect import sensitivity_of
from discreet.source.table import Table


def mechanism_of(step: Step, table: Table) -> Mechanism[NDArray[np.int64]]:
    """The mechanism of a step, calibrated to what one person can move: known from the schema, before a row is read."""
    moves = sensitivity_of(measured(step), table.domain, table.unit)
    match step:
        case GaussianResiduals():
            return gaussian_pieces(sensitivity=moves, stretches=step.measurement.stretches(table.domain))
        case GaussianQuery():
            return gaussian(sigma=step.sigma, sensitivity=moves)
    return laplace(epsilon=moves.l1 / step.scale, sensitivity=moves)
