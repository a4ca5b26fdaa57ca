"""The estimators: what was released, and the estimate and interval of any query that follow from it."""

from discreet.estimate.estimator import Known, QueryEstimate
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals, estimator_for
from discreet.estimate.measurements import Bars

__all__ = ["Bars", "GaussianLattice", "Known", "LaplaceMarginals", "QueryEstimate", "estimator_for"]
