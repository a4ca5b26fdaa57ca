"""What queries are made of, read exactly or not at all: names of columns, integers, and arrays that cannot change.

A query has one meaning only if it has one form. Every class of this package that says *what* is asked establishes its
form in its constructor, from what is here, and there is no other way to make one. Why that is enough: normal_form.md.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery

_Thing = TypeVar("_Thing")

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


def all_of(kind: type[_Thing], things: Iterable[_Thing], what: str) -> tuple[_Thing, ...]:
    """Things of one kind, listed once."""
    listed = tuple(things) if isinstance(things, Iterable) else None
    if listed is None or not all(isinstance(each, kind) for each in listed):
        raise BadQuery(f"{what} is {shortened(things)}; it must be a list of {kind.__name__}. Give those only.")
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
