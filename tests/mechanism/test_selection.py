"""Exponential mechanism and report noisy max: two different laws, one of them better, both as private as they say."""

from fractions import Fraction
from itertools import permutations, product
from math import exp

import numpy as np
import pytest
from flint import arb
from scipy.integrate import quad

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import exponential, noisy_max
from discreet.mechanism.exponential import exponential_law
from discreet.mechanism.noisy_max import permute_and_flip_law
from discreet.noise.law import exp_minus
from discreet.numeric import precision
from support.broken_mechanisms import (
    exponential_twice_too_eager,
    noisy_max_twice_too_eager,
    noisy_max_with_its_value,
    pretend,
)
from support.mechanism_values import ADD, ONE, ONE_WAY, REPLACE, UNITS, floats, sealed, total
from support.statistics import assert_follows, rejects

MAKERS = [exponential, noisy_max]
SCORES = {
    "counts": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "overlapping": [[1, 1, 0], [0, 1, 1]],
    "signed": [[1, -1], [-1, 1]],
}
# Scores that one neighbour moves by one, up or down, each on its own: the worst case of the proof.
GRID = [list(scores) for scores in product(range(3), repeat=3)]
FAR_PAIRS = [([k, 0], [k + 1, -1]) for k in range(0, 40, 3)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("make", MAKERS)
def test_the_claimed_epsilon_holds_over_all_small_tables(make, scores, unit):
    verdict = verify.check(lambda moves: make(epsilon=1, sensitivity=moves), scores, unit, rows=3)
    assert verdict.holds


@pytest.mark.parametrize("moves", [ONE, ONE_WAY])
def test_noisy_max_is_tight_on_two_candidates(moves):
    pairs = [([0, 0], [1, 0])] if moves.monotone else [([1, 0], [2, -1])]
    assert verify.check_pairs(noisy_max(epsilon=1, sensitivity=moves), pairs).tight


def test_the_exponential_mechanism_comes_as_near_to_its_epsilon_as_one_likes_but_never_reaches_it():
    verdict = verify.check_pairs(exponential(epsilon=1, sensitivity=1), FAR_PAIRS)
    assert verdict.holds
    assert not verdict.tight
    assert verdict.exact.lower > 1 - 1e-7


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_the_exponential_mechanism_has_bounded_range(unit):
    moves = matrix_sensitivity(SCORES["counts"], unit)
    mechanism = exponential(epsilon=1, sensitivity=moves)
    for one, other in verify.neighboring_tables(3, 3, unit):
        here, there = mechanism.law(one).probabilities, mechanism.law(other).probabilities
        losses = [float((here[y] / there[y]).log().mid()) for y in here]
        assert max(losses) - min(losses) <= 1 + 1e-12


@pytest.mark.parametrize("make", [exponential_twice_too_eager, noisy_max_twice_too_eager])
def test_forgetting_that_scores_move_apart_is_refuted(make):
    assert verify.check_pairs(make(epsilon=1, sensitivity=1), FAR_PAIRS).refuted
    assert verify.check(lambda moves: make(epsilon=1, sensitivity=moves), SCORES["signed"], REPLACE, rows=3).refuted


@pytest.mark.parametrize("make", MAKERS)
def test_a_tenth_too_eager_is_refuted(make):
    right, eager = make(epsilon=1, sensitivity=1), make(epsilon=Fraction(11, 10), sensitivity=1)
    assert verify.check_pairs(pretend(right.event, eager.law), FAR_PAIRS).refuted


def test_telling_the_winning_noisy_score_costs_more():
    pairs = [([0, 0, 0], [1, 1, 1])]
    assert verify.check_pairs(noisy_max(epsilon=1, sensitivity=1), pairs).holds
    assert verify.check_pairs(noisy_max_with_its_value(epsilon=1, sensitivity=1), pairs).refuted


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(2)])
def test_the_noisy_max_law_is_permute_and_flip_on_every_score_vector_of_a_grid(rate):
    for scores in GRID:
        law = permute_and_flip_law(scores, rate)
        with precision(192):
            flips = [exp_minus(rate * (max(scores) - score)) for score in scores]
            for place in range(3):
                chance = arb(0)
                for order in permutations(range(3)):
                    reach = arb(1)
                    for other in order[: order.index(place)]:
                        reach *= 1 - flips[other]
                    chance += reach * flips[place] / 6
                assert abs(chance - law.probabilities[place]) < 1e-50


@pytest.mark.parametrize("scores", [[0, 0, 2], [1, 0, 0], [0, 3, 1]])
def test_the_laws_are_those_of_adding_the_noise_and_taking_the_largest(scores):
    rate = 0.7
    exponential_noise = (
        lambda z: rate * exp(-rate * z) if z >= 0 else 0.0,
        lambda z: 1 - exp(-rate * z) if z > 0 else 0.0,
    )
    gumbel_noise = (lambda z: rate * exp(-rate * z - exp(-rate * z)), lambda z: exp(-exp(-rate * z)))
    for (density, below), law, low in (
        (exponential_noise, permute_and_flip_law(scores, Fraction(7, 10)), max(scores)),
        (gumbel_noise, exponential_law(scores, Fraction(7, 10)), -8.0),
    ):
        for place, score in enumerate(scores):

            def wins(x, place=place, score=score, density=density, below=below):
                rivals = [below(x - other) for i, other in enumerate(scores) if i != place]
                return density(x - score) * np.prod(rivals)

            measured, _ = quad(wins, low, 80, limit=400, epsabs=1e-12)
            assert measured == pytest.approx(floats(law)[place], abs=1e-9)


