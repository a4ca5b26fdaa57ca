"""A SELECT, clause by clause, read against a domain."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import prod

from sqlglot import exp

from discreet.errors import BadQuery, TooLarge
from discreet.query.aggregates import total
from discreet.query.predicate import Predicate, everyone
from discreet.query.product import column_of
from discreet.query.sql.condition import (
    SqlNode,
    Subject,
    aggregate_of,
    checked_predicate,
    column_names,
    condition,
    exactly,
    find_column,
    find_name,
    identifier_of,
    is_aggregate,
    number_literal,
    tree_of,
)
from discreet.query.sql.lexer import SUPPORTED, excerpt, tokens_of, unsupported
from discreet.query.statement import MOST_ANSWER_ROWS, Aggregate, Group, Order, Select
from discreet.schema.domain import Domain

_CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit")


@dataclass(frozen=True, slots=True)
class _From:
    """What names may mean: the domain's columns, written alone or after a name of the table."""

    domain: Domain
    tables: tuple[str, ...]

    def column(self, node: SqlNode) -> str:
        return find_column(node, self.domain, self.tables)


def read_select(text: str, domain: Domain, table: str | None) -> Select:
    """The statement as our tree."""
    words = tokens_of(text, [*domain, *([] if table is None else [table])], select=True)
    tree = exactly(tree_of(words, text, exp.Select), exp.Select, *_CLAUSES, "joins")
    if tree.args.get("joins"):
        raise BadQuery("FROM names several tables. Ask one SELECT at a time, of one table.")
    name, tables = _table(tree.args.get("from_"), table)
    source = _From(domain, tables)
    items = _items(tree.expressions, source)
    group = _group(tree.args.get("group"), items, source)
    _check_items(items, group, domain)
    return Select(
        name,
        items,
        _where(tree.args.get("where"), source),
        group,
        _having(tree.args.get("having"), items, group, source),
        _order(tree.args.get("order"), items, group, source),
        _limit(tree.args.get("limit")),
    )


def _table(node: SqlNode | None, table: str | None) -> tuple[str, tuple[str, ...]]:
    """The name of the table, and all names that it has in this statement."""
    if node is None:
        raise BadQuery(f"the statement names no table. {SUPPORTED}")
    named = exactly(exactly(node, exp.From, "this").this, exp.Table, "this", "alias", "db")
    if named.args.get("db") is not None:
        raise BadQuery("the table has a name in several parts. Write the name of the table alone.")
    name = identifier_of(named.this)[0] if table is None else find_name(named.this, [table], "table")
    alias = named.args.get("alias")
    if alias is None:
        return name, (name,)
    return name, (name, identifier_of(exactly(alias, exp.TableAlias, "this").this)[0])


def _items(nodes: Iterable[SqlNode], source: _From) -> tuple[Group | Aggregate, ...]:
    items = tuple(_item(node, source) for node in nodes)
    seen: dict[str, Group | Aggregate] = {}
    for item in items:
        if item.name in source.domain and not (isinstance(item, Group) and item.column == item.name):
            raise BadQuery(
                f"an output column is named {excerpt(item.name)} as a column of the table is. Name it with AS."
            )
        if item.name in seen:
            raise BadQuery(f"two output columns are named {excerpt(item.name)}. Name one of them with AS.")
        for other in seen.values():
            if isinstance(item, Aggregate) and isinstance(other, Aggregate) and _key(item) == _key(other):
                raise BadQuery(
                    f"{excerpt(other.name)} and {excerpt(item.name)} ask the same, which costs twice. Ask it once."
                )
        seen[item.name] = item
    asked = [item for item in items if isinstance(item, Aggregate)]
    if not asked:
        raise BadQuery(f"the statement asks for no aggregate, and rows are never shown. {SUPPORTED}")
    for item in asked:
        if f"{item.name}_error" in seen:
            raise BadQuery(f'"{item.name}_error" is named as the error of "{item.name}" is. Name it otherwise with AS.')
    return items


def _item(node: SqlNode, source: _From) -> Group | Aggregate:
    alias = None
    if type(node) is exp.Alias:
        alias = identifier_of(exactly(node, exp.Alias, "this", "alias").args["alias"])[0]
        node = node.this
    found = aggregate_of(node, source.column)
    if found is None:
        if type(node) is not exp.Column:
            raise unsupported(node.key)
        column = source.column(node)
        return Group(column, alias or column)
    kind, of = found
    return Aggregate(kind, of, alias or (kind if of is None else f"{kind}_{of}"))


def _key(item: Aggregate) -> tuple[str, str | None]:
    return item.kind, item.column


