"""Numbers that look random are always the same, lie where they should and do not go together."""

import numpy as np
import pytest

from discreet.model.mixture.independent_model import normal, pseudo_uniforms

MANY = 20_000


def test_they_are_the_same_whenever_they_are_made_and_however_many():
    np.testing.assert_array_equal(pseudo_uniforms(1000, seed=3), pseudo_uniforms(1000, seed=3))
    np.testing.assert_array_equal(pseudo_uniforms(1000, seed=3)[:10], pseudo_uniforms(10, seed=3))
    np.testing.assert_array_equal(normal((4, 6), seed=2).ravel(), normal((24,), seed=2))


def test_seeds_have_nothing_in_common():
    found = np.concatenate([pseudo_uniforms(MANY, seed=seed) for seed in range(10)])
    assert len(np.unique(found)) == found.size


@pytest.mark.parametrize("seed", [0, 1, 23])
def test_they_are_spread_evenly_and_never_0_or_1(seed):
    found = np.sort(pseudo_uniforms(MANY, seed=seed))
    assert 0 < found[0] < found[-1] < 1
    # Kolmogorov's distance of uniform draws exceeds this with probability 2 exp(−2 n d²) < 1e-9.
    assert np.abs(found - (np.arange(MANY) + 0.5) / MANY).max() < (10.7 / MANY) ** 0.5


def test_neighbours_and_seeds_do_not_go_together():
    first, second = (normal((MANY,), seed=seed) for seed in (0, 1))
    # Six standard deviations of the mean of so many products.
    assert abs(first[1:] @ first[:-1]) < 6 * MANY**0.5
    assert abs(first @ second) < 6 * MANY**0.5
    # Power: a sequence that goes up and down by turns is seen.
    ordered = np.sort(first)
    assert abs(ordered[1:] @ ordered[:-1]) > 6 * MANY**0.5


def test_normal_ones_have_the_moments_of_a_bell():
    found = normal((MANY,), seed=5)
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((found**power).mean() - moment) < 6 * (spread / MANY) ** 0.5
