"""One question, one answer, one price: for scripts and first steps. The curator answers many on one budget."""

from dataclasses import replace

import numpy as np

from discreet.answer import Answer
from discreet.errors import BadQuery
from discreet.mechanism.laplace import laplace
from discreet.parameter import Number, probability
from discreet.query import ask
from discreet.query.linear import Marginal
from discreet.query.predicate import Predicate, everyone
from discreet.source.effect import Question, sensitivity_of
from discreet.source.table import Table


def count(table: Table, where: Predicate = everyone, *, epsilon: Number, confidence: Number = 0.95) -> Answer:
    """How many rows satisfy a predicate, with discrete Laplace noise: epsilon-DP.

    >>> import discreet as dp
    >>> people = dp.open({"age": [31, 64, 70]}, domain=dp.Domain({"age": dp.Integers(0, 99)}))
    >>> answer = dp.count(people, dp.col("age") >= 65, epsilon=0.1)
    >>> answer.error, answer.confidence
    (30.0, 0.95)
    """
    if not isinstance(where, Predicate):
        raise BadQuery(f'the condition is a {type(where).__name__}; it must be a predicate. Write col("age") >= 65.')
    return _answer(table, ask.count(table.domain, where), epsilon, confidence)


def histogram(table: Table, *columns: str, epsilon: Number, confidence: Number = 0.95) -> Answer:
    """The counts of all cells of some columns, in one joint release: epsilon-DP for all of them together.

    >>> import discreet as dp
    >>> people = dp.open({"sex": ["F", "M"]}, domain=dp.Domain({"sex": dp.Categories(["F", "M"], outside="drop")}))
    >>> dp.histogram(people, "sex", epsilon=1).value.shape
    (2,)
    """
    if not columns:
        raise BadQuery("histogram() was given no column; it needs at least one. Use count() for the number of rows.")
    question = Marginal(columns)
    shape = question.shape(table.domain)
    answer = _answer(table, question, epsilon, confidence)
    return replace(answer, value=np.reshape(answer.value, shape))


def _answer(table: Table, question: Question, epsilon: Number, confidence: Number) -> Answer:
    # The sensitivity comes from the schema alone, so that a bad epsilon is refused before a row is read.
    mechanism = laplace(epsilon=epsilon, sensitivity=sensitivity_of(question, table.domain, table.unit))
    error = mechanism.error(confidence)
    released = mechanism.release(table.evaluate(question))
    value = int(released[0]) if released.size == 1 else released
    return Answer(value, error, float(probability("confidence", confidence)), mechanism.event, table.unit.describe)
