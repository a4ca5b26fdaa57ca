from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadQuery, TooLarge
from discreet.query import col, everyone
from discreet.query.predicate import mask_of
from discreet.schema import Bins, Boolean, Categories, Domain, Integers
from support.strategies import combined

DAY = date(2024, 2, 29)
PEOPLE = Domain(
    {
        "age": Bins([17, 25, 65], upper=90),
        "sex": Categories(["Female", "Male"]),
        "grade": Categories(["low", "middle", "high"], ordered=True, missing="missing"),
        "hours": Integers(1, 5),
        "rate": Bins([0, Decimal("0.3"), 0.5], upper=1),
        "since": Bins([date(2024, 1, 1), DAY, date(2024, 3, 1)], upper=date(2024, 12, 31)),
        "smoker": Boolean(),
    }
)


def cells(predicate):
    return np.flatnonzero(mask_of(predicate, PEOPLE)).tolist()


atoms = st.one_of(
    st.builds(lambda value: col("hours") >= value, st.integers(-5, 9)),
    st.builds(lambda values: col("sex").isin(values), st.lists(st.sampled_from(["Female", "Male"]))),
    st.just(col("grade").is_missing()),
    st.just(col("since") < DAY),
    st.just(col("rate") >= Decimal("0.3")),
    st.just(everyone),
)
predicates = combined(atoms, max_leaves=8)


@given(predicates)
def test_the_repr_of_a_predicate_is_the_expression_that_makes_it(predicate):
    import datetime

    names = {"col": col, "everyone": everyone, "datetime": datetime, "Decimal": Decimal}
    again = eval(repr(predicate), names)
    assert again == predicate
    assert hash(again) == hash(predicate)


def test_predicates_compare_by_structure():
    assert (col("age") >= 65) == (col("age") >= 65.0)
    assert (col("age") >= 65) != (col("age") > 65)
    assert (col("smoker") == True) != (col("smoker") == 1)  # noqa: E712
    assert len({col("sex").isin(["a", "b"]), col("sex").isin(("a", "b")), col("sex").isin(["a"])}) == 2
    assert ~~(col("age") >= 65) == (col("age") >= 65)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: 17 <= col("hours") < 65,
        lambda: (col("hours") > 3) and (col("sex") == "Male"),
        lambda: not (col("hours") > 3),
        lambda: bool(col("smoker")),
        lambda: everyone and everyone,
    ],
)
def test_python_cannot_silently_drop_half_of_a_question(ask):
    with pytest.raises(BadQuery, match=r"& \| ~|Compare it"):
        ask()


def test_the_value_may_stand_on_either_side_and_come_from_numpy():
    three, also_three = 3, np.int64(3)
    assert (three <= col("hours")) == (also_three <= col("hours")) == (col("hours") >= also_three)
    assert repr(np.int64(3) <= col("hours")) == "col('hours') >= 3"


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), [1], col("age"), b"x", datetime(2024, 1, 1, 12)])
def test_nothing_is_compared_with_what_is_not_a_value(value):
    with pytest.raises(BadQuery, match='"hours" is compared with'):
        col("hours") == value  # noqa: B015


