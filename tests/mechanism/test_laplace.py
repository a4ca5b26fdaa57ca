"""The discrete Laplace mechanism: its privacy is exactly what it says, its error too, and its draws follow its law."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.errors import SealBroken
from discreet.mechanism import laplace
from discreet.mechanism.laplace import laplace_half_width, union_half_width
from discreet.noise.law import laplace_tail
from support.broken_mechanisms import laplace_too_little_noise
from support.mechanism_values import ADD, REPLACE, UNITS, first_coordinate, sealed, total
from support.statistics import assert_follows, rejects

QUERIES = {
    "count": [[1, 0]],
    "sum": [[0, 1, 3]],
    "signed sum": [[-2, 1]],
    "histogram": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "overlapping counts": [[1, 1, 0], [0, 1, 1]],
}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, Fraction(7, 3)])
def test_the_claimed_epsilon_is_exact_over_all_small_tables(query, unit, epsilon):
    verdict = verify.check(lambda moves: laplace(epsilon=epsilon, sensitivity=moves), query, unit)
    assert verdict.holds
    assert verdict.tight


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_ten_per_cent_less_noise_is_refuted(query, unit):
    verdict = verify.check(lambda moves: laplace_too_little_noise(epsilon=1, sensitivity=moves), query, unit)
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(10 / 9)


def test_the_largest_single_move_is_not_the_sensitivity_of_a_vector():
    verdict = verify.check(lambda moves: laplace(epsilon=1, sensitivity=moves.linf), QUERIES["histogram"], REPLACE)
    assert verdict.refuted
    assert verdict.exact.lower == pytest.approx(2)


def test_clamping_between_the_true_values_loses_nothing():
    mechanism = laplace(epsilon=1, sensitivity=3)
    coarse = mechanism.law([0], beside=[[3]]), mechanism.law([3], beside=[[0]])
    fine = mechanism.law([0], beside=[[-60], [63]]), mechanism.law([3], beside=[[-60], [63]])
    for epsilon in (0, Fraction(1, 3), Fraction(9, 10)):
        assert verify.divergence(*coarse, epsilon) == pytest.approx(verify.divergence(*fine, epsilon), abs=1e-15)
    assert verify.epsilon(*coarse) == verify.epsilon(*fine)


@pytest.mark.parametrize("values", [[3], [3, -5]])
def test_the_law_is_complete(values):
    law = laplace(epsilon=2, sensitivity=1).law(values)
    assert law.rest == 0
    assert abs(total(law) - 1) < 1e-40


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1234, 7)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
@pytest.mark.parametrize("joint", [1, 7, 1000])
def test_the_error_is_the_smallest_that_holds(scale, confidence, joint):
    width = int(laplace_half_width(scale, confidence, joint=joint))
    holds = 1 - 2 * laplace_tail(width + 1, scale)
    assert holds**joint >= confidence
    if width:
        assert (1 - 2 * laplace_tail(width, scale)) ** joint < confidence


def test_the_lectures_bound_holds_and_is_never_smaller():
    for scale in (Fraction(1), Fraction(10), Fraction(77, 3)):
        for joint in (1, 10, 1000):
            assert union_half_width(scale, 0.95, joint=joint) >= laplace_half_width(scale, 0.95, joint=joint)


def test_the_lectures_bound_fails_on_integers_if_it_is_not_rounded_up():
    # s ln(1/β) just below an integer: |X| > that is |X| ≥ the integer, twice as likely as the continuous tail says.
    scale, width = Fraction(1), Fraction(2999, 1000)
    promised = (-1 * width.numerator / width.denominator) / scale
    assert 2 * laplace_tail(3, scale) > np.exp(float(promised))


def test_draws_follow_the_law_and_a_tenth_less_noise_is_noticed():
    mechanism = laplace(epsilon=Fraction(1, 3), sensitivity=1)
    draws = mechanism.release(sealed(np.full(40_000, 7)))
    law = first_coordinate(mechanism.law([7]))
    assert_follows(draws, law)
    small = laplace_too_little_noise(epsilon=Fraction(1, 3), sensitivity=1).law([7])
    assert rejects(draws, first_coordinate(small))


def test_noise_for_a_smaller_sensitivity_does_not_open_the_seal():
    moves = matrix_sensitivity(QUERIES["histogram"], REPLACE)
    with pytest.raises(SealBroken, match=r"exact\.sensitivity"):
        laplace(epsilon=1, sensitivity=1).release(sealed([1, 2, 3], moves))
    laplace(epsilon=1, sensitivity=2).release(sealed([1, 2, 3], moves))


def test_a_mechanism_built_for_values_that_move_one_way_opens_others_of_the_same_size():
    one_way = matrix_sensitivity([[1, 0]], ADD)
    other = matrix_sensitivity([[1, 0]], REPLACE)
    assert one_way.monotone
    assert not other.monotone
    laplace(epsilon=1, sensitivity=one_way).release(sealed([1], other))
