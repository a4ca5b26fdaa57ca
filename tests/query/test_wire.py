"""Queries as plain values: through JSON and back, the same query; what is no query is told in a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadData, DiscreetError
from discreet.query import Linear, Marginal, col, count, everyone, total
from discreet.query.product import Factor, Product
from discreet.query.query_wire import query_from_plain, query_to_plain
from discreet.schema import Boolean, Categories, Domain, Integers
from support.strategies import combined

DOMAIN = Domain({"age": Integers(-1, 3), "city": Categories(["a", "b", "ü"], missing="missing"), "sex": Boolean()})
ATOMS = st.one_of(
    st.builds(lambda edge: col("age") >= edge, st.integers(-2, 4)),
    st.builds(lambda edge: col("age") == edge, st.integers(-1, 3)),
    st.builds(lambda city: col("city") == city, st.sampled_from(["a", "b", "ü"])),
    st.just(col("city").is_missing()),
    st.just(col("sex") == True),  # noqa: E712
    st.just(everyone),
)
PREDICATES = combined(ATOMS, max_leaves=5)


@st.composite
def tables(draw):
    """A weight on several columns at once, which is not a product."""
    names = draw(st.lists(st.sampled_from(sorted(DOMAIN)), min_size=1, max_size=2, unique=True).map(sorted))
    shape = tuple(DOMAIN[name].size for name in names)
    weights = draw(st.lists(st.integers(-(2**40), 2**40), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return Linear([Product((Factor(tuple(names), np.array(weights).reshape(shape)),), draw(st.integers(-5, 5)))])


LINEARS = st.recursive(
    st.one_of(
        st.builds(lambda where: count(DOMAIN, where), PREDICATES),
        st.builds(lambda where: total(DOMAIN, "age", where), PREDICATES),
        tables(),
        st.just(Linear()),
    ),
    lambda inner: st.builds(lambda p, q, times: p + times * q, inner, inner, st.integers(-9, 9)),
    max_leaves=3,
)
MARGINALS = st.builds(Marginal, st.lists(st.sampled_from(sorted(DOMAIN)), unique=True).map(tuple), st.none() | LINEARS)


def there_and_back(query):
    return query_from_plain(json.loads(json.dumps(query_to_plain(query))))


@given(LINEARS)
def test_a_linear_query_comes_back_the_same_to_the_last_weight(query):
    again = there_and_back(query)
    assert type(again) is Linear
    assert again == query
    assert hash(again) == hash(query)
    assert again.scope == query.scope
    assert again.range(DOMAIN) == query.range(DOMAIN)
    assert np.array_equal(again.table(DOMAIN), query.table(DOMAIN))
    assert query_to_plain(again) == query_to_plain(query)


@given(MARGINALS)
def test_a_marginal_comes_back_the_same_with_its_columns_in_their_order(query):
    again = there_and_back(query)
    assert type(again) is Marginal
    assert again == query
    assert hash(again) == hash(query)
    assert again.columns == query.columns
    assert again.weight == query.weight


@given(LINEARS, LINEARS)
def test_two_queries_are_written_alike_only_if_they_are_equal(one, other):
    assert (query_to_plain(one) == query_to_plain(other)) == (one == other)


def test_weights_at_the_ends_of_64_bits_come_back():
    for weight in (2**62, -(2**62), 2**53 + 1, -(2**53) - 1):
        query = Linear([Product((Factor(("sex",), np.array([weight, 1])),))])
        assert there_and_back(query) == query


def test_a_marginal_without_a_weight_is_not_one_whose_weight_is_nothing():
    nothing = Marginal(("sex",), Linear())
    assert there_and_back(nothing) == nothing != Marginal(("sex",))
    assert there_and_back(Marginal(("sex",))).weight is None


GOOD = {"products": [[1, [[["sex"], [2], [0, 1]]]]]}
BAD = {
    "nothing": None,
    "a number": 3,
    "a text": "products",
    "a list": [],
    "an empty dict": {},
    "no weight": {"columns": ["sex"]},
    "no list of products": {"products": 5},
    "a product without factors": {"products": [[1]]},
    "a factor without a shape": {"products": [[1, [[["sex"], [0, 1]]]]]},
    "another shape": {"products": [[1, [[["sex"], [3], [0, 1]]]]]},
    "a weight that is a text": {"products": [[1, [[["sex"], [2], ["a", 1]]]]]},
    "a coefficient that is a text": {"products": [["x", []]]},
    "a ragged table": {"products": [[1, [[["sex"], [2], [[0], [1, 2]]]]]]},
}


@pytest.mark.parametrize("plain", BAD.values(), ids=BAD)
def test_what_is_no_query_is_refused_in_a_sentence(plain):
    with pytest.raises(BadData, match=r"is not a query; it must be one that a ledger wrote\. It may come from a newer"):
        query_from_plain(plain)


def test_a_query_is_read_as_it_is_written_here():
    assert query_from_plain(GOOD) == count(DOMAIN, col("sex") == True)  # noqa: E712


@pytest.mark.parametrize(
    "plain",
    [
        {"columns": [1], "weight": None},
        {"columns": ["sex", "sex"], "weight": None},
        {"products": [[1, [[["sex"], [0], []]]]]},
        {"products": [[2**63, [[["sex"], [2], [0, 1]]]]]},
    ],
    ids=["columns that are numbers", "a column twice", "no cells", "too large"],
)
def test_a_query_that_nobody_could_have_asked_is_refused_too(plain):
    with pytest.raises(DiscreetError):
        query_from_plain(plain)


def test_a_weight_beyond_64_bits_is_refused_in_a_sentence():
    with pytest.raises(DiscreetError):
        query_from_plain({"products": [[1, [[["sex"], [2], [0, 2**70]]]]]})


def test_a_long_text_that_is_no_query_is_not_repeated_in_full():
    with pytest.raises(BadData) as caught:
        query_from_plain({"products": "x" * 10_000})
    assert len(str(caught.value)) < 300
