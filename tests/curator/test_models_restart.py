"""A session with a model follows from the ledger alone: after a restart, in another process, beside another curator."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

import pytest

import discreet.plan.build_model
from discreet.accounting.event import Coin, Gaussian, Nothing
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded, TooLarge
from discreet.ledger import Budget
from discreet.plan.build_model import Built
from support.model_sessions import (
    ALONE,
    ERROR,
    NAMES,
    PLENTY,
    SURE,
    WISH,
    Desk,
    conjunctions,
    copy_of,
    eager,
    open_session,
    paired_rows,
    split_pair,
    table_of,
    truth_of,
)
from support.statistics import assert_rate_at_least

QUESTIONS = conjunctions(80, seed=20)
GAUSSIAN = Budget(epsilon=3, delta=1e-9)
# A batch that a good model certifies but for one time in millions.
LAX = {"error": 2 * ERROR, "confidence": SURE}


@pytest.fixture
def address(opened, tmp_path):
    return copy_of(opened, tmp_path)


def measure_singles(desk):
    for name in NAMES:
        desk.ask(name, error=ERROR / 4, confidence=SURE)


def said(desk):
    """What the model says of many questions, to the last bit; and the answers, with where they come from."""
    guesses = [desk._models.guess(question).hex() for question in QUESTIONS]
    answers = [desk.ask(question, **WISH) for question in QUESTIONS]
    return guesses, [(answer.origin, answer.value) for answer in answers if answer.origin == "model"]


# --- After a restart -------------------------------------------------------------------------------------------------


def test_a_new_curator_has_the_same_session_and_model_to_the_bit(table, address):
    with Desk(table, address) as desk:
        session, before = desk.session, said(desk)
        assert len(before[1]) > 20
    with Desk(table, address, expected_questions=None) as again:
        assert again.session == session
        assert said(again) == before


def test_a_model_that_learnt_from_hits_is_the_same_after_a_restart(table, tmp_path):
    address = tmp_path / "x.sqlite"
    with Desk(table, address, budget=PLENTY) as desk:
        open_session(desk, ALONE, hits=2)
        for question in split_pair():
            desk.ask(question, **WISH)
        assert len(desk.hits()) == 2
        session, guesses = desk.session, [desk._models.guess(question).hex() for question in QUESTIONS]
        assert session.hits_left == 0
        assert len(session.built.scopes) > 1
    with Desk(table, address) as again:
        assert again.session == session
        assert [again._models.guess(question).hex() for question in QUESTIONS] == guesses


def test_a_mixture_is_the_same_after_a_restart(table, address):
    with Desk(table, address) as desk:
        open_session(desk, Built("mixture", NAMES, ()))
        guesses = [desk._models.guess(question).hex() for question in QUESTIONS]
    with Desk(table, address) as again:
        assert again.session.built.kind == "mixture"
        assert [again._models.guess(question).hex() for question in QUESTIONS] == guesses


SCRIPT = """
import json, sys
from support.model_sessions import Desk, paired_rows, table_of
from curator.test_models_restart import said
with Desk(table_of(paired_rows()), sys.argv[1]) as desk:
    print(json.dumps([said(desk), repr(desk.session)]))
