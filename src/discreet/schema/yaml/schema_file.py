"""Schema files: read and written. Formats of other tools are recognised by their structure (`foreign.py`).

table: people
version: 1                       # another one whenever the rows have changed
source: people.parquet
privacy_unit: row                # or a column, with `contributions`, the most rows of one person
neighbors: add_remove
columns:
  age: {type: integer, bins: [17, 25, 65], upper: 90}
  sex: {values: [Female, Male]}

The schema files of a folder, read together: one may say that another's people are also in its table.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.errors import BadSchema, Mistake, did_you_mean
from discreet.schema.domain import Domain
from discreet.schema.schema import SCHEMA_ENDINGS, Schema
from discreet.schema.unit import FIRST_VERSION, Unit, people_groups
from discreet.schema.yaml import foreign
from discreet.schema.yaml import writer as text
from discreet.schema.yaml.column_settings import column_from, is_blank, without_python
from discreet.schema.yaml.partial_column import partial_column_of
from discreet.schema.yaml.yaml_tree import MOST_SCHEMA_BYTES, Fields, Items, Node, Scalar, compose

SCHEMA_KEYS = (
    "table",
    "version",
    "source",
    "privacy_unit",
    "contributions",
    "neighbors",
    "shares_people_with",
    "columns",
)
NEIGHBORS = ("add_remove", "replace_one")


def read_schema(path: str | PathLike[str], *, table: str | None = None) -> Schema:
    """The schema in a file: ours, or SmartNoise or Lomas metadata (YAML), or an mbi domain (JSON).

    A file without the name of its table gives its own. `table` chooses one where a file declares several.
    """
    return parse_schema(file_text(path), name=Path(path).name, table=table)


def parse_schema(content: str, *, name: str = "schema", table: str | None = None) -> Schema:
    """The schema in a text; errors begin with `name` and the line.

    >>> parse_schema("{privacy_unit: row, columns: {smoker: {type: boolean}}}", name="people.yaml").table
    'people'
    >>> parse_schema("{privacy_unit: row, columns: {age: {type: intger}}}", name="people.yaml")
    Traceback (most recent call last):
    discreet.errors.BadSchema: people.yaml, line 1: column "age" has type "intger"; did you mean "integer"?
    """
    root = tree(content, file=name)
    if foreign.is_foreign(root):
        return foreign.schema_from(root, table=table)
    return _schema(root, table)


def file_text(path: str | PathLike[str]) -> str:
    """The text of a file that should be a schema, or why there is none."""
    name = Path(path).name
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_SCHEMA_BYTES + 1)
    except FileNotFoundError:
        raise BadSchema(f'there is no file "{path}". Write one, or begin with: discreet schema draft DATA') from None
    except IsADirectoryError:
        raise BadSchema(f'"{path}" is a directory; it must be a file. Name the schema file in it.') from None
    except OSError as error:
        raise BadSchema(f'"{path}" cannot be read: {error.strerror}. Check its permissions.') from None
    if len(content) > MOST_SCHEMA_BYTES:
        raise BadSchema(
            f"{name} is larger than {MOST_SCHEMA_BYTES} bytes; a schema is smaller. Is this the data itself?"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSchema(f"{name}, line {line}: this is not UTF-8. Save the file as text in UTF-8.") from None


def tree(content: str, *, file: str) -> Fields:
    """The mapping that a schema file is."""
    root = compose(content, file=file)
    if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
        raise BadSchema(f"{file} is empty; a schema has at least privacy_unit and columns.")
    if not isinstance(root, Fields):
        what = "a list" if isinstance(root, Items) else "one text"
        raise BadSchema(f"{root.at}: the file is {what}; it must be a mapping that begins like this: table: people")
    return root


def _schema(root: Fields, table: str | None) -> Schema:
    for name in root.fields:
        if name not in SCHEMA_KEYS:
            raise BadSchema(
                f'{root.at_name(name)}: a schema has no "{name[:60]}"; {did_you_mean(name[:60], SCHEMA_KEYS)}'
            )
    columns = _columns(root)
    _refuse_blanks(root, columns)
    domain = Domain({name: column_from(name, node) for name, node in columns.fields.items()})
    unit = _unit(root)
    named = _name(root, "table") if "table" in root.fields else Path(root.file).stem
    if table not in (None, named):
        raise BadSchema(f'{root.file} declares the table "{named}" and not "{table}".')
    source = _name(root, "source") if "source" in root.fields else None
    version = _name(root, "version") if "version" in root.fields else FIRST_VERSION
    try:
        return Schema(named, domain, unit, source, _shared(root), version)
    except BadSchema as error:
        blamed = next((key for key in ("shares_people_with", "version") if key in str(error)), "privacy_unit")
        raise BadSchema(f"{_place(root, blamed)}: {error}") from None


def _place(root: Fields, name: str) -> str:
    return root.at_name(name) if name in root.fields else root.at


def _columns(root: Fields) -> Fields:
    columns = root.fields.get("columns")
    if columns is None:
        raise BadSchema(f'{root.file} has no "columns"; list the columns that may be asked about.')
    if not isinstance(columns, Fields) or not columns.fields:
        what = "a list" if isinstance(columns, Items) else "empty"
        raise BadSchema(
            f"{root.at_name('columns')}: columns is {what}; it must be a mapping from names to settings, like "
            "age: {type: integer, lower: 0, upper: 120}"
        )
    if "" in columns.fields:
        raise BadSchema(f"{columns.at_name('')}: a column has an empty name. Name it.")
    return columns


def _refuse_blanks(root: Fields, columns: Fields) -> None:
    """A draft that is not finished says which columns are still to be completed."""
    open_keys = [name for name, node in root.fields.items() if name != "columns" and is_blank(node)]
    open_columns = [name for name, node in columns.fields.items() if is_blank(node)]
    if not open_keys and not open_columns:
        return
    parts = [", ".join(open_keys)] if open_keys else []
    if open_columns:
        shown = ", ".join(f'"{name}"' for name in open_columns[:8])
        more = f" and {len(open_columns) - 8} more" if len(open_columns) > 8 else ""
        parts.append(f"the column{'s' * (len(open_columns) > 1)} {shown}{more}")
    first = min([root.names[name].line for name in open_keys] + [columns.names[name].line for name in open_columns])
    raise BadSchema(
        f"{root.file}, line {first}: this draft is not finished. Complete {' and '.join(parts)}: "
        "fill in every ___, and remove the columns that may not be asked about."
    )


def _name(root: Fields, key: str) -> str:
    """A text that is a name; `table: 2024` means the text."""
    return _scalar(root.fields[key], key).text


def _scalar(node: Node, key: str) -> Scalar:
    if not isinstance(node, Scalar):
        raise BadSchema(f"{node.at}: {key} is a list or a mapping; it must be one value.")
    if not node.text or (node.plain and node.value is None):
        raise BadSchema(f"{node.at}: {key} has no value. Write one, or remove the line.")
    return node


def _unit(root: Fields) -> Unit:
    if "privacy_unit" not in root.fields:
        raise BadSchema(
            f"{root.file} does not say whom to protect. Add privacy_unit: row if each row is another person, or "
            "privacy_unit: person_id with contributions: 3 if that column says whose row it is."
        )
    key = _key(root.fields["privacy_unit"])
    contributions: Any = (
        _scalar(root.fields["contributions"], "contributions").value if "contributions" in root.fields else 1
    )
    neighbors: Any = _name(root, "neighbors") if "neighbors" in root.fields else "add_remove"
    if neighbors not in NEIGHBORS:
        raise BadSchema(
            f'{_place(root, "neighbors")}: neighbors is "{neighbors}"; {did_you_mean(neighbors, NEIGHBORS)}'
        )
    if key is None and contributions != 1:
        raise BadSchema(
            f"{_place(root, 'contributions')}: contributions is {contributions} and privacy_unit is row; "
            "a row has one. Name the column that identifies a person as privacy_unit."
        )
    try:
        return Unit(key, contributions, neighbors)
    except Mistake as error:
        raise BadSchema(f"{_place(root, 'contributions')}: {without_python(error)}") from None


def _key(node: Node) -> str | None:
    """The column of the privacy unit: `row`, a name, or {column: name} for a column that is called row."""
    if isinstance(node, Fields) and list(node.fields) == ["column"]:
        return _name(node, "column")
    word = _scalar(node, "privacy_unit").text
    if word.lower() in ("row", "rows") and word != "row":
        raise BadSchema(
            f'{node.at}: privacy_unit is "{word}"; did you mean "row"? '
            f"For a column of that name write {{column: {word}}}."
        )
    return None if word == "row" else word


def _shared(root: Fields) -> tuple[str, ...]:
    node = root.fields.get("shares_people_with")
    if node is None:
        return ()
    if not isinstance(node, Items):
        raise BadSchema(f"{node.at}: shares_people_with must be a list of names of tables, like [visits].")
    return tuple(_scalar(item, "shares_people_with").text for item in node.items)


def schema_text(schema: Schema) -> str:
    """The text of a schema file; `parse_schema` makes the same schema of it.

    >>> from discreet.schema.column import Boolean
    >>> print(schema_text(Schema("people", Domain({"smoker": Boolean()}))))
    table: people
    privacy_unit: row
    neighbors: add_remove
    columns:
      smoker: {type: boolean}
    """
    lines = [f"table: {text.quoted(schema.table)}"]
    if schema.version != FIRST_VERSION:
        lines.append(f"version: {text.quoted(schema.version)}")
    if schema.source is not None:
        lines.append(f"source: {text.quoted(schema.source)}")
    lines += text.unit_lines(schema.unit)
    if schema.shares_people_with:
        lines.append(f"shares_people_with: {text.flow_list(list(map(text.quoted, schema.shares_people_with)))}")
    lines.append("columns:")
    lines += [text.entry(name, partial_column_of(column)) for name, column in schema.domain.columns]
    return "\n".join(lines) + "\n"


def write_schema(schema: Schema, path: str | PathLike[str]) -> None:
    """Write a schema file."""
    content = schema_text(schema)
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise BadSchema(f'"{path}" cannot be written: {error.strerror}.') from None


_WORD = "shares_people_with"
# Not in a comment: those begin a line, or come after a space.
_SAYS = re.compile(rf"""^(?!#)(?:(?!\s\#).)*?{_WORD}["']?\s*:""", re.MULTILINE)


def schemas_beside(path: Path) -> dict[Path, Schema]:
    """This schema; and all others of its folder that can be read, if any of them says that it shares people.

    One that says so and cannot be read is refused.
    """
    found, texts = {path: read_schema(path)}, {}
    try:
        files = sorted(path.parent.iterdir())
    except OSError:
        files = []
    for file in files:
        if file.suffix.lower() in SCHEMA_ENDINGS and file.is_file() and not file.samefile(path):
            try:
                texts[file] = file_text(file)
            except BadSchema:
                continue
    if found[path].shares_people_with or any(_WORD in text for text in texts.values()):
        for file, text in texts.items():
            try:
                found[file] = parse_schema(text, name=file.name)
            except BadSchema as error:
                # No schema, or a broken one, which is refused when it is opened. But one that may say that people are
                # shared is refused here: otherwise these tables would have separate budgets.
                if _SAYS.search(text):
                    raise BadSchema(
                        f"{file.name} beside {path.name} says {_WORD} and cannot be read: {error} Correct it, or move "
                        "it to another folder if it is no schema."
                    ) from error
    return found


def people_of(table: str, schemas: Mapping[Path, Schema]) -> frozenset[str]:
    """This table and all that share people with it, as these schemas say."""
    shares: dict[str, set[str]] = {}
    for each in schemas.values():
        shares.setdefault(each.table, set()).update(each.shares_people_with)
    return people_groups(shares).get(table, frozenset((table,)))


def read_with_people(path: Path) -> Schema:
    """The schema in a file, with every table that shares its people, also if only another schema beside it says so."""
    found = schemas_beside(path)
    schema = found[path]
    others = people_of(schema.table, found) - {schema.table}
    more = others - set(schema.shares_people_with)
    return replace(schema, shares_people_with=(*schema.shares_people_with, *sorted(more))) if more else schema
