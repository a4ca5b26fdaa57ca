"""Queries as plain values, for logs: exact, and the same after a round trip."""

from typing import Any

import numpy as np

from discreet.errors import BadData
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Factor, Product


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


def query_from_plain(plain: Any) -> Linear | Marginal:
    """The query that `query_to_plain` wrote."""
    try:
        if "products" in plain:
            return _linear(plain["products"])
        weight = plain["weight"]
        return Marginal(tuple(plain["columns"]), None if weight is None else _linear(weight))
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadData(
            f"{str(plain)[:80]!r} is not a query; it must be one that a ledger wrote. "
            "It may come from a newer version of discreet."
        ) from error


def _linear(products: Any) -> Linear:
    return Linear(
        Product(
            tuple(
                Factor(tuple(columns), np.array(weights, dtype=np.int64).reshape(shape))
                for columns, shape, weights in factors
            ),
            int(coefficient),
        )
        for coefficient, factors in products
    )
