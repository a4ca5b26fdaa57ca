"""The audit never says more than is true, and catches every mistake that it is shown."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from discreet import noise, verify
from discreet.errors import BadParameter
from discreet.lab.attack import audit, subjects
from discreet.lab.attack.events import best_event, grain, labellings_of
from discreet.lab.attack.subjects import find
from discreet.mechanism import laplace
from support.statistics import assert_rate_at_least

GENERATOR = np.random.default_rng(20_170_101)


def counting(value, size):
    return value + noise.discrete_laplace(1, size=size)


def float_laplace(value, size):
    """What numpy gives: somebody else's noise, with the fingerprint of the value in its last bits."""
    return value + GENERATOR.laplace(0, 1, size)


def test_laplace_is_bounded_from_below_by_nearly_its_epsilon():
    found = audit(counting, 0, 1, samples=200_000)
    assert 0.9 <= found.bound <= 1
    assert not found.refutes(1)
    assert found.refutes(0.9)


def test_the_last_bits_of_floating_point_noise_are_caught():
    """[Mir12]: at epsilon 1, of 200,000 draws."""
    found = audit(float_laplace, 0.0, 1.0, samples=200_000)
    assert found.bound > 7
    assert "last bits" in found.event


MISTAKES = [each.name for each in subjects() if not each.right]
QUICK = [each.name for each in subjects() if each.right and not each.patient]


def test_there_are_seven_mistakes_and_seven_quick_mechanisms():
    assert len(MISTAKES) == len(QUICK) == 7


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_refuted(name):
    subject = find(name)
    found = subject.audit(samples=150_000, confidence=0.9999)
    assert found.refutes(subject.epsilon)


@pytest.mark.parametrize("name", QUICK)
def test_a_right_mechanism_is_not(name):
    subject = find(name)
    assert not subject.audit(samples=1000, confidence=1 - 1e-9).refutes(subject.epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2])
def test_a_mistake_is_refuted_at_another_epsilon(epsilon):
    assert find("half-the-noise", epsilon).audit(samples=100_000, confidence=0.9999).refutes(epsilon)


def test_the_bound_holds_as_often_as_it_says():
    """150 audits of few draws at confidence 0.9: too large at most one time in ten (false alarm 1e-9)."""
    held = sum(not audit(counting, 0, 1, samples=300, confidence=0.9).refutes(1) for _ in range(150))
    assert_rate_at_least(held, 150, 0.9)


def test_scoring_on_the_draws_that_chose_the_event_would_not_hold():
    """Power of the test above: the promise made on the first half alone is too large too often."""
    held = 0
    for _ in range(80):
        # Many labels, both tables alike: whatever is found is luck.
        draws = [noise.discrete_laplace(2, size=150) for _ in range(4)]
        held += best_event(labellings_of(draws), one=0, other=1, delta=0, failure=0.2).promise == 0
    with pytest.raises(AssertionError):
        assert_rate_at_least(held, 80, 0.9)


def test_the_bound_is_below_the_exact_delta_curve():
    """At delta > 0 as well: the true epsilon at this delta is computed without sampling."""
    pair = [([0], [1])]
    delta = 0.1
    found = audit(counting, 0, 1, samples=100_000, delta=delta)
    epsilons = [k / 50 for k in range(51)]
    curve = verify.curve(laplace(epsilon=1, sensitivity=1), pair, epsilons)
    true = min(epsilon for epsilon, span in curve if span.upper <= delta)
    assert 0.8 * true <= found.bound <= true


def test_outcomes_may_be_anything_that_is_a_key():
    found = audit(lambda value, size: [("a", value)] * size, 0, 1, samples=2000)
    assert found.bound > 4
    assert found.misses == 0


def test_equal_inputs_are_not_told_apart():
    assert audit(counting, 0, 0, samples=50_000, confidence=1 - 1e-9).bound == 0


def test_the_grain_of_a_double_is_its_size_and_its_last_bit():
    values = np.array([0.75, -0.75, 1.5, 0.75 + 2.0**-52])
    labels = grain(values)
    assert labels[0] == labels[1]
    assert len(set(labels.tolist())) == 3


def test_a_draw_of_the_wrong_length_is_refused():
    with pytest.raises(BadParameter, match="one for each"):
        audit(lambda value, size: [value], 0, 1, samples=100)


def test_an_unknown_subject_is_refused_with_a_name_that_is_near():
    with pytest.raises(BadParameter, match="laplace"):
        find("laplac")


@pytest.mark.parametrize("bad", [{"samples": 3}, {"confidence": 1}, {"delta": -1}])
def test_bad_numbers_are_refused(bad):
    with pytest.raises(BadParameter):
        audit(counting, 0, 1, **bad)


def test_a_perfect_separation_has_a_finite_bound():
    assert audit(lambda value, size: np.full(size, value), 0, 1, samples=1000).bound < inf


@pytest.mark.long
def test_a_million_draws_give_nine_tenths_of_epsilon_and_nine_for_floats():
    assert 0.9 <= audit(counting, 0, 1).bound <= 1
    assert audit(float_laplace, 0.0, 1.0).bound > 8.5


@pytest.mark.long
@pytest.mark.parametrize("name", [*QUICK, "session"])
def test_more_draws_do_not_refute_a_right_mechanism(name):
    subject = find(name)
    number = 200 if subject.patient else 1_000_000
    assert not subject.audit(samples=number, confidence=1 - 1e-6).refutes(1)
