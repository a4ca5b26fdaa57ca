"""What the ledger does every day, in SQLite and in Postgres: keys, answers, refusals, reports, caps, versions."""

import json
import os
import re
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import exp
from pathlib import Path
from stat import S_IMODE
from statistics import NormalDist
from threading import Thread
from time import sleep
from uuid import uuid4

import pytest
import sqlalchemy as sa

from discreet.accounting import (
    TICK,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
    mu_of,
)
from discreet.errors import AnswerLost, BadParameter, BudgetExceeded, KeyReused, LedgerDamaged, LedgerFailed, Mistake
from discreet.ledger import Budget, Head, Ledger, Receipt, store, verify
from discreet.ledger.accounts import count_event, gate_of
from discreet.ledger.connection import MIGRATIONS
from discreet.ledger.refusal import with_more_noise
from discreet.ledger.store import FORMAT, Draft, chained, index_columns
from support.ledger_places import PLACES, new_database, new_file, tell

BUDGETS = {"pure": Budget(1), "gaussian": Budget(1, 1e-6), "renyi": Budget(1, 1e-6, "renyi")}
each_kind = pytest.mark.parametrize("kind", BUDGETS)


@pytest.fixture(scope="module", params=PLACES)
def place(request, tmp_path_factory):
    """A function that gives a new address: a file, or a schema of its own in one database."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("ledgers")
        yield lambda: new_file(folder)
    else:
        with new_database() as database:
            yield lambda: new_schema(database)


def new_schema(database):
    """A schema is made in milliseconds, and to a ledger it is a database."""
    name = f"ledger_{uuid4().hex}"
    tell(database, f"CREATE SCHEMA {name}")
    url = sa.make_url(database).update_query_dict({"options": f"-csearch_path={name}"})
    return url.render_as_string(hide_password=False)


@pytest.fixture
def address(place):
    return place()


@pytest.fixture
def ledger(address):
    """A ledger in which people may be asked about for an epsilon of 1."""
    with Ledger(address) as ledger:
        ledger.cap(Budget(1), table="people")
        yield ledger


@pytest.fixture
def local(tmp_path):
    """The same in a file, where it does not matter where it lies."""
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.cap(Budget(1), table="people")
        yield ledger


def ask(ledger, event=None, *, analyst="ana", **more):
    return ledger.spend(event or Laplace(10, 1), "how many smoke?", table="people", analyst=analyst, **more)


def kinds(ledger):
    return [json.loads(entry.body)["is"] for entry in ledger.entries()]


# Keys.


def test_the_same_request_with_the_same_key_gives_the_same_bytes_and_is_charged_once(ledger):
    first = ask(ledger, key="k")
    assert first.released is None
    ledger.record(first, b"1207")
    spent = ledger.balances()[0].spent_ticks
    for _ in range(3):
        again = ask(ledger, key="k")
        assert again == Receipt(first.head, first.at, b"1207")
    assert ledger.balances()[0].spent_ticks == spent
    assert kinds(ledger).count("spend") == 1


def test_a_key_is_remembered_by_every_ledger_on_the_same_place(ledger, address):
    ledger.record(ask(ledger, key="k"), b"1207")
    with Ledger(address) as other:
        assert ask(other, key="k").released == b"1207"
        other.record(ask(other, key="l"), b"9")
    assert ask(ledger, key="l").released == b"9"


@pytest.mark.parametrize(
    "another",
    [
        lambda ledger: ask(ledger, Laplace(11, 1), key="k"),
        lambda ledger: ledger.spend(Laplace(10, 1), "how many drink?", table="people", analyst="ana", key="k"),
        lambda ledger: ask(ledger, key="k", body=b"another request"),
        lambda ledger: ledger.spend(Laplace(10, 1), "how many smoke?", table="visits", analyst="ana", key="k"),
    ],
    ids=["another event", "another reason", "another body", "another table"],
)
def test_a_key_that_comes_with_another_request_is_refused_and_costs_nothing(ledger, another):
    ledger.cap(Budget(1), table="visits")
    ledger.record(ask(ledger, key="k"), b"1207")
    head = ledger.head
    with pytest.raises(KeyReused, match=r'key "k" came before with another (request|table), at 2.*Use a new key'):
        another(ledger)
    assert ledger.head == head
    assert ask(ledger, key="k").released == b"1207"


def test_what_counts_is_the_body_if_there_is_one(ledger):
    ledger.record(ask(ledger, key="k", body=b"SELECT count(*)"), b"1207")
    assert ask(ledger, Laplace(99, 1), key="k", body=b"SELECT count(*)").released == b"1207"


@pytest.mark.parametrize(
    ("one", "other"),
    [(("ana", "k"), ("bob", "k")), (("a", "bc"), ("ab", "c")), (("1", "1 1"), ("1 1", "1")), (("ü", "k"), ("u", "¨k"))],
)
def test_keys_of_two_analysts_never_meet(ledger, one, other):
    ledger.record(ask(ledger, analyst=one[0], key=one[1]), b"of one")
    mine = ask(ledger, analyst=other[0], key=other[1])
    assert mine.released is None
    ledger.record(mine, b"of the other")
    assert ask(ledger, analyst=one[0], key=one[1]).released == b"of one"
    assert ask(ledger, analyst=other[0], key=other[1]).released == b"of the other"


def test_after_a_crash_between_spend_and_record_the_answer_is_lost_and_never_charged_again(ledger, address):
    ask(ledger, key="k")
    spent = ledger.balances()[0].spent_ticks
    # Another process finds what the crashed one left.
    with Ledger(address) as after:
        for _ in range(3):
            with pytest.raises(
                AnswerLost, match=r'key "k" was charged at 2.*is not recorded.*a new key asks, and pays'
            ):
                ask(after, key="k")
        assert after.balances()[0].spent_ticks == spent
        ask(after, key="a new one")
        assert after.balances()[0].spent_ticks > spent


def test_an_answer_that_is_only_late_is_given(ledger):
    receipt = ask(ledger, key="k")
    with pytest.raises(AnswerLost):
        ask(ledger, key="k")
    ledger.record(receipt, b"1207")
    assert ask(ledger, key="k").released == b"1207"


def test_a_key_is_answered_even_when_the_budget_is_gone(ledger):
    ledger.record(ask(ledger, key="k"), b"1207")
    ask(ledger, Pure(0.89))
    with pytest.raises(BudgetExceeded):
        ask(ledger, key="l")
    assert ask(ledger, key="k").released == b"1207"


def test_a_refused_request_does_not_use_up_its_key(ledger):
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(2), key="k")
    assert ask(ledger, key="k").released is None


# Answers.


@pytest.mark.parametrize("released", [b"", b"\x00", bytes(range(256)), b"x" * 300_000])
def test_an_answer_comes_back_as_it_was(ledger, released):
    ledger.record(ask(ledger, key="k"), released)
    assert ask(ledger, key="k").released == released
    assert ledger.history()[0].released == released


def test_an_answer_is_recorded_once(ledger):
    receipt = ask(ledger, key="k")
    ledger.record(receipt, b"1207")
    for second in (b"1208", b"1207"):
        with pytest.raises(BadParameter, match=f"spend {receipt.sequence} has its answer already"):
            ledger.record(receipt, second)
    assert ask(ledger, key="k").released == b"1207"
    assert kinds(ledger).count("record") == 1


def test_a_receipt_of_another_ledger_is_refused(ledger, place):
    with Ledger(place()) as other:
        other.cap(Budget(1), table="people")
        foreign = ask(other)
    with pytest.raises(BadParameter, match="another ledger"):
        ledger.record(foreign, b"1207")


def test_a_receipt_that_was_not_given_is_refused(ledger):
    receipt = ask(ledger)
    cap = next(entry for entry in ledger.entries(1))
    for sequence, digest in [(receipt.sequence, bytes(32)), (99, receipt.head.hash), (cap.sequence, cap.hash)]:
        forged = Receipt(Head(receipt.head.ledger, sequence, digest), receipt.at)
        with pytest.raises(BadParameter, match="is not of a spend in this ledger"):
            ledger.record(forged, b"1207")
    assert kinds(ledger).count("record") == 0


@pytest.mark.parametrize("released", ["1207", bytearray(b"1207"), None, 1207, memoryview(b"1207")])
def test_only_bytes_are_recorded(ledger, released):
    receipt = ask(ledger)
    with pytest.raises(BadParameter, match=r"it must be bytes\. Encode it first"):
        ledger.record(receipt, released)
    assert kinds(ledger).count("record") == 0


# Mistakes cost nothing.

BAD_TEXTS = {
    "empty": "",
    "too long": "x" * 100_001,
    "a zero byte": "peo\x00ple",
    "half a character": "peo\ud800ple",
    "no text": 5,
    "bytes": b"people",
}


@pytest.mark.parametrize("what", BAD_TEXTS)
def test_a_bad_text_is_a_mistake_that_costs_nothing(ledger, what):
    bad, head = BAD_TEXTS[what], ledger.head
    good = {"table": "people", "analyst": "ana"}
    for call in (
        lambda: ledger.spend(Nothing(), "why", **{**good, "table": bad}),
        lambda: ledger.spend(Nothing(), "why", **{**good, "analyst": bad}),
        lambda: ledger.spend(Nothing(), bad, **good),
        lambda: ledger.spend(Nothing(), "why", **good, key=bad),
        lambda: ledger.reserve(Nothing(), bad, **good),
        lambda: ledger.cap(Budget(1), table=bad),
        lambda: ledger.cap(Budget(1), tables=("people", bad)),
        lambda: ledger.cap(Budget(1), analyst=bad),
        lambda: ledger.cap(Budget(1), table="people", by=bad),
        lambda: ledger.raise_cap(Budget(2), table="people", by=bad),
    ):
        with pytest.raises(Mistake, match="must be a text"):
            call()
    assert ledger.head == head


def test_every_other_text_is_kept_as_it_is(ledger):
    names = [
        "*",
        'a "quoted" name',
        "a\nb",
        "x" * 1000,
        "ünïcödé 🙂",
        "'; DROP TABLE discreet_ledger; --",
        "null",
        "{}",
    ]
    for name in names:
        ledger.cap(Budget(1), table=name)
        ledger.spend(Laplace(10, 1), name, table=name, analyst="ana", key=name)
    assert [spend.table for spend in ledger.history()] == names
    assert [spend.why for spend in ledger.history()] == names
    assert [spend.key for spend in ledger.history()] == names


MISTAKES = {
    "a hold that is not there": lambda ledger: ask(ledger, hold=77),
    "a hold that is another entry": lambda ledger: ask(ledger, hold=1),
    "a hold that is no number": lambda ledger: ask(ledger, hold="7"),
    "a table and tables": lambda ledger: ledger.cap(Budget(1), table="people", tables=("visits",)),
    "a text for tables": lambda ledger: ledger.cap(Budget(1), tables="people"),
    "a budget of nothing": lambda ledger: ledger.cap(Budget(0), table="visits"),
    "a cap to raise that is not there": lambda ledger: ledger.raise_cap(Budget(2), table="visits"),
}
# What a type checker refuses is refused by us too, with a sentence, and costs nothing either.
NO_EVENT = {
    "nothing": None,
    "a name": "Laplace",
    "a kind of event": Pure,
    "a dict": {"Pure": {"epsilon": "1"}},
    "a budget": Budget(1),
    "nothing, in a composition": Compose((Pure(0.1), None)),
    "a budget, not even once": Repeat(Budget(1), 0),
    "a list of events": Compose([Pure(0.1)]),
    "a generator of events": Compose(Pure(0.1) for _ in range(2)),
    "an event where several belong": Compose(Pure(0.1)),
    "a number with more digits than Python prints": Repeat(Nothing(), 10**5000),
    "a fraction with more digits than Python prints": Pure(Fraction(1, 10**5000)),
}
NONSENSE = {
    "a number for a budget": (lambda ledger: ledger.cap(1.0, table="visits"), r"budget is a float; .* a Budget\. Give"),
    "no budget": (lambda ledger: ledger.cap(None, table="visits"), r"budget is a NoneType; .* a Budget\. Give one"),
    "a number to raise to": (lambda ledger: ledger.raise_cap(2.0, table="people"), "budget is a float; .* a Budget"),
    "no tables": (lambda ledger: ledger.cap(Budget(1), tables=None), "tables is None; .* a tuple of names"),
    "no receipt": (lambda ledger: ledger.record(None, b""), r"receipt is a NoneType; .* a Receipt\. Give what `spend`"),
    "a head for a receipt": (lambda ledger: ledger.record(ledger.head, b""), "receipt is a Head; .* a Receipt"),
    "a text for a body": (lambda ledger: ask(ledger, key="k", body="SELECT"), r"body is a str; it must be bytes\. Enc"),
    "a list for a hold": (lambda ledger: ask(ledger, hold=[7]), r"hold is \[7\]; .* whole number"),
    "a list to close": (
        lambda ledger: ledger.close_hold([7]),
        r"hold is \[7\]; .* whole number .* Give what `reserve`",
    ),
    "an error that is none": (lambda ledger: ask(ledger, Pure(2), error=float("nan")), "error is nan; .* finite"),
    "a text for a number": (lambda ledger: ledger.entries("7"), r"after is '7'; .*\. Give the number of an entry"),
    "a number below all": (lambda ledger: ledger.entries(-1), "after is -1; .* at least 0"),
    "no table": (lambda ledger: ledger.remaining(table=None), "table is None; .* Give a name"),
    "no address": (lambda _: Ledger(None), "the address of the ledger is a NoneType; .* Give a path"),
    "bytes for an address": (
        lambda _: verify(b"ledger.sqlite"),
        "the address of the ledger is a bytes; .* Give a path",
    ),
    "a line for a head": (
        lambda ledger: verify(ledger._log.store.name, head=str(ledger.head)),
        r"head is a str; it must be a Head\. Give Head\.parse\(line\)",
    ),
}


def nested(depth):
    event = Nothing()
    for _ in range(depth):
        event = Compose((event,))
    return event


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_costs_nothing(ledger, what):
    head = ledger.head
    with pytest.raises(Mistake):
        MISTAKES[what](ledger)
    assert ledger.head == head
    ask(ledger)


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_told_with_the_rule_and_the_next_step_and_costs_nothing(local, what):
    nonsense, sentence = NONSENSE[what]
    head = local.head
    with pytest.raises(BadParameter, match=sentence):
        nonsense(local)
    assert local.head == head
    ask(local)


@pytest.mark.parametrize("call", ["spend", "reserve"])
@pytest.mark.parametrize("what", NO_EVENT)
def test_what_is_no_event_is_told_with_the_next_step_and_costs_nothing(local, call, what):
    head, given = local.head, NO_EVENT[what]
    said = (
        rf"event is a {type(given).__name__}; it must be an event, .* Give one, say Laplace\(scale=10, sensitivity=1\)"
    )
    with pytest.raises(BadParameter, match=said):
        getattr(local, call)(given, "how many smoke?", table="people")
    assert local.head == head
    ask(local)


def test_events_in_events_without_an_end_cost_nothing(local):
    head = local.head
    for depth in (100, 2000):
        with pytest.raises((BadParameter, RecursionError)):
            ask(local, nested(depth))
    assert local.head == head
    ask(local)


def test_what_can_be_written_can_be_read_again_from_anywhere(tmp_path):
    def from_far_down(depth, call):
        return from_far_down(depth - 1, call) if depth else call()

    file = tmp_path / "ledger.sqlite"
    with Ledger(file) as ledger:
        ledger.cap(Budget(1), table="people")
        for depth in (100, 200, 300):
            with suppress(Mistake, RecursionError):
                ask(ledger, nested(depth))
    from_far_down(700, lambda: Ledger(file).close())


def together(ledger, *calls):
    """Have several threads ask at one moment, so that one of them writes for all; what each returned or raised."""
    outcomes = [None] * len(calls)

    def run(place, call):
        try:
            outcomes[place] = call()
        except Exception as error:
            outcomes[place] = error

    threads = [Thread(target=run, args=each) for each in enumerate(calls)]
    with ledger._log._turn:
        for place, thread in enumerate(threads):
            thread.start()
            while len(ledger._log._waiting) <= place:
                sleep(0.01)
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize(
    ("fails", "how"),
    [
        (lambda ledger: ask(ledger, hold=77), BadParameter),
        (lambda ledger: ask(ledger, Gaussian(10, 1)), BudgetExceeded),
        (lambda ledger: ledger._log.submit(lambda state: 1 // 0), ZeroDivisionError),
    ],
    ids=["a mistake", "no price", "an error of ours"],
)
def test_what_fails_for_one_thread_does_not_fail_the_requests_of_others(local, fails, how):
    first, failed, last = together(local, lambda: ask(local), lambda: fails(local), lambda: ask(local))
    assert isinstance(first, Receipt)
    assert isinstance(failed, how)
    assert isinstance(last, Receipt)


def test_a_table_without_a_budget_is_refused_with_the_next_step(ledger):
    with pytest.raises(BadParameter) as refusal:
        ledger.spend(Laplace(10, 1), "how many?", table="visits")
    assert str(refusal.value) == (
        'table "visits" has no budget for all analysts together. '
        "The data owner sets one: discreet ledger cap LEDGER --epsilon 1 --delta 1e-9 --table visits."
    )
    with pytest.raises(BadParameter, match='table "visits" has no budget'):
        ledger.remaining(table="visits")


def test_a_budget_of_one_analyst_or_of_each_is_not_enough(ledger):
    ledger.cap(Budget(1), table="visits", analyst="ana")
    ledger.cap(Budget(1), table="visits", analyst="*")
    with pytest.raises(BadParameter, match="no budget for all analysts together"):
        ledger.spend(Laplace(10, 1), "how many?", table="visits", analyst="ana")


def test_no_analyst_is_above_the_cap_of_each(ledger):
    ledger.cap(Budget(0.1), table="people", analyst="*")
    with pytest.raises((BudgetExceeded, Mistake)):
        ask(ledger, Pure(0.5), analyst="*")


# Holds.


def test_what_is_set_aside_is_not_for_others_and_its_session_is_never_refused(ledger):
    hold = ledger.reserve(Pure(0.75), "a session", table="people", analyst="ana")
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(0.5), analyst="bob")
    ask(ledger, Pure(0.25), analyst="bob")
    for _ in range(3):
        ask(ledger, Pure(0.25), hold=hold)
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(0.25), hold=hold)


def test_what_a_session_did_not_use_is_given_back(ledger, address):
    hold = ledger.reserve(Pure(0.75), "a session", table="people", analyst="ana")
    assert ledger.holds == {hold: ("people", "ana")}
    ask(ledger, Pure(0.25), hold=hold)
    (balance,) = ledger.balances()
    assert (balance.spent, balance.held, balance.remaining) == (Budget(0.25), Budget(0.5), Budget(0.25))
    with Ledger(address) as other:
        other.close_hold(hold)
    assert ledger.holds == {}
    assert ledger.remaining(table="people") == Budget(0.75)
    with pytest.raises(BadParameter, match=rf"hold {hold} is not open; .*Reserve anew"):
        ask(ledger, Pure(0.25), hold=hold)


def test_closing_a_hold_that_is_closed_or_was_never_there_changes_nothing(ledger):
    hold = ledger.reserve(Pure(0.75), "a session", table="people")
    ledger.close_hold(hold)
    head = ledger.head
    ledger.close_hold(hold)
    ledger.close_hold(99)
    assert ledger.head == head


def test_no_cap_is_set_over_an_open_session_that_it_would_not_count(ledger):
    hold = ledger.reserve(Pure(0.5), "a session", table="people", analyst="ana")
    for scope in ({}, {"analyst": "ana"}, {"analyst": "*"}, {"tables": ("people", "visits")}):
        with pytest.raises(BadParameter, match="Close them first"):
            ledger.cap(Budget(1), **scope)
    ledger.cap(Budget(1), analyst="bob")
    ledger.cap(Budget(1), table="visits")
    ledger.close_hold(hold)
    ledger.cap(Budget(1))


def test_as_many_spends_as_were_set_aside_are_granted_however_they_are_rounded(ledger):
    hold = ledger.reserve(Repeat(Pure(Fraction(1, 7)), 6), "a session", table="people", analyst="ana")
    ask(ledger, Pure(Fraction(1, 7) - Fraction(1, 10**9)), analyst="bob")
    for _ in range(6):
        ask(ledger, Pure(Fraction(1, 7)), hold=hold)


@pytest.mark.parametrize("whose", [{"table": "visits", "analyst": "ana"}, {"table": "people", "analyst": "bob"}])
def test_a_hold_pays_only_for_its_analyst_and_table(ledger, whose):
    ledger.cap(Budget(1, 1e-6), table="visits")
    hold = ledger.reserve(Pure(0.5), "a session", table="people", analyst="ana")
    with pytest.raises(Mistake):
        ledger.spend(Pure(0.01), "somebody else", **whose, hold=hold)


# Saying no.


def test_what_appends_nothing_is_decided_once_and_again_only_if_somebody_has_appended(ledger, address):
    asked = []
    ledger._log.submit(lambda state: asked.append(state.sequence))
    assert asked == [2]
    with Ledger(address) as other:
        ledger._log.submit(lambda state: asked.append(state.sequence) or (len(asked) == 2 and ask(other)))
    assert asked == [2, 2, 3]


def test_a_reader_follows_what_others_append(ledger, address):
    with Ledger(address, create=False) as reader:
        seen = reader.head.sequence
        assert not list(reader.entries(after=seen))
        receipt = ask(ledger)
        assert reader.head == receipt.head
        assert [entry.hash for entry in reader.entries(after=seen)] == [receipt.head.hash]


@pytest.mark.parametrize("error", [float("nan"), float("inf"), -3, 0, "20"])
def test_an_error_that_is_none_is_a_mistake(local, error):
    with pytest.raises(Mistake):
        ask(local, Pure(2), error=error)


def test_a_refusal_says_what_is_needed_what_is_left_and_what_would_fit(ledger):
    ledger.cap(Budget(0.5), table="people", analyst="ana")
    ask(ledger, Pure(0.375))
    head = ledger.head
    with pytest.raises(BudgetExceeded) as refusal:
        ask(ledger, Laplace(2, 1), error=20)
    assert str(refusal.value) == (
        'this needs epsilon 0.5 and 0.12 of 0.5 is left (analyst "ana", table "people").\n'
        "    Ask with error >= 82 instead of 20, or ask the data owner for more."
    )
    assert ledger.head == head


@pytest.mark.parametrize(("spent", "asked", "needed", "left"), [("0.7", 2, "0.5", "0.3"), ("1", 10, "0.1", "0")])
def test_a_refusal_says_numbers_as_people_would(local, spent, asked, needed, left):
    local.cap(Budget(1), table="people", analyst="ana")
    ask(local, Pure(Fraction(spent)))
    with pytest.raises(BudgetExceeded, match=rf"this needs epsilon {needed} and {left} of 1 is left"):
        ask(local, Laplace(asked, 1), error=20)


def test_a_refusal_names_the_cap_that_is_furthest_from_enough(ledger):
    ledger.cap(Budget(0.25), tables=("people", "visits"), analyst="*")
    ledger.cap(Budget(0.5), analyst="ana")
    with pytest.raises(BudgetExceeded, match=r'0\.25 of 0\.25 is left \(analyst "ana", tables "people", "visits"\)'):
        ask(ledger, Pure(2))
    with pytest.raises(BudgetExceeded, match=r'0\.25 of 0\.25 is left \(analyst "bob", tables "people", "visits"\)'):
        ask(ledger, Pure(2), analyst="bob")


def test_a_refusal_when_all_is_spent_says_what_is_still_answered(ledger):
    ask(ledger, Pure(1))
    with pytest.raises(BudgetExceeded) as refusal:
        ask(ledger, Laplace(2, 1), error=20)
    assert str(refusal.value) == (
        'this needs epsilon 0.5 and 0 of 1 is left (table "people").\n'
        "    What is already known is still answered; for anything new, ask the data owner for more."
    )


EVENTS = {
    "pure": [Laplace(1, 1), Selection(Fraction(3, 4)), Repeat(Laplace(10, 1), 7)],
    "gaussian": [Gaussian(4, 1), Laplace(7, 1), Compose((Gaussian(6, 1), Selection(Fraction(1, 9))))],
    "renyi": [DiscreteGaussian(4, 1), Laplace(4, 1), Compose((Gaussian(6, 1), Pure(Fraction(1, 9))))],
}
CAPS = {
    "one cap": [{"table": "people"}],
    "several caps": [{"table": "people"}, {"table": "people", "analyst": "*"}, {"analyst": "ana"}, {}],
}


def nearly_full(ledger, kind, caps):
    """Some of the budget is spent by ana, and some by bob, so that the caps have different rooms."""
    for scope in CAPS[caps]:
        ledger.cap(BUDGETS[kind], **scope)
    part = Pure(Fraction(1, 4)) if kind == "pure" else Gaussian(9, 1)
    ask(ledger, part)
    ask(ledger, part, analyst="bob")


def event_with_error(event, error, other):
    """The event calibrated to another half-width: so many times the noise."""
    return with_more_noise(event, Fraction(other) / error)


@each_kind
@pytest.mark.parametrize("caps", CAPS)
@pytest.mark.parametrize("which", range(3))
def test_the_error_that_a_refusal_offers_is_granted_and_a_smaller_one_is_not(tmp_path, kind, caps, which):
    event, error = EVENTS[kind][which], 1000
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        nearly_full(ledger, kind, caps)
        with pytest.raises(BudgetExceeded) as refusal:
            ask(ledger, event, error=error)
        offered = int(re.search(r"error >= ([\d,]+) instead of 1,000", str(refusal.value))[1].replace(",", ""))
        assert offered > error
        with pytest.raises(BudgetExceeded):
            ask(ledger, event_with_error(event, error, offered * Fraction(99, 100)))
        ask(ledger, event_with_error(event, error, offered))


@pytest.mark.parametrize("spent", ["0.132", "0.804"])
def test_the_factor_that_a_refusal_offers_is_granted(local, spent):
    ask(local, Pure(Fraction(spent)))
    event = Laplace(Fraction(1, 10), 1)
    with pytest.raises(BudgetExceeded) as refusal:
        ask(local, event)
    factor = re.search(r"It would fit with ([\d.]+) times the noise", str(refusal.value))[1]
    ask(local, with_more_noise(event, Fraction(factor)))


def test_what_a_gate_cannot_price_is_refused_and_costs_nothing(ledger):
    head = ledger.head
    with pytest.raises(BudgetExceeded, match=r"a pure gate has no price for Gaussian.*nothing was spent"):
        ask(ledger, Gaussian(1000, 1))
    assert ledger.head == head


# Reports.


def test_what_remains_is_what_is_left_of_the_tightest_cap(ledger):
    ledger.cap(Budget(0.5), table="people", analyst="*")
    ledger.cap(Budget(0.25), analyst="bob")
    assert ledger.remaining(table="people", analyst="ana") == Budget(0.5)
    assert ledger.remaining(table="people", analyst="bob") == Budget(0.25)
    ask(ledger, Pure(0.375))
    assert ledger.remaining(table="people", analyst="ana") == Budget(0.125)
    assert ledger.remaining(table="people", analyst="eve") == Budget(0.5)
    ask(ledger, Pure(0.5), analyst="eve")
    assert ledger.remaining(table="people", analyst="bob") == Budget(0.125)


@each_kind
def test_what_remains_can_be_spent_and_nothing_more(tmp_path, kind):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        nearly_full(ledger, kind, "one cap")
        (balance,) = ledger.balances(table="people", analyst="ana")
        assert balance.cap == BUDGETS[kind]
        assert 0 < balance.share_left < 1
        left = ledger.remaining(table="people", analyst="ana")
        with pytest.raises(BudgetExceeded):
            ask(ledger, spending(left, Fraction(101, 100)))
        ask(ledger, spending(left, Fraction(99, 100)))


def spending(budget, part):
    """One release of nearly a budget."""
    if budget.gate == "pure":
        return Pure(budget.epsilon * part)
    return Gaussian(1, Fraction(mu_of(epsilon=budget.epsilon * part, delta=budget.delta)) ** 2)


@each_kind
@pytest.mark.parametrize("contributions", [1, 3])
def test_as_many_counts_as_are_said_to_be_left_are_granted_and_hardly_one_more(tmp_path, kind, contributions):
    error = {"pure": 300, "gaussian": 90, "renyi": 90}[kind] * contributions
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        nearly_full(ledger, kind, "one cap")
        (balance,) = ledger.balances(table="people", analyst="ana")
        promised = balance.counts_left(error=error, contributions=contributions)
        assert promised > 40
        event = count_event(balance.gate, error=error, confidence=0.95, contributions=contributions)
        for _ in range(promised):
            ask(ledger, event)
        with pytest.raises(BudgetExceeded):
            ask(ledger, Repeat(event, 1 + promised // 50))


@each_kind
def test_a_count_has_the_error_that_it_is_planned_with(kind):
    event = count_event(gate_of(BUDGETS[kind]), error=100, confidence=0.95, contributions=1)
    if kind == "pure":
        # Pr[|k| > t] of discrete Laplace noise of scale s is 2 q^(t+1)/(1 + q), with q = e^(-1/s).
        q = exp(-1 / event.scale)
        missed = 2 * q**101 / (1 + q)
    else:
        missed = 2 * NormalDist(0, float(event.sigma)).cdf(-100.5)
    assert missed == pytest.approx(0.05, rel=0.02)


def test_balances_are_those_of_all_accounts_or_of_one_analyst_or_table(ledger):
    ledger.cap(Budget(0.5), table="people", analyst="*")
    ledger.cap(Budget(1), table="visits")
    ask(ledger, Pure(0.25))
    ask(ledger, Pure(0.125), analyst="bob")
    said = lambda **what: {str(one.scope): float(one.spent.epsilon) for one in ledger.balances(**what)}
    ana, bob = 'analyst "ana", table "people"', 'analyst "bob", table "people"'
    new = {'each analyst, table "people"': 0}
    assert said() == {'table "people"': 0.375, ana: 0.25, bob: 0.125, 'table "visits"': 0} | new
    assert said(table="people") == {'table "people"': 0.375, ana: 0.25, bob: 0.125} | new
    assert said(analyst="bob") == {'table "people"': 0.375, bob: 0.125, 'table "visits"': 0}
    assert said(table="people", analyst="bob") == {'table "people"': 0.375, bob: 0.125}
    assert said(table="people", analyst="eve") == {'table "people"': 0.375, 'analyst "eve", table "people"': 0}


def test_history_tells_every_spend_in_order_with_its_answer(ledger):
    ledger.cap(Budget(1), table="visits")
    first = ask(ledger, key="k")
    second = ledger.spend(Pure(0.5), "how often?", table="visits", analyst="bob")
    ledger.record(second, b"2")
    third = ask(ledger, Selection(Fraction(1, 3)))
    ledger.record(first, b"1")
    told = ledger.history()
    assert [spend.sequence for spend in told] == [first.sequence, second.sequence, third.sequence]
    assert [spend.released for spend in told] == [b"1", b"2", None]
    assert [spend.event for spend in told] == [Laplace(10, 1), Pure(0.5), Selection(Fraction(1, 3))]
    assert [(spend.analyst, spend.table, spend.why, spend.key) for spend in told[:2]] == [
        ("ana", "people", "how many smoke?", "k"),
        ("bob", "visits", "how often?", None),
    ]
    assert [spend.at for spend in told] == [first.at, second.at, third.at]
    assert ledger.history(table="visits") == ledger.history(analyst="bob") == told[1:2]


def test_a_receipt_and_the_head_are_proofs_that_stay_valid(ledger, address):
    receipt = ask(ledger)
    assert receipt.head == ledger.head
    assert Head.parse(str(receipt.head)) == receipt.head
    for _ in range(3):
        ask(ledger)
    assert ledger.head.sequence == receipt.sequence + 3
    assert verify(address, head=receipt.head, prices=True).head == ledger.head
    with pytest.raises(LedgerDamaged, match="the head that you kept"):
        verify(address, head=receipt.head._replace(hash=bytes(32)))


def test_an_audit_counts_what_there_is(ledger, address):
    ledger.record(ask(ledger), b"1")
    ask(ledger)
    told = []
    audit = verify(address, prices=True, progress=told.append)
    assert (audit.entries, audit.spends, audit.answered) == (5, 2, 1)
    assert told == [1, 2, 3, 4, 5]


# Time.


def test_time_never_runs_backwards_even_when_the_clock_is_set_back(ledger, address, monkeypatch):
    class SetBack(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime(2001, 1, 1, tzinfo=UTC)

    before = ask(ledger)
    monkeypatch.setattr(store, "datetime", SetBack)
    with Ledger(address) as reopened:
        times = [before.at, ask(ledger).at, ask(reopened).at]
    monkeypatch.undo()
    times.append(ask(ledger).at)
    assert times == sorted(times)
    assert times[1] == times[2] == before.at


def test_an_entry_says_when_it_was_written(ledger):
    at = datetime.fromisoformat(ask(ledger).at)
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=10)


# Caps.


def last(ledger):
    return json.loads(list(ledger.entries())[-1].body)


def test_a_raise_is_logged_with_who_and_when_and_is_granted_from_then_on(ledger, address):
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(1.5))
    ledger.raise_cap(Budget(2), table="people", by="the board")
    said = last(ledger)
    assert (said["is"], said["owner"], said["epsilon"], said["tables"]) == ("raise", "the board", "2", ["people"])
    assert abs(datetime.now(UTC) - datetime.fromisoformat(said["at"])) < timedelta(minutes=10)
    ask(ledger, Pure(1.5))
    with Ledger(address) as reopened:
        assert reopened.remaining(table="people") == Budget(0.5)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Budget(1), Budget(0.5)),
        (Budget(1, 1e-6), Budget(0.5, 1e-6)),
        (Budget(1, 1e-6), Budget(1, 1e-9)),
        (Budget(1, 1e-6), Budget(2, 1e-9)),
        (Budget(1, 1e-6), Budget(1, 1e-6, "renyi")),
        (Budget(1), Budget(2, 1e-6)),
    ],
)
def test_a_cap_is_not_lowered_nor_counted_otherwise(local, before, after):
    local.cap(before, table="visits")
    head = local.head
    with pytest.raises(BadParameter, match="What was released cannot be taken back"):
        local.raise_cap(after, table="visits")
    assert local.head == head


def test_setting_the_same_cap_again_changes_nothing_and_another_is_refused(ledger):
    ledger.cap(Budget(1), tables=("visits", "people"))
    head = ledger.head
    ledger.cap(Budget(1), table="people")
    ledger.cap(Budget(1), tables=("people", "visits", "people"))
    with pytest.raises(BadParameter, match="To raise it"):
        ledger.cap(Budget(2), table="people")
    assert ledger.head == head


@pytest.mark.parametrize("scope", [{}, {"analyst": "ana"}, {"analyst": "*"}, {"tables": ("people", "visits")}])
def test_a_new_cap_counts_what_was_spent_and_is_refused_below_that(ledger, scope):
    ask(ledger, Pure(0.75))
    head = ledger.head
    with pytest.raises(BadParameter, match=r"more than epsilon 0\.5 was spent already"):
        ledger.cap(Budget(0.5), **scope)
    assert ledger.head == head
    ledger.cap(Budget(0.875), **scope)
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(0.25))
    ask(ledger, Pure(0.125))


def test_a_new_cap_counts_in_its_own_currency_and_refuses_what_it_cannot_price(ledger):
    ledger.cap(Budget(1, 1e-6, "renyi"), table="visits")
    ledger.spend(DiscreteGaussian(100, 1), "how often?", table="visits", analyst="ana")
    head = ledger.head
    with pytest.raises(BadParameter, match="a gaussian gate has no price for DiscreteGaussian"):
        ledger.cap(Budget(1, 1e-6), analyst="ana")
    assert ledger.head == head


def test_a_cap_that_is_set_while_others_spend_counts_them_all(ledger, address):
    together(ledger, lambda: ask(ledger, Pure(0.75)), lambda: ledger.cap(Budget(0.8), analyst="ana"))
    verify(address)
    with pytest.raises(BudgetExceeded):
        ask(ledger, Pure(0.25))


# Versions.


def appended(address, fields):
    """One more entry, chained as it should be, by a program of another version."""
    with Ledger(address) as ledger:
        head = ledger.head
        entry = chained(head.hash, head.sequence + 1, Draft(fields))
        key, records = index_columns(fields)
        run(
            address,
            "INSERT INTO discreet_ledger (sequence, body, released, key, records, hash) "
            "VALUES (:sequence, :body, :released, :key, :records, :hash)",
            {**entry._asdict(), "key": key, "records": records},
        )


def run(address, statement, values=None):
    if "://" in address:
        engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    else:
        engine = sa.create_engine(sa.URL.create("sqlite", database=address))
    with engine.begin() as connection:
        result = connection.execute(sa.text(statement), values or {})
        rows = result.fetchall() if result.returns_rows else []
    engine.dispose()
    return rows


NOW = {"at": "2026-01-01T00:00:00.000+00:00", "by": "x"}


@pytest.mark.parametrize(
    "fields",
    [
        {"is": "pardon", **NOW},
        {"is": "open", **NOW, "ledger": "again", "format": FORMAT},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana"},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"pure": [-1]}},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"pure": [1.5]}},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"pure": []}},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"gaussian": [1]}},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"new": [1], "pure": [1]}},
        {"is": "spend", **NOW, "table": "people", "analyst": "ana", "charge": {"pure": [1]}, "hold": 2},
        {"is": "raise", **NOW},
        {},
    ],
    ids=lambda fields: json.dumps({key: fields[key] for key in fields if key not in NOW})[:60],
)
def test_an_entry_that_this_program_does_not_understand_is_refused(ledger, address, fields):
    appended(address, fields)
    with pytest.raises(LedgerDamaged, match="entry 3 "):
        Ledger(address)
    with pytest.raises(LedgerDamaged, match="entry 3 "):
        ask(ledger)


def begin_with(address, format):
    """A ledger whose first entry says that it has this format."""
    Ledger(address).close()
    forget_everything(address)
    first = chained(bytes(32), 1, Draft({"is": "open", **NOW, "ledger": "x", "format": format}))
    run(
        address,
        "INSERT INTO discreet_ledger (sequence, body, hash) VALUES (1, :body, :hash)",
        {"body": first.body, "hash": first.hash},
    )


@pytest.mark.parametrize(
    ("format", "who"),
    [(FORMAT + 1, "A newer discreet wrote it: upgrade discreet"), (1, "An older discreet wrote it, in other ticks: ")],
)
def test_a_ledger_of_another_format_is_refused_and_the_message_says_who_wrote_it(address, format, who):
    begin_with(address, format)
    for read in (Ledger, verify):
        with pytest.raises(LedgerFailed, match=rf"have format {format} and this program knows {FORMAT}\. {who}"):
            read(address)


@pytest.mark.parametrize("format", [None, "2", 2.0, True])
def test_a_format_that_is_no_number_is_damage(address, format):
    begin_with(address, format)
    for read in (Ledger, verify):
        with pytest.raises(LedgerDamaged, match="entry 1 "):
            read(address)


def forget_everything(address):
    if "://" in address:
        run(address, "ALTER TABLE discreet_ledger DISABLE TRIGGER ALL")
    else:
        run(address, "DROP TRIGGER discreet_ledger_delete")
        Path(f"{address}.head").unlink()
    run(address, "DELETE FROM discreet_ledger")


def step(*statements):
    """A further step of the tables, the same in all databases."""
    return {"sqlite": statements, "postgresql": statements}


def test_a_ledger_is_brought_to_a_newer_version_in_its_place_and_keeps_its_entries(ledger, address, monkeypatch):
    receipt = ask(ledger, key="k")
    ledger.record(receipt, b"1207")
    before = list(ledger.entries())
    ledger.close()
    newer = (*MIGRATIONS, step("ALTER TABLE discreet_ledger ADD COLUMN note TEXT"))
    monkeypatch.setattr("discreet.ledger.connection.MIGRATIONS", newer)
    with Ledger(address) as upgraded:
        assert list(upgraded.entries()) == before
        assert ask(upgraded, key="k").released == b"1207"
        ask(upgraded)
    assert run(address, "SELECT version FROM discreet_ledger_version") == [(2,)]
    assert run(address, "SELECT note FROM discreet_ledger WHERE sequence = 1") == [(None,)]
    monkeypatch.undo()
    with pytest.raises(LedgerFailed, match=r"has format 2 and this program knows 1\. Upgrade discreet"):
        Ledger(address)
    with pytest.raises(LedgerFailed, match="Upgrade discreet"):
        verify(address)


def test_a_step_that_fails_leaves_the_ledger_as_it_was(ledger, address, monkeypatch):
    ask(ledger)
    head = ledger.head
    ledger.close()
    broken = step("ALTER TABLE discreet_ledger ADD COLUMN note TEXT", "ALTER TABLE not_there ADD COLUMN note TEXT")
    monkeypatch.setattr("discreet.ledger.connection.MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(LedgerFailed):
        Ledger(address)
    monkeypatch.undo()
    assert run(address, "SELECT version FROM discreet_ledger_version") == [(1,)]
    with Ledger(address) as ledger:
        assert ledger.head == head
        ask(ledger)


# Places.


def test_a_ledger_that_is_not_there_is_not_made_unless_asked(address):
    with pytest.raises(BadParameter, match="there is no ledger"):
        Ledger(address, create=False)
    with pytest.raises(BadParameter, match="there is no ledger"):
        verify(address)
    if "://" not in address:
        assert not os.path.exists(address)


def test_a_new_file_is_for_its_owner_only(tmp_path):
    mask = os.umask(0)
    try:
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            ledger.cap(Budget(1), table="people")
            modes = {file.name: S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(mask)
    assert {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite.head"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_sqlite_forces_every_commit_to_the_disk(local):
    pragma = lambda name: local._log.store._run(f"PRAGMA {name}").fetchone()[0]
    ask(local)
    assert pragma("journal_mode") == "wal"
    # 2 is FULL: the log is synchronised at every commit.
    assert pragma("synchronous") == 2


def test_a_closed_ledger_is_one_file_and_its_head(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.cap(Budget(1), table="people")
        ask(ledger)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ledger.sqlite", "ledger.sqlite.head"]
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM discreet_ledger").fetchone() == (3,)


def test_a_head_can_lie_elsewhere(tmp_path, address):
    kept = tmp_path / "elsewhere.head"
    with Ledger(address, head=kept) as ledger:
        ledger.cap(Budget(1), table="people")
        ask(ledger)
        assert Head.parse(kept.read_text()) == ledger.head
    if "://" not in address:
        assert not os.path.exists(f"{address}.head")


def test_all_charges_are_whole_ticks_and_none_is_below_the_price(ledger):
    for event in (Laplace(7, 1), Pure(Fraction(1, 1009)), Selection(Fraction(1, 77))):
        ask(ledger, event)
        (ticks,) = last(ledger)["charge"]["pure"]
        price = event.sensitivity / event.scale if isinstance(event, Laplace) else event.epsilon
        assert price <= ticks * TICK < price + TICK
