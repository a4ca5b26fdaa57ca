"""Reading a table in memory, whatever holds it: pandas, polars, pyarrow, numpy, lists and dicts.

Every column becomes a numpy array of its own type, or of Python objects, with a mask of what its holder calls missing.
Nothing is converted on the way: an integer column with gaps does not become floats.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData, did_you_mean
from discreet.schema.value import ValueKind

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
