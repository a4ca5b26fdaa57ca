"""Values that are written out as text, as in CSV files: read as the kind that the schema declares.

What cannot be read as that kind is taken for what `Column.code` takes a value of another kind: outside or missing.
"""

from discreet.schema.cell import MISSING, OUTSIDE
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.source.expression import CellCase, EngineValue, choose, code, equalities, fates, place_of

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
