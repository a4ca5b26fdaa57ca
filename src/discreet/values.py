"""What one raw value of a table is: a boolean, a number, a text, a date, missing, or unreadable.

Kinds never mix: True is not 1 and "1" is not 1. Within a kind, equal means equal as numbers, days or characters: 1,
1.0, Decimal(1) and numpy's int8(1) are one number; a time stamp is its calendar day; "a" and "A" are two texts.

What queries are made of, read exactly or not at all: names of columns, integers, and arrays that cannot change.

A query has one meaning only if it has one form. Every class of this package that says *what* is asked establishes its
form in its constructor, from what is here, and there is no other way to make one. Why that is enough: normal_form.md.
"""

from collections.abc import Iterable
from dataclasses import fields
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from math import inf, isinf, isnan
from numbers import Rational
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery

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


_Item = TypeVar("_Item")

# Weights and coefficients lie within ± this, so that no absolute value leaves 64 bits.
LARGEST_INTEGER = 2**63 - 1


class NormalForm:
    """A value that only its constructor makes: it has no subclasses, and a copy or a pickle is constructed anew."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if NormalForm not in cls.__bases__:
            raise TypeError(f"{cls.__name__} is a subclass of a query; what is asked would no longer be in its form.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]


def names_of(columns: Iterable[str], what: str = "columns") -> tuple[str, ...]:
    """Names of columns in the order given, each a plain text and none twice.

    >>> names_of(["sex", "age"])
    ('sex', 'age')
    >>> names_of(["sex", "sex"])
    Traceback (most recent call last):
    discreet.errors.BadQuery: columns is ('sex', 'sex'); each column is named once. Remove one.
    """
    listed = None if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable) else tuple(columns)
    if listed is None or not all(isinstance(name, str) for name in listed):
        raise BadQuery(f'{what} is {shortened(columns)}; it must be a list of names. Write ["age", "sex"].')
    # A subclass of str could compare otherwise tomorrow.
    names = tuple(readable(str.__str__(name), what) for name in listed)
    if len(set(names)) < len(names):
        raise BadQuery(f"{what} is {shortened(names)}; each column is named once. Remove one.")
    return names


def readable(text: str, what: str) -> str:
    """A text of a question that a file, a database and a reply can hold.

    >>> readable("\\ud800", "a name")
    Traceback (most recent call last):
    discreet.errors.BadQuery: a name is '\\ud800'; it must be a text without zero bytes and halves of characters. ...
    """
    try:
        storable = b"\x00" not in text.encode()
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise BadQuery(
            f"{what} is {shortened(text)}; it must be a text without zero bytes and halves of characters. "
            "Leave them out."
        )
    return text


def all_of(kind: type[_Item], items: Iterable[_Item], what: str) -> tuple[_Item, ...]:
    """The items as a tuple; raises BadQuery unless all are of one type."""
    listed = tuple(items) if isinstance(items, Iterable) else None
    if listed is None or not all(isinstance(each, kind) for each in listed):
        raise BadQuery(f"{what} is {shortened(items)}; it must be a list of {kind.__name__}. Give those only.")
    return listed


def integer_of(value: Any, what: str) -> int:
    """An exact integer; a truth value and a float are none.

    >>> integer_of(np.int8(3), "coefficient")
    3
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise BadQuery(f"{what} is {shortened(value)}; it must be a whole number. Write 1 or -3.")
    return int(value)


def integers_of(values: Any, what: str) -> NDArray[np.int64]:
    """An array of exact integers that cannot be written to.

    >>> integers_of([[1, 2], [3, 4]], "weights").flags.writeable
    False
    >>> integers_of([1.5], "weights")
    Traceback (most recent call last):
    discreet.errors.BadQuery: weights has 1.5; it must hold whole numbers of 64 bits. Write integers, ...
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        given = values
        ends = (int(given.min()), int(given.max())) if given.size else (0, 0)
    else:
        # As objects: numpy would round a float, read a text and take true for 1.
        try:
            given = np.array(values, dtype=object)
        except ValueError:
            raise BadQuery(f"{what} is {shortened(values)}; it must be a table of whole numbers.") from None
        for each in given.flat:
            if isinstance(each, (bool, np.bool_)) or not isinstance(each, (int, np.integer)):
                raise BadQuery(
                    f"{what} has {shortened(each)}; it must hold whole numbers of 64 bits. Write integers, say 0 or 1."
                )
        ends = (min(map(int, given.flat), default=0), max(map(int, given.flat), default=0))
    if ends[0] < -LARGEST_INTEGER or ends[1] > LARGEST_INTEGER:
        raise BadQuery(f"{what} has a number beyond 64 bits; it must hold smaller integers. Ask for smaller multiples.")
    return unwritable(given.astype(np.int64))


def unwritable(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """A copy on memory that Python itself never writes to; an array's own flag could be set back."""
    return np.frombuffer(values.tobytes(), dtype=np.int64).reshape(values.shape)


def shortened(value: object) -> str:
    """The beginning of a value, for a message."""
    try:
        # A text of millions of letters is not written out to show eighty.
        return repr(value[:80] if isinstance(value, str) else value)[:80]
    except (RecursionError, ValueError):
        # Nested too deep, or a number of too many digits.
        return f"a {type(value).__name__} that is too long to be shown"
