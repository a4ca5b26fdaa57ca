"""The estimator for Gaussian noise: errors are jointly Gaussian, and a budget is counted in squared mu."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, frexp, inf, isqrt, log, sqrt
from statistics import NormalDist

import numpy as np

from discreet.accounting.event import Event, Gaussian
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.accounting.sensitivity import Sensitivity
from discreet.estimate.estimator import DirectAnswer, Estimator, QueryEstimate, better, combined, normal_quantile
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, Intervals, Question
from discreet.estimate.residual_lattice import variance_of
from discreet.query.linear import Marginal, weighs_nothing
from discreet.query.residual import Measurement, Residual
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

# A selection for this much squared mu never errs. It costs a little less than it may: prices are rounded up.
MOST_SELECTING, SELECTION_MARGIN = 100.0, 1e-9
# The bits in which noise is written, rounded up: it costs less than it may by at most one part in 2^28.
NOISE_BITS = 30


class GaussianLattice(Estimator):
    """Residuals are measured one by one, each as well as it is needed; or a question by itself."""

    accounting = "gaussian"
    rate, least_units = 0.5, 2**-40
    measures_residuals = jointly_gaussian = averages_direct = True

    def intervals(self, question: Question, confidence: float, joint: int = 1, *, among: int = 1) -> Intervals:
        """Gaussian intervals; of one direct measurement by the exact law of its rounded noise."""
        return self._intervals(question, self.estimate(question), self.direct_answers.get(question), confidence, joint)

    def largest_error(self, question: Question, confidence: float, among: int = 1) -> float:
        """The largest error of the cells of a GROUP BY; the cells themselves are not computed."""
        family = None if weighs_nothing(question) else self.family(question)
        if family is None:
            return float(self.intervals(question, confidence).errors.max())
        direct = self.direct_answers.get(question)
        first = None if direct is None else replace(direct, values=direct.values[:1])
        found = QueryEstimate(np.zeros(1), np.array([self.largest_variance(family)]))
        return float(self._intervals(question, found, first, confidence, 1).errors[0])

    def _intervals(
        self, question: Question, found: QueryEstimate, direct: DirectAnswer | None, confidence: float, joint: int
    ) -> Intervals:
        z = normal_quantile(confidence, joint)
        if direct is None:
            return Intervals(found.values, _half_widths(question, found.variances, z))
        if self.directs.has(question, question.scope):
            if float(found.variances.max()) < 0.9 * direct.variance:
                return Intervals(found.values, _half_widths(question, found.variances, z))
            return better(Intervals(found.values, np.full(found.values.shape, inf)), direct, confidence, joint)
        both = combined(found, direct)
        return better(Intervals(both.values, _half_widths(question, both.variances, z)), direct, confidence, joint)

    def units_for(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The largest squared mu that (epsilon, delta) allows."""
        return gaussian_limit(epsilon, delta)

    def event_for(self, units: Fraction) -> Event:
        """Gaussian noise of this squared mu."""
        return Gaussian(Fraction(1), units)

    def variance_for(self, moves: Sensitivity, units: float) -> float:
        """Squared L2 sensitivity over squared mu."""
        return float(moves.l2_squared) / units

    def scale_for(self, units: float) -> float:
        """1/mu."""
        return float(units**-0.5)

    def deviation_for(self, units: float) -> float:
        """1/mu."""
        return float(units**-0.5)

    def squared_mu_for(self, units: Fraction, marginals: int) -> float:
        """The units themselves."""
        return float(units)

    def selection_for(self, units: Fraction) -> Fraction:
        """A selection of bounded range that costs this squared mu."""
        return selection_for(float(units))

    def query_step(self, question: Question, units: Fraction) -> GaussianQuery:
        """With rounded Gaussian noise."""
        moves = sensitivity_of(question, self.domain, self.lattice.unit).l2_squared
        sigma = gaussian_noise(moves, units)
        return GaussianQuery(question, sigma, float(moves / sigma**2))

    def marginal_step(self, columns: Columns, units: Fraction) -> GaussianQuery:
        """As one question, by itself."""
        return self.query_step(Marginal(columns), units)

    def count_step(self, units: Fraction, variance: float) -> GaussianResiduals | None:
        """As the residual of no columns."""
        total = self.query_step(Marginal(()), units)
        if variance_of(float(total.sigma)) >= variance:
            return None
        return GaussianResiduals(Measurement(((Residual(()), total.sigma),)), total.price)


def _half_widths(question: Question, variances: Numbers, z: float) -> Numbers:
    """The half-widths of Gaussian errors. The total may have one rounded noise: |round(Y)| ≤ t + 1/2 if |Y| ≤ t."""
    widths = z * np.sqrt(variances)
    return widths if question.scope else np.where(variances > 0, widths + 0.5, 0.0)


def selection_for(units: float) -> Fraction:
    """The epsilon of a selection that costs this squared mu: μ = 2Φ⁻¹(e^(ε/2)/(1 + e^(ε/2))), solved for ε.

    >>> from discreet.accounting.gaussian_dp import squared_mu_of_bounded_range
    >>> 0.9999 < squared_mu_of_bounded_range(selection_for(0.25)) / 0.25 <= 1
    True
    """
    half, normal = sqrt(min(units, MOST_SELECTING)) / 2, NormalDist()
    return Fraction((1 - SELECTION_MARGIN) * 2 * log(normal.cdf(half) / normal.cdf(-half))).limit_denominator(10**12)


def gaussian_noise(squared_moves: Fraction, units: Fraction) -> Fraction:
    """The smallest standard deviation, in few bits, whose squared mu is at most these units.

    >>> sigma = gaussian_noise(Fraction(2), Fraction(1, 100))
    >>> 2 / sigma**2 <= Fraction(1, 100) < 2 / (sigma * (1 - Fraction(1, 10**8))) ** 2
    True
    """
    variance = squared_moves / units
    unit = last_bit(float(variance) ** 0.5)
    parts = variance / unit**2
    least = isqrt(ceil(parts))
    return (least if least**2 >= parts else least + 1) * unit


def last_bit(about: float) -> Fraction:
    """The last bit of a number of about this size."""
    return Fraction(2) ** (frexp(about)[1] - NOISE_BITS)
