"""Rounding to the safe side: what is charged is never below the truth, what is allowed never above it.

A formula is evaluated as a ball (`discreet.interval`) that provably contains its value; its ends become short
rationals. A ball too wide to decide something is recomputed with more bits, and what stays undecided counts as unsafe.

Rigorous interval arithmetic: a ball (`arb`) provably contains the true value.

More bits make a ball narrower; it is right at any precision. python-flint is loaded by the first ball.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING

from discreet.errors import Fault

if TYPE_CHECKING:
    from flint import arb


# Significant bits of a bound: the relative price of rounding is 2^-64.
BOUND_BITS = 64
PRECISIONS = (128, 256, 512, 1024, 2048, 4096, 8192)
# Significant bits of the answer of a search: it ends within one part in 2^44 of the true edge, on its safe side.
SEARCH_BITS = 44
# No threshold that we search for lies outside 2^±FARTHEST_EXPONENT.
FARTHEST_EXPONENT = 4096


def enclose(formula: "Callable[[], arb]") -> "arb":
    """A ball around the value of a formula, narrow enough to be rounded to `BOUND_BITS` bits."""

    for bits in PRECISIONS:
        with precision(bits):
            value = formula()
        if value.rel_accuracy_bits() > BOUND_BITS:
            return value
    return value


def upper_bound(formula: "Callable[[], arb]") -> Fraction:
    """An upper bound of a formula, as a short rational.

    >>> from flint import arb
    >>> upper_bound(lambda: arb(2).sqrt()) ** 2 >= 2
    True
    """
    return round_up(_end(enclose(formula), upper=True))


def lower_bound(formula: "Callable[[], arb]") -> Fraction:
    """A lower bound of a formula, as a short rational.

    >>> from flint import arb
    >>> lower_bound(lambda: arb(2).sqrt()) ** 2 <= 2
    True
    """
    return -round_up(-_end(enclose(formula), upper=False))


def surely_at_most(formula: "Callable[[], arb]", limit: Fraction) -> bool:
    """Whether a formula provably does not exceed a limit; what cannot be decided is not sure."""

    for bits in PRECISIONS:
        with precision(bits):
            value, edge = formula(), ball(limit)
            if value <= edge:
                return True
            if value > edge:
                return False
    return False


def round_up(value: Fraction) -> Fraction:
    """The smallest rational of `BOUND_BITS` significant bits that is at least the value.

    >>> round_up(Fraction(1, 3)) > Fraction(1, 3) > round_up(Fraction(1, 3)) * (1 - Fraction(1, 2**60))
    True
    """
    if value == 0:
        return value
    size = abs(value.numerator).bit_length() - value.denominator.bit_length()
    grain = Fraction(2) ** (size - BOUND_BITS)
    return -((-value) // grain) * grain


def float_above(value: Fraction | float) -> float:
    """The smallest double that is at least the value.

    >>> float_above(Fraction(1, 10)), float_above(Fraction(1, 3)) >= Fraction(1, 3)
    (0.1, True)
    """
    try:
        near = float(value)
    except OverflowError:
        return inf if value > 0 else -nextafter(inf, 0)
    return near if near >= value else nextafter(near, inf)


def float_below(value: Fraction | float) -> float:
    """The largest double that is at most the value."""
    return -float_above(-value)


def least(safe: Callable[[Fraction], bool], *, bits: int = SEARCH_BITS) -> Fraction | float:
    """The least number that is safe, where everything above a safe number is safe too; infinite if none is.

    The answer itself was found safe, and has a short numerator and denominator: `bits` significant bits.

    >>> float(least(lambda x: x * x >= 2)) ** 2 - 2 < 1e-12
    True
    """
    step, top = 1, 0
    if not safe(Fraction(1)):
        while not safe(Fraction(2) ** (top + step)):
            top, step = top + step, 2 * step
            if top > FARTHEST_EXPONENT:
                return inf
        bottom, top = top, top + step
    else:
        while safe(Fraction(2) ** (top - step)):
            top, step = top - step, 2 * step
            if top < -FARTHEST_EXPONENT:
                return Fraction(0)
        bottom = top - step
    while top - bottom > 1:
        middle = (top + bottom) // 2
        bottom, top = (bottom, middle) if safe(Fraction(2) ** middle) else (middle, top)
    grain = Fraction(2) ** (bottom - bits)
    low, high = 1 << bits, 2 << bits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if safe(middle * grain) else (middle, high)
    return high * grain


def greatest(safe: Callable[[Fraction], bool]) -> Fraction | float:
    """The greatest number that is safe, where everything below a safe number is safe too; infinite if all are.

    >>> 0 <= 2 - float(greatest(lambda x: x * x <= 2)) ** 2 < 1e-12
    True
    """
    inverse = least(lambda value: safe(1 / value))
    if inverse == 0:
        return inf
    return Fraction(0) if inverse == inf else 1 / inverse


def _end(value: "arb", *, upper: bool) -> Fraction:

    if not value.is_finite():
        raise Fault(
            f"a privacy formula gave {value}; it must be a finite interval. "
            "Nothing was spent. Please report the parameters you used."
        )
    # The ends are rounded outwards to the precision in force: two bits more than we keep.
    with precision(BOUND_BITS + 2):
        mantissa, exponent = map(int, (value.upper() if upper else value.lower()).man_exp())
    if mantissa and mantissa.bit_length() + exponent < -FARTHEST_EXPONENT:
        # Too close to zero to write out: its safe neighbour will do.
        return Fraction(0) if (mantissa > 0) != upper else (1 if upper else -1) * Fraction(1, 2**FARTHEST_EXPONENT)
    return mantissa * Fraction(2) ** exponent


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with this many bits inside the block."""
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction | int) -> "arb":
    """A rational as a ball."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))
