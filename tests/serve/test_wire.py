"""What is said over HTTP means what it meant: the same value after a round trip through JSON."""

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet import errors
from discreet.accounting.event import Gaussian, Nothing
from discreet.answer import Answer
from discreet.ledger import Budget
from discreet.query.sql import parse
from discreet.wire.answer_json import answer_from_plain, answer_to_plain
from discreet.wire.problem import error_from_problem, problem_of
from discreet.wire.question_json import question_from_plain, question_to_plain
from discreet.wire.workload_json import workload_from_plain, workload_to_plain
from support.statements import PEOPLE, valid_statements
from support.strategies import combined

values = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9),
    st.text(max_size=5),
    st.booleans(),
    st.dates(),
    st.fractions(),
    st.decimals(-100, 100, allow_nan=False, allow_infinity=False),
)
names = st.sampled_from(["age", "sex", "né", 'a"b'])
atoms = st.one_of(
    st.builds(lambda name, value: dp.col(name) >= value, names, values),
    st.builds(lambda name, value: dp.col(name) != value, names, values),
    st.builds(lambda name, some: dp.col(name).isin(some), names, st.lists(values, max_size=3)),
    st.builds(lambda name: dp.col(name).is_missing(), names),
    st.just(dp.everyone),
)


def sent(plain):
    return json.loads(json.dumps(plain, allow_nan=False))


@given(combined(atoms, 6))
def test_a_condition_is_the_same_after_a_round_trip(predicate):
    assert question_from_plain(sent(question_to_plain(predicate)), table="people") == predicate


def test_statements_are_the_same_after_a_round_trip():
    found = [parse(getattr(case, "values", case)[0], PEOPLE, table="people") for case in valid_statements()]
    assert len(found) > 100
    for select in found:
        assert question_from_plain(sent(question_to_plain(select)), table="people") == select


def test_what_is_left_out_of_a_statement_is_as_in_sql():
    plain = {"select": ["count", {"avg": "hours"}], "group_by": ["sex"]}
    sql = "SELECT sex, COUNT(*) AS count, AVG(hours) AS avg_hours FROM people GROUP BY sex"
    asked = parse(sql, PEOPLE, table="people")
    assert question_from_plain(plain, table="people") == asked


def test_comparisons_may_be_written_as_in_sql():
    for sql, own in (("=", "=="), ("<>", "!="), ("<=", "<=")):
        asked = [{"where": {"column": "sex", "is": sign, "value": "Male"}} for sign in (sql, own)]
        assert len({question_from_plain(each, table="people") for each in asked}) == 1
    with pytest.raises(errors.BadQuery, match='"=<" is no comparison'):
        question_from_plain({"where": {"column": "sex", "is": "=<", "value": "Male"}}, table="people")


def test_values_keep_their_kind():
    for value in (1, 1.5, "1", True, date(2024, 2, 29), Fraction(1, 3), Decimal("0.1")):
        again = question_from_plain(sent(question_to_plain(dp.col("x") == value)), table="people")
        assert again.reading == (dp.col("x") == value).reading


@pytest.mark.parametrize(
    "make",
    [
        lambda domain: dp.marginals(domain, 2),
        lambda domain: dp.marginals(domain.project(["age", "sex"]), 1),
        lambda domain: dp.prefixes(domain, "age"),
        lambda domain: dp.ranges(domain, "hours"),
        lambda domain: dp.all_subsets(domain, "sex"),
        lambda domain: [("age", "sex"), ("sex",)],
        lambda domain: {("age",): 2.0, ("sex", "hours"): 1.0},
        lambda domain: dp.conjunctions(domain.project(["sex", "hours"]), 2)[:7],
    ],
)
def test_a_workload_is_for_the_same_goal_after_a_round_trip(make):
    from discreet.release.method_choice import asked_of
    from discreet.release.task import goal_of

    domain = dp.Domain({"age": dp.Integers(0, 9), "sex": dp.Categories(["f", "m"]), "hours": dp.Integers(0, 4)})
    wanted = make(domain)
    again = workload_from_plain(sent(workload_to_plain(wanted)), domain, table="people")
    assert goal_of(again, domain).weights == goal_of(wanted, domain).weights
    assert (asked_of(again, domain) is None) == (asked_of(wanted, domain) is None)


def test_an_infinite_error_and_a_missing_mean_come_back():
    answer = Answer(
        (np.array([1.0, 2.0]), np.array([None, 3.0])),
        (np.array([inf, 2.0]), np.array([5.0, inf])),
        0.9,
        Gaussian(Fraction(10, 3), 1),
        "one row is added or removed",
        {"n": [1.0, 2.0], "n_error": [inf, 2.0], "x_error": ["a", None]},
        "measured",
        Budget(0.5, 1e-9),
    )
    again = answer_from_plain(sent(answer_to_plain(answer)))
    assert [part.tolist() for part in again.value] == [[1.0, 2.0], [None, 3.0]]
    assert [part.tolist() for part in again.error] == [[inf, 2.0], [5.0, inf]]
    assert again.columns == answer.columns
    assert (again.cost, again.remaining, again.origin) == (answer.cost, answer.remaining, "measured")
    guess = Answer(3.0, inf, 0.95, Nothing(), "", {}, "model", Budget(1))
    assert str(answer_from_plain(sent(answer_to_plain(guess)))) == str(guess)


KINDS = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", [each for each in KINDS if each is not errors.DiscreetError])
def test_every_error_has_a_status_and_is_made_again(kind):
    status, problem = problem_of(kind("a sentence. And a next step."))
    assert 400 <= status < 600
    again = error_from_problem(status, sent(problem))
    assert type(again) is kind
    assert str(again) == "a sentence. And a next step."


def test_what_no_server_of_ours_would_say_is_a_failed_server():
    odd = ({"error": "SystemExit", "detail": "x"}, {"error": "did_you_mean", "detail": "x"}, {"error": "BadQuery"})
    for problem in ({}, *odd):
        assert type(error_from_problem(500, problem)) is errors.ServerFailed