@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_noisy_max_has_a_better_expected_score_and_another_law_on_every_score_vector_of_a_grid(rate):
    for scores in [*GRID, *(list(s) for s in product(range(2), repeat=5))]:
        flip, plain = permute_and_flip_law(scores, rate), exponential_law(scores, rate)
        with precision(192):
            gain = sum((flip.probabilities[y] - plain.probabilities[y]) * score for y, score in enumerate(scores))
            if len(set(scores)) == 1:
                assert abs(gain) < 1e-50
            else:
                assert gain > 0
                assert not any(flip.probabilities[y].overlaps(plain.probabilities[y]) for y in range(len(scores)))


def test_gumbel_noise_is_the_exponential_mechanism():
    one, other = noisy_max(epsilon=1, sensitivity=1, noise="gumbel"), exponential(epsilon=1, sensitivity=1)
    assert one.event == other.event
    assert floats(one.law([0, 1, 4])) == floats(other.law([0, 1, 4]))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("candidates", [2, 5, 60])
def test_the_error_holds_for_the_worst_scores_and_the_exponential_one_is_attained(confidence, candidates):
    for make, slack in ((exponential, 1e-9), (noisy_max, 0.1)):
        mechanism = make(epsilon=Fraction(1, 2), sensitivity=1)
        gap = mechanism.error(confidence, candidates=candidates)
        if gap == 0:
            continue
        # One best candidate, all others just so far below that choosing one is a failure.
        missed = 1 - floats(mechanism.law([Fraction(gap), *[0] * (candidates - 1)]))[0]
        assert missed <= 1 - confidence + 1e-12
        if candidates * (1 - confidence) < 10:
            assert missed >= (1 - confidence) * (1 - slack) or confidence == 0.5


def test_the_error_is_below_the_lectures():
    for candidates in (2, 10, 1000):
        for t in (1, 5, 20):
            lectures = 4 * (np.log(candidates) + t) / 0.5
            for make in MAKERS:
                assert make(epsilon=0.5, sensitivity=1).error(1 - exp(-t), candidates=candidates) < lectures


@pytest.mark.parametrize("make", MAKERS)
def test_one_candidate_is_chosen_and_nothing_is_lost(make):
    mechanism = make(epsilon=1, sensitivity=1)
    assert mechanism.release(sealed([5])) == 0
    assert mechanism.error(0.99, candidates=1) == 0
    assert floats(mechanism.law([5])) == {0: 1}


@pytest.mark.parametrize("make", MAKERS)
def test_draws_follow_the_law_and_the_other_law_is_noticed(make):
    mechanism = make(epsilon=2, sensitivity=1)
    exact = sealed([0, 1, 3, 3])
    draws = [mechanism.release(exact) for _ in range(25_000)]
    assert_follows(draws, floats(mechanism.law([0, 1, 3, 3])))
    (other,) = [maker for maker in MAKERS if maker is not make]
    assert rejects(draws, floats(other(epsilon=2, sensitivity=1).law([0, 1, 3, 3])))


@pytest.mark.parametrize("make", MAKERS)
def test_laws_sum_to_one_even_for_many_candidates(make):
    assert abs(total(make(epsilon=1, sensitivity=1).law([i % 7 for i in range(80)])) - 1) < 1e-30


@pytest.mark.parametrize("make", MAKERS)
def test_scores_that_move_both_ways_do_not_open_a_one_way_mechanism(make):
    with pytest.raises(SealBroken):
        make(epsilon=1, sensitivity=ONE_WAY).release(sealed([0, 1], ONE))
    make(epsilon=1, sensitivity=ONE).release(sealed([0, 1], ONE_WAY))


@pytest.mark.parametrize("make", MAKERS)
def test_only_the_largest_single_move_matters_to_a_selection(make):
    moves = matrix_sensitivity([[1, 1], [1, 1], [1, 1]], ADD)
    assert moves.l1 == 3
    make(epsilon=1, sensitivity=1).release(sealed([1, 2, 3], moves))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("scores", [[], [1, float("nan")], [1.5, 2], ["1"], [True]])
def test_bad_scores_are_refused(make, scores):
    with pytest.raises(BadParameter, match="scores"):
        make(epsilon=1, sensitivity=1).law(scores)


def test_another_noise_is_refused_by_name():
    with pytest.raises(BadParameter, match=r"'laplace'.*exponential.*gumbel"):
        noisy_max(epsilon=1, sensitivity=1, noise="laplace")
