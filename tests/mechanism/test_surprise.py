"""Surprises: the law over all small tables, and the twins that halve the sensitivity or think counts are monotone."""

from fractions import Fraction
from itertools import product
from time import process_time

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.event import Gaussian, Selection
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import exponential, gaussian, largest_surprise, surprise_quantile
from discreet.mechanism.distance import surprises
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, ONE, ONE_WAY, REPLACE, UNITS, floats, sealed, total
from support.statistics import assert_follows, assert_rate_at_least, rejects

# Three overlapping counts on three cells, and what a model says of them: too little, right, too much.
QUERY = [[1, 1, 0], [0, 1, 1], [1, 0, 0]]
EXPECTED = [0, 2, 3]


def choose(moves, **more):
    return largest_surprise(epsilon=1, sensitivity=moves, expected=EXPECTED, **more)


def measure(moves, *, sigma=1, rank=-1):
    return surprise_quantile(sigma=sigma, sensitivity=moves, expected=EXPECTED, rank=rank)


def with_linf(moves, factor):
    return Sensitivity(moves.l1, moves.l2_squared, moves.linf * factor)


# --- Privacy, exactly -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("handicaps", [None, [0, 2, -1]])
def test_the_claimed_epsilon_of_the_selection_holds_over_all_small_tables(unit, handicaps):
    verdict = verify.check(lambda moves: choose(moves, handicaps=handicaps), QUERY, unit, rows=4)
    assert verdict.holds
    assert verdict.exact.lower > 0.3


def test_the_loss_of_the_selection_has_bounded_range():
    mechanism = choose(matrix_sensitivity(QUERY, ADD))
    for one, other in verify.neighboring_tables(3, 4, ADD):
        here, there = (mechanism.law(np.array(QUERY) @ table).probabilities for table in (one, other))
        losses = [float((here[place] / there[place]).log().mid()) for place in here]
        assert max(losses) - min(losses) <= 1 + 1e-12


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("rank", [1, 2, -1])
def test_the_claimed_delta_of_the_quantile_holds_over_all_small_tables(unit, rank):
    sigma = unit.contributions
    assert verify.check(lambda moves: measure(moves, sigma=sigma, rank=rank), QUERY, unit).holds


def test_the_quantile_is_tight_where_the_rounded_gaussian_is():
    far = [([9, 9, 9], [10, 10, 10])]
    for rank in (1, 2, 3):
        assert verify.check_pairs(measure(1, sigma=2, rank=rank), far, epsilon=Fraction(1, 2)).tight


def test_twice_the_rate_because_counts_move_one_way_is_refuted():
    moves = matrix_sensitivity(QUERY, ADD)
    assert moves.monotone
    eager = exponential(epsilon=1, sensitivity=moves)
    broken = pretend(
        choose(moves).event, lambda values, beside=(): eager.law(surprises(np.array(values), np.array(EXPECTED)))
    )
    verdict = verify.check(lambda _: broken, QUERY, ADD, rows=4)
    assert verdict.refuted
    assert verdict.exact.lower > 1.4


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_half_the_sensitivity_is_refuted_for_both(unit):
    half = Fraction(1, 2)
    eager = lambda moves: pretend(choose(moves).event, choose(with_linf(moves, half)).law)
    assert verify.check(eager, QUERY, unit, rows=4).refuted
    # Half the sensitivity is half the noise for the same claim.
    narrow = lambda moves: pretend(measure(moves, sigma=2).event, measure(moves, sigma=1).law)
    assert verify.check(narrow, QUERY, unit).refuted


def test_no_surprise_and_no_order_statistic_moves_further_than_the_values():
    expected = np.array(EXPECTED)
    for unit in UNITS:
        most = matrix_sensitivity(QUERY, unit).linf
        reached = 0
        for one, other in verify.neighboring_tables(3, 4, unit):
            here, there = (np.sort(surprises(np.array(QUERY) @ table, expected)) for table in (one, other))
            reached = max(reached, np.abs(here - there).max())
        assert reached == most


# --- What is released -------------------------------------------------------------------------------------------------


def test_the_laws_are_those_of_the_exponential_mechanism_and_of_the_gaussian():
    for values in product(range(4), repeat=3):
        distances = [abs(value - middle) for value, middle in zip(values, EXPECTED, strict=True)]
        scores = [distance - late for distance, late in zip(distances, [0, 2, -1], strict=True)]
        law = choose(2, handicaps=[0, 2, -1]).law(values)
        assert floats(law) == floats(exponential(epsilon=1, sensitivity=2).law(scores))
        assert abs(total(law) - 1) < 1e-50
        for rank in (1, 2, 3):
            wanted = gaussian(sigma=1, sensitivity=1).law([sorted(distances)[rank - 1]])
            assert floats(measure(1, rank=rank).law(values)) == {y[0]: mass for y, mass in floats(wanted).items()}


