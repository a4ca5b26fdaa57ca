"""Finding the place of a ledger and connecting to it so that a commit is durable."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkstemp
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from discreet.errors import BadParameter, LedgerFailed
from discreet.ledger.failure import translated
from discreet.ledger.migration import ENTRY, VERSION

# How long a writer waits for others before it gives up, in seconds.
PATIENCE = 60


def url_of(address: str | os.PathLike[str]) -> sa.URL:
    """The address of a ledger: a path, or a URL of one of the databases that we know."""
    if not isinstance(address, (str, os.PathLike)):
        raise BadParameter(
            f"the address of the ledger is a {type(address).__name__}; it must be a text. "
            "Give a path, or postgresql://host/database."
        )
    text = str(os.fspath(address))
    if ":memory:" in text:
        raise BadParameter("a ledger in memory would not last; give a path, or postgresql://host/database.")
    if "://" not in text:
        return sa.URL.create("sqlite", database=os.path.abspath(text))
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise BadParameter(
            "the address of the ledger cannot be read; give a path, or postgresql://host/database."
        ) from None
    match url.get_backend_name():
        case "sqlite" if url.database:
            # Wherever this process goes, the ledger stays where it is.
            return url.set(database=os.path.abspath(url.database))
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case other:
            raise BadParameter(
                f'a ledger in "{other}" would not last, or is not supported; give a path for SQLite, '
                "or postgresql://host/database."
            )


def file_of(url: sa.URL, *, create: bool) -> Path | None:
    """The file of a SQLite ledger. A new one can be read and written by its owner only."""
    if url.get_backend_name() != "sqlite":
        return None
    file = Path(url.database or "")
    if not file.exists() and not create:
        raise BadParameter(f'there is no ledger at "{file}". Check the path.')
    try:
        if not file.exists():
            _make_private(file)
        elif not create:
            _require_ledger(file)
    except (OSError, sqlite3.Error) as error:
        raise translated(error, str(file)) from None
    return file


def _require_ledger(file: Path) -> None:
    """Whoever only looks does not change a database that is somebody else's."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name IN (?, ?)", (VERSION.name, ENTRY.name))
        found = tables.fetchall()
    if not found:
        raise BadParameter(f'there is no ledger in "{file}". Check the path.')


def _make_private(file: Path) -> None:
    """An empty file that only its owner may read and write.

    It is made under another name and never opened under its own: to close a file gives up all locks that this process
    has on it, and another thread may have begun to use it.
    """
    descriptor, made = mkstemp(prefix=f"{file.name}.", dir=file.parent)
    os.close(descriptor)
    try:
        os.link(made, file)
    except FileExistsError:
        # Another process was faster.
        pass
    finally:
        os.unlink(made)


def engine_for(url: sa.URL) -> Engine:
    """An engine whose connections commit each statement, durably, unless a transaction was begun."""
    if url.get_backend_name() != "sqlite":
        try:
            engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", pool_size=2, pool_pre_ping=True)
        except ImportError:
            raise BadParameter(
                "a ledger in Postgres needs the package psycopg, and it is not installed. Install discreet[postgres]."
            ) from None
        sa.event.listen(engine, "connect", _durable_postgres)
        return engine
    engine = sa.create_engine(url, paramstyle="named", connect_args={"isolation_level": None, "timeout": PATIENCE})
    sa.event.listen(engine, "connect", _durable_sqlite)
    return engine


def _durable_sqlite(connection: Any, _record: Any) -> None:
    """A commit returns when it is on the disk: the promise on which everything else rests."""
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # On a Mac a plain fsync does not reach the disk.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    # We copy the log back ourselves, while nobody writes (`Store.tidy` says why).
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    (mode,), (level,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous"))
    if (mode, level) != ("wal", 2):
        raise LedgerFailed(
            f"SQLite cannot keep this ledger safely where it lies (journal mode {mode}, synchronous {level}). "
            "Put it on a disk of this machine, not on a network drive."
        )


def _write_ahead(connection: Any) -> None:
    """Switch to the write-ahead log. Two processes may do that to a new file at once, and here SQLite does not wait."""
    until = monotonic() + PATIENCE
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(0.005)
        else:
            return


def _durable_postgres(connection: Any, _record: Any) -> None:
    """The same promise of a server: its owner may have switched it off."""
    (flushes,) = connection.execute("SHOW fsync").fetchone()
    if flushes != "on":
        raise LedgerFailed("this Postgres runs with fsync off, and forgets in a power cut. Switch it on.")
    (waits,) = connection.execute("SHOW synchronous_commit").fetchone()
    if waits == "off":
        connection.execute("SET synchronous_commit = on")
