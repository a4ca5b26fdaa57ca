"""The estimators: what was released, and the estimate and interval of any query that follow from it."""

from discreet.estimate.estimator import Estimator, QueryEstimate
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals, estimator_for
from discreet.estimate.measurements import Intervals

__all__ = ["Estimator", "GaussianLattice", "Intervals", "LaplaceMarginals", "QueryEstimate", "estimator_for"]
