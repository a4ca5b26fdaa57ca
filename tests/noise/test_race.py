from fractions import Fraction
from itertools import permutations
from math import exp, factorial, inf

import numpy as np
import pytest
from flint import arb

from discreet.errors import BadParameter
from discreet.noise import exponential_race, gumbel_race, kernel
from discreet.noise.kernel import compiled_kernel, exponential_table
from discreet.noise.race import _noise, decide
from discreet.noise.sample import Digits
from discreet.numeric import precision
from support.statistics import assert_follows, rejects

SCORES = [[0, 0], [0, 1, 2], [3, 3, 0, 5], [Fraction(1, 3), Fraction(1, 2), 0]]


def softmax(scores, rate):
    weights = [exp(rate * float(score)) for score in scores]
    return {i: weight / sum(weights) for i, weight in enumerate(weights)}


def permute_and_flip(scores, rate):
    """In a random order, take each with probability e^(rate·(score − best)): the law of the exponential race."""
    best = max(scores)
    heads = [exp(rate * float(score - best)) for score in scores]
    law = dict.fromkeys(range(len(scores)), 0.0)
    for order in permutations(range(len(scores))):
        left = 1.0 / factorial(len(scores))
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law


@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2)])
def test_the_gumbel_race_is_softmax(scores, rate):
    draws = np.array([gumbel_race(scores, rate) for _ in range(6_000)])
    assert_follows(draws, softmax(scores, float(rate)))


@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2)])
def test_the_exponential_race_is_permute_and_flip(scores, rate):
    draws = np.array([exponential_race(scores, rate) for _ in range(6_000)])
    assert_follows(draws, permute_and_flip(scores, float(rate)))


def test_the_two_races_are_told_apart():
    draws = np.array([exponential_race([0, 1, 2], 1) for _ in range(20_000)])
    assert rejects(draws, softmax([0, 1, 2], 1.0))


def noise_by_kernel(words, *, gumbel):
    count = len(words) // 2
    lower, upper = [0.0] * count, [0.0] * count
    kernel.contest(words, exponential_table().plain, [0.0] * count, gumbel, lower, upper)
    return lower, upper


@pytest.mark.parametrize("gumbel", [True, False])
def test_the_floats_bound_the_noise_that_the_digits_give(gumbel):
    rng = np.random.default_rng(5)
    words = rng.integers(-(2**63), 2**63, size=2_000).tolist()
    # Uniforms near 0 and near 1, where logarithms are steep.
    words += [w for bit in range(1, 62) for w in ((1 << bit), 7)] + [
        w for bit in range(5, 62) for w in (-(1 << bit), 7)
    ]
    lower, upper = noise_by_kernel(words, gumbel=gumbel)
    for i in range(len(lower)):
        prefix = ((words[2 * i] >> 1) & kernel.MASK) << 62 | (words[2 * i + 1] & kernel.MASK)
        with precision(200):
            true = _noise(Digits(prefix, 124), gumbel=gumbel)
            # Digits of ones only may go on to U = 1, whose Gumbel noise is unbounded: there must be no bounds.
            assert (lower[i], upper[i]) == (-inf, inf) if true.is_nan() else arb(lower[i]) <= true <= arb(upper[i])


@pytest.mark.parametrize("gumbel", [True, False])
def test_almost_all_bounds_are_narrow(gumbel):
    words = np.random.default_rng(6).integers(-(2**63), 2**63, size=20_000).tolist()
    lower, upper = noise_by_kernel(words, gumbel=gumbel)
    widths = np.array(upper) - np.array(lower)
    assert np.mean(widths < 1e-9) > 0.999


@pytest.mark.parametrize("gumbel", [True, False])
def test_machine_code_gives_the_same_bounds(gumbel):
    words = np.random.default_rng(7).integers(-(2**63), 2**63, size=4_000)
    bonus = -np.linspace(0, 50, 2_000)
    lower, upper = np.empty(2_000), np.empty(2_000)
    compiled_kernel(kernel.contest)(words, exponential_table().array, bonus, gumbel, lower, upper)
    plain_lower, plain_upper = [0.0] * 2_000, [0.0] * 2_000
    kernel.contest(words.tolist(), exponential_table().plain, bonus.tolist(), gumbel, plain_lower, plain_upper)
    assert np.allclose(lower, plain_lower, rtol=1e-14, atol=1e-13)
    assert np.allclose(upper, plain_upper, rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("gumbel", [True, False])
@pytest.mark.parametrize(("first", "second", "winner"), [(0, 2**64 - 1, 0), (2**64 - 1, 0, 1)])
def test_a_photo_finish_is_decided_by_the_next_digits(gumbel, first, second, winner):
    """Two candidates with the same 124 digits: the smaller uniform has the larger noise."""
    same = 0x123456789ABCDEF0123456789ABCDEF
    left = [(0, Fraction(0), Digits(same, 124, lambda: first)), (1, Fraction(0), Digits(same, 124, lambda: second))]
    # The smaller uniform has the larger exponential, but the smaller Gumbel.
    assert decide(left, gumbel=gumbel) == (1 - winner if gumbel else winner)


def test_a_million_candidates_race():
    scores = np.zeros(1_000_000, dtype=np.int64)
    scores[123_456] = 40
    assert gumbel_race(scores, 1) == 123_456
    assert 0 <= exponential_race(np.zeros(300_000, dtype=np.int64), 1) < 300_000


def test_only_differences_of_scores_matter():
    far = [10**18, 10**18 + 1]
    draws = np.array([gumbel_race(far, 1) for _ in range(6_000)])
    assert_follows(draws, softmax([0, 1], 1.0))


@pytest.mark.parametrize("race", [gumbel_race, exponential_race])
@pytest.mark.parametrize(
    ("scores", "rate"),
    [([], 1), ([1, float("nan")], 1), ([1, float("inf")], 1), ([1, "2"], 1), ([1, True], 1), ([0, 2**64], 1)]
    + [([1, 2], rate) for rate in (0, -1, float("nan"), "1", True)],
)
def test_bad_scores_and_rates_are_refused(race, scores, rate):
    with pytest.raises(BadParameter):
        race(scores, rate)
