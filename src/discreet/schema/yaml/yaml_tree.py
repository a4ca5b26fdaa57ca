"""A YAML (or JSON) text as a tree of nodes that know their line. Nothing is constructed but texts, lists and mappings.

What a plain scalar means is decided by who reads it: `Scalar.value` follows YAML 1.2 (`no` is a text, the Norway
problem) and adds dates; a column of texts takes `Scalar.text` as it is written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from discreet.errors import BadSchema

# A megabyte of the densest YAML takes the parser ten seconds; a schema of a thousand columns has a tenth of that.
MOST_SCHEMA_BYTES, MOST_SCHEMA_NODES, MOST_SCHEMA_DEPTH, MOST_SCHEMA_DIGITS = 2**20, 200_000, 16, 1_000
# The parser's time is quadratic in the length of some words.
MOST_WORD_LETTERS = 100_000

# What a draft has where the owner must decide.
BLANK = "___"

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_PADDED = re.compile(r"[-+]?0[0-9]")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}

YamlValue = bool | int | Decimal | str | date | None


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the file, the line on which it begins, and how many nodes it has with all aliases written out."""

    file: str
    line: int
    weight: int

    @property
    def at(self) -> str:
        """Where it is, as an error begins."""
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """One value: its text, and whether it is written without quotes."""

    text: str
    plain: bool

    @property
    def blank(self) -> bool:
        """Whether this is the gap of a draft."""
        return self.plain and self.text == BLANK

    @property
    def shown(self) -> str:
        """The value as an error names it: numbers and dates bare, texts in quotes, long ones cut."""
        text = self.text if len(self.text) <= 60 else f"{self.text[:60]}…"
        bare = self.plain and not isinstance(resolve(self.text), str)
        return (text or "empty") if bare else f'"{text}"'

    @property
    def value(self) -> YamlValue:
        """What it means in YAML 1.2, with dates."""
        if not self.plain:
            return self.text
        if _PADDED.match(self.text) and _DECIMAL.fullmatch(self.text):
            raise BadSchema(
                f"{self.at}: {self.text} begins with a zero, so it could be a number or a text. "
                f'Write {resolve(self.text)} or "{self.text}".'
            )
        if len(self.text) > MOST_SCHEMA_DIGITS and _DECIMAL.fullmatch(self.text):
            raise BadSchema(f"{self.at}: a number has {len(self.text)} digits; the limit is {MOST_SCHEMA_DIGITS}.")
        if _DAY.fullmatch(self.text) and isinstance(resolve(self.text), str):
            raise BadSchema(f'{self.at}: {self.text} is not a day of the calendar. For a text write "{self.text}".')
        return resolve(self.text)


def resolve(text: str) -> YamlValue:
    """What a text without quotes means.

    >>> [resolve(text) for text in ("no", "true", "17", "1.50", "2024-02-29", "~", "0x1F")]
    ['no', True, 17, Decimal('1.50'), datetime.date(2024, 2, 29), None, 31]
    """
    if text in ("True", "False", "Null", "TRUE", "FALSE", "NULL") or text in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > MOST_SCHEMA_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    if _SPECIAL.fullmatch(text):
        return Decimal(text.replace(".", ""))
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return text
    return text


@dataclass(frozen=True, slots=True)
class Items(Node):
    """A list."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Fields(Node):
    """A mapping. Names are texts as written, so a column may be called `no`, `1` or `null`."""

    fields: dict[str, Node]
    names: dict[str, Scalar]

    def at_name(self, name: str) -> str:
        """Where a field begins."""
        return self.names[name].at


def compose(text: str, *, file: str) -> Node | None:
    """The tree of a text; None if there is nothing in it.

    >>> root = compose("age: {lower: 17, values: [no, 2024-01-01]}", file="people.yaml")
    >>> [item.value for item in root.fields["age"].fields["values"].items]
    ['no', datetime.date(2024, 1, 1)]
    >>> compose("age: [17", file="people.yaml")
    Traceback (most recent call last):
    discreet.errors.BadSchema: people.yaml, line 1: a bracket that opens here is not closed; expected ',' or ']'.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if len(text) > MOST_SCHEMA_BYTES:
        raise BadSchema(
            f"{file} is larger than {MOST_SCHEMA_BYTES} bytes; a schema is smaller. Is this the data itself?"
        )
    if any(len(word) > MOST_WORD_LETTERS for word in text.split()):
        raise BadSchema(f"{file} has a word of more than {MOST_WORD_LETTERS} characters. Is this the right file?")
    try:
        events = (event for event in YAML(typ="safe", pure=True).parse(text) if "Stream" not in type(event).__name__)
        return _document(events, file)
    except YAMLError as error:
        raise BadSchema(_syntax(error, file)) from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, BadSchema):
            raise
        raise BadSchema(
            f'{file}: an escape like "\\UFFFFFFFF" in quotes is no character. Write the character.'
        ) from None


