"""The half-width of a sum of discrete Laplace noises holds, and is as small as it can be."""

from fractions import Fraction
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from time import perf_counter, process_time

import numpy as np
import pytest
from flint import arb

from discreet import noise
from discreet.errors import BadParameter
from discreet.estimate.laplace_sum import laplace_sum_half_width, read_terms, tail, without_rare
from discreet.noise.law import laplace_mass
from support.statistics import assert_rate_at_least

CONFIDENCES = [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12]

# (coefficient, scale, count)
WHOLE = {
    "two equal": [(1, 3, 2)],
    "five equal": [(1, Fraction(3, 2), 5)],
    "weights 1, 2, 3": [(1, 2, 1), (2, 1, 1), (3, Fraction(1, 2), 2)],
    "weights 2 and 3": [(2, Fraction(3, 10), 1), (3, Fraction(7, 10), 1)],
    "one wide, one narrow": [(5, 1, 1), (1, 4, 1)],
    "hardly any noise": [(1, Fraction(1, 20), 1), (7, Fraction(1, 20), 1)],
}
REAL = {
    "√2": [(1, 10), (sqrt(2), 10)],
    "√2, little noise": [(1, 0.5), (sqrt(2), 0.5)],
    "√2, hardly any noise": [(1, 0.1), (sqrt(2), 0.2)],
    "three": [(1, 2), (0.31, 1), (0.77, 1.5)],
    "π": [(1, 1), (np.pi, 1), (0.5, 1)],
    "nearly on the integers": [(1, 1), (1.0001, 1)],
    "tenths, which are not tenths": [(0.1, 1.5), (0.2, 1.5), (0.3, 1.5)],
    "one much wider": [(1, 30), (0.03162, 30)],
}


def columns(*rows):
    return tuple(np.array([float(row[place]) for row in rows]) for place in range(2))


def counts_of(terms):
    return np.array([count for _, _, count in terms])


def law(terms):
    """The masses of the sum at 0, 1, 2 …, as balls; the error of cutting each noise where 1e-26 lies beyond."""
    masses = {0: arb(1)}
    for coefficient, scale, count in terms:
        reach = int(60 * scale) + 2
        each = {coefficient * k: laplace_mass(k, Fraction(scale)) for k in range(-reach, reach + 1)}
        for _ in range(count):
            total = {}
            for x, p in masses.items():
                for y, q in each.items():
                    total[x + y] = total.get(x + y, arb(0)) + p * q
            masses = total
    return masses


def tails(masses):
    """Pr[|X| > t] for t = 0, 1, …, summed from the far end."""
    total, listed = arb(0), []
    for x in range(max(masses), 0, -1):
        total += 2 * masses.get(x, arb(0))
        listed.append(float(total))
    return listed[::-1]


def enumerated(terms):
    """|X| over all outcomes, falling, and Pr[|X| ≥ x] of each."""
    x, p = np.zeros(1), np.ones(1)
    for coefficient, scale in terms:
        reach = int(40 * scale) + 2
        k = np.arange(-reach, reach + 1)
        x = np.add.outer(x, coefficient * k).ravel()
        p = np.multiply.outer(p, np.tanh(0.5 / scale) * np.exp(-np.abs(k) / scale)).ravel()
    order = np.argsort(-np.abs(x))
    return np.abs(x)[order], np.cumsum(p[order])


def deviation(terms):
    rates = [(c, np.exp(-1 / b)) for c, b in terms]
    return sqrt(sum(c**2 * 2 * a / (1 - a) ** 2 for c, a in rates))


@pytest.mark.parametrize("terms", WHOLE.values(), ids=WHOLE)
def test_with_whole_weights_it_is_the_smallest_half_width(terms):
    exact = tails(law(terms))
    for confidence in CONFIDENCES:
        failure = float(1 - Fraction(repr(confidence)))
        smallest = next(t for t, probability in enumerate(exact) if probability <= failure)
        assert laplace_sum_half_width(*columns(*terms), counts_of(terms), confidence=confidence) == smallest


@pytest.mark.parametrize("terms", WHOLE.values(), ids=WHOLE)
def test_with_whole_weights_the_tail_is_exact_down_to_the_smallest(terms):
    for t, probability in enumerate(tails(law(terms))):
        if probability > 1e-15:
            found = tail(*columns(*terms), counts_of(terms), beyond=t)
            assert probability * (1 - 1e-12) <= found <= probability * (1 + 1e-6)
            assert tail(*columns(*terms), counts_of(terms), beyond=t + 0.5) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("terms", REAL.values(), ids=REAL)
