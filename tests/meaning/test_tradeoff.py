"""The best test: what is promised, what a Gaussian leaves, and what an exact law gives, agree where they should."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.meaning import best_test, expected_utility, gaussian_misses, least_share, promised_misses
from discreet.mechanism import discrete_gaussian, gaussian, laplace, name_and_shame, randomized_response

alarms = st.floats(0.001, 0.999)


def laws(mechanism, one=(3,), other=(4,)):
    return mechanism.law(one, beside=[other]), mechanism.law(other, beside=[one])


@settings(max_examples=30)
@given(alarms, st.floats(0.1, 4))
def test_a_laplace_count_attains_the_promise(alarm, epsilon):
    test = best_test(*laws(laplace(epsilon=epsilon, sensitivity=1)))
    assert test.misses(alarm) == pytest.approx(promised_misses(epsilon=epsilon, false_alarm=alarm), abs=1e-9)


@settings(max_examples=30)
@given(alarms)
def test_half_of_the_noise_breaks_the_promise(alarm):
    test = best_test(*laws(laplace(epsilon=2, sensitivity=1)))
    assert test.misses(alarm) < promised_misses(epsilon=1, false_alarm=alarm)


@settings(max_examples=30)
@given(alarms)
def test_the_curve_of_a_rounded_gaussian_is_above_that_of_a_gaussian_and_near_it(alarm):
    test = best_test(*laws(gaussian(sigma=4, sensitivity=1), (0,), (1,)))
    misses = gaussian_misses(mu=0.25, false_alarm=alarm)
    assert misses - 1e-9 <= test.misses(alarm) <= misses + 0.02


def test_no_test_beats_the_best():
    one, other = laws(randomized_response(epsilon=1, categories=3), (0,), (2,))
    test = best_test(one, other)
    outcomes = list(one.probabilities)
    for chosen in product((0, 1), repeat=len(outcomes)):
        alarm = sum(float(one.probabilities[o].mid()) for o, yes in zip(outcomes, chosen, strict=True) if yes)
        hit = sum(float(other.probabilities[o].mid()) for o, yes in zip(outcomes, chosen, strict=True) if yes)
        assert 1 - hit >= test.misses(alarm) - 1e-12


def test_groups_are_easier_to_find():
    misses = [promised_misses(epsilon=0.5, delta=1e-6, false_alarm=0.05, people=k) for k in (1, 2, 5)]
    assert misses == sorted(misses, reverse=True)
    curve = [gaussian_misses(mu=0.5, false_alarm=0.05, people=k) for k in (1, 2, 5)]
    assert curve == sorted(curve, reverse=True)
    assert curve[1] == gaussian_misses(mu=1, false_alarm=0.05)


def test_a_published_row_is_found_without_false_alarms():
    shame = name_and_shame(delta=0.1)
    test = best_test(shame.law([0]), shame.law([1]))
    assert test.misses(0) == pytest.approx(0.9)
    assert test.advantage == pytest.approx(0.1)


def test_what_a_law_does_not_list_counts_for_the_tester():
    one, other = laws(discrete_gaussian(sigma=1, sensitivity=1))
    assert best_test(one, other).corners[0][1] <= 1


def test_the_least_share_is_that_of_who_values_the_rarest_outcome_only():
    with_row, without = laws(laplace(epsilon=1, sensitivity=1), (4,), (3,))
    shares = [
        expected_utility(with_row, lambda told, o=outcome: float(told == o))
        / expected_utility(without, lambda told, o=outcome: float(told == o))
        for outcome in with_row.probabilities
    ]
    assert min(shares) == pytest.approx(least_share(with_row, without))