"""


def test_another_process_has_the_same_model_to_the_bit(table, address):
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    # Asked while we have the ledger open too.
    with Desk(table, address) as desk:
        ours = json.loads(json.dumps([said(desk), repr(desk.session)]))
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(address)], env=environment, capture_output=True, check=True, text=True
        )
    assert json.loads(done.stdout) == ours


def test_an_attempt_that_was_given_up_is_remembered(table, tmp_path, monkeypatch):
    address = tmp_path / "x.sqlite"
    for name in ("GOOD", "GIVEN_UP", "MIXABLE"):
        monkeypatch.setattr(discreet.plan.build_model, name, -100.0)
    with eager(), Desk(table, address, budget=PLENTY) as desk:
        for question in conjunctions(16):
            assert desk.ask(question, **WISH).origin in ("measured", "known")
        assert desk.session.built is None
        assert not desk.session.open
        probes = [spend for spend in desk.history() if spend.why == "how wrong a model is"]
        assert probes
        assert not [spend for spend in desk.history() if isinstance(spend.event, Coin)]
    monkeypatch.undo()
    with eager(), Desk(table, address) as again:
        assert again.session is not None
        for question in conjunctions(16, seed=21):
            assert again.ask(question, **WISH).origin in ("measured", "known")
        assert [spend for spend in again.history() if spend.why == "how wrong a model is"] == probes


def test_a_build_that_the_budget_ends_is_given_up_and_the_question_is_answered(table, tmp_path, monkeypatch):
    right = RequestExecutor.answer

    def refuses(self, request, *, analyst):
        if request.why == "how wrong a model is":
            raise BudgetExceeded("not so much.")
        return right(self, request, analyst=analyst)

    monkeypatch.setattr(RequestExecutor, "answer", refuses)
    with eager(), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        for question in conjunctions(20):
            assert desk.ask(question, **WISH).origin in ("measured", "known")
        assert desk.session.built is None


def test_a_model_that_cannot_open_is_given_up_once(table, tmp_path, monkeypatch):
    """Building may cost more than was forecast, so that only orders are left that the coin closes."""
    right = RequestExecutor.transact

    def refuses(self, payment, measure, **named):
        if isinstance(payment.event, Coin):
            raise BudgetExceeded("not so much.")
        return right(self, payment, measure, **named)

    monkeypatch.setattr(RequestExecutor, "transact", refuses)
    with eager(), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        for question in conjunctions(20):
            desk.ask(question, **WISH)
        assert desk.session is not None


# --- Beside another curator ------------------------------------------------------------------------------------------


def test_two_live_curators_share_the_session_and_each_has_its_own_hold(table, tmp_path):
    address = tmp_path / "x.sqlite"
    with Desk(table, address, budget=PLENTY) as one, Desk(table, address) as other:
        measure_singles(one)
        open_session(one, ALONE)
        assert other.session == one.session
        # One column of each of four pairs: independent indeed.
        apart = [each for each in conjunctions(300, seed=22) if len({int(name[1]) // 2 for name in each.scope}) == 4]
        for desk in (one, other):
            assert desk.ask(apart[0], **WISH).origin == "model"
        held = [{stake.number for stake in desk._models.stakes._stakes.values()} for desk in (one, other)]
        assert [len(each) for each in held] == [1, 1]
        assert not held[0] & held[1]
        assert set(one.ledger.holds) == held[0] | held[1]
        one.ask(split_pair()[0], **WISH)
        assert other.session == one.session
        assert (len(other.hits()), other.session.hits_left) == (1, 2)
        assert other.ask(split_pair()[0], **WISH).origin == "known"
        guesses = [[desk._models.guess(each) for each in apart] for desk in (one, other)]
        assert guesses[0] == guesses[1]
        # What was set aside for the hit is given back; the other still has its own.
        assert set(one.ledger.holds) == held[1]
    with Desk(table, address) as again:
        assert not again.ledger.holds


# --- A batch at once -------------------------------------------------------------------------------------------------


def certified(desk):
    return [spend for spend in desk.history() if spend.why.startswith("the largest error of a model")]


def test_a_batch_on_a_good_model_is_certified_with_one_gaussian(table, address):
    questions = conjunctions(200, seed=23)
    truths = truth_of(table, questions)
    with eager(WORTH=1e-3), Desk(table, address) as desk:
        entries = len(desk.history())
        answers = desk.ask_many(questions, **LAX)
        (paid,) = desk.history()[entries:]
        assert isinstance(paid.event, Gaussian)
        assert certified(desk) == [paid]
        (error,) = {answer.error for answer in answers}
        assert error <= 2 * ERROR
        assert {(answer.origin, answer.cost) for answer in answers} == {("model", paid.event)}
        assert max(abs(answer.value - true) for answer, true in zip(answers, truths, strict=True)) <= error + ERROR
        # The hits are for questions one by one.
        assert desk.session.hits_left == 3


def test_all_errors_of_certified_batches_hold_together_as_often_as_promised(table, address):
    questions, confidence = conjunctions(8, seed=24), 0.75
    truths = truth_of(table, questions)
    # With so little noise every batch is certified.
    with eager(WORTH=1e-3, PROBE=100.0), Desk(table, address) as desk:
        kept = 0
        for _ in range(72):
            answers = desk.ask_many(questions, error=2 * ERROR, confidence=confidence)
            assert {answer.origin for answer in answers} == {"model"}
            off = max(abs(answer.value - true) for answer, true in zip(answers, truths, strict=True))
            kept += off <= answers[0].error
    assert_rate_at_least(kept, 72, confidence)
    # The promise is not far above what is needed.
    assert kept < 72


def test_a_batch_on_a_bad_model_goes_the_usual_way(table, tmp_path):
    questions = [*split_pair(), *conjunctions(40, seed=25)]
    truths = truth_of(table, questions)
    with eager(WORTH=1e-3), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        measure_singles(desk)
        open_session(desk, ALONE)
        answers = desk.ask_many(questions, **WISH)
        assert len(certified(desk)) == 1
        assert {answer.origin for answer in answers} == {"measured"}
        within = sum(abs(answer.value - true) <= ERROR for answer, true in zip(answers, truths, strict=True))
        assert_rate_at_least(within, len(answers), SURE)


def test_a_gaussian_gate_has_models_for_batches_and_tosses_no_coin(table, tmp_path):
    questions = conjunctions(60, seed=26)
    with eager(WORTH=1e-3), Desk(table, tmp_path / "x.sqlite", budget=GAUSSIAN) as desk:
        answers = desk.ask_many(questions, **LAX)
        assert {answer.origin for answer in answers} == {"model"}
        assert desk.session.built is not None
        assert desk.session.hits_left == 0
        assert desk.session.coin.opening not in [spend.event for spend in desk.history()]
        reserved = [call for call in desk.calls if call[0] == "reserve"]
        assert desk.ask(conjunctions(1, seed=27)[0], **WISH).origin in ("measured", "known")
        assert not reserved
        # The same batch again is asked of the same model.
        entries = len(desk.history())
        assert {answer.origin for answer in desk.ask_many(questions, **LAX)} == {"model"}
        assert len(desk.history()) == entries + 1


def test_a_batch_that_is_cheap_is_not_certified(table, address):
    with eager(), Desk(table, address) as desk:
        desk.ask_many(conjunctions(3, seed=28), **WISH)
        assert not certified(desk)


def test_a_batch_may_be_asked_with_any_confidence(table, address):
    with eager(WORTH=1e-3), Desk(table, address) as desk:
        answers = desk.ask_many(conjunctions(60, seed=29), error=ERROR, confidence=0.5)
        assert [answer.confidence for answer in answers] == [0.5] * 60
        assert all(0 <= answer.error <= ERROR for answer in answers)


def test_a_batch_for_which_no_session_can_be_opened_goes_the_usual_way(table, tmp_path):
    """An error so small that the coin closes every order of this budget: the lattice has no trouble with it."""
    with eager(WORTH=1e-3), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        answers = desk.ask_many(conjunctions(40, ways=3, seed=30), error=ERROR / 8, confidence=SURE)
        assert {answer.origin for answer in answers} <= {"measured", "model"}


@pytest.mark.parametrize("confidence", [0.75, SURE])
def test_a_certified_error_is_what_was_heard_and_the_margin_of_its_noise(table, address, monkeypatch, confidence):
    """The noise is below minus the margin with probability 1 − confidence; an error is not negative."""
    said, right = [int(ERROR / 5), -10 * int(ERROR)], RequestExecutor.answer

    def scripted(self, request, *, analyst):
        right(self, request, analyst=analyst)
        return said[0]

    monkeypatch.setattr(RequestExecutor, "answer", scripted)
    with eager(WORTH=1e-3), Desk(table, address) as desk:
        batch = {"questions": conjunctions(60, seed=31), "error": 2 * ERROR, "confidence": confidence}
        (error,) = {answer.error for answer in desk.ask_many(**batch)}
        (paid,) = certified(desk)
        margin = NormalDist().inv_cdf(confidence) * float(paid.event.sigma)
        assert error == pytest.approx(said.pop(0) + margin, abs=1)
        assert {answer.error for answer in desk.ask_many(**batch)} == {0}


def test_the_answers_of_a_batch_are_free_of_the_order_in_which_it_is_asked(table, address):
    questions = conjunctions(60, seed=32)
    with eager(WORTH=1e-3), Desk(table, address) as desk:
        values = [answer.value for answer in desk.ask_many(questions, **LAX)]
        again = [answer.value for answer in desk.ask_many(questions[::-1], **LAX)]
        assert again == values[::-1]


def test_what_was_noted_costs_nothing_but_the_opening(table, address):
    with Desk(table, address) as desk:
        noted = [spend.event for spend in desk.history() if isinstance(spend.event, (Coin, Nothing))]
        assert noted == [desk.session.coin.opening]


def test_a_batch_that_is_refused_after_a_check_says_what_was_charged_and_is_not_checked_again(tmp_path):
    """A poor model fails the check of a batch that is then too large for the lattice."""
    table, questions = table_of(paired_rows(200_000)), (split_pair() + conjunctions(400))[:300]
    budget = Budget(epsilon=3, delta=1e-9, gate="renyi")
    with eager(WORTH=1e-6), Desk(table, tmp_path / "desk", budget=budget, expected_questions=None) as desk:
        open_session(desk, ALONE, error=500)
        for again in range(3):
            before = len(desk.history())
            with pytest.raises(TooLarge) as refused:
                desk.ask_many(questions, error=500, confidence=0.99)
            paid = len(desk.history()) > before
            assert paid == (again == 0)
            assert ("is charged: epsilon" in str(refused.value)) == paid
