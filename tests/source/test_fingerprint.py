"""One state of the rows: what tells it from another, and that nothing of two states is ever mixed."""

import gc
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadData, SourceChanged, SourceFailed, SourceUnavailable
from discreet.query.linear import Marginal
from discreet.schema import Categories, Domain, Unit
from discreet.source import open as open_table
from discreet.source.engines.engine import Engine
from discreet.source.source import unseal
from support.engines import duckdb, from_duckdb, postgres, postgres_address, postgres_table
from support.needs import needs_postgres

DOMAIN = Domain({"x": Categories([0, 1, 2], outside="drop"), "y": Categories([0, 1, 2], outside="drop")})
KEYED = Unit(key="person")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows(x=(0, 1), start=1):
    return pa.table({"person": [float(start + place) for place in range(len(x))], "x": list(x), "y": list(x)})


def write(kind, path="people", x=(0, 1)):
    """A file of this kind, and what names it as a source."""
    path = f"{path}.{kind}"
    match kind:
        case "csv":
            Path(path).write_text("person,x,y\n" + "".join(f"{place},{one},{one}\n" for place, one in enumerate(x)))
        case "parquet":
            pq.write_table(rows(x), path)
        case "duckdb":
            import duckdb as engine

            Path(path).unlink(missing_ok=True)
            with engine.connect(path) as connection:
                connection.register("arrow", rows(x))
                connection.execute("CREATE TABLE data AS FROM arrow")
    return path


def counts(table, columns=("x",)):
    exact = table.evaluate(Marginal(columns))
    return unseal(exact, exact.sensitivity).tolist()


FILES = ["csv", "parquet", "duckdb"]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("unit", [Unit(), KEYED], ids=["rows", "keys"])
def test_a_fingerprint_is_the_same_until_the_file_is_written(kind, unit):
    path = write(kind)
    first = open_table(path, domain=DOMAIN, unit=unit).fingerprint()
    assert first is not None
    assert open_table(path, domain=DOMAIN, unit=unit).fingerprint() == first
    os.rename(path, "moved" + Path(path).suffix)
    assert open_table("moved" + Path(path).suffix, domain=DOMAIN, unit=unit).fingerprint() == first, "it may be moved"
    grown = write(kind, x=(0, 1, 2))
    assert open_table(grown, domain=DOMAIN, unit=unit).fingerprint() != first
    again = open_table(grown, domain=DOMAIN, unit=unit).fingerprint()
    time.sleep(0.02)
    write(kind, x=(0, 1, 1))
    assert open_table(grown, domain=DOMAIN, unit=unit).fingerprint() != again, "of the same size, but written later"


def test_the_files_of_a_pattern_are_all_in_the_fingerprint():
    write("parquet", "visits-1")
    table = open_table("visits-*.parquet", domain=DOMAIN)
    first = table.fingerprint()
    table.touch()
    write("parquet", "visits-2")
    assert table.fingerprint() != first
    with pytest.raises(SourceChanged, match="Nothing was charged"):
        table.touch()
    with pytest.raises(SourceFailed):
        counts(table)


@pytest.mark.parametrize("kind", FILES)
def test_what_is_kept_in_memory_has_the_fingerprint_of_what_was_read(kind):
    path = write(kind)
    first = open_table(path, domain=DOMAIN).fingerprint()
    table = open_table(path, domain=DOMAIN, in_memory=True)
    os.remove(path)
    table.touch()
    assert table.fingerprint() == first
    assert counts(table) == [1, 1, 0]


def test_rows_that_are_given_have_no_fingerprint_but_are_always_there():
    table = open_table(rows(), domain=DOMAIN)
    table.touch()
    assert table.fingerprint() is None


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_a_file_that_is_away_is_refused_before_anything_is_read_and_served_when_it_is_back(kind):
    path = write(kind)
    table = open_table(path, domain=DOMAIN)
    os.rename(path, "away")
    for ask in (table.touch, table.fingerprint):
        with pytest.raises(SourceUnavailable, match=r"nothing was charged.*Ask again"):
            ask()
    os.rename("away", path)
    table.touch()
    assert counts(table) == [1, 1, 0]


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
def test_another_file_of_the_same_size_and_time_is_a_change_while_the_table_is_open(kind):
    path = write(kind)
    state = os.stat(path)
    table = open_table(path, domain=DOMAIN)
    other = write(kind, "other", x=(2, 2))
    os.truncate(other, state.st_size) if os.stat(other).st_size != state.st_size else None
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    os.replace(other, path)
    with pytest.raises(SourceChanged):
        table.touch()


