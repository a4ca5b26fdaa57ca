"""The values in the settings of one column, read by its type, each error with its line.

The settings of one column, read from a schema file: type, lower, upper, bins, values, ordered, outside, missing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NoReturn, get_args

from discreet.errors import BadSchema, did_you_mean
from discreet.schema.column import Column
from discreet.schema.yaml.partial_column import ColumnType, PartialColumn
from discreet.schema.yaml.yaml_tree import Fields, Items, Node, Scalar, resolve
from discreet.values import Readable

EXAMPLES: dict[str | None, str] = {
    "integer": "{type: integer, lower: 0, upper: 120}",
    "number": "{type: number, bins: [0, 0.5], upper: 1}",
    "text": "{values: [Female, Male]}",
    "date": "{type: date, bins: [2000-01-01, 2020-01-01], upper: 2024-12-31}",
    "boolean": "{type: boolean}",
}

# What a bound or a value of a type must be, in Python and in words.
_WANTED: dict[str | None, tuple[Any, str]] = {
    "integer": (int, "an integer"),
    "number": ((int, Decimal), "a number"),
    "date": (date, "a date like 2024-12-31"),
}


@dataclass(frozen=True)
class SettingReader:
    """Reads the values of a column; `kind` is None where the file gives no type."""

    name: str
    kind: ColumnType | None

    def wrong(self, node: Node, message: str) -> BadSchema:
        """An error about this column."""
        return BadSchema(f'{node.at}: column "{self.name}": {message}')

    def scalar(self, setting: str, node: Node) -> Readable:
        """One value: a text if the type says so, otherwise whatever YAML says it is."""
        if not isinstance(node, Scalar):
            raise self.wrong(node, f"{setting} has a list or a mapping; it must be one value.")
        if self.kind == "text":
            # Declared as text, a value needs no quotes: 01234, no and 2024-01-01 are texts here.
            return node.text
        value = node.value
        if value is None:
            raise self.wrong(
                node, f'{setting} has no value ({node.shown}). Write one; the text "null" or "" needs quotes.'
            )
        if isinstance(value, Decimal) and not value.is_finite():
            raise self.wrong(node, f"{setting} has {node.text}; it must be a finite number.")
        return value

    def value(self, setting: str, node: Node) -> Readable:
        """One value that must be of the column's type."""
        value: Readable = self.scalar(setting, node)
        wanted, rule = _WANTED.get(self.kind, (object, ""))
        fits = isinstance(value, wanted) and (wanted is object or not isinstance(value, bool))
        if fits or not isinstance(node, Scalar):
            return value
        raise self.wrong(
            node, f"{setting} has {node.shown}; with type {self.kind} it must be {rule}. {self._next_step(node)}"
        )

    def _next_step(self, node: Scalar) -> str:
        meant = resolve(node.text)
        if not node.plain and isinstance(meant, _WANTED[self.kind][0]):
            return "Remove the quotes."
        if self.kind == "integer" and isinstance(meant, Decimal):
            return "For fractions say type: number."
        return f"Write for example {EXAMPLES[self.kind]}."

    def items(self, setting: str, node: Node) -> tuple[Node, ...]:
        """The parts of a list that is not empty."""
        if not isinstance(node, Items):
            shown = node.shown if isinstance(node, Scalar) else "a mapping"
            raise self.wrong(node, f"{setting} is {shown}; it must be a list like [a, b, c].")
        if not node.items:
            raise self.wrong(node, f"{setting} is empty; list at least one.")
        return node.items

    def bins(self, setting: str, node: Node) -> tuple[Readable, ...]:
        """The starts of bins, which ascend."""
        items = self.items(setting, node)
        starts: list[Any] = [self.value(setting, item) for item in items]
        for (before, after), item in zip(pairwise(starts), items[1:], strict=True):
            if not before < after:
                raise self.wrong(item, f"{setting} has {after} after {before}; bins ascend. Sort them, none twice.")
        return tuple(starts)

    def values(self, setting: str, node: Node) -> tuple[Readable, ...]:
        """The values of a category, none twice."""
        seen: dict[tuple[bool, Readable], None] = {}
        for item in self.items(setting, node):
            value = self.value(setting, item)
            # Python says True == 1.
            if (isinstance(value, bool), value) in seen:
                assert isinstance(item, Scalar)
                raise self.wrong(item, f"{setting} has {item.shown} twice. Remove one.")
            seen[isinstance(value, bool), value] = None
        return tuple(value for _, value in seen)

    def flag(self, setting: str, node: Node) -> bool:
        """True or false."""
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, bool):
            raise self.wrong(node, f"{setting} must be true or false.")
        return value


