"""What could fail after paying is refused before: names, types and operators of HAVING, ORDER BY and LIMIT."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadQuery, DiscreetError
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Not, Or, col, everyone
from discreet.query.statement import Aggregate, Group, Order, Select, check_statement
from discreet.schema import Boolean, Categories, Domain, Integers

DOMAIN = Domain(
    {
        "age": Integers(0, 3, missing="missing"),
        "sex": Categories(["F", "M"]),
        "ill": Boolean(),
        "count_error": Integers(0, 1),
        "Sex": Boolean(),
    }
)
COUNT = Aggregate("count", None, "count")


def select(*items, group=(), **more):
    return Select("people", tuple(items) or (COUNT,), group=tuple(group), **more)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (select(having=col("count") > "5"), "compared with a text"),
        (select(having=col("count") == date(2024, 2, 29)), "compared with a date"),
        (select(having=col("count") == True), "compared with a boolean"),  # noqa: E712
        (select(having=col("count").isin([1, "x"])), "compared with a text"),
        (select(having=col("count").is_missing()), "never missing"),
        (select(having=col("cuont") > 5), 'HAVING names "cuont".*did you mean "count"'),
        (select(having=col("age") > 5), "no column of the output"),
        (select(having=Compare("count", "~", 5)), "is no comparison"),
        (select(having=And(())), "is no condition"),
        (select(group=["sex"], having=col("sex") > "F"), "without an order"),
        (select(group=["age"], having=col("age") == "x"), "compared with the text"),
        (select(order=(Order("age"),)), "ORDER BY names"),
        (select(Group("sex", "s"), COUNT, group=["sex"], order=(Order("s"),)), "ORDER BY names"),
        (select(order=(Order("count", 1),)), "descending is 1"),
        (select(limit=-1), "limit is -1"),
        (select(limit=True), "limit is True"),
        (select(limit=2.0), "limit is 2.0"),
        (select(limit=10**5000), "limit is a int that is too long"),
        (select(Aggregate("median", "age", "m")), "cannot be asked"),
        (select(Aggregate("sum", None, "s")), "cannot be asked"),
        (select(Aggregate("count", None, "")), "cannot be asked"),
        (select(Group("sex", "sex"), group=["sex"]), "asks for no number"),
        (select(Group("sex", "sex"), COUNT), "is no group column"),
        (select(group=["sex", "sex"]), "names a column twice"),
        (select(group=["sxe"]), "did you mean"),
        (select(COUNT, Aggregate("avg", "age", "count_error")), "two output columns"),
        (select(COUNT, Aggregate("avg", "age", "Count")), "two output columns"),
        (select(Aggregate("count", None, "n_ERROR"), Aggregate("avg", "age", "N")), "two output columns"),
        (select(Group("count_error", "count_error"), COUNT, group=["count_error"]), "two output columns"),
        (select(Aggregate("count", None, "sex"), group=["sex"]), "as a group column is"),
        (select(Group("sex", "age"), COUNT, group=["sex", "age"]), "as a group column is"),
        (select(Group("Sex", "Sex"), Aggregate("count", None, "sex"), group=["Sex"]), "two output columns"),
    ],
)
def test_what_would_fail_later_is_refused_with_a_sentence(statement, said):
    with pytest.raises(BadQuery, match=said):
        check_statement(statement, DOMAIN)


@pytest.mark.parametrize("name", ["\ud800", "a\udfff", "\x00", "n" * 3000])
def test_names_that_no_reply_can_hold_are_refused(name):
    for statement in (select(Aggregate("count", None, name)), select(Group("sex", name), COUNT, group=["sex"])):
        with pytest.raises(BadQuery, match="an output column's name"):
            check_statement(statement, DOMAIN)


def test_two_columns_of_the_table_may_differ_in_case_only():
    shown = (Group("sex", "sex"), Group("Sex", "Sex"), COUNT)
    check_statement(select(*shown, group=["sex", "Sex"]), DOMAIN)


def test_numbers_of_every_type_can_be_compared():
    for number in (5, 2.5, Decimal("1E+300"), Fraction(1, 3), np.int64(3), 10**400, -0.0):
        check_statement(select(having=(col("count") > number) & ~col("count").isin([number])), DOMAIN)


NAMES = st.sampled_from(["count", "a", "A", "a_error", "count_error", "sex", "Sex", "age", "ill", "s", "nobody", ""])
VALUES = (
    st.sampled_from(["F", "x", "other", "missing", True, False, None, float("nan"), float("inf")])
    | st.sampled_from([399, 400, 460, 5000]).map(lambda digits: -(10**digits))
    | st.sampled_from([Decimal("sNaN"), Decimal("1E+999"), Fraction(1, 3), date(2024, 2, 29), np.int8(3), b"x", [], {}])
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "=", "like"])


def tried(kind, *parts):
    """What is made of these parts, or everyone if it cannot be made at all."""
    try:
        return kind(*parts)
    except DiscreetError:
        return everyone


ATOMS = (
    st.builds(tried, st.just(Compare), NAMES, OPERATORS, VALUES)
    | st.builds(tried, st.just(IsIn), NAMES, st.lists(VALUES, max_size=3))
    | st.builds(IsMissing, NAMES)
)
CONDITIONS = st.recursive(
    st.just(everyone) | ATOMS,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=2).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=2).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=4,
)
ITEMS = st.builds(Group, NAMES, NAMES) | st.builds(
    Aggregate, st.sampled_from(["count", "sum", "avg", "max"]), st.none() | NAMES, NAMES
)
SELECTS = st.builds(
    Select,
    st.just("people"),
    st.lists(ITEMS, min_size=1, max_size=4).map(tuple),
    having=st.just(everyone) | CONDITIONS,
    group=st.lists(NAMES, max_size=2).map(tuple),
    order=st.lists(st.builds(Order, NAMES, st.booleans() | st.just(1)), max_size=2).map(tuple),
    limit=st.none() | st.integers(-1, 4) | st.sampled_from([10**30, True, 1.5]),
)
# Mostly right ones, so that many are accepted.
RIGHT = st.builds(
    Select,
    st.just("people"),
    st.just((Group("sex", "s"), COUNT, Aggregate("avg", "age", "a"))),
    having=CONDITIONS,
    group=st.just(("sex",)),
    order=st.lists(st.builds(Order, NAMES, st.booleans()), max_size=2).map(tuple),
    limit=st.none() | st.integers(0, 4),
)
NUMBERS = st.none() | st.floats(allow_nan=False) | st.integers(-(2**62), 2**62).map(float)
ACCEPTED = []


@given(SELECTS | RIGHT, st.data())
def test_what_is_accepted_can_be_laid_out_from_any_numbers(statement, data):
    try:
        check_statement(statement, DOMAIN)
    except DiscreetError:
        return
    ACCEPTED.append(statement)
    cells = int(np.prod([DOMAIN[name].size for name in statement.group], initial=1))
    rows = st.lists(NUMBERS, min_size=cells, max_size=cells)
    numbers = [data.draw(rows) for _ in statement.aggregates]
    columns = statement.tabulate(DOMAIN, numbers, [[0.0] * cells] * len(numbers))
    assert len(columns) == len(statement.items) + len(statement.aggregates)
    assert len({name.casefold() for name in columns}) == len(columns) or {"sex", "Sex"} <= set(columns)
    assert len({len(values) for values in columns.values()}) == 1


def test_the_strategy_grows_statements_that_are_accepted():
    test_what_is_accepted_can_be_laid_out_from_any_numbers()
    assert sum(each.having != everyone for each in ACCEPTED) > 5
    assert len({each.items for each in ACCEPTED}) > 2
