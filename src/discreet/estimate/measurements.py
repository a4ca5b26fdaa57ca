"""The four kinds of noisy measurement: what is measured, with which noise, at which price.

With Gaussian noise, residuals of the lattice or one question by itself; the price is in squared mu. With discrete
Laplace noise, a whole marginal or one question by itself; the price is in epsilon.

Values with half-widths: what every estimator answers with.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1

from discreet.estimate.residual_lattice import variance_of
from discreet.query.linear import Linear, Marginal
from discreet.query.residual import Measurement
from discreet.types import Columns, Numbers

Question = Linear | Marginal


@dataclass(frozen=True, slots=True)
class GaussianResiduals:
    """Measure residuals of the lattice; everything on these columns then follows about as well."""

    measurement: Measurement
    price: float


@dataclass(frozen=True, slots=True)
class GaussianQuery:
    """Measure a question by itself, with rounded Gaussian noise."""

    question: Question
    sigma: Fraction
    price: float

    @property
    def variance(self) -> float:
        """The variance of each number."""
        return variance_of(float(self.sigma))


@dataclass(frozen=True, slots=True)
class LaplaceMarginal:
    """Measure all cells of some columns, with discrete Laplace noise of this scale."""

    columns: Columns
    scale: Fraction
    price: float

    @property
    def variance(self) -> float:
        """The variance of each number."""
        return laplace_variance(self.scale)


@dataclass(frozen=True, slots=True)
class LaplaceQuery:
    """Measure a question by itself, with discrete Laplace noise of this scale."""

    question: Question
    scale: Fraction
    price: float

    @property
    def variance(self) -> float:
        """The variance of each number."""
        return laplace_variance(self.scale)


Step = GaussianResiduals | GaussianQuery | LaplaceMarginal | LaplaceQuery


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a/(1 − a)² with a = e^(−1/scale).

    >>> round(laplace_variance(Fraction(10)), 2)
    199.83
    """
    return 2 * exp(-1 / float(scale)) / expm1(-1 / float(scale)) ** 2


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """A value and the half-width of its error for each cell of the groups; nan where there is no value."""

    values: Numbers
    errors: Numbers
