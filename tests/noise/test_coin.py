from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from flint import arb

from discreet.errors import BadParameter
from discreet.noise import bernoulli, bernoulli_exp, coin, uniform_below
from discreet.noise.coin import _threshold
from discreet.noise.sample import Digits
from support.statistics import assert_follows, rejects

PROBABILITIES = {
    "a third": (lambda size=None: bernoulli(Fraction(1, 3), size), 1 / 3),
    "a half": (lambda size=None: bernoulli(0.5, size), 0.5),
    "e^-1/7": (lambda size=None: bernoulli_exp(Fraction(1, 7), size), np.exp(-1 / 7)),
    "e^-5": (lambda size=None: bernoulli_exp(5, size), np.exp(-5)),
    "logistic": (lambda size=None: coin(lambda: 1 / (1 + arb(1).exp()), size), 1 / (1 + np.e)),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_many_flips_follow_the_probability(name):
    flip, probability = PROBABILITIES[name]
    assert_follows(flip(300_000).astype(np.int64), {1: probability, 0: 1 - probability})


@pytest.mark.parametrize("name", PROBABILITIES)
def test_single_flips_follow_the_probability(name):
    flip, probability = PROBABILITIES[name]
    assert_follows(np.array([int(flip()) for _ in range(4_000)]), {1: probability, 0: 1 - probability})


def test_a_coin_off_by_one_percent_is_caught():
    assert rejects(bernoulli(Fraction(101, 300), 8_000_000).astype(np.int64), {1: 1 / 3, 0: 2 / 3})


def test_sure_things_are_sure():
    assert bernoulli(1, 1000).all()
    assert not bernoulli(0, 1000).any()
    assert bernoulli_exp(0, 1000).all()


@pytest.mark.parametrize("probability", [Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(0), Fraction(1, 2**70)])
def test_the_first_word_decides_just_what_it_can(probability):
    """Words below the first threshold are heads for every continuation, words above the second tails."""
    lowest, highest = _threshold(lambda: arb(probability.numerator) / probability.denominator)
    assert lowest <= probability * 2**64 <= highest
    assert highest - lowest <= 1


def test_a_word_on_the_threshold_is_decided_by_the_words_after_it():
    third = 2**64 // 3
    point = lambda: arb(1) / 3
    assert Digits(third, 64, lambda: 0).below(point)
    assert not Digits(third, 64, lambda: 2**64 - 1).below(point)


def test_words_on_the_threshold_are_not_lost_when_flipping_many(monkeypatch):
    """Fill the words with the undecided one: every flip must ask for more digits, and get a fair answer from them."""
    undecided = 2**64 // 3
    asked = []

    def stuck(count):
        def fill(out):
            out.view(np.uint64)[:] = undecided

        return fill

    monkeypatch.setattr(import_module("discreet.noise.coin"), "filler", stuck)
    original = Digits.more
    monkeypatch.setattr(Digits, "more", lambda self: (asked.append(1), original(self))[1])
    flips = bernoulli(Fraction(1, 3), 300)
    assert len(asked) >= 300
    # 2^64/3 has the fraction 1/3: the next digits decide with that probability again.
    assert_follows(flips.astype(np.int64), {1: 1 / 3, 0: 2 / 3})


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 64, 1000])
def test_a_die_is_fair(limit):
    assert_follows(uniform_below(limit, 200_000), dict.fromkeys(range(limit), 1 / limit))


def test_taking_a_word_modulo_three_halves_of_its_range_is_caught():
    """The usual mistake, at a size where it shows: seven values from three bits, folded."""
    folded = uniform_below(8, 200_000) % 7
    assert rejects(folded, dict.fromkeys(range(7), 1 / 7))


@pytest.mark.parametrize("call", [lambda: bernoulli(1.5), lambda: bernoulli(-0.1), lambda: bernoulli_exp(-1)])
def test_what_is_no_probability_is_refused(call):
    with pytest.raises(BadParameter, match=r"Give"):
        call()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", True, None])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(BadParameter):
        bernoulli(value)
    with pytest.raises(BadParameter):
        bernoulli_exp(value)
