"""What tells one state of a source from another, without a look at its rows: that it was edited, never what is in it.

Files tell it by their sizes and times, Postgres by its counters of edits. Contents are never compared: a refusal that
depended on them would tell of one row. It is for the owner: a size or a counter says how many rows there are.
"""

import os
from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from hashlib import sha256
from typing import Any

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

    The server's counters follow an edit within a second, at most ten. A crash of the server or VACUUM FULL looks like
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