def test_with_real_weights_it_holds_and_is_at_most_one_percent_wider(terms):
    places, beyond = enumerated(terms)
    for confidence in CONFIDENCES:
        failure = float(1 - Fraction(repr(confidence)))
        smallest = places[np.searchsorted(beyond, failure * (1 - 1e-4), side="right")]
        holds = places[np.searchsorted(beyond, failure * (1 + 1e-9), side="right")]
        found = laplace_sum_half_width(*columns(*terms), confidence=confidence)
        assert holds <= found <= smallest + max(0.01 * smallest, 0.01 * deviation(terms))


@pytest.mark.parametrize("most", [0, 200, 5000])
@pytest.mark.parametrize("terms", [*REAL.values(), [(1, 0.21), (0.0013, 20)], [(1, 0.14), (0.0013, 2), (0.00071, 5)]])
def test_with_fewer_factors_than_it_takes_it_still_holds(terms, most):
    places, beyond = enumerated(terms)
    for confidence in CONFIDENCES:
        holds = places[np.searchsorted(beyond, float(1 - Fraction(repr(confidence))) * (1 + 1e-9), side="right")]
        assert holds <= laplace_sum_half_width(*columns(*terms), confidence=confidence, most=most) < 1e9


def test_large_noises_that_are_rare_are_bounded_and_take_no_longer():
    """A large step that happens with the failure that is allowed, or less, beside small ones: no one line sees both."""
    small = (0.0013, 2.0), (0.00071, 5.0)
    for failure in (0.05, 1e-3):
        for part in (1e-4, 1e-3, 0.01, 0.3, 0.7, 0.999):
            large = -1 / np.log(part * failure / (2 - part * failure))
            terms = [(1.0, large), *small]
            places, beyond = enumerated(terms)
            holds = places[np.searchsorted(beyond, failure * (1 + 1e-9), side="right")]
            assert holds <= laplace_sum_half_width(*columns(*terms), confidence=1 - failure)
            shares = [0.0, 1e-3, 0.5, 1.0]
            for kept, left in (without_rare(read_terms(*columns(*terms), None), failure, share) for share in shares):
                dropped = len(terms) - kept.counts.size
                assert left + sorted(read_terms(*columns(*terms), None).moving())[0] * dropped <= failure
    wide = np.array([1.0, *(1e-9 * np.linspace(1, 2, 3000))]), np.array([0.15, *np.full(3000, 9.0)])
    begun = process_time()
    assert 0 < laplace_sum_half_width(*wide, confidence=0.95) < 10
    assert process_time() - begun < 2


@pytest.mark.parametrize("terms", REAL.values(), ids=REAL)
def test_with_real_weights_the_tail_is_a_bound_and_near(terms):
    places, beyond = enumerated(terms)

    def exact(t):
        above = int(np.searchsorted(-places, -t, side="left"))
        return float(beyond[above - 1]) if above else 0.0

    for t in np.array([0.1, 0.7, 1, 2, 4, 8, 16]) * deviation(terms):
        nearer = t - max(0.01 * t, 0.01 * deviation(terms))
        assert exact(t) * (1 - 1e-9) <= tail(*columns(*terms), beyond=float(t)) <= exact(nearer) * 1.01


def test_one_term_has_the_closed_form():
    assert laplace_sum_half_width(np.array([1.0]), np.array([10.0]), confidence=0.95) == 30
    assert laplace_sum_half_width(np.array([-0.5]), np.array([10.0]), confidence=0.95) == 15
    assert tail(np.array([2.0]), np.array([1.0]), beyond=7.9) == pytest.approx(2 * np.exp(-4) / (1 + np.exp(-1)))


def test_real_and_whole_weights_agree_on_many_terms():
    """Two ways that share little: weights that are whole, and the same moved off the integers by 1e-9."""
    weights = np.arange(1.0, 401) % 7 + 1
    scales = 1 + np.arange(400) % 40 / 3
    moved = weights * (1 + 1e-9 * np.sin(np.arange(400)))
    for confidence in CONFIDENCES[1:]:
        whole = laplace_sum_half_width(weights, scales, confidence=confidence)
        assert whole * (1 - 1e-8) <= laplace_sum_half_width(moved, scales, confidence=confidence) <= whole * 1.01


def holds(width, draws, confidence):
    assert_rate_at_least(int(np.sum(np.abs(draws) <= width)), draws.size, confidence)


def drawn(weights, scale, size=100_000):
    return sum(weight * noise.discrete_laplace(Fraction(scale), size=size) for weight in weights)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [1.0, 0.37, 0.77], [3.0, 2.0]])
def test_the_draws_of_our_sampler_stay_inside(weights):
    draws = drawn(weights, 4)
    for confidence in (0.5, 0.95, 0.999):
        holds(
            laplace_sum_half_width(np.array(weights), np.full(len(weights), 4.0), confidence=confidence),
            draws,
            confidence,
        )


def test_a_gaussian_of_the_same_variance_is_caught():
    weights = [1.0, 0.37, 0.77]
    width = NormalDist().inv_cdf(1 - 0.001 / 2) * deviation([(weight, 4) for weight in weights])
    with pytest.raises(AssertionError, match="promised"):
        holds(width, drawn(weights, 4), 0.999)
    assert laplace_sum_half_width(np.array(weights), np.full(3, 4.0), confidence=0.999) > 1.05 * width


