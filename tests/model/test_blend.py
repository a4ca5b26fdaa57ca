"""A blend answers as the mean of its models would, and its rows are so many of each."""

import numpy as np
import pytest

from discreet.errors import BadParameter
from discreet.model import Dense, Mixture, Rows, fit_tree
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.mixture_model import Blend, rounded
from discreet.query.aggregates import count
from discreet.query.predicate import col
from discreet.schema import Boolean, Categories, Domain

PEOPLE = Domain({"old": Boolean(), "region": Categories(list("xyz"), outside="drop"), "ill": Boolean()})


def models(total=600.0):
    rng = np.random.default_rng(0)
    look = NoisyMarginal(("ill", "old"), None, np.array([[50.0, 10.0], [20.0, 20.0]]) * total / 100, 1.0)
    tables = np.concatenate([rng.dirichlet(np.ones(size), size=4).T for size in PEOPLE.shape])
    codes = {name: rng.integers(column.size, size=100) for name, column in PEOPLE.columns}
    return [
        Mixture(PEOPLE, total, rng.dirichlet(np.ones(4)), tables),
        fit_tree(PEOPLE, [look], total=total),
        Dense(PEOPLE, total=total, weights=rng.random(PEOPLE.shape)),
        Rows(PEOPLE, codes, scale=total / 100),
    ]


def test_a_blend_says_the_mean_of_what_its_models_say():
    parts, shares = models(), np.array([0.1, 0.2, 0.3, 0.4])
    blend = Blend(parts, 5 * shares)
    assert blend.domain == PEOPLE
    assert blend.total == pytest.approx(600)
    for columns in ((), ("ill",), ("region", "old"), ("ill", "region", "old")):
        expected = sum(share * model.marginal(columns) for share, model in zip(shares, parts, strict=True))
        np.testing.assert_allclose(blend.marginal(columns), expected)
    queries = [count(PEOPLE, col("old") == True), count(PEOPLE, (col("ill") == True) & (col("region") == "x"))]  # noqa: E712
    expected = [shares @ [model.answer(query) for model in parts] for query in queries]
    np.testing.assert_allclose([blend.answer(query) for query in queries], expected)
    np.testing.assert_allclose(blend.answers(iter(queries)), expected)


def test_rows_are_so_many_of_each_model():
    zeros, ones = (Rows(PEOPLE, {name: np.full(10, cell) for name in PEOPLE}) for cell in (0, 1))
    numbers = [int(Blend([zeros, ones], [0.7, 0.3]).rows(15)["ill"].sum()) for _ in range(200)]
    # Of 15 rows 4.5 are the second model's: 4 or 5, each half of the time (200 of 200 alike has probability 2^-199).
    assert set(numbers) == {4, 5}
    blend = Blend(models(), [1, 1, 1, 1])
    for number in (0, 1, 3, 50):
        assert [len(codes) for codes in blend.rows(number).values()] == [number] * 3


def test_rounding_keeps_the_sum_and_moves_no_number_by_one():
    rng = np.random.default_rng(1)
    for size in (1, 2, 50):
        expected = rng.dirichlet(np.full(size, 0.3)) * 1000
        for _ in range(20):
            found = rounded(expected, 1000)
            assert found.sum() == 1000
            assert np.abs(found - expected).max() < 1 + 1e-6


@pytest.mark.parametrize("shares", [[], [1], [1, -1, 1, 1], [0, 0, 0, 0]])
def test_shares_that_make_no_sense_are_refused(shares):
    with pytest.raises(BadParameter, match="share for each"):
        Blend(models(), shares)


def test_models_of_other_columns_are_refused():
    with pytest.raises(BadParameter, match="different domains"):
        Blend([models()[0], Dense(Domain({"old": Boolean()}))], [1, 1])
