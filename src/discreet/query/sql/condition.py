"""WHERE and HAVING: SQL's logic of three values, exactly, in predicates of two.

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

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from discreet.errors import BadQuery
from discreet.query.cells import mask_of
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Not, Operator, Or, Predicate
from discreet.query.sql.node import SqlNode, bare, day_or_none, find_column, is_aggregate, only, tree_of, value_of
from discreet.query.sql.say import unsupported
from discreet.query.sql.words import tokens_of
from discreet.schema.column import Bins, Categories, Column
from discreet.schema.domain import Domain
from discreet.schema.value import Readable

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
