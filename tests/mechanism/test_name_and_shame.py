"""The counterexample: additively secret, not private, and caught."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.event import Pure
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import name_and_shame, randomized_response
from support.broken_mechanisms import pretend
from support.mechanism_values import floats, sealed
from support.statistics import assert_follows, rejects

DELTA = Fraction(1, 20)


@pytest.mark.parametrize("epsilon", [0, 1, 10])
def test_it_is_exactly_delta_additively_secret_at_every_epsilon(epsilon):
    verdict = verify.check_pairs(name_and_shame(delta=DELTA), verify.neighboring_rows(2, 3), epsilon=epsilon)
    assert verdict.tight
    assert verdict.claimed == float(DELTA)


def test_no_epsilon_is_enough_without_delta():
    shame = name_and_shame(delta=DELTA)
    assert verify.epsilon(shame.law([0]), shame.law([1])) == (inf, inf)
    claim = pretend(Pure(Fraction(100)), shame.law)
    assert verify.check_pairs(claim, verify.neighboring_rows(2, 2)).refuted


def test_publishing_more_often_than_claimed_is_refuted():
    shame = name_and_shame(delta=DELTA)
    more = pretend(shame.event, name_and_shame(delta=DELTA * Fraction(11, 10)).law)
    assert verify.check_pairs(more, verify.neighboring_rows(2, 2), epsilon=1).refuted


def change_of_belief(law_of):
    """The largest factor between the beliefs about Alice's bit with and without her row (002 Thm. 3.1).

    The prior is uniform; without her row the output says nothing about her, so that belief is the prior.
    """
    here = [floats(law_of([bit])) for bit in (0, 1)]
    worst = 1.0
    for outcome in {*here[0], *here[1]}:
        chances = [law.get(outcome, 0.0) for law in here]
        for chance in chances:
            posterior = chance / sum(chances)
            worst = max(worst, posterior / 0.5, 0.5 / posterior if posterior else inf)
    return worst


def test_the_posterior_bound_fails_on_it_and_holds_for_randomized_response():
    assert change_of_belief(randomized_response(epsilon=1).law) <= np.exp(2)
    assert change_of_belief(name_and_shame(delta=DELTA).law) == inf


def test_most_tables_have_someone_named():
    rows = 200
    shame = name_and_shame(delta=DELTA)
    named = [sum(value is not None for value in shame.release(sealed(np.ones(rows, dtype=int)))) for _ in range(50)]
    assert min(named) > 0  # each run fails with probability (19/20)^200 < 4e-5


def test_draws_follow_the_law_and_another_delta_is_noticed():
    shame = name_and_shame(delta=DELTA)
    said = shame.release(sealed(np.full(200_000, 7)))
    law = {outcome[0]: chance for outcome, chance in floats(shame.law([7])).items()}
    assert_follows(said, law)
    assert rejects(said, {7: law[7] * 1.2, None: 1 - law[7] * 1.2})


def test_two_rows_a_person_do_not_open_it():
    with pytest.raises(SealBroken):
        name_and_shame(delta=DELTA).release(sealed([1, 0], Sensitivity(Fraction(2), Fraction(2), Fraction(1))))


@pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, float("nan"), "0.1", True])
def test_delta_is_a_probability(delta):
    with pytest.raises(BadParameter, match="delta is"):
        name_and_shame(delta=delta)
