"""What a guarantee means: each reading against mechanisms that attain it, and none that breaks it."""

import re
from itertools import product
from math import exp, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter
from discreet.meaning import best_power, explain

epsilons = st.floats(0.01, 8)
deltas = st.sampled_from([0.0, 1e-9, 1e-3, 0.1])


def leaky_response(epsilon, delta):
    """The worst (epsilon, delta)-DP mechanism: with probability delta it tells all, else randomized response."""
    p = (1 - delta) * exp(epsilon) / (1 + exp(epsilon))
    with_me = {"told in": delta, "in": p, "out": 1 - delta - p, "told out": 0.0}
    without = {"told in": 0.0, "in": 1 - delta - p, "out": p, "told out": delta}
    return with_me, without


def best_tests(with_me, without):
    """(false alarm, detection) of every test without randomization."""
    outcomes = list(with_me)
    for accused in product([0, 1], repeat=len(outcomes)):
        chosen = [outcome for outcome, yes in zip(outcomes, accused, strict=True) if yes]
        yield sum(without[o] for o in chosen), sum(with_me[o] for o in chosen)


@settings(deadline=None)
@given(epsilons, deltas)
def test_the_advantage_is_that_of_the_best_test_on_the_worst_mechanism(epsilon, delta):
    tests = list(best_tests(*leaky_response(epsilon, delta)))
    assert explain(epsilon=epsilon, delta=delta).advantage == pytest.approx(max(hit - alarm for alarm, hit in tests))


@settings(deadline=None)
@given(epsilons, deltas)
def test_the_power_at_any_false_alarm_is_attained_by_the_worst_mechanism_and_never_exceeded(epsilon, delta):
    for alarm, hit in best_tests(*leaky_response(epsilon, delta)):
        if alarm < 1:
            assert hit <= best_power(epsilon=epsilon, delta=delta, false_alarm=alarm) + 1e-12
    corner = (1 - delta) / (1 + exp(epsilon))
    attained = best_power(epsilon=epsilon, delta=delta, false_alarm=corner)
    assert attained == pytest.approx(delta + (1 - delta) * exp(epsilon) / (1 + exp(epsilon)))


@settings(deadline=None)
@given(epsilons, deltas, st.floats(0.01, 0.99))
def test_beliefs_leave_the_posterior_range_only_with_the_exceptional_probability(epsilon, delta, prior):
    meaning = explain(epsilon=epsilon, delta=delta)
    low, high = meaning.posterior(prior)
    with_me, without = leaky_response(epsilon, delta)
    outside = 0.0
    for outcome in with_me:
        seen = prior * with_me[outcome] + (1 - prior) * without[outcome]
        if seen == 0:
            continue
        belief = prior * with_me[outcome] / seen
        if not low - 1e-12 <= belief <= high + 1e-12:
            outside += seen
    assert outside <= meaning.exception
    if delta == 0:
        assert meaning.exception == 0


@settings(deadline=None)
@given(epsilons)
def test_without_delta_the_posterior_range_is_attained(epsilon):
    with_me, without = leaky_response(epsilon, 0)
    low, high = explain(epsilon=epsilon).posterior(0.5)
    assert with_me["in"] / (with_me["in"] + without["in"]) == pytest.approx(high)
    assert with_me["out"] / (with_me["out"] + without["out"]) == pytest.approx(low)


def test_promising_the_odds_of_pure_privacy_when_delta_is_positive_would_be_wrong():
    """A Gaussian leaves e^±epsilon far more often than delta; that is why the factor is larger then."""
    from statistics import NormalDist

    from discreet.accounting import mu_of

    mu = mu_of(epsilon=1, delta=1e-6)
    exceeds = lambda factor: 1 - NormalDist().cdf((factor - mu**2 / 2) / mu)
    meaning = explain(epsilon=1, delta=1e-6)
    assert exceeds(1) > 10 * 1e-6
    assert exceeds(1.1) < meaning.exception
    assert meaning.odds == pytest.approx(exp(1.1))


@settings(deadline=None)
@given(epsilons)
def test_conclusions_with_and_without_me_stay_within_the_square(epsilon):
    """002 Theorem 3.1 on a correlated prior: two tables, both of which change when I am removed."""
    p = exp(epsilon) / (1 + exp(epsilon))
    answers = {"00": p, "11": 1 - p}
    without = {"00": 0.5, "11": 0.5}
    for prior in (0.01, 0.5, 0.9):
        mine = prior * answers["00"] / (prior * answers["00"] + (1 - prior) * answers["11"])
        theirs = prior * without["00"] / (prior * without["00"] + (1 - prior) * without["11"])
        assert mine / theirs <= explain(epsilon=epsilon).conclusions * (1 + 1e-12)


