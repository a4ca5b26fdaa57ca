"""Anything that answers can be attacked: a function, a curator, a release, a server."""

from math import isnan

import pytest

import discreet as dp
from discreet.errors import BadParameter
from discreet.lab.attack.experiments import new_curator
from discreet.lab.attack.target import answering, laplace_wish, rounded
from discreet.mechanism import laplace
from discreet.query import count


def test_a_curator_is_asked_until_its_budget_is_gone_and_then_for_what_is_known(coins):
    old = count(coins.domain, dp.col("age") >= 40)
    young = count(coins.domain, dp.col("age") < 30)
    with new_curator(coins, 1) as desk:
        answer = answering(desk, epsilon=1)
        first = answer(old)
        assert isnan(answer(young))
        assert answer(old) == first
        assert desk.remaining.epsilon < 0.02


def test_a_curator_with_a_delta_is_asked_by_price(coins):
    with new_curator(coins, 1, 1e-6) as desk:
        value = answering(desk, epsilon=0.5)(count(coins.domain, dp.col("age") >= 40))
        assert not isnan(value)
        assert 0.4 < float(desk.spent.epsilon) <= 0.5


def test_a_release_is_asked_for_free(coins):
    asked = count(coins.domain, dp.col("age") >= 40)
    with new_curator(coins, 4, 1e-6) as desk:
        release = desk.release([("age",)], dp.Budget(epsilon=2, delta=1e-6), method="direct")
        left = desk.remaining
        assert answering(release)(asked) == release.answer(asked).value
        assert desk.remaining == left
    assert abs(release.answer(asked).value - coins.exact(asked)) < 60


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1, 2.5])
def test_the_wish_for_a_price_is_that_of_a_laplace_count(epsilon):
    wish = laplace_wish(epsilon)
    assert laplace(epsilon=epsilon, sensitivity=1).error(wish["confidence"]) <= wish["error"]
    assert laplace(epsilon=0.95 * epsilon, sensitivity=1).error(wish["confidence"]) > wish["error"]


def test_rounding_is_to_the_nearest(coins):
    assert rounded(lambda query: 12.4, to=5)(None) == 10
    assert rounded(lambda query: 12.6, to=5)(None) == 15


def test_what_cannot_answer_is_refused():
    with pytest.raises(BadParameter, match="must answer questions"):
        answering(7)


@pytest.mark.parametrize("price", [{}, {"epsilon": 1, "error": 3}])
def test_a_curator_is_asked_at_one_price(coins, price):
    with new_curator(coins, 1) as desk, pytest.raises(BadParameter, match="one of them"):
        answering(desk, **price)