def test_kept_marginals_of_an_old_file_are_not_told_of_a_new_one():
    """The trap: what was counted is kept, and the file is then replaced by a longer one."""
    table = open_table(write("parquet", x=(0, 1)), domain=DOMAIN)
    assert counts(table) == [1, 1, 0]
    write("parquet", x=(0, 1, 2, 2, 2))
    with pytest.raises(SourceChanged):
        table.touch()
    for columns in (("x",), ("y",)):
        with pytest.raises(SourceFailed, match="written after the table was opened"):
            counts(table, columns)


def test_a_file_that_is_written_while_it_is_read_gives_no_answer():
    path = write("parquet")
    table = open_table(path, domain=DOMAIN)

    def read_and_write():
        with table.snapshot():
            assert counts(table) == [1, 1, 0]
            write("parquet", x=(2, 2, 2))

    with pytest.raises(SourceFailed, match="perhaps while it was read"):
        read_and_write()
    assert not table.source._frozen


def test_a_file_that_is_written_while_it_is_opened_is_refused(monkeypatch):
    path = write("csv")
    real = Engine._bounded

    def slow(self):
        bounded = real(self)
        write("csv", x=(0, 1, 2, 2))
        return bounded

    monkeypatch.setattr(Engine, "_bounded", slow)
    with pytest.raises(BadData, match="written while they were read"):
        open_table(path, domain=DOMAIN)


def test_a_duckdb_file_in_the_place_of_one_that_is_open_is_never_shown_as_the_first():
    """DuckDB gives whoever opens a path what this process has open under it already, although it is another file."""
    first = open_table(write("duckdb"), domain=DOMAIN)
    write("duckdb", path="other", x=(0, 1, 2, 2))
    Path("other.duckdb").replace("people.duckdb")
    with pytest.raises(BadData, match="is another file than the one that a table of this process has open"):
        open_table("people.duckdb", domain=DOMAIN)
    del first
    gc.collect()
    assert sum(counts(open_table("people.duckdb", domain=DOMAIN))) == 4


def test_a_log_beside_a_duckdb_file_is_a_part_of_it():
    path = write("duckdb")
    before = open_table(path, domain=DOMAIN).fingerprint()
    Path(f"{path}.wal").write_bytes(b"")
    from discreet.source.engines.origin import files_at, of_files

    assert of_files(files_at(path)) != before


def test_a_duckdb_connection_that_is_given_is_read_as_one_state_and_nothing_is_kept_of_the_last():
    source = from_duckdb(rows(), DOMAIN, Unit())
    assert source.fingerprint() is None
    assert counts(source) == [1, 1, 0]
    duckdb().con.execute("INSERT INTO laws VALUES (3, 2, 2)")
    assert counts(source) == [1, 1, 1], "nobody can tell whether it changed, so it is read again"
    with source.snapshot():
        assert counts(source) == [1, 1, 1]
        other = duckdb().con.cursor()
        other.execute("INSERT INTO laws VALUES (4, 2, 2)")
        assert counts(source, ("x", "y")) == [1, 0, 0, 0, 1, 0, 0, 0, 1]
        assert counts(source, ("y",)) == [1, 1, 1]
    assert counts(source) == [1, 1, 2]


def test_a_table_that_is_dropped_is_refused_before_anything_is_read():
    source = from_duckdb(rows(), DOMAIN, Unit())
    source.touch()
    duckdb().con.execute("DROP TABLE laws")
    with pytest.raises(SourceUnavailable, match="nothing was charged"):
        source.touch()


def test_a_transaction_that_its_owner_has_begun_is_left_open():
    source = from_duckdb(rows(), DOMAIN, Unit())
    duckdb().con.execute("BEGIN TRANSACTION")
    duckdb().con.execute("INSERT INTO laws VALUES (3, 2, 2)")
    assert counts(source) == [1, 1, 1]
    duckdb().con.execute("ROLLBACK")
    assert counts(source) == [1, 1, 0]


