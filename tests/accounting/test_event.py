"""Events are exact values, and nonsense is refused when they are made: a negative scale would be a negative price."""

from fractions import Fraction

import pytest

from discreet.accounting import (
    AboveThreshold,
    Approximate,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Pure,
    Repeat,
    Selection,
    delta,
    epsilon,
    loss,
)
from discreet.errors import BadParameter


def test_numbers_become_exact():
    assert Laplace(0.1, 1) == Laplace(Fraction(1, 10), Fraction(1))
    assert hash(Pure(0.5)) == hash(Pure(Fraction(1, 2)))


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True, None])
@pytest.mark.parametrize("make", [Laplace, Gaussian, DiscreteGaussian])
def test_a_scale_is_above_zero(make, bad):
    with pytest.raises(BadParameter):
        make(bad, 1)


@pytest.mark.parametrize(
    "make", [Selection, AboveThreshold, Pure, lambda e: Approximate(e, 0), lambda e: Laplace(1, e)]
)
def test_losses_and_sensitivities_are_not_negative(make):
    with pytest.raises(BadParameter):
        make(Fraction(-1, 10**9))


def test_a_delta_above_one_is_refused():
    with pytest.raises(BadParameter, match="at most 1"):
        Approximate(1, Fraction(3, 2))


@pytest.mark.parametrize("times", [-1, 1.5, True, "3"])
def test_a_negative_or_broken_count_is_refused(times):
    with pytest.raises(BadParameter, match="times is"):
        Repeat(Pure(1), times)


def test_an_unknown_accounting_is_named_with_the_closest_known_one():
    with pytest.raises(BadParameter, match='did you mean "renyi"'):
        loss(Pure(1), by="reny")


@pytest.mark.parametrize("bad", [-1e-9, 1, float("nan"), "0", True])
def test_reports_refuse_a_delta_that_means_nothing(bad):
    with pytest.raises(BadParameter, match="delta is"):
        epsilon(Pure(1), delta=bad)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1e-320, "1", True])
def test_reports_refuse_an_epsilon_that_means_nothing(bad):
    with pytest.raises(BadParameter, match="epsilon is"):
        delta(Compose((Pure(1),)), epsilon=bad)
