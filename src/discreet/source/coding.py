"""Reading a table in memory, whatever holds it: pandas, polars, pyarrow, numpy, lists and dicts.

Every column becomes a numpy array of its own type, or of Python objects, with a mask of what its holder calls missing.
Nothing is converted on the way: an integer column with gaps does not become floats.

Every value of a column to its cell: what `Column.code` does for one value, for a million.

Numbers are compared exactly whatever holds them: an edge is moved once to the first number of the array's own type that
reaches it, and then integers meet integers and floats meet floats.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil, floor, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData, did_you_mean
from discreet.schema.column import ABOVE, BELOW, MISSING, Bins, Categories, Column, Integers
from discreet.types import Ints32
from discreet.values import EPOCH, ValueKind, read_value

_KINDS: dict[str, ValueKind] = {"b": "boolean", "i": "number", "u": "number", "f": "number", "U": "text", "M": "date"}


@dataclass(frozen=True, eq=False, repr=False)
class RawColumn:
    """The values of one column, where they are missing, and their kind if the holder declares one."""

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    kind: ValueKind | None = None


def read_table(data: Any, names: Iterable[str]) -> dict[str, RawColumn]:
    """The named columns of a table.

    >>> read_table({"age": [31, None]}, ["age"])["age"].values
    array([31, None], dtype=object)
    """
    known, get = _holder(data)
    columns = {}
    for name in names:
        if known is not None and known.count(name) != 1:
            problem = "is there twice" if name in known else f"is not there; {did_you_mean(name, known)}"
            raise BadData(f'column "{name}" of the schema {problem} The columns of the table must match the schema.')
        columns[name] = get(name)
    if len({len(column.values) for column in columns.values()}) > 1:
        raise BadData("the columns have different lengths; a table has one value for each row and column.")
    return columns


def _holder(data: Any) -> tuple[list[str] | None, Callable[[str], RawColumn]]:
    """The names of the columns, if there are any, and how to read one."""
    library, kind = type(data).__module__.split(".")[0], type(data).__name__
    match library, kind:
        case ("pandas", "DataFrame") | ("polars", "DataFrame"):
            return list(data.columns), lambda name: _read(data[name])
        case ("pyarrow", "Table" | "RecordBatch"):
            return list(data.column_names), lambda name: _read(data.column(name))
        case ("polars", "LazyFrame"):
            raise BadData("the table is a polars LazyFrame, not yet computed. Give frame.collect().")
    if isinstance(data, Mapping):
        return list(data), lambda name: _read(data[name])
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.names:
        return list(data.dtype.names), lambda name: _read(data[name])
    if isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data):
        # A list of no rows names no columns. A key that only some rows lack is a missing value.
        known = list(dict.fromkeys(name for row in data for name in row)) if data else None
        return known, lambda name: _objects([row.get(name) for row in data])
    raise BadData(
        f"a table cannot be read from a {kind}. Give a pandas or polars DataFrame, a pyarrow Table, a dict of lists, a "
        "list of dicts or a numpy structured array."
    )


def _read(column: Any) -> RawColumn:
    match type(column).__module__.split(".")[0]:
        case "pandas":
            return _pandas(column)
        case "polars":
            return _polars(column)
        case "pyarrow":
            return _pyarrow(column)
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise BadData(f"a column is an array of {column.ndim} dimensions; it must have one.")
        mask = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
        return _array(np.asarray(column), mask)
    if isinstance(column, Sequence) and not isinstance(column, (str, bytes)):
        return _objects(column)
    raise BadData(f"a column is a {type(column).__name__}; it must be a list or an array.")


def _array(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> RawColumn:
    return RawColumn(values, missing, _KINDS.get(values.dtype.kind))


def _objects(values: Sequence[Any], kind: ValueKind | None = None) -> RawColumn:
    # np.array would turn [1, "a"] into texts and [[1], [2]] into a matrix.
    return RawColumn(np.fromiter(values, dtype=object, count=len(values)), None, kind)


def _pandas(series: Any) -> RawColumn:
    if isinstance(series.dtype, np.dtype):
        return _array(series.to_numpy())
    plain_dtype = getattr(series.dtype, "numpy_dtype", None)
    if plain_dtype is not None and plain_dtype.kind in "biuf":
        return _array(series.to_numpy(dtype=plain_dtype, na_value=plain_dtype.type(0)), series.isna().to_numpy())
    text = type(series.dtype).__name__ == "StringDtype"
    objects = _objects(series.astype(object).tolist(), "text" if text else None)
    return RawColumn(objects.values, series.isna().to_numpy(), objects.kind)


def _polars(series: Any) -> RawColumn:
    dtype, name = series.dtype, str(series.dtype)
    missing = series.is_null().to_numpy()
    if name == "Boolean" or dtype.is_float() or (dtype.is_integer() and not name.endswith("128")):
        return _array(series.fill_null(False if name == "Boolean" else 0).to_numpy(), missing)
    if name == "Date" or (name.startswith("Datetime") and dtype.time_zone is None):
        return _array(series.to_numpy(), missing)
    return _objects(series.to_list(), "text" if name in ("String", "Categorical", "Enum") else None)


def _pyarrow(column: Any) -> RawColumn:
    from pyarrow import compute, types

    dtype = column.type
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if types.is_boolean(dtype) or types.is_integer(dtype) or types.is_floating(dtype):
        filled = compute.fill_null(column, False if types.is_boolean(dtype) else 0)
        return _array(filled.to_numpy(zero_copy_only=False), missing)
    if types.is_date(dtype) or (types.is_timestamp(dtype) and dtype.tz is None):
        return _array(column.to_numpy(zero_copy_only=False), missing)
    text = types.is_string(dtype) or types.is_large_string(dtype)
    return _objects(column.to_pylist(), "text" if text else None)


DROPPED = -1

# Only these are remembered while reading objects: equal ones are the same value. (Two equal time stamps in different
# zones can be on different days.)
_REMEMBERED = frozenset({str, int, float, bool, date})


def code_column(name: str, column: Column, raw: RawColumn) -> Ints32:
    """The cell of each value, or DROPPED.

    >>> code_column("age", Integers(0, 9), RawColumn(np.array([3.5, np.nan, 99.0])))
    array([ 3, 10,  9], dtype=int32)
    """
    if raw.kind is not None:
        check_kind(name, column, raw.kind, f"{raw.kind}s")
    places = _locate(column, raw.values)
    if raw.missing is not None:
        places[raw.missing] = MISSING
    fates = np.array([DROPPED if fate is None else fate for fate in column.fates], dtype=np.int64)
    lost = places < 0
    places[lost] = fates[-1 - places[lost]]
    return places.astype(np.int32)


def check_kind(name: str, column: Column, kind: ValueKind | None, held: str) -> None:
    """Refuse a column whose type in the data cannot hold any declared value."""
    if kind not in _kinds(column):
        raise BadData(
            f'column "{name}" holds {held} and is declared as {type(column).__name__} of '
            f"{' or '.join(sorted(_kinds(column)))}s, so no value would fit. Convert it, or declare it otherwise."
        )


def _kinds(column: Column) -> set[ValueKind]:
    if isinstance(column, Integers):
        return {"number"}
    if isinstance(column, Bins):
        return {"date"} if column.kind == "date" else {"number"}
    kinds = {read_value(value)[0] for value in column.values}
    return kinds | {"number"} if kinds == {"boolean"} else kinds


def _locate(column: Column, values: NDArray[Any]) -> NDArray[np.int64]:
    kind = values.dtype.kind
    if kind == "O" or kind not in "biufUM":
        return _locate_objects(column, values)
    if isinstance(column, Categories) and values.dtype.itemsize == 1:
        # Looked up, not sorted: of one byte there are few values.
        held = values.view(np.uint8)
        seen = np.flatnonzero(np.bincount(held, minlength=256)).astype(np.uint8)
        fates = np.zeros(256, dtype=np.int64)
        fates[seen] = [column.locate(value) for value in seen.view(values.dtype)]
        return fates[held]
    if isinstance(column, Categories):
        distinct, where = np.unique(values, return_inverse=True)
        places: NDArray[np.int64] = np.array([column.locate(value) for value in distinct], dtype=np.int64)[where]
        return places
    if kind == "M":
        days = values.astype("datetime64[D]").astype(np.int64) + EPOCH
        return np.where(np.isnat(values), MISSING, _between_cuts(column, days))
    if kind == "f":
        missing = np.isnan(values)
        return np.where(missing, MISSING, _between_cuts(column, np.where(missing, 0.0, values).astype(np.float64)))
    return _between_cuts(column, values.astype(np.uint64 if values.dtype == np.uint64 else np.int64))


def _locate_objects(column: Column, values: NDArray[Any]) -> NDArray[np.int64]:
    known: dict[tuple[type, Any], int] = {}
    places = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        if type(value) in _REMEMBERED:
            key = (type(value), value)
            place = known.get(key)
            if place is None:
                place = known[key] = column.locate(value)
        else:
            place = column.locate(value)
        places[row] = place
    return places


def _between_cuts(column: Integers | Bins, values: NDArray[Any]) -> NDArray[np.int64]:
    """The number of cuts that a value reaches, less one; below the first and from the last on it is outside."""
    if isinstance(column, Integers):
        below, above = (_reached(values, cut) for cut in (column.lower, column.upper + 1))
        inside = below & ~above
        places = np.where(above, ABOVE, BELOW).astype(np.int64)
        # Both ends fit in 64 bits and so does the floor of what lies between; the difference is at most 2^31.
        kept = np.floor(values[inside]) if values.dtype.kind == "f" else values[inside]
        places[inside] = kept.astype(np.int64) - column.lower
        return places
    after = floor(column.top) + 1 if column.whole else None
    cuts = [_first(values.dtype, edge) for edge in column.edges]
    cuts.append(_first(values.dtype, column.top, beyond=True) if after is None else _first(values.dtype, after))
    reachable = np.array([cut for cut in cuts if cut is not None], dtype=values.dtype)
    places = np.searchsorted(reachable, values, side="right").astype(np.int64) - 1
    return np.where(places < 0, BELOW, np.where(places >= column.inside, ABOVE, places))


def _reached(values: NDArray[Any], cut: int) -> NDArray[np.bool_]:
    first = _first(values.dtype, cut)
    return np.zeros(len(values), dtype=np.bool_) if first is None else values >= first


def _first(dtype: np.dtype[Any], edge: int | Fraction, *, beyond: bool = False) -> Any:
    """The first number of this type that is at least the edge (or beyond it); None if there is none."""
    if dtype.kind == "f":
        return dtype.type(first_float(edge, beyond))
    first = floor(edge) + 1 if beyond else ceil(edge)
    limits = np.iinfo(dtype)
    return None if first > limits.max else dtype.type(max(first, int(limits.min)))


def first_float(edge: int | Fraction, beyond: bool) -> float:
    """The first float that is at least the edge (or beyond it), as a float is read."""

    def reaches(value: float) -> bool:
        _, number = read_value(value)
        return bool(number > edge if beyond else number >= edge)

    try:
        first = float(edge)
    except OverflowError:
        return inf if edge > 0 else nextafter(-inf, inf)
    while not reaches(first):
        first = nextafter(first, inf)
    while reaches(nextafter(first, -inf)):
        first = nextafter(first, -inf)
    return first
