"""One-off answers: right, paid for, and refused before anything is drawn."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.mechanism import laplace
from discreet.noise import sample
from support.statistics import assert_follows, assert_rate_at_least

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
    assert answer.cost == dp.accounting.Laplace(Fraction(1, 50), Fraction(1))


def test_a_condition_may_be_a_text():
    assert dp.count(PEOPLE, "age >= 65 AND sex = 'F'", epsilon=50).value == 25


VISITS = dp.open(
    {"hours": [1, 2, 3, 4, None] * 40, "sex": ["F", "M", "F", "M", "F"] * 40},
    schema=dp.Schema("visits", dp.Domain({"hours": dp.Integers(0, 9), "sex": dp.Categories(["F", "M"])})),
)


def test_sql_gives_a_table_with_an_error_beside_each_number():
    answer = dp.ask(
        VISITS, "SELECT sex, COUNT(*) AS n, SUM(hours), AVG(hours) AS mean FROM visits GROUP BY sex", epsilon=4_000
    )
    frame = answer.to_frame()
    assert list(frame.columns) == ["sex", "n", "n_error", "sum_hours", "sum_hours_error", "mean", "mean_error"]
    assert frame["sex"].tolist() == ["F", "M", "other"]
    assert frame["n"].tolist() == [120, 80, 0]
    assert frame["sum_hours"].tolist() == [160, 240, 0]
    assert frame["mean"].tolist()[:2] == [2.0, 3.0]
    assert frame["mean"].isna().tolist() == [False, False, True], "there is no mean of no values"
    assert answer.to_frame("polars").equals(pl.DataFrame(answer.to_arrow()))
    assert [part.tolist() for part in answer.value][:2] == [[120, 80, 0], [160, 240, 0]]


def test_all_numbers_of_a_statement_share_one_epsilon():
    """An average is of 0 to 9 here: its sum is taken of the distances from 4, which move by 5 at most."""
    answer = dp.ask(VISITS, "SELECT COUNT(*), AVG(hours) FROM visits", epsilon=3)
    assert answer.cost == dp.accounting.Compose(
        (
            dp.accounting.Laplace(Fraction(1), Fraction(1)),
            dp.accounting.Laplace(Fraction(5), Fraction(5)),
            dp.accounting.Laplace(Fraction(1), Fraction(1)),
        )
    )
    assert dp.accounting.epsilon(answer.cost, delta=0, by="pure") == 3


def test_what_is_shown_is_chosen_by_released_numbers_and_none_may_be_left():
    top = dp.ask(VISITS, "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex ORDER BY n DESC LIMIT 1", epsilon=50)
    assert top.columns["sex"] == ["F"]
    none = dp.ask(VISITS, "SELECT COUNT(*) AS n FROM visits HAVING n > 1000000", epsilon=1)
    assert none.to_frame().empty
    assert none.value.tolist() == []


def test_the_error_bar_of_an_average_holds_as_often_as_it_says():
    answers = [dp.ask(VISITS, "SELECT AVG(hours) FROM visits", epsilon=1, confidence=0.8) for _ in range(1_500)]
    held = sum(answer.value is None or abs(answer.value - 2.5) <= answer.error for answer in answers)
    assert_rate_at_least(held, 1_500, 0.8)
    assert all(0 <= answer.value <= 9 for answer in answers if answer.value is not None)


def test_error_bars_hold_for_the_rows_that_a_limit_chooses():
    """The largest of many noisy counts is large because its noise is: an error for one count alone would not hold."""
    domain = dp.Domain({"cell": dp.Integers(0, 49, missing="drop")})
    flat = dp.open({"cell": list(range(50)) * 20}, schema=dp.Schema("flat", domain))
    sql = "SELECT cell, COUNT(*) AS n FROM flat GROUP BY cell ORDER BY n DESC LIMIT 1"
    answers = [dp.ask(flat, sql, epsilon=0.5, confidence=0.8) for _ in range(400)]
    assert_rate_at_least(sum(abs(answer.value[0] - 20) <= answer.error[0] for answer in answers), 400, 0.8)
    alone = laplace(epsilon=0.5, sensitivity=1).error(0.8)
    assert sum(abs(answer.value[0] - 20) <= alone for answer in answers) < 100, "the power of this test"


def test_an_answer_says_what_it_is():
    answer = dp.count(PEOPLE, epsilon=50)
    assert str(answer) == "100 ± 0 (95 %)"
    assert answer.neighbors == "one row is added or removed"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda: dp.count(PEOPLE, "age >= 66", epsilon=1), dp.BadQuery),
        (lambda: dp.count(PEOPLE, "aeg >= 65", epsilon=1), dp.BadQuery),
        (lambda: dp.count(PEOPLE, 65, epsilon=1), dp.BadQuery),
        (lambda: dp.ask(PEOPLE, "SELECT * FROM data", epsilon=1), dp.BadQuery),
        (lambda: dp.ask(PEOPLE, "SELECT COUNT(*) FROM people", epsilon=1), dp.BadQuery),
        (lambda: dp.ask(PEOPLE, "SELECT COUNT(*) FROM data", epsilon=0), dp.BadParameter),
        (lambda: dp.ask(PEOPLE, "SELECT AVG(age) FROM data", epsilon=1), dp.BadQuery),
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
