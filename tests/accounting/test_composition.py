"""The lectures' composition theorems."""

from fractions import Fraction
from math import inf, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Approximate, Compose, DiscreteGaussian, Gaussian, Pure, Repeat, delta, epsilon
from discreet.accounting.composition import advanced_delta, advanced_epsilon
from discreet.accounting.concentrated_dp import concentrated_epsilon
from discreet.accounting.gaussian_dp import gaussian_epsilon
from discreet.numeric import ball, precision

MILLIONTH = Fraction(1, 10**6)


def test_basic_sums_share_what_is_left_of_delta_equally_between_the_gaussians():
    event = Compose(
        (Approximate(Fraction(1, 10), MILLIONTH / 2), Repeat(Gaussian(10, 1), 2), DiscreteGaussian(7, 1), Pure(1))
    )
    share = MILLIONTH / 2 / 3
    by_hand = (
        Fraction(11, 10) + 2 * gaussian_epsilon(Fraction(1, 100), share) + concentrated_epsilon(Fraction(1, 98), share)
    )
    assert epsilon(event, delta=MILLIONTH, by="basic") == pytest.approx(float(by_hand), rel=1e-15)
    assert epsilon(event, delta=MILLIONTH, by="basic") >= by_hand


def test_basic_delta_counts_the_deltas_already_given_away():
    event = Compose((Approximate(Fraction(1, 10), MILLIONTH), Repeat(Gaussian(10, 1), 3)))
    at = delta(event, epsilon=2, by="basic")
    assert at > 1e-6
    assert epsilon(event, delta=at, by="basic") <= 2 * (1 + 1e-12)
    assert epsilon(event, delta=1e-6 + (at - 1e-6) * (1 - 1e-6), by="basic") > 2
    assert delta(Repeat(Approximate(Fraction(1, 10), MILLIONTH), 5), epsilon=0.5, by="basic") == 5e-6
    assert delta(Repeat(Approximate(Fraction(1, 10), MILLIONTH), 5), epsilon=0.4, by="basic") == 1


def test_basic_sums_run_out_of_delta():
    event = Compose((Approximate(0, MILLIONTH), Gaussian(10**6, 1)))
    assert epsilon(event, delta=MILLIONTH, by="basic") == inf
    assert epsilon(event, delta=2 * MILLIONTH, by="basic") < inf


@settings(max_examples=60, deadline=None)
@given(squares=st.fractions(Fraction(1, 10**9), 100, max_denominator=10**9), digits=st.integers(1, 300))
def test_advanced_composition_is_the_lectures_formula_rounded_up(squares, digits):
    tail = Fraction(1, 10**digits)
    reported = advanced_epsilon(squares, tail)
    with precision(400):
        exact = ball(squares) / 2 + (-2 * ball(squares) * ball(tail).log()).sqrt()
        assert ball(reported) >= exact > ball(reported * (1 - Fraction(1, 10**12)))
    assert advanced_delta(squares, reported) <= tail * (1 + Fraction(1, 10**9))


def test_advanced_composition_of_equal_parts_reads_as_in_the_notes():
    k, e = 500, 0.01
    notes = k * e**2 / 2 + e * sqrt(2 * k * log(1e6))
    assert epsilon(Repeat(Pure(e), k), delta=1e-6, by="advanced") == pytest.approx(notes, rel=1e-12)
