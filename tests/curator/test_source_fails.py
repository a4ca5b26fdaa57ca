"""A source that is away: refused unpaid. One that fails after the payment: charged, said so, repeated for nothing."""

import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.accounting.event import Nothing
from discreet.lab.textbook.mwem import mwem
from discreet.ledger import Ledger
from discreet.ledger.history import FAILED
from discreet.source.engines.engine import Engine

BUDGET = dp.Budget(epsilon=1, delta=1e-9)
DOMAIN = dp.Domain({"age": dp.Integers(0, 9), "sex": dp.Categories(["F", "M"])})


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": [1, 2, 3] * 400, "sex": ["F", "M", "F"] * 400}), path)
    return path


@pytest.fixture
def table(people):
    return dp.open(people, schema=dp.Schema("people", DOMAIN))


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(BUDGET, table="people")
        yield ledger


@pytest.fixture
def away(people):
    def go():
        os.rename(people, f"{people}.away")

    return go


@pytest.fixture
def back(people):
    def come():
        os.rename(f"{people}.away", people)

    return come


def breaking(monkeypatch, times=1):
    """An engine that fails when rows are asked for, so many times: after the payment, that is."""
    left, real = [times], Engine.cells

    def cells(self, columns):
        if left[0]:
            left[0] -= 1
            raise ConnectionError("a row: CANARY")
        return real(self, columns)

    def asked(self, columns):
        with self._asking():
            yield from cells(self, columns)

    monkeypatch.setattr(Engine, "cells", asked)


def spent(ledger):
    return [spend for spend in ledger.history() if spend.event != Nothing()]


# Everything that pays, and what it is called with: a desk, a table, a ledger and a key.
PAYING = {
    "ask": lambda desk, table, ledger, key: desk.ask("age >= 2", error=100, key=key),
    "ask_many": lambda desk, table, ledger, key: desk.ask_many(["age >= 2", "age >= 3"], error=100, key=key),
    "release": lambda desk, table, ledger, key: desk.release(
        dp.marginals(DOMAIN, 1), budget=dp.Budget(epsilon=0.1, delta=1e-9), key=key
    ),
    "mwem": lambda desk, table, ledger, key: mwem(
        table, list(dp.conjunctions(DOMAIN, 1))[:2], epsilon=0.1, rounds=1, ledger=ledger, key=key
    ),
    "k-means": lambda desk, table, ledger, key: dp.KMeans(2, epsilon=0.1, columns=["age"], ledger=ledger, key=key).fit(
        table
    ),
    "PMW": lambda desk, table, ledger, key: dp.PMW(table, ledger=ledger, name="one", epsilon=0.3, updates=2).ask(
        "age >= 2"
    ),
}


@pytest.mark.parametrize("how", PAYING)
def test_seven_requests_while_the_source_is_away_cost_nothing(how, table, ledger, away, back):
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    away()
    for place in range(7):
        with pytest.raises(dp.SourceUnavailable, match="nothing was charged"):
            PAYING[how](desk, table, ledger, f"{how} {place}")
    assert spent(ledger) == []
    assert ledger.remaining(table="people").epsilon == 1
    back()
    PAYING[how](desk, table, ledger, f"{how} 0")
    assert spent(ledger) != []


@pytest.mark.parametrize("how", PAYING)
def test_a_source_that_was_replaced_is_refused_and_nothing_is_charged(how, table, ledger, people):
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    pq.write_table(pa.table({"age": [1, 2, 3] * 900, "sex": ["F", "M", "F"] * 900}), people)
    with pytest.raises((dp.SourceFailed, dp.TableChanged), match=r"(?i)nothing was charged"):
        PAYING[how](desk, table, ledger, how)
    assert spent(ledger) == []


def test_a_one_off_answer_is_refused_before_noise_is_drawn(table, away):
    away()
    with pytest.raises(dp.SourceUnavailable, match="nothing was charged"):
        dp.count(table, "age >= 2", epsilon=0.1)


