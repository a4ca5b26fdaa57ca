"""Fingerprints of the state of a source, without reading its rows: they show that it was edited, never what is in it.

For files they are made of sizes and times, for Postgres of its counters of edits. Contents are never compared: a
refusal that depended on them could reveal one row. They are for the owner: a size or a counter reveals the number of
rows.

Where the rows of an engine are: are they there, are they the same, and how to read one state of them.

A file must be the same before and after it is read, or nothing is released. Postgres reads one state in a repeatable
read, DuckDB in a transaction. For engines that have neither (Spark's tables, say) the owner ensures that nobody writes
while a question is answered.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob, has_magic
from hashlib import sha256
from typing import Any

from discreet.errors import SourceChanged, SourceFailed, SourceUnavailable

# Every relation that a table or a view is read from: its partitions, and the tables behind a view.
_POSTGRES = """
WITH RECURSIVE origin(oid) AS (
    SELECT %s::regclass::oid
    UNION
    SELECT edge.below FROM origin JOIN LATERAL (
        SELECT inhrelid FROM pg_inherits WHERE inhparent = origin.oid
        UNION ALL
        SELECT refobjid FROM pg_rewrite JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
        WHERE ev_class = origin.oid AND refclassid = 'pg_class'::regclass AND refobjid <> origin.oid
    ) AS edge(below) ON true
)
SELECT oid, relkind::text, pg_relation_filenode(oid), pg_stat_get_tuples_inserted(oid), pg_stat_get_tuples_updated(oid),
    pg_stat_get_tuples_deleted(oid), pg_is_in_recovery() OR current_setting('track_counts') <> 'on'
FROM pg_class JOIN origin USING (oid) ORDER BY oid
"""
# Tables, their partitions, views and materialised views. Rows of a foreign table are elsewhere.
_COUNTED = frozenset("rpvm")


def files_at(place: str) -> list[str]:
    """The files that a path names now: one, all that match, or those in a folder; of a DuckDB file also its log."""
    if os.path.isdir(place):
        return sorted(os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
    paths = sorted(glob(place)) if has_magic(place) and not os.path.exists(place) else [place]
    return paths + [log for log in (f"{path}.wal" for path in paths) if os.path.exists(log)]


def of_files(paths: Iterable[str]) -> str:
    """The sizes of some files and when they were written; not where they are, so that they may be moved.

    >>> of_files([])
    'files e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    found = sorted((state.st_size, state.st_mtime_ns) for state in map(os.stat, paths))
    return _digest("files", (f"{size} {written}\n" for size, written in found))


def pin_of_files(paths: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """The same, and which files they are: while a process has them open, another file in their place is a change."""
    return tuple(
        (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns) for state in (os.stat(path) for path in paths)
    )


def of_postgres(connection: Any, name: str) -> str | None:
    """How often the rows behind a table or view were inserted, updated, deleted or rewritten; None if nobody counts.

    The server's counters follow an edit within a second, at most ten. A crash of the server or VACUUM FULL counts as
    an edit.
    """
    found = connection.execute(_POSTGRES, [name]).fetchall()
    if any(kind not in _COUNTED or uncounted for _, kind, *_, uncounted in found):
        return None
    return _digest("postgres", (_line(row[:-1]) for row in found))


def _line(row: Sequence[Any]) -> str:
    """A row of the counters as it is hashed in format 1: numbers, texts in single quotes, None where there is none.

    >>> _line((17, "r", None))
    "(17, 'r', None)\\n"
    """
    return f"({', '.join(chr(39) + each + chr(39) if isinstance(each, str) else str(each) for each in row)})\n"


def _digest(kind: str, lines: Iterable[str]) -> str:
    return f"{kind} {sha256(''.join(lines).encode()).hexdigest()}"


class RowsOrigin:
    """The rows of an engine's table; and the path of their files, if they are in files."""

    def __init__(self, rows: Any, place: str | None = None) -> None:
        self._rows, self._place = rows, place
        self._engine = rows.get_backend()
        # The question for no rows, once it was asked.
        self._none: Any = None

    def fingerprint(self) -> str | None:
        """The fingerprint of the state of the rows, as in `Source.fingerprint`."""
        if self._place is not None:
            return of_files(files_at(self._place))
        name = self._postgres_name()
        return None if name is None else of_postgres(self._engine.con, name)

    def pin(self) -> object:
        """The same, for as long as this process has the source open: another file in its place is a change too."""
        return self.fingerprint() if self._place is None else pin_of_files(files_at(self._place))

    def reach(self, columns: list[str]) -> None:
        """Fail if the columns cannot be read now; no row is."""
        if self._place is not None:
            for path in files_at(self._place):
                if not os.access(path, os.R_OK):
                    raise PermissionError
        if self._place is not None and self._engine.name == "duckdb":
            return
        if self._none is None:
            self._none = self._rows.select(*columns).limit(0)
            if self._engine.name in ("duckdb", "postgres"):
                # To write the statement takes longer than to ask it.
                self._none = self._engine.compile(self._none)
        if isinstance(self._none, str):
            self._engine.con.execute(self._none)
        else:
            self._none.to_pyarrow()

    @contextmanager
    def one_state(self) -> Iterator[object]:
        """Within the block all statements read one state; yields a mark that is equal for equal states, or None."""
        if self._place is not None:
            yield self.pin()
        elif self._engine.name == "postgres":
            with self._repeatable() as mark:
                yield mark
        elif self._engine.name == "duckdb":
            with _transaction(self._engine.con):
                yield None
        else:
            yield None

    @contextmanager
    def _repeatable(self) -> Iterator[str]:
        connection = self._engine.con
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Equal if no transaction has ended in between, in the whole server.
            ((mark,),) = connection.execute("SELECT txid_current_snapshot()::text").fetchall()
            yield mark

    def _postgres_name(self) -> str | None:
        """The name of a table of Postgres, as it writes names; None for an expression over several."""
        import ibis.expr.operations as ops

        table = self._rows.op()
        if self._engine.name != "postgres" or not isinstance(table, ops.DatabaseTable):
            return None
        parts = [part for part in (table.namespace.database, table.name) if part]
        return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


@contextmanager
def _transaction(connection: Any) -> Iterator[None]:
    """A transaction of DuckDB, or the one that the connection is already in."""
    import duckdb

    # To begin a second one would undo the first. Without one, each statement is a transaction of its own.
    first, second = (connection.execute("SELECT txid_current()").fetchall() for _ in range(2))
    if first == second:
        yield
        return
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
    # We write nothing; but the owner of the connection may have, and keeps it.
    connection.execute("COMMIT")


def source_unavailable(error: Exception) -> SourceUnavailable:
    """Say that the rows cannot be read now. What an engine says may quote a row, so it is not repeated."""
    return SourceUnavailable(
        f"the rows cannot be read now ({type(error).__name__}); nothing was charged. Ask again in a moment; the "
        "owner checks that the file or the server is there and may be read."
    )


def source_changed() -> SourceChanged:
    """Say that the rows are those of another state."""
    return SourceChanged(
        "the table is no longer the one that was opened: its file or its rows were written since. Nothing was charged. "
        "The owner opens it again, or starts the server again: under a new version (version: 2 in the schema) if it "
        "has answered before, or after discreet schema confirm SCHEMA if the rows are the same."
    )


def file_written() -> SourceFailed:
    """Say that a file was not the same before and after it was read."""
    return SourceFailed(
        "the file was written after the table was opened, perhaps while it was read; nothing was released. "
        "The owner opens the table again."
    )
