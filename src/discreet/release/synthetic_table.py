"""Synthetic rows as a table of raw values, in the types of the original table."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor, inf, nextafter
from os import PathLike
from typing import Any, Literal

import numpy as np

from discreet.errors import BadData, BadParameter
from discreet.model.interface import Coded
from discreet.model.quasi_random import uniform
from discreet.model.rows import Rows
from discreet.schema.column import Bins, Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.source.coding import first_float
from discreet.types import Ints, Numbers
from discreet.values import read_value

Inside = Literal["anywhere", "middle"]
# For each column, a value for each row: a list of Python's own values, None where it is missing.
Raw = dict[str, list[Any]]


_TYPES = {bool: "boolean", int: "integer", float: "number", str: "text", date: "date"}
# The types of pandas, without and with missing values.
_PANDAS: dict[str | None, tuple[str | None, str | None]] = {
    "boolean": ("bool", "boolean"),
    "integer": ("int64", "Int64"),
    "number": ("float64", "float64"),
    "text": (None, None),
}


def raw_rows(codes: Coded, domain: Domain | Schema, *, inside: Inside = "anywhere") -> Raw:
    """The raw values of rows: for each column and row a value that lies in the row's cell.

    A category is its value, an integer itself. In a bin each whole number, or day, or decimal is as likely as another;
    with `inside="middle"` it is always the middle one. The extra cells "other" and "missing" become None, because
    their values are not known. So raw values coded again give the same codes, except for extra cells, which are coded
    as the column codes missing values: "missing" comes back, and "other" only if missing values count as outside.

    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"age": Bins([17, 25, 65], upper=90), "smoker": Boolean()})
    >>> rows = {"age": np.array([0, 1, 3]), "smoker": np.array([0, 1, 1])}
    >>> raw_rows(rows, people, inside="middle")
    {'age': [20, 44, None], 'smoker': [False, True, True]}
    """
    kept = domain.domain if isinstance(domain, Schema) else domain
    if inside not in ("anywhere", "middle"):
        raise BadParameter(f'inside is {inside!r}; it must be "anywhere" or "middle". Leave it out for the first.')
    checked = Rows(kept, codes).codes
    return {name: _raw(column, checked[name], inside) for name, column in kept.columns}


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows:
    """Rows that a release made up, as codes and, drawn once, as raw values (`raw_rows`).

    They are public: anyone who has the release may draw them, as often as they like.

    >>> from discreet.schema.column import Boolean
    >>> rows = SyntheticRows(Domain({"smoker": Boolean()}), {"smoker": np.array([1, 0])})
    >>> len(rows), rows.raw
    (2, {'smoker': [True, False]})
    """

    domain: Domain
    codes: Mapping[str, Ints]
    inside: Inside = "anywhere"

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", Rows(self.domain, self.codes).codes)
        if self.inside not in ("anywhere", "middle"):
            raise BadParameter(f'inside is {self.inside!r}; it must be "anywhere" or "middle".')

    def __len__(self) -> int:
        return len(self.codes[next(iter(self.domain))])

    @cached_property
    def raw(self) -> Raw:
        """For each column the raw value of each row; the same ones each time."""
        return raw_rows(dict(self.codes), self.domain, inside=self.inside)

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        with _wanted("pyarrow"):
            import pyarrow
        types = {
            "boolean": pyarrow.bool_(),
            "integer": pyarrow.int64(),
            "number": pyarrow.float64(),
            "text": pyarrow.string(),
            "date": pyarrow.date32(),
        }
        return pyarrow.table(
            {name: pyarrow.array(values, types[self._type(name)]) for name, values in self.raw.items()}
        )

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        with _wanted("polars"):
            import polars
        types = {
            "boolean": polars.Boolean,
            "integer": polars.Int64,
            "number": polars.Float64,
            "text": polars.String,
            "date": polars.Date,
        }
        return polars.DataFrame(
            {name: polars.Series(values, dtype=types[self._type(name)]) for name, values in self.raw.items()}
        )

    def to_pandas(self) -> Any:
        """A pandas DataFrame. Where values are missing, integers and booleans are of the types Int64 and boolean."""
        with _wanted("pandas"):
            import pandas
        columns = {}
        for name, values in self.raw.items():
            kind, gaps = _type_of(self.domain[name]), None in values
            if kind == "date":
                columns[name] = pandas.Series(np.array(values, dtype="datetime64[s]"))
            elif kind in _PANDAS:
                columns[name] = pandas.Series(values, dtype=_PANDAS[kind][gaps])
            else:
                columns[name] = pandas.Series(values, dtype=object)
        return pandas.DataFrame(columns)

    def write_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file; one that is there is replaced."""
        with _wanted("pyarrow"):
            from pyarrow import parquet
        parquet.write_table(self.to_arrow(), path)

    def write_csv(self, path: str | PathLike[str]) -> None:
        """Write a CSV file with a line of names; one that is there is replaced. What is missing is an empty field."""
        import csv

        with open(path, "w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(self.raw)
            lines.writerows(zip(*self.raw.values(), strict=True))

    def _type(self, name: str) -> str:
        found = _type_of(self.domain[name])
        if found is None:
            raise BadData(
                f'column "{name}" has values of several types, or integers of more than 64 bits, and a column of this '
                "kind of table has one type. Take to_pandas, or write_csv."
            )
        return found

    def __repr__(self) -> str:
        return f"<SyntheticRows: {len(self)} of {', '.join(self.domain)}>"


@contextmanager
def _wanted(package: str) -> Iterator[None]:
    """Say how to install a package that is missing."""
    try:
        yield
    except ImportError:
        raise BadData(
            f"this needs the package {package}, which is not installed. Run: pip install {package}; or take write_csv, "
            "which needs nothing."
        ) from None


def _type_of(column: Column) -> str | None:
    """The type of all raw values of a column but missing ones; None if they differ, or no machine type holds them."""
    if isinstance(column, Integers):
        return "integer"
    if isinstance(column, Bins):
        if column.kind == "date":
            return "date"
        return ("integer" if _fits(column.edges[0], column.top) else None) if column.whole else "number"
    types = {type(value) for value in _values(column)}
    if len(types) > 1 or (types == {int} and not _fits(*_values(column))):
        return None
    return _TYPES.get(types.pop())


def _fits(*numbers: int | Fraction) -> bool:
    return all(-(2**63) <= number < 2**63 for number in numbers)


def _raw(column: Column, codes: Ints, inside: Inside) -> list[Any]:
    declared = np.flatnonzero(codes < column.inside)
    values: list[Any] = [None] * len(codes)
    cells = codes[declared]
    heights = None if inside == "middle" else uniform(len(cells))
    if isinstance(column, Categories):
        listed = _values(column)
        found = [listed[cell] for cell in cells.tolist()]
    elif isinstance(column, Integers):
        found = (cells + column.lower).tolist()
    else:
        found = _whole(column, cells, heights) if column.whole else _decimal(column, cells, heights)
    for place, value in zip(declared.tolist(), found, strict=True):
        values[place] = value
    return values


def _values(column: Categories) -> list[Any]:
    """The values of the cells: numbers as floats, unless all are integers or a float would be another number."""
    if all(kind == "number" for kind, _ in column.readings[: column.inside]):
        whole = all(isinstance(value, int) for value in column.values)
        floats = [] if whole else [_float(value) for value in column.values]
        if floats and all(
            read_value(each) == read_value(value) for each, value in zip(floats, column.values, strict=True)
        ):
            return floats
    return list(column.values)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def _whole(column: Bins, cells: Ints, heights: Numbers | None) -> list[Any]:
    """Whole numbers, or days, of bins: each at its height of the bin, or all in the middle, rounded down."""
    lows = [int(edge) for edge in column.edges]
    widths = [high - low for low, high in zip(lows, [*lows[1:], floor(column.top) + 1], strict=True)]
    if heights is None:
        middles = [low + (width - 1) // 2 for low, width in zip(lows, widths, strict=True)]
        found = [middles[cell] for cell in cells.tolist()]
    elif _fits(lows[0], lows[-1] + widths[-1]) and max(widths) < 2**53:
        width = np.array(widths)[cells]
        found = (np.array(lows)[cells] + np.minimum((heights * width).astype(np.int64), width - 1)).tolist()
    else:
        # Doubles are too sparse for so wide a bin; fractions are exact.
        places = zip(cells.tolist(), heights.tolist(), strict=True)
        found = [lows[cell] + floor(Fraction(height) * widths[cell]) for cell, height in places]
    return [date.fromordinal(day) for day in found] if column.kind == "date" else found


def _decimal(column: Bins, cells: Ints, heights: Numbers | None) -> list[Any]:
    """Floats of bins: each at its height of the bin, or all in the middle; none beyond the ends as a float is read."""
    starts = [first_float(edge, beyond=False) for edge in column.edges]
    ends = [*(nextafter(start, -inf) for start in starts[1:]), nextafter(first_float(column.top, beyond=True), -inf)]
    if any(start > end for start, end in zip(starts, ends, strict=True)):
        raise BadData("a bin is so narrow that no float lies in it; the table's owner can declare wider ones.")
    low, high = np.array(starts)[cells], np.array(ends)[cells]
    if heights is None:
        edges = [*column.edges, column.top]
        found = np.array([float(Fraction(before + after) / 2) for before, after in pairwise(edges)])[cells]
    else:
        found = low * (1 - heights) + high * heights
    return list(np.clip(found, low, high).tolist())
