"""Answers from bitmaps are the sums that a query is defined to be, and what was asked decides how they are found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.query import Marginal, count, prefixes, total
from discreet.query.linear import Linear
from discreet.query.predicate import col
from discreet.query.product import Factor, Product, box
from discreet.schema import Boolean, Categories, Domain, Integers
from discreet.source import Frame
from discreet.source.frame import MOST_BITMAP_TERMS, Bitmaps, expanded_terms
from discreet.source.source import unseal

SIZES = {"a": 2, "b": 3, "c": 11, "d": 257, "e": 2}
DOMAIN = Domain({name: Categories(list(range(size)), outside="drop", missing="drop") for name, size in SIZES.items()})
LENGTHS = [0, 1, 63, 64, 65, 5000]
WIDE = [f"x{place:02}" for place in range(40)]
BOOLEANS = Domain({name: Boolean() for name in WIDE})


def table(rows, seed=0):
    random = np.random.default_rng(seed)
    return {name: random.integers(0, size, rows) for name, size in SIZES.items()}


def wide(rows, seed=0):
    random = np.random.default_rng(seed)
    return {name: random.random(rows) < 0.1 for name in WIDE}


def by_definition(query, codes, rows):
    """The sum over the rows of the weight of the row, in Python's integers."""
    sums = 0
    for each in query.products:
        weights = np.full(rows, each.coefficient, dtype=object)
        for factor in each.factors:
            weights = weights * factor.weights.astype(object)[tuple(codes[name] for name in factor.columns)]
        sums += weights.sum()
    return sums


def opened(source, question):
    exact = source.evaluate(question)
    return unseal(exact, exact.sensitivity).tolist()


