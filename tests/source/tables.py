"""Tables for the laws: a domain with every kind of column, rows that fit it and rows that do not, and predicates."""

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

from discreet.query import col, everyone
from discreet.schema import Bins, Boolean, Categories, Domain, Integers
from support.strategies import combined

DAY = date(2024, 2, 29)
DOMAIN = Domain(
    {
        "age": Bins([17, 25, 65], upper=90),
        "city": Categories(["", "Zürich", "a"], missing="missing"),
        "hours": Integers(1, 4, outside="drop"),
        "rate": Bins([0, Decimal("0.3"), 0.5], upper=1, outside="other"),
        "smoker": Boolean(),
        "since": Bins([date(1969, 12, 31), DAY], upper=date(2024, 12, 31), missing=DAY),
    }
)

# Beside the columns of the domain, whose row it is.
NAMES = [*DOMAIN, "who"]

# What a typed column can hold, and what only a list of Python objects can.
TYPED = {
    "age": st.none() | st.integers(0, 99) | st.sampled_from([17, 24, 25, 64, 65, 90, 91, 2**63 - 1, -(2**63)]),
    "city": st.none() | st.sampled_from(["", "Zürich", "Zu\u0308rich", "a", "A", " a", "\U0001f600", "None"]),
    "hours": st.none() | st.integers(0, 6),
    "rate": st.none() | st.floats() | st.sampled_from([0.3, 0.5, 1.0, nan, inf, -inf, np.nextafter(0.3, 0), -0.0]),
    "smoker": st.none() | st.booleans(),
    "since": st.none()
    | st.datetimes(datetime(1960, 1, 1), datetime(2030, 1, 1))
    | st.sampled_from(
        [datetime(1969, 12, 31, 23, 59), datetime(2024, 2, 28, 23, 59, 59, 999999), datetime(2024, 2, 29)]
    ),
    "who": st.integers(0, 2),
}
ODD = st.sampled_from(
    [None, nan, inf, -inf, pd.NA, pd.NaT, "", "a", "3", 3, 3.0, 2.5, True, 2**70, b"a", Decimal("0.3"), DAY, [1]]
)
LOOSE = {name: values if name == "who" else values | ODD for name, values in TYPED.items()}


def rows(values, *, most=8):
    return st.lists(st.fixed_dictionaries(values), max_size=most)


def _columns(table):
    return {name: [row[name] for row in table] for name in NAMES}


def arrow(table):
    """The rows as an Arrow table."""
    types = [pa.int64(), pa.string(), pa.int8(), pa.float64(), pa.bool_(), pa.timestamp("us"), pa.int64()]
    return pa.table(_columns(table), schema=pa.schema(list(zip(NAMES, types, strict=True))))


def _pandas(table):
    types = ["Int64", "string", "Int8", "float64", "boolean", "datetime64[us]", "int64"]
    columns = {
        name: pd.Series(values, dtype=dtype)
        for (name, values), dtype in zip(_columns(table).items(), types, strict=True)
    }
    return pd.DataFrame(columns)


def _polars(table):
    types = [pl.Int64, pl.String, pl.Int8, pl.Float64, pl.Boolean, pl.Datetime("us"), pl.Int64]
    return pl.DataFrame(_columns(table), schema=dict(zip(NAMES, types, strict=True)))


def _arrays(table):
    columns = {name: np.fromiter(values, dtype=object, count=len(values)) for name, values in _columns(table).items()}
    missing = {name: np.array([value is None for value in values], dtype=bool) for name, values in columns.items()}
    types = {"age": np.int64, "hours": np.int16, "rate": np.float64, "since": "datetime64[us]", "who": np.int64}
    for name, dtype in types.items():
        filled = [0 if value is None else value for value in columns[name]]
        columns[name] = np.ma.masked_array(np.array(filled, dtype=dtype), mask=missing[name])
    return columns


def _structured(table):
    array = np.empty(len(table), dtype=[(name, object) for name in NAMES])
    for place, row in enumerate(table):
        array[place] = tuple(row[name] for name in NAMES)
    return array


HOLDERS = {
    "list of dicts": list,
    "dict of lists": _columns,
    "numpy arrays": _arrays,
    "structured array": _structured,
    "pandas": _pandas,
    "pandas objects": lambda table: pd.DataFrame(_columns(table), dtype=object, columns=NAMES),
    "polars": _polars,
    "pyarrow": arrow,
}

ATOMS = st.one_of(
    st.builds(lambda edge: col("age") >= edge, st.sampled_from([0, 17, 25, 65, 91])),
    st.builds(lambda city: col("city") == city, st.sampled_from(["", "Zürich", "a"])),
    st.just(col("city").is_missing()),
    st.builds(lambda low, high: col("hours").between(low, high), st.integers(0, 5), st.integers(0, 5)),
    st.builds(lambda hours: col("hours") != hours, st.integers(1, 4)),
    st.just(col("rate") < Decimal("0.3")),
    st.just(col("smoker") == True),  # noqa: E712
    st.just(col("since") < DAY),
    st.just(everyone),
)
PREDICATES = combined(ATOMS, max_leaves=6)