SETTINGS = ("type", "lower", "upper", "bins", "values", "ordered", "outside", "missing")
COLUMN_TYPES: tuple[ColumnType, ...] = get_args(ColumnType)
COLUMN_RULES = ("drop", "clip", "other", "missing", "outside")
# What the types are called elsewhere.
SYNONYMS = {"int": "integer", "float": "number", "double": "number", "decimal": "number", "string": "text"}
SYNONYMS |= {"str": "text", "category": "text", "bool": "boolean", "datetime": "date", "timestamp": "date"}


def column_from(name: str, node: Node) -> Column:
    """A column of a schema file.

    >>> from discreet.schema.yaml.yaml_tree import compose
    >>> column_from("age", compose("{type: integer, lower: 17, upper: 90}", file="people.yaml"))
    Integers(lower=17, upper=90, outside='clip', missing='missing')
    >>> column_from("age", compose("{type: integer, lower: 17, uper: 90}", file="people.yaml"))
    Traceback (most recent call last):
    discreet.errors.BadSchema: people.yaml, line 1: column "age" has no setting "uper"; did you mean "upper"?
    """
    sketch = partial_column_from(name, node)
    if sketch.gaps:
        raise BadSchema(f'{node.at}: column "{name}" {_lack(sketch)}')
    return checked_column(name, node, sketch)


def partial_column_from(name: str, node: Node, *, kind: ColumnType | None = None) -> PartialColumn:
    """What a file says of a column, each setting checked by itself; blanks and settings that are not there are None.

    `kind` is the type that is known from elsewhere, for a file that need not say it.
    """
    if isinstance(node, Scalar) and node.blank:
        return PartialColumn()
    if not isinstance(node, Fields):
        _refuse_shape(name, node)
    for setting in node.fields:
        if setting not in SETTINGS:
            hint = did_you_mean(setting, SETTINGS)
            raise BadSchema(f'{node.at_name(setting)}: column "{name}" has no setting "{setting}"; {hint}')
    kind = _kind(name, node.fields.get("type")) or kind
    _refuse_mixtures(name, kind, node)
    typed = SettingReader(name, kind)
    readers: dict[str, Callable[[str, Node], Any]] = {
        "lower": typed.value,
        "upper": typed.value,
        "bins": typed.bins,
        "values": typed.values,
        "ordered": typed.flag,
        "outside": typed.scalar,
        "missing": typed.scalar,
    }
    said = {setting: part for setting, part in node.fields.items() if setting in readers and not is_blank(part)}
    return PartialColumn(kind, **{setting: readers[setting](setting, part) for setting, part in said.items()})


def checked_column(name: str, node: Node, sketch: PartialColumn) -> Column:
    """The column of a sketch without gaps; what the column itself refuses is said with its line."""
    _check_ends(name, node, sketch)
    _check_rules(name, node, sketch)
    try:
        return sketch.column()
    except BadSchema as error:
        message = without_python(error)
        raise BadSchema(f'{_place(node, message.partition(" ")[0])}: column "{name}": {message}') from None


def _place(node: Node, setting: str) -> str:
    return node.at_name(setting) if isinstance(node, Fields) and setting in node.fields else node.at


def without_python(error: Exception) -> str:
    """The message of an error without Python's way to write numbers and days.

    >>> without_python(BadSchema("upper is Decimal('0.5') or datetime.date(2024, 1, 31)."))
    'upper is 0.5 or 2024-01-31.'
    """
    message = re.sub(r"Decimal\('([^']*)'\)", r"\1", str(error))
    day = re.compile(r"datetime\.date\((\d+), (\d+), (\d+)\)")
    return day.sub(lambda found: date(*map(int, found.groups())).isoformat(), message)


def is_blank(node: Node) -> bool:
    """Whether a draft has a gap here: at this value, in this list, or in a setting of this column."""
    # No deeper: with aliases, a tree of a thousand nodes has more paths than there are atoms.
    inside = _parts(node)
    items = [item for part in inside if isinstance(part, Items) for item in part.items]
    return any(isinstance(part, Scalar) and part.blank for part in (node, *inside, *items))


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Items():
            return node.items
        case Fields():
            return tuple(node.fields.values())
        case _:
            return ()


