"""The names and types of the columns of a file, without reading its rows. Drafts of schemas begin here.

Only with `public=True` are the rows read as well; then bounds and values come from them.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.errors import BadData, BadSchema
from discreet.schema.schema import SCHEMA_ENDINGS
from discreet.schema.unit import Unit
from discreet.schema.yaml.draft import DraftOrigin
from discreet.schema.yaml.foreign import foreign_from, is_foreign
from discreet.schema.yaml.partial_column import ColumnType, PartialColumn
from discreet.schema.yaml.schema_file import file_text, tree
from discreet.schema.yaml.yaml_tree import resolve
from discreet.source.engines.address import FILE_FORMATS

# With more different texts than this, a column is not a category.
MOST_VALUES = 1_000
MOST_HEADER = 2**20

_KINDS: dict[str, ColumnType] = {
    **dict.fromkeys(["tinyint", "smallint", "integer", "bigint", "hugeint"], "integer"),
    **dict.fromkeys(["utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"], "integer"),
    **dict.fromkeys(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"], "integer"),
    **dict.fromkeys(["float", "double", "decimal", "halffloat", "decimal128", "decimal256"], "number"),
    **dict.fromkeys(["varchar", "enum", "uuid", "string", "large_string", "string_view"], "text"),
    **dict.fromkeys(["boolean", "bool"], "boolean"),
    **dict.fromkeys(["date", "date32", "date64", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"], "date"),
}


@dataclass(frozen=True)
class Inspection:
    """What is known of a table, and from what."""

    table: str
    columns: dict[str, PartialColumn]
    origin: DraftOrigin
    unit: Unit | None = None
    source: Path | None = None
    skipped: dict[str, str] = field(default_factory=dict)


def inspect_file(path: str | PathLike[str], *, table: str | None = None, public: bool = False) -> Inspection:
    """The columns of a CSV, Parquet or DuckDB file, or of another tool's metadata.

    Of a CSV file only the header is read, which has no types. No value of the rows has a part in what is returned,
    unless they are `public`.
    """
    path = Path(path)
    if path.suffix.lower() in SCHEMA_ENDINGS:
        return _metadata(path, table)
    kind = _file_kind(path)
    if kind == "duckdb" or public:
        with _connection(path, str(path) if kind == "duckdb" else ":memory:") as connection:
            name, place = _place(connection, path, kind, table)
            described = connection.execute(f"DESCRIBE SELECT * FROM {place}").fetchall()
            found = _described(path, name, [row[0] for row in described], [row[1] for row in described])
            return _with_values(found, connection, place) if public else found
    if kind == "parquet":
        return _described(path, table or path.stem, *_parquet(path))
    return Inspection(table or path.stem, {name: PartialColumn() for name in _header(path)}, "names", source=path)


def _metadata(path: Path, table: str | None) -> Inspection:
    root = tree(file_text(path), file=path.name)
    if not is_foreign(root):
        raise BadSchema(
            f"{path.name} is not metadata of SmartNoise, Lomas or mbi. If it is a schema of ours, run: "
            f"discreet schema check {path.name}"
        )
    found = foreign_from(root, table=table)
    return Inspection(found.table, dict(found.columns), "metadata", unit=found.unit)


def _file_kind(path: Path) -> str:
    """Parquet and DuckDB files say what they are; CSV is known by its name."""
    try:
        with path.open("rb") as file:
            start = file.read(12)
    except FileNotFoundError:
        raise BadData(f'there is no file "{path}". Check the path.') from None
    except IsADirectoryError:
        raise BadData(f'"{path}" is a directory; a draft is made from one file. Name a file in it.') from None
    except OSError as error:
        raise BadData(f'"{path}" cannot be read: {error.strerror}. Check its permissions.') from None
    named = FILE_FORMATS.get(path.suffix.lower())
    if start[:4] == b"PAR1" or named == "parquet":
        return "parquet"
    if start[8:12] == b"DUCK" or named == "duckdb":
        return "duckdb"
    if named == "csv":
        return "csv"
    raise BadData(
        f'"{path.name}" is no CSV (.csv, .tsv), Parquet or DuckDB file, nor metadata (.yaml, .json) of another tool.'
    )


def _described(path: Path, table: str, names: Iterable[str], types: Iterable[Any]) -> Inspection:
    """A column for each name whose type can be counted over; the rest is skipped, and said."""
    columns: dict[str, PartialColumn] = {}
    skipped: dict[str, str] = {}
    for name, type_ in zip(_unique(names, path), types, strict=True):
        word = _word(type_)
        kind = _KINDS.get(word)
        if kind is None:
            skipped[name] = word
        else:
            columns[name] = PartialColumn(kind)
    return Inspection(table, columns, "types", source=path, skipped=skipped)


def _word(type_: Any) -> str:
    """The first word of a type: an enumeration lists its values behind it, and they may come from the rows."""
    text = str(type_).lower()
    return "list" if re.search(r"\[\d*\]$", text) else re.split(r"[^a-z0-9_]", text)[0]


def _unique(names: Iterable[str], path: Path) -> list[str]:
    listed = list(names)
    if len(set(listed)) < len(listed):
        raise BadData(f'"{path.name}" has two columns of one name; names are unique. Rename one.')
    return listed


def _parquet(path: Path) -> tuple[list[str], list[Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
    except (pa.ArrowException, OSError, ValueError):
        raise BadData(f'"{path.name}" cannot be read as Parquet: it is truncated or damaged.') from None
    types = [part.type.value_type if pa.types.is_dictionary(part.type) else part.type for part in schema]
    return schema.names, types


def _header(path: Path) -> list[str]:
    """The first record of a CSV file, if it can be a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            line = file.readline(MOST_HEADER)
            delimiter = max(",;\t|", key=line.count)
            names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise BadData(f'the first line of "{path.name}" is not CSV in UTF-8. Save it so, or as Parquet.') from None
    # A file without a header begins with a row, and a draft must not repeat it; so the message does not either.
    if not names or any(not isinstance(resolve(name.strip()), str) for name in names):
        raise BadData(
            f'the first line of "{path.name}" is not a header: a name is empty, a number or a date. Add a line with '
            "the names of the columns; if the rows are public, say --public-data."
        )
    return _unique(names, path)


