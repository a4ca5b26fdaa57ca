import datetime
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet.source as source
from discreet.errors import BadData, BadQuery, BadSchema, SealBroken, TooLarge
from discreet.query import Marginal, Ratio, all_subsets, col, count, everyone, prefixes, total
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Unit
from discreet.source import Frame, Table
from discreet.source.coding import RawColumn, code_column
from discreet.source.source import unseal

AGES = Domain({"age": Integers(0, 9)})
VISITS = Unit(key="who", contributions=2)


def opened(table, question):
    exact = table.evaluate(question)
    return unseal(exact, exact.sensitivity).tolist()


def test_open_makes_a_table_that_evaluates_and_shows_no_data():
    table = source.open(pd.DataFrame({"age": [1, 2, 2]}), domain=AGES)
    assert isinstance(table, Table)
    assert opened(table, count(AGES, col("age") == 2)) == [2]
    assert "3" not in repr(table) + repr(table.source), "the number of rows is private"
    with pytest.raises(SealBroken):
        int(table.evaluate(count(AGES)))


def test_open_refuses_what_is_no_domain_and_no_unit():
    with pytest.raises(BadSchema, match="dict"):
        source.open({"age": [1]}, domain={"age": Integers(0, 9)})
    with pytest.raises(BadSchema, match="Unit"):
        source.open({"age": [1]}, domain=AGES, unit="age")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"aeg": [1]}, 'did you mean "aeg"'),
        ([{"aeg": 1}], 'did you mean "aeg"'),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "twice"),
        (pa.table([[1], [2]], names=["age", "age"]), "twice"),
        (pl.LazyFrame({"age": [1]}), "collect"),
        ({"age": "123"}, "list or an array"),
        ({"age": np.ones((2, 2))}, "2 dimensions"),
        ({"age": ["x"], "b": [1]}.items(), "cannot be read"),
        (3, "int"),
        ({"age": np.array(["1", "2"])}, "holds texts"),
        ({"age": np.array([True])}, "holds booleans"),
        (pd.DataFrame({"age": ["1"]}).astype("string"), "holds texts"),
        (pl.DataFrame({"age": ["1"]}), "holds texts"),
        (pa.table({"age": ["1"]}), "holds texts"),
        (pl.DataFrame({"age": [pd.Timestamp("2024-01-01")]}), "holds dates"),
    ],
)
def test_a_table_that_does_not_fit_its_schema_is_refused_without_its_values(data, said):
    with pytest.raises(BadData, match=said) as refused:
        Frame(data, domain=AGES)
    assert "123" not in str(refused.value)


DAYS = [datetime.date(2024, 1, 1), None, datetime.date(2024, 3, 1)]
ZONED = [
    datetime.datetime(2024, 1, 1, 23, tzinfo=datetime.UTC),
    None,
    datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC),
]
SINCE = Bins([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], upper=datetime.date(2024, 12, 31))
LETTERS = Categories(["a", "b"], missing="missing")
PRICES = Bins([0, Decimal("0.3")], upper=1)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (pd.Series(["a", None, "b"], dtype="category"), LETTERS),
        (pd.Series(["a", None, "b"], dtype="str"), LETTERS),
        (pd.Series(["a", None, "b"], dtype=pd.ArrowDtype(pa.string())), LETTERS),
        (pl.Series(["a", None, "b"], dtype=pl.Categorical), LETTERS),
        (pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])), LETTERS),
        (pa.array(["a", None, "b"]).dictionary_encode(), LETTERS),
        (pa.array(["a", None, "b"], pa.large_string()), LETTERS),
        (pa.array(["a", None, "b"], pa.string_view()), LETTERS),
        (pa.chunked_array([["a"], [None, "b"]]), LETTERS),
        (pd.Series([2**53 + 1, None, 2**53], dtype="Int64"), Categories([2**53 + 1, 2**53], missing="missing")),
        (pl.Series([2**53 + 1, None, 2**53]), Categories([2**53 + 1, 2**53], missing="missing")),
        (pa.array([2**53 + 1, None, 2**53]), Categories([2**53 + 1, 2**53], missing="missing")),
        (pa.array([2**64 - 1, None, 0], pa.uint64()), Categories([2**64 - 1, 0], missing="missing")),
        (pd.Series([0.25, None, 0.3], dtype=pd.ArrowDtype(pa.float64())), PRICES),
        (pl.Series([Decimal("0.29"), None, Decimal("0.30")]), PRICES),
        (pa.array([Decimal("0.29"), None, Decimal("0.30")]), PRICES),
        (pl.Series(DAYS), SINCE),
        (pa.array(DAYS, pa.date32()), SINCE),
        (pa.array(DAYS, pa.date64()), SINCE),
        (pa.array(ZONED, pa.timestamp("ns", "UTC")), SINCE),
        (pl.Series(ZONED, dtype=pl.Datetime("ns", "UTC")), SINCE),
        (pd.Series(ZONED, dtype="datetime64[ns, UTC]"), SINCE),
        (pd.Series(DAYS, dtype="datetime64[s]"), SINCE),
        (pd.Series([False, None, True], dtype="boolean"), Boolean(missing="missing")),
        (pl.Series([False, None, True]), Boolean(missing="missing")),
        (pa.array([False, None, True]), Boolean(missing="missing")),
    ],
    ids=lambda each: f"{type(each).__module__.split('.')[0]} {getattr(each, 'dtype', getattr(each, 'type', ''))}",
)
def test_every_type_of_column_is_read_exactly_with_its_gaps(values, column):
    frame = Frame({"x": values, "place": [0, 1, 2]}, domain=Domain({"place": Integers(0, 2), "x": column}))
    cells = np.array(opened(frame, Marginal(("place", "x")))).reshape(4, -1)
    missing = column.code(None)
    assert cells[:3].argmax(axis=1).tolist() == [0, missing, 1]
    assert cells.sum() == 3


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(BadData, match="lengths"):
        Frame({"a": [1], "b": [1, 2]}, domain=Domain({"a": Boolean(), "b": Boolean()}))


