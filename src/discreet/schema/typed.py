"""The values in the settings of one column, read by its type, each error with its line."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

from discreet.errors import BadSchema
from discreet.schema.node import Items, Node, Scalar, resolve
from discreet.schema.sketch import ColumnType
from discreet.schema.value import Readable

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
