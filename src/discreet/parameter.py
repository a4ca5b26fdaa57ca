"""Reading the numbers that people give us: exactly, or not at all.

Privacy is computed in exact arithmetic, so every parameter becomes a `Fraction` at the door. A float is read as the
decimal it prints as: 0.1 means one tenth, not 3602879701896397/36028797018963968.
"""

from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any

from discreet.errors import BadParameter

Number = int | float | Fraction | Decimal

# Outside this range a parameter is a slip of the pen, and some numbers on the way would fit no double.
SMALLEST_PARAMETER, LARGEST_PARAMETER = Fraction(1, 10**15), Fraction(10**15)

# A higher confidence has no quantile in doubles once there are many intervals; a lower one has no meaning.
LEAST_CONFIDENCE, MOST_CONFIDENCE = Fraction(1, 1000), 1 - Fraction(1, 10**12)


def _refuse(name: str, value: Any, rule: str, next_step: str) -> BadParameter:
    return BadParameter(f"{name} is {_shown(value)}; it must be {rule}. {next_step}")


def _shown(value: Any) -> str:
    """A value for a sentence: Python does not print a number of some thousand digits, and nobody reads it."""
    try:
        shown = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return shown if len(shown) <= 200 else f"{shown[:200]}…"


def rational(name: str, value: Any, *, next_step: str = "Give an int, a float or a Fraction.") -> Fraction:
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
    discreet.errors.BadParameter: contributions is 0; it must be a whole number of at least 1. Give an int.
    """
    step = next_step or "Give an int."
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
