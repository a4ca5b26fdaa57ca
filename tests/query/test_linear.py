import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadQuery, TooLarge
from discreet.query import Linear, Marginal, col, count, everyone, fraction, mean, total
from discreet.query.aggregates import MOST_DISJOINT_BOXES, decompose, truth
from discreet.query.product import Factor, Product, interval_product, merge
from discreet.schema import Boolean, Categories, Domain, Integers
from support.strategies import combined

SMALL = Domain(
    {
        "a": Integers(0, 3),
        "b": Categories(["x", "y"]),
        "c": Boolean(),
        "d": Integers(-2, 1, missing="drop"),
    }
)
WIDE = Domain({f"n{place}": Integers(0, 99) for place in range(12)})

atoms = st.one_of(
    st.builds(lambda value: col("a") >= value, st.integers(0, 4)),
    st.builds(lambda value: col("a") == value, st.integers(0, 3)),
    st.builds(lambda value: col("b") != value, st.sampled_from(["x", "y"])),
    st.just(col("c") == True),  # noqa: E712
    st.builds(lambda values: col("d").isin(values), st.lists(st.integers(-2, 1))),
    st.just(everyone),
)
predicates = combined(atoms, max_leaves=10)
queries = st.recursive(
    st.one_of(
        st.builds(lambda where: count(SMALL, where), predicates),
        st.builds(lambda name, where: total(SMALL, name, where), st.sampled_from(["a", "d"]), predicates),
    ),
    lambda inner: st.one_of(
        st.builds(lambda p, q: p + q, inner, inner),
        st.builds(lambda p, q: p - q, inner, inner),
        st.builds(lambda p, times: times * p, inner, st.integers(-3, 3)),
    ),
    max_leaves=4,
)


def full(query):
    """The weight of every cell of SMALL."""
    shape = [SMALL[name].size if name in query.scope else 1 for name in sorted(SMALL)]
    return np.broadcast_to(query.table(SMALL).reshape(shape), [SMALL[name].size for name in sorted(SMALL)])


@given(predicates)
def test_a_count_weighs_one_exactly_where_the_predicate_is_true(where):
    assert np.array_equal(full(count(SMALL, where)), truth(where, SMALL, sorted(SMALL)))


@given(predicates)
def test_the_boxes_of_a_predicate_are_disjoint(where):
    for each in decompose(where, SMALL):
        assert each.range_on_support() == (1, 1)
    assert full(count(SMALL, where)).max(initial=0) <= 1


@given(predicates)
def test_a_predicate_and_its_negation_are_everyone(where):
    assert np.all(full(count(SMALL, where) + count(SMALL, ~where)) == 1)


def test_a_conjunction_is_one_product_however_many_columns_it_names():
    where = everyone
    for name in WIDE:
        where = where & (col(name) >= 50)
    assert len(count(WIDE, where).products) == 1
    assert len(count(WIDE, ~where).products) == 12
    assert count(WIDE, ~where).range(WIDE) == (0, 1)


def test_alternatives_on_one_column_are_one_product():
    assert len(count(SMALL, (col("a") == 0) | (col("a") == 2) | (col("a") == 3)).products) == 1
    where = ((col("a") == 0) & (col("b") == "x")) | ((col("a") == 1) & (col("b") == "x"))
    assert len(count(SMALL, where).products) == 1, "boxes that differ in one column are merged"


@given(queries)
def test_the_scope_is_what_the_weight_depends_on(query):
    for name in query.scope:
        assert name in SMALL
    weights = full(query)
    for axis, name in enumerate(sorted(SMALL)):
        if np.any(np.diff(weights, axis=axis)):
            assert name in query.scope


def test_a_column_that_does_not_matter_is_not_in_the_scope():
    assert count(SMALL, (col("a") >= 0) | (col("a").is_missing())).scope == ()
    assert count(SMALL).scope == ()
    assert (count(SMALL, col("a") >= 2) - count(SMALL, col("a") >= 2)).products == ()


@given(queries)
def test_the_range_is_the_lowest_and_highest_weight(query):
    weights = full(query)
    assert query.range(SMALL) == (weights.min(), weights.max())


@given(queries, st.integers(0, 2**32))
def test_an_answer_is_the_sum_of_counts_times_weights(query, seed):
    counts = np.random.default_rng(seed).integers(0, 9, [SMALL[name].size for name in sorted(SMALL)])
    expected = int((counts * full(query)).sum())
    assert query.answer(counts, sorted(SMALL)) == expected
    over = tuple(axis for axis, name in enumerate(sorted(SMALL)) if name not in query.scope)
    assert query.answer(counts.sum(axis=over)) == expected
    backwards = sorted(SMALL, reverse=True)
    assert query.answer(counts.transpose(), backwards) == expected


@given(queries, queries, st.integers(-5, 5))
def test_weights_add_subtract_and_multiply(p, q, times):
    assert np.array_equal(full(p + q), full(p) + full(q))
    assert np.array_equal(full(p - q), full(p) - full(q))
    assert np.array_equal(full(times * p), times * full(p))
    assert p + q == q + p
    assert hash(p + q) == hash(q + p)


def test_ranges_of_large_scopes_are_exact_for_products_disjoint_boxes_and_separate_columns():
    names = list(WIDE)
    either = col(names[0]) == 0
    for name in names[1:]:
        either = either | (col(name) == 0)
    assert count(WIDE, either).range(WIDE) == (0, 1)
    assert (count(WIDE, either) + count(WIDE, ~either)).range(WIDE) == (1, 1)
    assert (3 * count(WIDE, either) - 2 * count(WIDE, ~either)).range(WIDE) == (-2, 3)
    assert sum((total(WIDE, name) for name in names), Linear()).range(WIDE) == (0, 12 * 99)


