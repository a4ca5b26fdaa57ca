"""Every value of a column to its cell, inside the engine: what `Column.code` does, as an expression.

As in `coding.py`, numbers are compared exactly whatever holds them: an edge is moved once to the first number of the
column's own type that reaches it. The cast of a literal is written as a text, because some engines read the digits of a
decimal literal and divide, which is off by a bit.

Values that are written out as text, as in CSV files: read as the kind that the schema declares.

What cannot be read as that kind is taken for what `Column.code` takes a value of another kind: outside or missing.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from math import ceil, floor
from operator import or_
from typing import Any

from discreet.schema.column import ABOVE, BELOW, MISSING, OUTSIDE, Bins, Categories, Column, Integers
from discreet.source.coding import DROPPED, first_float
from discreet.values import ValueKind, read_value

# An Ibis value of the column's type, and an Ibis condition or a constant truth.
EngineValue = Any
EngineCondition = Any
CellCase = tuple[EngineCondition, EngineValue]

# Categories that are looked up in a list rather than compared one by one.
_MANY = 64

# The days that can be counted in nanoseconds.
_NANOSECONDS = date(1677, 9, 22).toordinal(), date(2262, 4, 11).toordinal()


def kind_of(dtype: Any) -> ValueKind | None:
    """What the values of an engine's type are, or None if no column can be declared of them."""
    if dtype.is_boolean():
        return "boolean"
    if dtype.is_numeric():
        return "number"
    if dtype.is_string():
        return "text"
    return "date" if dtype.is_date() or dtype.is_timestamp() else None


def code(column: Column, value: EngineValue) -> EngineValue:
    """The cell of a value of the engine, or DROPPED.

    >>> import ibis
    >>> rows = ibis.memtable({"age": [3, None, 99]}, schema={"age": "int64"})
    >>> rows.select(cell=code(Integers(0, 9), rows.age)).to_pyarrow()["cell"].to_pylist()
    [3, 10, 9]
    """
    fate = fates(column)
    cases = [(is_missing(value), fate[MISSING])]
    match column:
        case Categories():
            place = place_of(column, value)
            if place is not None:
                return choose(column, [*cases, (place < 0, fate[OUTSIDE])], place)
            return choose(column, [*cases, *equalities(column, value)], fate[OUTSIDE])
        case Integers():
            whole = value.floor() if value.type().is_floating() or value.type().is_decimal() else value
            rest = whole.cast("int64") - column.lower
        case Bins():
            rest = _ladder(lambda edge: reaches(value, edge), column.edges[1:])
    reached, passed = _span(column, value)
    return choose(column, [*cases, (_not(reached), fate[BELOW]), (passed, fate[ABOVE])], rest)


def _span(column: Integers | Bins, value: EngineValue) -> tuple[EngineCondition, EngineCondition]:
    """Whether a number or a day has reached the first cell, and whether it has passed the last."""
    if isinstance(column, Integers):
        return reaches(value, column.lower), reaches(value, column.upper + 1)
    passed = reaches(value, column.top + 1) if column.whole else reaches(value, column.top, beyond=True)
    return reaches(value, column.edges[0]), passed


def keeps(column: Column, value: EngineValue) -> EngineCondition:
    """Whether a row with this value belongs to the table, by this column alone."""
    fate = fates(column)
    missing_kept, outside_kept = fate[MISSING] != DROPPED, fate[OUTSIDE] != DROPPED
    if outside_kept:
        return True if missing_kept else ~is_missing(value)
    inside = _inside(column, value)
    if inside is False:
        return is_missing(value) if missing_kept else False
    return inside | is_missing(value) if missing_kept else inside


def _inside(column: Column, value: EngineValue) -> EngineCondition:
    """Whether a value is in a declared cell; of a missing one it is not true."""
    import ibis

    if isinstance(column, Categories):
        if value.type().is_string():
            return _as_text(value).isin([text for kind, text in column.readings[: column.inside] if kind == "text"])
        met = [condition for condition, _ in equalities(column, value) if condition is not False]
        return reduce(or_, met, ibis.literal(False))
    reached, passed = _span(column, value)
    return _both(_both(reached, _not(passed)), ~is_missing(value))


def fates(column: Column) -> dict[int, int]:
    """The cell of what is BELOW, ABOVE, OUTSIDE or MISSING, or DROPPED."""
    places = (BELOW, ABOVE, OUTSIDE, MISSING)
    return {place: DROPPED if cell is None else cell for place, cell in zip(places, column.fates, strict=True)}


def choose(column: Column, cases: Sequence[CellCase], rest: EngineValue) -> EngineValue:
    """The cell of the first case that is met, as a number of the smallest type."""
    import ibis

    possible = [(ibis.literal(True) if met is True else met, cell) for met, cell in cases if met is not False]
    return ibis.cases(*possible, else_=rest).cast(smallest_type(column))


def smallest_type(column: Column) -> str:
    """The smallest type that holds every cell of a column, and DROPPED."""
    if column.size <= 2**7:
        return "int8"
    return "int16" if column.size <= 2**15 else "int32"