def _check_items(items: tuple[Group | Aggregate, ...], group: tuple[str, ...], domain: Domain) -> None:
    for item in items:
        match item:
            case Group(column, _) if column not in group:
                raise BadQuery(f'column "{column}" is selected and is no group column. Add GROUP BY "{column}".')
            case Aggregate("sum" | "avg", str(column), _):
                total(domain, column)
            case Aggregate("count", str(column), _):
                column_of(domain, column)
    cells = prod(domain[name].size for name in group)
    if cells > MOST_ANSWER_ROWS:
        raise TooLarge(f"GROUP BY makes {cells:,} groups; the limit is {MOST_ANSWER_ROWS:,}. Group by fewer columns.")


def _where(node: SqlNode | None, source: _From) -> Predicate:
    if node is None:
        return everyone
    inner = exactly(node, exp.Where, "this").this
    return checked_predicate(condition(inner, column_names(source.domain, source.tables)), source.domain)


def _group(node: SqlNode | None, items: tuple[Group | Aggregate, ...], source: _From) -> tuple[str, ...]:
    """The group columns, by name, by the name that SELECT gives them, or by their place in SELECT."""
    if node is None:
        return ()
    meanings = {name: name for name in source.domain}
    meanings |= {item.name: item.column for item in items if isinstance(item, Group)}
    columns = []
    for each in exactly(node, exp.Group, "expressions").expressions:
        if type(each) is exp.Literal:
            item = _ordinal(each, items, "GROUP BY")
            if not isinstance(item, Group):
                raise BadQuery(f"GROUP BY {each.this} is an aggregate. Group by columns.")
            columns.append(item.column)
        elif is_aggregate(each):
            raise BadQuery("an aggregate is in GROUP BY. Group by columns.")
        else:
            columns.append(meanings[find_column(each, meanings, source.tables)])
    return tuple(dict.fromkeys(columns))


def _ordinal(node: SqlNode, items: tuple[Group | Aggregate, ...], clause: str) -> Group | Aggregate:
    place = number_literal(node)
    if isinstance(place, Decimal) or not 1 <= place <= len(items):
        raise BadQuery(f"{clause} {excerpt(node.this)} is no place in SELECT, which has {len(items)}. Count from 1.")
    return items[place - 1]


def _output(
    node: SqlNode, items: tuple[Group | Aggregate, ...], group: tuple[str, ...], source: _From
) -> Subject | None:
    """What a name or an aggregate means in HAVING and ORDER BY: a released number or a group column."""
    found = aggregate_of(node, source.column)
    if found is not None:
        same = [item.name for item in items if isinstance(item, Aggregate) and _key(item) == found]
        if not same:
            raise BadQuery(
                "HAVING or ORDER BY has an aggregate that is not in SELECT. Add it there, so that it is asked."
            )
        return same[0], None
    if type(node) is not exp.Column:
        return None
    columns = {**{name: name for name in group}, **{i.name: i.column for i in items if isinstance(i, Group)}}
    numbers = [item.name for item in items if isinstance(item, Aggregate)]
    name = find_column(node, [*numbers, *columns], source.tables, "output column")
    return (columns[name], source.domain[columns[name]]) if name in columns else (name, None)


def _having(
    node: SqlNode | None, items: tuple[Group | Aggregate, ...], group: tuple[str, ...], source: _From
) -> Predicate:
    if node is None:
        return everyone
    inner = exactly(node, exp.Having, "this").this
    return checked_predicate(condition(inner, lambda each: _output(each, items, group, source)), source.domain)


def _order(
    node: SqlNode | None, items: tuple[Group | Aggregate, ...], group: tuple[str, ...], source: _From
) -> tuple[Order, ...]:
    orders = []
    for each in [] if node is None else exactly(node, exp.Order, "expressions").expressions:
        inner = exactly(each, exp.Ordered, "this", "desc", "nulls_first").this
        if type(inner) is exp.Literal:
            item = _ordinal(inner, items, "ORDER BY")
            name = item.column if isinstance(item, Group) else item.name
        else:
            subject = _output(inner, items, group, source)
            if subject is None:
                raise unsupported(inner.key)
            name = subject[0]
        orders.append(Order(name, bool(each.args.get("desc"))))
    return tuple(orders)


def _limit(node: SqlNode | None) -> int | None:
    if node is None:
        return None
    limit = number_literal(exactly(node, exp.Limit, "expression").expression)
    if isinstance(limit, Decimal):
        raise BadQuery(f"LIMIT {limit} is no number of rows. Write LIMIT 10.")
    return limit
