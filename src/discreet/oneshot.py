"""One question, one answer, one price: for scripts and first steps. The curator answers many on one budget."""

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from discreet.accounting.event import Compose
from discreet.answer import Answer, mean_of
from discreet.errors import BadQuery
from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.numeric import Number, positive, probability
from discreet.query.aggregates import AggregateQuery
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import Predicate, everyone
from discreet.query.sql import parse, parse_predicate
from discreet.query.statement import Aggregate, Group, Select
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.table import Table
from discreet.types import Ints


def count(table: Table, where: Predicate | str = everyone, *, epsilon: Number, confidence: Number = 0.95) -> Answer:
    """How many rows satisfy a predicate, with discrete Laplace noise: epsilon-DP.

    The predicate is a text as after WHERE, or made with `col`.

    >>> import discreet as dp
    >>> people = dp.open({"age": [31, 64, 70]}, domain=dp.Domain({"age": dp.Integers(0, 99)}))
    >>> answer = dp.count(people, "age >= 65", epsilon=0.1)
    >>> answer.error, answer.confidence
    (30.0, 0.95)
    """
    if isinstance(where, str):
        where = parse_predicate(where, table.domain)
    if not isinstance(where, Predicate):
        raise BadQuery(
            f'the condition is a {type(where).__name__}; it must be a predicate. Write "age >= 65" or col("age") >= 65.'
        )
    return _answer(table, Select(table.name, (Aggregate("count", None, "count"),), where), epsilon, confidence)


def histogram(table: Table, *columns: str, epsilon: Number, confidence: Number = 0.95) -> Answer:
    """The counts of all cells of some columns, in one joint release: epsilon-DP for all of them together.

    >>> import discreet as dp
    >>> people = dp.open({"sex": ["F", "M"]}, domain=dp.Domain({"sex": dp.Categories(["F", "M"], outside="drop")}))
    >>> dp.histogram(people, "sex", epsilon=1).value.shape
    (2,)
    """
    if not columns:
        raise BadQuery("histogram() was given no column; it needs at least one. Use count() for the number of rows.")
    shape = Marginal(columns).shape(table.domain)
    groups = tuple(Group(name, name) for name in columns)
    answer = _answer(
        table, Select(table.name, (*groups, Aggregate("count", None, "count")), group=columns), epsilon, confidence
    )
    return replace(answer, value=np.reshape(answer.value, shape), error=float(answer.error[0]))


def ask(table: Table, sql: str, *, epsilon: Number, confidence: Number = 0.95) -> Answer:
    """The answer to one SQL statement, with discrete Laplace noise: epsilon-DP for all its numbers together.

    Each count and each sum gets an equal share of epsilon, an average two. HAVING, ORDER BY and LIMIT use released
    numbers only.

    >>> import discreet as dp
    >>> people = dp.load_adult()
    >>> answer = dp.ask(people, "SELECT sex, COUNT(*) FROM adult GROUP BY sex", epsilon=1)
    >>> list(answer.to_frame().columns), answer.to_frame()["sex"].tolist()
    (['sex', 'count', 'count_error'], ['Female', 'Male'])
    """
    return _answer(table, parse(sql, table.domain, table=table.name), epsilon, confidence)


def _answer(table: Table, select: Select, epsilon: Number, confidence: Number) -> Answer:
    questions = zip(select.aggregates, select.questions(table.domain), strict=True)
    asked = [_parts(question, _centre(aggregate, table.domain)) for aggregate, question in questions]
    share = positive("epsilon", epsilon) / sum(map(len, asked))
    # Sensitivities come from the schema alone, so that a bad epsilon is refused before a row is read.
    mechanisms = [[_mechanism(table, part, share) for part in parts] for parts in asked]
    chosen = select.limit is not None or select.having != everyone
    rows = prod(table.domain[name].size for name in select.group)
    bars = [_bars(each, confidence, joint=rows * sum(map(len, asked)) if chosen else 1) for each in mechanisms]
    table.touch()
    with table.snapshot():
        exact = [[table.evaluate(part) for part in parts] for parts in asked]
    released = [
        [mechanism.release(one) for mechanism, one in zip(each, parts, strict=True)]
        for each, parts in zip(mechanisms, exact, strict=True)
    ]
    numbers = [
        _numbers(aggregate, table.domain, values, errors)
        for aggregate, values, errors in zip(select.aggregates, released, bars, strict=True)
    ]
    columns = select.tabulate(table.domain, [values for values, _ in numbers], [errors for _, errors in numbers])
    value, error = (_shaped(select, columns, suffix) for suffix in ("", "_error"))
    cost = [mechanism.event for each in mechanisms for mechanism in each]
    paid = cost[0] if len(cost) == 1 else Compose(tuple(cost))
    return Answer(value, error, float(probability("confidence", confidence)), paid, table.unit.describe, columns)


def _parts(asked: AggregateQuery, centre: int) -> tuple[Linear | Marginal, ...]:
    """What is measured for one aggregate: one query, or two for an average.

    The sum of an average is taken of the distances from the middle of the column's range, which one person moves by
    half as much as the sum of the values; the middle is added to the quotient.
    """
    match asked:
        case Ratio(total, values):
            return total - centre * values, values
        case (Marginal(columns, Linear() as total), Marginal(_, Linear() as values) as counted):
            return Marginal(columns, total - centre * values), counted
        case Linear() | Marginal():
            return (asked,)
    raise BadQuery(f"a {type(asked).__name__} cannot be measured. Give one of select.questions(domain).")


def _centre(aggregate: Aggregate, domain: Domain) -> int:
    column = domain[aggregate.column] if aggregate.kind == "avg" and aggregate.column else None
    return (column.lower + column.upper) // 2 if isinstance(column, Integers) else 0


def _mechanism(table: Table, part: Linear | Marginal, share: Fraction) -> Mechanism[Ints]:
    return laplace(epsilon=share, sensitivity=sensitivity_of(part, table.domain, table.unit))


def _bars(mechanisms: list[Mechanism[Ints]], confidence: Number, *, joint: int) -> list[float]:
    """The error of each part; both parts of an average hold together."""
    return [mechanism.error(confidence, joint=max(joint, len(mechanisms))) for mechanism in mechanisms]


def _numbers(
    aggregate: Aggregate, domain: Domain, released: list[Ints], errors: list[float]
) -> tuple[list[Any], list[float]]:
    """The number of each cell, and its error."""
    if aggregate.kind != "avg":
        return released[0].tolist(), errors * released[0].size
    column, centre = domain[aggregate.column or ""], _centre(aggregate, domain)
    assert isinstance(column, Integers), "only integers have a mean"
    ends = column.lower - centre, column.upper - centre
    pairs = zip(released[0].tolist(), released[1].tolist(), strict=True)
    means = [mean_of(total, errors[0], values, errors[1], *ends) for total, values in pairs]
    return [None if value is None else centre + value for value, _ in means], [error for _, error in means]


def _shaped(select: Select, columns: dict[str, list[Any]], suffix: str) -> Any:
    """One number, an array, or a tuple of those."""
    each = [columns[aggregate.name + suffix] for aggregate in select.aggregates]
    shaped = [values[0] if not select.group and values else np.array(values) for values in each]
    return shaped[0] if len(shaped) == 1 else tuple(shaped)
