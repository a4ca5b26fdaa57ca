"""Looks at three columns or more, as matrix products: the same numbers and slopes as one by one, in whatever order."""

from itertools import permutations

import numpy as np
import pytest

from discreet.model.interface import NoisyMarginal
from discreet.model.mixture import features
from discreet.model.mixture.block_features import block_of
from discreet.model.mixture.features import mixture_features
from discreet.query.residual import axis_of
from discreet.schema import Categories, Domain

SIZES = (3, 5, 2, 4)
TOTAL = 50.0


def example(columns, components=6, seed=0):
    """Places of features, their means, weights of components, and noisy values of all products."""
    rng = np.random.default_rng(seed)
    sizes = SIZES[:columns]
    # One feature in front that nobody looks at.
    ends = 1 + np.cumsum(sizes)
    places = [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]
    means = rng.normal(size=(int(ends[-1]), components))
    weights = rng.dirichlet(np.ones(components))
    true = TOTAL * products(means, weights, places)
    return places, means, weights, true + rng.normal(size=true.shape)


def products(means, weights, places):
    """Σ_k w_k Π f_k of every product of features, with an axis for each column."""
    found = weights
    for place in reversed(places):
        found = means[place].reshape(-1, *(1,) * (found.ndim - 1), means.shape[1]) * found[None]
    return found.sum(axis=-1)


def loss_of(means, weights, places, values, weight):
    return weight / 2 * float(((TOTAL * products(means, weights, places) - values) ** 2).sum())


@pytest.mark.parametrize("columns", [3, 4])
def test_the_means_are_those_of_all_products(columns):
    places, means, weights, values = example(columns)
    block = block_of(places, values, weight=0.3)
    assert block.size == values.size
    sizes = [place.stop - place.start for place in block.places]
    assert sizes == sorted(sizes)
    arranged = products(means, weights, list(block.places))
    np.testing.assert_allclose(block.means(means, weights), arranged.reshape(-1, sizes[-1]))


@pytest.mark.parametrize("columns", [3, 4])
def test_the_loss_and_its_slopes_are_right_and_are_added(columns):
    places, means, weights, values = example(columns)
    block, rng = block_of(places, values, weight=0.3), np.random.default_rng(1)
    before, earlier = rng.normal(size=means.shape), rng.normal(size=weights.shape)
    slopes, along = before.copy(), earlier.copy()
    loss = block.add(means, weights, TOTAL, slopes, along, times=1.0)
    assert loss == pytest.approx(loss_of(means, weights, places, values, 0.3))
    slopes, along = slopes - before, along - earlier
    assert not slopes[0].any()
    direction, turn, tiny = rng.normal(size=means.shape), rng.normal(size=weights.shape), 1e-6
    up, down = (
        loss_of(means + sign * tiny * direction, weights + sign * tiny * turn, places, values, 0.3) for sign in (1, -1)
    )
    # The slopes along the means lack the weight of their component.
    expected = np.vdot(slopes * weights, direction) + along @ turn
    assert (up - down) / (2 * tiny) == pytest.approx(expected, rel=1e-6)


def test_so_many_times_are_so_many_times_the_slopes_and_one_loss():
    places, means, weights, values = example(3)
    block = block_of(places, values, weight=0.3)
    once, thrice = ((np.zeros(means.shape), np.zeros(weights.shape)) for _ in range(2))
    losses = [block.add(means, weights, TOTAL, *slopes, times=times) for slopes, times in ((once, 1.0), (thrice, 3.0))]
    assert losses[0] == losses[1]
    for one, three in zip(once, thrice, strict=True):
        np.testing.assert_allclose(three, 3 * one, rtol=1e-6)


def test_the_order_of_the_columns_does_not_matter():
    places, means, weights, values = example(3)
    found = []
    for order in permutations(range(3)):
        block = block_of([places[at] for at in order], values.transpose(order), weight=0.3)
        slopes, along = np.zeros(means.shape), np.zeros(weights.shape)
        found.append((block.add(means, weights, TOTAL, slopes, along, times=1.0), slopes, along))
    for loss, slopes, along in found[1:]:
        assert loss == pytest.approx(found[0][0])
        np.testing.assert_allclose(slopes, found[0][1])
        np.testing.assert_allclose(along, found[0][2])


def test_in_single_precision_it_is_nearly_the_same():
    places, means, weights, values = example(3)
    block = block_of(places, values, weight=0.3)
    half = block.single()
    assert half.values.dtype == np.float32
    slopes, along = np.zeros(means.shape), np.zeros(weights.shape)
    assert half.add(means, weights, TOTAL, slopes, along, times=1.0) == pytest.approx(
        loss_of(means, weights, places, values, 0.3), rel=1e-5
    )


# --- Among other features ---------------------------------------------------------------------------------------------

CELLS = {"a": 5, "b": 4, "c": 5, "d": 4}
DOMAIN = Domain({name: Categories(list("uvwxy")[:size], outside="drop") for name, size in CELLS.items()})


def looks(seed=0, weight=0.5):
    """Wholes and parts of three columns and more, single columns and pairs."""
    rng = np.random.default_rng(seed)
    scopes = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d"), ("a", "b", "c", "d")]
    found = []
    for scope in scopes:
        for parts in (None, (1,) * len(scope)):
            shape = [DOMAIN[n].size if parts is None else axis_of(DOMAIN[n]).rows(1) for n in scope]
            found.append(NoisyMarginal(scope, parts, 10 * rng.normal(size=shape), weight))
    return found


def mixture(components=4, seed=1):
    rng = np.random.default_rng(seed)
    tables = np.concatenate([rng.dirichlet(np.ones(size), size=components).T for size in DOMAIN.shape])
    return tables, rng.dirichlet(np.ones(components)), TOTAL


def test_blocks_and_numbers_one_by_one_say_the_same(monkeypatch):
    blocks = mixture_features(looks(), DOMAIN)
    monkeypatch.setattr(features, "LARGE", 10**9)
    apart = mixture_features(looks(), DOMAIN)
    assert blocks.blocks
    assert not apart.blocks
    assert blocks.numbers == apart.numbers
    for one, other in zip(blocks.loss(*mixture()), apart.loss(*mixture()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    tables, _, total = mixture(components=1)
    for far in (0.5, 2.0):
        assert blocks.missed_share(tables, total, far) == pytest.approx(apart.missed_share(tables, total, far))


def test_the_turns_stand_for_all_blocks_on_average(monkeypatch):
    found = mixture_features(looks(), DOMAIN)
    whole = found.loss(*mixture())
    monkeypatch.setattr(features.Features, "turns", property(lambda _: 3))
    turns = [found.loss(*mixture(), turn=turn) for turn in range(3)]
    for place, exact in enumerate(whole):
        np.testing.assert_allclose(np.mean([each[place] for each in turns], axis=0), exact, rtol=1e-5)
    # Each turn looks at other blocks, and begins again after the last.
    assert len({round(each[0], 6) for each in turns}) == 3
    assert found.loss(*mixture(), turn=3)[0] == turns[0][0]
