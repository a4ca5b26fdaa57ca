"""The four kinds of noisy measurement: what is measured, with which noise, at which price.

With Gaussian noise, residuals of the lattice or one question by itself; the price is in squared mu. With discrete
Laplace noise, a whole marginal or one question by itself; the price is in epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
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

_FIRST_NAMES = {
    GaussianResiduals: "Lattice",
    GaussianQuery: "Directly",
    LaplaceMarginal: "Whole",
    LaplaceQuery: "Alone",
}


def first_repr(steps: Sequence[Step]) -> str:
    """Steps as the first ledgers wrote them into the body of an idempotency key: such keys must still be recognised.

    >>> first_repr([GaussianQuery(Linear([]), Fraction(3), 0.25)])
    'Steps(steps=(Directly(question=<Linear: 0 products on no column>, sigma=Fraction(3, 1), price=0.25),))'
    """
    texts = [
        f"{_FIRST_NAMES[type(step)]}({', '.join(f'{each.name}={getattr(step, each.name)!r}' for each in fields(step))})"
        for step in steps
    ]
    return f"Steps(steps=({', '.join(texts)}{',' if len(texts) == 1 else ''}))"
