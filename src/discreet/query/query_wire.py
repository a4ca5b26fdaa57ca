"""Queries and conditions as plain values, for logs: exact, and the same after a round trip."""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from discreet.errors import BadData, BadQuery
from discreet.query.linear import Linear, Marginal
from discreet.query.predicate import And, Compare, Everyone, IsIn, IsMissing, Not, Or, Predicate
from discreet.query.product import Factor, Product
from discreet.values import LARGEST_INTEGER, shortened

# An array has no more axes than this.
MOST_COLUMNS = 64


def query_to_plain(query: Linear | Marginal) -> dict[str, Any]:
    """A query as a dict of texts, numbers and lists.

    >>> query_to_plain(Marginal(("age", "sex")))
    {'columns': ['age', 'sex'], 'weight': None}
    """
    if isinstance(query, Marginal):
        return {
            "columns": list(query.columns),
            "weight": None if query.weight is None else query_to_plain(query.weight)["products"],
        }
    return {
        "products": [
            [
                each.coefficient,
                [[list(f.columns), list(f.weights.shape), f.weights.ravel().tolist()] for f in each.factors],
            ]
            for each in query.products
        ]
    }


def condition_to_plain(predicate: Predicate) -> dict[str, Any]:
    """A condition as a dict of texts, numbers and lists.

    >>> condition_to_plain(Compare("age", ">=", 65))
    {'column': 'age', 'is': '>=', 'value': 65}
    """
    match predicate:
        case Compare(column, operator, value):
            return {"column": column, "is": operator, "value": _value(value)}
        case IsIn(column, values):
            return {"column": column, "in": [_value(value) for value in values]}
        case IsMissing(column):
            return {"column": column, "missing": True}
        case And(parts):
            return {"and": [condition_to_plain(part) for part in parts]}
        case Or(parts):
            return {"or": [condition_to_plain(part) for part in parts]}
        case Not(part):
            return {"not": condition_to_plain(part)}
        case Everyone():
            return {"everyone": True}
    raise BadQuery(f'{predicate!r} is not a predicate. Write one with col(), say col("age") >= 65.')


def _value(value: Any) -> Any:
    match value:
        case bool() | int() | float() | str():
            return value
        case date():
            return {"date": value.isoformat()}
    return {"number": str(Fraction(value))}


def query_from_plain(plain: Any) -> Linear | Marginal:
    """The query that `query_to_plain` wrote, or another in the same form; refuses everything else.

    The numbers are whole numbers, there are as many weights as the shape says, and no unknown name.
    Columns and factors may come in any order, for the query brings them into its own.
    """
    match plain:
        case {"products": products, **others} if not others:
            return _linear(products, plain)
        case {"columns": columns, "weight": weight, **others} if not others:
            names = tuple(_list(columns, plain))
            return Marginal(names, None if weight is None else _linear(weight, plain))
    raise _no_query(plain)


def _linear(products: Any, plain: Any) -> Linear:
    return Linear([_product(each, plain) for each in _list(products, plain)])


def _product(product: Any, plain: Any) -> Product:
    match product:
        case [int(coefficient), factors] if type(coefficient) is int:
            return Product(tuple(_factor(each, plain) for each in _list(factors, plain)), coefficient)
    raise _no_query(plain)


def _factor(factor: Any, plain: Any) -> Factor:
    match factor:
        case [_, _, _]:
            columns, shape, weights = (_list(each, plain) for each in factor)
            # No size is larger than the number of weights, so that their product is not a long number.
            sized = len(columns) == len(shape) <= MOST_COLUMNS and all(map(_is_size(len(weights)), shape))
            if sized and prod(shape) == len(weights) and _are_weights(weights):
                return Factor(tuple(columns), np.array(weights, dtype=np.int64).reshape(shape))
    raise _no_query(plain)


def _is_size(most: int) -> Callable[[object], bool]:
    return lambda number: type(number) is int and 1 <= number <= most


def _are_weights(numbers: list[Any]) -> bool:
    # There may be a hundred thousand: no step of Python for each.
    return set(map(type, numbers)) == {int} and min(numbers) >= -LARGEST_INTEGER and max(numbers) <= LARGEST_INTEGER


def _list(plain: Any, whole: Any) -> list[Any]:
    if isinstance(plain, (list, tuple)):
        return list(plain)
    raise _no_query(whole)


def _no_query(plain: Any) -> BadData:
    return BadData(
        f"{shortened(plain)} is not a query; it must be one that a ledger wrote. "
        "It may come from a newer version of discreet."
    )
