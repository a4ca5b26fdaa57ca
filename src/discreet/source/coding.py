"""Every value of a column to its cell: what `Column.code` does for one value, for a million.

Numbers are compared exactly whatever holds them: an edge is moved once to the first number of the array's own type that
reaches it, and then integers meet integers and floats meet floats.
"""

from datetime import date
from fractions import Fraction
from math import ceil, floor, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData
from discreet.schema.cell import ABOVE, BELOW, MISSING
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.schema.value import EPOCH, ValueKind, read_value
from discreet.source.reading import RawColumn
from discreet.types import Ints32

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