def test_a_dropped_row_is_dropped_from_every_marginal():
    domain = Domain({"a": Categories(["x"], outside="drop"), "b": Integers(0, 3)})
    table = Frame({"a": ["x", "y", None], "b": [1, 2, 3]}, domain=domain)
    assert opened(table, Marginal(("b",))) == [0, 1, 0, 0, 0]
    assert opened(table, count(domain)) == opened(table, Marginal(())) == [1]


@pytest.mark.parametrize(
    "keys", [["a", None], ["a", float("nan")], [1.0, np.nan], ["a", [1]], [datetime.datetime(2024, 1, 1), pd.NaT]]
)
def test_a_row_without_a_person_is_refused_when_the_table_is_opened(keys):
    with pytest.raises(BadData, match="whose row"):
        Frame({"age": [1, 2], "who": keys}, domain=AGES, unit=VISITS)
    with pytest.raises(BadData, match="whose row"):
        Frame(pd.DataFrame({"age": [1, 2], "who": pd.Series([1, None], dtype="Int64")}), domain=AGES, unit=VISITS)


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9) | st.none()), max_size=12)


@pytest.mark.parametrize(
    "keys",
    [
        [UUID(int=1), UUID(int=2)],
        [b"a", b"b"],
        [datetime.datetime(2024, 1, 1, 8), datetime.datetime(2024, 1, 1, 9)],
        pd.Series(pd.to_datetime(["2024-01-01 08:00", "2024-01-01 09:00"])),
        np.array(["2024-01-01T08", "2024-01-01T09"], dtype="datetime64[s]"),
    ],
    ids=["UUIDs", "bytes", "times", "pandas times", "numpy times"],
)
def test_two_keys_are_two_people_even_on_one_day(keys):
    frame = Frame({"age": [1, 2], "who": keys}, domain=AGES, unit=Unit(key="who"))
    assert opened(frame, count(AGES)) == [2]


@given(rows, st.randoms(use_true_random=False))
def test_of_each_person_the_first_rows_in_the_order_of_their_cells_are_kept(table, random):
    expected = [0] * 11
    for person in range(4):
        for age in sorted(10 if age is None else age for who, age in table if who == person)[:2]:
            expected[age] += 1
    shuffled = random.sample(table, len(table))
    for keys in ([who for who, _ in shuffled], [f"person {who}" for who, _ in shuffled]):
        frame = Frame({"age": [age for _, age in shuffled], "who": keys}, domain=AGES, unit=VISITS)
        assert opened(frame, Marginal(("age",))) == expected


def test_a_persons_dropped_rows_do_not_use_up_contributions():
    domain = Domain({"age": Integers(5, 9, outside="drop")})
    frame = Frame({"age": [1, 2, 3, 7, 8, 9], "who": ["a"] * 6}, domain=domain, unit=VISITS)
    assert opened(frame, Marginal(("age",))) == [0, 0, 1, 1, 0, 0]


