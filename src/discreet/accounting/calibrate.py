"""How much noise a budget asks for: one search over any family of events."""

from collections.abc import Callable
from fractions import Fraction
from math import floor, inf, log
from typing import TYPE_CHECKING, Any

from discreet.accounting.event import Event, Gaussian, total_loss
from discreet.accounting.filter import By, accounting_for
from discreet.errors import BadParameter
from discreet.numeric import least, positive, probability, upper_bound

if TYPE_CHECKING:
    from flint import arb

# Significant bits of a scale: too much noise by less than one part in 10^9. Distributions take long and get fewer.
SCALE_BITS = {"pld": 14}


def calibrate(
    make_event: Callable[[Fraction], Event], *, epsilon: Any, delta: Any = 0, by: By = "gaussian"
) -> Fraction:
    """The smallest scale whose event meets the budget, as a short rational on the safe side.

    `make_event(scale)` is what would be done; more scale must mean less loss.

    >>> from discreet.accounting.event import Laplace, Repeat
    >>> calibrate(lambda scale: Repeat(Laplace(scale, 1), 10), epsilon=0.5, by="pure")
    Fraction(20, 1)
    """
    accounting = accounting_for(by)
    budget, exact_delta = positive("epsilon", epsilon), probability("delta", delta, zero=True)

    def safe(scale: Fraction) -> bool:
        return accounting.epsilon(total_loss(make_event(scale), accounting), exact_delta) <= budget

    scale = least(safe, bits=SCALE_BITS.get(by, 30))
    if scale == inf:
        raise BadParameter(
            f"no scale meets epsilon {float(budget):g} and delta {float(exact_delta):g} in the {by} accounting; "
            "it cannot price this event at this delta. Give a delta above 0, or another `by`."
        )
    return Fraction(scale)


def gaussian_sigma(*, epsilon: Any, delta: Any, squared_sensitivity: Any = 1) -> Fraction:
    """The smallest sigma whose Gaussian noise is (epsilon, delta)-DP, by the exact condition; right for every epsilon.

    >>> round(float(gaussian_sigma(epsilon=1, delta=1e-6)), 4)
    4.2247

    [BW18, Thm. 8]
    """
    squared = positive("squared_sensitivity", squared_sensitivity)
    delta = probability("delta", delta)
    return calibrate(lambda sigma: Gaussian(sigma, squared), epsilon=epsilon, delta=delta)


def lecture_sigma(*, epsilon: Any, delta: Any, squared_sensitivity: Any = 1) -> Fraction:
    """The sigma of the lecture notes, 2Δ√ln(1/delta)/epsilon, rounded up: for comparison only.

    More noise than needed for small epsilon, and *too little* for large epsilon (tests/accounting/test_calibrate.py).

    >>> round(float(lecture_sigma(epsilon=1, delta=1e-6)), 4)
    7.4338

    [004 Ex. 1]
    """
    e, d = positive("epsilon", epsilon), probability("delta", delta)
    squared = positive("squared_sensitivity", squared_sensitivity)

    def formula() -> "arb":
        from discreet.numeric import ball

        return 2 * (-ball(squared) * ball(d).log()).sqrt() / ball(e)

    return upper_bound(formula)


def largest_epsilon(fits: Callable[[Fraction], bool], most: Fraction) -> Fraction:
    """The largest epsilon up to `most`, rounded down to five digits, for which `fits` holds; more must fit less.

    >>> largest_epsilon(lambda epsilon: epsilon**2 <= 2, Fraction(10))
    Fraction(7071, 5000)
    """
    low, high = Fraction(0), most
    if fits(most):
        return most
    for _ in range(60):
        middle = (low + high) / 2 if low else high / 16
        rounded = round_down(middle)
        if rounded in (low, high) or rounded == 0:
            break
        low, high = (rounded, high) if fits(rounded) else (low, rounded)
    if low == 0:
        raise BadParameter(
            f"epsilon is {float(most):g}, too little for this many updates. Give more, or fewer updates."
        )
    return low


def round_down(value: Fraction, digits: int = 5) -> Fraction:
    """A number with this many digits, not above the given one.

    >>> round_down(Fraction(2, 3))
    Fraction(33333, 50000)
    """
    if value <= 0:
        return Fraction(0)
    unit = Fraction(10) ** (floor(log(value.numerator) / log(10) - log(value.denominator) / log(10)) + 1 - digits)
    return floor(value / unit) * unit
