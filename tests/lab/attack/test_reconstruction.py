"""Reconstruction works on exact and on rounded answers, on a budget that is far too large, and not on us."""

import numpy as np
import pytest

import discreet as dp
from discreet.errors import BadParameter
from discreet.lab.attack import attack_by_reconstruction, best_guess, choose_people, luckiest_share, random_questions
from discreet.lab.attack.experiments import new_curator
from discreet.lab.attack.people import all_people, rows_of, weights
from discreet.lab.attack.random_questions import cell_mask
from discreet.lab.attack.reconstruction import guess_from_cells, reconstruct, share_right
from discreet.lab.attack.target import answering, rounded
from discreet.query import Marginal, count


def questions_about(people, number):
    secret = {people.secret: cell_mask(people.domain, people.secret, people.cell)}
    return random_questions(people.domain, people.public, number, also=secret)


def solved(people, asked, answer, method):
    answers = np.array([answer(each) for each in asked])
    return share_right(people, reconstruct(people.matrix(asked), answers, method=method))


@pytest.mark.parametrize("method", ["linear", "squares"])
def test_exact_counts_tell_everybodys_secret(earners, method):
    assert solved(earners, questions_about(earners, 300), earners.exact, method) == 1


@pytest.mark.parametrize("method", ["linear", "squares"])
def test_rounding_protects_nobody(earners, method):
    """To 5; to 10 needs more people, whose counts vary more: below, at full size."""
    assert solved(earners, questions_about(earners, 500), rounded(earners.exact, to=5), method) >= 0.95


def test_no_attack_learns_more_of_a_coin_from_the_curator_than_its_budget_permits(coins):
    outcome = attack_by_reconstruction(coins, epsilon=1, questions=200)
    assert outcome.best("exact") == 1
    assert outcome.limit == pytest.approx(best_guess(epsilon=1))
    # False alarm 1e-9 for each of the two attackers.
    assert outcome.best("ours") <= luckiest_share(len(coins), epsilon=1, confidence=1 - 1e-9)


def test_a_budget_of_a_thousand_is_no_budget(coins):
    with new_curator(coins, 1000) as desk:
        columns = (*coins.public, coins.secret)
        counts = desk.ask(Marginal(columns), epsilon=1000).value
    shape = tuple(coins.domain[name].size for name in columns)
    guess = guess_from_cells(coins, np.asarray(counts, dtype=np.float64).reshape(shape))
    assert share_right(coins, guess) >= 0.95
    assert share_right(coins, guess) > luckiest_share(len(coins), epsilon=1, confidence=1 - 1e-9)


def test_many_counts_on_a_budget_of_a_thousand_are_reconstructed(adult):
    few = choose_people(adult, 24, public=("age", "education"), secret="coin")
    asked = questions_about(few, 60)
    with new_curator(few, 1000) as desk:
        assert solved(few, asked, answering(desk, epsilon=10), "squares") >= 0.95


@pytest.mark.long
def test_a_release_is_attacked_like_any_other(adult):
    few = choose_people(adult, 24, public=("age", "sex"), secret="income", value=">50K")
    with new_curator(few, 1000) as desk:
        made = desk.release([["age", "sex", "income"]])
    asked = questions_about(few, 80)
    assert solved(few, asked, answering(made), "squares") >= 0.95


def test_two_people_are_told_apart_by_half_of_the_questions(earners):
    matrix = earners.matrix(questions_about(earners, 300))
    agree = (matrix[:, 0] == matrix[:, 1]).mean()
    assert matrix.mean() == pytest.approx(0.5, abs=0.1)
    assert agree == pytest.approx(0.5, abs=0.4)


def test_the_exact_answer_is_what_the_rows_say(adult, earners):
    query = count(earners.domain, (dp.col("age") >= 40) & (dp.col("income") == ">50K"))
    forty = earners.domain["age"].locate(40)
    assert earners.exact(query) == int(np.sum((earners.codes["age"] >= forty) & earners.bits))
    rows = rows_of(adult, ("sex",))
    assert weights(count(adult.domain, dp.col("sex") == "Female"), rows).sum() == 16_192


def test_no_two_people_have_the_same_public_columns(earners):
    profiles = set(zip(*(earners.codes[name].tolist() for name in earners.public), strict=True))
    assert len(profiles) == len(earners) == 80
    assert earners.bits.mean() == 0.5


def test_what_is_not_answered_is_left_out():
    matrix, truth = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([1, 0])
    answers = matrix @ truth
    answers[2] = np.nan
    assert reconstruct(matrix, answers).tolist() == [1, 0]
    assert reconstruct(matrix, np.full(3, np.nan)).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"public": (), "secret": "income"}, "some columns are public"),
        ({"public": ("income",), "secret": "income"}, "none of them"),
        ({"public": ("sex",), "secret": "income"}, "can be found"),
        ({"public": ("age",), "secret": "income", "value": "none"}, "has no value"),
    ],
)
def test_people_that_cannot_be_chosen_are_refused(adult, choice, said):
    with pytest.raises(BadParameter, match=said):
        choose_people(adult, 80, **choice)


def test_a_whole_table_needs_people_who_differ():
    rows = {"age": [31, 31], "smokes": [True, False]}
    table = dp.open(rows, domain=dp.Domain({"age": dp.Integers(0, 99), "smokes": dp.Boolean()}))
    with pytest.raises(BadParameter, match="public columns differ"):
        all_people(table, public=["age"], secret="smokes")


def test_a_person_with_many_rows_is_refused():
    rows = {"who": [1, 1], "age": [31, 32], "smokes": [True, False]}
    domain = dp.Domain({"age": dp.Integers(0, 99), "smokes": dp.Boolean()})
    table = dp.open(rows, domain=domain, unit=dp.Unit(key="who", contributions=2))
    with pytest.raises(BadParameter, match="one row"):
        choose_people(table, 2, public=["age"], secret="smokes")


def test_an_unknown_method_is_refused():
    with pytest.raises(BadParameter, match="linear"):
        reconstruct(np.eye(2), np.zeros(2), method="magic")


@pytest.mark.long
def test_at_full_size_exact_and_rounded_counts_tell_nearly_everybody(adult):
    people = choose_people(adult, 200, public=("age", "education", "sex"), secret="income", value=">50K")
    outcome = attack_by_reconstruction(people, epsilon=1, questions=1500)
    assert min(each.share for each in outcome.learnt if each.kind != "ours") >= 0.95
    assert outcome.best("ours") <= luckiest_share(200, epsilon=1, confidence=1 - 1e-9)
