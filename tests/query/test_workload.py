from itertools import combinations, islice, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadParameter, BadQuery
from discreet.query import (
    Marginal,
    all_subsets,
    col,
    conjunctions,
    count,
    marginals,
    monotone_conjunctions,
    point_histogram,
    prefixes,
    ranges,
)
from discreet.query.workload import _Choices
from discreet.schema import Boolean, Categories, Domain, Integers

MIXED = Domain({"a": Integers(0, 2), "b": Categories(["x", "y"], outside="drop"), "c": Boolean()})
BITS = Domain({f"b{place}": Boolean() for place in range(4)})
HUGE = Domain({f"b{place}": Boolean() for place in range(200)})

SMALL = {
    "marginals": marginals(MIXED, 2),
    "points": point_histogram(MIXED),
    "points of some": point_histogram(MIXED, ["c", "a"]),
    "conjunctions": conjunctions(MIXED, 2),
    "monotone": monotone_conjunctions(BITS),
    "monotone pairs": monotone_conjunctions(BITS, 2),
    "prefixes": prefixes(MIXED, "a"),
    "ranges": ranges(MIXED, "a"),
    "subsets": all_subsets(MIXED, "a"),
}
each_workload = pytest.mark.parametrize("workload", SMALL.values(), ids=SMALL.keys())


@each_workload
def test_indexing_is_enumeration(workload):
    enumerated = list(workload)
    assert len(enumerated) == workload.size
    assert [workload[index] for index in range(workload.size)] == enumerated
    assert [workload[index - workload.size] for index in range(workload.size)] == enumerated
    assert list(workload[1::2]) == enumerated[1::2]
    assert workload[1::2].size == len(enumerated[1::2])
    with pytest.raises(IndexError):
        workload[workload.size]


@each_workload
def test_no_query_is_there_twice(workload):
    assert len(set(workload)) == workload.size


@each_workload
def test_a_workload_describes_itself(workload):
    assert str(workload.size) in repr(workload)
    assert workload == workload[:]
    assert hash(workload) == hash(workload[:])


def test_sizes_are_the_closed_forms():
    d = len(MIXED)
    assert marginals(MIXED, 2).size == comb(d, 2)
    assert point_histogram(MIXED).size == MIXED.size == prod(MIXED.shape)
    assert conjunctions(MIXED, 2).size == sum(p * q for p, q in combinations(MIXED.shape, 2))
    assert monotone_conjunctions(BITS).size == 2**4
    assert monotone_conjunctions(BITS, 3).size == comb(4, 3)
    assert prefixes(MIXED, "a").size == 3
    assert ranges(MIXED, "a").size == 6
    assert all_subsets(MIXED, "a").size == 2**4


def test_astronomically_many_queries_are_made_one_at_a_time():
    everything = monotone_conjunctions(HUGE)
    assert everything.size == 2**200
    assert everything[2**200 - 1].scope == tuple(sorted(HUGE))
    assert conjunctions(HUGE, 100).size == comb(200, 100) * 2**100
    assert len(conjunctions(HUGE, 100)[-1].scope) == 100
    assert len(list(islice(marginals(HUGE, 50), 3))) == 3
    assert "2^200" in repr(everything)
    subsets = all_subsets(Domain({"x": Integers(0, 99_999)}), "x")
    assert subsets.size == 2**100_001
    assert "2^100001" in repr(subsets)


def test_each_workload_asks_what_its_name_says():
    assert list(marginals(MIXED, 2)) == [Marginal(pair) for pair in combinations("abc", 2)]
    assert list(prefixes(MIXED, "a")) == [count(MIXED, col("a") <= end) for end in range(3)]
    wanted = {count(MIXED, col("a").between(low, high)) for low in range(3) for high in range(low, 3)}
    assert set(ranges(MIXED, "a")) == wanted
    assert set(monotone_conjunctions(BITS, 2)) == {
        count(BITS, (col(p) == True) & (col(q) == True))  # noqa: E712
        for p, q in combinations(BITS, 2)
    }
    assert {tuple(query.table(MIXED).ravel()) for query in list(all_subsets(MIXED, "a"))[1:-1]} == set(
        product((0, 1), repeat=4)
    ) - {(0,) * 4, (1,) * 4}


def test_a_point_histogram_is_the_marginal_in_the_same_order():
    counts = np.random.default_rng(1).integers(0, 9, MIXED.shape)
    answers = [query.answer(counts, list(MIXED)) for query in point_histogram(MIXED)]
    assert answers == counts.ravel().tolist()


@given(st.lists(st.integers(1, 3), max_size=5).flatmap(lambda s: st.tuples(st.just(s), st.integers(0, len(s)))))
def test_choices_are_numbered_by_places_and_then_by_cells(arguments):
    sizes, k = arguments
    choices = _Choices(sizes, k)
    wanted = [
        list(zip(places, cells, strict=True))
        for places in combinations(range(len(sizes)), k)
        for cells in product(*(range(sizes[place]) for place in places))
    ]
    assert [choices[index] for index in range(choices.size)] == wanted


def test_workloads_that_make_no_sense_are_refused():
    with pytest.raises(BadQuery, match="the owner can declare an order"):
        prefixes(MIXED, "b")
    with pytest.raises(BadQuery, match="not boolean"):
        monotone_conjunctions(MIXED)
    with pytest.raises(BadParameter, match="at most 3"):
        marginals(MIXED, 4)
    with pytest.raises(BadQuery, match='no column "z"'):
        point_histogram(MIXED, ["z"])
