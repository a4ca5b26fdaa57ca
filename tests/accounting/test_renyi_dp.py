"""Rényi and concentrated losses: exact worst cases, conversions on the safe side."""

from fractions import Fraction
from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import ORDERS, DiscreteGaussian, Gaussian, Pure, Selection, epsilon, loss
from discreet.accounting.concentrated_dp import (
    concentrated_delta,
    concentrated_epsilon,
    concentrated_limit,
    divergence_delta,
    divergence_epsilon,
    divergence_limit,
)
from discreet.accounting.gaussian_dp import gaussian_delta
from discreet.accounting.renyi_dp import bounded_range_divergence, pure_divergence
from discreet.numeric import ball, precision

SIZES = [Fraction(1, 10**4), Fraction(1, 10), Fraction(1), Fraction(4), Fraction(30)]
SOME_ORDERS = ORDERS[::9]


def binary_divergence(one, other, order):
    """The Rényi divergence of two coins, as a ball."""
    a = ball(order)
    return (one**a * other ** (1 - a) + (1 - one) ** a * (1 - other) ** (1 - a)).log() / (a - 1)


@pytest.mark.parametrize("order", SOME_ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_a_pure_step_is_charged_the_divergence_of_randomized_response(size, order):
    charged = pure_divergence(size, order)
    with precision(4000):
        true = 1 / (1 + (-ball(size)).exp())
        exact = binary_divergence(true, 1 - true, order)
        assert ball(charged) >= exact
        if size * order < 10**6:
            assert ball(charged * (1 - Fraction(1, 10**12))) < exact
    assert charged <= min(size, order * size**2 / 2)


@pytest.mark.parametrize("order", SOME_ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_a_bounded_range_step_is_charged_the_divergence_of_its_worst_offset(size, order):
    charged = bounded_range_divergence(size, order)
    assert charged <= min(size, order * size**2 / 8)
    with precision(4000):
        e, worst = ball(size), ball(Fraction(0))
        for step in range(1, 60):
            t = -e * step / 60
            other = (-t).expm1() / e.expm1()
            divergence = binary_divergence(other * (t + e).exp(), other, order)
            assert ball(charged) >= divergence
            worst = worst.max(divergence)
        if size * order < 20:
            assert ball(charged) * ball(Fraction(99, 100)) < worst


def test_a_bounded_range_divergence_too_small_by_one_part_in_a_trillion_is_caught():
    size, order = Fraction(1), Fraction(5)
    charged = bounded_range_divergence(size, order)
    with precision(400):
        e, a = ball(size), ball(order)
        c = (a * e).expm1() / e.expm1()
        t = ((a - 1) * c / (a * (c - 1))).log()
        other = (-t).expm1() / e.expm1()
        true = binary_divergence(other * (t + e).exp(), other, order)
        assert ball(charged) >= true
        assert not ball(charged * (1 - Fraction(1, 10**12))) >= true


def test_gaussians_rounded_or_discrete_cost_half_their_squared_ratio_at_each_order():
    expected = tuple(order * Fraction(2, 50) for order in ORDERS)
    assert loss(Gaussian(5, 2), by="renyi") == loss(DiscreteGaussian(5, 2), by="renyi") == expected
    assert loss(Gaussian(5, 2), by="concentrated") == Fraction(2, 50)


def test_there_are_sixty_orders_in_rising_order():
    assert len(ORDERS) == 60
    assert list(ORDERS) == sorted(set(ORDERS))
    assert ORDERS[0] == Fraction(3, 2)


@settings(max_examples=60, deadline=None)
@given(
    excess=st.fractions(Fraction(1, 50), 1000, max_denominator=1000),
    size=st.fractions(Fraction(1, 50), 10, max_denominator=1000),
    digits=st.integers(1, 300),
)
def test_the_three_conversions_of_a_divergence_are_one_formula_rounded_three_ways(excess, size, digits):
    delta = Fraction(1, 10**digits)
    limit = divergence_limit(excess, size, delta)
    if limit > 0:
        assert divergence_epsilon(excess, limit, delta) <= size * (1 + Fraction(1, 2**50))
        assert divergence_delta(excess, limit, size) <= delta * (1 + Fraction(1, 2**40))
        with precision(600):
            s, e, r = ball(excess), ball(size), ball(limit)
            exact = (s * (r - e)).exp() / s * (s / (1 + s)) ** (1 + s)
            assert exact <= ball(delta)
            assert not (ball(Fraction(1, 10**12)) * s).exp() * exact <= ball(delta) or excess < Fraction(1, 10)


@settings(max_examples=40, deadline=None)
@given(
    rho=st.fractions(Fraction(1, 10**8), 100, max_denominator=10**8),
    size=st.fractions(Fraction(1, 1000), 100, max_denominator=1000),
)
def test_concentrated_privacy_never_promises_more_than_the_gaussian_that_has_it(rho, size):
    """The Gaussian of μ² = 2 rho is rho-zCDP, so a valid conversion cannot be below its exact delta."""
    assert concentrated_delta(rho, size) >= gaussian_delta(2 * rho, size) * (1 - Fraction(1, 2**40))


@settings(max_examples=40, deadline=None)
@given(size=st.fractions(Fraction(1, 1000), 100, max_denominator=1000), digits=st.integers(1, 300))
def test_a_concentrated_limit_meets_its_budget_and_beats_the_classic_formula(size, digits):
    delta = Fraction(1, 10**digits)
    limit = concentrated_limit(size, delta)
    assert limit > 0
    assert concentrated_epsilon(limit, delta) <= size * (1 + Fraction(1, 10**9))
    classic = (sqrt(digits * log(10) + float(size)) - sqrt(digits * log(10))) ** 2
    assert float(limit) > classic


def test_the_fixed_orders_cost_a_gaussian_less_than_one_per_cent():
    for sigma in (1, 10, 100):
        event = Gaussian(sigma, 1)
        best = epsilon(event, delta=1e-9, by="concentrated")
        assert best <= epsilon(event, delta=1e-9, by="renyi") * (1 + 1e-12) <= best * 1.01


def test_a_selection_costs_a_quarter_of_a_pure_step_in_concentrated_privacy():
    assert loss(Selection(Fraction(1, 3)), by="concentrated") * 4 == loss(Pure(Fraction(1, 3)), by="concentrated")
