from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadSchema
from discreet.schema import Bins, Boolean, Categories, Integers

MISSING = [None, nan, np.nan, pd.NA, pd.NaT, Decimal("nan"), Decimal("sNaN"), np.datetime64("NaT"), np.ma.masked]
DAY = date(2024, 2, 29)

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.text(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.binary(),
    st.lists(st.integers()),
    st.sampled_from([pd.NA, pd.NaT, np.int8(1), np.float32(0.1), np.datetime64("2024-02-29T12"), object(), 1j]),
    st.sampled_from([2**63 - 1, 2**64, -(2**63), Decimal("1e999999"), Decimal("-1e-999999"), Decimal("-Infinity")]),
)
columns = st.sampled_from(
    [
        Categories(["a", "b", ""]),
        Categories([1, True, "1", DAY, 0.5], outside="drop", missing="missing"),
        Categories(["low", "high"], ordered=True, outside="low", missing="drop"),
        Boolean(),
        Boolean(missing="missing", outside="drop"),
        Integers(-3, 4),
        Integers(0, 0, outside="other", missing="drop"),
        Integers(-(2**63), -(2**63) + 1, missing=-(2**63)),
        Bins([17, 25, 65], upper=90),
        Bins([0.1, Decimal("0.3"), 1], upper=2.5, outside="drop"),
        Bins([date(2024, 1, 1), DAY], upper=date(2024, 12, 31), outside="other"),
    ]
)


@given(columns, anything)
def test_every_value_has_a_cell_or_is_dropped_and_none_raises(column, value):
    cell = column.code(value)
    assert cell in range(column.size) if cell is not None else column.drops


@given(columns, anything)
def test_a_column_without_drop_keeps_every_row(column, value):
    assert column.drops or column.code(value) is not None


@given(columns)
def test_there_is_one_label_for_each_cell(column):
    assert len(column.labels) == len(set(column.labels)) == column.size == column.inside + len(column.extra)


@pytest.mark.parametrize("value", MISSING)
def test_whatever_a_library_calls_missing_is_missing(value):
    assert Integers(0, 9).code(value) == 10
    assert Categories(["a"], missing="missing").code(value) == 2
    assert Bins([0, 5], upper=9, missing=7).code(value) == 1
    assert Categories(["a"], missing="drop").code(value) is None


def test_an_empty_text_is_a_text_and_not_missing():
    assert Categories(["", "a"]).code("") == 0
    assert Categories(["a"], missing="missing").code("") == 1


def test_kinds_never_mix():
    column = Categories([1, "1", True, DAY])
    assert [column.code(value) for value in (1, "1", True, DAY)] == [0, 1, 2, 3]
    assert Categories([1]).code(True) == Categories([1]).code("1") == 1
    assert Categories([True, "x"]).code(1) == 2
    assert Integers(0, 1).labels[Integers(0, 1).code(True)] == "missing"
    assert Integers(0, 9).labels[Integers(0, 9).code("3")] == "missing"


def test_equal_numbers_are_one_value_whatever_holds_them():
    column = Categories([0, 1, 0.5])
    assert {column.code(one) for one in (1, 1.0, Decimal(1), Fraction(1), np.int8(1), np.float32(1))} == {1}
    assert {column.code(half) for half in (0.5, Decimal("0.50"), Fraction(1, 2), np.float16(0.5))} == {2}


def test_a_boolean_column_reads_zero_and_one_and_counts_what_is_not_true_as_false():
    column = Boolean()
    assert [column.code(value) for value in (True, 1, 1.0, np.True_)] == [1, 1, 1, 1]
    assert [column.code(value) for value in (False, 0, None, 2, "True", nan)] == [0] * 6
    assert column.size == 2
    assert not column.drops


def test_columns_of_booleans_and_of_numbers_are_different_although_python_says_true_is_one():
    assert Categories([True]) != Categories([1])
    assert Categories([0, 1], outside=0) != Categories([0, 1], outside=1)
    assert Categories([1]) == Categories([1.0])
    assert hash(Categories([1])) == hash(Categories([1.0]))
    assert Bins([0, 1], upper=2) != Bins([0.0, 1.0], upper=2.0)


@given(st.floats(allow_nan=False) | st.integers() | st.decimals(allow_nan=False, places=3))
def test_integers_round_down_and_clip_to_the_nearest_end(value):
    assert Integers(-5, 5).code(value) == min(max(np.floor(float(value)), -5), 5) + 5


@given(st.floats(allow_nan=False))
def test_a_float_lies_in_the_bin_of_the_decimal_it_prints_as(value):
    column = Bins([Decimal("0.1"), Decimal("0.3"), Decimal("0.7")], upper=Decimal("0.9"))
    printed = Decimal(repr(value))
    assert column.code(value) == max(sum(printed >= edge for edge in column.starts) - 1, 0)


def test_the_float_of_a_decimal_edge_lies_on_the_edge():
    assert Bins([0, Decimal("0.3")], upper=1).code(0.3) == 1
    assert Bins([0.0, 0.3], upper=1).code(Decimal("0.3")) == 1


