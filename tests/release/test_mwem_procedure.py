"""MWEM as a procedure: what it costs, what it reads, and what comes of it."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.errors import TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import estimator_for
from discreet.estimate.measurements import GaussianQuery
from discreet.lab.textbook.mwem_release import number_of_rounds, rounds, too_many
from discreet.lab.textbook.small_db import cells_of_goal, number_of_cells
from discreet.model.dense.dense_model import Dense
from discreet.plan.plan import Choose, Measure, Steps
from discreet.query.linear import Linear
from discreet.release.methods.direct import direct_steps
from discreet.release.task import Brief, goal_of
from discreet.schema import Boolean, Domain, Integers
from release.procedures import (
    ADD,
    DOMAIN,
    NAMES,
    PAIRS,
    PLENTY,
    REPLACE,
    ROWS,
    SOME,
    UNITS,
    counts_of,
    desk_of,
    error_of,
    refused,
)


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_it_costs_what_it_may_and_not_a_hair_more(unit, pure, tmp_path):
    for units in (Fraction(1, 3000), Fraction(1, 50)):
        with desk_of(tmp_path, unit=unit, pure=pure) as desk:
            desk.release(rounds, units, PAIRS)
            assert Fraction(99, 100) * units < desk.spent() <= units


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_with_plenty_the_model_is_near_the_table(unit, pure, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.lab.textbook.mwem_release.MOST", 30)
    with desk_of(tmp_path, unit=unit, pure=pure) as desk:
        model = desk.release(rounds, PLENTY, PAIRS)
        assert model.total == pytest.approx(ROWS, rel=0.01)
        assert error_of(model, PAIRS) < 0.08
        # Where it starts, all cells alike, is far away.
        assert error_of(Dense(DOMAIN, total=ROWS), PAIRS) > 0.5


def test_the_counts_are_one_object_and_are_read_once(tmp_path, monkeypatch):
    with desk_of(tmp_path) as desk:
        reads = []
        evaluate = type(desk.executor.table).evaluate
        monkeypatch.setattr(
            type(desk.executor.table), "evaluate", lambda table, asked: reads.append(asked) or evaluate(table, asked)
        )
        desk.release(rounds, Fraction(1, 200), PAIRS)
        chosen = [request for request in desk.requests if isinstance(request, Choose)]
        assert len(chosen) > 3
        assert len({id(request.questions) for request in chosen}) == 1
        assert sum(asked is chosen[0].questions for asked in reads) == 1


def test_each_round_chooses_and_measures_what_was_chosen(tmp_path):
    with desk_of(tmp_path, unit=REPLACE) as desk:
        told = []
        desk.release(rounds, Fraction(1, 20), PAIRS, tell=told.append)
        kinds = [type(request) for request in desk.requests]
        assert kinds == [Choose, Measure] * (len(kinds) // 2)
        assert told == sorted(told)
        assert told[-1] == 1
        assert len(told) == number_of_rounds(desk.known, number_of_cells(PAIRS), ROWS, Fraction(1, 20))
        prices = desk.prices()
        assert np.allclose(np.array(prices[::2], dtype=float), float(Fraction(1, 20)) / len(kinds), rtol=1e-3)
        for choose, measure in zip(desk.requests[::2], desk.requests[1::2], strict=True):
            (step,) = measure.steps.steps
            assert step.question in choose.questions
            assert desk.known.direct_answers[step.question].variance > 0


def test_single_columns_that_are_known_are_where_it_starts(tmp_path):
    with desk_of(tmp_path, unit=REPLACE, pure=True) as desk:
        alone = goal_of([[name] for name in NAMES], DOMAIN)
        desk.answer(Measure(direct_steps(desk.known, alone, dict(alone.weights), Fraction(50)), "before"))
        first = next(rounds(Brief(desk.known, PAIRS, SOME)))
        expected = dict(zip(first.questions, first.expected, strict=True))
        shares = {name: counts_of((name,)) / ROWS for name in NAMES}
        for question in cells_of_goal(PAIRS):
            product = ROWS
            for factor in question.products[0].factors:
                product *= float(factor.weights @ shares[factor.columns[0]])
            assert abs(expected[question] - product) < 0.05 * ROWS


def test_a_count_that_was_measured_well_is_known_at_once(tmp_path):
    with desk_of(tmp_path, unit=REPLACE) as desk:
        question = cells_of_goal(PAIRS)[0]
        desk.answer(Measure(Steps((GaussianQuery(question, Fraction(1), 1.0),)), "before"))
        first = next(rounds(Brief(desk.known, PAIRS, SOME)))
        assert first.questions[0] == question
        assert abs(first.expected[0] - counts_of(PAIRS.scopes[0]).ravel()[0]) < 8


def test_questions_of_ones_own_are_learnt(tmp_path):
    with desk_of(tmp_path) as desk:
        own = cells_of_goal(goal_of([["age"]], DOMAIN))
        model = desk.release(rounds, PLENTY, PAIRS, questions=own)
        assert desk.requests[1].questions == own
        assert np.abs(model.marginal(["age"]) - counts_of(("age",))).max() < 15


def test_more_budget_and_more_rows_make_more_rounds():
    for pure in (False, True):
        known = estimator_for("pure" if pure else "gaussian", DOMAIN, ADD)
        numbers = [number_of_rounds(known, 1000, rows, Fraction(1)) for rows in (1, 1_000, 100_000, 10**9)]
        assert numbers == sorted(numbers)
        assert numbers[0] >= 2
        assert number_of_rounds(known, 3, 10**6, Fraction(1)) == 3


def test_the_cells_of_a_goal_are_its_counts():
    found = cells_of_goal(PAIRS)
    assert len(found) == number_of_cells(PAIRS)
    assert all(isinstance(each, Linear) for each in found)
    # The third cell of the first marginal (age, city) is age 0 and city c.
    table = found[2].table(DOMAIN, ("age", "city"))
    assert np.argwhere(table).tolist() == [[0, 2]]


def test_it_is_refused_before_anything_is_asked():
    large = Domain({f"x{place:02}": Boolean() for place in range(21)})
    goal = goal_of([["x00", "x01"]], large)
    error = refused(rounds(Brief(GaussianLattice.nothing(large, ADD), goal, SOME)))
    assert isinstance(error, TooLarge)
    assert str(2**21) in str(error)
    assert str(error) == too_many(goal)
    many = Domain({name: Integers(1, 150, outside="drop", missing="drop") for name in "ab"} | {"c": Boolean()})
    goal = goal_of(list(combinations("abc", 2)), many)
    assert isinstance(refused(rounds(Brief(GaussianLattice.nothing(many, ADD), goal, SOME))), TooLarge)
    assert str(number_of_cells(goal)) in too_many(goal)
    assert too_many(goal, 10) == ""
