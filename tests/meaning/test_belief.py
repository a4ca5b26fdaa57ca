"""Beliefs with and without a row: the worst prior is the worst, and nothing private goes beyond e^2ε."""

from fractions import Fraction
from itertools import product
from math import inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter
from discreet.meaning import attained_shift, possible_worlds, posteriors, worst_shift
from discreet.mechanism import gaussian, laplace, name_and_shame, randomized_response

TABLES = list(product((0, 1), repeat=3))


def counted(epsilon, person=0):
    return possible_worlds(
        laplace(epsilon=epsilon, sensitivity=1), TABLES, person=person, default=0, query=lambda rows: [sum(rows)]
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("person", [0, 2])
def test_the_worst_prior_moves_a_belief_by_twice_epsilon_and_no_further(epsilon, person):
    low, high = worst_shift(counted(epsilon, person)).reach
    assert low <= 2 * epsilon <= high
    assert high - low < 1e-9


def test_of_a_local_report_no_prior_moves_a_belief_by_more_than_epsilon():
    reach = worst_shift(possible_worlds(randomized_response(epsilon=1), TABLES, person=1, default=0)).reach
    assert reach.lower <= 1 <= reach.upper
    assert reach.upper < 1 + 1e-9


def test_half_of_the_noise_is_noticed():
    assert worst_shift(counted(2)).reach.lower > 2 * 1.9


@settings(max_examples=40)
@given(st.lists(st.floats(1e-6, 1), min_size=8, max_size=8), st.integers(0, 3))
def test_no_prior_is_worse_than_the_worst(weights, told):
    worlds = counted(Fraction(1, 2))
    total = sum(weights)
    prior = {rows: weight / total for rows, weight in zip(TABLES, weights, strict=True)}
    assert attained_shift(worlds, prior, (told,)) <= worst_shift(worlds).reach.upper + 1e-9


def test_the_prior_that_is_shown_comes_as_near_as_one_likes():
    worlds = counted(1)
    shift = worst_shift(worlds)
    near = [attained_shift(worlds, shift.prior(share), shift.outcome) for share in (0.1, 1e-3, 1e-9)]
    assert near == sorted(near)
    assert near[-1] == pytest.approx(2, abs=1e-6)


def test_posteriors_are_those_of_bayes():
    worlds = possible_worlds(randomized_response(epsilon=log(3)), [(0,), (1,)], person=0, default=0)
    used, unused = posteriors(worlds, {(0,): 0.8, (1,): 0.2}, (1,))
    assert used[(1,)] == pytest.approx(0.75 * 0.2 / (0.75 * 0.2 + 0.25 * 0.8))
    assert unused[(1,)] == pytest.approx(0.2)


def test_a_published_row_is_beyond_every_bound():
    worlds = possible_worlds(name_and_shame(delta=0.01), TABLES, person=0, default=0)
    assert worst_shift(worlds).reach == (inf, inf)


def test_where_the_default_is_no_row_that_anybody_has_a_published_row_is_beyond_every_bound_too():
    worlds = possible_worlds(name_and_shame(delta=0.01), TABLES, person=0, default=2)
    assert worst_shift(worlds).reach == (inf, inf)


def test_a_law_that_leaves_outcomes_out_has_no_bound_from_above():
    noisy = gaussian(sigma=2, sensitivity=1)
    worlds = possible_worlds(noisy, [(0,), (1,)], person=0, default=0, query=lambda rows: [sum(rows)])
    reach = worst_shift(worlds).reach
    assert 0 < reach.lower < reach.upper == inf


def test_a_release_that_cannot_be_is_refused():
    worlds = possible_worlds(name_and_shame(delta=0.01), [(0,), (1,)], person=0, default=0)
    with pytest.raises(BadParameter, match="impossible"):
        posteriors(worlds, {(0,): 1.0}, (7,))


def test_a_person_is_one_of_the_table():
    with pytest.raises(BadParameter, match="person is 3"):
        counted(1, person=3)