@given(st.integers(-3, 9) | st.floats(-3, 9) | st.decimals(-3, 9, places=2))
def test_comparisons_of_integers_mean_what_they_say(value):
    hours = range(1, 6)
    assert cells(col("hours") < value) == [hour - 1 for hour in hours if hour < value]
    assert cells(col("hours") <= value) == [hour - 1 for hour in hours if hour <= value]
    assert cells(col("hours") > value) == [hour - 1 for hour in hours if hour > value]
    assert cells(col("hours") >= value) == [hour - 1 for hour in hours if hour >= value]
    if value in hours:
        assert cells(col("hours") == value) == [value - 1]
        assert cells(col("hours") != value) == [hour - 1 for hour in hours if hour != value]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("age") >= 65, [2]),
        (col("age") > 64, [2]),
        (col("age") < 65, [0, 1]),
        (col("age") <= 24, [0]),
        (col("age") <= 90, [0, 1, 2]),
        (col("age") > 90, []),
        (col("age") >= 17, [0, 1, 2]),
        (col("age") < 0, []),
        (col("age") >= 64.5, [2]),
        (col("rate") >= 0.3, [1, 2]),
        (col("rate") < 0.5, [0, 1]),
        (col("rate") <= 1, [0, 1, 2]),
        (col("rate") > 1, []),
        (col("rate") < 0, []),
        (col("since") == DAY, [1]),
        (col("since") != DAY, [0, 2]),
        (col("since") <= DAY, [0, 1]),
        (col("since") >= date(2024, 3, 1), [2]),
        (col("grade") >= "middle", [1, 2]),
        (col("grade") < "middle", [0]),
        (col("grade").is_missing(), [4]),
        (col("sex") == "Male", [1]),
        (col("sex") != "Male", [0]),
        (col("sex").isin([]), []),
        (col("smoker") == True, [1]),  # noqa: E712
        (col("age") == "25 to 64", [1]),
        (col("age") != "25 to 64", [0, 2]),
        (col("age").isin(["65 to 90", "missing"]), [2, 3]),
        (col("rate") == "[0.3, 0.5)", [1]),
        (col("since") == "2024-01-01 to 2024-02-28", [0]),
        (col("since") == "2024-02-29", [1]),
        (col("sex") == "other", [2]),
        (col("sex") != "other", [0, 1]),
        (col("grade") == "missing", [4]),
        (col("hours") == "missing", [5]),
        (col("hours") != "missing", [0, 1, 2, 3, 4]),
    ],
)
def test_an_atom_is_the_cells_that_satisfy_it_and_no_extra_cell_unless_by_its_label(predicate, expected):
    assert cells(predicate) == expected


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        (col("aeg") >= 65, 'did you mean "age"'),
        (col("sex") == "Femal", 'did you mean "Female"'),
        (col("sex") == 1, 'no value 1; it has "Female", "Male"'),
        (col("sex") < "Male", "the owner can declare an order"),
        (col("sex").is_missing(), "Leave this condition out"),
        (col("age") >= 30, "nearest edges, 25 or 65"),
        (col("age") < 80, "nearest edges, 65 or 90"),
        (col("age") == 30, "25 to 64 together"),
        (col("age") == 200, "no value 200"),
        (col("age") >= "old", "holds numbers"),
        (col("rate") > 0.3, "nearest edges, 0.3 or 0.5"),
        (col("rate") <= 0, "nearest edges, 0 or 0.3"),
        (col("rate") == 0.3, "together"),
        (col("since") >= date(2024, 6, 1), "nearest edges, 2024-03-01 or 2024-12-31"),
        (col("since") >= 3, "holds dates"),
        (col("hours") == 6, "from 1 to 5"),
        (col("hours") == 2.5, "no value 2.5"),
        (col("hours") == True, "holds numbers"),  # noqa: E712
        (col("grade") >= "other", "no value 'other'"),
        (col("age") == "25 to 65", 'no bin .* did you mean "25 to 64"'),
        (col("age") > "25 to 64", "Compare it with a number"),
        (col("hours") == "3", "holds numbers"),
        (col("sex") == "missing", "no value 'missing'"),
    ],
)
def test_a_question_that_the_cells_cannot_answer_is_refused_with_the_next_step(predicate, said):
    with pytest.raises(BadQuery, match=said):
        mask_of(predicate, PEOPLE)


def test_a_declared_value_is_meant_before_a_label():
    domain = Domain({"x": Categories(["other", "missing"], outside="drop", missing="drop")})
    assert mask_of(col("x") == "other", domain).tolist() == [True, False]
    one = Domain({"x": Bins([0, 1, 2], upper=2)})
    assert mask_of(col("x") == 1, one).tolist() == mask_of(col("x") == "1", one).tolist()


def test_isin_takes_a_list_and_not_a_text():
    with pytest.raises(BadQuery, match="list"):
        col("sex").isin("Male")


def test_a_column_with_too_many_cells_for_a_mask_is_refused_with_numbers():
    with pytest.raises(TooLarge, match="100000002 cells"):
        mask_of(col("x") > 3, Domain({"x": Integers(0, 10**8)}))
