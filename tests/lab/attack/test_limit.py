"""What is permitted: the formulas against the definitions, and that luck is luck."""

from math import exp

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

import discreet as dp
from discreet.errors import BadParameter
from discreet.lab.attack.events import share_above, share_below
from discreet.lab.attack.limit import best_guess, largest_area, luckiest_share, secret_budget
from discreet.meaning import best_power

BUDGETS = [(0.1, 0.0), (1.0, 0.0), (1.0, 0.05), (3.0, 1e-6), (0.5, 0.3)]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("prior", [0.5, 0.2, 0.76, 0.99])
def test_the_best_guess_is_the_best_of_all_tests(epsilon, delta, prior):
    alarms = np.linspace(0, 1, 4001)
    powers = [best_power(epsilon=epsilon, delta=delta, false_alarm=alarm) for alarm in alarms]
    searched = max(prior * power + (1 - prior) * (1 - alarm) for power, alarm in zip(powers, alarms, strict=True))
    found = best_guess(epsilon=epsilon, delta=delta, prior=prior)
    assert searched <= found + 1e-12
    assert searched == pytest.approx(found, abs=1e-3)


def test_a_fair_bit_is_guessed_as_well_as_randomized_response_tells_it():
    assert best_guess(epsilon=1) == pytest.approx(exp(1) / (1 + exp(1)))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_largest_area_is_the_integral_of_the_best_power(epsilon, delta):
    corners = [(1 - delta) / (1 + exp(epsilon)), 1 - delta]
    area, _ = quad(lambda a: best_power(epsilon=epsilon, delta=delta, false_alarm=a), 0, 1, points=corners)
    assert largest_area(epsilon=epsilon, delta=delta) == pytest.approx(area, abs=1e-9)


def test_luck_is_the_tail_of_a_binomial():
    share = luckiest_share(200, epsilon=1, confidence=0.999)
    chance = exp(1) / (1 + exp(1))
    assert binom.sf(round(200 * share), 200, chance) <= 1e-3 < binom.sf(round(200 * share) - 1, 200, chance)


def test_a_delta_makes_luck_larger_and_a_large_one_permits_everything():
    assert luckiest_share(1000, epsilon=1) < luckiest_share(1000, epsilon=1, delta=4e-7) < 1
    assert luckiest_share(100, epsilon=1, delta=0.01) == 1


def test_a_secret_costs_twice_where_rows_come_and_go():
    assert secret_budget(dp.Unit(), epsilon=1, delta=1e-9) == pytest.approx((2, 1e-9 * (1 + exp(1))))
    assert secret_budget(dp.Unit(neighbors="replace_one"), epsilon=1, delta=1e-9) == (1, 1e-9)


@pytest.mark.parametrize("chance", [0.001, 0.3, 0.9])
def test_clopper_and_pearson_fail_as_seldom_as_they_say(chance):
    """Over all numbers of successes, exactly."""
    trials, failure = 60, 0.01
    masses = binom.pmf(np.arange(trials + 1), trials, chance)
    too_high = sum(m for k, m in enumerate(masses) if share_above(k, trials, failure) > chance)
    too_low = sum(m for k, m in enumerate(masses) if share_below(k, trials, failure) < chance)
    assert max(too_high, too_low) <= failure


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "prior": 2}])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(BadParameter):
        best_guess(**bad)


def test_reports_of_randomized_response_are_as_lucky_as_the_bound_and_honest_ones_luckier():
    """The worst mechanism there is: the share guessed right is binomial, so the bound is reached and not crossed."""
    from discreet.lab.attack.epsilon_audit import fast_draws_of
    from discreet.mechanism import randomized_response

    people, right = 400, []
    for epsilon in (1, 50):
        reports = fast_draws_of(randomized_response(epsilon=epsilon))([1], people)
        right.append(float(np.mean(reports == 1)))
    bound = luckiest_share(people, epsilon=1, confidence=1 - 1e-9)
    assert right[0] <= bound < right[1]
    assert binom.cdf(round(people * right[0]), people, best_guess(epsilon=1)) > 1e-9


def test_a_secret_that_most_people_have_is_guessed_with_more_luck():
    assert luckiest_share(200, epsilon=1, prior=0.8) == luckiest_share(200, epsilon=1, prior=0.2)
    assert luckiest_share(200, epsilon=1, prior=0.8) > luckiest_share(200, epsilon=1)
    assert luckiest_share(200, epsilon=1, delta=1e-9, prior=0.8) == 1
