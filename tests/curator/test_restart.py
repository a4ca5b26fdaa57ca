"""What is known is a function of the ledger: after a restart, beside another curator, and after kill -9."""

import json
import os
from contextlib import closing
from random import uniform
from time import sleep
from uuid import uuid4

import numpy as np
import pytest

import discreet.plan.steps
from discreet.curator import Curator
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded, KeyReused
from discreet.ledger import Budget, Ledger, verify
from discreet.query import col, count
from discreet.schema import Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from support.neighbours import (
    DROPS,
    KEEPS,
    PLENTY,
    PURE,
    Session,
    listening,
    outcome,
    random_pair,
    random_questions,
    told,
)
from support.processes import FORK, PATIENCE, apart, child

ADD, REPLACE = Unit(), Unit(neighbors="replace_one")
PERSONS = Unit(key="who", contributions=3, neighbors="replace_one")
SOME = Budget(epsilon=4, delta=1e-6)


def table_and_questions(seed, how_many, *, domain=KEEPS, unit=ADD):
    rng = np.random.default_rng([5, seed])
    return random_pair(rng, domain=domain, unit=unit).tables()[0], random_questions(rng, domain, how_many)


def ask_all(desk, questions):
    return [outcome(desk, how, question, wish) for how, question, wish in questions]


def for_free(questions, plans=8):
    """The same questions, so that nothing is spent: as well as they are known, and of some what more would cost."""
    planned = [("plan", question, wish) for how, question, wish in questions if how == "ask" and "error" in wish]
    return [("ask", question, {}) for how, question, _ in questions if how == "ask"] + planned[-plans:]


# --- After a restart -------------------------------------------------------------------------------------------------

TABLES = {
    "rows": (KEEPS, ADD, PLENTY),
    "rows replaced": (KEEPS, REPLACE, PLENTY),
    "rows replaced or dropped": (DROPS, REPLACE, SOME),
    "persons": (DROPS, PERSONS, PLENTY),
    "pure": (DROPS, ADD, PURE),
    "pure, rows replaced": (KEEPS, REPLACE, PURE),
}
EVERY = pytest.mark.parametrize(("domain", "unit", "budget"), TABLES.values(), ids=TABLES)


