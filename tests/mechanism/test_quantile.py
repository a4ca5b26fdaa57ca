"""Quantiles by rank: right on every small table, and an absolute value is not monotone."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity, scalar_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism import Mechanism, noisy_max, quantile, quantile_effects
from discreet.mechanism.quantile import rank_scores
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, REPLACE, UNITS, floats, sealed
from support.statistics import assert_follows, assert_rate_at_least, rejects

CELLS = 3


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("at", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_the_claimed_epsilon_holds_over_all_small_tables(at, unit, noise):
    make = lambda _: quantile(epsilon=1, cells=CELLS, unit=unit, at=at, noise=noise)
    verdict = verify.check(make, quantile_effects(CELLS, at=at), unit, rows=3)
    assert verdict.holds
    assert verdict.exact.lower > 0.2


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("at", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_no_score_moves_further_than_the_imbalances(at, unit):
    effects = quantile_effects(CELLS, at=at)
    most = matrix_sensitivity(effects, unit).linf
    assert most == scalar_sensitivity(-at.numerator, at.denominator - at.numerator, unit).linf
    moves = [
        np.abs(rank_scores(effects @ np.array(one)) - rank_scores(effects @ np.array(other))).max()
        for one, other in verify.neighboring_tables(CELLS, 4, unit)
    ]
    assert max(moves) <= most


def test_taking_the_scores_for_monotone_is_refuted():
    moves = scalar_sensitivity(-1, 1, ADD)
    one_way = Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=1)
    eager = noisy_max(epsilon=1, sensitivity=one_way)

    def law(imbalances, beside=()):
        return eager.law(rank_scores(np.array(imbalances)))

    broken = pretend(eager.event, law)
    assert verify.check(lambda _: broken, quantile_effects(CELLS), ADD, rows=5).refuted


@pytest.mark.parametrize("at", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
def test_a_cell_scores_zero_exactly_when_it_holds_the_quantile(at):
    for table in product(range(4), repeat=CELLS):
        n = sum(table)
        scores = rank_scores(quantile_effects(CELLS, at=at) @ np.array(table))
        for cell in range(CELLS):
            below, to_here = sum(table[:cell]), sum(table[: cell + 1])
            holds = below <= at * n <= to_here
            missed = max(below - at * n, at * n - to_here, 0)
            assert (scores[cell] == 0) == holds
            assert -scores[cell] == at.denominator * missed
        assert scores.max() == 0


def test_the_median_of_many_rows_in_one_cell_is_that_cell():
    table = np.array([0, 0, 100, 0, 0])
    median = quantile(epsilon=1, cells=5, unit=ADD)
    assert floats(median.law(quantile_effects(5) @ table))[2] > 0.99


def test_the_error_in_rows_holds():
    table = np.array([30, 30, 30, 30, 30, 30, 30, 30])
    median = quantile(epsilon=Fraction(1, 10), cells=8, unit=REPLACE)
    imbalances = quantile_effects(8) @ table
    width = median.error(0.9)
    missed = -rank_scores(imbalances) / 2
    law = floats(median.law(imbalances))
    assert sum(chance for cell, chance in law.items() if missed[cell] <= width) >= 0.9
    draws = [median.release(sealed(imbalances, matrix_sensitivity(quantile_effects(8), REPLACE))) for _ in range(300)]
    assert_rate_at_least(sum(missed[cell] <= width for cell in draws), 300, 0.9)


def test_draws_follow_the_law_and_another_quantile_is_noticed():
    table = np.array([2, 1, 3, 2])
    mechanism = quantile(epsilon=1, cells=4, unit=ADD)
    imbalances = quantile_effects(4) @ table
    exact = sealed(imbalances, matrix_sensitivity(quantile_effects(4), ADD))
    draws = [mechanism.release(exact) for _ in range(5_000)]
    assert_follows(draws, floats(mechanism.law(imbalances)))
    other = quantile(epsilon=1, cells=4, unit=ADD, at=0.25)
    assert rejects(draws, floats(other.law(quantile_effects(4, at=0.25) @ table)))


@pytest.mark.parametrize("at", [0, 1, -0.5, float("nan"), "0.5", 0.1234567890123])
def test_quantiles_outside_the_open_interval_are_refused(at):
    with pytest.raises(BadParameter, match="at is"):
        quantile(epsilon=1, cells=3, unit=ADD, at=at)


def test_a_vector_of_the_wrong_length_is_refused():
    mechanism: Mechanism[int] = quantile(epsilon=1, cells=3, unit=ADD)
    with pytest.raises(BadParameter, match="there are 3 imbalances; this mechanism takes 4"):
        mechanism.release(sealed([1, 2, 3]))