@pytest.mark.parametrize("mechanism", [choose(ONE, handicaps=[1, 0, 0]), measure(ONE, rank=2)])
def test_draws_follow_the_law_and_other_expectations_are_noticed(mechanism):
    values = [3, 1, 1]
    draws = [mechanism.release(sealed(values, ONE_WAY)) for _ in range(4_000)]
    assert_follows(draws, floats(mechanism.law(values)))
    assert rejects(draws, floats(mechanism.law([5, 5, 1])))
    assert all(type(draw) is int for draw in draws)


def test_the_events_and_the_order_statistics_do_not_count_the_probes():
    expected = np.zeros(20_000, dtype=np.int64)
    moves = Sensitivity(Fraction(20_000), Fraction(20_000), Fraction(1), direction=1)
    largest = surprise_quantile(sigma=3, sensitivity=moves, expected=expected)
    assert largest.event == Gaussian(Fraction(3), Fraction(1))
    values = np.arange(20_000)
    assert abs(largest.release(sealed(values, moves)) - 19_999) < 40
    tenth = surprise_quantile(sigma=3, sensitivity=moves, expected=expected, rank=2_000)
    assert abs(tenth.release(sealed(values, moves)) - 1_999) < 40
    assert largest_surprise(epsilon=1, sensitivity=moves, expected=expected).event == Selection(Fraction(1))


def test_ten_thousand_candidates_take_milliseconds():
    expected = np.arange(10_000, dtype=np.int64)
    mechanism = largest_surprise(epsilon=1, sensitivity=1, expected=expected)
    exact = sealed(expected + (np.arange(10_000) == 7) * 1_000)
    # The compiler is loaded after so many draws as take as long.
    assert {mechanism.release(exact) for _ in range(30)} == {7}
    start = process_time()
    assert {mechanism.release(exact) for _ in range(20)} == {7}
    assert (process_time() - start) / 20 < 0.02


def test_the_errors_hold():
    values, wide = [40, 9, 0], 0.9
    select = largest_surprise(epsilon=Fraction(1, 4), sensitivity=1, expected=[0, 0, 0])
    left = [40 - value <= select.error(wide) for value in values]
    law = floats(select.law(values))
    assert sum(mass for place, mass in law.items() if left[place]) >= wide
    largest = surprise_quantile(sigma=5, sensitivity=1, expected=[0, 0, 0])
    near = sum(abs(largest.release(sealed(values)) - 40) <= largest.error(wide) for _ in range(500))
    assert_rate_at_least(near, 500, wide)


def test_numbers_at_the_ends_of_64_bits_do_not_wrap_round():
    ends = [2**63 - 1, -(2**63), 0]
    expected = [-(2**60), 2**60, 0]
    assert surprises(np.array(ends), np.array(expected)).tolist() == [2**61, 2**61, 0]
    assert (
        largest_surprise(epsilon=1, sensitivity=1, expected=expected, handicaps=[2**60, -(2**60), 0]).release(
            sealed(ends)
        )
        == 1
    )


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_values_that_move_further_than_declared_stay_sealed():
    wide = Sensitivity(Fraction(2), Fraction(4), Fraction(2))
    for mechanism in (choose(1), measure(1)):
        with pytest.raises(SealBroken):
            mechanism.release(sealed([1, 2, 3], wide))


def test_one_expected_value_for_each_true_one():
    for mechanism in (choose(1), measure(1)):
        with pytest.raises(BadParameter, match="there are 2 values; this mechanism takes 3"):
            mechanism.release(sealed([1, 2]))
        with pytest.raises(BadParameter, match="there are 2 values and 3 expected"):
            mechanism.law([1, 2])
    with pytest.raises(BadParameter, match="there are 2 handicaps and 3 expected"):
        choose(1, handicaps=[1, 2])


@pytest.mark.parametrize("expected", [[], [0.5], ["1"], [True], [2**60 + 1], [-(2**70)], np.array([2**62])])
def test_what_is_expected_must_be_integers_that_fit(expected):
    for make in (
        lambda: largest_surprise(epsilon=1, sensitivity=1, expected=expected),
        lambda: surprise_quantile(sigma=1, sensitivity=1, expected=expected),
        lambda: largest_surprise(epsilon=1, sensitivity=1, expected=[1], handicaps=expected),
    ):
        with pytest.raises(BadParameter, match=r"expected|handicaps"):
            make()


@pytest.mark.parametrize("rank", [0, 4, -4, 1.5, "1", True, None])
def test_a_rank_that_is_not_there_is_refused(rank):
    with pytest.raises(BadParameter, match=r"rank is .*Give 1 for the smallest, 3 or -1 for the largest"):
        measure(1, rank=rank)


def test_changing_the_array_of_expected_values_afterwards_changes_nothing():
    expected = np.array([0, 100])
    mechanism = largest_surprise(epsilon=1, sensitivity=1, expected=expected)
    before = floats(mechanism.law([0, 0]))
    expected[:] = 0
    assert floats(mechanism.law([0, 0])) == before
