"""Answers: means with errors that follow from those of their parts, and tables that people can read."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.answer import Answer, mean_of
from discreet.errors import BadParameter


@given(
    values=st.lists(st.integers(-3, 5), min_size=1, max_size=20),
    moves=st.tuples(st.integers(-40, 40), st.integers(-10, 10)),
    slack=st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_if_both_parts_are_within_their_errors_the_mean_is_within_its_own(values, moves, slack):
    total, number = sum(values) + moves[0], len(values) + moves[1]
    errors = abs(moves[0]) + slack[0], abs(moves[1]) + slack[1]
    value, error = mean_of(total, errors[0], number, errors[1], -3, 5)
    if value is None:
        assert number <= 0
        assert error == 8
    else:
        assert -3 <= value <= 5
        assert abs(value - sum(values) / len(values)) <= error + 1e-12


def test_the_error_of_a_mean_is_no_wider_than_it_must_be():
    value, error = mean_of(400, 20, 100, 5, 0, 9)
    worst = max(abs(total / number - value) for total, number in product((380, 420), (95, 105)))
    assert error == pytest.approx(worst)
    assert mean_of(400, 0, 100, 0, 0, 9) == (4.0, 0.0)


def table(rows):
    columns = {"city": ["Zürich"] * rows, "n": list(range(1_000, 1_000 + rows)), "n_error": [3.0] * rows}
    return Answer(columns["n"], columns["n_error"], 0.95, cost=None, neighbors="", columns=columns)


def test_a_table_is_printed_with_numbers_to_the_right_and_its_beginning_only():
    assert str(table(2)) == "city        n  n_error\nZürich  1,000        3\nZürich  1,001        3\n(95 %)"
    assert "… and 88 more rows" in str(table(100))


def test_frames_are_of_pandas_or_polars():
    assert table(2).to_frame("polars")["n"].to_list() == [1_000, 1_001]
    assert table(2).to_frame()["n"].tolist() == [1_000, 1_001]
    with pytest.raises(BadParameter, match="to_arrow"):
        table(2).to_frame("spark")
