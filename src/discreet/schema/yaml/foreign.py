"""Schemas of other tools: SmartNoise metadata, Lomas metadata (up to 0.4), mbi domains.

    SmartNoise   collection → schema → table → max_ids, row_privacy, … and the columns beside them
    Lomas        max_ids, row_privacy, … and `columns`, for one table
    mbi          {"age": 85, …}: each column has the integers 0 to 84, and nothing else

They say less than we need: a column of texts without its values, or of decimals without bins, cannot be counted over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.errors import BadSchema, Mistake, did_you_mean
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.schema.unit import Unit
from discreet.schema.yaml.column_settings import checked_column, without_python
from discreet.schema.yaml.partial_column import ColumnType, PartialColumn
from discreet.schema.yaml.yaml_tree import Fields, Items, Node, Scalar, resolve

# What a table says that is not a column. Numbers of rows and how SmartNoise clamps and censors have no meaning here.
TABLE_KEYS = [
    *("max_ids", "row_privacy", "rows", "rows_exact", "sample_max_ids"),
    *("censor_dims", "clamp_counts", "clamp_columns", "use_dpsu"),
]
COLUMN_KEYS = [
    *("type", "lower", "upper", "private_id", "nullable", "missing_value", "cardinality", "categories"),
    *("sensitivity", "precision", "max_partition_length", "max_influenced_partitions", "max_partition_contributions"),
]
FOREIGN_TYPES: dict[str, ColumnType] = {
    "int": "integer",
    "float": "number",
    "string": "text",
    "boolean": "boolean",
    "datetime": "date",
}


@dataclass(frozen=True)
class Foreign:
    """What a file of another tool says of one table."""

    table: str
    unit: Unit
    columns: Mapping[str, PartialColumn]
    nodes: Mapping[str, Node]


def is_foreign(root: Fields) -> bool:
    """Whether a file is of one of these kinds, by its structure."""
    return _is_lomas(root) or _is_mbi(root) or _is_smartnoise(root)


def _is_lomas(root: Fields) -> bool:
    return "columns" in root.fields and bool({"max_ids", "row_privacy"} & set(root.fields))


def _is_mbi(root: Fields) -> bool:
    return bool(root.fields) and all(_is_integer(node) for node in root.fields.values())


def _is_integer(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and type(resolve(node.text)) is int


def _is_smartnoise(root: Fields) -> bool:
    collections = [node for name, node in root.fields.items() if name != "engine"]
    if "columns" in root.fields or len(collections) != 1 or not isinstance(collections[0], Fields):
        return False
    schemas = list(collections[0].fields.values())
    tables = [table for schema in schemas if isinstance(schema, Fields) for table in schema.fields.values()]
    return bool(tables) and all(isinstance(node, Fields) for node in [*schemas, *tables])


def schema_from(root: Fields, *, table: str | None = None) -> Schema:
    """The schema of such a file, if it says enough.

    >>> from discreet.schema.yaml.yaml_tree import compose
    >>> schema_from(compose('{"age": 85, "sex": 2}', file="adult.json")).domain.shape
    (85, 2)
    """
    found = foreign_from(root, table=table)
    if lacking := [name for name, sketch in found.columns.items() if sketch.gaps]:
        shown = ", ".join(f'"{name}" ({" and ".join(found.columns[name].gaps)})' for name in lacking[:8])
        more = f" and {len(lacking) - 8} more" if len(lacking) > 8 else ""
        raise BadSchema(
            f"{found.nodes[lacking[0]].at}: this format does not say enough of {shown}{more}. Run "
            f'"discreet schema draft {root.file}", which converts it and leaves blanks, and fill them in.'
        )
    columns = {name: checked_column(name, found.nodes[name], sketch) for name, sketch in found.columns.items()}
    if not columns:
        raise BadSchema(f'{root.at}: table "{found.table}" has no columns that may be asked about.')
    return Schema(found.table, Domain(columns), found.unit)


def foreign_from(root: Fields, *, table: str | None = None) -> Foreign:
    """What such a file says, with its gaps."""
    stem = table or Path(root.file).stem
    if _is_lomas(root):
        columns = root.fields["columns"]
        if not isinstance(columns, Fields):
            raise BadSchema(f"{columns.at}: columns must be a mapping from names to settings.")
        return _table(stem, root, columns.fields)
    if _is_mbi(root):
        return Foreign(stem, Unit(), {name: _cells(name, node) for name, node in root.fields.items()}, root.fields)
    name, node = _choose(root, table)
    return _table(name, node, {name: part for name, part in node.fields.items() if name not in TABLE_KEYS})


def _cells(name: str, node: Node) -> PartialColumn:
    """A column of an mbi domain: exactly n cells, so a value that is missing has none."""
    cells: Any = node.value if isinstance(node, Scalar) else 0
    if not 1 <= cells < 2**31:
        raise BadSchema(f'{node.at}: column "{name}" has {cells} cells; it must have at least 1 and fewer than 2^31.')
    return PartialColumn("integer", lower=0, upper=cells - 1, outside="clip", missing="drop")


def _choose(root: Fields, table: str | None) -> tuple[str, Fields]:
    """The one table of SmartNoise metadata that is meant."""
    (collection,) = (node for name, node in root.fields.items() if name != "engine")
    tables: dict[str, Any] = {}
    for schema, inside in collection.fields.items():  # type: ignore[attr-defined]
        tables |= {f"{schema}.{name}" if schema else name: node for name, node in inside.fields.items()}
    chosen = [name for name in tables if table is None or table in (name, name.rpartition(".")[2])]
    if len(chosen) != 1:
        listed = ", ".join(f'"{name}"' for name in list(tables)[:8])
        said = f'has no table "{table}"' if table and not chosen else f"has {len(chosen)} tables that may be meant"
        raise BadSchema(f"{root.file} {said}; it has {listed}. Choose one with table=… (on the command line, --table).")
    return chosen[0].rpartition(".")[2], tables[chosen[0]]


def _table(name: str, root: Fields, columns: Mapping[str, Node]) -> Foreign:
    settings: dict[str, Fields] = {column: _settings(column, node) for column, node in columns.items()}
    keys = [column for column, node in settings.items() if _flag(node, "private_id")]
    unit = _unit(root, keys)
    asked = {column: node for column, node in settings.items() if column not in keys}
    return Foreign(name, unit, {column: _sketch(column, node) for column, node in asked.items()}, asked)


def _settings(name: str, node: Node) -> Fields:
    if not isinstance(node, Fields):
        raise BadSchema(f'{node.at}: column "{name}" must be a mapping of settings, with at least a type.')
    for key in node.fields:
        if key not in COLUMN_KEYS:
            hint = did_you_mean(key, COLUMN_KEYS)
            raise BadSchema(f'{node.at_name(key)}: column "{name}" has no setting "{key}"; {hint}')
    return node


def _unit(root: Fields, keys: list[str]) -> Unit:
    """Rows, or the column marked private_id. Which of them is never guessed."""
    rows = _flag(root, "row_privacy")
    if len(keys) > 1 or rows == bool(keys):
        said = "both row_privacy and a private_id" if rows and keys else f"{len(keys)} columns with private_id"
        said = said if keys else "neither row_privacy: true nor a column with private_id: true"
        raise BadSchema(f"{root.at}: whom to protect is not clear: there is {said}. Say one of them.")
    most: Any = _value(root, "max_ids", 1)
    if rows and most != 1:
        raise BadSchema(
            f"{root.at_name('max_ids')}: max_ids is {most} with row_privacy; without a private_id it is not known "
            "which rows are one person's. Mark the column that identifies a person."
        )
    try:
        return Unit(keys[0] if keys else None, most)
    except Mistake as error:
        raise BadSchema(f"{root.at}: max_ids: {without_python(error)}") from None


def _sketch(name: str, node: Fields) -> PartialColumn:
    word = _value(node, "type", "")
    if word not in FOREIGN_TYPES:
        hint = did_you_mean(str(word), FOREIGN_TYPES) if word else f"it must be one of {', '.join(FOREIGN_TYPES)}."
        raise BadSchema(f'{node.at}: column "{name}" has type "{word}"; {hint}')
    kind = FOREIGN_TYPES[str(word)]
    missing = _value(node, "missing_value", None if _flag(node, "nullable", default=True) else "drop")
    if "categories" in node.fields:
        return PartialColumn(values=_categories(name, node, kind), missing=missing)
    if kind not in ("integer", "number", "date"):
        return PartialColumn(kind, missing=missing)
    lower, upper = (_bound(name, node, kind, key) for key in ("lower", "upper"))
    return PartialColumn(kind, lower=lower, upper=upper, missing=missing)


def _categories(name: str, node: Fields, kind: ColumnType) -> tuple[Any, ...]:
    items = node.fields["categories"]
    if not isinstance(items, Items) or not all(isinstance(item, Scalar) for item in items.items):
        raise BadSchema(f'{items.at}: column "{name}": categories must be a list of values.')
    count = _value(node, "cardinality", len(items.items))
    if count != len(items.items):
        raise BadSchema(
            f'{node.at_name("cardinality")}: column "{name}": cardinality is {count} and there are '
            f"{len(items.items)} categories. Correct one."
        )
    scalars = [item for item in items.items if isinstance(item, Scalar)]
    return tuple(item.text if kind == "text" else item.value for item in scalars)


def _bound(name: str, node: Fields, kind: ColumnType, key: str) -> Any:
    value = _value(node, key, None)
    if value is None:
        return None
    if kind == "date":
        return _day(name, node, key)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not Decimal(value).is_finite():
        raise BadSchema(f'{node.at_name(key)}: column "{name}": {key} must be a number.')
    return int(value) if kind == "integer" and value == int(value) else value


def _day(name: str, node: Fields, key: str) -> date:
    """A bound of a datetime column; what is written there is a day, with or without a time."""
    part = node.fields[key]
    try:
        return date.fromisoformat(part.text[:10])  # type: ignore[attr-defined]
    except ValueError:
        raise BadSchema(f'{part.at}: column "{name}": {key} must be a day like 2024-12-31.') from None


def _value(node: Fields, key: str, default: Any) -> Any:
    part = node.fields.get(key)
    if part is None:
        return default
    if not isinstance(part, Scalar):
        raise BadSchema(f"{part.at}: {key} must be one value.")
    value = part.value
    return default if value is None else value


def _flag(node: Fields, key: str, *, default: bool = False) -> bool:
    value = _value(node, key, default)
    # Their readers are of YAML 1.1 and take yes and no.
    words = {"yes": True, "no": False, "on": True, "off": False}
    flag = words.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(flag, bool):
        raise BadSchema(f"{node.at_name(key)}: {key} is {value}; it must be true or false.")
    return flag
