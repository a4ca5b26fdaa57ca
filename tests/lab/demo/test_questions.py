"""The stream is what it says: ten thousand questions that can be asked, the same every time."""

from collections import Counter

import pytest

from discreet.data import load_adult
from discreet.lab.demo.questions import ERRORS, KINDS, Condition, Draws, Question, questions
from discreet.query.linear import Linear, Marginal
from discreet.query.sql import parse

MANY = 10_000


@pytest.fixture(scope="module")
def stream():
    return questions(MANY)


def test_every_question_can_be_asked(stream):
    domain = load_adult().domain
    assert len(stream) == MANY
    for question in dict.fromkeys(stream):
        (asked,) = parse(question.sql, domain, table="adult").questions(domain)
        assert isinstance(asked, Marginal if question.groups else Linear)
        assert asked.scope == question.columns


def test_the_stream_is_the_same_every_time_and_its_beginning_does_not_depend_on_its_end(stream):
    assert questions(MANY) == stream
    assert questions(100) == stream[:100]
    assert stream[0].sql == questions(1)[0].sql


def test_all_kinds_are_asked_and_all_errors(stream):
    kinds = Counter(question.kind for question in stream)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) > MANY / 20
    assert {question.error for question in stream} == {400 * multiple for multiple, _ in ERRORS}
    assert {question.error for question in questions(300, error=200)} == {100, 200, 400}


def test_who_asks_the_same_wants_the_same_error(stream):
    errors = {}
    for question in stream:
        assert errors.setdefault(question.sql, question.error) == question.error


def test_some_questions_are_popular_and_most_are_not(stream):
    times = Counter(question.sql for question in stream)
    assert len(times) > MANY / 4
    assert times.most_common(1)[0][1] > 20
    assert sum(number == 1 for number in times.values()) > len(times) / 3


def test_the_values_of_a_question_are_the_same_whatever_the_order_in_which_they_were_drawn(stream):
    """So that a cache by text is as good as one by meaning, and the baselines are not made to look worse."""
    meant = {}
    for question in stream:
        key = frozenset((each.column, each.operator, frozenset(each.values)) for each in question.conditions)
        assert meant.setdefault((key, frozenset(question.groups)), question.sql) == question.sql


def test_draws_look_random():
    draws = Draws()
    shares = [draws.share() for _ in range(2_000)]
    assert 0 <= min(shares) <= max(shares) < 1
    assert abs(sum(shares) / 2_000 - 0.5) < 0.05
    assert draws.several("abc", 3) == ("a", "b", "c")


def test_a_question_is_written_as_sql():
    old = Condition("age", ">=", (65,))
    assert Question((old,), (), 500).sql == "SELECT COUNT(*) FROM adult WHERE age >= 65"
    assert Question((), ("sex",), 500).sql == "SELECT sex, COUNT(*) FROM adult GROUP BY sex"
    assert Condition("race", "IN", ("White", "Black")).sql == "race IN ('White', 'Black')"
    assert Condition("occupation", "IS NULL").sql == "occupation IS NULL"