def session_on(domain, unit, budget, *, seed, how_many):
    """A table and a session: a shorter one where delta is 0, which takes longer."""
    return table_and_questions(seed, how_many if budget.delta else how_many // 6, domain=domain, unit=unit)


def assert_knows_the_same(address, table, desk, questions):
    """A new curator answers every question as the old one does, to the last bit, and nobody pays."""
    entries = desk.ledger.head.sequence
    with Curator(table, ledger=address) as again:
        assert ask_all(again, for_free(questions)) == ask_all(desk, for_free(questions))
    assert desk.ledger.head.sequence == entries


def assert_restarts_well(domain, unit, budget, tmp_path, *, seed, how_many, others=60):
    table, questions = session_on(domain, unit, budget, seed=seed, how_many=how_many)
    _, more = session_on(domain, unit, budget, seed=100 + seed, how_many=others)
    address, half = tmp_path / "x.sqlite", len(questions) // 2
    with Curator(table, budget=budget, ledger=address) as desk:
        # Also in the middle, and about what was never asked.
        ask_all(desk, questions[:half])
        assert_knows_the_same(address, table, desk, questions[:half])
        ask_all(desk, questions[half:])
        assert_knows_the_same(address, table, desk, [*more, *questions])


@EVERY
def test_a_new_curator_on_the_same_ledger_knows_the_same_to_the_bit(domain, unit, budget, tmp_path):
    assert_restarts_well(domain, unit, budget, tmp_path, seed=0, how_many=40)


@pytest.mark.long
@EVERY
@pytest.mark.parametrize("seed", range(10, 15))
def test_after_long_sessions_a_new_curator_knows_the_same_to_the_bit(domain, unit, budget, seed, tmp_path):
    assert_restarts_well(domain, unit, budget, tmp_path, seed=seed, how_many=200, others=200)


@pytest.mark.parametrize("seed", range(3))
def test_a_new_curator_knows_the_same_of_numbers_measured_by_themselves(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(discreet.plan.steps, "LATTICE_RENTAL_FACTOR", 0.0)
    assert_restarts_well(*TABLES["rows"], tmp_path, seed=20 + seed, how_many=24)


@EVERY
def test_what_was_answered_is_known_after_a_restart_with_the_same_value(domain, unit, budget, tmp_path):
    table, questions = session_on(domain, unit, budget, seed=2, how_many=60)
    good = [each for each in questions if each[0] == "ask" and "error" in each[2]]
    address = tmp_path / "x.sqlite"
    with Curator(table, budget=budget, ledger=address) as desk:
        # Until nothing more is paid: a mean that is refused has paid its first looks.
        entries = None
        while entries != desk.ledger.head.sequence:
            entries, before = desk.ledger.head.sequence, ask_all(desk, good)
    with Curator(table, ledger=address) as desk:
        after = ask_all(desk, good)
    assert after == before
    known = [dict(answer) for answers in after if isinstance(answers[0], tuple) for answer in answers]
    assert len(known) >= 2
    assert {answer["origin"] for answer in known} == {"'known'"}
    assert {answer["cost"] for answer in known} == {"Nothing()"}


# --- Lives of one session --------------------------------------------------------------------------------------------


def in_one_life(table, questions, address, budget):
    with listening(Session(), np.random.default_rng(1)), Curator(table, budget=budget, ledger=address) as desk:
        return ask_all(desk, questions)


def in_many_lives(table, questions, address, budget, length=7):
    """The same session and the same noise, with a new curator every few questions."""
    answers = []
    with listening(Session(), np.random.default_rng(1)):
        for start in range(0, len(questions), length):
            with Curator(table, budget=budget, ledger=address) as desk:
                answers += ask_all(desk, questions[start : start + length])
    return answers


def by_two_curators(table, questions, address, budget):
    """The same session and the same noise, with two curators who take turns: each learns what the other paid for."""
    answers = []
    with (
        listening(Session(), np.random.default_rng(1)),
        Curator(table, budget=budget, ledger=address) as one,
        Curator(table, ledger=address) as other,
    ):
        for turn, question in enumerate(questions):
            desk = (one, one, other)[turn % 3]
            # What a curator knows well enough it tells without a look at the ledger; this is a look.
            desk.known()
            answers.append(outcome(desk, *question))
    return answers


@EVERY
def test_a_session_goes_on_after_restarts_as_if_there_had_been_none(domain, unit, budget, tmp_path):
    table, questions = session_on(domain, unit, budget, seed=3, how_many=40)
    one = in_one_life(table, questions, tmp_path / "one.sqlite", budget)
    many = in_many_lives(table, questions, tmp_path / "many.sqlite", budget)
    assert many == one


@EVERY
def test_two_curators_in_turn_on_one_ledger_answer_as_one(domain, unit, budget, tmp_path):
    table, questions = session_on(domain, unit, budget, seed=4, how_many=40)
    one = in_one_life(table, questions, tmp_path / "one.sqlite", budget)
    two = by_two_curators(table, questions, tmp_path / "two.sqlite", budget)
    assert two == one


def test_asked_without_an_error_a_curator_tells_what_another_has_paid_for(tmp_path):
    table, _ = table_and_questions(0, 0)
    address = tmp_path / "x.sqlite"
    with Curator(table, budget=PLENTY, ledger=address) as one, Curator(table, ledger=address) as other:
        paid = one.ask("sex", error=20)
        assert number_of(other.ask("sex")) == number_of(paid)


def test_what_is_left_is_up_to_date_when_another_curator_has_paid(tmp_path):
    table, _ = table_and_questions(0, 0)
    address = tmp_path / "x.sqlite"
    with Curator(table, budget=PLENTY, ledger=address) as one, Curator(table, ledger=address) as other:
        one.ask("sex", error=20)
        other.ask("age >= 2", error=20)
        assert one.ask("sex", error=20).remaining == other.remaining


def test_a_curator_that_keeps_something_to_itself_is_seen(tmp_path, monkeypatch):
    """The power of the tests above: every third release is not recorded, and known only in this life."""
    from discreet.curator.records import learn

    right, count = RequestExecutor.transact, iter(range(10**6))

    def forgets(self, *payment, **named):
        if next(count) % 3 != 2:
            return right(self, *payment, **named)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "record", lambda *_, **__: True)
            done = right(self, *payment, **named)
        learn(done.result, self.known)
        return done

    monkeypatch.setattr(RequestExecutor, "transact", forgets)
    table, questions = table_and_questions(3, 40)
    one = in_one_life(table, questions, tmp_path / "one.sqlite", PLENTY)
    count = iter(range(10**6))
    assert in_many_lives(table, questions, tmp_path / "many.sqlite", PLENTY) != one


# --- A request that is repeated --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "wish"),
    [
        ("age >= 2", {"error": 20}),
        ("age >= 2", {"epsilon": 0.2}),
        ("SELECT AVG(age) FROM data", {"error": 0.1}),
        ("SELECT city, COUNT(*) FROM data GROUP BY city", {"error": 20, "joint": True}),
    ],
    ids=["error", "price", "mean", "groups"],
)
@pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a restart"])
def test_a_request_with_a_key_is_charged_once_and_answered_the_same(question, wish, restart, tmp_path):
    rows = {"age": [0, 3, 4, 1] * 300, "city": ["a", "b", "c"] * 400, "sex": [True, False] * 600}
    table = Table(Schema("data", KEEPS, ADD), Frame(rows, domain=KEEPS))
    address = tmp_path / "x.sqlite"
    desk = Curator(table, budget=PLENTY, ledger=address)
    first = desk.ask(question, key="mine", **wish)
    spent = desk.spent
    if restart:
        desk.close()
        desk = Curator(table, ledger=address)
    with closing(desk):
        again = desk.ask(question, key="mine", **wish)
        assert desk.spent == spent
        assert number_of(again) == number_of(first)