@settings(deadline=None)
@given(epsilons, deltas, st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_utility_falls_no_further_than_promised(epsilon, delta, utilities):
    with_me, without = leaky_response(epsilon, delta)
    utility = dict(zip(with_me, utilities, strict=True))
    expected = lambda law: sum(law[outcome] * utility[outcome] for outcome in law)
    floor = explain(epsilon=epsilon, delta=delta).utility * (expected(without) - delta)
    assert expected(with_me) >= floor - 1e-12


def test_groups_of_two_five_and_ten_are_reported():
    groups = explain(epsilon=0.5, delta=1e-9).groups
    assert [(group.people, group.epsilon) for group in groups] == [(2, 1), (5, 2.5), (10, 5)]
    assert groups[0].delta == pytest.approx(1e-9 * (1 + exp(0.5)))


@pytest.mark.parametrize(("epsilon", "rows", "warned"), [(0.001, 1000, True), (0.1, 1000, False), (1, 2, True)])
def test_a_budget_below_about_one_over_the_rows_is_warned_of(epsilon, rows, warned):
    meaning = explain(epsilon=epsilon, rows=rows)
    assert any("too small" in warning for warning in meaning.warnings) == warned
    assert ("Warning" in meaning.text) == warned


def test_a_delta_that_allows_name_and_shame_is_warned_of():
    assert any("delta 0.001 is too large" in warning for warning in explain(epsilon=1, delta=1e-3, rows=5000).warnings)
    assert not explain(epsilon=1, delta=1e-9, rows=5000).warnings


def test_the_words_carry_the_numbers():
    text = explain(epsilon=1).text
    for number in ("2.72", "7.39", "3.92 %", "23.2 %", "36.7 %", "13.6 %", "46.3 %", "epsilon 10"):
        assert number in text
    assert "probability at most" not in text


def test_with_delta_the_words_say_what_it_does():
    text = explain(epsilon=1, delta=1e-6).text
    for piece in ("3.01", "9.03", "A release breaks this with probability at most 3e-05", "less 1e-06 of the largest"):
        assert piece in text


@settings(deadline=None)
@given(epsilons, deltas)
def test_numbers_in_words_are_rounded_so_that_they_stay_true(epsilon, delta):
    meaning = explain(epsilon=epsilon, delta=delta)
    words = dict(meaning.sentences)
    read = lambda pattern, title: float(re.search(pattern, words[title]).group(1).replace(",", ""))
    number = r"([\d.,e+-]*\d)"
    assert read(rf"factor of {number}", "Odds") >= meaning.odds
    assert read(rf"and {number} %", "Odds") >= 100 * meaning.posterior(0.1)[1] * (1 - 1e-15)
    assert read(rf"factor of {number}", "Conclusions") >= meaning.conclusions
    assert read(rf"at least {number} %", "Consequences") <= 100 * meaning.utility * (1 + 1e-15)
    assert read(rf"probability {number} %", "The best test") >= 100 * meaning.power * (1 - 1e-15)
    if delta:
        assert read(rf"at most {number}\.$", "Odds") >= meaning.exception


@pytest.mark.parametrize("epsilon", [1e-15, 1e-3, 50, 1000, 1e15])
@pytest.mark.parametrize("delta", [0, 1e-300, 0.5])
def test_extreme_budgets_have_a_meaning_too(epsilon, delta):
    meaning = explain(epsilon=epsilon, delta=delta, rows=10)
    assert 0 <= meaning.power <= 1
    assert 0 <= meaning.advantage <= 1
    assert 1 <= meaning.odds <= inf
    low, high = meaning.posterior(0.1)
    assert 0 <= low <= 0.1 <= high <= 1
    assert "nan" not in meaning.text


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), 1e-320, "1", True])
def test_an_epsilon_that_means_nothing_is_refused(bad):
    with pytest.raises(BadParameter, match="epsilon is"):
        explain(epsilon=bad)


@pytest.mark.parametrize("bad", [-1e-9, 1, 2, float("nan"), "0", True])
def test_a_delta_that_means_nothing_is_refused(bad):
    with pytest.raises(BadParameter, match="delta is"):
        explain(epsilon=1, delta=bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, float("nan")])
def test_a_prior_is_a_probability(bad):
    with pytest.raises(BadParameter, match="prior is"):
        explain(epsilon=1).posterior(bad)
