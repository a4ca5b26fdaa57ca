"""Rows without a key: refused when a table is opened, and not counted if they appear later. On every engine."""

from datetime import datetime
from decimal import Decimal
from math import nan
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadData
from discreet.query.linear import Marginal
from discreet.schema import Categories, Domain, Unit
from discreet.source import Frame
from discreet.source import open as open_table
from discreet.source.engines.engine import Engine
from discreet.source.source import unseal
from support.engines import ENGINES, duckdb, folder, postgres, postgres_address, postgres_table, spark
from support.needs import needs_postgres, needs_spark

MARKS = {"Postgres": [needs_postgres], "Spark": [needs_spark]}
DOMAIN = Domain({"x": Categories([0, 1, 2], outside="drop")})
UNIT = Unit(key="person")
START = [(1.0, 0), (2.0, 1)]


def rows(pairs):
    return pa.table({"person": pa.array([key for key, _ in pairs], pa.float64()), "x": [cell for _, cell in pairs]})


def counts(source):
    exact = source.evaluate(Marginal(("x",)))
    assert exact.sensitivity.l1 == 1
    return unseal(exact, exact.sensitivity).tolist()


def expected(pairs):
    """What counts, from the definition: of each person with a key the first row by its cell."""
    first = {}
    for key, cell in pairs:
        if key is not None and key == key:
            first[float(key)] = min(cell, first.get(float(key), 9))
    return [list(first.values()).count(cell) for cell in range(3)]


def late_duckdb(late):
    duckdb().con.register("arrow", rows(START))
    duckdb().con.execute("CREATE OR REPLACE TABLE laws AS FROM arrow")
    source = Engine(duckdb().table("laws"), domain=DOMAIN, unit=UNIT)
    duckdb().con.register("late", rows(late))
    duckdb().con.execute("INSERT INTO laws FROM late")
    return source


def late_parquet(late):
    """A view of Parquet files in a DuckDB of the owner's, to which a file is added."""
    place = folder() / "late"
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    pq.write_table(rows(START), place / "1.parquet")
    duckdb().con.execute(f"CREATE OR REPLACE VIEW late_files AS FROM read_parquet('{place}/*.parquet')")
    source = Engine(duckdb().table("late_files"), domain=DOMAIN, unit=UNIT)
    pq.write_table(rows(late), place / "2.parquet")
    return source


def late_postgres(late):
    name = postgres_table(rows(START))
    source = open_table(f"{postgres_address()}&table={name}", domain=DOMAIN, unit=UNIT).source
    with postgres().cursor() as cursor:
        cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s)", late)
    return source


def late_spark(late):
    import ibis

    spark().createDataFrame(rows(START)).write.mode("overwrite").saveAsTable("late_laws")
    source = Engine(ibis.pyspark.connect(spark()).table("late_laws"), domain=DOMAIN, unit=UNIT)
    spark().createDataFrame(rows(late)).write.insertInto("late_laws")
    return source


LATE = {"DuckDB": late_duckdb, "Parquet": late_parquet, "Postgres": late_postgres, "Spark": late_spark}
HARD = [
    [(nan, 2)],
    [(nan, 2), (nan, 0)],
    [(None, 2), (nan, 0), (-nan, 1)],
    [(0.0, 2), (-0.0, 1), (nan, 0)],
    [(float("inf"), 2), (float("-inf"), 2), (nan, 2), (1.0, 0)],
]


@pytest.mark.parametrize("engine", [pytest.param(name, marks=MARKS.get(name, [])) for name in LATE])
def test_a_row_whose_key_is_no_key_does_not_count_if_it_appears_later(engine):
    for late in HARD if engine != "Spark" else HARD[1::2]:
        assert counts(LATE[engine](late)) == expected(START + late), late


KEYS = st.sampled_from([None, nan, 0.0, -0.0, 1.0, 2.0, 3.0, 5e-324, 2.0**53, 2.0**53 + 2, float("inf"), -1e308])


@given(st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=8))
def test_whatever_keys_appear_later_people_count_once_and_nobody_else_does(late):
    assert counts(late_duckdb(late)) == expected(START + late)


@needs_postgres
def test_a_decimal_that_is_no_number_is_no_key():
    name = postgres_table(rows(START))
    postgres().execute(f"ALTER TABLE {name} ALTER person TYPE numeric")
    source = open_table(f"{postgres_address()}&table={name}", domain=DOMAIN, unit=UNIT).source
    postgres().execute(f"INSERT INTO {name} VALUES ('NaN', 2), ('NaN', 0), (NULL, 0), (3, 2)")
    assert counts(source) == [1, 1, 1]


NO_KEYS = [nan, None, np.float32("nan"), np.float64("nan"), Decimal("NaN"), pd.NaT, pd.NA, np.datetime64("NaT")]


@pytest.mark.parametrize("missing", NO_KEYS, ids=repr)
def test_a_frame_is_refused_if_someone_has_no_key(missing):
    with pytest.raises(BadData, match="says whose row it is"):
        Frame({"person": ["a", missing], "x": [0, 1]}, domain=DOMAIN, unit=UNIT)
    with pytest.raises(BadData, match="says whose row it is"):
        Frame(pd.DataFrame({"person": ["a", missing], "x": [0, 1]}), domain=DOMAIN, unit=UNIT)


def test_a_frame_takes_keys_of_every_kind_for_what_they_are():
    keys = ["nan", "NaN", "", 0, 0.0, -0.0, Decimal("0"), "0", datetime(2024, 1, 1), UUID(int=0), b"0"]
    assert counts(Frame({"person": keys, "x": [2] * len(keys)}, domain=DOMAIN, unit=UNIT)) == [0, 0, 8]


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, [])) for name in ENGINES if name != "CSV"])
def test_a_table_is_refused_if_someone_has_no_key_when_it_is_opened(name):
    """Also where Parquet's statistics say that all keys are 0: they leave out nan."""
    for missing in (nan, None):
        with pytest.raises(BadData, match="missing in some row"):
            ENGINES[name](rows([(0.0, 0), (missing, 1), (0.0, 2)]), DOMAIN, UNIT)


def test_statistics_of_a_parquet_file_that_is_given_do_not_hide_who_has_no_key():
    pq.write_table(rows([(0.0, 0), (nan, 1), (0.0, 2)]), folder() / "given.parquet")
    with pytest.raises(BadData, match="missing in some row"):
        open_table(duckdb().read_parquet(folder() / "given.parquet"), domain=DOMAIN, unit=UNIT)
