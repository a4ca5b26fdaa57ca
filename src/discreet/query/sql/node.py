"""The second check: the nodes of sqlglot's tree that we understand, each with no other part than those we read."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from sqlglot import Dialect, ErrorLevel, Parser, Token, exp
from sqlglot.errors import SqlglotError

from discreet.errors import BadQuery, TooLarge, did_you_mean
from discreet.query.sql.say import SUPPORTED, excerpt, unsupported
from discreet.query.statement import AggregateKind
from discreet.schema.value import Readable

SqlNode = exp.Expr

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_AGGREGATES: dict[type, AggregateKind] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


def tree_of(words: list[Token], text: str, kind: type[SqlNode]) -> SqlNode:
    """The tree of checked words: of a Select, or of a Condition."""
    parser = Parser(error_level=ErrorLevel.IMMEDIATE, dialect=Dialect.get_or_raise(None))
    try:
        trees = parser.parse_into(kind, words, text)
    except RecursionError:
        raise TooLarge("the statement is nested too deeply for this program. Write it with fewer brackets.") from None
    except SqlglotError as error:
        raise BadQuery(f"the statement cannot be read{_near(error)}. {SUPPORTED}") from None
    if len(trees) != 1 or trees[0] is None:
        raise BadQuery(f"the statement is empty. {SUPPORTED}")
    return trees[0]


def _near(error: SqlglotError) -> str:
    highlight = next((each.get("highlight") for each in getattr(error, "errors", [])), None)
    return f" near {excerpt(highlight)}" if highlight else ""


def only(node: SqlNode, *parts: str) -> SqlNode:
    """The node, if nothing else than these parts of it is set: no FILTER, OVER, hint, sample, collation …"""
    for name, part in node.args.items():
        if name not in parts and part not in (None, False, []):
            raise unsupported(name.strip("_"))
    return node


def exactly(node: SqlNode | None, kind: type[SqlNode], *parts: str) -> SqlNode:
    """The node, if it is of this type and no other, with nothing else set than these parts."""
    if type(node) is not kind:
        raise unsupported("nothing" if node is None else node.key)
    return only(node, *parts)


def bare(node: SqlNode) -> SqlNode:
    """The node without brackets around it."""
    while type(node) is exp.Paren:
        node = only(node, "this").this
    return node


def identifier_of(node: SqlNode | None) -> tuple[str, bool]:
    """The text of an identifier, and whether it is quoted."""
    node = exactly(node, exp.Identifier, "this", "quoted")
    if not node.this:
        raise BadQuery('a name is empty. Write a name, say "n".')
    return node.this, bool(node.args.get("quoted"))


def find_name(node: SqlNode | None, known: Iterable[str], what: str) -> str:
    """The known name that an identifier means: the same; or, unquoted, the only one that differs in case alone."""
    (name, quoted), known = identifier_of(node), list(known)
    if name in known:
        return name
    alike = [] if quoted else [each for each in known if each.casefold() == name.casefold()]
    if len(alike) > 1:
        raise BadQuery(
            f'{what} {excerpt(name)} may be "{alike[0]}" or "{alike[1]}". Put the one you mean in double quotes.'
        )
    if not alike:
        text = " Texts are in 'single quotes'." if quoted else ""
        raise BadQuery(f"no {what} {excerpt(name)}; {did_you_mean(name[:100], known)}{text}")
    return alike[0]


def find_column(node: SqlNode, known: Iterable[str], tables: Sequence[str], what: str = "column") -> str:
    """The known name that a column means, which may be written after the name of its table."""
    node = exactly(node, exp.Column, "this", "table", "db", "catalog")
    if node.args.get("db") is not None:
        raise BadQuery("a column has a name in more than two parts. Write column or table.column.")
    if node.args.get("table") is not None:
        if not tables:
            raise BadQuery("a column is written after a table, and there is no table here. Write the column alone.")
        find_name(node.args["table"], tables, "table")
    return find_name(node.this, known, what)


def aggregate_of(node: SqlNode, column: Callable[[SqlNode], str]) -> tuple[AggregateKind, str | None] | None:
    """The kind and the column of an aggregate; None if the node is none."""
    kind = _AGGREGATES.get(type(node))
    if kind is None:
        return None
    inner = only(node, "this", "big_int").this
    if kind == "count" and type(inner) is exp.Star:
        only(inner)
        return kind, None
    if kind == "count" and type(inner) is exp.Literal and not inner.is_string and inner.this == "1":
        return kind, None
    if type(inner) is not exp.Column:
        raise BadQuery(f"{kind.upper()} is asked of something other than a column. Write {kind.upper()}(column).")
    return kind, column(inner)


def is_aggregate(node: SqlNode) -> bool:
    """Whether it is COUNT, SUM or AVG."""
    return type(node) in _AGGREGATES


def value_of(node: SqlNode) -> Readable:
    """The value that is written: a number exactly as written, a text, a truth or a day."""
    kind = type(node)
    if kind is exp.Literal:
        only(node, "this", "is_string")
        return str(node.this) if node.is_string else number_literal(node)
    if kind is exp.Neg:
        inner = number_literal(only(node, "this").this)
        # The minus of a Decimal would round it to 28 digits.
        return inner.copy_negate() if isinstance(inner, Decimal) else -inner
    if kind is exp.Boolean:
        return bool(only(node, "this").this)
    if kind is exp.Cast:
        return _day_of(node)
    if kind is exp.Null:
        raise BadQuery("nothing is equal to NULL, more or less than it. Write IS NULL or IS NOT NULL.")
    if is_aggregate(node):
        raise BadQuery("there is an aggregate where a value is needed. Compare aggregates with numbers, in HAVING.")
    raise BadQuery(f"{excerpt(node.key)} is where a value is needed. Compare a column with a value, say age >= 65.")


def number_literal(node: Any) -> int | Decimal:
    """The number that is written, exactly: never through a float."""
    node = exactly(node, exp.Literal, "this", "is_string")
    if node.is_string:
        raise BadQuery(f"{excerpt(node.this)} is a text where a number should be. Write it without quotes.")
    return int(node.this) if node.this.isdigit() else Decimal(node.this)


def _day_of(node: SqlNode) -> date:
    """The day of DATE '2024-01-01', which sqlglot reads as a cast; words like CAST do not pass the first check."""
    to = exactly(only(node, "this", "to").args.get("to"), exp.DataType, "this", "nested")
    literal = exactly(node.this, exp.Literal, "this", "is_string")
    if to.this is not exp.DType.DATE or not literal.is_string:
        raise unsupported("CAST")
    day = day_or_none(literal.this)
    if day is None:
        raise BadQuery(f"{excerpt(literal.this)} is not a day. Write DATE '2024-01-31'.")
    return day


def day_or_none(text: str) -> date | None:
    """The day that an ISO date names."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
