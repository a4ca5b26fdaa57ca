"""What questions to come will cost, and when a model is cheaper: arithmetic on what was asked, and on nothing else."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet.plan.model_forecast
from discreet.plan.model_forecast import SETTLED, WORTH, Stream, lattice_units, model_units
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema import Boolean, Categories, Domain

FORTY = Domain({f"x{place:02}": Boolean() for place in range(40)})
SIXTEEN = Domain({f"x{place:02}": Boolean() for place in range(16)})


def conjunction(places, cell=1):
    return Linear([Product(tuple(Factor((f"x{place:02}",), np.eye(2, dtype=np.int64)[cell]) for place in places))])


def settled(columns, width, questions=400, seed=0):
    """A stream that has seen so many questions on random columns."""
    rng, stream = np.random.default_rng(seed), Stream()
    for _ in range(questions):
        stream.see(conjunction(sorted(rng.choice(columns, width, replace=False).tolist())))
    assert stream.settled
    return stream


# --- The lattice -----------------------------------------------------------------------------------------------------


def optimum(width, asked):
    """The least price of measuring characters once such that every question has variance 1, found by descent.

    A conjunction of k columns is 2^−k times a signed sum of the characters of all their subsets, and a character with
    variance v costs 1/v: one row moves it by 1.
    """
    pieces = sorted({piece for scope in asked for size in range(width + 1) for piece in combinations(scope, size)})
    place = {piece: number for number, piece in enumerate(pieces)}
    uses = np.zeros((len(asked), len(pieces)))
    for row, scope in enumerate(asked):
        for size in range(width + 1):
            for piece in combinations(scope, size):
                uses[row, place[piece]] = 4.0**-width

    # In logarithms both the price and the constraints are convex.
    found = minimize(
        lambda logs: (np.exp(-logs).sum(), -np.exp(-logs)),
        np.zeros(len(pieces)),
        jac=True,
        constraints={
            "type": "ineq",
            "fun": lambda logs: 1 - uses @ np.exp(logs),
            "jac": lambda logs: -uses * np.exp(logs),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-10},
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize(("columns", "width"), [(3, 1), (4, 2), (5, 2), (5, 3), (6, 4), (4, 4)])
def test_with_every_question_asked_it_is_what_the_best_plan_costs(columns, width):
    every = list(combinations(range(columns), width))
    assert lattice_units(columns, width, 1e9) == pytest.approx(optimum(width, every), rel=1e-4)


def test_a_single_question_costs_one_unit():
    for columns, width in ((3, 3), (10, 4), (40, 8)):
        assert lattice_units(columns, width, 1) == pytest.approx(1.0)


def test_of_some_random_questions_it_is_about_what_the_best_plan_costs():
    columns, width, questions = 6, 3, 6
    rng, costs = np.random.default_rng(5), []
    for _ in range(20):
        asked = [tuple(sorted(rng.choice(columns, width, replace=False).tolist())) for _ in range(questions)]
        costs.append(optimum(width, list(dict.fromkeys(asked))))
    assert lattice_units(columns, width, questions) == pytest.approx(float(np.mean(costs)), rel=0.15)


def test_it_grows_with_the_questions_and_stays_below_asking_each_by_itself():
    costs = [lattice_units(40, 8, questions) for questions in (0, 1, 10, 100, 10**3, 10**4, 10**5, 10**6)]
    assert costs[0] == 0.0
    assert costs == sorted(costs)
    many = (1, 10, 100, 10**3, 10**4, 10**5, 10**6)
    assert all(cost <= questions for cost, questions in zip(costs[1:], many, strict=True))
    assert lattice_units(3, 8, 10) == lattice_units(3, 3, 10)


# --- The model -------------------------------------------------------------------------------------------------------


def test_a_model_costs_its_pieces_and_a_constant():
    forecast = discreet.plan.model_forecast
    for count in (3, 10):
        names = tuple(FORTY)[:count]
        pieces = forecast.TOTAL_UNITS + forecast.SINGLE_UNITS * count + forecast.PAIR_UNITS * comb(count, 2)
        assert model_units(names, FORTY) == pytest.approx(pieces + forecast.JOINED * count + forecast.REST)
    wide = Domain({"a": Categories(list("uvwxyz")), "b": Boolean()})
    assert model_units(("a", "b"), wide) >= model_units(("b",), wide)


# --- Whether it pays -------------------------------------------------------------------------------------------------


def test_many_wide_questions_on_many_columns_pay():
    stream = settled(40, 8)
    assert stream.pays(FORTY, to_come=100_000, spent=0.0)
    assert not stream.pays(FORTY, to_come=100, spent=0.0)
    assert not stream.pays(FORTY, to_come=0, spent=1e9)


def test_few_columns_never_pay():
    """Sixteen columns, six at a time: every piece there is costs less than a model."""
    stream = settled(16, 6)
    assert lattice_units(16, 6, 1e12) < WORTH * model_units(tuple(SIXTEEN), SIXTEEN)
    assert not any(stream.pays(SIXTEEN, to_come=10**power, spent=0.0) for power in range(13))


def test_it_pays_from_the_number_of_questions_at_which_the_forecast_says_so():
    stream = settled(40, 8)
    price = WORTH * model_units(tuple(FORTY), FORTY)
    low, high = 1, 10**6
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stream.pays(FORTY, to_come=middle, spent=0.0) else (middle, high)
    for to_come, pays in ((low, False), (high, True)):
        ahead = lattice_units(40, 8, 400 + to_come) - lattice_units(40, 8, 400)
        assert (ahead > price) == pays


def test_if_nobody_said_how_many_it_pays_once_as_much_was_spent():
    stream, price = settled(40, 8), model_units(tuple(FORTY), FORTY)
    assert not stream.pays(FORTY, to_come=None, spent=price - 1)
    assert stream.pays(FORTY, to_come=None, spent=price)


def test_it_waits_until_no_new_column_came_for_a_while():
    stream = Stream()
    for _ in range(SETTLED):
        stream.see(conjunction(range(8)))
        assert not stream.pays(FORTY, to_come=None, spent=1e9)
    stream.see(conjunction(range(8)))
    assert stream.pays(FORTY, to_come=None, spent=1e9)
    stream.see(conjunction([1, 2, 39]))
    assert not stream.pays(FORTY, to_come=None, spent=1e9)


def test_narrow_questions_say_nothing():
    stream = Stream()
    for place in range(39):
        stream.see(conjunction([place]))
        stream.see(conjunction([place, place + 1]))
    assert stream == Stream()
    assert stream.width == 0.0


def test_a_stream_remembers_widths_columns_and_weights():
    stream = Stream()
    stream.see(conjunction([0, 1, 2]))
    stream.see(conjunction([1, 2, 3, 4, 5], cell=0))
    assert (stream.asked, stream.width) == (2, 4.0)
    assert stream.columns == {"x00": 1, "x01": 2, "x02": 2, "x03": 1, "x04": 1, "x05": 1}
    assert [factor.columns for factor in stream.factors["x01"]] == [("x01",), ("x01",)]
    assert len(stream.factors["x00"]) == 1
