"""Settled rows have the single columns right, and pairs and triples nearer to the model than any draw has them."""

from itertools import combinations

import numpy as np
import pytest

from discreet.errors import BadParameter, BadQuery
from discreet.model import Dense, Mixture, Rows, fit_tree
from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.mixture_model import Blend
from discreet.model.synthesis.synthetic_rows import _mend, _scopes, _search, stratified, synthesize, tables_of
from discreet.schema import Boolean, Categories, Domain, Integers

MIXED = Domain(
    {
        "d": Integers(0, 4, missing="drop"),
        "a": Boolean(),
        "c": Categories(list("xyz"), outside="drop"),
        "one": Categories(["only"], outside="drop"),
        "b": Boolean(),
    }
)


def mixture(domain=MIXED, components=6, total=900.0, seed=0):
    rng = np.random.default_rng(seed)
    tables = np.concatenate([rng.dirichlet(np.full(size, 0.7), size=components).T for size in domain.shape])
    return Mixture(domain, total, rng.dirichlet(np.full(components, 3.0)), tables)


def tree():
    rng = np.random.default_rng(1)
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    shapes = [tuple(MIXED[name].size for name in pair) for pair in pairs]
    looks = [
        NoisyMarginal(pair, None, 900 * rng.dirichlet(np.ones(np.prod(shape))).reshape(shape), 1.0)
        for pair, shape in zip(pairs, shapes, strict=True)
    ]
    return fit_tree(MIXED, looks, total=900.0)


def dense():
    return Dense(MIXED, total=50.0, weights=np.random.default_rng(2).random(MIXED.shape) ** 4)


def rows():
    rng = np.random.default_rng(3)
    return Rows(MIXED, {name: rng.integers(column.size, size=37) ** 2 % column.size for name, column in MIXED.columns})


MODELS = {
    "mixture": mixture,
    "tree": tree,
    "dense": dense,
    "rows": rows,
    "blend": lambda: Blend([mixture(), tree(), dense()], [0.5, 0.3, 0.2]),
}


def distance(model, coded, order, number):
    """The mean over all scopes of so many columns of Σ|count − expected| over the rows."""
    found = Rows(model.domain, coded)
    total = model.marginal(()).sum()
    off = [
        np.abs(found.marginal(scope) - model.marginal(scope) * number / total).sum() / number
        for scope in combinations(model.domain, order)
    ]
    return np.mean(off)


@pytest.mark.parametrize("number", [0, 1, 2, 7, 500])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_value_of_every_column_is_as_often_as_expected(make, number):
    model = make()
    settled = synthesize(model, number)
    assert list(settled) == list(MIXED)
    total = model.marginal(()).sum()
    for name, column in MIXED.columns:
        assert settled[name].shape == (number,)
        assert settled[name].dtype == np.int64
        counts = np.bincount(settled[name], minlength=column.size)
        assert len(counts) == column.size
        assert np.abs(counts - model.marginal([name]) * number / total).max() < 1 + 1e-6


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_settled_rows_are_nearer_to_every_model_than_its_draws(make):
    model, number = make(), 1000
    for order in (2, 3):
        settled, drawn = (
            distance(model, each(number), order, number) for each in (lambda n: synthesize(model, n), model.rows)
        )
        assert settled < drawn / 2


def test_settled_rows_keep_what_a_model_is_worth_and_draws_do_not():
    """A model off from the truth by noise: its rows are off by five per cent more at most; those of a draw are not."""
    domain = Domain({f"c{at}": Integers(0, 3, missing="drop") for at in range(7)})
    truth, noise = mixture(domain, 8, total=4000.0, seed=5), mixture(domain, 8, total=4000.0, seed=6)
    model = Blend([truth, noise], [0.85, 0.15])
    scopes = list(combinations(domain, 3))

    def off(found):
        return np.mean([np.abs(found.marginal(scope) - truth.marginal(scope)).sum() for scope in scopes])

    own = off(model)
    assert off(Rows(domain, synthesize(model, 4000))) < 1.05 * own
    assert off(Rows(domain, model.rows(4000))) > 1.05 * own
    assert off(Rows(domain, stratified(model, 4000))) > 1.05 * own