def _refuse_shape(name: str, node: Node) -> NoReturn:
    if not isinstance(node, Scalar):
        raise BadSchema(
            f'{node.at}: column "{name}" is a list; it must be a mapping of settings. '
            "For a list of values write {values: […]}."
        )
    example = EXAMPLES.get(SYNONYMS.get(node.text, node.text), EXAMPLES["integer"])
    raise BadSchema(f'{node.at}: column "{name}" is {node.shown}; it must be a mapping of settings. Write {example}.')


def _kind(name: str, node: Node | None) -> ColumnType | None:
    if node is None or is_blank(node):
        return None
    word = node.text[:60] if isinstance(node, Scalar) else "a list"
    for kind in COLUMN_TYPES:
        if word == kind:
            return kind
    if word.lower() in SYNONYMS:
        raise BadSchema(f'{node.at}: column "{name}" has type "{word}"; write "{SYNONYMS[word.lower()]}".')
    close = get_close_matches(word, COLUMN_TYPES, n=1)
    hint = (
        f'did you mean "{close[0]}"?' if close else f"it must be {', '.join(COLUMN_TYPES[:-1])} or {COLUMN_TYPES[-1]}."
    )
    raise BadSchema(f'{node.at}: column "{name}" has type "{word}"; {hint}')


def _refuse_mixtures(name: str, kind: ColumnType | None, node: Fields) -> None:
    """Settings that contradict each other."""
    bounds = [setting for setting in ("lower", "upper", "bins") if setting in node.fields]
    if "values" in node.fields and (bounds or kind == "boolean"):
        other = bounds[0] if bounds else "type: boolean"
        raise BadSchema(f'{node.at}: column "{name}" has values and also {other}; it has one or the other. Remove one.')
    if bounds and kind in ("text", "boolean"):
        raise BadSchema(
            f'{node.at_name(bounds[0])}: column "{name}" has type {kind} and also {bounds[0]}; only integers, numbers '
            f"and dates have bounds. Write {EXAMPLES[kind]}."
        )
    if "ordered" in node.fields and "values" not in node.fields:
        raise BadSchema(
            f'{node.at_name("ordered")}: column "{name}" is ordered and has no values; ordered says that the order of '
            "the values means something. Remove it."
        )


def _lack(sketch: PartialColumn) -> str:
    """What a column still lacks, and how it is written."""
    bounds = [name for name in ("lower", "upper", "bins") if getattr(sketch, name) is not None]
    if sketch.kind is None and bounds:
        return f"has {bounds[0]} and no type. Add type: integer, number or date."
    if sketch.kind is None:
        return f"has neither type nor values. Write {EXAMPLES['text']} or {EXAMPLES['integer']}."
    why = {
        "values": "list those that may occur",
        "bins": "each bin is a cell",
        "upper": "it is where the last cell ends",
        "lower": "it is where the first cell begins",
    }[sketch.gaps[0]]
    return (
        f"has type {sketch.kind} and no {' and no '.join(sketch.gaps)}; {why}. "
        f"Write for example {EXAMPLES[sketch.kind]}."
    )


def _check_ends(name: str, node: Node, sketch: PartialColumn) -> None:
    """Bounds that contradict the bins or each other, in the words of the file."""
    lower, upper, bins = (getattr(sketch, part) for part in ("lower", "upper", "bins"))
    if bins and lower is not None and lower != bins[0]:
        raise BadSchema(
            f'{_place(node, "lower")}: column "{name}": lower is {lower} and the first bin starts at {bins[0]}; '
            "they are the same. Change one, or leave out lower."
        )
    last = bins[-1] if bins else lower
    if last is not None and upper is not None and upper < last:
        other = "the last bin starts at" if bins else "lower is"
        raise BadSchema(f'{_place(node, "upper")}: column "{name}": upper is {upper} and {other} {last}; raise upper.')


def _check_rules(name: str, node: Node, sketch: PartialColumn) -> None:
    """A rule that is misspelt."""
    texts = [value for value in sketch.values or () if isinstance(value, str)]
    for setting in ("outside", "missing"):
        rule = getattr(sketch, setting)
        if not isinstance(rule, str) or rule in COLUMN_RULES or rule in texts:
            continue
        known = [*COLUMN_RULES, *texts[:1000]]
        if close := [word for word in known if word.lower() == rule.lower()] or get_close_matches(rule, known, n=1):
            place = _place(node, setting)
            raise BadSchema(f'{place}: column "{name}": {setting} is "{rule[:60]}"; did you mean "{close[0]}"?')
