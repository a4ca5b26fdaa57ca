"""The estimators: what was released, and the estimate and interval of any query that follow from it."""

from discreet.known.bars import Bars
from discreet.known.gaussian import GaussianLattice
from discreet.known.known import Estimate, Known
from discreet.known.laplace import LaplaceMarginals, estimator_for

__all__ = ["Bars", "Estimate", "GaussianLattice", "Known", "LaplaceMarginals", "estimator_for"]
