"""From an address to a table of an engine: files through an embedded DuckDB, Postgres, Spark.

What an engine says when it fails is not passed on: it may quote rows or passwords. Each failure has a sentence of ours.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import BadData, did_you_mean
from discreet.source.engines.address import Address
from discreet.source.engines.origin import files_at

# Seconds in which a server must answer.
_PATIENCE = 10


def connect_table(address: Address, name: str) -> Any:
    """The Ibis table at an address; `name` is the table that is meant if the address names none."""
    match address.engine:
        case "parquet":
            from discreet.source.engines.files import open_parquet

            return open_parquet(address.place)
        case "duckdb":
            from discreet.source.engines.files import open_duckdb

            return named_table(open_duckdb(address.place), address.table or name, "the DuckDB file")
        case "postgres":
            return named_table(_postgres(address.place), address.table or name, "the Postgres database")
        case "spark":
            return _spark_table(address, name)
        case other:
            raise AssertionError(f"no way to open {other!r}: CSV and arrays are read by the table itself")


def named_table(connection: Any, name: str, where: str) -> Any:
    """A table by name, or by schema.name."""
    schema, _, own = name.rpartition(".")
    with engine_errors_as(f"the tables of {where} cannot be listed. Check that you may read it."):
        known = _tables(connection, schema)
    if own not in known:
        listed = did_you_mean(own, known) if known else "it has none that you may read."
        raise BadData(f'{where} has no table "{name}"; {listed} Name another with ?table=… in the source.')
    with engine_errors_as(f'the table "{name}" of {where} cannot be read. Check that you may read it.'):
        return connection.table(own, database=schema or None)


def _tables(connection: Any, schema: str) -> list[str]:
    if connection.name != "duckdb":
        return list(connection.list_tables(database=schema or None))
    # What Ibis 12 calls for this is gone in DuckDB 2.
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
    return [name for (name,) in connection.con.execute(listed, [schema or "main"]).fetchall()]


@contextmanager
def engine_errors_as(sentence: str) -> Iterator[None]:
    """Say this, and the kind of the failure, in place of what an engine says."""
    try:
        yield
    except BadData:
        raise
    except Exception as error:
        raise BadData(f"{sentence} ({type(error).__name__})") from None


@contextmanager
def installed_extra(name: str) -> Iterator[None]:
    """Say how to install an optional part that is missing."""
    try:
        yield
    except ImportError as error:
        raise BadData(
            f"the source needs the package {error.name}, which is not installed. Run: pip install 'discreet[{name}]'"
        ) from None


def _postgres(address: str) -> Any:
    with installed_extra("postgres"):
        import ibis
        import psycopg
    where = _shown(address)
    with engine_errors_as(
        f"the Postgres server at {where} cannot be reached, or refused. Check host, port, database and password."
    ):
        connection = psycopg.connect(address, autocommit=True, connect_timeout=_PATIENCE)
        # Nothing of ours writes; and no statement may begin to.
        connection.execute("SET default_transaction_read_only = on")
        return ibis.postgres.from_connection(connection)


def _shown(address: str) -> str:
    """Host, port and database of an address; nothing, if what is there may be a part of a password."""
    where = address.partition("://")[2].partition("?")[0].rpartition("@")[2]
    return f'"{where}"' if re.fullmatch(r"[\w.-]+(:\d+)?(/[\w-]*)?", where) else "its address"


def _spark_table(address: Address, name: str) -> Any:
    connection = _spark(address.place)
    if address.path is None:
        return named_table(connection, address.table or name, "Spark's catalogue")
    with engine_errors_as(f'Spark cannot read Parquet at "{address.path}". Check that every worker finds it there.'):
        return connection.read_parquet(address.path)


def local_files(address: Address) -> str | None:
    """The path of files on this machine that Spark reads, if it does."""
    path = address.path if address.engine == "spark" else None
    return path if path is not None and any(map(os.path.exists, files_at(path))) else None


def _spark(place: str) -> Any:
    with installed_extra("spark"):
        import ibis
        from pyspark.sql import SparkSession
    # After a semicolon there may be a token.
    where = place.partition(";")[0]
    with engine_errors_as(
        f'Spark at "{where}" cannot be reached. Check that Java 17 is installed and the address is right.'
    ):
        _knock(place)
        builder = SparkSession.builder.appName("discreet").config("spark.ui.enabled", "false")
        remote = place.startswith("sc://")
        session = (builder.remote(place) if remote else builder.master(place or "local[*]")).getOrCreate()
        if not remote and place and session.sparkContext.master != place:
            raise BadData(
                f'this process has a Spark session at "{session.sparkContext.master}" and the source is at "{place}"; '
                "a process has one. Open the source in another process."
            )
        return ibis.pyspark.connect(session)


def _knock(place: str) -> None:
    """Fail within seconds if nothing answers. Spark itself tries again for a minute, and Spark Connect for ten."""
    if place.startswith("sc://"):
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder

        with DefaultChannelBuilder(place).toChannel() as channel:
            grpc.channel_ready_future(channel).result(timeout=_PATIENCE)
    elif place.startswith("spark://"):
        host, _, port = place.removeprefix("spark://").partition(",")[0].rpartition(":")
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
