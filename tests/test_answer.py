"""Answers: means with errors that follow from those of their parts, and tables that people can read."""

from itertools import product
from math import inf
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.answer import Answer, bar_text, error_text, mean_of, number_text
from discreet.errors import BadParameter
from discreet.ledger import Budget


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


def table(rows, **options):
    columns = {"city": ["Zürich"] * rows, "n": list(range(1_000, 1_000 + rows)), "n_error": [300.0] * rows}
    return Answer(columns["n"], columns["n_error"], 0.95, cost=None, neighbors="", columns=columns, **options)


def number(value, error, **options):
    return Answer(value, error, 0.95, cost=None, neighbors="", **options)


LEFT = Budget(epsilon=0.98765, delta=1e-9)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (number(701, 30.0), "701 ± 30 (95 %)"),
        (number(1346.2, 199.9999, origin="known", remaining=LEFT), "1,346 ± 200 (95 %), known: free"),
        (number(-0.3, 16612.3, origin="measured", remaining=LEFT), "0 ± 16,700 (95 %), measured; epsilon 0.988 left"),
        (
            number(37.2901, 0.91702, origin="direct", remaining=LEFT),
            "37.290 ± 0.918 (95 %), measured directly; epsilon 0.988 left",
        ),
        (number(2, 20000.0, origin="mixed", remaining=LEFT), "2 ± 20,000 (95 %), measured; epsilon 0.988 left"),
        (number(None, 98.0), "none (95 %)"),
        (number(50.0, inf), "unknown (95 %)"),
        (number(12.5, 0.0), "12.5 ± 0 (95 %)"),
    ],
)
def test_a_number_is_one_short_line(answer, line):
    assert str(answer) == line
    assert answer._repr_html_() == f"<span>{line}</span>"


@given(error=st.floats(1e-6, 1e12), value=st.floats(-1e12, 1e12))
def test_an_error_is_never_shown_smaller_and_seldom_much_larger(error, value):
    shown = error_text(error)
    assert error * (1 - 2e-6) <= float(shown.replace(",", "")) <= error * 1.0101
    assert ("e" in shown) == (error >= 1e9)
    assert number_text(value, error).endswith(f" ± {shown}")


def test_a_table_has_bars_with_errors_and_its_beginning_only():
    assert str(table(2)).splitlines() == [
        "city    n",
        "Zürich  ███████████████▒▒▒▒▒▒┼─────┤ 1,000 ± 300",
        "Zürich  ███████████████▒▒▒▒▒▒┼─────┤ 1,001 ± 300",
        "(95 %)",
    ]
    assert str(table(13, origin="known", remaining=LEFT)).splitlines()[-2:] == [
        "… and 1 more row",
        "(95 %), known: free",
    ]
    assert "… and 88 more rows" in str(table(100))
    assert str(table(0)) == "city  n\n(95 %)"


@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.floats(-1e6, 1e6)), st.one_of(st.just(inf), st.floats(0, 1e6))), max_size=14
    ),
    label=st.text(max_size=60),
)
def test_whatever_the_numbers_a_table_can_be_drawn_and_is_not_wider_than_a_terminal(rows, label):
    columns = {"a": [label] * len(rows), "n": [row[0] for row in rows], "n_error": [row[1] for row in rows]}
    answer = Answer(columns["n"], columns["n_error"], 0.95, cost=None, neighbors="", columns=columns)
    lines = str(answer).split("\n")
    assert len(lines) == min(len(rows), 12) + 2 + (len(rows) > 12)
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    ElementTree.fromstring(answer._repr_html_())


def test_several_numbers_stand_beside_each_other():
    columns = {"sex": ["Female", None], "n": [5, 12_345], "n_error": [3.0, 3.0]}
    columns |= {"age": [38.123, None], "age_error": [0.1234, 70.0]}
    answer = Answer((columns["n"], columns["age"]), ((3, 3), (1, 70)), 0.9, cost=None, neighbors="", columns=columns)
    assert str(answer).splitlines() == [
        "sex               n             age",
        "Female        5 ± 3  38.123 ± 0.124",
        "missing  12,345 ± 3    none",
        "(90 %)",
    ]
    one = {"n": [48_842], "n_error": [5.0], "age": [38.6], "age_error": [0.5]}
    answer = Answer((48_842, 38.6), (5.0, 0.5), 0.95, cost=None, neighbors="", columns=one)
    assert str(answer).splitlines()[1] == "48,842 ± 5  38.60 ± 0.5"


def test_a_bar_ends_at_its_number_and_its_error_on_both_sides():
    assert bar_text(50, 20, (0, 100), 11) == "███▒▒┼─┤   "
    assert bar_text(-50, 20, (-100, 0), 11) == "   ├─┼▒▒██ "
    assert bar_text(0, 20, (-100, 100), 11) == "    ├┼┤    "
    assert bar_text(None, 20, (0, 100), 11) == bar_text(5, inf, (0, 100), 11) == " " * 11


def test_a_chart_has_a_bar_and_an_error_for_each_row_and_escapes_its_texts():
    columns = {"<b>": ["<script>", "a & b"], "n": [10, -4], "n_error": [3.0, 2.0]}
    answer = Answer([10, -4], [3.0, 2.0], 0.95, cost=None, neighbors="", columns=columns)
    drawn = answer._repr_html_()
    assert "<script" not in drawn
    assert "<b>" not in drawn
    chart = ElementTree.fromstring(drawn).find("{http://www.w3.org/2000/svg}svg")
    rectangles = chart.findall("{http://www.w3.org/2000/svg}rect")
    assert [float(each.get("width")) for each in rectangles] == pytest.approx([220 * 10 / 17, 220 * 4 / 17], abs=0.1)
    assert sum("H" in path.get("d") for path in chart.iter("{http://www.w3.org/2000/svg}path")) == 2
    texts = [each.text for each in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["<b>", "<script>", "a & b", "n", "10 ± 3", "-4 ± 2"]
    assert table(100)._repr_html_().count("<rect") == 40


def test_an_array_without_columns_is_shown_too():
    assert str(Answer(np.array([1, 2]), 3.0, 0.95, cost=None, neighbors="")).splitlines()[1:] == [
        "1 ± 3",
        "2 ± 3",
        "(95 %)",
    ]


def test_frames_are_of_pandas_or_polars():
    assert table(2).to_frame("polars")["n"].to_list() == [1_000, 1_001]
    assert table(2).to_frame()["n"].tolist() == [1_000, 1_001]
    with pytest.raises(BadParameter, match="to_arrow"):
        table(2).to_frame("spark")
