"""A model answers, a coin checks it, and only failed checks cost: when it opens, what it says, what it pays."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pytest

import discreet.curator.checked_model
import discreet.curator.records
import discreet.plan.build_model
import discreet.plan.model_forecast
import discreet.plan.steps
from discreet.accounting.event import Coin, Compose, Gaussian, Nothing
from discreet.curator.checked_model import Models
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded
from discreet.ledger import Budget, Ledger
from discreet.ledger.ledger import ANYONE
from discreet.plan.build_model import Built
from discreet.plan.steps import Target
from discreet.query import count
from discreet.query.sql import parse_predicate
from support.model_sessions import (
    ALONE,
    DOMAIN,
    ERROR,
    NAMES,
    PLENTY,
    ROWS,
    SURE,
    WISH,
    Desk,
    conjunction,
    conjunctions,
    copy_of,
    eager,
    is_hit,
    open_session,
    split_pair,
    table_of,
    truth_of,
    use_up,
)
from support.statistics import assert_rate_at_least

GAUSSIAN = Budget(epsilon=3, delta=1e-9)


@pytest.fixture
def good(table, opened, tmp_path):
    with Desk(table, copy_of(opened, tmp_path)) as desk:
        yield desk


@pytest.fixture
def bad(table, tmp_path):
    """A curator with a model that takes dependent columns for independent."""
    with Desk(table, tmp_path / "bad.sqlite", budget=PLENTY) as desk:
        measure_singles(desk)
        open_session(desk, ALONE)
        yield desk


def measure_singles(desk):
    for name in NAMES:
        desk.ask(name, error=ERROR / 4, confidence=SURE)


def positions(calls, name):
    return [place for place, call in enumerate(calls) if call[0] == name]


# --- Opening ---------------------------------------------------------------------------------------------------------


def asked_until_considered(table, tmp_path, monkeypatch, *, count=30, budget=PLENTY, expected=100_000):
    """After how many questions a curator decides to build; None if it does not."""
    decided = []
    monkeypatch.setattr(Models, "_open", lambda self, *_: decided.append(self.stream.asked))
    with Desk(table, tmp_path / f"{len(list(tmp_path.iterdir()))}", budget=budget, expected_questions=expected) as desk:
        for question in conjunctions(count):
            desk.ask(question, **WISH)
            if decided:
                return decided[0]
    return None


def test_a_session_opens_when_many_questions_are_expected(table, tmp_path, monkeypatch):
    with eager():
        assert asked_until_considered(table, tmp_path, monkeypatch) > 6


def test_none_opens_when_the_forecast_says_that_the_lattice_is_cheaper(table, tmp_path, monkeypatch):
    """Ten columns have few pieces: without our impatience no number of questions makes a model pay."""
    monkeypatch.setattr(discreet.plan.model_forecast, "SETTLED", 6)
    assert asked_until_considered(table, tmp_path, monkeypatch, expected=10**9) is None


def test_none_opens_before_the_stream_has_settled(table, tmp_path, monkeypatch):
    with eager():
        monkeypatch.setattr(discreet.plan.model_forecast, "SETTLED", 1000)
        assert asked_until_considered(table, tmp_path, monkeypatch) is None


@pytest.mark.parametrize("budget", [GAUSSIAN, Budget(epsilon=3)], ids=["gaussian", "pure"])
def test_none_opens_where_the_coin_has_no_price(budget, table, tmp_path, monkeypatch):
    with eager():
        assert asked_until_considered(table, tmp_path, monkeypatch, budget=budget, count=12) is None


def test_where_nobody_said_how_many_it_opens_once_as_much_was_spent_as_it_costs(table, tmp_path, monkeypatch):
    with eager():
        assert asked_until_considered(table, tmp_path, monkeypatch, expected=None) is None
        # The pieces of thirty questions cost about ten units.
        for name in ("TOTAL_UNITS", "SINGLE_UNITS", "PAIR_UNITS", "JOINED"):
            monkeypatch.setattr(discreet.plan.model_forecast, name, 0.0)
        monkeypatch.setattr(discreet.plan.model_forecast, "REST", 5.0)
        assert asked_until_considered(table, tmp_path, monkeypatch, expected=None) is not None
        monkeypatch.setattr(discreet.plan.model_forecast, "REST", 100.0)
        assert asked_until_considered(table, tmp_path, monkeypatch, expected=None) is None


def test_none_opens_that_could_not_pay_for_a_hit(table, tmp_path, monkeypatch):
    with eager():
        small = Budget(epsilon=0.25, delta=1e-9, gate="renyi")
        assert asked_until_considered(table, tmp_path, monkeypatch, budget=small) is None


def test_the_decision_does_not_depend_on_the_rows(table, tmp_path, monkeypatch):
    """The same questions on a table that has nothing in common with it."""
    nobody = table_of({name: np.zeros(7, dtype=bool) for name in NAMES})
    with eager():
        ours, theirs = (asked_until_considered(each, tmp_path, monkeypatch) for each in (table, nobody))
    assert ours == theirs
    assert ours is not None


def test_opening_is_charged_once_before_the_first_toss(table, tmp_path):
    with eager(), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        for question in conjunctions(20):
            desk.ask(question, **WISH)
        session = desk.session
        charged = [at for at in positions(desk.calls, "spend") if desk.calls[at][1] == session.coin.opening]
        assert session.coin.opening == Coin(Fraction(34, int(ERROR)), 0)
        assert len(charged) == 1
        (held,) = positions(desk.calls, "reserve")
        # A toss reads one number and pays nothing: the first is after both.
        assert charged[0] < held < min(at for at in positions(desk.calls, "evaluate") if is_toss(desk.calls, at))


def is_toss(calls, at):
    return calls[at][0] == "evaluate" and calls[at - 1][0] not in ("spend", "evaluate")


def test_whoever_makes_a_model_be_built_is_told_the_price(table, tmp_path):
    """Every answer says what was paid for it: all spends of its request, and no others."""

    def flat(event):
        return [each for part in event.events for each in flat(part)] if isinstance(event, Compose) else [event]

    with eager(), Desk(table, tmp_path / "desk", budget=PLENTY, expected_questions=100_000) as desk:
        built = False
        for question in conjunctions(40):
            before, session = len(desk.history()), desk.session
            answer = desk.ask(question, **WISH)
            spent = [part for line in desk.history()[before:] for part in flat(line.event)]
            told = [part for part in flat(answer.cost) if not isinstance(part, Nothing)]
            assert Counter(map(repr, told)) == Counter(repr(each) for each in spent if not isinstance(each, Nothing))
            assert (answer.price > 0) == bool(told)
            built = built or (session is None and desk.session is not None)
        assert built


# --- Answers ---------------------------------------------------------------------------------------------------------


def test_answers_of_a_good_model_are_free_and_within_the_error(good, table):
    questions = conjunctions(500, seed=1)
    truths, before = truth_of(table, questions), good.spent
    answers = [good.ask(question, **WISH) for question in questions]
    by_model = [answer for answer in answers if answer.origin == "model"]
    assert len(by_model) > 250
    assert {(answer.cost, answer.error, answer.confidence) for answer in by_model} == {(Nothing(), ERROR, SURE)}
    within = sum(abs(answer.value - true) <= answer.error for answer, true in zip(answers, truths, strict=True))
    assert_rate_at_least(within, len(answers), SURE)
    if not good.hits() and all(answer.cost == Nothing() for answer in answers):
        assert good.spent == before


class Adversary:
    """A model that knows the truth, and is off by just the error."""

    def __init__(self, table, off):
        self.table, self.off = table, off

    def answer(self, question):
        return float(truth_of(self.table, [question])[0] + self.off)


def failures_of_an_adversary(table, tmp_path, monkeypatch, *, count=160, confidence=0.75):
    """How many of so many answers are wrong, if the model is as misleading as it can be."""
    monkeypatch.setattr(discreet.curator.checked_model, "model_of", lambda *_: Adversary(table, int(ERROR) + 1))
    monkeypatch.setattr(Models, "_learn", lambda *_: None)
    monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 0.0)
    questions = conjunctions(count, ways=6, seed=2)
    truths = truth_of(table, questions)
    with Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        open_session(desk, ALONE, hits=count, confidence=confidence)
        answers = [desk.ask(question, error=ERROR, confidence=confidence) for question in questions]
        paid = [is_hit(answer.cost) for answer in answers]
        assert paid == [answer.origin in ("direct", "measured") for answer in answers]
        assert len(desk.hits()) == sum(paid)
    return sum(abs(answer.value - true) > ERROR for answer, true in zip(answers, truths, strict=True))


def test_answers_keep_the_error_whatever_the_model_says(table, tmp_path, monkeypatch):
    failures = failures_of_an_adversary(table, tmp_path, monkeypatch)
    # The promise is nearly used up: most failures are answers that passed.
    assert failures > 0
    assert_rate_at_least(160 - failures, 160, 0.75)


def test_a_coin_that_lets_too_many_pass_would_be_seen(table, tmp_path, monkeypatch):
    right = discreet.curator.records.model_coin

    def lax(**named):
        return right(**{**named, "confidence": Fraction(1, 5)})

    monkeypatch.setattr(discreet.curator.records, "model_coin", lax)
    failures = failures_of_an_adversary(table, tmp_path, monkeypatch)
    with pytest.raises(AssertionError, match="promised a rate"):
        assert_rate_at_least(160 - failures, 160, 0.75)


def fresh(desk, *, count=60, seed=4):
    """Questions of which too little is known."""
    return [each for each in conjunctions(count, seed=seed) if desk.plan(each, **WISH).origin == "model"]


def test_the_same_question_gets_the_same_answer_without_another_toss(good):
    question = fresh(good)[0]
    first, reads = good.ask(question, **WISH), good.reads()
    assert first.origin == "model"
    assert [good.ask(question, **WISH).value for _ in range(3)] == [first.value] * 3
    assert good.reads() == reads


def test_a_laxer_wish_is_served_and_a_stricter_one_goes_the_usual_way(good):
    questions = fresh(good)
    assert good.ask(questions[0], error=2 * ERROR, confidence=0.9).origin in ("model", "known")
    assert good.ask(questions[1], error=0.99 * ERROR, confidence=SURE).origin == "measured"
    assert good.ask(questions[2], error=ERROR, confidence=0.995).origin == "measured"
    assert good.ask(questions[3], error=ERROR, confidence=SURE, joint=True).origin in ("measured", "direct")


def test_what_the_model_cannot_say_goes_the_usual_way(table, tmp_path):
    with Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        measure_singles(desk)
        open_session(desk, Built("tree", NAMES[:4], ()))
        one = np.array([0, 1])
        assert desk.ask(conjunction([0, 2, 3], [one] * 3), **WISH).origin in ("model", "measured")
        assert desk.plan(conjunction([1, 2, 3], [one] * 3), **WISH).origin == "model"
        for places in ([0, 2, 5], [4, 5, 6]):
            assert desk.plan(conjunction(places, [one] * 3), **WISH).origin == "measured"
            assert desk.ask(conjunction(places, [one] * 3), **WISH).origin == "measured"
        held = len(positions(desk.calls, "reserve"))
        twice = 2 * conjunction([0, 1, 3], [one] * 3)
        for weighted in (twice, conjunction([0, 1, 2], [one] * 3) - conjunction([0, 1, 3], [one] * 3)):
            assert desk.ask(weighted, **WISH).origin == "measured"
        assert len(positions(desk.calls, "reserve")) == held


def test_a_disjunction_is_a_count_and_is_served(good, table):
    question = count(DOMAIN, parse_predicate("x0 AND x3 AND x4 OR x6 AND x7", DOMAIN))
    answer = good.ask(question, error=2 * ERROR, confidence=SURE)
    assert answer.origin in ("model", "known")
    assert abs(answer.value - truth_of(table, [question])[0]) <= 2 * ERROR


# --- Hits ------------------------------------------------------------------------------------------------------------


def test_each_hit_is_paid_once_with_its_measurement_and_counts(bad, table):
    questions = split_pair()
    truths, left, paid = truth_of(table, questions), 3, 0
    for question, true in zip(questions, truths, strict=True):
        answer = bad.ask(question, **WISH)
        assert abs(answer.value - true) <= 2 * ERROR
        now = bad.hits()
        assert len(now) == paid + (answer.origin == "measured" and left > bad.session.hits_left)
        if len(now) > paid:
            hit, measured = now[-1].event.events
            assert hit == bad.session.coin.hit == Coin(Fraction(34, int(ERROR)), 1)
            assert isinstance(measured, Gaussian)
            # What the model learnt from it may be in the price too.
            assert now[-1].event in (answer.cost, *getattr(answer.cost, "events", ()))
            assert answer.error <= ERROR
        paid = len(now)
        assert bad.session.hits_left == 3 - paid
        left = bad.session.hits_left
    # Two pairs that always go together are off by ten times the error.
    assert paid >= 2


def test_answers_after_a_hit_keep_the_error(table, tmp_path, monkeypatch):
    monkeypatch.setattr(Models, "_learn", lambda *_: None)
    monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 0.0)
    questions = conjunctions(120, seed=6)
    with Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        measure_singles(desk)
        open_session(desk, ALONE, hits=200)
        answers = [desk.ask(question, **WISH) for question in questions]
        truths = truth_of(table, questions)
        assert sum(is_hit(answer.cost) for answer in answers) == len(desk.hits()) > 25
        within = sum(abs(answer.value - true) <= ERROR for answer, true in zip(answers, truths, strict=True))
        assert_rate_at_least(within, len(answers), SURE)


def test_no_coin_is_tossed_without_a_hold(bad):
    for question in [*split_pair(), *conjunctions(40, seed=8)]:
        bad.ask(question, **WISH)
    held = False
    tosses = 0
    for at, call in enumerate(bad.calls):
        match call[0]:
            case "reserve":
                held = True
            case "close_hold":
                held = False
            case "evaluate" if is_toss(bad.calls, at):
                assert held
                tosses += 1
    assert tosses >= 3


def test_after_the_last_hit_the_lattice_answers(bad):
    open_session(bad, ALONE, hits=1)
    assert bad.ask(split_pair()[0], **WISH).origin == "measured"
    assert not bad.session.open
    assert not bad.ledger.holds
    reserved = len(positions(bad.calls, "reserve"))
    origins = {bad.ask(question, **WISH).origin for question in conjunctions(20, seed=9)}
    assert origins <= {"measured", "known"}
    assert len(positions(bad.calls, "reserve")) == reserved


def test_a_tree_learns_from_a_hit(bad, table):
    before = bad._models.guess(split_pair()[0])
    bad.ask(split_pair()[0], **WISH)
    assert {("x0", "x1"), ("x2", "x3")} <= set(bad.session.built.scopes)
    after, true = bad._models.guess(split_pair()[0]), truth_of(table, split_pair()[:1])[0]
    assert abs(after - true) < 2 * ERROR < abs(before - true)


def test_a_curator_that_closes_gives_back_what_it_set_aside(table, opened, tmp_path):
    address = copy_of(opened, tmp_path)
    with Desk(table, address) as desk:
        desk.ask(fresh(desk)[0], **WISH)
        assert len(desk.ledger.holds) == 1
    with Ledger(address) as ledger:
        assert not ledger.holds


def test_a_hold_survives_a_crash_and_a_new_curator_works_on(table, opened, tmp_path):
    address = copy_of(opened, tmp_path)
    crashed = Desk(table, address)
    crashed.ask(fresh(crashed)[0], **WISH)
    crashed.ledger.close()
    with Desk(table, address) as desk:
        assert len(desk.ledger.holds) == 1
        assert desk.ask(fresh(desk)[1], **WISH).origin == "model"


# What may go wrong between a toss and its payment.


def test_a_hit_is_paid_even_if_another_process_spends_the_rest_meanwhile(bad, table, monkeypatch):
    right = RequestExecutor.fits

    def overtaken(self, event, analyst):
        fits = right(self, event, analyst)
        if is_hit(event):
            monkeypatch.setattr(RequestExecutor, "fits", right)
            use_up(bad)
        return fits

    monkeypatch.setattr(RequestExecutor, "fits", overtaken)
    # Pieces of the lattice that cost more than the one number.
    monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 1000.0)
    question = count(DOMAIN, parse_predicate("x0 AND x1 OR x2 AND x3 OR x4 AND x5", DOMAIN))
    try:
        bad.ask(question, **WISH)
    finally:
        assert len(bad.hits()) == 1


# --- Budget ----------------------------------------------------------------------------------------------------------


def test_where_the_next_hit_cannot_be_set_aside_no_coin_is_tossed(good):
    questions = fresh(good)
    use_up(good)
    reads = good.reads()
    with pytest.raises(
        BudgetExceeded, match="A model answers it for free, without any guarantee: ask without an error"
    ):
        good.ask(questions[0], **WISH)
    assert good.reads() == reads
    assert not good.ledger.holds


def test_what_has_passed_is_said_again_when_the_budget_is_gone(good):
    question = fresh(good)[0]
    first = good.ask(question, **WISH)
    good._models.close()
    use_up(good)
    reads = good.reads()
    assert good.ask(question, **WISH).value == first.value
    assert good.reads() == reads


def test_when_the_budget_is_gone_the_model_still_guesses_without_a_guarantee(good, table):
    question = fresh(good)[0]
    use_up(good)
    reads, answer = good.reads(), good.ask(question)
    assert (answer.origin, answer.error, answer.cost) == ("model", inf, Nothing())
    assert abs(answer.value - truth_of(table, [question])[0]) < 2 * ERROR
    assert "a model's guess, without any guarantee" in str(answer)
    assert good.reads() == reads


def test_a_guess_says_its_number(good):
    answer = good.ask(fresh(good)[0])
    assert f"{answer.value:,.0f}" in str(answer)


def test_a_plan_says_that_a_model_answers_for_free(good):
    plan = good.plan(fresh(good)[0], **WISH)
    assert (plan.origin, plan.cost, plan.error, plan.free) == ("model", Nothing(), ERROR, True)
    assert "If the check fails" in plan.note


def test_a_plan_does_not_promise_what_is_refused(good):
    question = fresh(good)[0]
    use_up(good)
    assert not good.plan(question, **WISH).fits


def test_the_cap_is_never_passed(table, tmp_path):
    """Ask until nothing more is paid, with a bad model and with hits to come."""
    tight = Budget(epsilon=0.5, delta=1e-9, gate="renyi")
    with eager(), Desk(table, tmp_path / "x.sqlite", budget=tight) as desk:
        measure_singles(desk)
        open_session(desk, ALONE, hits=10**6)
        refused = 0
        for question in conjunctions(250, seed=10, ways=6):
            try:
                desk.ask(question, **WISH)
            except BudgetExceeded:
                refused += 1
            assert desk.spent.epsilon <= 0.5
            if refused > 20:
                break
        assert desk.hits()
    with Ledger(tmp_path / "x.sqlite") as ledger:
        assert ledger.balances()[0].spent.epsilon <= 0.5


@pytest.mark.parametrize("confidence", [0.99, 0.95, 0.9, 0.8])
def test_a_session_serves_the_wish_for_which_it_was_opened(confidence, table, tmp_path):
    with eager(), Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        session = desk._models._draft(Target(ERROR, confidence), 10, ANYONE)
        assert replace(session, built=ALONE).keeps(ERROR, confidence)


def test_a_session_serves_the_error_for_which_it_was_opened(table, tmp_path):
    with Desk(table, tmp_path / "x.sqlite", budget=PLENTY) as desk:
        for error in (1234.7, ROWS / 300, 0.1 * ROWS / 7):
            session = desk._models._draft(Target(error, SURE), 10, ANYONE)
            assert replace(session, built=ALONE).keeps(error, SURE)


def test_an_analyst_whose_own_cap_has_no_price_for_the_coin_goes_the_usual_way(table, opened, tmp_path):
    with Desk(table, copy_of(opened, tmp_path), analyst="ana") as desk:
        desk.ledger.cap(GAUSSIAN, analyst="ana")
        question = conjunctions(60, seed=31)[0]
        assert desk.plan(question, **WISH).origin != "model"
        assert desk.ask(question, **WISH).origin != "model"
