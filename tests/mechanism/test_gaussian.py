"""The Gaussian mechanisms: rounded costs what continuous costs, discrete is concentrated, both draw what they say."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from discreet import verify
from discreet.accounting import gaussian_delta, lecture_sigma
from discreet.errors import BadParameter
from discreet.mechanism import discrete_gaussian, gaussian
from discreet.noise.law import discrete_gaussian_mass, discrete_gaussian_total, gaussian_tail
from support.broken_mechanisms import gaussian_rounded_value_plus_float, gaussian_too_little_noise
from support.mechanism_values import UNITS, first_coordinate, sealed, total
from support.statistics import assert_follows, rejects

COUNT, SUM, PAIR = [[1, 0]], [[0, 1, 3]], [[1, 0], [0, 1]]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("query", [COUNT, SUM], ids=["count", "sum"])
@pytest.mark.parametrize("epsilon", [0, Fraction(1, 2), 2])
def test_rounded_noise_stays_below_the_exact_condition_of_the_continuous_one(query, unit, epsilon):
    make = lambda moves: gaussian(sigma=2, sensitivity=moves)
    verdict = verify.check(make, query, unit, epsilon=epsilon)
    assert verdict.holds
    assert not verdict.refuted


def test_a_vector_costs_what_its_euclidean_move_costs():
    verdict = verify.check(
        lambda moves: gaussian(sigma=Fraction(3, 2), sensitivity=moves), PAIR, UNITS[1], rows=1, epsilon=1
    )
    assert verdict.holds
    assert verdict.exact.lower > verdict.claimed * 0.9


def test_rounding_loses_less_and_less_as_the_noise_grows():
    shares = []
    for sigma in (2, 4, 8):
        verdict = verify.check_pairs(gaussian(sigma=sigma, sensitivity=sigma), [([0], [sigma])], epsilon=1)
        shares.append(verdict.exact.lower / verdict.claimed)
    assert shares == sorted(shares)
    assert shares[0] > 0.9
    assert 0.99 < shares[2] < 1


def test_rounding_loses_nothing_where_the_best_test_cuts_between_two_integers():
    # The continuous best test cuts at Δ/2 + εσ²/Δ = 1/2 + 4ε: here a half-integer, so that no outcome is split.
    for epsilon in (Fraction(1, 4), Fraction(1, 2), 2):
        assert verify.check_pairs(gaussian(sigma=2, sensitivity=1), [([0], [1])], epsilon=epsilon).tight


@pytest.mark.parametrize("epsilon", [0, 1])
def test_ten_per_cent_less_noise_is_refuted(epsilon):
    verdict = verify.check_pairs(gaussian_too_little_noise(sigma=3, sensitivity=3), [([0], [3])], epsilon=epsilon)
    assert verdict.refuted


def test_a_fingerprint_of_the_true_value_in_the_last_bit_is_refuted():
    verdict = verify.check_pairs(gaussian_rounded_value_plus_float(sigma=20, sensitivity=1), [([0], [1])])
    assert verdict.refuted
    assert verdict.exact.lower > 0.99


def test_no_gaussian_is_private_without_a_delta():
    mechanism = gaussian(sigma=2, sensitivity=1)
    here, there = mechanism.law([0], beside=[[1]]), mechanism.law([1], beside=[[0]])
    assert verify.epsilon(here, there).upper == inf
    assert verify.epsilon(here, there).lower > 5


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize("move", [1, 2])
def test_the_discrete_gaussian_meets_its_concentration_bound_exactly_at_whole_orders(order, move):
    mechanism = discrete_gaussian(sigma=2, sensitivity=move)
    found = verify.renyi(mechanism.law([0], beside=[[move]]), mechanism.law([move], beside=[[0]]), order)
    assert found.lower == pytest.approx(order * move**2 / 8, abs=1e-8)
    assert found.lower <= order * move**2 / 8


def test_a_discrete_gaussian_with_ten_per_cent_less_noise_breaks_its_concentration_bound():
    small = discrete_gaussian(sigma=Fraction(18, 10), sensitivity=1)
    found = verify.renyi(small.law([0], beside=[[1]]), small.law([1], beside=[[0]]), 2)
    assert found.lower > 2 * 1 / 8


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2])
def test_the_discrete_gaussian_stays_below_its_concentrated_claim(unit, epsilon):
    verdict = verify.check(lambda moves: discrete_gaussian(sigma=2, sensitivity=moves), SUM, unit, epsilon=epsilon)
    assert verdict.holds


def test_verify_finds_what_a_discrete_gaussian_gives_exactly_and_it_is_less_than_concentration_says():
    mechanism = discrete_gaussian(epsilon=1, delta=Fraction(1, 10**6), sensitivity=1)
    here, there = mechanism.law([0], beside=[[1]]), mechanism.law([1], beside=[[0]])
    exact = verify.epsilon(here, there, delta=Fraction(1, 10**6))
    assert exact.upper - exact.lower < 1e-9
    assert 0.8 < exact.upper < 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 5])
def test_calibration_spends_the_budget_and_beats_the_lectures_sigma(epsilon):
    delta = Fraction(1, 10**6)
    event = gaussian(epsilon=epsilon, delta=delta, sensitivity=1).event
    assert gaussian_delta(1 / event.sigma**2, Fraction(epsilon)) <= delta
    assert gaussian_delta(1 / (event.sigma * Fraction(999, 1000)) ** 2, Fraction(epsilon)) > delta
    assert event.sigma < lecture_sigma(epsilon=epsilon, delta=delta)


def test_the_lectures_sigma_is_too_small_for_large_epsilon():
    # A move of a hundred, so that rounding to integers hides nothing.
    sigma = lecture_sigma(epsilon=40, delta=Fraction(1, 10), squared_sensitivity=100**2)
    mechanism = gaussian(sigma=sigma, sensitivity=100)
    ((_, delta),) = verify.curve(mechanism, [([0], [100])], [40])
    assert delta.lower > 1 / 10
    right = gaussian(epsilon=40, delta=Fraction(1, 10), sensitivity=100)
    ((_, delta),) = verify.curve(right, [([0], [100])], [40])
    assert delta.upper <= 1 / 10


@pytest.mark.parametrize("make", [gaussian, discrete_gaussian])
def test_the_law_lists_all_but_a_sliver(make):
    law = make(sigma=2, sensitivity=1).law([5])
    assert abs(total(law) - 1) < 1e-40
    assert 0 < law.rest < 2**-100


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1234, 7)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("joint", [1, 1000])
def test_the_error_of_rounded_noise_is_the_smallest_that_holds(sigma, confidence, joint):
    width = int(gaussian(sigma=sigma, sensitivity=1).error(confidence, joint=joint))
    assert (1 - 2 * gaussian_tail(width + 1, sigma)) ** joint >= confidence
    if width:
        assert (1 - 2 * gaussian_tail(width, sigma)) ** joint < confidence


@pytest.mark.parametrize("sigma", [Fraction(1, 3), Fraction(1), Fraction(10)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_the_error_of_discrete_noise_holds_and_is_at_most_two_too_wide(sigma, confidence):
    width = int(discrete_gaussian(sigma=sigma, sensitivity=1).error(confidence))
    weights = discrete_gaussian_total(sigma)
    inside = [discrete_gaussian_mass(k, sigma, weights) for k in range(-width, width + 1)]
    assert sum(inside) >= confidence
    if width > 2:
        assert sum(inside[3:-3]) < confidence


@pytest.mark.parametrize("make", [gaussian, discrete_gaussian])
def test_draws_follow_the_law_and_less_noise_is_noticed(make):
    draws = make(sigma=2, sensitivity=1).release(sealed(np.full(40_000, -3)))
    assert_follows(draws, first_coordinate(make(sigma=2, sensitivity=1).law([-3])))
    assert rejects(draws, first_coordinate(make(sigma=Fraction(18, 10), sensitivity=1).law([-3])))


def test_the_rounded_and_the_discrete_gaussian_are_not_the_same():
    draws = discrete_gaussian(sigma=1, sensitivity=1).release(sealed(np.full(160_000, 0)))
    assert rejects(draws, first_coordinate(gaussian(sigma=1, sensitivity=1).law([0])))


@pytest.mark.parametrize("given", [{}, {"epsilon": 1}, {"delta": 0.1}, {"sigma": 1, "epsilon": 1, "delta": 0.1}])
def test_the_noise_is_given_in_one_way(given):
    with pytest.raises(BadParameter, match="Give sigma alone, or epsilon and delta"):
        gaussian(sensitivity=1, **given)
