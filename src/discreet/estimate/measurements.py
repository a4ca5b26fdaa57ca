"""The four kinds of noisy measurement: what is measured, with which noise, at which price.

With Gaussian noise, residuals of the lattice or one question by itself; the price is in squared mu. With discrete
Laplace noise, a whole marginal or one question by itself; the price is in epsilon.

Values with half-widths: what every estimator answers with.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, expm1, frexp, isqrt

from discreet.query.linear import Linear, Marginal
from discreet.query.residual import Measurement
from discreet.types import Columns, Numbers

Question = Linear | Marginal

# Noise is written with so many bits, rounded up: it costs less than it may by one part in 2^28 at most.
BITS = 30


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


def variance_of(sigma: float) -> float:
    """The variance of rounded Gaussian noise: rounding adds that of a uniform number.

    For sigma ≥ 1, to which the planner keeps, this is right to eight digits.
    """
    return sigma * sigma + 1 / 12


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a/(1 − a)² with a = e^(−1/scale).

    >>> round(laplace_variance(Fraction(10)), 2)
    199.83
    """
    return 2 * exp(-1 / float(scale)) / expm1(-1 / float(scale)) ** 2


def gaussian_noise(squared_moves: Fraction, units: Fraction) -> Fraction:
    """The smallest standard deviation, of few bits, whose squared mu is at most so many units.

    >>> sigma = gaussian_noise(Fraction(2), Fraction(1, 100))
    >>> 2 / sigma**2 <= Fraction(1, 100) < 2 / (sigma * (1 - Fraction(1, 10**8))) ** 2
    True
    """
    variance = squared_moves / units
    unit = _unit(float(variance) ** 0.5)
    parts = variance / unit**2
    least = isqrt(ceil(parts))
    return (least if least**2 >= parts else least + 1) * unit


def laplace_noise(moves: Fraction, units: Fraction) -> Fraction:
    """The smallest scale, of few bits, whose epsilon is at most so many units.

    >>> laplace_noise(Fraction(1), Fraction(1, 8)), 1 / laplace_noise(Fraction(1), Fraction(3, 10)) <= Fraction(3, 10)
    (Fraction(8, 1), True)
    """
    unit = _unit(float(moves / units))
    return ceil(moves / units / unit) * unit


def _unit(about: float) -> Fraction:
    """The last bit of a number of about this size."""
    return Fraction(2) ** (frexp(about)[1] - BITS)


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A value and the half-width of its error for each cell of the groups; nan where there is no value."""

    values: Numbers
    errors: Numbers


def weighs_nothing(question: Question) -> bool:
    """Whether no row can count: then the answer is 0, and everybody knows."""
    weight = question.weight if isinstance(question, Marginal) else question
    return weight is not None and not weight.products
