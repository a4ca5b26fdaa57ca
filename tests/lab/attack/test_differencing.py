"""Two counts that differ by one person tell the person's secret, unless they are private."""

from math import exp

import pytest
from scipy.stats import binom

from discreet.lab.attack import attack_by_differencing, best_guess, difference
from discreet.lab.attack.differencing import point
from discreet.lab.attack.experiments import new_curator
from discreet.lab.attack.target import answering
from support.statistics import assert_rate_at_least


def test_exact_counts_tell_everybody(earners):
    assert all(difference(earners.exact, earners, i).bit == earners.bits[i] for i in range(len(earners)))


def test_the_curator_tells_as_much_as_its_budget_permits_and_no_more(coins):
    """Without sampling: from the noise that it says it has added. Its wish is for half a percent less than all."""
    with new_curator(coins, 1) as desk:
        answering(desk, epsilon=1)(point(coins, 0))
        (spend,) = desk.history()
    guessed = 1 / (1 + exp(-1 / spend.event.scale))
    assert best_guess(epsilon=0.98) <= guessed <= best_guess(epsilon=1)


def test_a_few_people_are_attacked_in_vain(coins):
    outcome = attack_by_differencing(coins, epsilon=1, trials=3)
    assert outcome.holds
    assert outcome.best("exact") == 1


@pytest.mark.long
def test_many_people_are_guessed_as_often_as_the_budget_permits_and_no_oftener(coins):
    """False alarm 1e-9 on either side: the difference itself, at the whole price, reaches what is permitted."""
    trials = 80
    outcome = attack_by_differencing(coins, epsilon=1, trials=trials)
    limit, reached = best_guess(epsilon=1), {each.source: each.share for each in outcome.learnt}
    hits = round(trials * reached["curator, their difference"])
    assert binom.sf(hits - 1, trials, limit) > 1e-9
    assert_rate_at_least(hits, trials, best_guess(epsilon=0.98))


def test_a_budget_of_a_thousand_is_no_budget(coins):
    right = []
    for person in range(6):
        with new_curator(coins, 1000) as desk:
            bit = answering(desk, epsilon=900)(point(coins, person)) > 0.5
            right.append(bit == coins.bits[person])
    assert all(right)


def test_the_two_counts_differ_by_nobody_else(earners):
    for person in (0, 7):
        assert earners.exact(point(earners, person)) == earners.bits[person]


def test_without_answers_the_guess_is_no(earners):
    assert not difference(lambda query: float("nan"), earners, 0).bit


@pytest.mark.parametrize("epsilon", [0.1, 3])
def test_the_limit_goes_with_the_budget(coins, epsilon):
    assert attack_by_differencing(coins, epsilon=epsilon, trials=1).limit == best_guess(epsilon=epsilon)
