"""The statistical test itself: it passes right samplers, rejects wrong ones, and its bound is a bound."""

import numpy as np
import pytest

from support.statistics import assert_follows, assert_rate_at_least, rejects, relative_entropy_bound

FAIR = dict.fromkeys(range(6), 1 / 6)


def test_a_fair_die_passes_and_a_loaded_one_is_rejected():
    rng = np.random.default_rng(1)
    assert_follows(rng.integers(0, 6, 100_000), FAIR)
    assert rejects(rng.choice(6, 100_000, p=[0.18, 0.164, 0.164, 0.164, 0.164, 0.164]), FAIR)


def test_an_outcome_outside_the_law_is_rejected_even_once():
    draws = np.append(np.random.default_rng(1).integers(0, 6, 10_000), 6)
    assert rejects(draws, FAIR)


def test_one_incredible_draw_is_enough():
    law = {0: 1 - 1e-15, 1: 1e-15}
    assert rejects([0] * 1000 + [1], law)
    assert not rejects([0] * 1001, law)


def test_mass_that_is_not_listed_is_a_cell():
    assert not rejects([0] * 5000 + [7] * 5000, {0: 0.5})
    assert rejects([0] * 6000 + [7] * 4000, {0: 0.5})


@pytest.mark.parametrize("cells", [2, 5, 20])
def test_the_entropy_bound_is_above_what_simulation_shows(cells):
    rng = np.random.default_rng(cells)
    law = rng.dirichlet(np.ones(cells))
    counts = rng.multinomial(200, law, size=200_000)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nansum(np.where(counts > 0, counts * np.log(counts / (200 * law)), 0), axis=1)
    assert (entropy > relative_entropy_bound(cells, 1e-2)).mean() < 1e-2
    # A bound that is never approached would have no power.
    assert (entropy > relative_entropy_bound(cells, 1e-2) / 2).mean() > 1e-3


def test_a_rate_that_is_too_low_is_rejected():
    assert_rate_at_least(940, 1000, 0.95)
    with pytest.raises(AssertionError):
        assert_rate_at_least(800, 1000, 0.95)
