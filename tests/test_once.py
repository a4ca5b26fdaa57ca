"""One-off answers: right, paid for, and refused before anything is drawn."""

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.mechanism import laplace
from discreet.noise import sample
from statistical import assert_follows, assert_rate_at_least

PEOPLE = dp.open(
    {"age": [31, 64, 70, 71] * 25, "sex": ["F", "M", "F", "X"] * 25},
    domain=dp.Domain({"age": dp.Bins((0, 65), upper=99, missing="drop"), "sex": dp.Categories(["F", "M"])}),
)


def test_a_count_is_the_truth_plus_the_noise_it_says():
    draws = np.array([dp.count(PEOPLE, dp.col("age") >= 65, epsilon=1).value for _ in range(3_000)])
    law = laplace(epsilon=1, sensitivity=1).law([50])
    assert_follows(draws, {outcome: float(mass) for (outcome,), mass in law.probabilities.items()})


def test_the_error_bar_holds_as_often_as_it_says():
    answers = [dp.count(PEOPLE, epsilon=0.2, confidence=0.8) for _ in range(2_000)]
    held = sum(abs(answer.value - 100) <= answer.error for answer in answers)
    assert_rate_at_least(held, 2_000, 0.8)


def test_a_histogram_has_the_shape_of_its_columns_and_one_price():
    answer = dp.histogram(PEOPLE, "sex", "age", epsilon=50)
    assert answer.value.tolist() == [[25, 25], [25, 0], [0, 25]]
    assert answer.cost == dp.privacy.Laplace(Fraction(1, 50), Fraction(1))


def test_an_answer_says_what_it_is():
    answer = dp.count(PEOPLE, epsilon=50)
    assert str(answer) == "100 ± 0 (95 %)"
    assert answer.neighbors == "one row is added or removed"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: dp.count(PEOPLE, "age >= 65", epsilon=1), dp.BadQuery),
        (lambda: dp.count(PEOPLE, dp.col("aeg") >= 65, epsilon=1), dp.BadQuery),
        (lambda: dp.count(PEOPLE, epsilon=0), dp.BadParameter),
        (lambda: dp.count(PEOPLE, epsilon=1, confidence=1), dp.BadParameter),
        (lambda: dp.histogram(PEOPLE, epsilon=1), dp.BadQuery),
        (lambda: dp.histogram(PEOPLE, "height", epsilon=1), dp.BadQuery),
        (lambda: dp.histogram(PEOPLE, "sex", "sex", epsilon=1), dp.BadQuery),
    ],
)
def test_what_is_refused_is_refused_before_a_row_is_read_or_noise_is_drawn(monkeypatch, ask, error):
    def forbidden(*_):
        raise AssertionError("a row was read or noise was drawn")

    monkeypatch.setattr(dp.Table, "evaluate", forbidden)
    monkeypatch.setattr(sample, "draw", forbidden)
    with pytest.raises(error):
        ask()