def reaches(value: EngineValue, edge: int | Fraction, *, beyond: bool = False) -> EngineCondition:
    """Whether a number is at least an edge (or beyond it); whether a day is at least the day of this number."""
    dtype = value.type()
    if dtype.is_date() or dtype.is_timestamp():
        first = floor(edge) + 1 if beyond else ceil(edge)
        if dtype.is_timestamp() and dtype.scale == 9 and not _NANOSECONDS[0] <= first <= _NANOSECONDS[1]:
            value = value.cast(dtype.copy(scale=6))
        return False if first > date.max.toordinal() else value >= _day(first, dtype)
    if dtype.is_floating():
        return value.cast("float64") >= _text(repr(first_float(edge, beyond)), "float64")
    if dtype.is_decimal() and dtype.scale is None:
        scaled, whole = _scaled(value, Fraction(edge))
        return scaled > whole if beyond else scaled >= whole
    scale = dtype.scale if dtype.is_decimal() else 0
    first = floor(edge * 10**scale) + 1 if beyond else ceil(edge * 10**scale)
    lowest, highest = _bounds(dtype)
    if first > highest:
        return False
    return True if first <= lowest else value >= _number(first, dtype)


def _ladder(reached: Callable[[Any], EngineCondition], edges: Sequence[Any], before: int = 0) -> EngineValue:
    """How many ascending edges are reached, in as many comparisons as halving takes."""
    import ibis

    if not edges:
        return ibis.literal(before, "int32")
    middle = len(edges) // 2
    condition = reached(edges[middle])
    high = _ladder(reached, edges[middle + 1 :], before + middle + 1)
    low = _ladder(reached, edges[:middle], before)
    if isinstance(condition, bool):
        return high if condition else low
    return ibis.ifelse(condition, high, low)


def equalities(column: Categories, value: EngineValue) -> list[CellCase]:
    """The condition of each category that this type can hold."""
    dtype, kind = value.type(), kind_of(value.type())
    value = _as_text(value) if kind == "text" else value
    readings = column.readings[: column.inside]
    if kind == "number" and all(own == "boolean" for own, _ in readings):
        readings = tuple(("number", int(truth)) for _, truth in readings)
    found: list[CellCase] = []
    for cell, (own, wanted) in enumerate(readings):
        if own != kind:
            continue
        if kind in ("text", "boolean"):
            found.append((value == wanted, cell))
        elif dtype.is_timestamp():
            found.append((_both(reaches(value, wanted), _not(reaches(value, wanted + 1))), cell))
        elif kind == "date":
            found.append((value == _day(wanted, dtype), cell))
        else:
            found.append((_equals_number(value, wanted), cell))
    return found


def place_of(column: Categories, value: EngineValue) -> EngineValue | None:
    """The place of a value in a long list of texts or whole numbers, −1 if it is not there; None for other lists.

    A case for each of ten thousand values takes Ibis seconds to write; a list is one literal.
    """
    import ibis

    dtype, readings = value.type(), column.readings[: column.inside]
    if len(readings) <= _MANY or {kind for kind, _ in readings} != {kind_of(dtype)}:
        return None
    listed = [wanted for _, wanted in readings]
    if dtype.is_string():
        return ibis.literal(listed, "array<string>").index(_as_text(value))
    longest = max(map(_bits, listed)) if kind_of(dtype) == "number" else 64
    if dtype.is_signed_integer() and longest < 64:
        return ibis.literal(listed, "array<int64>").index(value.cast("int64"))
    if dtype.is_floating() and longest <= 53:
        return ibis.literal([float(wanted) for wanted in listed], "array<float64>").index(value.cast("float64"))
    return None


def _bits(number: int | Fraction) -> int:
    """How many bits a whole number has; more than any type, if it is not whole."""
    return number.bit_length() if isinstance(number, int) else 999


def _equals_number(value: EngineValue, wanted: int | Fraction) -> EngineCondition:
    dtype = value.type()
    if dtype.is_floating():
        first = first_float(wanted, beyond=False)
        return value.cast("float64") == _text(repr(first), "float64") if read_value(first)[1] == wanted else False
    if dtype.is_decimal() and dtype.scale is None:
        scaled, whole = _scaled(value, Fraction(wanted))
        return scaled == whole
    scaled = wanted * 10 ** (dtype.scale if dtype.is_decimal() else 0)
    lowest, highest = _bounds(dtype)
    return value == _number(int(scaled), dtype) if scaled == int(scaled) and lowest <= scaled <= highest else False


def is_missing(value: EngineValue) -> EngineCondition:
    """Whether there is no value, or one that is not a number."""
    dtype = value.type()
    if dtype.is_floating():
        return value.isnull() | value.isnan()
    # Only Postgres has decimals that are NaN, and their types do not show it.
    if dtype.is_decimal() and (dtype.scale is None or value.get_backend().name == "postgres"):
        return value.isnull() | (value.cast("string") == "NaN")
    return value.isnull()


