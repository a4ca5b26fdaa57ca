"""Answers, plans, budgets and spends as JSON, and back. Infinite and unknown numbers are null."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from math import inf, isinf
from typing import Any

import numpy as np

from discreet.accounting.event import event_from_plain, event_to_plain
from discreet.answer import Answer
from discreet.curator.explanation import Free, Plan
from discreet.ledger import Budget, Spend
from discreet.release.task import Forecast, Limits, ReleasePlan

Plain = dict[str, Any]


def budget_to_plain(budget: Budget) -> Plain:
    """A budget: epsilon at a delta, and the gate that counts it."""
    return {"epsilon": float(budget.epsilon), "delta": float(budget.delta), "gate": budget.gate}


def budget_from_plain(plain: Mapping[str, Any]) -> Budget:
    """The budget."""
    return Budget(plain["epsilon"], plain["delta"], plain.get("gate"))


def answer_to_plain(answer: Answer) -> Plain:
    """An answer. `shape` says whether there is one number, an array of them, or several of those.

    >>> from discreet.accounting.event import Nothing
    >>> plain = answer_to_plain(Answer(692.0, inf, 0.95, cost=Nothing(), neighbors="one row is added or removed"))
    >>> plain["value"], plain["error"], plain["shape"], answer_from_plain(plain).error
    (692.0, None, 'number', inf)
    """
    value = answer.value
    several, array = isinstance(value, tuple), isinstance(value, np.ndarray) and value.ndim > 0
    columns = {name: _listed(values) for name, values in answer.columns.items()}
    return {
        "value": [_listed(each) for each in value] if several else _listed(value),
        "error": [_listed(each) for each in answer.error] if several else _listed(answer.error),
        "confidence": answer.confidence,
        "origin": answer.origin,
        "columns": columns,
        "errors": [name for name in columns if name.endswith("_error") and name.removesuffix("_error") in columns],
        "shape": "several" if several else "array" if array else "number",
        "cost": event_to_plain(answer.cost),
        "neighbors": answer.neighbors,
        "remaining": None if answer.remaining is None else budget_to_plain(answer.remaining),
        "text": str(answer),
    }


def answer_from_plain(plain: Mapping[str, Any]) -> Answer:
    """The answer, as the curator gave it."""
    value, error = plain["value"], plain["error"]
    match plain["shape"]:
        case "several":
            value = tuple(np.array(each) if isinstance(each, list) else each for each in value)
            error = tuple(_errors(each) for each in error)
        case "array":
            value, error = np.array(value), _errors(error)
        case _:
            error = _errors(error)
    columns = {
        name: _errors(values).tolist() if name in plain["errors"] else values
        for name, values in plain["columns"].items()
    }
    left = plain["remaining"]
    return Answer(
        value,
        error,
        plain["confidence"],
        event_from_plain(plain["cost"]),
        plain["neighbors"],
        columns,
        plain["origin"],
        None if left is None else budget_from_plain(left),
        plain.get("price"),
    )


def plan_to_plain(plan: Plan) -> Plain:
    """A plan."""
    return {
        "question": plan.question,
        "error": _listed(plan.error),
        "confidence": plan.confidence,
        "origin": plan.origin,
        "cost": event_to_plain(plan.cost),
        "price": budget_to_plain(plan.price),
        "fits": plan.fits,
        "free": plan.free,
        "note": plan.note,
        "pieces": plan.pieces,
        "text": str(plan),
    }


def plan_from_plain(plain: Mapping[str, Any]) -> Plan:
    """The plan."""
    return Plan(
        plain["question"],
        inf if plain["error"] is None else plain["error"],
        plain["confidence"],
        plain["origin"],
        event_from_plain(plain["cost"]),
        budget_from_plain(plain["price"]),
        plain["fits"],
        plain["note"],
        plain["pieces"],
    )


def release_plan_to_plain(plan: ReleasePlan) -> Plain:
    """What each method would do for a release."""
    return {
        "forecasts": [
            {
                "method": row.method,
                "error": _listed(row.error),
                "seconds": _listed(row.seconds),
                "memory": _listed(row.memory),
                "why_not": row.why_not,
                "possible": row.possible,
            }
            for row in plan.forecasts
        ],
        "goal": plan.goal,
        "rows": plan.rows,
        "supposed": plan.supposed,
        "seconds": _listed(plan.limits.seconds),
        "memory": _listed(plan.limits.memory),
        "text": str(plan),
    }


def release_plan_from_plain(plain: Mapping[str, Any]) -> ReleasePlan:
    """The plan of a release."""
    rows = [
        Forecast(row["method"], _or_inf(row["error"]), _or_inf(row["seconds"]), _or_inf(row["memory"]), row["why_not"])
        for row in plain["forecasts"]
    ]
    limits = Limits(_or_inf(plain["seconds"]), _or_inf(plain["memory"]))
    return ReleasePlan(tuple(rows), plain["goal"], plain["rows"], plain["supposed"], limits)


def free_to_plain(free: Free) -> Plain:
    """A marginal that is known in full."""
    error = _listed(free.error)
    return {"columns": list(free.columns), "cells": free.cells, "error": error, "confidence": free.confidence}


def free_from_plain(plain: Mapping[str, Any]) -> Free:
    """The marginal."""
    return Free(tuple(plain["columns"]), plain["cells"], _or_inf(plain["error"]), plain["confidence"])


def spend_to_plain(spend: Spend) -> Plain:
    """A spend, with what was released for it."""
    return {
        "sequence": spend.sequence,
        "at": spend.at,
        "table": spend.table,
        "analyst": spend.analyst,
        "why": spend.why,
        "event": event_to_plain(spend.event),
        "key": spend.key,
        "released": None if spend.released is None else b64encode(spend.released).decode(),
    }


def spend_from_plain(plain: Mapping[str, Any]) -> Spend:
    """The spend."""
    released = plain["released"]
    return Spend(
        plain["sequence"],
        plain["at"],
        plain["table"],
        plain["analyst"],
        plain["why"],
        event_from_plain(plain["event"]),
        plain["key"],
        None if released is None else b64decode(released),
    )


def _listed(value: Any) -> Any:
    """Numbers, texts and lists of them, as JSON knows them."""
    if type(value) is float:
        return None if isinf(value) else value
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_listed(each) for each in value]
    return None if isinstance(value, float) and isinf(value) else value


def _errors(plain: Any) -> Any:
    """Errors are never missing, only infinite."""
    if isinstance(plain, list):
        return np.array([_errors(each) for each in plain], dtype=float)
    return _or_inf(plain)


def _or_inf(plain: float | None) -> float:
    return inf if plain is None else plain
