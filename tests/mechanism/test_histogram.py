"""One joint release of a histogram, against d separate ones."""

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.sensitivity import histogram_sensitivity
from discreet.mechanism import histogram, split_scale
from discreet.mechanism.laplace import laplace_half_width
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, REPLACE, UNITS, sealed


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("cells", [2, 3])
def test_the_claimed_epsilon_is_exact_over_all_small_tables(cells, unit):
    verdict = verify.check(lambda _: histogram(epsilon=1, cells=cells, unit=unit), np.eye(cells, dtype=int), unit)
    assert verdict.tight


def test_the_sensitivity_of_one_count_is_not_that_of_a_histogram_under_replacement():
    broken = pretend(histogram(epsilon=1, cells=3, unit=REPLACE).event, histogram(epsilon=1, cells=3, unit=ADD).law)
    verdict = verify.check(lambda _: broken, np.eye(3, dtype=int), REPLACE)
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(2)


@pytest.mark.parametrize("cells", [2, 10, 1000])
def test_splitting_the_budget_costs_half_as_many_times_the_noise_as_there_are_cells(cells):
    joint = histogram(epsilon=1, cells=cells, unit=REPLACE).event.scale
    assert split_scale(epsilon=1, cells=cells, unit=REPLACE) == joint * cells / 2
    joint = histogram(epsilon=1, cells=cells, unit=ADD).event.scale
    assert split_scale(epsilon=1, cells=cells, unit=ADD) == joint * cells


def test_the_errors_show_the_same_factor():
    joint = histogram(epsilon=1, cells=1000, unit=REPLACE).error(0.95)
    assert laplace_half_width(split_scale(epsilon=1, cells=1000, unit=REPLACE), 0.95) / joint == pytest.approx(
        500, rel=0.2
    )


def test_it_releases_an_integer_for_each_cell():
    noisy = histogram(epsilon=100, cells=4, unit=REPLACE).release(
        sealed([5, 0, 7, 1], histogram_sensitivity(4, REPLACE))
    )
    assert noisy.dtype == np.int64
    assert noisy.shape == (4,)
