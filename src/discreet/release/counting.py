"""How much noise so many units buy, exactly; and counting the rows before anything else is measured."""

from fractions import Fraction
from math import ceil, frexp, isqrt

from discreet.known.known import Known
from discreet.known.lattice import variance_of
from discreet.known.steps import GaussianResiduals, LaplaceMarginal, Step
from discreet.known.whole import laplace_variance
from discreet.model.looks import total_of
from discreet.plan.plan import Steps
from discreet.plan.request import Measure, Procedure, Request
from discreet.privacy.loss import loss
from discreet.query.linear import Marginal
from discreet.query.measurement import Measurement
from discreet.query.residual import Residual
from discreet.source.effect import sensitivity_of

# Noise is written with so many bits, rounded up: it costs less than it may by one part in 2^28 at most.
BITS = 30
# A first look at the number of rows gets this part of the budget.
FIRST = Fraction(1, 500)
TOTAL = Marginal(())


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


def counted(known: Known, units: Fraction) -> Procedure[Fraction]:
    """Count the rows for at most so many units, and say what it cost: nothing if they are known as well already."""
    step = count_step(known, units)
    if step is None:
        return Fraction(0)
    request = Measure(Steps((step,)), "the number of rows, for a release")
    yield request
    return paid(known, request)


def count_step(known: Known, units: Fraction) -> Step | None:
    """How the rows are counted for so many units; None if that would say no more than is known."""
    moves = sensitivity_of(TOTAL, known.domain, known.lattice.unit)
    if moves.l1 == 0 or units <= 0:
        return None
    _, variance = total_of(known.lattice)
    if known.pure:
        scale = laplace_noise(moves.l1, units)
        return LaplaceMarginal((), scale, float(moves.l1 / scale)) if laplace_variance(scale) < variance else None
    sigma = gaussian_noise(moves.l2_squared, units)
    if variance_of(float(sigma)) >= variance:
        return None
    return GaussianResiduals(Measurement(((Residual(()), sigma),)), float(moves.l2_squared / sigma**2))


def paid(known: Known, request: Request) -> Fraction:
    """What a request costs, in the units of what is known: squared mu, or epsilon."""
    event = request.event(known.domain, known.lattice.unit)
    return Fraction(loss(event, by="pure" if known.pure else "gaussian"))


def _unit(about: float) -> Fraction:
    """The last bit of a number of about this size."""
    return Fraction(2) ** (frexp(about)[1] - BITS)
