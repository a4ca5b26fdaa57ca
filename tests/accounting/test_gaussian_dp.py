"""Gaussian differential privacy: the exact condition, rounded to the safe side, and what pure steps cost in it."""

from fractions import Fraction
from math import erfc, exp, sqrt

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Gaussian, Laplace, Pure, Selection, epsilon_of, loss, mu_of
from discreet.accounting.gaussian_dp import (
    about_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_limit,
    squared_mu_of_bounded_range,
    squared_mu_of_pure,
)
from discreet.numeric import ball, precision


def at_most(true, bound):
    with precision(1500):
        return true <= ball(bound)


epsilons = st.fractions(Fraction(1, 10**6), 1000, max_denominator=10**9)
squares = st.fractions(Fraction(1, 10**8), 500, max_denominator=10**9)
deltas = st.integers(1, 300).map(lambda digits: Fraction(1, 10**digits))


def true_delta(squared_mu, epsilon, bits=1500):
    """The exact condition as a ball, in far more bits than the product ever starts with."""
    with precision(bits):
        mu, e = ball(squared_mu).sqrt(), ball(epsilon)
        normal = lambda x: (-x / arb(2).sqrt()).erfc() / 2
        return normal(-e / mu + mu / 2) - e.exp() * normal(-e / mu - mu / 2)


@settings(max_examples=150, deadline=None)
@given(squared_mu=squares, epsilon=epsilons)
def test_a_reported_delta_is_above_the_true_one_by_a_hair(squared_mu, epsilon):
    reported, true = gaussian_delta(squared_mu, epsilon), true_delta(squared_mu, epsilon)
    with precision(1500):
        assert ball(reported) >= true
        assert reported == Fraction(1, 2**4096) or ball(reported) * ball(1 - Fraction(1, 2**60)) <= true


@settings(max_examples=60, deadline=None)
@given(squared_mu=squares, delta=deltas)
def test_a_reported_epsilon_is_above_the_true_one_by_a_hair(squared_mu, delta):
    reported = gaussian_epsilon(squared_mu, delta)
    assert at_most(true_delta(squared_mu, reported), delta)
    if reported > 0:
        assert not at_most(true_delta(squared_mu, reported * (1 - Fraction(1, 2**42))), delta)


@settings(max_examples=60, deadline=None)
@given(epsilon=epsilons, delta=deltas)
def test_a_limit_is_below_the_true_one_by_a_hair(epsilon, delta):
    limit = gaussian_limit(epsilon, delta)
    assert at_most(true_delta(limit, epsilon), delta)
    assert not at_most(true_delta(limit * (1 + Fraction(1, 2**42)), epsilon), delta)


@pytest.mark.parametrize("delta", [Fraction(1, 10**300), Fraction(1, 10**9), Fraction(999, 1000)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**15), Fraction(1, 1000), Fraction(1), Fraction(1000)])
def test_limits_hold_at_the_ends_of_the_range(epsilon, delta):
    limit = gaussian_limit(epsilon, delta)
    assert limit > 0
    assert at_most(true_delta(limit, epsilon, bits=4000), delta)


def test_a_limit_too_large_by_one_part_in_a_trillion_is_caught():
    limit = gaussian_limit(Fraction(1), Fraction(1, 10**6))
    assert at_most(true_delta(limit, Fraction(1)), Fraction(1, 10**6))
    assert not at_most(true_delta(limit * (1 + Fraction(1, 10**12)), Fraction(1)), Fraction(1, 10**6))


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.01, 5), epsilon=st.floats(0.01, 5))
def test_the_condition_is_the_textbook_one(mu, epsilon):
    normal = lambda x: erfc(-x / sqrt(2)) / 2
    textbook = normal(-epsilon / mu + mu / 2) - exp(epsilon) * normal(-epsilon / mu - mu / 2)
    assert float(gaussian_delta(Fraction(mu) ** 2, Fraction(epsilon))) == pytest.approx(textbook, rel=1e-6, abs=1e-13)


def test_the_two_conversions_meet_on_the_safe_side():
    mu = mu_of(epsilon=1, delta=1e-6)
    assert epsilon_of(mu=mu, delta=1e-6) <= 1 + 1e-11
    assert at_most(true_delta(Fraction(mu) ** 2, Fraction(1)), Fraction(1, 10**6))