# Postgres


def in_postgres(unit=None, x=(0, 1)):
    name = postgres_table(rows(x))
    return name, open_table(f"{postgres_address()}&table={name}", domain=DOMAIN, unit=unit or Unit())


def until_changed(table):
    """Postgres tells of edits within seconds."""
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            table.touch()
        except SourceChanged:
            return True
        time.sleep(0.05)
    return False


@needs_postgres
@pytest.mark.parametrize(
    "edit",
    [
        "INSERT INTO {0} VALUES (9, 2, 2)",
        "UPDATE {0} SET x = 2",
        "DELETE FROM {0} WHERE person = 1",
        "TRUNCATE {0}",
        "DROP TABLE {0}; CREATE TABLE {0} (person double precision, x bigint, y bigint)",
    ],
)
def test_an_edit_of_a_postgres_table_is_noticed_before_anything_is_read(edit):
    name, table = in_postgres()
    before = table.fingerprint()
    table.touch()
    assert table.fingerprint() == before
    assert open_table(f"{postgres_address()}&table={name}", domain=DOMAIN).fingerprint() == before
    postgres().execute(edit.format(name))
    assert until_changed(table)
    assert table.fingerprint() != before


@needs_postgres
def test_an_edit_behind_a_view_or_in_a_partition_is_noticed():
    name, _ = in_postgres()
    postgres().execute(f"CREATE VIEW {name}_seen AS SELECT * FROM {name} WHERE x < 2")
    view = open_table(f"{postgres_address()}&table={name}_seen", domain=DOMAIN)
    postgres().execute(f"CREATE TABLE {name}_all (person double precision, x bigint, y bigint) PARTITION BY RANGE (x)")
    postgres().execute(f"CREATE TABLE {name}_part PARTITION OF {name}_all FOR VALUES FROM (0) TO (9)")
    parted = open_table(f"{postgres_address()}&table={name}_all", domain=DOMAIN)
    assert view.fingerprint() is not None
    assert parted.fingerprint() is not None
    postgres().execute(f"INSERT INTO {name} VALUES (9, 1, 1)")
    postgres().execute(f"INSERT INTO {name}_all VALUES (9, 1, 1)")
    assert until_changed(view)
    assert until_changed(parted)


@needs_postgres
def test_a_measurement_reads_one_state_of_a_postgres_table_while_others_write():
    """Pairs (x, y) are always equal, in every state; two readings of two states would not agree."""
    name, table = in_postgres(x=[0, 1] * 20)
    begun, stop = threading.Event(), threading.Event()

    def write_on():
        import psycopg

        with psycopg.connect(postgres_address(), autocommit=True) as connection:
            while not stop.is_set():
                connection.execute(f"INSERT INTO {name} VALUES (9, 2, 2)")
                begun.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        assert begun.wait(60)
        grown, rounds, end = set(), 0, time.monotonic() + 60
        while rounds < 20 or (len(grown) < 2 and time.monotonic() < end):
            rounds += 1
            with table.snapshot():
                x, y, both = counts(table), counts(table, ("y",)), counts(table, ("x", "y"))
            assert x == y
            assert [both[0], both[4], both[8]] == x
            grown.add(sum(x))
        assert len(grown) > 1, "the table did change between the measurements"
    finally:
        stop.set()
        writer.join()


@needs_postgres
def test_marginals_of_a_postgres_table_are_kept_while_nobody_writes(monkeypatch):
    name, table = in_postgres()
    read = []
    real = Engine.cells
    monkeypatch.setattr(Engine, "cells", lambda self, columns: read.append(columns) or real(self, columns))
    assert counts(table) == counts(table) == [1, 1, 0]
    assert read == [("x",)]
    postgres().execute(f"INSERT INTO {name} VALUES (9, 2, 2)")
    assert counts(table) == [1, 1, 1]
    assert read == [("x",), ("x",)]


@needs_postgres
def test_a_lost_connection_is_made_again_before_anything_is_paid():
    _, table = in_postgres()
    postgres().execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    table.touch()
    assert counts(table) == [1, 1, 0]
