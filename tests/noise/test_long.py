"""The same questions as in the short tests, asked for longer."""

from fractions import Fraction

import pytest

from discreet.noise import discrete_gaussian, law
from discreet.noise.sample import magnitude
from discreet.numeric import precision
from noise.karney import rounded
from noise.test_inversion import assert_mass, walk
from noise.test_sample import TAILS, binned, binned_law, discrete_gaussian_law
from support.statistics import assert_follows, rejects

pytestmark = pytest.mark.long
DRAWS = 4 * 10**7


@pytest.mark.parametrize(
    "scale", [Fraction(3, 10), Fraction(1), Fraction(100), Fraction(10**6), Fraction(10**9)], ids=float
)
@pytest.mark.parametrize("name", TAILS)
def test_forty_million_draws_follow_the_exact_law(name, scale):
    sampler, tail = TAILS[name]
    cuts, probabilities = binned_law(tail, scale)
    assert_follows(binned(sampler(scale, DRAWS), cuts), probabilities)


@pytest.mark.parametrize("name", TAILS)
def test_noise_half_a_percent_too_small_is_caught(name):
    sampler, tail = TAILS[name]
    cuts, probabilities = binned_law(tail, Fraction(100))
    assert rejects(binned(sampler(Fraction(199, 2), DRAWS), cuts), probabilities)


@pytest.mark.parametrize("sigma", [Fraction(3, 10), Fraction(5, 2), Fraction(40)], ids=float)
def test_forty_million_discrete_gaussians_follow_the_exact_law(sigma):
    assert_follows(discrete_gaussian(sigma, DRAWS), discrete_gaussian_law(sigma))


def test_a_quarter_of_a_million_of_karneys_normals_follow_the_same_law():
    cuts, probabilities = binned_law(law.gaussian_tail, Fraction(4))
    assert_follows(binned([rounded(Fraction(4)) for _ in range(250_000)], cuts), probabilities)


@pytest.mark.parametrize("tail", [law.laplace_tail, law.gaussian_tail], ids=["laplace", "gaussian"])
def test_on_all_streams_of_sixteen_bits_each_integer_gets_its_mass(tail):
    scale = Fraction(9, 4)
    decided, undecided = walk(lambda digits: magnitude(lambda k: tail(k, scale), digits), depth=16)
    assert undecided < Fraction(1, 1000)
    for k in range(1, 10):
        with precision(200):
            mass = 2 * tail(k, scale) - 2 * tail(k + 1, scale)
        assert_mass(decided.get(k, Fraction(0)), mass, undecided)
