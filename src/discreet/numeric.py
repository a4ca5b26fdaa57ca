"""Exact numbers: read from people exactly or not at all, and bounded by intervals that provably contain them.

Privacy is computed in exact arithmetic, so every parameter becomes a `Fraction` when it is read. A float is read as the
decimal that it is written as. What is not rational is evaluated as a ball (`arb` of python-flint, loaded by the first
one) that provably contains the true value; its ends are rounded to the safe side: what is charged is never below the
truth, what is allowed never above it. A ball too wide to decide something is computed again with more bits, and what
stays undecided counts as unsafe.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any

from discreet.errors import BadParameter, Fault

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
        nearest = float(value)
    except OverflowError:
        return inf if value > 0 else -nextafter(inf, 0)
    return nearest if nearest >= value else nextafter(nearest, inf)


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


Number = int | float | Fraction | Decimal

# Outside this range a parameter is a mistake, and some intermediate numbers would not fit a double.
SMALLEST_PARAMETER, LARGEST_PARAMETER = Fraction(1, 10**15), Fraction(10**15)

# A higher confidence has no quantile in doubles once there are many intervals; a lower one has no meaning.
LEAST_CONFIDENCE, MOST_CONFIDENCE = Fraction(1, 1000), 1 - Fraction(1, 10**12)


def _refuse(name: str, value: Any, rule: str, next_step: str) -> BadParameter:
    return BadParameter(f"{name} is {_shown(value)}; it must be {rule}. {next_step}")


def _shown(value: Any) -> str:
    """A value for a sentence: Python does not print a number of some thousand digits, and nobody reads it."""
    try:
        shown = str(value) if isinstance(value, Fraction) else repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return shown if len(shown) <= 200 else f"{shown[:200]}…"


def rational(name: str, value: Any, *, next_step: str = "Give a number, say 0.1.") -> Fraction:
    """The exact value of a number.

    >>> rational("epsilon", 0.1)
    Fraction(1, 10)
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise _refuse(name, value, "a number", next_step)
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (Real, Decimal)):
        # A signalling NaN cannot even be turned into a float.
        if not (value.is_finite() if isinstance(value, Decimal) else isfinite(value)):
            raise _refuse(
                name, str(value) if isinstance(value, Decimal) else float(value), "a finite number", next_step
            )
        return Fraction(value) if isinstance(value, Decimal) else Fraction(repr(float(value)))
    raise _refuse(name, value, "a number", next_step)


def positive(name: str, value: Any, *, at_most: Number = LARGEST_PARAMETER, next_step: str = "") -> Fraction:
    """A number above zero and inside the range that our arithmetic is proved for.

    >>> positive("epsilon", -1)
    Traceback (most recent call last):
    discreet.errors.BadParameter: epsilon is -1; it must be a number above 0. Give a positive number, say 0.1.
    """
    step = next_step or "Give a positive number, say 0.1."
    exact = rational(name, value, next_step=step)
    if exact <= 0:
        raise _refuse(name, value, "a number above 0", step)
    if not SMALLEST_PARAMETER <= exact <= at_most:
        raise _refuse(name, value, f"between {float(SMALLEST_PARAMETER):g} and {float(at_most):g}", step)
    return exact


def probability(name: str, value: Any, *, zero: bool = False, next_step: str = "") -> Fraction:
    """A number in (0, 1), or in [0, 1) where `zero` is allowed.

    >>> probability("delta", 1)
    Traceback (most recent call last):
    discreet.errors.BadParameter: delta is 1; it must be a probability above 0 and below 1. Give one, say 1e-9.
    """
    step = next_step or "Give one, say 1e-9."
    exact = rational(name, value, next_step=step)
    if not (0 <= exact < 1) or (exact == 0 and not zero):
        raise _refuse(name, value, f"a probability {'from' if zero else 'above'} 0 and below 1", step)
    return exact


def confidence_of(value: Any) -> float:
    """How often an error must hold: a probability for which error bars can be computed.

    >>> confidence_of(1e-17)
    Traceback (most recent call last):
    discreet.errors.BadParameter: confidence is 1e-17; it must be between 0.001 and 1 - 1e-12. Give one, say 0.95.
    """
    step = "Give one, say 0.95."
    exact = probability("confidence", value, next_step=step)
    if not LEAST_CONFIDENCE <= exact <= MOST_CONFIDENCE:
        raise _refuse("confidence", value, "between 0.001 and 1 - 1e-12", step)
    return float(exact)


def whole(name: str, value: Any, *, least: int = 0, most: int | None = None, next_step: str = "") -> int:
    """A whole number in a range.

    >>> whole("contributions", 0, least=1)
    Traceback (most recent call last):
    discreet.errors.BadParameter: contributions is 0; it must be a whole number of at least 1. Give one, say 1.
    """
    step = next_step or f"Give one, say {least}."
    rule = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
    if isinstance(value, bool) or type(value).__name__ == "bool_" or not isinstance(value, Integral):
        raise _refuse(name, value, rule, step)
    exact = int(value)
    if exact < least or (most is not None and exact > most):
        raise _refuse(name, value, rule, step)
    return exact


def text(name: str, value: Any, *, longest: int = 100_000) -> str:
    """A text that a file or a database can hold.

    >>> text("table", "")
    Traceback (most recent call last):
    discreet.errors.BadParameter: table is ''; it must be a text of 1 to 100000 characters. Give a name.
    """
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        shown = value[:60] if isinstance(value, str) else value
        raise _refuse(name, shown, f"a text of 1 to {longest} characters", "Give a name.")
    try:
        storable = b"\x00" not in value.encode()
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise _refuse(name, value[:60], "a text without zero bytes and halves of characters", "Give a name.")
    return value


def read_failure(confidence: Number) -> float:
    """The probability that an error bound may fail: 1 − confidence, exactly, then rounded once."""
    step = "Give one, say 0.95."
    return float(1 - probability("confidence", confidence, next_step=step))
