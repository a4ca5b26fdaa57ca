"""The store of a ledger: an append-only table in SQLite or Postgres; each entry is bound to the one before by a hash.

The body of an entry is a JSON text. Its member "is" says what happened: open, cap, raise, table, spend, record, hold,
stake, close, or answer (the answer that was given under a key). Released bytes are stored beside it. The hash of an
entry covers the hash of the one before, so the last hash proves that no earlier entry was changed. A stamp on every
entry says when it was made, and by which process.

The one write is a compare-and-append: an entry goes in only if the entry before it is there with the hash that we know,
and its number is free. That is one statement, so a crash leaves all of it or nothing, and of two writers one loses.
The statements are SQLAlchemy's, compiled once; they run on the driver's own cursor, which saves more than half of the
processor time of a spend (bench/ledger.py).
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from discreet.cache import memoize
from discreet.errors import LedgerDamaged
from discreet.ledger.connection import ENTRY_TABLE, LOCK_TIMEOUT, engine_for, file_of, migrate, translated, url_of

# Made once: the functions of the json module would make or look up one at every call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_DECODER = json.JSONDecoder()

# 1 counted in ticks of 2^-50, 2 counts in ticks of 10^-15.
FORMAT = 2
GENESIS = bytes(32)


class Entry(NamedTuple):
    """An entry as it is stored."""

    sequence: int
    body: str
    released: bytes | None
    hash: bytes


class Appended(NamedTuple):
    """An entry of our own, with what it says."""

    entry: Entry
    fields: Mapping[str, Any]


class Draft(NamedTuple):
    """An entry that is to be appended."""

    fields: Mapping[str, Any]
    released: bytes | None = None


def chained(previous: bytes, sequence: int, draft: Draft) -> Entry:
    """A draft as the entry after the one with this hash.

    >>> first = chained(GENESIS, 1, Draft({"is": "open"}))
    >>> first.body, len(first.hash)
    ('{"is":"open"}', 32)
    """
    body = _ENCODER.encode(draft.fields)
    return Entry(sequence, body, draft.released, seal(previous, body, draft.released))


def decoded(body: str) -> Any:
    """What a body says.

    >>> decoded('{"is":"open"}')
    {'is': 'open'}
    """
    fields, end = _DECODER.raw_decode(body)
    if end != len(body):
        raise ValueError("more than one JSON value")
    return fields


def seal(previous: bytes, body: str, released: bytes | None) -> bytes:
    """The hash of an entry: SHA-256 of the previous hash, the length of the body, the body and what was released."""
    text = body.encode()
    digest = sha256(previous + len(text).to_bytes(8, "big") + text)
    if released is not None:
        # A byte more than nothing: releasing nothing differs from not releasing.
        digest.update(b"\x01" + released)
    return digest.digest()


def key_hash(analyst: str, key: str, attempt: int = 1) -> str:
    """An analyst's idempotency key as it is looked up: keys of different analysts, and attempts, never meet."""
    # The first begins with a digit, so that it is not one of the others.
    again = "" if attempt == 1 else f"again {attempt} "
    return sha256(f"{again}{len(analyst)} {analyst}{key}".encode()).hexdigest()


def answer_key_hash(analyst: str, key: str) -> str:
    """The same for the answer that was kept under a key: beside what was paid under it, never in its place."""
    return sha256(f"answer {len(analyst)} {analyst}{key}".encode()).hexdigest()


def index_columns(fields: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The two indexed columns of an entry: its key, and the spend that it records."""
    key, attempt = fields.get("key"), fields.get("attempt", 1)
    if key is not None and fields.get("is") == "answer":
        return answer_key_hash(fields["analyst"], key), None
    return (None if key is None else key_hash(fields["analyst"], key, attempt)), fields.get("records")


_NUMBERS = count()


def stamp(after: str, kind: str) -> dict[str, Any]:
    """What every entry says first: its kind, when it was written, after the entry before, and by whom.

    Time only moves forward: if the clock was set back, the last time is repeated. Nothing depends on it; the order is
    that of the entries. `by` makes every entry different from all others, so that no two can be taken for one.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"is": kind, "at": max(now, after), "by": f"{_writer(os.getpid())}-{next(_NUMBERS)}"}


@memoize(1)
def _writer(process: int) -> str:
    # After a fork the number of the process is another one, and so is the writer.
    return f"{uuid4().hex[:16]}-{process}"


# How many entries are read at once.
PAGE = 2000
# Bytes that are appended between checkpoints of SQLite's log, and what a row takes beside its text, at most.
CHECKPOINT_BYTES, ROW_OVERHEAD = 2**21, 2**11
# Seconds that a checkpoint waits for other processes.
CHECKPOINT_TIMEOUT = 5


