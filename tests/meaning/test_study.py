"""Smoking and cancer: beliefs by Bayes' rule, within e^2ε with Alice's row and without, and the truth is learnt."""

from itertools import product
from math import comb, exp, log

import pytest

from discreet import verify
from discreet.errors import BadParameter
from discreet.meaning import (
    Study,
    additive_secrecy,
    largest_difference,
    learned,
    name_and_shame_exposure,
    run_study,
    typical_beliefs,
    typical_difference,
)
from discreet.mechanism import laplace, name_and_shame

SMALL = Study(epsilon=1, smokers=6)


def by_hand(study, release, with_alice):
    """Bayes' rule over all worlds, all others and Alice, one by one."""
    noise = lambda away: exp(-abs(away) * study.epsilon)
    weights = {}
    for harmful, ill, others in product((False, True), (False, True), range(study.smokers)):
        rate = study.harmful if harmful else study.harmless
        prior = (study.suspicion if harmful else 1 - study.suspicion) * (rate if ill else 1 - rate)
        among = comb(study.smokers - 1, others) * rate**others * (1 - rate) ** (study.smokers - 1 - others)
        count = others + (ill and with_alice)
        key = harmful, ill
        weights[key] = weights.get(key, 0.0) + prior * among * noise(release - count)
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


@pytest.mark.parametrize("release", [-3, 0, 2, 6, 20])
@pytest.mark.parametrize("with_alice", [True, False])
def test_beliefs_are_those_of_bayes_rule(release, with_alice):
    right, found = by_hand(SMALL, release, with_alice), learned(SMALL, release, with_alice=with_alice)
    assert found.harmful == pytest.approx(right[True, True] + right[True, False])
    assert found.ill == pytest.approx(right[True, True] + right[False, True])


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_alices_row_moves_no_belief_beyond_twice_epsilon(epsilon):
    assert 0 < largest_difference(Study(epsilon=epsilon, smokers=50)) <= 2 * epsilon


def test_the_largest_difference_is_that_of_the_worst_result():
    worst = 0.0
    for release in range(-5, 15):
        one, other = (by_hand(SMALL, release, used) for used in (True, False))
        worst = max(worst, *(abs(log(one[key] / other[key])) for key in one))
    assert largest_difference(SMALL) == pytest.approx(worst)


def test_a_study_of_many_tells_which_world_it_is_with_alice_or_without():
    study = Study(epsilon=1, smokers=300)
    for harmful, used in product((False, True), repeat=2):
        belief = typical_beliefs(study, harmful=harmful, with_alice=used)
        assert belief.harmful == pytest.approx(float(harmful), abs=0.001)
        assert belief.ill == pytest.approx(study.harmful if harmful else study.harmless, abs=0.005)


def test_alices_row_hardly_moves_what_is_believed_of_her_in_a_typical_study():
    study = Study(epsilon=1, smokers=300)
    assert 0 < typical_difference(study, harmful=True) < 0.03
    assert typical_difference(Study(epsilon=0.01, smokers=300), harmful=True) < 0.002


def test_a_study_that_is_drawn_is_near_what_is_true():
    study = Study(epsilon=1, smokers=1000)
    assert 150 < run_study(study, harmful=True, alice_is_ill=True) < 450
    assert -50 < run_study(study, harmful=False, alice_is_ill=True, with_alice=False) < 250


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"smokers": 1}, {"harmful": 1.5}, {"suspicion": 0}])
def test_a_study_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(BadParameter, match=next(iter(wrong))):
        Study(**({"epsilon": 1} | wrong))


def test_name_and_shame_keeps_additive_secrecy_and_exposes_somebody():
    pairs = list(verify.neighboring_rows(2, 3))
    assert additive_secrecy(name_and_shame(delta=0.01), pairs).upper == pytest.approx(0.01)
    assert additive_secrecy(laplace(epsilon=1, sensitivity=1), [([3], [4])]).upper == pytest.approx(0.4621, abs=1e-4)
    assert name_and_shame_exposure(delta=0.5, rows=2).somebody == pytest.approx(0.75)