@contextmanager
def _connection(path: Path, database: str = ":memory:") -> Iterator[Any]:
    """A DuckDB of our own, whose errors may quote rows and so are not passed on."""
    import duckdb

    settings: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    try:
        with duckdb.connect(database, read_only=database != ":memory:", config=settings) as connection:
            yield connection
    except duckdb.Error:
        raise BadData(
            f'"{path.name}" cannot be read: it is damaged or of another kind, or another program has it open.'
        ) from None


def _place(connection: Any, path: Path, kind: str, table: str | None) -> tuple[str, str]:
    """The name of the table, and what to write after FROM."""
    if kind != "duckdb":
        literal = "'" + str(path).replace("'", "''") + "'"
        return table or path.stem, f"read_{kind}({literal})"
    tables = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    found = connection.execute(tables).fetchall()
    chosen = [pair for pair in found if table in (None, pair[1], ".".join(pair))]
    if len(chosen) != 1:
        listed = ", ".join(f'"{name}"' for _, name in found[:8]) or "none"
        raise BadData(f'"{path.name}" has these tables: {listed}. Choose one with --table.')
    return chosen[0][1], ".".join(map(_quoted, chosen[0]))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _with_values(found: Inspection, connection: Any, place: str) -> Inspection:
    """What the rows show, which are public."""

    def ask(sql: str) -> Any:
        return connection.execute(sql).fetchall()

    def seen(name: str, sketch: PartialColumn) -> PartialColumn:
        match sketch.kind:
            case "text":
                return _values(ask, f"CAST({_quoted(name)} AS VARCHAR)", place)
            case "boolean":
                return sketch
            case _:
                return _bounds(ask, sketch, _quoted(name), place)

    return replace(found, origin="values", columns={name: seen(name, part) for name, part in found.columns.items()})


def _values(ask: Callable[[str], Any], column: str, place: str) -> PartialColumn:
    texts = ask(
        f"SELECT DISTINCT {column} AS text FROM {place} WHERE text IS NOT NULL ORDER BY text LIMIT {MOST_VALUES + 1}"
    )
    return PartialColumn("text", values=tuple(text for (text,) in texts) if 0 < len(texts) <= MOST_VALUES else None)


def _bounds(ask: Callable[[str], Any], sketch: PartialColumn, column: str, place: str) -> PartialColumn:
    value = f"CAST({column} AS DATE)" if sketch.kind == "date" else column
    # Infinite numbers and dates are no bounds.
    finite = f"isfinite(CAST({column} AS {'DATE' if sketch.kind == 'date' else 'DOUBLE'}))"
    ((lower, upper),) = ask(f"SELECT min({value}), max({value}) FROM {place} WHERE {finite}")
    if lower is None:
        return sketch
    lower, upper = (Decimal(repr(end)) if isinstance(end, float) else end for end in (lower, upper))
    return replace(sketch, lower=lower, upper=upper)
