"""Where the rows of an engine are: are they there, are they the same, and how to read one state of them.

A file must be the same before and after it is read, or nothing is released. Postgres reads one state in a repeatable
read, DuckDB in a transaction. Of engines that have neither (Spark's tables, say) the owner sees to it that nobody
writes while a question is answered.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from discreet.errors import SourceChanged, SourceFailed, SourceUnavailable
from discreet.source.fingerprint import files_at, of_files, of_postgres, pin_of_files


class RowsOrigin:
    """The rows of an engine's table; and the path of their files, if they are in files."""

    def __init__(self, rows: Any, place: str | None = None) -> None:
        self._rows, self._place = rows, place
        self._engine = rows.get_backend()
        # The question for no rows, once it was asked.
        self._none: Any = None

    def fingerprint(self) -> str | None:
        """What tells one state of the rows from another, as `Source.fingerprint` says."""
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
        """While within, all statements read one state; what tells whether it is that of the last time, if anything."""
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
        f"the rows cannot be read now ({type(error).__name__}); nothing was charged. See that the file or the server "
        "is there and may be read, and ask again."
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