@st.composite
def linears(draw, most=2**9):
    """Sums of products of conditions, of weights of either sign, and of tables over two columns."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    products = []
    for _ in range(draw(st.integers(0, 3))):
        names = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True))
        factors = []
        while names:
            columns = tuple(sorted(names.pop() for _ in range(min(len(names), draw(st.sampled_from([1, 1, 1, 2]))))))
            low, high = draw(st.sampled_from([(0, 2), (0, 2), (0, 1), (1, 2), (0, 8), (-3, 4), (-most, most)]))
            factors.append(Factor(columns, random.integers(low, high, [SIZES[name] for name in columns])))
        products.append(Product(tuple(factors), draw(st.integers(-3, 3))))
    return products


def normal(products):
    return Linear([Product(each.factors, each.coefficient) for each in products])


def as_given(products):
    """A query of just these products, even of constant ones, which the normal form would leave out."""
    query = Linear()
    object.__setattr__(query, "products", tuple(products))
    return query


@pytest.mark.parametrize("kept", [3, 1000])
@pytest.mark.parametrize("rows", LENGTHS)
@settings(max_examples=20, deadline=None)
@given(queries=st.lists(linears().map(as_given), max_size=3))
def test_bitmaps_answer_every_query_as_it_is_defined(rows, kept, queries):
    codes = table(rows)
    bits = Bitmaps(codes, rows, most_bytes=kept * 8 * -(-rows // 64))
    for query in queries:
        assert bits.answer(query) == by_definition(query, codes, rows)


@pytest.mark.parametrize("rows", LENGTHS)
@settings(max_examples=10, deadline=None)
@given(queries=st.lists(linears(most=2**5).map(normal), min_size=1, max_size=3))
def test_a_frame_answers_alike_one_by_one_and_together(rows, queries):
    codes = table(rows)
    expected = [by_definition(query, codes, rows) for query in queries]
    assert opened(Frame(codes, domain=DOMAIN), queries) == expected
    frame = Frame(codes, domain=DOMAIN)
    assert [opened(frame, query)[0] for query in queries] == expected
    assert opened(frame, queries) == expected


def test_a_sum_beyond_64_bits_is_exact_until_it_is_fitted():
    codes = {"a": np.array([0, 1, 1, 1, 1])}
    heavy = Linear([Product((Factor(("a",), np.array([-(2**61), 2**61])),), 3)])
    assert Bitmaps(codes, 5).answer(heavy) == 3 * 2**61 * 3 > 2**63


@pytest.mark.parametrize("shape", [("a",), ("a", "e"), ("b", "a", "e"), ("c",), ("c", "b")])
def test_a_marginal_of_few_cells_is_the_same_from_bitmaps(shape):
    codes = table(70_001)
    counted = Bitmaps(codes, 70_001).count(shape, [SIZES[name] for name in shape])
    expected = np.zeros([SIZES[name] for name in shape], dtype=int)
    np.add.at(expected, tuple(codes[name] for name in shape), 1)
    assert counted.tolist() == expected.tolist()
    assert opened(Frame(codes, domain=DOMAIN), Marginal(shape)) == expected.ravel().tolist()


def test_a_column_of_one_cell_is_counted_too():
    domain = Domain({"only": Categories(["x"]), "a": Boolean()})
    data = {"only": ["x"] * 5000, "a": [True] * 2000 + [False] * 3000}
    marginal = np.array(opened(Frame(data, domain=domain), Marginal(("only", "a"))))
    assert sorted(marginal[marginal > 0].tolist()) == [2000, 3000]


def broken_by_padding(bits, mask, codes):
    """Packs rows without clearing what is left of the last word."""
    met = mask[tuple(codes)]
    return np.packbits(np.r_[met, np.ones(64 * bits._words - len(met), dtype=bool)]).view(np.uint64)


def test_the_comparison_sees_one_bit_too_many(monkeypatch):
    codes = table(65)
    query = Linear([box({"a": np.array([True, False]), "e": np.array([False, True])})])
    assert Bitmaps(codes, 65).answer(query) == by_definition(query, codes, 65)
    monkeypatch.setattr(Bitmaps, "_bitmap", broken_by_padding)
    assert Bitmaps(codes, 65).answer(query) != by_definition(query, codes, 65)


def conjunctions(number, seed=1, width=8):
    random = np.random.default_rng(seed)
    common = np.array([True, False])
    return [
        Linear([box({WIDE[place]: common for place in random.choice(40, width, replace=False)})]) for _ in range(number)
    ]


def test_many_conjunctions_of_many_columns_count_no_marginal(monkeypatch):
    data, queries = wide(1000), conjunctions(2000)
    frame = Frame(data, domain=BOOLEANS)
    monkeypatch.setattr(Frame, "_count", None)
    expected = [int(np.all([~data[name] for name in query.scope], axis=0).sum()) for query in queries]
    assert opened(frame, queries) == expected
    assert [opened(frame, query)[0] for query in queries[:100]] == expected[:100]


class Recorder:
    """What is made for questions: bitmaps and marginals, in order."""

    def __init__(self, monkeypatch):
        self.made = []
        make, counted = Bitmaps._make, Frame._count
        monkeypatch.setattr(Bitmaps, "_make", lambda bits, factor: self.made.append(factor) or make(bits, factor))
        monkeypatch.setattr(Frame, "_count", lambda frame, names: self.made.append(names) or counted(frame, names))


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


AGES = Domain({"age": Integers(0, 99), "a": Boolean()})


def test_a_question_about_columns_that_were_counted_reads_no_row(recorder):
    frame = Frame({"age": [3, 4], "a": [True, False]}, domain=AGES)
    frame.evaluate(Marginal(("a", "age")))
    del recorder.made[:]
    assert opened(frame, count(AGES, (col("age") == 3) & (col("a") == True))) == [1]  # noqa: E712
    assert opened(frame, total(AGES, "age")) == [7]
    assert recorder.made == []


def test_many_questions_about_one_column_are_answered_from_its_marginal(recorder):
    rows = 500
    frame = Frame({"age": np.arange(rows) % 100, "a": np.ones(rows, dtype=bool)}, domain=AGES)
    assert opened(frame, prefixes(AGES, "age")[:100]) == [5 * up for up in range(1, 101)]
    assert recorder.made == [("age",)], "together: at once"
    other = Frame({"age": np.arange(rows) % 100, "a": np.ones(rows, dtype=bool)}, domain=AGES)
    del recorder.made[:]
    assert [opened(other, query)[0] for query in prefixes(AGES, "age")[:100]] == [5 * up for up in range(1, 101)]
    assert recorder.made[2:] == [("age",)], "one by one: after two bitmaps, which took as long"


def test_a_product_of_many_digits_is_counted_and_not_expanded(recorder):
    heavy = total(AGES, "age")
    squared = Linear([each.times("a", np.array([1, 2**20 + 1])) for each in heavy.products])
    assert expanded_terms(heavy) < MOST_BITMAP_TERMS < expanded_terms(squared)
    frame = Frame({"age": [3, 4], "a": [False, True]}, domain=AGES)
    assert opened(frame, squared) == [3 + 4 * (2**20 + 1)]
    assert recorder.made == [("a", "age")]


def test_what_is_made_does_not_depend_on_what_is_in_the_rows(recorder):
    made = []
    for seed, filled in ((0, 0.0), (1, 0.1), (2, 1.0)):
        frame = Frame({name: np.random.default_rng(seed).random(4000) < filled for name in WIDE}, domain=BOOLEANS)
        for query in conjunctions(20, width=3):
            frame.evaluate(query)
        frame.evaluate(conjunctions(30, width=2))
        frame.evaluate(Marginal(tuple(WIDE[:4])))
        made.append(recorder.made[:])
        del recorder.made[:]
    assert made[0] == made[1] == made[2] != []


def test_the_bitmaps_that_are_kept_are_bounded_and_the_first_made_goes(recorder):
    codes = table(6400)
    bits = Bitmaps(codes, 6400, most_bytes=3 * 800)
    queries = [Linear([box({"c": np.arange(11) == cell})]) for cell in range(5)]
    for query in queries:
        bits.answer(query)
    assert [bits.missing([query]) for query in queries] == [1, 1, 0, 0, 0]
    assert bits.missing(queries) == 2
    assert len(recorder.made) == 5


def test_codes_take_one_byte_where_a_column_has_few_cells():
    frame = Frame(table(10), domain=DOMAIN)
    ((codes, _),) = frame.cells(tuple(SIZES))
    assert [code.dtype.name for code in codes] == ["int8", "int8", "int8", "int16", "int8"]


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 1000])
def test_products_of_signs_are_exact_whatever_their_number(rows):
    """They are counted by parity, and not by their digits."""
    codes = {name: np.random.default_rng(place).integers(0, 2, rows) for place, name in enumerate("abcd")}
    signs = {"a": [1, -1], "b": [-1, 1], "c": [1, -1], "d": [-1, 1]}
    bits = Bitmaps(codes, rows)
    for ways in range(1, 5):
        names = tuple("abcd"[:ways])
        query = Linear([Product(tuple(Factor((name,), np.array(signs[name])) for name in names), 3)])
        expected = 3 * int(np.prod([np.array(signs[name])[codes[name]] for name in names], axis=0).sum())
        assert bits.answer(query) == expected