@pytest.mark.parametrize("how", ["ask", "mwem", "k-means"])
def test_a_source_that_fails_after_the_payment_says_so_and_its_key_is_used_again_for_nothing(
    how, table, ledger, monkeypatch
):
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    if how == "k-means":
        failing = [True]
        real = Engine._points

        def points(self, question):
            with self._asking():
                if failing and failing.pop():
                    raise ConnectionError("a row: CANARY")
            return real(self, question)

        monkeypatch.setattr(Engine, "_points", points)
    else:
        breaking(monkeypatch)
    with pytest.raises(dp.SourceFailed, match=r'charged all the same \(entry \d+.*same key "one"') as caught:
        PAYING[how](desk, table, ledger, "one")
    assert "CANARY" not in str(caught.value)
    assert "nothing was charged" not in str(caught.value).lower()
    (paid,) = spent(ledger)
    assert paid.released is None
    left = ledger.remaining(table="people")
    PAYING[how](desk, table, ledger, "one")
    assert ledger.remaining(table="people") == left, "the payment that was left over has paid"
    assert spent(ledger) == [paid]
    assert [spend.released is not None for spend in ledger.history() if spend.key == "one"] == [False, True]
    entries = ledger.head.sequence
    PAYING[how](desk, table, ledger, "one")
    assert ledger.head.sequence == entries, "and now it is answered from what was kept"
    with pytest.raises(dp.KeyReused):
        ledger.spend(paid.event, "another question", table=ledger.tables["people"], key="one")


def test_a_request_without_a_key_is_charged_and_told_so(table, ledger, monkeypatch):
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    breaking(monkeypatch)
    with pytest.raises(dp.SourceFailed, match=r"charged all the same .*a request with a key"):
        desk.ask("age >= 2", error=100)
    assert len(spent(ledger)) == 1


def test_it_may_fail_many_times_and_is_paid_once(table, ledger, monkeypatch):
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    breaking(monkeypatch, times=3)
    with pytest.raises(dp.SourceFailed, match="It was charged"):
        desk.ask("age >= 2", error=100, key="one")
    for _ in range(2):
        with pytest.raises(dp.SourceFailed, match="Nothing more was charged"):
            desk.ask("age >= 2", error=100, key="one")
    desk.ask("age >= 2", error=100, key="one")
    assert len(spent(ledger)) == 1


def laplace(scale=100):
    from discreet.accounting import Laplace

    return Laplace(scale=scale, sensitivity=1)


