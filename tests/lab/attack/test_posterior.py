"""On tiny tables everything that can be concluded is computed, and the bounds hold for every prior."""

from math import exp, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter
from discreet.lab.attack import attack_by_posterior, belief, best_guess, posterior
from discreet.lab.attack.posterior import fair_prior, loss_allowed, released, tables, without_noise
from discreet.mechanism import laplace, name_and_shame, randomized_response

ROWS = 3
WEIGHTS = st.lists(st.floats(0.001, 1), min_size=2**ROWS, max_size=2**ROWS)


def prior_of(weights):
    return {table: weight / sum(weights) for table, weight in zip(tables(ROWS), weights, strict=True)}


@settings(max_examples=30)
@given(WEIGHTS, st.sampled_from([0.1, 1.0, 3.0]))
def test_no_prior_moves_odds_by_more_than_e_or_conclusions_by_more_than_e_squared(weights, epsilon):
    noisy = released(laplace(epsilon=epsilon, sensitivity=1), lambda table: [sum(table)], ROWS)
    found = belief(prior_of(weights), noisy, person=1, instead=0)
    assert loss_allowed(found.odds, epsilon)
    assert loss_allowed(found.conclusions, epsilon, times=2)


def test_the_bound_on_odds_is_reached():
    noisy = released(laplace(epsilon=1, sensitivity=1), lambda table: [sum(table)], ROWS)
    found = belief(fair_prior(ROWS), noisy)
    assert found.odds == pytest.approx(exp(1))
    assert found.sure == pytest.approx(best_guess(epsilon=1))


def test_half_the_noise_breaks_the_bound():
    wrong = released(laplace(epsilon=2, sensitivity=1), lambda table: [sum(table)], ROWS)
    found = belief(fair_prior(ROWS), wrong)
    assert not loss_allowed(found.odds, 1)
    assert not loss_allowed(found.conclusions, 1, times=2)


@pytest.mark.parametrize("query", [sum, lambda table: 2 * round(sum(table) / 2)])
def test_exact_and_rounded_counts_reveal_all(query):
    found = belief(fair_prior(ROWS), without_noise(query))
    assert (found.odds, found.conclusions, found.sure) == (inf, inf, 1)


def test_name_and_shame_has_a_small_delta_and_reveals_all():
    shamed = released(name_and_shame(delta=0.01), lambda table: table, ROWS)
    assert belief(fair_prior(ROWS), shamed).sure == 1


def test_randomized_response_on_one_row_is_bayes_rule():
    reports = released(randomized_response(epsilon=1), lambda table: table, 1)
    after = posterior({(0,): 0.9, (1,): 0.1}, reports, (1,))
    assert after[(1,)] == pytest.approx(0.1 * exp(1) / (0.9 + 0.1 * exp(1)))


def test_an_outcome_that_cannot_happen_is_refused():
    with pytest.raises(BadParameter, match="cannot happen"):
        posterior({(0,): 1.0}, without_noise(sum), 1)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_the_lab_stays_within_its_limit(epsilon):
    outcome = attack_by_posterior(epsilon=epsilon)
    assert outcome.holds
    assert outcome.best("ours") == pytest.approx(outcome.limit)
    assert outcome.best("exact") == 1