def test_of_a_million_terms_it_is_the_gaussian_one():
    width = NormalDist().inv_cdf(0.975) * 1000 * deviation([(1, 10)])
    found = laplace_sum_half_width(np.array([1.0]), np.array([10.0]), np.array([1_000_000]), confidence=0.95)
    assert found == pytest.approx(width, rel=1e-4)


@pytest.mark.parametrize("weights", [[1.0, 1.0, 2.0], [1.0, 0.37, 0.77]])
def test_more_confidence_is_wider(weights):
    widths = [
        laplace_sum_half_width(np.array(weights), np.full(3, 2.5), confidence=one)
        for one in np.linspace(0.02, 0.999, 60)
    ]
    # The smoothing follows the width, so without a lattice neighbours may differ by it.
    assert all(later >= earlier * 0.995 for earlier, later in pairwise(widths))
    assert widths[-1] > widths[30] > widths[0]


@pytest.mark.parametrize("factor", [1e-6, 1 / 3, 7.0, 1e6 * np.pi])
@pytest.mark.parametrize("weights", [[1.0, 1.0, 2.0], [1.0, 0.37, 0.77]])
def test_it_scales_with_the_weights(weights, factor):
    once = laplace_sum_half_width(np.array(weights), np.full(3, 2.5), confidence=0.95)
    assert laplace_sum_half_width(factor * np.array(weights), np.full(3, 2.5), confidence=0.95) == pytest.approx(
        factor * once
    )


def test_signs_order_zeros_and_merging_do_not_matter():
    once = laplace_sum_half_width(np.array([1.0, 2.0]), np.array([5.0, 3.0]), np.array([3, 1]), confidence=0.95)
    weights, scales = np.array([0.0, -1.0, -2.0, 1.0, 1.0]), np.array([9.0, 5.0, 3.0, 5.0, 5.0])
    assert laplace_sum_half_width(weights, scales, confidence=0.95) == once


def test_without_noise_the_error_is_zero():
    nothing = np.zeros(2), np.ones(2)
    assert laplace_sum_half_width(*nothing, confidence=0.95) == tail(*nothing, beyond=0.0) == 0.0
    assert tail(*nothing, beyond=-1.0) == 1.0
    assert laplace_sum_half_width(np.array([1.0, sqrt(2)]), np.full(2, 0.01), confidence=1 - 1e-9) == 0.0


@pytest.mark.parametrize(
    ("coefficients", "scales", "counts", "said"),
    [
        ([], [], None, "coefficients has shape"),
        ([[1.0]], [1.0], None, "coefficients has shape"),
        ([float("nan")], [1.0], None, "coefficients has nan"),
        ([float("inf")], [1.0], None, "coefficients has inf"),
        ([1.0], [-1.0], None, "scales has -1.0"),
        ([1.0], [0.0], None, "scales has 0.0"),
        ([1.0], [float("nan")], None, "scales has nan"),
        ([1.0, 1.0], [1.0], None, "the three must have one length"),
        ([1.0], [1.0], [-1], "counts has -1"),
        ([1.0], [1.0], [1.5], "whole numbers"),
    ],
)
def test_bad_terms_are_refused(coefficients, scales, counts, said):
    with pytest.raises(BadParameter, match=said):
        laplace_sum_half_width(coefficients, scales, counts, confidence=0.95)
    with pytest.raises(BadParameter, match=said):
        tail(coefficients, scales, counts, beyond=1.0)


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "0.9", True])
def test_a_bad_confidence_is_refused(confidence):
    with pytest.raises(BadParameter, match="confidence is"):
        laplace_sum_half_width(np.ones(1), np.ones(1), confidence=confidence)


@pytest.mark.parametrize("beyond", [float("nan"), float("inf"), "1", None])
def test_a_bad_place_is_refused(beyond):
    with pytest.raises(BadParameter, match="beyond is"):
        tail(np.ones(1), np.ones(1), beyond=beyond)


@pytest.mark.parametrize("case", ["a million equal", "five thousand real", "five thousand scales"])
def test_large_sums_are_fast(case):
    spread = 0.1 + np.arange(5000) * 0.6180339887 % 1
    weights, scales, counts = {
        "a million equal": (np.ones(1), np.full(1, 10.0), np.array([1_000_000])),
        "five thousand real": (spread, np.full(5000, 10.0), None),
        "five thousand scales": (np.ones(5000), 20 * spread, None),
    }[case]
    best = 1.0
    for _ in range(5):
        start = perf_counter()
        laplace_sum_half_width(weights, scales, counts, confidence=0.95)
        best = min(best, perf_counter() - start)
    assert best < 0.1
