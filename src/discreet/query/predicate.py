"""Which rows are meant: `col("age") >= 65`, combined with & | ~.

A predicate is an immutable tree that says nothing about a table; it is read against a domain below.

Logic has two values, as in Python and not as in SQL: a row satisfies a predicate or it does not. A row whose value is
in an extra cell ("other", "missing") satisfies no comparison, so it satisfies the negation of every comparison:
`~(col("age") >= 65)` includes the rows of unknown age, and `col("age") < 65` does not.

Which cells a predicate means: reading it against a domain.

An atom becomes a mask over the cells of its column. It is exact or refused: a comparison that cuts through a bin has no
answer in the table's cells, so the message names the nearest edges that have one.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from math import ceil, floor, isinf
from typing import Any, Literal, NoReturn

import numpy as np

from discreet.errors import BadQuery, did_you_mean
from discreet.query.product import column_of
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.types import Bools
from discreet.values import Readable, Reading, plain, read_value

# A value with more digits is a mistake.
MOST_VALUE_DIGITS = 450

Operator = Literal["==", "!=", "<", "<=", ">", ">="]


class Predicate:
    """What is true of a row or not: combine with & (and), | (or), ~ (not)."""

    __slots__ = ()

    def __and__(self, other: "Predicate") -> "Predicate":
        return And(_parts(And, self, other)) if isinstance(other, Predicate) else NotImplemented

    def __or__(self, other: "Predicate") -> "Predicate":
        return Or(_parts(Or, self, other)) if isinstance(other, Predicate) else NotImplemented

    def __invert__(self) -> "Predicate":
        return self.part if isinstance(self, Not) else Not(self)

    def __bool__(self) -> NoReturn:
        raise BadQuery(
            f"{self!r} is a question, not yet true or false, so `and`, `or`, `not` and a <= b <= c cannot be asked of "
            'it. Use & | ~ with brackets, and col("x").between(a, c).'
        )


@dataclass(frozen=True, slots=True, repr=False)
class Everyone(Predicate):
    """True of every row."""

    def __repr__(self) -> str:
        return "everyone"


@dataclass(frozen=True, slots=True, repr=False)
class Compare(Predicate):
    """A column against a value."""

    column: str
    operator: Operator
    value: Readable = field(compare=False)
    # Python says True == 1; these are two questions, so they are compared by what was read.
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _askable(self.column, self.value))
        object.__setattr__(self, "reading", read_value(self.value))

    def __repr__(self) -> str:
        return f"col({self.column!r}) {self.operator} {self.value!r}"


@dataclass(frozen=True, slots=True, repr=False)
class IsIn(Predicate):
    """A column equal to one of some values."""

    column: str
    values: tuple[Readable, ...] = field(compare=False)
    readings: tuple[Reading, ...] = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.values, (str, bytes)) or not isinstance(self.values, Iterable):
            raise BadQuery(f"isin() was given {self.values!r}; it takes a list of values. Write [{self.values!r}].")
        object.__setattr__(self, "values", tuple(_askable(self.column, value) for value in self.values))
        object.__setattr__(self, "readings", tuple(map(read_value, self.values)))

    def __repr__(self) -> str:
        return f"col({self.column!r}).isin({list(self.values)!r})"


@dataclass(frozen=True, slots=True, repr=False)
class IsMissing(Predicate):
    """A column without a value."""

    column: str

    def __repr__(self) -> str:
        return f"col({self.column!r}).is_missing()"


@dataclass(frozen=True, slots=True, repr=False)
class And(Predicate):
    """All of these."""

    parts: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return " & ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Or(Predicate):
    """At least one of these."""

    parts: tuple[Predicate, ...]

    def __repr__(self) -> str:
        return " | ".join(f"({part!r})" for part in self.parts)


@dataclass(frozen=True, slots=True, repr=False)
class Not(Predicate):
    """Not this: the plain complement."""

    part: Predicate

    def __repr__(self) -> str:
        return f"~({self.part!r})"


everyone = Everyone()
Atom = Compare | IsIn | IsMissing


class Col:
    """A column by name; comparing it makes a predicate.

    >>> col("age").between(25, 64) & (col("sex") == "Female")
    (col('age') >= 25) & (col('age') <= 64) & (col('sex') == 'Female')
    """

    __slots__ = ("name",)
    # So that numpy's scalars leave `np.int64(3) <= col("x")` to us.
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise BadQuery(f'a column is named {name!r}; a name is a text that is not empty. Write col("age").')
        self.name = name

    def __eq__(self, value: Any) -> Compare:  # type: ignore[override]
        return Compare(self.name, "==", value)

    def __ne__(self, value: Any) -> Compare:  # type: ignore[override]
        return Compare(self.name, "!=", value)

    def __lt__(self, value: Any) -> Compare:
        return Compare(self.name, "<", value)

    def __le__(self, value: Any) -> Compare:
        return Compare(self.name, "<=", value)

    def __gt__(self, value: Any) -> Compare:
        return Compare(self.name, ">", value)

    def __ge__(self, value: Any) -> Compare:
        return Compare(self.name, ">=", value)

    def isin(self, values: Iterable[Any]) -> IsIn:
        """Equal to one of these; true of no row if there are none."""
        return IsIn(self.name, values)  # type: ignore[arg-type]

    def between(self, low: Any, high: Any) -> Predicate:
        """From `low` to `high`, both included, as in SQL."""
        return And((self >= low, self <= high))

    def is_missing(self) -> IsMissing:
        """Without a value, where the column keeps a cell for that."""
        return IsMissing(self.name)

    def __bool__(self) -> NoReturn:
        raise BadQuery(f"{self!r} is a column, neither true nor false. Compare it: {self!r} == True.")

    def __repr__(self) -> str:
        return f"col({self.name!r})"


def col(name: str) -> Col:
    """A column by name, to be compared.

    >>> ~(col("age") >= 65)
    ~(col('age') >= 65)
    """
    return Col(name)


def columns_of(predicate: Predicate) -> tuple[str, ...]:
    """The columns that a predicate names, sorted.

    >>> columns_of((col("sex") == "Female") | (col("age") >= 65))
    ('age', 'sex')
    """
    match predicate:
        case Compare() | IsIn() | IsMissing():
            return (predicate.column,)
        case And(parts) | Or(parts):
            return tuple(sorted({name for part in parts for name in columns_of(part)}))
        case Not(part):
            return columns_of(part)
        case Everyone():
            return ()
    raise BadQuery(f'{predicate!r} is not a predicate. Write one with col(), say col("age") >= 65.')


def _parts(kind: type[And] | type[Or], *predicates: Predicate) -> tuple[Predicate, ...]:
    return tuple(
        part for predicate in predicates for part in (predicate.parts if isinstance(predicate, kind) else (predicate,))
    )


def _is_long(number: Any) -> bool:
    """Whether a number has more digits than any value of a column: Python would not print it."""
    exact = Fraction(number)
    return max(exact.numerator.bit_length(), exact.denominator.bit_length()) > MOST_VALUE_DIGITS * 10 // 3


def _askable(column: str, value: Any) -> Any:
    value = plain(value)
    match read_value(value):
        case ("missing", _):
            raise BadQuery(
                f'"{column}" is compared with {_shown(value)}; nothing equals a missing value. Ask if it is missing.'
            )
        case ("number", number) if not isinstance(number, float) and _is_long(number):
            raise BadQuery(
                f'"{column}" is compared with a number of more than {MOST_VALUE_DIGITS} digits. Give a shorter one.'
            )
        case ("number", float() as number) if isinf(number):
            raise BadQuery(f'"{column}" is compared with {_shown(value)}; a value is finite. Leave that side open.')
        case ("date", _) if isinstance(value, datetime):
            raise BadQuery(
                f'"{column}" is compared with {_shown(value)}; dates are kept by the day, without a time. Give a date.'
            )
        case ("unreadable", _):
            raise BadQuery(
                f'"{column}" is compared with a {type(value).__name__}; a value is a boolean, a number, a text or a '
                "date. Compare columns with values only."
            )
    return value


def mask_of(atom: Atom, domain: Domain) -> Bools:
    """The cells of the atom's column that satisfy it; the extra cells satisfy no comparison but = with their label.

    >>> from discreet.query.predicate import col
    >>> mask_of(col("age") >= 65, Domain({"age": Bins([17, 25, 65], upper=90)}))
    array([False, False,  True, False])
    """
    name, column = atom.column, column_of(domain, atom.column)
    mask = np.zeros(column.size, dtype=np.bool_)
    match atom:
        case IsMissing():
            if "missing" not in column.extra:
                raise BadQuery(
                    f'column "{name}" keeps no cell for missing values. Leave this condition out; the '
                    "owner can declare one."
                )
            mask[-1] = True
        case IsIn(_, values):
            for value in values:
                mask[_cell(name, column, value)] = True
        case Compare(_, "==", value):
            mask[_cell(name, column, value)] = True
        case Compare(_, "!=", value):
            mask[: column.inside] = True
            mask[_cell(name, column, value)] = False
        case Compare(_, operator, value):
            edge = _edge(name, column, operator, value)
            mask[slice(0, edge) if operator in ("<", "<=") else slice(edge, column.inside)] = True
    return mask


def _cell(name: str, column: Column, value: Any) -> int:
    """The one cell that a value or a label means: answers show "25 to 64" and "other", so these can be asked for."""
    if not isinstance(value, str) or column.locate(value) >= 0:
        return _equal(name, column, value)
    if value in column.extra:
        return column.inside + column.extra.index(value)
    if not isinstance(column, Bins):
        return _equal(name, column, value)
    cell = column.cells_by_label.get(value)
    if cell is None:
        raise BadQuery(f'column "{name}" has no bin {_shown(value)}; {did_you_mean(value, column.labels)}')
    return cell


def _equal(name: str, column: Column, value: Any) -> int:
    """The one cell that holds this value and no other."""
    number, cell = _comparable(name, column, value), column.locate(value)
    if cell >= 0 and isinstance(column, Bins) and _ends(column, cell) != (number, number):
        raise BadQuery(
            f'column "{name}" keeps {column.label(cell)} together, so {_shown(value)} alone cannot be asked. '
            f"Ask for the whole bin ('{column.label(cell)}')."
        )
    if cell >= 0 and (not isinstance(column, Integers) or number == column.lower + cell):
        return cell
    if isinstance(column, Categories):
        rule = did_you_mean(str(value), map(str, column.values))
    else:
        rule = f"it runs from {column.label(0)} to {column.label(column.inside - 1)}."
    raise BadQuery(f'column "{name}" has no value {_shown(value)}; {rule}')


def _edge(name: str, column: Column, operator: str, value: Any) -> int:
    """How many declared cells lie before the cut, which is before `value` for < and >=, after it for <= and >."""
    after = operator in ("<=", ">")
    if isinstance(column, Categories):
        if not column.ordered:
            raise BadQuery(
                f'column "{name}" has categories without an order, so {operator} cannot be asked. Ask for one '
                "of its values, or for a list of them; the owner can declare an order."
            )
        return _equal(name, column, value) + after
    number = _comparable(name, column, value)
    if isinstance(column, Integers) or column.whole:
        # Among integers, after 64 and before 65 is the same cut.
        number, after = (floor(number) + 1 if after else ceil(number)), False
    if isinstance(column, Integers):
        return int(min(max(number - column.lower, 0), column.inside))
    return _bin_edge(name, column, number, after, value)


def _bin_edge(name: str, column: Bins, number: Any, after: bool, value: Any) -> int:
    cell = bisect_right(column.edges, number)
    if cell == 0 or (cell == 1 and number == column.edges[0] and not after):
        return 0
    if number > column.top or (number == column.top and after):
        return column.inside
    if number == column.edges[cell - 1] and not after:
        return cell - 1
    low, high = column.starts[cell - 1], column.starts[cell] if cell < column.inside else column.upper
    raise BadQuery(
        f'column "{name}" is kept in bins, and {_shown(value)} cuts through {column.label(cell - 1)}. '
        f"Ask at one of the nearest edges, {low} or {high}."
    )


def _ends(column: Bins, cell: int) -> tuple[Any, Any]:
    if cell == column.inside - 1:
        return column.edges[cell], column.top
    return column.edges[cell], column.edges[cell + 1] - (1 if column.whole else 0)


def _comparable(name: str, column: Column, value: Any) -> Any:
    kind, number = read_value(value)
    # Categories may be of any kind; integers and bins are of one.
    wanted = kind if isinstance(column, Categories) else getattr(column, "kind", "number")
    if kind != wanted:
        raise BadQuery(
            f'column "{name}" holds {wanted}s; it was compared with the {kind} {_shown(value)}. '
            f"Compare it with a {wanted}."
        )
    return number


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