class Store:
    """A connection to the log. Not for several threads at once: `Ledger` takes turns."""

    def __init__(self, address: str | os.PathLike[str], *, create: bool) -> None:
        self.url = url_of(address)
        self.file = file_of(self.url, create=create)
        self._identity = _identity(self.file)
        self._engine = engine_for(self.url)
        self._untidy = 0
        dialect = self._engine.dialect
        self._statements = _statements(dialect.name, dialect.driver, dialect.paramstyle)
        self._connection: Any = None
        self._driver: Any = None
        self._conflict = self._engine.dialect.loaded_dbapi.IntegrityError
        self._guard = _Translating(self)
        self._reading = Lock()
        with self._guard, self._engine.connect() as connection:
            migrate(connection, create=create, where=self.name)

    @property
    def name(self) -> str:
        """The store as a person would say it, without a password."""
        return str(self.file) if self.file else self.url.render_as_string(hide_password=True)

    def tail(self, sequence: int) -> list[Entry]:
        """The entries after this one."""
        with self._guard:
            return [Entry._make(row) for row in self._run(self._statements.tail, {"sequence": sequence}).fetchall()]

    def find(self, *, key: str | None = None, records: int | None = None, sequence: int | None = None) -> Entry | None:
        """The entry with this key, or that records this spend, or of this number."""
        with self._guard:
            values = {"key": key, "records": records, "sequence": sequence}
            (column,) = (name for name, value in values.items() if value is not None)
            # All of the one row: a result that is not read to its end keeps its snapshot of the database open.
            rows = self._run(self._statements.find[column], {column: values[column]}).fetchall()
            return Entry._make(rows[0]) if rows else None

    def append(self, previous: bytes, entries: Iterable[Appended]) -> bool:
        """Append entries after the one with this hash, durably; False if another process was faster.

        One entry is a transaction of its own; several belong into `alone`.
        """
        with self._guard:
            self._require_same_file()
            try:
                for entry, fields in entries:
                    sequence, body, released, digest = entry
                    key, records = index_columns(fields)
                    row = {"sequence": sequence, "body": body, "released": released, "hash": digest, "key": key}
                    row |= {"records": records, "before": sequence - 1, "previous": previous}
                    if self._run(self._statements.append, row).rowcount != 1:
                        return False
                    previous = digest
                    self._untidy += len(body) + len(released or b"") + ROW_OVERHEAD
            except self._conflict:
                return False
            return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process writes, and make the others wait."""
        try:
            with self._guard:
                for statement in self._statements.begin_alone:
                    self._run(statement)
            yield
        except BaseException:
            self.drop()
            raise
        with self._guard:
            self._run("COMMIT")

    def entries(self, sequence: int = 0) -> Iterator[Entry]:
        """All entries after this one, one by one, on a connection of their own."""
        return (Entry._make(row[:4]) for row in self.rows(sequence))

    def rows(self, sequence: int = 0) -> Iterator[tuple[Any, ...]]:
        """The same as they are stored: the four members of an entry, its key, and the spend that it records."""
        while page := self._page(sequence):
            yield from page
            sequence = page[-1][0]

    def _page(self, sequence: int) -> list[tuple[Any, ...]]:
        with self._guard, self._reading:
            connection = self._engine.raw_connection()
            try:
                driver: Any = connection.driver_connection
                return list(driver.execute(self._statements.page, {"sequence": sequence}).fetchall())
            finally:
                connection.close()

    def tidy(self) -> None:
        """Copy what SQLite has logged back into the database, now and then, so that its log stays short.

        SQLite would do it by itself, beside other writers; before its version 3.51.3 that can lose a commit, if two do
        it at once while a third writes. In this mode it keeps the writers waiting.
        """
        if self.file is not None and self._untidy >= CHECKPOINT_BYTES:
            self._untidy = 0
            with self._guard:
                # It gives up on writers that do not wait, so it is given time; readers of ours are quick.
                self._run(f"PRAGMA busy_timeout = {CHECKPOINT_TIMEOUT * 1000}")
                self._run("PRAGMA wal_checkpoint(FULL)").fetchall()
                self._run(f"PRAGMA busy_timeout = {LOCK_TIMEOUT * 1000}")

    def distrust(self, error: BaseException) -> None:
        """Give up the connection after an error, unless it only had to wait for too long."""
        waited = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        if not waited or self._driver is None or self._driver.in_transaction:
            self.drop()

    def integrity(self) -> str:
        """What SQLite finds wrong with its file, indexes included; "ok" if nothing. Postgres checks itself."""
        if self.file is None:
            return "ok"
        with self._guard, self._reading, self._engine.connect() as connection:
            return str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())

    def drop(self) -> None:
        """Forget the connection: what it had begun is undone, and the next call makes a new one."""
        connection, self._connection, self._driver = self._connection, None, None
        if connection is not None:
            # The connection may be as broken as the disk or the network behind it.
            with suppress(Exception):
                connection.invalidate()

    def close(self) -> None:
        """Give back all connections. The next call makes new ones."""
        self.rest()
        self.wake()

    def rest(self) -> None:
        """Give back all connections and let no thread read, until `wake`."""
        self._reading.acquire()
        self.drop()
        self._engine.dispose()

    def wake(self) -> None:
        """Go on after `rest`."""
        self._reading.release()

    def _require_same_file(self) -> None:
        """A file that was put in the place of ours would be another ledger; we would go on writing to the old one."""
        if self.file is not None and _identity(self.file) != self._identity:
            raise LedgerDamaged(
                f'"{self.file}" was replaced by another file while it was in use. Nothing more is served from here. '
                "Bring back the newest file, and start again."
            )

    def _connect(self) -> None:
        connection = self._engine.raw_connection()
        driver = connection.driver_connection
        try:
            self._sync_again(driver)
        except BaseException:
            connection.invalidate()
            raise
        # Only now: a connection that could not make sure of the log is not used.
        self._connection, self._driver = connection, driver

    def _sync_again(self, driver: Any) -> None:
        """Write what SQLite has logged once more and wait for the disk, before any of it is believed.

        If an fsync fails, the system may forget what it could not write and still show it to readers; the next
        fsync then succeeds. A new connection reads the log, so it would believe an entry that a power cut takes away,
        with all that follow. The folder is synced too: SQLite does not check that this succeeds.
        """
        if self.file is None:
            return
        driver.execute("BEGIN IMMEDIATE")
        try:
            for path, flags in ((f"{self.file}-wal", os.O_RDWR), (self.file.parent, os.O_RDONLY)):
                descriptor = os.open(path, flags)
                try:
                    if flags == os.O_RDWR:
                        os.pwrite(descriptor, os.pread(descriptor, os.fstat(descriptor).st_size, 0), 0)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        finally:
            driver.execute("ROLLBACK")

    @property
    def failures(self) -> tuple[type[BaseException], ...]:
        """What the driver raises when something fails."""
        return (self._engine.dialect.loaded_dbapi.Error, sa.exc.SQLAlchemyError, OSError, UnicodeDecodeError)

    def _run(self, statement: str, values: dict[str, Any] | None = None) -> Any:
        if self._connection is None:
            self._connect()
        return self._driver.execute(statement, values or {})


class _Translating:
    """Errors of the driver become ours, and the connection is not trusted after them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures = store.failures

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, self._failures):
            self._store.distrust(error)
            raise translated(error, self._store.name) from None


