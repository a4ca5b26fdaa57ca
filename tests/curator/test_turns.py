"""Several people at one desk: one pays at a time, what is known is told meanwhile, and each sees their own account."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep

import numpy as np
import pytest

import discreet as dp
from discreet.curator import executor
from discreet.errors import BadParameter, BudgetExceeded

PEOPLE = dp.Domain({"age": dp.Integers(0, 9), "sex": dp.Categories(["f", "m"], outside="drop")})
BUDGET = dp.Budget(epsilon=5, delta=1e-9)


def people():
    return dp.open({"age": np.arange(1000) % 10, "sex": np.array(["f", "m"])[np.arange(1000) % 2]}, domain=PEOPLE)


class Slow:
    """Stands before a source: a reading says that it has begun, and waits until it may end."""

    def __init__(self, table):
        self.begun, self.may_end, self.reading = Event(), Event(), table.source.evaluate
        table.source.evaluate = self

    def __call__(self, question):
        self.begun.set()
        assert self.may_end.wait(20)
        return self.reading(question)


@pytest.fixture
def desk(tmp_path):
    with dp.Curator(people(), budget=BUDGET, ledger=tmp_path / "budget.sqlite", analyst="ana") as found:
        found.ask("SELECT age, COUNT(*) FROM data GROUP BY age", error=30)
        yield found


def test_what_is_known_is_told_while_somebody_reads(desk):
    slow = Slow(desk.table)
    with ThreadPoolExecutor(2) as crowd:
        paying = crowd.submit(desk.ask, "sex = 'f'", error=20)
        assert slow.begun.wait(20)
        assert desk.ask("age >= 5", error=200).origin == "known"
        assert desk.plan("sex = 'm' AND age >= 3", error=20).fits
        assert [free.columns for free in desk.known()] == [("age",)]
        assert not paying.done()
        slow.may_end.set()
        assert paying.result(20).origin == "measured"


def test_two_who_want_the_same_pay_once(desk):
    slow = Slow(desk.table)
    spends = len(desk.history())
    with ThreadPoolExecutor(2) as crowd:
        first = crowd.submit(desk.ask, "sex = 'f'", error=20)
        assert slow.begun.wait(20)
        second = crowd.submit(desk.ask, "sex = 'f'", error=20)
        slow.may_end.set()
        assert {first.result(20).origin, second.result(20).origin} == {"measured", "known"}
        assert first.result().value == second.result().value
    assert len(desk.history()) == spends + 1


def looked(desk, question, *, wait=False, **accuracy):
    """The answer if it is known, and None if it must be paid for."""
    found = desk.look(desk.prepare(question, **accuracy), wait=wait)
    return found if isinstance(found, dp.Answer) else None


def test_a_look_never_pays_and_waits_only_if_told(desk, tmp_path):
    assert looked(desk, "age >= 5", error=200).origin == "known"
    assert looked(desk, "sex = 'f'", error=200) is None
    assert looked(desk, "sex = 'f'", epsilon=0.1) is None
    with pytest.raises(BadParameter, match="error is 0"):
        looked(desk, "age >= 5", error=0)
    with dp.Curator(people(), ledger=tmp_path / "budget.sqlite") as other:
        other.ask("sex = 'f'", error=20)
    # Another process has spent: what is known here is not all of it, and to read it takes time.
    assert looked(desk, "age >= 5", error=200) is None
    assert looked(desk, "age >= 5", error=200, wait=True).origin == "known"
    assert looked(desk, "sex = 'f' AND age >= 5", error=20, wait=True) is None
    assert looked(desk, "sex = 'f'", error=20).origin == "known"


def test_a_desk_is_seen_by_each_with_their_own_account(desk):
    desk.ledger.cap(dp.Budget(epsilon=0.05, delta=1e-9), table="data", analyst="ben")
    ben = desk.seen_by("ben")
    assert (desk.analyst, ben.analyst) == ("ana", "ben")
    assert ben.remaining.epsilon <= 0.05 < desk.remaining.epsilon
    assert ben.ask("age >= 5", error=200).remaining == ben.remaining
    assert desk.ask("age >= 5", error=200).remaining == desk.remaining
    assert not ben.plan("sex = 'f'", error=5).fits
    assert desk.plan("sex = 'f'", error=5).fits
    with pytest.raises(BudgetExceeded, match='analyst "ben"'):
        desk.ask("sex = 'f'", error=5, analyst="ben")
    assert desk.ask("sex = 'f'", error=5).origin == "measured"
    assert ben.ask("sex = 'f'", error=5).origin == "known"


def test_reading_takes_a_quantum_and_what_is_known_does_not(tmp_path):
    with dp.Curator(people(), budget=BUDGET, ledger=tmp_path / "budget.sqlite", quantum=0.25) as desk:
        begun = monotonic()
        desk.ask("sex = 'f'", error=20)
        assert monotonic() - begun >= 0.25
        begun = monotonic()
        desk.ask("sex = 'f'", error=20)
        assert monotonic() - begun < 0.2


def test_what_was_read_is_known_to_nobody_before_the_quantum_is_over(tmp_path, monkeypatch):
    with dp.Curator(people(), budget=BUDGET, ledger=tmp_path / "budget.sqlite", quantum=0.01) as desk:
        early = []

        def wait(seconds):
            early.append(looked(desk, "sex = 'f'", error=20, wait=True))
            sleep(seconds)

        monkeypatch.setattr(executor, "sleep", wait)
        assert desk.ask("sex = 'f'", error=20).origin == "measured"
        assert early == [None]


@pytest.mark.parametrize("quantum", [-1, "fast", float("nan")])
def test_a_quantum_that_makes_no_sense_is_refused(tmp_path, quantum):
    with pytest.raises(BadParameter, match="quantum is"):
        dp.Curator(people(), budget=BUDGET, ledger=tmp_path / "budget.sqlite", quantum=quantum)
