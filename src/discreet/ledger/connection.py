"""The database of a ledger: where it is, how to connect so that a commit is durable, its tables and their migrations.

A migration is a list of statements for each database, and is never changed once it was released. Two tables, one of
which holds one number, do not need a migration library. Errors of a database are raised in our words: what happened,
that nothing was released, what to do.
"""

import errno
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkstemp
from time import monotonic, sleep
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from discreet.errors import BadParameter, DiscreetError, LedgerDamaged, LedgerFailed

_METADATA = sa.MetaData()

ENTRY_TABLE = sa.Table(
    "discreet_ledger",
    _METADATA,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("released", sa.LargeBinary),
    sa.Column("key", sa.Text),
    sa.Column("records", sa.BigInteger),
    sa.Column("hash", sa.LargeBinary, nullable=False),
)

VERSION_TABLE = sa.Table("discreet_ledger_version", _METADATA, sa.Column("version", sa.Integer, nullable=False))

_REFUSE = "RAISE EXCEPTION 'the ledger is append-only'"

MIGRATIONS: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "sqlite": (
            "CREATE TABLE discreet_ledger (sequence INTEGER PRIMARY KEY CHECK (sequence > 0), body TEXT NOT NULL, "
            "released BLOB, key TEXT, records INTEGER, hash BLOB NOT NULL CHECK (length(hash) = 32))",
            "CREATE UNIQUE INDEX discreet_ledger_key ON discreet_ledger (key) WHERE key IS NOT NULL",
            "CREATE UNIQUE INDEX discreet_ledger_records ON discreet_ledger (records) WHERE records IS NOT NULL",
            "CREATE TRIGGER discreet_ledger_update BEFORE UPDATE ON discreet_ledger "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
            # REPLACE deletes a conflicting row without firing the trigger of deletions.
            "CREATE TRIGGER discreet_ledger_insert BEFORE INSERT ON discreet_ledger "
            "WHEN EXISTS (SELECT 1 FROM discreet_ledger WHERE sequence = NEW.sequence) "
            "OR EXISTS (SELECT 1 FROM discreet_ledger WHERE key = NEW.key) "
            "OR EXISTS (SELECT 1 FROM discreet_ledger WHERE records = NEW.records) "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
            "CREATE TRIGGER discreet_ledger_delete BEFORE DELETE ON discreet_ledger "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
        ),
        "postgresql": (
            "CREATE TABLE discreet_ledger (sequence BIGINT PRIMARY KEY CHECK (sequence > 0), body TEXT NOT NULL, "
            "released BYTEA, key TEXT, records BIGINT, hash BYTEA NOT NULL CHECK (length(hash) = 32))",
            "CREATE UNIQUE INDEX discreet_ledger_key ON discreet_ledger (key) WHERE key IS NOT NULL",
            "CREATE UNIQUE INDEX discreet_ledger_records ON discreet_ledger (records) WHERE records IS NOT NULL",
            f"CREATE FUNCTION discreet_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {_REFUSE}; END $$",
            "CREATE TRIGGER discreet_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON discreet_ledger "
            "FOR EACH STATEMENT EXECUTE FUNCTION discreet_ledger_refuse()",
        ),
    },
)


def migrate(connection: sa.Connection, *, create: bool, where: str) -> None:
    """Bring the tables to the version of this program, in one transaction; all processes may do it at once."""
    version = _version(connection)
    if version == len(MIGRATIONS):
        return
    if version > len(MIGRATIONS):
        raise LedgerFailed(
            f'the ledger in "{where}" has format {version} and this program knows {len(MIGRATIONS)}. Upgrade discreet.'
        )
    if version == 0:
        _require_new(connection, where)
    if not create and version == 0:
        raise BadParameter(f'there is no ledger in "{where}". Check the address.')
    kind = connection.dialect.name
    # The driver is in autocommit mode, so that the transaction is ours to begin: as a writer, from the first moment.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if kind == "sqlite" else "BEGIN")
    try:
        if kind != "sqlite":
            # Any number will do, if it is always the same one.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4735120236)")
        version = _version(connection)
        if version == 0:
            connection.exec_driver_sql(
                str(sa.schema.CreateTable(VERSION_TABLE, if_not_exists=True).compile(connection.engine))
            )
            connection.execute(sa.insert(VERSION_TABLE).values(version=0))
        for step in MIGRATIONS[version:]:
            for statement in step[kind]:
                connection.exec_driver_sql(statement)
        connection.execute(sa.update(VERSION_TABLE).values(version=len(MIGRATIONS)))
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.invalidate()
        raise


def lost_table(what: str, where: str) -> LedgerDamaged:
    """The error for a database that is there and has lost a table of the ledger."""
    return LedgerDamaged(
        f'{what} is gone from "{where}", or was changed. Nothing is served from it. '
        "Bring back the database as it was, or start a new ledger with what is certainly left."
    )


def _require_new(connection: sa.Connection, where: str) -> None:
    """Both tables are made in one transaction, so entries without a version mean damage."""
    if sa.inspect(connection).has_table(ENTRY_TABLE.name) and _version(connection) == 0:
        raise lost_table("the version of the ledger", where)


