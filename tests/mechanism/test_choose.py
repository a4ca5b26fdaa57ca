"""The lectures' two selection problems."""

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity, scalar_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism import best_price, condition_effects, most_common, noisy_max, price_effects
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, REPLACE, UNITS, floats, sealed
from support.statistics import assert_follows, rejects

PRICES = [1, 2, 3]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_the_most_common_condition_is_as_private_as_it_says_though_a_row_may_have_them_all(unit, noise):
    make = lambda _: most_common(["a", "b"], epsilon=1, unit=unit, noise=noise)
    assert verify.check(make, condition_effects(2), unit).holds


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_the_best_price_is_as_private_as_it_says(unit):
    make = lambda _: best_price(PRICES, epsilon=1, unit=unit)
    assert verify.check(make, price_effects(PRICES, willing=[0, 1, 2, 3]), unit).holds


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_the_sensitivities_are_those_of_the_whole_matrix(unit):
    assert matrix_sensitivity(condition_effects(3), unit).linf == unit.contributions
    assert matrix_sensitivity(price_effects(PRICES, willing=[0, 1, 2, 3]), unit).linf == 3 * unit.contributions


def test_taking_the_lowest_price_for_the_sensitivity_is_refuted():
    right = best_price(PRICES, epsilon=1, unit=ADD)
    law = noisy_max(epsilon=1, sensitivity=scalar_sensitivity(0, min(PRICES), ADD)).law
    effects = price_effects(PRICES, willing=[0, 1, 2, 3])
    assert verify.check(lambda _: pretend(right.event, law), effects, ADD).refuted


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_draws_follow_the_law_and_have_the_names_of_the_candidates(unit):
    price = best_price([50, 99], epsilon=1, unit=unit)
    effects = price_effects([50, 99], willing=[0, 50, 99])
    revenue = effects @ np.array([1, 3, 2])
    exact = sealed(revenue, matrix_sensitivity(effects, unit))
    draws = [price.release(exact) for _ in range(5_000)]
    assert_follows(draws, floats(price.law(revenue)))
    assert rejects(draws, floats(price.law(revenue[::-1])))


def test_the_most_common_condition_is_found_when_it_is_clear():
    effects = condition_effects(3)
    rows = np.zeros(8, dtype=int)
    rows[0b101], rows[0b001] = 400, 400
    common = most_common(["flu", "cold", "asthma"], epsilon=1, unit=ADD)
    assert common.release(sealed(effects @ rows, matrix_sensitivity(effects, ADD))) == "flu"


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_candidates_must_be_there_and_different(names):
    with pytest.raises(BadParameter, match="Give each once"):
        most_common(names, epsilon=1, unit=ADD)


@pytest.mark.parametrize("price", [0, -1, 0.5, "1"])
def test_prices_are_whole_cents(price):
    with pytest.raises(BadParameter, match="price is"):
        best_price([1, price], epsilon=1, unit=ADD)