class _Statements:
    """The few statements, in the words of one database."""

    def __init__(self, dialect: Dialect) -> None:
        def text(statement: Any) -> str:
            return str(statement.compile(dialect=dialect))

        def where(column: str) -> str:
            return text(sa.select(*_COLUMNS).where(ENTRY_TABLE.c[column] == sa.bindparam(column)))

        names = [column.name for column in ENTRY_TABLE.columns]
        before = sa.exists().where(
            ENTRY_TABLE.c.sequence == sa.bindparam("before", type_=sa.BigInteger),
            ENTRY_TABLE.c.hash == sa.bindparam("previous", type_=sa.LargeBinary),
        )
        first = sa.bindparam("before", type_=sa.BigInteger) == sa.literal_column("0")
        # Postgres needs the type of a missing value.
        values = sa.select(*(sa.cast(sa.bindparam(column.name), column.type) for column in ENTRY_TABLE.columns))
        later = ENTRY_TABLE.c.sequence > sa.bindparam("sequence")
        tail = sa.select(*_COLUMNS).where(later).order_by(ENTRY_TABLE.c.sequence)
        self.tail = text(tail)
        self.page = f"{text(tail.add_columns(ENTRY_TABLE.c.key, ENTRY_TABLE.c.records))} LIMIT {PAGE}"
        self.find = {column: where(column) for column in ("key", "records", "sequence")}
        self.append = text(sa.insert(ENTRY_TABLE).from_select(names, values.where(sa.or_(first, before))))
        lock = ("BEGIN", f"LOCK TABLE {ENTRY_TABLE.name} IN SHARE ROW EXCLUSIVE MODE")
        self.begin_alone = ("BEGIN IMMEDIATE",) if dialect.name == "sqlite" else lock


@memoize(8)
def _statements(name: str, driver: str, paramstyle: str) -> _Statements:
    """The same for all ledgers of a kind: to compile them takes as long as some spends."""
    kind: Any = sa.URL.create(f"{name}+{driver}").get_dialect()
    return _Statements(kind(paramstyle=paramstyle))


def _identity(file: Path | None) -> tuple[int, int] | None:
    if file is None:
        return None
    found = os.stat(file)
    return found.st_dev, found.st_ino


_COLUMNS = (ENTRY_TABLE.c.sequence, ENTRY_TABLE.c.body, ENTRY_TABLE.c.released, ENTRY_TABLE.c.hash)
