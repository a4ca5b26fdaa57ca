"""How much noise a budget asks for."""

from fractions import Fraction
from math import inf, log, sqrt
from statistics import NormalDist

import pytest

from discreet.accounting import (
    Compose,
    Gaussian,
    Laplace,
    Repeat,
    Selection,
    calibrate,
    delta,
    epsilon,
    gaussian_sigma,
    lecture_sigma,
)
from discreet.errors import BadParameter

NORMAL_95, LAPLACE_95 = NormalDist().inv_cdf(0.975), log(20)
THOUSAND_GAUSSIANS = lambda sigma: Repeat(Gaussian(sigma, 1), 1000)
THOUSAND_LAPLACES = lambda scale: Repeat(Laplace(scale, 1), 1000)


@pytest.mark.parametrize(
    ("make", "by", "quantile", "half_width"),
    [
        (THOUSAND_GAUSSIANS, "gaussian", NORMAL_95, 262),
        (THOUSAND_GAUSSIANS, "concentrated", NORMAL_95, 281),
        (THOUSAND_GAUSSIANS, "renyi", NORMAL_95, 281),
        (THOUSAND_LAPLACES, "advanced", LAPLACE_95, 507),
        (THOUSAND_LAPLACES, "basic", LAPLACE_95, 2996),
        (THOUSAND_LAPLACES, "pure", LAPLACE_95, 2996),
    ],
)
def test_a_thousand_counts_at_epsilon_one_have_the_half_width_that_the_page_says(make, by, quantile, half_width):
    scale = calibrate(make, epsilon=1, delta=0 if by == "pure" else 1e-6, by=by)
    assert round(quantile * float(scale)) == half_width


@pytest.mark.parametrize("by", ["pure", "basic", "advanced", "concentrated", "gaussian", "renyi"])
def test_a_calibrated_scale_meets_the_budget_and_one_part_in_a_million_less_does_not(by):
    make = lambda scale: Compose((Repeat(Laplace(scale, 1), 20), Selection(1 / scale)))
    scale = calibrate(make, epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), by=by)
    assert epsilon(make(scale), delta=Fraction(1, 10**6), by=by) <= 0.5
    assert epsilon(make(scale * (1 - Fraction(1, 10**6))), delta=Fraction(1, 10**6), by=by) > 0.5


def test_a_scale_has_a_short_numerator_and_denominator():
    sigma = gaussian_sigma(epsilon=0.3, delta=1e-9)
    assert sigma.numerator.bit_length() <= 32
    assert sigma.denominator.bit_length() <= 32


@pytest.mark.parametrize("budget", [0.01, 0.1, 1, 10, 100])
@pytest.mark.parametrize("tail", [1e-3, 1e-9, 1e-300])
def test_the_exact_sigma_meets_the_budget(budget, tail):
    sigma = gaussian_sigma(epsilon=budget, delta=tail, squared_sensitivity=2)
    assert delta(Gaussian(sigma, 2), epsilon=budget) <= tail
    assert delta(Gaussian(sigma * (1 - Fraction(1, 10**8)), 2), epsilon=budget) > tail


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5, 1])
@pytest.mark.parametrize("tail", [1e-2, 1e-6, 1e-12])
def test_the_lectures_sigma_is_enough_for_small_epsilon_and_never_less_than_ours(budget, tail):
    assert lecture_sigma(epsilon=budget, delta=tail) > gaussian_sigma(epsilon=budget, delta=tail)


def test_the_lectures_sigma_grows_with_the_sensitivity():
    assert float(lecture_sigma(epsilon=1, delta=1e-6, squared_sensitivity=9)) == pytest.approx(6 * sqrt(log(1e6)))
    assert lecture_sigma(epsilon=1, delta=1e-6, squared_sensitivity=9) ** 2 >= 36 * Fraction(log(1e6) * (1 - 1e-15))


def test_the_lectures_sigma_is_too_little_for_large_epsilon():
    sigma = lecture_sigma(epsilon=100, delta=1e-6)
    assert delta(Gaussian(sigma, 1), epsilon=100) > 100 * 1e-6
    assert gaussian_sigma(epsilon=100, delta=1e-6) > sigma


def test_what_no_scale_can_meet_is_refused_with_a_sentence():
    with pytest.raises(BadParameter, match="no scale meets epsilon 1 and delta 0 in the pure accounting"):
        calibrate(lambda sigma: Gaussian(sigma, 1), epsilon=1, by="pure")
    assert epsilon(Gaussian(10**9, 1), delta=0) == inf


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1e-320, "1", True])
def test_a_budget_that_means_nothing_is_refused(bad):
    with pytest.raises(BadParameter, match="epsilon is"):
        gaussian_sigma(epsilon=bad, delta=1e-6)
    with pytest.raises(BadParameter, match="epsilon is"):
        lecture_sigma(epsilon=bad, delta=1e-6)


@pytest.mark.parametrize("bad", [0, 1, 1.5, -1e-9, float("nan"), "1e-6", True])
def test_a_delta_that_means_nothing_is_refused(bad):
    with pytest.raises(BadParameter, match="delta is"):
        gaussian_sigma(epsilon=1, delta=bad)