def _document(events: Iterator[Any], file: str) -> Node | None:
    if next(events, None) is None:
        return None
    composer = _Composer(events, file)
    root = composer.node(next(events), 0)
    next(events)
    if (second := next(events, None)) is not None:
        line = second.start_mark.line + 1
        raise BadSchema(f"{file}, line {line}: a second document begins here; a file declares one table. Split it.")
    return root


class _Composer:
    """Nodes from events: no recursion deeper than MOST_SCHEMA_DEPTH, no alias inside what it names."""

    def __init__(self, events: Iterator[Any], file: str) -> None:
        self.events, self.file, self.count = events, file, 0
        self.anchors: dict[str, Node] = {}

    def node(self, event: Any, depth: int) -> Node:
        line, kind = event.start_mark.line + 1, type(event).__name__
        if kind == "AliasEvent":
            return self.named(event.anchor, line)
        self.refuse(event, line, depth)
        if kind == "ScalarEvent":
            made: Node = Scalar(self.file, line, 1, event.value, event.style is None)
        elif kind == "SequenceStartEvent":
            items = tuple(self.until("SequenceEndEvent", depth))
            made = Items(self.file, line, self.weigh(items, line), items)
        else:
            made = self.mapping(line, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = made
        return made

    def until(self, end: str, depth: int) -> Iterator[Node]:
        while type(event := next(self.events)).__name__ != end:
            yield self.node(event, depth + 1)

    def mapping(self, line: int, depth: int) -> Fields:
        parts = self.until("MappingEndEvent", depth)
        fields: dict[str, Node] = {}
        names: dict[str, Scalar] = {}
        for name, value in zip(parts, parts, strict=True):
            if not isinstance(name, Scalar):
                raise BadSchema(f"{name.at}: a name is a list or a mapping; it must be a text. Is a quote missing?")
            if name.text in fields:
                first = names[name.text].line
                raise BadSchema(f'{name.at}: "{name.text}" is there twice, first in line {first}. Remove one.')
            # A block begins on the line after its name, and an alias elsewhere; errors name the line of the name.
            fields[name.text] = value if value.line == name.line else replace(value, line=name.line)
            names[name.text] = name
        return Fields(self.file, line, self.weigh(tuple(fields.values()), line), fields, names)

    def named(self, anchor: str, line: int) -> Node:
        if anchor not in self.anchors:
            raise BadSchema(
                f'{self.file}, line {line}: "*{anchor}" is not defined before this line; define it with "&{anchor}".'
            )
        return self.anchors[anchor]

    def weigh(self, parts: tuple[Node, ...], line: int) -> int:
        weight = 1 + sum(part.weight for part in parts)
        if weight > MOST_SCHEMA_NODES:
            raise BadSchema(
                f"{self.file}, line {line}: more than {MOST_SCHEMA_NODES} values; a schema has fewer. Use bins."
            )
        return weight

    def refuse(self, event: Any, line: int, depth: int) -> None:
        self.count += 1
        if depth > MOST_SCHEMA_DEPTH or self.count > MOST_SCHEMA_NODES:
            limit = f"{MOST_SCHEMA_DEPTH} levels" if depth > MOST_SCHEMA_DEPTH else f"{MOST_SCHEMA_NODES} values"
            raise BadSchema(f"{self.file}, line {line}: more than {limit}; a schema has fewer. Is this the right file?")
        if event.tag is not None:
            raise BadSchema(f"{self.file}, line {line}: a tag (!…) is not read here. Write a plain value.")


# The parser's messages in plain words; the line to name is that on which a bracket or a quote begins.
_SENTENCES = [
    (r"'\\t'", "there is a tab where YAML wants spaces. Indent with spaces."),
    (r"mapping values are not", 'there is a ":" too many, or the indentation is wrong. Put a text with ":" in quotes.'),
    (r"(expected ',' or '.'),? but .*", r"a bracket that opens here is not closed; \1."),
    (r"unexpected end of stream", "a quote that opens here is not closed."),
    (
        r"expected <block end>.*",
        "this does not fit what is before it. Compare the indentation, or put the text in quotes.",
    ),
    (r".*character ('.') that cannot start any token", r"a value cannot begin with \1. Put it in quotes."),
    (
        r".*unknown escape character.*",
        r"a backslash in double quotes means something else. Write \\\\, or single quotes.",
    ),
    (r".*'<stream end>'.*", "the file ends before this is complete."),
    (r"expected the node content, but .*?('.').*", r"expected a value instead of \1."),
]


def _syntax(error: Any, file: str) -> str:
    """What the parser says, in a sentence with a line."""
    problem, mark = getattr(error, "problem", None) or "", getattr(error, "problem_mark", None)
    if mark is None:
        return f"{file} has a character that YAML does not allow, for example a NUL. Is it a text file?"
    for pattern, sentence in _SENTENCES:
        if found := re.search(pattern, problem):
            opens = error.context_mark if "opens here" in sentence else None
            return f"{file}, line {(opens or mark).line + 1}: {found.expand(sentence)}"
    return f"{file}, line {mark.line + 1}: this is not YAML: {problem}."