def test_another_question_with_the_same_key_is_refused(tmp_path):
    table, _ = table_and_questions(1, 0)
    young, old = count(KEEPS, col("age") <= 1), count(KEEPS, col("age") >= 2)
    with Curator(table, budget=PLENTY, ledger=tmp_path / "x.sqlite") as desk:
        desk.ask(young, epsilon=0.2, key="mine")
        with pytest.raises(KeyReused):
            desk.ask(old, epsilon=0.2, key="mine")


def number_of(answer):
    return {name: said for name, said in told(answer) if name in ("value", "error", "columns", "confidence")}


# --- kill -9 ---------------------------------------------------------------------------------------------------------


class LedgerUntil(Ledger):
    """A ledger as it was after some entry; nothing can be paid from it."""

    until = 0

    def entries(self, after=0):
        return (entry for entry in super().entries(after) if entry.sequence <= self.until)

    def spend(self, *_, **__):
        raise AssertionError("it was known, and is not any more")


def stream(how_many):
    """A table, and questions of which many come again."""
    table, pool = table_and_questions(9, 400)
    pool = [each for each in pool if each[0] == "ask" and "error" in each[2]]
    rng = np.random.default_rng(8)
    places = np.minimum(rng.zipf(1.2, size=how_many) - 1, rng.integers(len(pool), size=how_many))
    return table, [pool[place] for place in places]


def serve(address, diary, how_many, ready):
    """Go on with the stream where the diary ends, until somebody kills us; the diary outlives us."""
    table, questions = stream(how_many)
    begin = len(diary.read_text().splitlines())
    file = os.open(diary, os.O_WRONLY | os.O_APPEND)
    with Curator(table, budget=SOME, ledger=address) as desk:
        ready.send_bytes(b"serving")
        for number in range(begin, how_many):
            try:
                answer = desk.ask(questions[number][1], **questions[number][2])
                said = json.dumps(number_of(answer), sort_keys=True)
            except BudgetExceeded:
                said = "refused"
            except Exception as error:
                said = f"error {type(error).__name__}"
            # One write, so that a line is there as a whole or not at all.
            os.write(file, json.dumps([number, desk.ledger.head.sequence, said]).encode() + b"\n")
    os.close(file)


