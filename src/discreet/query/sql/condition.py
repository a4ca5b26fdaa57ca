"""The second check: the nodes of sqlglot's tree that we understand, each with no other part than those we read.

WHERE and HAVING: SQL's logic of three values, exactly, in predicates of two.

In SQL a condition is true, false or, where a value is missing, unknown. For each condition c there are two predicates,
T(c), the rows where c is true, and F(c), those where it is false; the rest is where it is unknown.

    c               T(c)                    F(c)
    x >= v          x >= v                  x < v           and so on: neither holds of an extra cell
    x IN (v, w)     x is v or w             x != v and x != w
    x BETWEEN v, w  x >= v and x <= w       x < v or x > w
    x IS NULL       x is missing            not (x is missing)
    NOT c           F(c)                    T(c)
    c AND d         T(c) and T(d)           F(c) or F(d)
    c OR d          T(c) or T(d)            F(c) and F(d)

WHERE keeps the rows of T. So NOT age >= 65 is age < 65, and neither holds where the age is missing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from sqlglot import Dialect, ErrorLevel, Parser, Token, exp
from sqlglot.errors import SqlglotError

from discreet.errors import BadQuery, TooLarge, did_you_mean
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Not, Operator, Or, Predicate, mask_of
from discreet.query.sql.lexer import SUPPORTED, excerpt, tokens_of, unsupported
from discreet.query.statement import AggregateKind
from discreet.schema.column import Bins, Categories, Column
from discreet.schema.domain import Domain
from discreet.values import Readable

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


# What is compared: its name, and its column; no column if it is a released number. None: the node names nothing.
Subject = tuple[str, Column | None]
Names = Callable[[SqlNode], Subject | None]

_OPERATORS: dict[type, Operator] = {
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def read_predicate(text: str, domain: Domain) -> Predicate:
    """A condition alone, as a predicate on the domain's columns."""
    tree = tree_of(tokens_of(text, domain, select=False), text, exp.Condition)
    return checked_predicate(condition(tree, column_names(domain, ())), domain)


def column_names(domain: Domain, tables: Sequence[str]) -> Names:
    """The names of WHERE: the domain's columns."""

    def names(node: SqlNode) -> Subject | None:
        if is_aggregate(node):
            raise BadQuery("an aggregate is in WHERE, which chooses rows. Put it in HAVING, which chooses groups.")
        if type(node) is not exp.Column:
            return None
        name = find_column(node, domain, tables)
        return name, domain[name]

    return names


def condition(node: SqlNode, names: Names, wanted: bool = True) -> Predicate:
    """T(node), or F(node) if not `wanted`."""
    node = bare(node)
    if type(node) is exp.Not:
        return condition(only(node, "this").this, names, not wanted)
    if type(node) in (exp.And, exp.Or):
        kind = And if (type(node) is exp.And) == wanted else Or
        return _joined(kind, [condition(part, names, wanted) for part in _chain(node)])
    reader = _READERS.get(type(node))
    if reader is None:
        raise unsupported(node.key)
    return reader(node, names, wanted)