def test_a_gaussian_costs_its_squared_ratio_exactly():
    assert loss(Gaussian(Fraction(10, 3), 2)) == Fraction(18, 100)


# What pure and bounded-range steps cost.


def lies_above(corner, squared_mu):
    """Whether a point (false alarm, miss) lies on or above the Gaussian trade-off curve, certainly."""
    alarm, miss = corner
    quantile = lambda p: -arb(2).sqrt() * (2 * p).erfcinv()
    return quantile(1 - alarm) + quantile(1 - miss) <= ball(squared_mu).sqrt()


def corner_of_range(epsilon, offset):
    """The corner of the lowest trade-off curve with likelihood ratios in [e^offset, e^(offset + epsilon)]."""
    e, t = ball(epsilon), ball(offset)
    alarm = (-t).expm1() / e.expm1()
    return alarm, (1 - alarm) * t.exp()


SIZES = [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(20), Fraction(300)]


@pytest.mark.parametrize("epsilon", SIZES)
def test_every_pure_step_is_as_private_as_the_gaussian_it_is_charged_for(epsilon):
    with precision(3000):
        side = 1 / (1 + ball(epsilon).exp())
        assert lies_above((side, side), squared_mu_of_pure(epsilon))
        assert not lies_above((side, side), squared_mu_of_pure(epsilon) * (1 - Fraction(1, 10**12)))


@pytest.mark.parametrize("epsilon", SIZES)
def test_no_offset_of_a_bounded_range_costs_more_than_the_symmetric_one(epsilon):
    charged, steps = squared_mu_of_bounded_range(epsilon), 400
    with precision(2000):
        for step in range(1, steps):
            assert lies_above(corner_of_range(epsilon, -epsilon * Fraction(step, steps)), charged)
        middle = corner_of_range(epsilon, -epsilon / 2)
        assert not lies_above(middle, charged * (1 - Fraction(1, 10**12)))


@pytest.mark.parametrize("z", [Fraction(k, 8) for k in range(1, 200, 7)])
def test_the_log_odds_of_a_normal_are_convex_above_zero(z):
    """The lemma behind it: g = logit Φ has g'' = m'(z) − m'(−z) > 0, m the inverse Mills ratio, m' = m(m − z)."""
    with precision(2000):
        slope = lambda x: mills(x) * (mills(x) - x)
        mills = lambda x: (2 / arb.pi()).sqrt() * (-x * x / 2).exp() / (x / arb(2).sqrt()).erfc()
        assert slope(ball(z)) > slope(-ball(z))


@pytest.mark.parametrize("epsilon", SIZES[:5])
def test_charging_a_pure_step_as_if_epsilon_were_mu_is_caught(epsilon):
    with precision(500):
        side = 1 / (1 + ball(epsilon).exp())
        assert not lies_above((side, side), epsilon**2)
        assert not lies_above(corner_of_range(epsilon, -epsilon / 2), epsilon**2 / 4)


def test_half_the_range_is_half_the_price_for_small_steps():
    assert float(loss(Selection(Fraction(1, 1000))) / loss(Pure(Fraction(1, 1000)))) == pytest.approx(1 / 4, rel=1e-5)


def test_a_discrete_laplace_count_is_randomized_response_so_its_price_is_exact():
    """With sensitivity 1 the likelihood ratio only takes the values e^±epsilon, each side with its own probability."""
    a = Fraction(9, 10)
    mass = lambda k: (1 - a) / (1 + a) * a ** abs(k)
    ratios = {mass(k) / mass(k - 1) for k in range(-40, 41)}
    assert ratios == {a, 1 / a}
    assert loss(Laplace(10, 1)) == loss(Pure(Fraction(1, 10)))


@pytest.mark.parametrize("delta", [Fraction(1, 10**5), Fraction(1, 10**12)])
@pytest.mark.parametrize("squared_mu", [Fraction(1, 10**8), Fraction(1, 700), Fraction(3), Fraction(400)])
def test_what_people_read_is_never_below_the_epsilon_and_hardly_above(squared_mu, delta):
    exact, quick = gaussian_epsilon(squared_mu, delta), about_epsilon(squared_mu, delta)
    assert exact <= quick <= exact * (1 + Fraction(1, 10**7))
    assert gaussian_delta(squared_mu, quick) <= delta