def test_the_last_bin_includes_the_upper_end():
    column = Bins([0.0, 1.5], upper=2.5, outside="drop")
    assert [column.code(value) for value in (0, 1.5, 2.5, 2.5000001, -0.001, inf)] == [0, 1, 1, None, None, None]
    assert Bins([0, 10], upper=20, outside="drop").code(20.9) == 1, "between integers a fraction is rounded down"


def test_a_time_stamp_is_its_calendar_day_where_it_was_written():
    column = Bins([date(1969, 12, 31), DAY], upper=date(2024, 12, 31), outside="drop")
    late = datetime(2024, 2, 28, 23, 59, tzinfo=timezone(timedelta(hours=-8)))
    assert column.code(late) == column.code(pd.Timestamp(late)) == 0
    assert column.code(np.datetime64("2024-02-29T00:00:00.000000001")) == 1
    assert column.code(np.datetime64("1969-12-31T23:00")) == 0
    assert column.code(np.datetime64("1969-12-30T23:00")) is None
    assert column.code("2024-02-29") == column.code(20240229) == 2, "what is not a date counts as missing"


def test_a_time_stamp_at_midnight_may_be_an_edge():
    column = Bins([pd.Timestamp("2024-01-01"), np.datetime64("2024-02-29")], upper=datetime(2024, 12, 31))
    assert column == Bins([date(2024, 1, 1), DAY], upper=date(2024, 12, 31))


def test_a_rule_that_names_a_value_means_that_value_and_adds_no_cell():
    column = Categories(["other", "a"])
    assert (column.size, column.code("zzz"), column.code(None)) == (2, 0, 0)
    assert Categories(["a", "missing"], outside="drop", missing="missing").code(None) == 1


def test_other_and_missing_are_the_last_cells_in_this_order():
    assert Categories(["a"], missing="missing").labels == ("a", "other", "missing")
    assert Integers(1, 2, outside="other").labels == ("1", "2", "other", "missing")


def test_labels_of_bins_say_what_is_in_them():
    assert Bins([1, 2, 5], upper=5).labels == ("1", "2 to 4", "5", "missing")
    assert Bins([0, 0.5], upper=2).labels == ("[0, 0.5)", "[0.5, 2]", "missing")
    assert Bins([DAY, date(2024, 3, 2)], upper=date(2024, 3, 2)).labels[:2] == (
        "2024-02-29 to 2024-03-01",
        "2024-03-02",
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Categories([]), "empty"),
        (lambda: Categories("abc"), "list"),
        (lambda: Categories({"a", "b"}), "order"),
        (lambda: Categories(["a", "a"]), "'a' twice"),
        (lambda: Categories([1, 1.0]), "1.0 twice"),
        (lambda: Categories([None]), "missing"),
        (lambda: Categories([nan]), "nan"),
        (lambda: Categories([inf]), "inf"),
        (lambda: Categories([("a",)]), "category"),
        (lambda: Categories(["a"], outside="clip"), "clip"),
        (lambda: Categories(["a"], outside="b"), "outside is 'b'"),
        (lambda: Categories(["drop"], outside="drop"), "Rename"),
        (lambda: Categories([1], missing=True), "missing is True"),
        (lambda: Integers(2, 1), "lower is 2"),
        (lambda: Integers(0, 1.5), "1.5"),
        (lambda: Integers(False, 1), "False"),
        (lambda: Integers(0, 2**63), "64 bits"),
        (lambda: Integers(0, 2**31), "Bins"),
        (lambda: Integers(0, 1, missing="outside"), "outside"),
        (lambda: Integers(0, 1, missing=7), "7"),
        (lambda: Bins([], upper=1), "empty"),
        (lambda: Bins([1, 1], upper=2), "not above"),
        (lambda: Bins([2, 1], upper=3), "not above"),
        (lambda: Bins([1, 2], upper=1), "upper is 1"),
        (lambda: Bins([0, inf], upper=inf), "inf"),
        (lambda: Bins([0, nan], upper=1), "nan"),
        (lambda: Bins([0, DAY], upper=DAY), "all dates"),
        (lambda: Bins(["a"], upper="b"), "'a'"),
        (lambda: Bins([True], upper=2), "True"),
        (lambda: Bins([datetime(2024, 1, 1, 12)], upper=DAY), "time of day"),
        (lambda: Categories([datetime(2024, 1, 1, 12)]), "a day"),
    ],
)
def test_a_column_that_makes_no_sense_is_refused_by_name(make, said):
    with pytest.raises(BadSchema, match=said):
        make()


@given(columns)
def test_the_repr_of_a_column_makes_it_again(column):
    import datetime

    names = {"Categories": Categories, "Integers": Integers, "Bins": Bins, "datetime": datetime, "Decimal": Decimal}
    assert eval(repr(column), names) == column


def test_bins_are_the_same_if_their_edges_are_whatever_they_are_written_as():
    assert Bins([0, 0.1], upper=1) == Bins([Decimal(0), Decimal("0.1")], upper=Decimal(1))
    assert Bins([0, 1], upper=2) != Bins([0, Decimal(1)], upper=2), "between integers, numbers are rounded down"
    assert Bins([0, 0.1], upper=1) != Bins([0, 0.2], upper=1)
    assert hash(Bins([0, 0.1], upper=1)) == hash(Bins([0, Decimal("0.1")], upper=1))
