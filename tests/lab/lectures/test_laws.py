"""Laws put together are those of the algorithms put together; bounds of chance reject what is incredible."""

from fractions import Fraction
from math import inf

import pytest
from flint import arb

from discreet.lab.lectures.chance import FALSE_ALARM, hoeffding_margin, median_margin, often_enough, seldom_enough
from discreet.lab.lectures.laws import at_most, equals, loss, loss_over_sets, mapped, moments, randomly_mapped, then
from discreet.mechanism import laplace, name_and_shame, randomized_response
from discreet.mechanism.protocol import Law
from discreet.verify.divergence import Interval


def chances(law):
    return {outcome: float(chance.mid()) for outcome, chance in law.probabilities.items()}


def test_one_after_the_other_is_the_law_of_both():
    survey = randomized_response(epsilon=1)
    joint = then(survey.law([0]), lambda told: survey.law([told[0]]))
    assert sum(chances(joint).values()) == pytest.approx(1)
    assert chances(joint)[(0,), (1,)] == pytest.approx(0.7310585786 * 0.2689414214)


def test_a_map_adds_up_what_it_does_not_tell_apart():
    law = mapped(randomized_response(epsilon=1).law([0, 1]), sum)
    assert sum(chances(law).values()) == pytest.approx(1)
    assert chances(law)[1] == pytest.approx(0.7310585786**2 + 0.2689414214**2)


def test_a_random_map_mixes():
    flat = Law({"a": arb(1) / 2, "b": arb(1) / 2}, arb(0))
    law = randomly_mapped(randomized_response(epsilon=1).law([0]), lambda _: flat)
    assert chances(law) == pytest.approx({"a": 0.5, "b": 0.5})


def test_the_loss_is_that_of_the_worse_direction():
    one, other = Law({0: arb(1) / 2, 1: arb(1) / 2}, arb(0)), Law({0: arb(1) / 10, 1: 9 * arb(1) / 10}, arb(0))
    assert loss(one, other).upper == pytest.approx(1.6094379)
    assert loss_over_sets(one, other).upper == pytest.approx(1.6094379)


def test_what_is_impossible_on_one_side_is_an_infinite_loss():
    shame = name_and_shame(delta=0.5)
    assert loss_over_sets(shame.law([0]), shame.law([1])).lower == inf


def test_comparisons_allow_for_rounding_and_for_nothing_else():
    assert equals(Interval(0.9999999999999999, 1.0000000000000002), 1.0)
    assert not at_most(Interval(1.0, 1.000001), 1.0)
    assert not equals(Interval(0.9, 1.0), 1.0)


def test_moments_are_those_of_the_noise():
    mean, deviation = moments(laplace(epsilon=Fraction(1, 10), sensitivity=1).law([7]), lambda told: told[0])
    assert mean == pytest.approx(7)
    assert deviation == pytest.approx((200 - 1 / 6) ** 0.5, rel=1e-5)


def test_rates_that_are_far_off_are_incredible_and_others_are_not():
    assert often_enough(940, 1000, 0.95)
    assert not often_enough(880, 1000, 0.95)
    assert seldom_enough(60, 1000, 0.05)
    assert not seldom_enough(120, 1000, 0.05)


def test_margins_shrink_as_the_draws_grow():
    assert hoeffding_margin(40_000) == pytest.approx(hoeffding_margin(10_000) / 2)
    low, high = median_margin(range(2001))
    assert low < 1000 < high
    assert high - low < 300
    assert median_margin([1, 2, 3]) == (-inf, inf)
    assert FALSE_ALARM <= 1e-7
