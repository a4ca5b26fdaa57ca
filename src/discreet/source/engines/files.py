"""Files on this machine, through an embedded DuckDB: CSV, Parquet, DuckDB."""

import csv
import os
import tempfile
import weakref
from collections.abc import Iterable
from glob import escape, glob, has_magic
from pathlib import Path
from shutil import rmtree
from typing import Any

from discreet.errors import BadData, did_you_mean
from discreet.source.engines.connect import engine_errors_as

DELIMITERS = (",", ";", "\t", "|")


class _Spill:
    """A private folder for what does not fit in memory; it is gone with the last connection that uses it."""

    def __init__(self, pin: object = None) -> None:
        # Which file the connections are to, if they are to one.
        self.pin = pin
        self.folder = tempfile.mkdtemp(prefix="discreet-")
        weakref.finalize(self, rmtree, self.folder, ignore_errors=True)


# Connections to one file, say for two tables in it, must agree in every setting.
_spills: weakref.WeakValueDictionary[str, _Spill] = weakref.WeakValueDictionary()


def embedded(database: str = ":memory:") -> Any:
    """A DuckDB inside this process that fetches nothing and spills to a private place, never beside the program."""
    import ibis

    own = database == ":memory:"
    spill = _Spill() if own else _spill_of(database)
    try:
        connection = ibis.duckdb.connect(
            database,
            read_only=not own,
            temp_directory=spill.folder,
            autoinstall_known_extensions="false",
            autoload_known_extensions="false",
        )
    except BaseException:
        # The traceback keeps this frame: a good file in the place of a bad one would be refused as another file.
        del spill
        raise
    connection.spill = spill
    return connection


def _spill_of(path: str) -> _Spill:
    """What the connections to a file share. Another file under its name is refused: DuckDB would show the first."""
    state = os.stat(path)
    spill = _spills.setdefault(os.path.realpath(path), _Spill((state.st_dev, state.st_ino)))
    if spill.pin != (state.st_dev, state.st_ino):
        raise BadData(
            f'"{path}" is another file than the one that a table of this process has open under this name. Let go of '
            "that table (and of its curator) first, or open the new file in another process."
        )
    return spill


def open_parquet(path: str) -> Any:
    """A Parquet file, or several with * in the name."""
    paths = _existing(path)
    with engine_errors_as(f'"{path}" is not a Parquet file, or it is truncated. Write it again.'):
        return embedded().read_parquet([escape(each) for each in paths])


def open_duckdb(path: str) -> Any:
    """A DuckDB database file, read only."""
    _existing(path)
    with engine_errors_as(
        f'"{path}" cannot be opened as a DuckDB file: it is damaged, of another version, or another program is '
        "writing to it."
    ):
        return embedded(path)


def open_csv(path: str, wanted: Iterable[str]) -> Any:
    """A CSV file as a table of texts. The delimiter is the one with which the header names the wanted columns."""
    paths = _existing(path)
    header, delimiter = _header(paths[0], list(wanted))
    for other in paths[1:]:
        if _names(_first_line(other), delimiter) != header:
            raise BadData(f'"{other}" has another header than "{paths[0]}"; the files of one table have the same.')
    with engine_errors_as(f'"{path}" cannot be read as CSV in UTF-8 with a header.'):
        return embedded().read_csv(
            [escape(each) for each in paths],
            columns=dict.fromkeys(header, "string"),
            header=True,
            auto_detect=False,
            delim=delimiter,
            quote='"',
            escape='"',
            allow_quoted_nulls=False,
        )


def _existing(path: str) -> list[str]:
    """The files that a path names, if they can be read."""
    try:
        paths = sorted(glob(path)) if has_magic(path) and not Path(path).exists() else [path]
        for each in paths:
            _check_readable(Path(each))
    except OSError as error:
        raise BadData(f'"{path[:200]}" cannot be read ({error.strerror}); check the path.') from None
    if not paths:
        raise BadData(f'no file matches "{path}". Check the path; a relative one starts where the schema file is.')
    return paths


def _check_readable(path: Path) -> None:
    if path.is_dir():
        raise BadData(f'"{path}" is a directory; a source is a file. For all files in it write "{path}/*.parquet".')
    if not path.exists():
        hint = did_you_mean(path.name, _names_beside(path))
        raise BadData(f'there is no file "{path}"; {hint if "did you mean" in hint else "check the path."}')
    if not path.is_file():
        raise BadData(f'"{path}" is a pipe or a device; a source is a file. Save the rows to one first.')
    if not os.access(path, os.R_OK):
        raise BadData(f'"{path}" cannot be read; check its permissions.')


def _names_beside(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.parent.iterdir() if entry.exists()]
    except OSError:
        return []


def _header(path: str, wanted: list[str]) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter between them.

    A file may lack a header, so its first line is not shown before it is seen to name a column of the schema.
    """
    line = _first_line(path)
    delimiter = max(DELIMITERS, key=lambda each: len(set(wanted) & set(_names(line, each))))
    header = _names(line, delimiter)
    if not set(wanted) & set(header):
        raise BadData(
            f'the first line of "{path}" names no column of the schema. It must be a header, in UTF-8; fields are '
            "separated by a comma, a semicolon, a tab or a |."
        )
    seen: dict[str, str] = {}
    for name in header:
        # For DuckDB, names that differ in case only are the same.
        if name.lower() in seen:
            other = seen[name.lower()]
            raise BadData(f'the header of "{path}" has "{other}" and "{name}"; names are unique. Rename one.')
        seen[name.lower()] = name
    return header, delimiter


def _names(line: str, delimiter: str) -> list[str]:
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [name or f"column {place} without a name" for place, name in enumerate(names, start=1)]


def _first_line(path: str) -> str:
    """The header of a file, which is read to its end if it is compressed: DuckDB does not see that it was cut off."""
    import pyarrow as pa

    with engine_errors_as(
        f'"{path}" cannot be read as CSV in UTF-8 with a header: it is damaged or in another encoding.'
    ):
        with pa.input_stream(path) as stream:
            # A header of more than a megabyte is not one; without a limit a file of one line would be read whole.
            start = stream.read(2**20)
            while path.lower().endswith((".gz", ".zst")) and stream.read(2**20):
                pass
        return str(start.partition(b"\n")[0].partition(b"\r")[0].decode("utf-8-sig"))
