"""The four kinds of noisy measurement: what is measured, with which noise, at which price.

With Gaussian noise, residuals of the lattice or one question by itself; the price is in squared mu. With discrete
Laplace noise, a whole marginal or one question by itself; the price is in epsilon.
"""

from dataclasses import dataclass
from fractions import Fraction

from discreet.query.linear import Linear, Marginal
from discreet.query.measurement import Measurement
from discreet.types import Columns

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


@dataclass(frozen=True, slots=True)
class LaplaceMarginal:
    """Measure all cells of some columns, with discrete Laplace noise of this scale."""

    columns: Columns
    scale: Fraction
    price: float


@dataclass(frozen=True, slots=True)
class LaplaceQuery:
    """Measure a question by itself, with discrete Laplace noise of this scale."""

    question: Question
    scale: Fraction
    price: float


Step = GaussianResiduals | GaussianQuery | LaplaceMarginal | LaplaceQuery
