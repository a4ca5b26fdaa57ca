"""The samplers follow their exact laws; wrong ones are caught; OpenDP and Karney agree."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadParameter
from discreet.noise import discrete_gaussian, discrete_laplace, law, rounded_gaussian
from discreet.numeric import precision
from noise.karney import rounded
from support.needs import needs
from support.statistics import assert_follows, rejects

SCALES = [Fraction(3, 10), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(12345, 7), Fraction(10**6)]
DRAWS = 10**6


def edges(scale, count=250):
    """Every integer where the noise is small; where it is large, so many cuts, finer in the middle."""
    reach = int(45 * scale) + 3
    if reach < count:
        return list(range(-reach, reach + 1))
    half = np.unique(np.round(reach * np.linspace(0, 1, count // 2) ** 3).astype(np.int64))
    return sorted({*(-half).tolist(), *half.tolist()})


def binned_law(tail, scale):
    """Pr[cut_i ≤ X < cut_(i+1)] for each i, with both ends open."""
    cuts = edges(scale)
    with precision(160):
        tails = [law.ball(1), *(tail(cut, scale) for cut in cuts), law.ball(0)]
        return cuts, {i: float(tails[i] - tails[i + 1]) for i in range(len(tails) - 1)}


def binned(draws, cuts):
    return np.searchsorted(np.array(cuts), draws, side="right")


def discrete_gaussian_law(sigma):
    reach = int(12 * sigma) + 3
    with precision(120):
        total = law.discrete_gaussian_total(sigma)
        return {k: float(law.discrete_gaussian_mass(k, sigma, total)) for k in range(-reach, reach + 1)}


TAILS = {"laplace": (discrete_laplace, law.laplace_tail), "gaussian": (rounded_gaussian, law.gaussian_tail)}


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):g}")
@pytest.mark.parametrize("name", TAILS)
def test_a_million_draws_follow_the_exact_law(name, scale):
    sampler, tail = TAILS[name]
    cuts, probabilities = binned_law(tail, scale)
    assert_follows(binned(sampler(scale, DRAWS), cuts), probabilities)


@pytest.mark.parametrize("name", TAILS)
def test_noise_three_percent_too_small_is_caught(name):
    sampler, tail = TAILS[name]
    cuts, probabilities = binned_law(tail, Fraction(100))
    assert rejects(binned(sampler(97, DRAWS), cuts), probabilities)


@pytest.mark.parametrize("name", TAILS)
def test_at_large_scales_the_lowest_digits_are_uniform(name):
    """A float grid hides in the last digits; at scale 10^9 they are uniform to within 10^-9."""
    draws = TAILS[name][0](10**9, 200_000)
    assert_follows(draws & 63, dict.fromkeys(range(64), 1 / 64))


@pytest.mark.parametrize("name", TAILS)
def test_a_few_plain_draws_follow_the_same_law(name):
    sampler, tail = TAILS[name]
    cuts, probabilities = binned_law(tail, Fraction(2))
    one_by_one = np.array([sampler(2) for _ in range(5_000)])
    in_twenties = np.concatenate([sampler(2, 20) for _ in range(500)])
    assert_follows(binned(one_by_one, cuts), probabilities)
    assert_follows(binned(in_twenties, cuts), probabilities)


@pytest.mark.parametrize("sigma", [Fraction(3, 10), Fraction(1), Fraction(5, 2), Fraction(40)], ids=float)
def test_the_discrete_gaussian_follows_its_exact_law(sigma):
    assert_follows(discrete_gaussian(sigma, DRAWS), discrete_gaussian_law(sigma))


def test_at_large_sigma_the_discrete_gaussian_is_binned_like_the_rounded_one():
    """At sigma = 10^6 the two laws differ by less than e^(−10^13)."""
    cuts, probabilities = binned_law(law.gaussian_tail, Fraction(10**6))
    assert_follows(binned(discrete_gaussian(10**6, DRAWS), cuts), probabilities)


def test_rounded_and_discrete_gaussian_are_told_apart_where_they_differ():
    assert rejects(rounded_gaussian(Fraction(3, 10), DRAWS), discrete_gaussian_law(Fraction(3, 10)))


@pytest.mark.parametrize("sigma", [Fraction(3, 10), Fraction(4)], ids=float)
def test_karneys_exact_normals_follow_the_same_law(sigma):
    cuts, probabilities = binned_law(law.gaussian_tail, sigma)
    assert_follows(binned(np.array([rounded(sigma) for _ in range(8_000)]), cuts), probabilities)


@needs("opendp")
@pytest.mark.parametrize("scale", [1.0, 25.0])
def test_opendp_draws_from_the_same_distributions(scale):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    laplace = np.array(dp.m.make_laplace(*space, scale=scale)([0] * 50_000))
    cuts, probabilities = binned_law(law.laplace_tail, Fraction(scale))
    assert_follows(binned(laplace, cuts), probabilities)
    assert_follows(binned(discrete_laplace(scale, 50_000), cuts), probabilities)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    gaussian = np.array(dp.m.make_gaussian(*space, scale=scale)([0] * 50_000))
    assert_follows(gaussian, discrete_gaussian_law(Fraction(scale)))


@pytest.mark.parametrize("sampler", [discrete_laplace, rounded_gaussian, discrete_gaussian])
def test_sizes(sampler):
    assert isinstance(sampler(3), int)
    assert sampler(3, 0).shape == (0,)
    assert sampler(3, 5).dtype == np.int64


@pytest.mark.parametrize("sampler", [discrete_laplace, rounded_gaussian, discrete_gaussian])
@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e-320, "1", True, None, 1e16])
def test_a_scale_that_is_none_is_refused_with_the_rule_and_the_next_step(sampler, scale):
    with pytest.raises(BadParameter, match=r"it must be .*\. Give"):
        sampler(scale)


@pytest.mark.parametrize("size", [-1, 1.5, "3", True, (2, 3)])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(BadParameter, match="size is"):
        discrete_laplace(1, size)
