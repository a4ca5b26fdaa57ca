"""Rows in memory answer as the table that they are."""

from itertools import permutations

import numpy as np
import pytest

from discreet.errors import BadData, BadQuery, TooLarge
from discreet.model.rows import Rows
from discreet.query import Linear, col, count
from discreet.query.product import Factor, Product, box
from discreet.schema import Boolean, Categories, Domain, Integers
from support.statistics import assert_follows, rejects

DOMAIN = Domain({"d": Integers(0, 3, missing="drop"), "a": Boolean(), "c": Categories(list("xyz"), outside="drop")})


def random_rows(seed, number=500, scale=1.0):
    rng = np.random.default_rng(seed)
    return Rows(
        DOMAIN, {name: rng.integers(DOMAIN[name].size, size=number) ** 2 % DOMAIN[name].size for name in DOMAIN}, scale
    )


def counted(rows, columns):
    table = np.zeros([DOMAIN[name].size for name in columns])
    for at in range(rows.number):
        table[tuple(rows.codes[name][at] for name in columns)] += rows.scale
    return table


def test_marginals_and_answers_are_counted():
    rows = random_rows(0, scale=3.0)
    assert rows.total == 1500
    for columns in [(), ("a",), *permutations(DOMAIN, 2), *permutations(DOMAIN, 3)]:
        np.testing.assert_array_equal(rows.marginal(columns), counted(rows, columns))
    rng = np.random.default_rng(1)
    wide = Product(
        (Factor(("a", "c"), rng.integers(-3, 4, size=(2, 3))), Factor(("d",), rng.integers(-3, 4, size=4))), 5
    )
    query = Linear([wide, box({"a": np.array([True, False])})])
    assert rows.answer(query) == 3 * query.answer(counted(random_rows(0), query.scope).astype(int))
    assert rows.answer(Linear()) == 0
    assert rows.answer(count(DOMAIN, col("d") >= 2)) == counted(rows, ["d"])[2:].sum()


def test_sums_beyond_64_bits_are_right():
    rows = Rows(DOMAIN, {name: np.ones(3, dtype=np.int64) for name in DOMAIN})
    query = Linear([Product((Factor(("a",), np.array([0, 2**31])),), 2**31)])
    assert rows.answer(query) == float(3 * 2**62)


def test_rows_are_drawn_again_evenly():
    rows = Rows(DOMAIN, {"d": np.array([0, 1, 2, 2]), "a": np.array([0, 1, 0, 1]), "c": np.array([0, 1, 2, 0])})
    law = {(0, 0, 0): 0.25, (1, 1, 1): 0.25, (2, 0, 2): 0.25, (2, 1, 0): 0.25}
    drawn = rows.rows(10_000)
    draws = list(zip(*(drawn[name].tolist() for name in DOMAIN), strict=True))
    assert_follows(draws, law)
    # Power: a row that comes a tenth too often is noticed.
    assert rejects(draws, {cell: 0.225 if cell[0] else 0.325 for cell in law})
    assert Rows(DOMAIN, rows.rows(7)).number == 7


def test_no_caller_can_change_the_rows():
    codes = {name: np.zeros(2, dtype=np.int64) for name in DOMAIN}
    rows = Rows(DOMAIN, codes)
    codes["a"][0] = 1
    assert rows.marginal(["a"]).tolist() == [2, 0]
    with pytest.raises(ValueError, match="read-only"):
        rows.codes["a"][0] = 1


def test_what_is_no_table_is_refused():
    good = {name: np.zeros(2, dtype=np.int64) for name in DOMAIN}
    with pytest.raises(BadData, match="columns"):
        Rows(DOMAIN, {"a": np.zeros(2, dtype=np.int64)})
    with pytest.raises(BadData, match="one length"):
        Rows(DOMAIN, good | {"c": np.zeros(3, dtype=np.int64)})
    with pytest.raises(BadData, match="outside 0 to 2"):
        Rows(DOMAIN, good | {"c": np.array([0, 3])})
    with pytest.raises(BadData, match="no rows"):
        Rows(DOMAIN, {name: [] for name in DOMAIN}).rows(1)
    rows = Rows(DOMAIN, good)
    with pytest.raises(BadQuery, match="each named once"):
        rows.marginal("a")
    with pytest.raises(BadQuery, match="other columns"):
        rows.answer(Linear([box({"a": np.array([True, False, False])})]))
    wide = Domain({f"c{at}": Integers(0, 99) for at in range(4)})
    with pytest.raises(TooLarge, match="cells"):
        Rows(wide, {name: [0] for name in wide}).marginal(list(wide))
