"""What one raw value of a table is: a boolean, a number, a text, a date, missing, or unreadable.

Kinds never mix: True is not 1 and "1" is not 1. Within a kind, equal means equal as numbers, days or characters: 1,
1.0, Decimal(1) and numpy's int8(1) are one number; a time stamp is its calendar day; "a" and "A" are two texts.
"""

from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, isnan
from numbers import Rational
from typing import Any, Literal

import numpy as np

ValueKind = Literal["boolean", "number", "text", "date", "missing", "unreadable"]
Readable = bool | int | float | Fraction | Decimal | str | date
Reading = tuple[ValueKind, Any]

_MISSING: Reading = ("missing", None)
_UNREADABLE: Reading = ("unreadable", None)

# date(1970, 1, 1).toordinal(), where numpy starts to count days.
EPOCH = 719_163


def read_value(value: Any) -> Reading:
    """The kind of a raw value and what it is compared by. Never raises.

    A number is compared by its exact value, a date by its day number. A float that is not whole is read as the
    decimal it prints as, so the float 0.3 lies on an edge at Decimal("0.3").

    >>> read_value(1) == read_value(1.0) == read_value(np.int8(1))
    True
    >>> read_value(1) == read_value(True), read_value(1) == read_value("1")
    (False, False)
    >>> read_value(None), read_value(float("nan")), read_value(b"a")
    (('missing', None), ('missing', None), ('unreadable', None))
    """
    match value:
        case None:
            return _MISSING
        case str():
            return ("text", str.__str__(value))
        case bool() | np.bool_():
            return ("boolean", bool(value))
        case int() | np.integer():
            return ("number", int(value))
        case np.datetime64():
            return (
                _MISSING if np.isnat(value) else ("date", int(value.astype("datetime64[D]").astype(np.int64)) + EPOCH)
            )
        case float() | np.floating():
            return _float(float(value))
        case Decimal():
            return _decimal(value)
        case Rational():
            return ("number", Fraction(int(value.numerator), int(value.denominator)))
    # pandas is not imported to ask this; its NaT calls itself a datetime, so it must be asked before dates.
    if type(value).__name__ in ("NaTType", "NAType", "MaskedConstant"):
        return _MISSING
    return ("date", value.toordinal()) if isinstance(value, date) else _UNREADABLE


def _float(value: float) -> Reading:
    if isnan(value):
        return _MISSING
    if isinf(value):
        return ("number", value)
    return ("number", int(value) if value.is_integer() else Fraction(repr(value)))


def _decimal(value: Decimal) -> Reading:
    if value.is_nan():
        return _MISSING
    # A few characters of data must not make us write out a number of a million digits.
    if value.is_infinite() or (value and value.adjusted() > 400):
        return ("number", inf if value > 0 else -inf)
    if value and value.adjusted() < -400:
        return ("number", Fraction(1 if value > 0 else -1, 10**400))
    return ("number", Fraction(value))


def plain(value: Any) -> Any:
    """The Python value that a numpy scalar holds, and the day that a time stamp at midnight means; others as they are.

    >>> plain(np.int64(3)), plain(np.datetime64("2024-02-29T00:00")), plain("a")
    (3, datetime.date(2024, 2, 29), 'a')
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, datetime) and read_value(value)[0] == "date" and value.time() == time.min:
        return value.date()
    return value