def _version(connection: sa.Connection) -> int:
    if not sa.inspect(connection).has_table(VERSION_TABLE.name):
        return 0
    return int(connection.execute(sa.select(VERSION_TABLE.c.version)).scalar() or 0)


# The first word of SQLite's name of an error that begins like this.
_SQLITE = {
    "SQLITE_FULL": "the disk is full. Make room; then ask again",
    "SQLITE_READONLY": "it may not be written. Give this user the right to write the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened. Check that the folder is there and may be written",
    "SQLITE_BUSY": "another program keeps it locked. Ask again when that is done",
    "SQLITE_LOCKED": "another program keeps it locked. Ask again when that is done",
    "SQLITE_IOERR": "the disk failed to store or to read it. Check the disk; then ask again",
}
_SYSTEM = {
    errno.ENOSPC: _SQLITE["SQLITE_FULL"],
    errno.EDQUOT: _SQLITE["SQLITE_FULL"],
    errno.EROFS: _SQLITE["SQLITE_READONLY"],
    errno.EACCES: _SQLITE["SQLITE_READONLY"],
    errno.EPERM: _SQLITE["SQLITE_READONLY"],
    errno.ENOENT: _SQLITE["SQLITE_CANTOPEN"],
    errno.EISDIR: _SQLITE["SQLITE_CANTOPEN"],
    errno.ENOTDIR: _SQLITE["SQLITE_CANTOPEN"],
}


def translated(error: BaseException, where: str) -> DiscreetError:
    """Our error for the database's: a failure that may pass, or damage."""
    cause: Any = getattr(error, "orig", None) or error
    name = getattr(cause, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or _is_no_text(cause):
        return LedgerDamaged(
            f'"{where}" is not a whole SQLite database. Nothing is served from it. '
            "Bring back the file as it was, or start a new ledger with what is certainly left."
        )
    if _is_changed(cause):
        return lost_table("the table of entries", where)
    if isinstance(cause, OSError):
        reason = _SYSTEM.get(cause.errno or 0, "the system refused it. Check the disk; then ask again")
    elif name:
        reason = next((text for start, text in _SQLITE.items() if name.startswith(start)), f"{name}. Ask again")
    elif getattr(cause, "sqlstate", None) == "42501":
        reason = "this user may not write it. GRANT SELECT, INSERT, UPDATE on it (updates are refused all the same)"
    elif "password" in str(cause) or "authentication" in str(cause):
        reason = "the server does not let this user in with this password. Check both"
    elif _lost(cause):
        reason = "the connection was lost, or the server is not there. Ask again in a moment"
    else:
        reason = f"the database refused ({type(cause).__name__}). Ask again, or check its log"
    return LedgerFailed(f'the ledger in "{where}" failed: {reason}. Nothing was released.')


def _is_changed(cause: Any) -> bool:
    """The table of entries, or a column of it, is not there."""
    said = str(cause)
    missing = getattr(cause, "sqlstate", None) in ("42P01", "42703") or (
        isinstance(cause, sqlite3.OperationalError)
        and any(words in said for words in ("no such table", "no such column", "has no column"))
    )
    return missing and ENTRY_TABLE.name in said


def _is_no_text(cause: Any) -> bool:
    """What should be a text is none: the sqlite3 module says so in a sentence, or fails to say what SQLite said."""
    return isinstance(cause, UnicodeDecodeError) or "decode to UTF-8" in str(cause)


def _lost(cause: Any) -> bool:
    # Postgres gives every error of its own a code; what has none, or one of class 08 or 57, is about the connection.
    code = getattr(cause, "sqlstate", None)
    return (type(cause).__name__ == "OperationalError" and code is None) or str(code)[:2] in ("08", "57")


# How long a writer waits for others before it gives up, in seconds.
LOCK_TIMEOUT = 60


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
    """A reader does not change a database that is not a ledger."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        tables = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name IN (?, ?)", (VERSION_TABLE.name, ENTRY_TABLE.name)
        )
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
    engine = sa.create_engine(url, paramstyle="named", connect_args={"isolation_level": None, "timeout": LOCK_TIMEOUT})
    sa.event.listen(engine, "connect", _durable_sqlite)
    return engine


def _durable_sqlite(connection: Any, _record: Any) -> None:
    """A commit returns when it is on the disk: the promise on which everything else rests."""
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    # On a Mac a plain fsync does not reach the disk.
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    # We run checkpoints ourselves, while no process writes (`Store.tidy` says why).
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    (mode,), (level,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous"))
    if (mode, level) != ("wal", 2):
        raise LedgerFailed(
            f"SQLite cannot keep this ledger safely where it lies (journal mode {mode}, synchronous {level}). "
            "Put it on a disk of this machine, not on a network drive."
        )


def _write_ahead(connection: Any) -> None:
    """Switch to the write-ahead log. Two processes may do that to a new file at once, and here SQLite does not wait."""
    until = monotonic() + LOCK_TIMEOUT
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
