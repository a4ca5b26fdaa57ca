"""Files on this machine, through an embedded DuckDB: CSV, Parquet, DuckDB."""

import csv
import gzip
import os
import tempfile
import weakref
from collections.abc import Iterable
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from discreet.errors import BadData, did_you_mean
from discreet.source.connect import our_sentence

DELIMITERS = (",", ";", "\t", "|")


def embedded(database: str = ":memory:") -> Any:
    """A DuckDB inside this process that fetches nothing and spills to a private place, never beside the program."""
    import ibis

    spill = tempfile.mkdtemp(prefix="discreet-")
    connection = ibis.duckdb.connect(
        database,
        read_only=database != ":memory:",
        temp_directory=spill,
        autoinstall_known_extensions="false",
        autoload_known_extensions="false",
    )
    weakref.finalize(connection, _remove, spill)
    return connection


def open_parquet(path: str) -> Any:
    """A Parquet file, or several with * in the name."""
    paths = _existing(path)
    with our_sentence(f'"{path}" is not a Parquet file, or it is truncated. Write it again.'):
        return embedded().read_parquet(paths)


def open_duckdb(path: str) -> Any:
    """A DuckDB database file, read only."""
    _existing(path)
    with our_sentence(
        f'"{path}" cannot be opened as a DuckDB file: it is damaged, of another version, or another program is '
        "writing to it."
    ):
        return embedded(path)


def open_csv(path: str, wanted: Iterable[str]) -> Any:
    """A CSV file as a table of texts. The delimiter is the one with which the header names the wanted columns."""
    paths = _existing(path)
    header, delimiter = _header(paths[0], list(wanted))
    for other in paths[1:]:
        if _first_line(other, delimiter) != header:
            raise BadData(f'"{other}" has another header than "{paths[0]}"; the files of one table have the same.')
    with our_sentence(f'"{path}" cannot be read as CSV in UTF-8 with a header.'):
        return embedded().read_csv(
            paths,
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
    paths = sorted(glob(path)) if has_magic(path) and not Path(path).exists() else [path]
    if not paths:
        raise BadData(f'no file matches "{path}". See the path; a relative one starts where the schema file is.')
    for each in paths:
        if Path(each).is_dir():
            raise BadData(f'"{each}" is a directory; a source is a file. For all files in it write "{each}/*.parquet".')
        if not Path(each).exists():
            near = did_you_mean(Path(each).name, _names_beside(each))
            raise BadData(f'there is no file "{each}"; {near if "did you mean" in near else "see the path."}')
        if not Path(each).is_file() or not os.access(each, os.R_OK):
            raise BadData(f'"{each}" cannot be read; see its permissions.')
    return paths


def _names_beside(path: str) -> list[str]:
    try:
        return [entry.name for entry in Path(path).parent.iterdir()]
    except OSError:
        return []


def _header(path: str, wanted: list[str]) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter between them."""
    headers = {delimiter: _first_line(path, delimiter) for delimiter in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda each: len(set(wanted) & set(headers[each])))
    header = headers[delimiter]
    if not set(wanted) & set(header):
        delimiter = max(DELIMITERS, key=lambda each: len(headers[each]))
        header = headers[delimiter]
    for name in header:
        if header.count(name) > 1:
            raise BadData(f'the header of "{path}" has "{name}" twice; names are unique. Rename one.')
    if len(header) == 1 < len(wanted):
        raise BadData(
            f'the header of "{path}" is one column, "{header[0][:60]}"; the schema has {len(wanted)}. '
            "Fields are separated by a comma, a semicolon, a tab or a |."
        )
    return header, delimiter


def _first_line(path: str, delimiter: str) -> list[str]:
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            # A header of more than a megabyte is not one; without a limit a file of one line would be read whole.
            return next(csv.reader([file.readline(2**20)], delimiter=delimiter), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        raise BadData(f'"{path}" cannot be read as CSV in UTF-8 with a header.') from None


def _remove(folder: str) -> None:
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)