def test_one_payment_has_one_answer_however_often_it_is_repeated(ledger):
    """Of any number of repetitions at once, one may draw; the others are told to wait, or get its answer."""
    first = ledger.spend(laplace(), "count", table="people", key="one")
    left = ledger.remaining(table="people")
    ledger.record(first, FAILED)
    outcomes: list[object] = []

    def repeat():
        try:
            outcomes.append(ledger.spend(laplace(), "count", table="people", key="one"))
        except dp.AnswerLost as error:
            outcomes.append(error)

    threads = [threading.Thread(target=repeat) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (drawing,) = [one for one in outcomes if not isinstance(one, dp.AnswerLost)]
    assert drawing.is_repeated
    assert drawing.released is None
    ledger.record(drawing, b"7")
    again = ledger.spend(laplace(), "count", table="people", key="one")
    assert (again.released, again.sequence) == (b"7", drawing.sequence)
    assert ledger.remaining(table="people") == left


def test_another_event_under_a_failed_key_is_paid_in_full(ledger):
    """What is known may have changed meanwhile, and with it what is measured for the same question."""
    first = ledger.spend(laplace(100), "count", table="people", key="one", body=b"the question")
    ledger.record(first, FAILED)
    dearer = ledger.spend(laplace(50), "count", table="people", key="one", body=b"the question")
    assert not dearer.is_repeated
    assert [spend.event for spend in spent(ledger)] == [laplace(100), laplace(50)]
    ledger.record(dearer, FAILED)
    assert ledger.spend(laplace(50), "count", table="people", key="one", body=b"the question").is_repeated
    with pytest.raises(dp.KeyReused):
        ledger.spend(laplace(50), "count", table="people", key="one", body=b"another")


def test_another_table_does_not_use_what_was_paid_for_this_one(ledger):
    ledger.cap(BUDGET, table="visits")
    first = ledger.spend(laplace(), "count", table="people", key="one", body=b"the question")
    ledger.record(first, FAILED)
    with pytest.raises(dp.KeyReused):
        ledger.spend(laplace(), "count", table="visits", key="one", body=b"the question")
    assert len(spent(ledger)) == 1


def test_a_crash_is_still_a_lost_answer(ledger):
    first = ledger.spend(laplace(), "count", table="people", key="one")
    with pytest.raises(dp.AnswerLost):
        ledger.spend(laplace(), "count", table="people", key="one")
    ledger.record(first, FAILED)
    ledger.spend(laplace(), "count", table="people", key="one")
    with pytest.raises(dp.AnswerLost):
        ledger.spend(laplace(), "count", table="people", key="one")


def test_a_ledger_with_failures_opens_again_and_is_whole(tmp_path, ledger):
    from discreet.ledger.audit import verify

    first = ledger.spend(laplace(), "count", table="people", key="one")
    ledger.record(first, FAILED)
    ledger.record(ledger.spend(laplace(), "count", table="people", key="one"), b"7")
    left = ledger.remaining(table="people")
    with dp.Ledger(tmp_path / "budget.sqlite") as again:
        assert again.remaining(table="people") == left
        assert again.spend(laplace(), "count", table="people", key="one").released == b"7"
    assert verify(tmp_path / "budget.sqlite", prices=True).spends == 2


def test_a_request_that_failed_under_an_older_form_of_its_body_is_not_paid_again(ledger):
    ledger.cap(BUDGET, table="people")
    for body, older in ((b"then", ()), (b"now", (b"then",)), (b"now", (b"then",))):
        receipt = ledger.spend(laplace(), "count", table="people", key="one", body=body, older=older)
        assert receipt.is_repeated == (body == b"now")
        ledger.record(receipt, FAILED)
    assert sum(not isinstance(spend.event, Nothing) for spend in ledger.history()) == 1
    with pytest.raises(dp.KeyReused):
        ledger.spend(laplace(), "count", table="people", key="one", body=b"another")


def test_several_steps_of_one_payment_read_one_state(table, ledger, people, monkeypatch):
    """A file that is replaced between two steps: nothing is drawn from either."""
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    drawn = []
    real = Engine.cells

    def cells(self, columns):
        yield from real(self, columns)
        pq.write_table(pa.table({"age": [1], "sex": ["F"]}), people)

    monkeypatch.setattr(Engine, "cells", cells)
    right = Ledger.record

    def record(self, receipt, released, **named):
        if released != FAILED:
            drawn.append(released)
        return right(self, receipt, released, **named)

    monkeypatch.setattr(Ledger, "record", record)
    with pytest.raises(dp.SourceFailed, match=r"while it was read.*charged all the same"):
        desk.ask_many(["age >= 2", "sex = 'F'"], error=100)
    assert drawn == []


@pytest.mark.parametrize("how", ["ask", "mwem", "k-means"])
def test_a_file_that_is_written_while_it_is_read_is_charged_and_its_key_is_used_again(how, table, ledger, monkeypatch):
    """That is seen when everything was read, and is a failure of the source as any other."""
    desk = dp.Curator(table, budget=BUDGET, ledger=ledger)
    real, looks = Engine._require_same_file, [0]

    def written_at_the_second_look(self):
        looks[0] += bool(spent(ledger))
        if looks[0] == 2:
            raise ConnectionError("a row: CANARY")
        return real(self)

    monkeypatch.setattr(Engine, "_require_same_file", written_at_the_second_look)
    with pytest.raises(dp.SourceFailed, match=r'charged all the same \(entry \d+.*same key "one"') as caught:
        PAYING[how](desk, table, ledger, "one")
    assert "CANARY" not in str(caught.value)
    left = ledger.remaining(table="people")
    PAYING[how](desk, table, ledger, "one")
    assert ledger.remaining(table="people") == left, "the payment that was left over has paid"
