"""Questions as JSON: SQL as a text, everything else as an object that says the same as the Python value.

    "SELECT COUNT(*) FROM people WHERE age >= 65"          SQL, or a condition as after WHERE
    {"where": CONDITION}                                    how many rows satisfy it
    {"select": ["count", {"avg": "age", "as": "a"}],        a statement; only `select` must be there, and groups are
     "where": CONDITION, "group_by": ["sex"],               shown first unless `select` has {"group": "sex"}
     "having": CONDITION,
     "order_by": [{"name": "count", "descending": true}], "limit": 3}
    {"columns": ["age", "sex"]}                             every cell of some columns
    {"products": …}, {"numerator": …, "denominator": …}     linear queries and quotients, as Python writes them

A CONDITION is {"column": "age", "is": ">=", "value": 65}, {"column": "sex", "in": ["Female"]},
{"column": "age", "missing": true}, {"and": […]}, {"or": […]}, {"not": …} or {"everyone": true}. A value is a text, a
number, a boolean, {"date": "2024-02-29"} or {"number": "1/3"}.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

from discreet.curator.question import Askable
from discreet.errors import BadData, BadQuery, DiscreetError, TooLarge, did_you_mean
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Operator, Or, Predicate, everyone
from discreet.query.query_wire import condition_to_plain, query_from_plain, query_to_plain
from discreet.query.statement import Aggregate, Group, Order, Select
from discreet.values import shortened as _shown

_OPERATORS = get_args(Operator)
# Operators as SQL writes them.
_AS_IN_SQL = {"=": "==", "<>": "!="}
_AGGREGATES = ("count", "sum", "avg")
_STATEMENT = ("select", "table", "where", "group_by", "show_groups", "having", "order_by", "limit")
# Numbers with more digits are not values of a column, and would take long to read.
_DIGITS = 400
# At most: parts of a condition or of a list of products, and selected items. SQL has such limits too.
MOST_PARTS, MOST_SELECTED = 5000, 100


def question_to_plain(question: Askable) -> Any:
    """A question for JSON.

    >>> from discreet.query.predicate import col
    >>> question_to_plain(col("age") >= 65)
    {'where': {'column': 'age', 'is': '>=', 'value': 65}}
    """
    match question:
        case str():
            return question
        case Predicate():
            return {"where": condition_to_plain(question)}
        case Select():
            return _statement(question)
        case Ratio(numerator, denominator):
            return {"numerator": query_to_plain(numerator), "denominator": query_to_plain(denominator)}
        case Linear() | Marginal():
            return query_to_plain(question)
    raise BadQuery(
        f'a {type(question).__name__} is not a question. Give SQL, a condition such as "age >= 65", a predicate made '
        "with col(), or a query such as Marginal(['age', 'sex'])."
    )


def question_from_plain(plain: Any, *, table: str) -> Askable:
    """The question that JSON says; raises BadQuery if it says none.

    >>> question_from_plain({"where": {"column": "age", "is": ">=", "value": 65}}, table="people")
    col('age') >= 65
    """
    match plain:
        case str():
            return plain
        case Mapping() if parts_of(plain) > MOST_PARTS:
            raise TooLarge(f"the question has more than {MOST_PARTS} parts. Ask in several questions.")
        case {"select": _}:
            return _read_statement(plain, table)
        case {"where": condition, **others} if not others:
            return _read_condition(condition)
        case {"numerator": numerator, "denominator": denominator, **others} if not others:
            return Ratio(_linear(numerator), _linear(denominator))
        case {"columns": columns, **others} if not set(others) - {"weight"}:
            return _query({"columns": _texts(columns, "columns"), "weight": others.get("weight")})
        case {"products": _, **others} if not others:
            return _query(plain)
    raise BadQuery(
        f"{_shown(plain)} is not a question. Give SQL as a text, or an object with select, with where, or with columns."
    )


def parts_of(plain: Mapping[str, Any]) -> int:
    """How many conditions, products, factors and columns there are. Counting stops soon after MOST_PARTS."""
    parts, waiting = 0, [plain.get(name) for name in ("where", "having", "select", "order_by", "group_by", "columns")]
    queries = [plain, plain.get("numerator"), plain.get("denominator")]
    for products in [plain.get("weight"), *(query.get("products") for query in queries if isinstance(query, Mapping))]:
        for product in products if isinstance(products, list) else ():
            factors = product[1] if isinstance(product, list) and len(product) == 2 else ()
            parts += max(10, len(factors) if isinstance(factors, list) else 0)
    while waiting and parts <= MOST_PARTS:
        part = waiting.pop()
        inside = list(part.values()) if isinstance(part, Mapping) else part if isinstance(part, list) else []
        parts += 1 + len(inside)
        waiting += inside
    return parts


def _query(plain: Any) -> Linear | Marginal:
    try:
        return query_from_plain(plain)
    except BadData:
        raise BadQuery(
            f"{_shown(plain)} is not a query. Products are lists [coefficient, factors], and factors lists [columns, "
            'shape, weights] of whole numbers: {"products": [[1, [[["sex"], [2], [0, 1]]]]]}.'
        ) from None
    except DiscreetError as error:
        raise BadQuery(f"the query cannot be read: {error}") from None


def _linear(plain: Any) -> Linear:
    if isinstance(plain, Mapping) and isinstance(query := _query(plain), Linear):
        return query
    raise BadQuery(f'{_shown(plain)} is not a linear query; it must be an object with "products".')


def _statement(select: Select) -> dict[str, Any]:
    kinds = ["group" if isinstance(item, Group) else item.kind for item in select.items]
    items = [{kind: item.column, "as": item.name} for kind, item in zip(kinds, select.items, strict=True)]
    plain: dict[str, Any] = {"select": items, "table": select.table}
    if select.where != everyone:
        plain["where"] = condition_to_plain(select.where)
    if select.group:
        plain["group_by"] = list(select.group)
        if "group" not in kinds:
            plain["show_groups"] = False
    if select.having != everyone:
        plain["having"] = condition_to_plain(select.having)
    if select.order:
        plain["order_by"] = [{"name": each.name, "descending": each.descending} for each in select.order]
    return plain if select.limit is None else plain | {"limit": select.limit}


def _read_statement(plain: Mapping[str, Any], table: str) -> Select:
    for name in plain:
        if name not in _STATEMENT:
            raise BadQuery(f'a statement has no "{name[:60]}"; {did_you_mean(name, _STATEMENT)}')
    if plain.get("table", table) != table:
        raise BadQuery(f'no table {_shown(plain["table"])} here; did you mean "{table}"?')
    group = tuple(_texts(plain.get("group_by", []), "group_by"))
    items = tuple(_item(each) for each in _list(plain["select"], "select"))
    if len(items) > MOST_SELECTED:
        raise TooLarge(f"the statement selects {len(items)} columns; the limit is {MOST_SELECTED}. Ask in several.")
    if not any(isinstance(item, Aggregate) for item in items):
        raise BadQuery('the statement asks for no number; add "count" to "select".')
    named = [item.column for item in items if isinstance(item, Group)]
    if not named and plain.get("show_groups") is not False:
        items = (*(Group(name, name) for name in group), *items)
    for name in named:
        if name not in group:
            raise BadQuery(f'select shows "{name[:60]}", which is not in group_by. Add it there, or count it.')
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        raise BadQuery(f'two columns of the output have one name: {", ".join(names[:8])}. Name them with "as".')
    limit = plain.get("limit")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise BadQuery(f"limit is {_shown(limit)}; it must be a whole number.")
    # A group is sorted by its own name, whatever it is shown as.
    own = {item.name: item.column for item in items if isinstance(item, Group)}
    order = tuple(_order(each, own) for each in _list(plain.get("order_by", []), "order_by"))
    known = {item.name for item in items} | set(group)
    for each in order:
        if each.name not in known:
            raise BadQuery(f'order_by names "{each.name[:60]}"; {did_you_mean(each.name, known)}')
    where, having = (_read_condition(plain[name]) if name in plain else everyone for name in ("where", "having"))
    return Select(table, items, where, group, having, order, limit)


def _item(plain: Any) -> Group | Aggregate:
    if plain == "count":
        return Aggregate("count", None, "count")
    if isinstance(plain, Mapping):
        named = [name for name in plain if name != "as"]
        if len(named) == 1 and named[0] in (*_AGGREGATES, "group"):
            (kind,) = named
            column, name = plain[kind], plain.get("as")
            if column is None and kind == "count":
                return Aggregate("count", None, _text(name or "count", "as"))
            column = _text(column, kind)
            if kind == "group":
                return Group(column, _text(name or column, "as"))
            return Aggregate(kind, column, _text(name or f"{kind}_{column}", "as"))
    raise BadQuery(f'{_shown(plain)} cannot be selected; write "count", {{"sum": "hours"}} or {{"avg": "age"}}.')


def _order(plain: Any, own: Mapping[str, str]) -> Order:
    match plain:
        case str():
            return Order(own.get(plain, plain))
        case {"name": str(name), **others} if not set(others) - {"descending"}:
            down = others.get("descending", False)
            if not isinstance(down, bool):
                raise BadQuery(f"descending is {_shown(down)}; it must be true or false.")
            return Order(own.get(name, name), down)
    raise BadQuery(f'{_shown(plain)} is no order; write a name, or {{"name": "count", "descending": true}}.')


def _read_condition(plain: Any) -> Predicate:
    match plain:
        case {"column": str(column), "is": str(operator), "value": value, **others} if not others:
            meant = _AS_IN_SQL.get(operator, operator)
            if meant not in _OPERATORS:
                raise BadQuery(f'"{operator[:60]}" is no comparison; {did_you_mean(operator, _OPERATORS)}')
            return Compare(column, meant, _read_value(value))  # type: ignore[arg-type]
        case {"column": str(column), "in": list(values), **others} if not others:
            return IsIn(column, tuple(_read_value(value) for value in values))
        case {"column": str(column), "missing": True, **others} if not others:
            return IsMissing(column)
        case {"and": list(parts), **others} if parts and not others:
            return And(tuple(_read_condition(part) for part in parts))
        case {"or": list(parts), **others} if parts and not others:
            return Or(tuple(_read_condition(part) for part in parts))
        case {"not": part, **others} if not others:
            return ~_read_condition(part)
        case {"everyone": True, **others} if not others:
            return everyone
    raise BadQuery(f'{_shown(plain)} is no condition; write {{"column": "age", "is": ">=", "value": 65}}.')


def _read_value(plain: Any) -> Any:
    try:
        match plain:
            case bool() | int() | float() | str():
                return plain
            case {"date": str(day), **others} if not others:
                return date.fromisoformat(day)
            case {"number": str(number), **others} if not others and len(number) <= _DIGITS:
                return Fraction(number) if "/" in number else Decimal(number)
    except (ValueError, ArithmeticError):
        pass
    raise BadQuery(f'{_shown(plain)} is no value; write a text, a number, true, or {{"date": "2024-02-29"}}.')


def _list(plain: Any, what: str) -> list[Any]:
    if isinstance(plain, list):
        return plain
    raise BadQuery(f"{what} is {_shown(plain)}; it must be a list.")


def _texts(plain: Any, what: str) -> list[str]:
    return [_text(each, what) for each in _list(plain, what)]


def _text(plain: Any, what: str) -> str:
    if isinstance(plain, str) and plain:
        return plain
    raise BadQuery(f"{what} has {_shown(plain)}; it must be the name of a column, a text that is not empty.")
