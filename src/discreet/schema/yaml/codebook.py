"""Code books: public files that say which values a column may have, or between which bounds they lie.

A YAML or JSON file has the columns of a schema file, each with as many settings as are known:

    sex: {values: [Female, Male]}
    age: {lower: 0, upper: 120}

A CSV file has a row for each value of a column (further columns, such as label, are not read), or for its bounds:

    name,value,label          name,lower,upper
    sex,F,Female              age,0,120
    sex,M,Male
"""

import csv
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.errors import BadSchema
from discreet.schema.schema import SCHEMA_ENDINGS
from discreet.schema.yaml import foreign
from discreet.schema.yaml.column_settings import partial_column_from
from discreet.schema.yaml.partial_column import ColumnType, PartialColumn
from discreet.schema.yaml.schema_file import file_text, tree
from discreet.schema.yaml.yaml_tree import Fields, Items, Node, Scalar, resolve

BOUNDS = ("lower", "upper")


def read_codebook(path: str | PathLike[str], known: Mapping[str, PartialColumn]) -> dict[str, PartialColumn]:
    """What a code book says of columns, read by the types that are known of them."""
    name, content = Path(path).name, file_text(path)
    if Path(path).suffix.lower() in SCHEMA_ENDINGS:
        return _from_tree(tree(content, file=name), known)
    return codebook_from_csv(content, known, name=name)


def _from_tree(root: Fields, known: Mapping[str, PartialColumn]) -> dict[str, PartialColumn]:
    if foreign.is_foreign(root):
        return dict(foreign.foreign_from(root).columns)
    columns = root.fields.get("columns", root)
    if not isinstance(columns, Fields):
        raise BadSchema(f"{columns.at}: columns must be a mapping from names to settings.")
    return {name: _sketch(name, node, known) for name, node in columns.fields.items()}


def codebook_from_csv(
    content: str, known: Mapping[str, PartialColumn], *, name: str = "codebook"
) -> dict[str, PartialColumn]:
    """What a code book in CSV says of columns.

    >>> codebook_from_csv("name,value\\nsex,F\\nsex,M\\n", {})["sex"].values
    ('F', 'M')
    """
    rows = csv.DictReader(StringIO(content), strict=True)
    try:
        header = rows.fieldnames or []
        if "name" not in header or not {"value", *BOUNDS} & set(header):
            raise BadSchema(
                f'{name}, line 1: a code book in CSV begins with the line "name,value" or "name,lower,upper". '
                "Rename its columns."
            )
        settings: dict[str, dict[str, Any]] = {}
        for row in rows:
            _add(settings.setdefault(row["name"] or "", {}), row, name, rows.line_num)
    except csv.Error as error:
        raise BadSchema(f"{name}, line {rows.line_num}: this is not CSV: {error}.") from None
    return {column: _sketch(column, _fields(said, name), known) for column, said in settings.items()}


def _add(said: dict[str, Any], row: Mapping[str, Any], file: str, line: int) -> None:
    """One row of a code book: a value, or bounds."""
    if row.get("value") is not None and not (row["value"] == "" and any(row.get(bound) for bound in BOUNDS)):
        said.setdefault("values", []).append((row["value"], line))
    for bound in BOUNDS:
        if row.get(bound):
            if bound in said:
                raise BadSchema(f'{file}, line {line}: column "{row["name"]}" has {bound} twice. Remove one.')
            said[bound] = (row[bound], line)


def _fields(said: Mapping[str, Any], file: str) -> Fields:
    """The rows about one column, as if a schema file said it; a value is in quotes unless all of them are integers."""
    values = said.get("values", [])
    bare = all(type(resolve(text)) is int and str(int(text)) == text for text, _ in values)
    fields: dict[str, Node] = {
        bound: Scalar(file, said[bound][1], 1, said[bound][0], True) for bound in BOUNDS if bound in said
    }
    if values:
        items = tuple(Scalar(file, line, 1, text, bare) for text, line in values)
        fields["values"] = Items(file, values[0][1], len(items), items)
    line = min(part.line for part in fields.values()) if fields else 1
    names = {name: Scalar(file, part.line, 1, name, True) for name, part in fields.items()}
    return Fields(file, line, len(fields), fields, names)


def _sketch(name: str, node: Node, known: Mapping[str, PartialColumn]) -> PartialColumn:
    kind = known[name].kind if name in known else None
    sketch = partial_column_from(name, node, kind=kind)
    return sketch if sketch.kind else PartialColumn(_kind_of(sketch)).filled(sketch)


def _kind_of(sketch: PartialColumn) -> ColumnType | None:
    """The type that bounds have."""
    edges = [edge for edge in (sketch.lower, sketch.upper, *(sketch.bins or ())) if edge is not None]
    if not edges:
        return None
    if all(isinstance(edge, date) for edge in edges):
        return "date"
    if any(isinstance(edge, Decimal) for edge in edges):
        return "number"
    return "integer" if all(isinstance(edge, int) for edge in edges) else None