def test_large_scopes_are_answered_without_a_table_of_their_cells():
    names = [f"x{place}" for place in range(12)]
    wide = Domain({name: Integers(0, 99) for name in names})
    data = np.random.default_rng(1).integers(0, 100, (500, 12))
    frame = Frame({name: data[:, place] for place, name in enumerate(names)}, domain=wide)
    every, some = everyone, ~everyone
    for name in names:
        every, some = every & (col(name) >= 20), some | (col(name) >= 98)
    assert opened(frame, count(wide, every)) == [np.all(data >= 20, axis=1).sum()]
    assert opened(frame, count(wide, some)) == [np.any(data >= 98, axis=1).sum()]
    assert opened(frame, count(wide, ~some)) == [500 - np.any(data >= 98, axis=1).sum()]
    weighted = total(wide, "x3", every) - 7 * total(wide, "x5", some)
    expected = data[np.all(data >= 20, axis=1), 3].sum() - 7 * data[np.any(data >= 98, axis=1), 5].sum()
    assert opened(frame, weighted) == [expected]
    assert opened(frame, [weighted, count(wide)]) == [expected, 500]


def test_whether_a_question_is_too_large_depends_on_the_schema_alone():
    heavy = Domain({"x": Integers(2**32, 2**32 + 1)})
    many = Domain({"x": Integers(0, 2**20), "y": Integers(0, 2**20)})
    for rows_of in ([], [{"x": 1, "y": 1}] * 3):
        with pytest.raises(TooLarge, match="weigh up to 4294967297"):
            Frame(rows_of, domain=heavy).evaluate(total(heavy, "x"))
        with pytest.raises(TooLarge, match="1099515822084 cells"):
            Frame(rows_of, domain=many).evaluate(Marginal(("x", "y")))
        with pytest.raises(TooLarge, match="slice"):
            Frame(rows_of, domain=many).evaluate(all_subsets(many, "x"))


def test_a_question_of_another_kind_is_refused():
    frame = Frame({"age": [1]}, domain=AGES)
    for question in ("age >= 3", [], [everyone], everyone, 3):
        with pytest.raises(BadQuery, match="cannot evaluate"):
            frame.evaluate(question)
    assert opened(frame, prefixes(AGES, "age")[:3]) == [0, 1, 1]
    assert opened(frame, Ratio(count(AGES), count(AGES))) == [1, 1]


edges = st.lists(st.integers(-(2**64), 2**64) | st.floats(-1e300, 1e300), min_size=2, unique=True).map(sorted)


@given(edges, st.sampled_from([np.int8, np.int64, np.uint64, np.float64, np.float32]), st.data())
def test_numbers_are_coded_exactly_whatever_holds_them(cuts, dtype, data):
    column = Bins(cuts[:-1], upper=cuts[-1], outside="other")
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        near = [int(cut) + step for cut in cuts for step in (-1, 0, 1)]
        inside = [value for value in near if limits.min <= value <= limits.max]
        values = st.integers(int(limits.min), int(limits.max)) | st.sampled_from([int(limits.max), *inside])
    else:
        near = [np.nextafter(float(cut), towards) for cut in cuts for towards in (-np.inf, float(cut), np.inf)]
        values = st.floats(width=np.dtype(dtype).itemsize * 8) | st.sampled_from(near)
    with np.errstate(over="ignore"):
        array = np.array(data.draw(st.lists(values, min_size=1)), dtype=dtype)
    assert code_column("x", column, RawColumn(array)).tolist() == [column.code(value) for value in array]


@given(st.integers(-(2**63), 2**63 - 9), st.sampled_from([np.int64, np.uint64, np.float64]), st.data())
def test_integers_are_coded_exactly_up_to_the_ends_of_64_bits(lower, dtype, data):
    column = Integers(lower, lower + 5, outside="other")
    near = [lower + step for step in range(-2, 9)]
    if dtype is np.uint64:
        near = [abs(value) for value in near] + [2**64 - 1]
    if dtype is np.int64:
        near = [min(max(value, -(2**63)), 2**63 - 1) for value in near]
    array = np.array(data.draw(st.lists(st.sampled_from(near))), dtype=dtype)
    assert code_column("x", column, RawColumn(array)).tolist() == [column.code(value) for value in array]
