"""How version 1 wrote values as texts, for what it hashed or recorded: frozen, whatever classes are called today.

Version 1 bound keys to the representation of requests, and columns to that of their declarations. Keys are bound to
explicit forms now, and the texts are made only to recognise a key of then. The prints of columns have stayed.

The names in quotation marks below are those of version 1. They are data: never rename one with its class.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from discreet.accounting import event
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, LaplaceMarginal, LaplaceQuery
from discreet.ledger.accounts import Budget
from discreet.plan.plan import Steps
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.points import Body, Grid
from discreet.query.predicate import And, Compare, Everyone, IsIn, IsMissing, Not, Or
from discreet.query.residual import Measurement, Residual
from discreet.query.statement import Aggregate, Group, Order, Select
from discreet.schema.column import Bins, Categories, Integers
from discreet.schema.domain import Domain, column_text
from discreet.schema.unit import Unit

# What each class was called, and its fields. A field that has another name today is written "then=now".
_NAMED: dict[type, tuple[str, str]] = {
    event.Nothing: ("Nothing", ""),
    event.Laplace: ("Laplace", "scale sensitivity"),
    event.Gaussian: ("Gaussian", "sigma squared_sensitivity"),
    event.DiscreteGaussian: ("DiscreteGaussian", "sigma squared_sensitivity"),
    event.Selection: ("Selection", "epsilon"),
    event.AboveThreshold: ("AboveThreshold", "epsilon"),
    event.Coin: ("Coin", "log_odds hits"),
    event.Pure: ("Pure", "epsilon"),
    event.Approximate: ("Approximate", "epsilon delta"),
    event.Compose: ("Compose", "events"),
    event.Repeat: ("Repeat", "event times"),
    Unit: ("Unit", "key contributions neighbors"),
    Grid: ("Grid", "middle units body"),
    Body: ("Body", "reach norm"),
    Steps: ("Steps", "steps"),
    GaussianResiduals: ("Lattice", "measurement price"),
    GaussianQuery: ("Directly", "question sigma price"),
    LaplaceMarginal: ("Whole", "columns scale price"),
    LaplaceQuery: ("Alone", "question scale price"),
    Measurement: ("Measurement", "pieces"),
    Residual: ("Residual", "parts"),
    Ratio: ("Ratio", "numerator denominator"),
    Select: ("Select", "table items where group having order limit"),
    Aggregate: ("Aggregate", "kind column name"),
    Group: ("Group", "column name"),
    Order: ("Order", "name descending"),
}


def version_1_text(value: Any) -> str:
    """A value as version 1 wrote it.

    >>> version_1_text((event.Pure(1), "why", [Unit()]))
    "(Pure(epsilon=Fraction(1, 1)), 'why', [Unit(key=None, contributions=1, neighbors='add_remove')])"
    """
    kind = type(value)
    if kind in _NAMED:
        name, fields = _NAMED[kind]
        pairs = [field.partition("=") for field in fields.split()]
        return named(name, **{then: getattr(value, now or then) for then, _, now in pairs})
    if kind in _OWN:
        return _OWN[kind](value)
    if kind is tuple:
        return f"({', '.join(map(version_1_text, value))}{',' * (len(value) == 1)})"
    if kind is list:
        return f"[{', '.join(map(version_1_text, value))}]"
    if kind is dict:
        return f"{{{', '.join(f'{version_1_text(key)}: {version_1_text(each)}' for key, each in value.items())}}}"
    # Numbers, texts, dates: their representation is Python's, and no class of ours.
    assert not kind.__module__.startswith("discreet"), f"version 1 wrote no {kind.__name__}"
    return repr(value)


def named(name: str, /, **fields: Any) -> str:
    """A value of a class that had this name then.

    >>> named("Limits", seconds=3.0)
    'Limits(seconds=3.0)'
    """
    return f"{name}({', '.join(f'{field}={version_1_text(value)}' for field, value in fields.items())})"


def domain_print(domain: Domain) -> str:
    """The print of all columns of a table."""
    return sha256(version_1_text(domain).encode()).hexdigest()[:16]


def _linear(query: Linear) -> str:
    many = f"{len(query.products)} product{'s' * (len(query.products) != 1)}"
    return f"<Linear: {many} on {', '.join(query.scope) or 'no column'}>"


def _marginal(query: Marginal) -> str:
    weight = "" if query.weight is None else f", weight={version_1_text(query.weight)}"
    return f"Marginal(columns={version_1_text(query.columns)}{weight})"


def _budget(budget: Budget) -> str:
    delta = f", delta={float(budget.delta):g}" if budget.delta else ""
    gate = ", gate='renyi'" if budget.gate == "renyi" else ""
    return f"Budget(epsilon={float(budget.epsilon):.6g}{delta}{gate})"


_OWN: dict[type, Callable[[Any], str]] = {
    Domain: lambda domain: f"Domain({version_1_text(dict(domain.columns))})",
    Categories: column_text,
    Integers: column_text,
    Bins: column_text,
    Linear: _linear,
    Marginal: _marginal,
    Budget: _budget,
    Everyone: lambda _: "everyone",
    Compare: lambda asked: f"col({version_1_text(asked.column)}) {asked.operator} {version_1_text(asked.value)}",
    IsIn: lambda asked: f"col({version_1_text(asked.column)}).isin({version_1_text(list(asked.values))})",
    IsMissing: lambda asked: f"col({version_1_text(asked.column)}).is_missing()",
    And: lambda asked: " & ".join(f"({version_1_text(part)})" for part in asked.parts),
    Or: lambda asked: " | ".join(f"({version_1_text(part)})" for part in asked.parts),
    Not: lambda asked: f"~({version_1_text(asked.part)})",
}
