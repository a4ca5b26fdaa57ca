"""Randomized response: private even against the collector, unbiased, and never looking at the truth when it draws."""

from fractions import Fraction
from math import exp, inf, sqrt

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import estimate_counts, label_sensitivity, randomized_response
from support.broken_mechanisms import response_too_honest
from support.mechanism_values import ADD, ADD_PERSON, REPLACE, REPLACE_PERSON, first_coordinate, floats, sealed, total
from support.statistics import assert_follows, assert_rate_at_least, rejects


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 3])
@pytest.mark.parametrize(("categories", "rows"), [(2, 1), (2, 4), (3, 3), (5, 2)])
def test_the_claimed_epsilon_is_exact_for_replaced_rows(epsilon, categories, rows):
    mechanism = randomized_response(epsilon=epsilon, categories=categories, sensitivity=label_sensitivity(REPLACE))
    assert verify.check_pairs(mechanism, verify.neighboring_rows(categories, rows)).tight


@pytest.mark.parametrize("categories", [2, 4])
def test_a_tenth_too_honest_is_refuted(categories):
    pairs = list(verify.neighboring_rows(categories, 2))
    verdict = verify.check_pairs(response_too_honest(epsilon=1, categories=categories), pairs)
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(1.1)


def test_two_changed_labels_share_the_epsilon():
    pairs = [((0, 0, 1), (1, 1, 1)), ((0, 2, 1), (1, 1, 1))]
    assert verify.check_pairs(randomized_response(epsilon=1, categories=3, sensitivity=2), pairs).tight
    assert verify.check_pairs(randomized_response(epsilon=1, categories=3, sensitivity=1), pairs).refuted


def test_codes_whose_sensitivity_is_counted_as_numbers_are_only_opened_by_enough_noise():
    numbers = sealed([0, 2, 1], label_sensitivity(REPLACE))
    randomized_response(epsilon=1, categories=3).release(numbers)
    far = sealed([0, 2, 1], scalar_sensitivity(0, 2, REPLACE))
    with pytest.raises(SealBroken):
        randomized_response(epsilon=1, categories=3).release(far)
    randomized_response(epsilon=1, categories=3, sensitivity=2).release(far)


@pytest.mark.parametrize("unit", [ADD, ADD_PERSON, REPLACE_PERSON], ids=lambda unit: unit.describe)
def test_where_the_number_of_rows_is_private_there_is_no_randomized_response(unit):
    with pytest.raises(BadParameter):
        label_sensitivity(unit)


@pytest.mark.parametrize("categories", [2, 3])
def test_the_estimate_is_unbiased_and_its_variance_is_the_formula(categories):
    truth = [0, 0, 1, 0, 1]
    mechanism = randomized_response(epsilon=1, categories=categories)
    reports = [(np.array(reports), chance) for reports, chance in floats(mechanism.law(truth)).items()]
    estimates = [estimate_counts(said, epsilon=1, categories=categories) for said, _ in reports]
    chances = np.array([chance for _, chance in reports])
    counts = np.array([estimate.counts for estimate in estimates])
    mean = chances @ counts
    assert mean == pytest.approx(np.bincount(truth, minlength=categories), abs=1e-12)
    variance = chances @ (counts - mean) ** 2
    p, q = exp(1) / (exp(1) + categories - 1), 1 / (exp(1) + categories - 1)
    true = np.bincount(truth, minlength=categories)
    formula = (true * p * (1 - p) + (5 - true) * q * (1 - q)) / (p - q) ** 2
    assert variance == pytest.approx(formula, rel=1e-12)
    assert all(variance <= estimates[0].deviation ** 2 + 1e-12)
    if categories == 2:
        # theory.md §2: the sd of the fraction is √(p(1−p))/((2p−1)√n)
        assert sqrt(variance[0]) / 5 == pytest.approx(sqrt(p * (1 - p)) / ((2 * p - 1) * sqrt(5)))
        assert estimates[0].deviation == pytest.approx(sqrt(variance[0]))


@pytest.mark.parametrize("categories", [2, 3, 7])
def test_draws_follow_the_law_and_more_honest_ones_are_noticed(categories):
    mechanism = randomized_response(epsilon=1, categories=categories)
    draws = mechanism.release(sealed(np.full(240_000, 1)))
    assert_follows(draws, first_coordinate(mechanism.law([1])))
    assert rejects(draws, first_coordinate(response_too_honest(epsilon=1, categories=categories).law([1])))


def test_the_error_holds_for_the_counts():
    mechanism = randomized_response(epsilon=1, categories=4)
    truth = np.repeat([0, 1, 3], [500, 300, 200])
    width, good = mechanism.error(0.9, reports=1000), 0
    for _ in range(200):
        counts = estimate_counts(mechanism.release(sealed(truth)), epsilon=1, categories=4).counts
        good += abs(counts[0] - 500) <= width
    assert_rate_at_least(good, 200, 0.9)
    assert width < 1000


def test_a_category_outside_counts_as_the_nearest_inside():
    mechanism = randomized_response(epsilon=1, categories=3)
    assert floats(mechanism.law([9])) == floats(mechanism.law([2]))
    assert floats(mechanism.law([-4])) == floats(mechanism.law([0]))
    assert set(mechanism.release(sealed([9, -4] * 50)).tolist()) <= {0, 1, 2}


def test_the_law_is_complete():
    assert abs(total(randomized_response(epsilon=1, categories=3).law([0, 1, 2])) - 1) < 1e-50


def test_one_report_for_each_row_shows_how_many_rows_there_are():
    mechanism = randomized_response(epsilon=1)
    assert verify.epsilon(mechanism.law([0, 1]), mechanism.law([0])).lower == inf