def checked_predicate(predicate: Predicate, domain: Domain) -> Predicate:
    """The predicate, if the domain's cells can answer each of its comparisons."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                checked_predicate(part, domain)
        case Not(part):
            checked_predicate(part, domain)
        case Compare() | IsIn() | IsMissing() if predicate.column in domain:
            mask_of(predicate, domain)
    return predicate


def _chain(node: SqlNode) -> Iterator[SqlNode]:
    """The parts of a AND b AND c …, which the parser nests to the left, without recursion."""
    kind = type(node)
    parts: list[SqlNode] = []
    while type(node) is kind:
        parts.append(only(node, "this", "expression").expression)
        node = node.this
    return reversed([*parts, node])


def _joined(kind: type[And] | type[Or], parts: list[Predicate]) -> Predicate:
    flat = tuple(each for part in parts for each in (part.parts if isinstance(part, kind) else (part,)))
    return flat[0] if len(flat) == 1 else kind(flat)


def _compare(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    operator = _OPERATORS[type(only(node, "this", "expression"))]
    left, right = bare(node.this), bare(node.expression)
    subject, other = names(left), names(right)
    if subject is not None and other is not None:
        raise BadQuery(f'"{subject[0]}" is compared with "{other[0]}". Compare a column with a value.')
    if subject is None:
        operator, subject, right = _FLIPPED[operator], other, left
    if subject is None:
        value_of(left), value_of(bare(node.expression))
        raise BadQuery("two values are compared with each other. Compare a column with a value.")
    return Compare(subject[0], operator if wanted else _NEGATED[operator], _value(subject, right))


def _is_in(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    subject = _subject(only(node, "this", "expressions").this, names)
    values = tuple(_value(subject, bare(each)) for each in node.expressions)
    if not values:
        raise BadQuery("IN has no list of values. Write IN ('a', 'b').")
    if wanted:
        return IsIn(subject[0], values)
    return _joined(And, [Compare(subject[0], "!=", value) for value in values])


def _between(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    subject = _subject(only(node, "this", "low", "high").this, names)
    low, high = (_value(subject, bare(node.args[end])) for end in ("low", "high"))
    if wanted:
        return And((Compare(subject[0], ">=", low), Compare(subject[0], "<=", high)))
    return Or((Compare(subject[0], "<", low), Compare(subject[0], ">", high)))


def _is(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    name, column = _subject(only(node, "this", "expression").this, names)
    if column is None:
        raise BadQuery(f'"{name}" is a released number; IS cannot be asked of it. Compare it with a number.')
    right, truth = bare(node.expression), False
    if type(right) is exp.Null:
        meant: Predicate = IsMissing(name)
    elif type(right) is exp.Boolean:
        truth = bool(value_of(right))
        meant = _truth(name, column, truth)
    else:
        raise BadQuery("IS is followed by NULL, TRUE or FALSE. Compare with = otherwise.")
    return meant if wanted else Not(meant)


def _column(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    return _truth(*_subject(node, names), wanted)


def _truth(name: str, column: Column | None, truth: bool) -> Predicate:
    if not isinstance(column, Categories) or {kind for kind, _ in column.readings[: column.inside]} != {"boolean"}:
        raise BadQuery(f'"{name}" is not true or false, so it is no condition. Compare it with a value.')
    return Compare(name, "==", truth)


def _constant(node: SqlNode, names: Names, wanted: bool) -> Predicate:
    raise BadQuery("a value alone is the same condition for every row. Leave it out, or compare a column with it.")


_READERS: dict[type, Callable[[SqlNode, Names, bool], Predicate]] = {
    **dict.fromkeys(_OPERATORS, _compare),
    exp.In: _is_in,
    exp.Between: _between,
    exp.Is: _is,
    exp.Column: _column,
    exp.Boolean: _constant,
    exp.Literal: _constant,
}


def _subject(node: SqlNode, names: Names) -> Subject:
    subject = names(bare(node))
    if subject is None:
        value_of(bare(node))
        raise BadQuery("there is a value where a column is needed. Write the column first: age BETWEEN 18 AND 64.")
    return subject


def _value(subject: Subject, node: SqlNode) -> Readable:
    name, column = subject
    if type(node) is exp.Column:
        raise BadQuery(f"\"{name}\" is compared with a name. Compare it with a value; texts are in 'single quotes'.")
    value = value_of(node)
    if column is None and (isinstance(value, (bool, str)) or not hasattr(value, "real")):
        raise BadQuery(f'"{name}" is a released number. Compare it with a number.')
    if isinstance(value, str) and column is not None and _holds_dates(column):
        return day_or_none(value) or value
    return value


def _holds_dates(column: Column) -> bool:
    match column:
        case Bins():
            return column.kind == "date"
        case Categories():
            return "date" in column.kinds
    return False