def test_a_range_that_cannot_be_exact_contains_the_weights():
    p, q = (total(WIDE, names[0], (col(names[1]) >= 5) & (col(names[2]) < 9)) for names in (list(WIDE), list(WIDE)[1:]))
    assert (p - q).range(WIDE) == (-99, 99)


def test_answers_beyond_64_bits_are_exact():
    domain = Domain({"x": Integers(2**62, 2**62 + 1)})
    counts = np.array([2**40, 3, 0])
    assert total(domain, "x").answer(counts) == 2**40 * 2**62 + 3 * (2**62 + 1)


def test_weights_that_do_not_fit_are_refused():
    domain = Domain({"x": Integers(2**62, 2**62 + 1)})
    with pytest.raises(TooLarge, match="64 bits"):
        2 * total(domain, "x") + total(domain, "x")


def _some_pair(names):
    where = ~everyone
    for p, q in zip(names[::2], names[1::2], strict=True):
        where = where | ((col(p) == True) & (col(q) == True))  # noqa: E712
    return where


def test_past_the_limit_of_boxes_a_dense_table_is_used_and_past_that_it_is_refused():
    names = [f"b{place}" for place in range(30)]
    bits = Domain({name: Boolean() for name in names})
    assert len(count(bits, _some_pair(names[:6])).products) <= MOST_DISJOINT_BOXES
    query = count(bits, _some_pair(names[:20]))
    assert [factor.columns for factor in query.products[0].factors] == [tuple(sorted(names[:20]))]
    assert query.table(bits).sum() == 4**10 - 3**10
    assert query.range(bits) == (0, 1)
    with pytest.raises(TooLarge, match="1073741824 cells"):
        count(bits, _some_pair(names))


def test_a_total_adds_the_values_and_a_mean_divides_by_those_that_have_one():
    ages = mean(SMALL, "a", col("b") == "x")
    counts = np.arange(1, 16).reshape(5, 3)
    assert ages.numerator.answer(counts) == 4 * 1 + 7 * 2 + 10 * 3
    assert ages.denominator.answer(counts) == 1 + 4 + 7 + 10, "the missing ones have no value"
    half = fraction(SMALL, col("b") == "x")
    assert half.denominator == count(SMALL)
    assert half.numerator == count(SMALL, col("b") == "x")


def test_only_integers_are_added_up():
    with pytest.raises(BadQuery, match="declared as Categories"):
        total(SMALL, "b")


def test_a_query_is_made_for_a_domain_and_from_a_predicate():
    with pytest.raises(BadQuery, match=r"table\.domain"):
        count({"a": Integers(0, 3)}, col("a") >= 2)
    with pytest.raises(BadQuery, match="not a predicate"):
        count(SMALL, "a >= 2")


def test_a_query_for_one_domain_is_refused_by_another():
    query = count(SMALL, col("a") >= 2)
    with pytest.raises(BadQuery, match="other columns"):
        query.range(Domain({"a": Integers(0, 9)}))
    with pytest.raises(BadQuery, match='no column "a"'):
        query.table(WIDE)
    with pytest.raises(BadQuery, match="axes"):
        query.answer(np.ones((2, 2), dtype=int))
    with pytest.raises(BadQuery, match="float"):
        query.answer(np.ones(5))


def test_marginals_know_their_shape_and_refuse_a_column_twice():
    assert Marginal(["a", "b"]).shape(SMALL) == (5, 3)
    assert Marginal(()).size(SMALL) == 1
    with pytest.raises(BadQuery, match="once"):
        Marginal(("a", "a"))
    with pytest.raises(BadQuery, match="list of names"):
        Marginal("ab")


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)).map(sorted).map(tuple), max_size=4))
def test_the_product_of_intervals_contains_every_product_and_reaches_its_ends(ranges):
    products = [1]
    for low, high in ranges:
        products = [each * value for each in products for value in range(low, high + 1)]
    assert interval_product(ranges) == (min(products), max(products))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(-2, 2), *[st.lists(st.integers(-1, 1), min_size=2, max_size=2)] * 3), max_size=6))
def test_merging_changes_no_weight(terms):
    products = [
        Product([Factor((name,), np.array(weights)) for name, weights in zip("xyz", rows, strict=True)], coefficient)
        for coefficient, *rows in terms
    ]
    bits = Domain({name: Boolean() for name in "xyz"})
    merged = Linear(merge(products))
    expected = sum((c * np.einsum("i,j,k", *map(np.array, rows)) for c, *rows in terms), np.zeros((2, 2, 2), int))
    shape = [2 if name in merged.scope else 1 for name in "xyz"]
    assert np.array_equal(np.broadcast_to(merged.table(bits).reshape(shape), (2, 2, 2)), expected)


def test_a_sum_with_too_many_weights_is_refused_before_it_is_made(monkeypatch):
    """Each box would carry the weights of all values of the column, and the ledger would keep them."""
    domain = Domain({"income": Integers(0, 50_000), **{f"f{i}": Boolean() for i in range(14)}})
    where = col("f0") == True  # noqa: E712
    for i in range(0, 14, 2):
        where = where | ((col(f"f{i}") == True) & (col(f"f{i + 1}") == True))  # noqa: E712
    assert total(domain, "income", col("f0") == True).products  # noqa: E712
    monkeypatch.setattr(Product, "times", lambda *_: pytest.fail("it was made"))
    for made in (total, mean):
        with pytest.raises(TooLarge, match="Ask a simpler condition, or several questions"):
            made(domain, "income", where)