def _scaled(value: EngineValue, edge: Fraction) -> tuple[EngineValue, Decimal]:
    """A decimal of any length and a whole number that compare like it and the edge; the product never overflows."""
    import ibis

    if edge.denominator == 1:
        return value, Decimal(edge.numerator)
    beyond = value.abs() > Decimal(abs(edge.numerator))
    return ibis.ifelse(beyond, value, value * Decimal(edge.denominator)), Decimal(edge.numerator)


def _bounds(dtype: Any) -> tuple[int, int]:
    """The lowest and the highest number that a type holds, in units of its last digit."""
    if dtype.is_decimal():
        return 1 - 10**dtype.precision, 10**dtype.precision - 1
    return int(dtype.bounds.lower), int(dtype.bounds.upper)


def _number(units: int, dtype: Any) -> EngineValue:
    """A literal of an integer or decimal type."""
    import ibis

    if dtype.is_decimal() and (dtype.scale != 0 or dtype.precision > 38):
        with localcontext(prec=100):
            return ibis.literal(Decimal(units).scaleb(-dtype.scale), dtype)
    if -(2**63) <= units < 2**64:
        return ibis.literal(units, "int64" if units < 2**63 else "uint64")
    # A HUGEINT of DuckDB has a decimal type here, and not all of them can be cast to one; an integer is not cast.
    many, rest = divmod(units, 2**64 - 1)
    return ibis.literal(many, "int64") * ibis.literal(2**64 - 1, "uint64") + ibis.literal(rest, "uint64")


def _day(ordinal: int, dtype: Any) -> EngineValue:
    """The literal of a day, or of its first moment (in UTC, where the type knows of zones)."""
    import ibis

    day = date.fromordinal(max(ordinal, 1))
    if dtype.is_date():
        return ibis.literal(day)
    zone = UTC if dtype.timezone else None
    return ibis.literal(datetime(day.year, day.month, day.day, tzinfo=zone))


def _text(shown: str, dtype: str) -> EngineValue:
    import ibis

    return ibis.literal(shown).cast(dtype)


def _as_text(value: EngineValue) -> EngineValue:
    """A text that can be compared with any: an enumeration of Postgres calls itself a text, and fails beside others."""
    import ibis.expr.operations as ops

    # Elsewhere a cast may change how texts are compared, and then not as they were grouped.
    return ops.Cast(value, "string").to_expr() if value.get_backend().name == "postgres" else value


def _not(condition: EngineCondition) -> EngineCondition:
    return not condition if isinstance(condition, bool) else ~condition


def _both(first: EngineCondition, second: EngineCondition) -> EngineCondition:
    if isinstance(first, bool):
        return second if first else False
    if isinstance(second, bool):
        return first if second else False
    return first & second


_WHOLE = r"^[ \t]*[-+]?[0-9]{1,18}[ \t]*$"


def code_text(column: Column, value: EngineValue) -> EngineValue:
    """The cell of a text of DuckDB, or DROPPED. An empty field is missing, an empty text in quotes is a text.

    >>> import ibis
    >>> rows = ibis.memtable({"age": ["3", "4.9", "x", None]}, schema={"age": "string"})
    >>> rows.select(cell=code_text(Integers(0, 9), rows.age)).to_pyarrow()["cell"].to_pylist()
    [3, 4, 10, 10]
    """
    import ibis

    match column:
        case Categories():
            return _category(column, value)
        case Bins() if column.kind == "date":
            return code(column, _moment(value))
        case Integers() | Bins():
            return ibis.ifelse(_is_whole(value), code(column, _integer(value)), code(column, _fraction(value)))


def _category(column: Categories, value: EngineValue) -> EngineValue:
    """A mixed column is read as a text first, then as a boolean, a number and a day."""
    kinds = {kind for kind, _ in column.readings[: column.inside]}
    fate = fates(column)
    cases: list[CellCase] = [(value.isnull(), fate[MISSING])]
    readings = {"text": [value], "boolean": [_truth(value)], "date": [_moment(value)]}
    readings["number"] = [_integer(value), _fraction(value)]
    for kind in ("text", "boolean", "number", "date"):
        if kind in kinds:
            cases += [case for each in readings[kind] for case in _cases(column, each)]
    if "number" in kinds:
        cases.append((_fraction(value).isnan(), fate[MISSING]))
    return choose(column, cases, fate[OUTSIDE])


def _cases(column: Categories, value: EngineValue) -> list[CellCase]:
    place = place_of(column, value)
    return equalities(column, value) if place is None else [(place >= 0, place)]


def _is_whole(value: EngineValue) -> EngineValue:
    return value.re_search(_WHOLE)


def _integer(value: EngineValue) -> EngineValue:
    """A whole number, exactly; the cast alone would round "1.5"."""
    import ibis

    return ibis.ifelse(_is_whole(value), value.try_cast("int64"), None)


def _fraction(value: EngineValue) -> EngineValue:
    """Any other number."""
    import ibis

    return ibis.ifelse(_is_whole(value), None, value.try_cast("float64"))


def _truth(value: EngineValue) -> EngineValue:
    import ibis

    word = value.strip().lower()
    return ibis.cases((word.isin(["true", "t", "1"]), True), (word.isin(["false", "f", "0"]), False))


def _moment(value: EngineValue) -> EngineValue:
    return value.try_cast("timestamp")