def killed_while_it_serves(address, diary, how_many, longest):
    hears, says = FORK.Pipe(duplex=False)
    with child(serve, address, diary, how_many, says):
        says.close()
        assert hears.poll(PATIENCE), "the curator does not start"
        sleep(uniform(0, longest))


def broken_by_kills(address, diary, how_many, kills):
    """What is wrong after some kills, as sentences."""
    return apart(_broken_by_kills, address, diary, how_many, kills)


def _broken_by_kills(address, diary, how_many, kills):
    broken = set()
    verify(address)
    table, questions = stream(how_many)
    with Ledger(address) as ledger:
        lost = [spend for spend in ledger.history() if spend.released is None]
        (account,) = ledger.balances(table="data")
        if len(lost) > kills:
            broken.add("more lost than in flight")
        if account.spent_ticks > account.gate.limit:
            broken.add("overspent")
    lines = [json.loads(line) for line in diary.read_text().splitlines()]
    if [number for number, _, _ in lines] != list(range(len(lines))):
        broken.add("lines are missing")
    with LedgerUntil(address) as ledger, Curator(table, ledger=ledger) as desk:
        for number, sequence, said in lines:
            if not said.startswith("{"):
                continue
            ledger.until = sequence
            try:
                again = desk.ask(questions[number][1], **questions[number][2])
            except AssertionError:
                broken.add("forgotten")
                break
            if json.dumps(number_of(again), sort_keys=True) != said:
                broken.add("another answer")
                break
    return sorted(broken)


def first_broken(tmp_path, *, how_many, kills, longest):
    """What is wrong after the first kill after which something is; and the last diary."""
    address, diary = str(tmp_path / f"{uuid4().hex}.sqlite"), tmp_path / uuid4().hex
    diary.touch()
    for _ in range(kills):
        killed_while_it_serves(address, diary, how_many, longest)
    broken = broken_by_kills(address, diary, how_many, kills)
    if not broken:
        hears, says = FORK.Pipe(duplex=False)
        with child(serve, address, diary, how_many, says) as last:
            last.result(PATIENCE * 10)
        hears.close()
        broken = broken_by_kills(address, diary, how_many, kills)
    return broken, [json.loads(line)[2] for line in diary.read_text().splitlines()]


@pytest.mark.process
def test_after_kills_what_was_known_is_known_to_the_bit_and_the_stream_goes_on(tmp_path):
    broken, said = first_broken(tmp_path, how_many=500, kills=5, longest=0.5)
    assert broken == []
    assert len(said) == 500
    assert sum(each.startswith("{") for each in said) > 250
    assert "refused" in said


@pytest.mark.long
@pytest.mark.parametrize("repetition", range(3))
def test_after_kills_in_a_stream_of_10_000_questions_all_is_well(tmp_path, repetition):
    broken, said = first_broken(tmp_path, how_many=10_000, kills=20, longest=3)
    assert broken == []
    assert len(said) == 10_000


@pytest.mark.process
def test_kills_show_what_is_wrong_with_a_curator_that_records_later(tmp_path, monkeypatch):
    """The power test: what was answered and not yet recorded dies with the curator."""
    from discreet.curator.records import learn

    right, transact, waiting = Ledger.record, RequestExecutor.transact, []

    def later(self, receipt, released, *, after=None):
        waiting.append((receipt, released))
        if len(waiting) == 5:
            for each in waiting:
                right(self, *each)
            waiting.clear()
        return True

    def learns(self, *payment, **named):
        done = transact(self, *payment, **named)
        learn(done.result, self.known)
        return done

    monkeypatch.setattr(Ledger, "record", later)
    monkeypatch.setattr(RequestExecutor, "transact", learns)
    broken, _ = first_broken(tmp_path, how_many=200, kills=3, longest=0.5)
    assert broken
