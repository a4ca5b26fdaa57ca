"""Looks at three columns as one product of matrices: the same numbers and slopes as one by one."""

from itertools import combinations

import numpy as np
import pytest

from discreet.model.interface import NoisyMarginal
from discreet.model.mixture import features
from discreet.model.mixture.features import cube_of, mixture_features
from discreet.query.residual import axis_of
from discreet.schema import Boolean, Categories, Domain

DOMAIN = Domain({"a": Boolean(), "b": Categories(list("xyz"), outside="drop"), "c": Boolean(), "d": Boolean()})
TOTAL = 40.0


def looks(seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for scope in [*combinations("abcd", 2), *combinations("abcd", 3)]:
        shape = [axis_of(DOMAIN[name]).rows(1) for name in scope]
        found.append(NoisyMarginal(scope, (1,) * len(scope), 10 * rng.normal(size=shape), float(rng.uniform(0.1, 1))))
    return found


def mixture(components=5, seed=1):
    rng = np.random.default_rng(seed)
    tables = np.concatenate([rng.dirichlet(np.ones(size), size=components).T for size in DOMAIN.shape])
    return tables, rng.dirichlet(np.ones(components)), TOTAL


def test_a_cube_and_numbers_one_by_one_say_the_same(monkeypatch):
    together = mixture_features(looks(), DOMAIN)
    monkeypatch.setattr(features, "cube_of", lambda looks: None)
    apart = mixture_features(looks(), DOMAIN)
    assert together.cube is not None
    assert not together.higher
    assert apart.higher
    assert together.numbers == apart.numbers
    for one, other in zip(together.loss(*mixture()), apart.loss(*mixture()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    tables, _, total = mixture(components=1)
    for far in (0.5, 2.0):
        assert together.missed_share(tables, total, far) == pytest.approx(apart.missed_share(tables, total, far))


def test_several_mixtures_at_once_are_as_one_by_one():
    found = mixture_features(looks(), DOMAIN)
    several = [mixture(seed=seed) for seed in range(3)]
    tables, weights = np.stack([one[0] for one in several], axis=1), np.stack([one[1] for one in several])
    losses, along_tables, along_weights = found.losses(tables, weights, TOTAL)
    for place, one in enumerate(several):
        loss, slopes, along = found.loss(*one)
        assert losses[place] == pytest.approx(loss)
        np.testing.assert_allclose(along_tables[:, place], slopes, rtol=1e-9)
        np.testing.assert_allclose(along_weights[place], along, rtol=1e-9)


def test_a_cube_that_would_be_mostly_empty_is_not_made():
    wide = [slice(0, 10), slice(10, 20), slice(20, 30)]
    assert cube_of([(wide, np.zeros((10, 10, 10)), 1.0)]) is not None
    narrow = [
        (slice(10 * at, 10 * at + 1), slice(10 * at + 1, 10 * at + 2), slice(10 * at + 2, 10 * at + 3))
        for at in range(9)
    ]
    assert cube_of([(places, np.zeros((1, 1, 1)), 1.0) for places in narrow]) is None
    assert cube_of([]) is None