def test_the_loops_keep_count_of_what_they_do():
    """After all moves and exchanges, the state is what is counted in the rows, less what is expected."""
    model, number = mixture(), 300
    scopes = _scopes(model, MIXED, number)
    drawn = stratified(model, number)
    cells = np.stack([drawn[name] for name in MIXED], axis=1).astype(np.int32)
    scopes.count(cells)
    # Power: a wrong count would be seen in the numbers of rows of the pairs themselves.
    pair = Rows(MIXED, drawn).marginal(["d", "a"]) - model.marginal(["d", "a"]) * number / model.total
    assert any(
        np.allclose(scopes.state["excess"][at : at + 10], pair.ravel(), atol=1e-3) for at in range(len(scopes.state))
    )
    counter = np.array([7], dtype=np.uint64)
    before = scopes.distance
    for at, name in enumerate(MIXED):
        _mend(cells, at, model.marginal([name]) * number / model.total, scopes, counter)
    _search(cells, scopes, counter)
    fresh = _scopes(model, MIXED, number)
    fresh.count(cells)
    for field in ("excess", "weight"):
        np.testing.assert_allclose(scopes.state[field], fresh.state[field], atol=1e-3)
    assert fresh.distance < before / 2


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_tables_of_many_scopes_are_the_marginals(make):
    model = make()
    scopes = [scope for order in (2, 3) for scope in combinations(MIXED, order)]
    found = dict(tables_of(model, scopes, 1000))
    assert sorted(found) == sorted(scopes)
    for scope in scopes:
        expected = model.marginal(scope)
        np.testing.assert_allclose(found[scope], expected * 1000 / expected.sum(), rtol=1e-4, atol=1e-3)


def test_a_hundred_columns_are_settled():
    domain = Domain({f"c{at:02}": Integers(0, 9, missing="drop") for at in range(100)})
    model = mixture(domain, 5)
    settled, drawn = synthesize(model, 200), stratified(model, 200)
    pairs = list(combinations(domain, 2))[::50]
    off = [
        np.mean([np.abs(Rows(domain, each).marginal(pair) - model.marginal(pair) * 200 / 900).sum() for pair in pairs])
        for each in (settled, drawn)
    ]
    assert off[0] < off[1]


def test_one_column_is_enough_and_so_is_one_cell():
    for column in (Boolean(), Categories(["only"], outside="drop"), Integers(0, 99, missing="drop")):
        domain = Domain({"x": column})
        settled = synthesize(mixture(domain, 3), 50)["x"]
        expected = mixture(domain, 3).marginal(["x"]) * 50 / 900
        assert np.abs(np.bincount(settled, minlength=column.size) - expected).max() < 1 + 1e-6


def test_a_model_of_no_rows_has_rows_nonetheless():
    empty = fit_tree(MIXED, [], total=0.0)
    assert all(len(codes) == 20 for codes in synthesize(empty, 20).values())


def test_some_of_the_columns_may_be_wanted():
    settled = synthesize(mixture(), 100, domain=MIXED.project(["b", "d"]))
    assert list(settled) == ["b", "d"]
    with pytest.raises(BadParameter, match="another one in the model"):
        synthesize(mixture(), 100, domain=Domain({"b": Integers(0, 1)}))
    with pytest.raises(BadQuery, match="no column"):
        synthesize(mixture(), 100, domain=Domain({"e": Boolean()}))


def test_rows_come_in_random_order():
    model = Mixture(Domain({"a": Boolean()}), 1.0, np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    settled = synthesize(model, 200)["a"]
    # In the order of the components there would be one change; a random order has 100, and fewer than 20 never.
    assert np.count_nonzero(np.diff(settled)) > 20


@pytest.mark.parametrize("number", [-1, 2.5, True, "many"])
def test_a_number_of_rows_that_is_none_is_refused(number):
    with pytest.raises(BadParameter, match="number is"):
        synthesize(mixture(), number)
