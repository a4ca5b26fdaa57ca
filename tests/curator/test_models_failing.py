"""Nothing is owed at any time: whatever fails, and whenever, no more hits are seen than were paid."""

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.ledger import Budget, Ledger
from discreet.ledger.audit import verify
from discreet.ledger.ledger import ANYONE
from discreet.ledger.transaction import record_of
from support.failing_ledger import (
    ERRORS,
    LARGE,
    READS,
    SMALL,
    TERMS,
    WRITES,
    Down,
    FailingLedger,
    Fault,
    ask,
    begun,
    hits_of,
    scripted,
    shortfall,
)
from support.model_sessions import ERROR, SURE, Desk, conjunctions, copy_of, use_up
from support.processes import apart, in_processes

QUESTIONS = conjunctions(16, seed=40)
# Of these the middle ones are tossed while something fails, sooner or later.
TOSSES = [False, True, True, False, True, False, True, True]


@pytest.fixture(scope="module")
def with_session(tmp_path_factory):
    address = tmp_path_factory.mktemp("session") / "ledger.sqlite"
    begun(address)
    return address


def failed_session(address, fault, tosses=TOSSES, *, crash=False):
    """A session with one fault; then the ledger is mended, and the rest is asked of another curator."""
    with scripted(tosses) as now:
        desk = Desk(SMALL, address, ledger=FailingLedger)
        desk.ledger.fault = fault
        seen = [ask(desk, question, now) for question in QUESTIONS[:6]]
        try:
            if not crash:
                desk.close()
        except (Exception, KeyboardInterrupt) as error:
            seen.append(type(error).__name__)
        desk.ledger.fault = Fault()
        desk.ledger.close()
        with Desk(SMALL, address) as again:
            seen += [ask(again, question, now) for question in QUESTIONS[6:9]]
        lacking, paid = shortfall(address, now)
    return lacking, now, paid, seen


def fresh(address, folder):
    """A ledger of one's own, with the same entries, and nothing beside it."""
    own = folder / uuid4().hex
    own.mkdir()
    return copy_of(address, own)


def calls_of(address, tmp_path, calls):
    """How many calls a session makes that does not fail."""
    fault = Fault(calls=calls)
    lacking, *_ = failed_session(fresh(address, tmp_path), fault)
    assert lacking == []
    return fault.count


def every_fault(address, tmp_path, *, calls=WRITES, errors=ERRORS, after=(False, True), lasting=(False, True)):
    """A session for each call that may fail: how many faults there were, how many hits were seen and paid."""
    faults = seen = paid = 0
    for at in range(1, calls_of(address, tmp_path, calls) + 1):
        for error, late, long, crash in product(errors, after, lasting, (False, True)):
            fault = Fault(at, error, after=late, lasting=long, calls=calls)
            lacking, now, settled, _ = failed_session(fresh(address, tmp_path), fault, crash=crash)
            assert lacking == [], (at, error, late, long, crash)
            faults, seen, paid = faults + fault.fired, seen + now.heads.total(), paid + settled
    return faults, seen, paid


def test_a_ledger_whose_every_write_fails_in_turn_is_owed_nothing(with_session, tmp_path):
    faults, seen, paid = every_fault(with_session, tmp_path, errors=(Down,), lasting=(True,))
    assert seen <= paid
    # The test is worth something: there were faults, and hits were seen.
    assert faults > 20 < seen


@pytest.mark.long
def test_whatever_fails_and_however_nothing_is_owed(with_session, tmp_path, capsys):
    found = [every_fault(with_session, tmp_path)]
    found.append(every_fault(with_session, tmp_path, calls=(*WRITES, *READS, "stakes"), after=(False,)))
    faults, seen, paid = map(sum, zip(*found, strict=True))
    with capsys.disabled():
        print(f"\n{faults:,} faults; {seen:,} hits seen, {paid:,} paid")
    assert seen <= paid


def test_the_fault_itself_is_never_a_hit_that_nobody_paid(with_session, tmp_path):
    """The disk is full, and an analyst asks again and again: a pass is answered, a hit is an error."""
    address = fresh(with_session, tmp_path)
    with scripted([False, *[True] * 20]) as now, Desk(SMALL, address, ledger=FailingLedger) as desk:
        assert ask(desk, QUESTIONS[0], now) == "model"
        desk.ledger.fault = Fault(1, lasting=True)
        seen = [ask(desk, question, now) for question in QUESTIONS[1:12]]
        assert seen == ["Down"] * 11
        # One stake was there, so one hit could be seen; without another no coin is tossed.
        assert (now.tosses, now.heads.total()) == (2, 1)
        desk.ledger.fault = Fault()
    assert shortfall(address, now) == ([], 1)


# --- Stakes ----------------------------------------------------------------------------------------------------------


def ticks(ledger, analyst=ANYONE):
    return [account.total_ticks for account in ledger.balances(table="data", analyst=analyst)]


def test_a_stake_of_passes_is_given_back_and_one_that_may_have_hit_is_paid(with_session, tmp_path):
    address = fresh(with_session, tmp_path)
    with Ledger(address) as owner:
        before = ticks(owner)
        with scripted([False] * 3) as now, Desk(SMALL, address) as desk:
            assert {ask(desk, question, now) for question in QUESTIONS[:3]} == {"model"}
            assert len(owner.stakes) == 1
            assert ticks(owner) != before
        assert ticks(owner) == before
        with scripted([True]) as now, Desk(SMALL, address, ledger=FailingLedger) as desk:
            desk.ledger.fault = Fault(2)
            assert ask(desk, QUESTIONS[0], now) == "Down"
        assert not owner.holds
        (paid,) = [spend for spend in owner.history() if hits_of(spend.event)]
        assert paid.event.events[0] == TERMS.coin.hit


def test_an_owner_who_closes_the_stake_of_a_crashed_curator_pays_it(with_session, tmp_path):
    address = fresh(with_session, tmp_path)
    with scripted([False]) as now, Ledger(address) as owner:
        crashed = Desk(SMALL, address)
        ask(crashed, QUESTIONS[0], now)
        crashed.ledger.close()
        (stake,) = owner.stakes
        before = ticks(owner)
        owner.close_hold(stake)
        assert ticks(owner) == before
        assert not owner.holds
        verify(address, prices=True)
        # A cap that comes later counts it.
        owner.cap(LARGE, table="data", analyst="*")
        assert ticks(owner)[0] == ticks(owner)[1]


def test_an_owner_who_closes_the_stake_of_a_running_curator_pays_for_its_next_hit(with_session, tmp_path):
    address = fresh(with_session, tmp_path)
    with scripted([False, True, True]) as now, Ledger(address) as owner, Desk(SMALL, address) as desk:
        ask(desk, QUESTIONS[0], now)
        for stake in owner.stakes:
            owner.close_hold(stake)
        for question in QUESTIONS[1:3]:
            ask(desk, question, now)
    assert shortfall(address, now) == ([], 3)


def test_a_source_that_fails_before_the_toss_is_not_paid_for(with_session, tmp_path, monkeypatch):
    address = fresh(with_session, tmp_path)
    with scripted([False]) as now, Desk(SMALL, address) as desk, Ledger(address) as owner:
        before = ticks(owner)
        with monkeypatch.context() as patch:
            patch.setattr(type(desk.table), "evaluate", _away)
            assert ask(desk, QUESTIONS[0], now) == "OSError"
        assert now.tosses == 0
        assert ask(desk, QUESTIONS[0], now) == "model"
        desk._models.close()
        assert ticks(owner) == before


def _away(*_):
    raise OSError("the file is away")


def test_a_stake_is_compared_with_the_session_that_tosses(tmp_path):
    """A worker has a stake of a cheap session; the one that there is now has a hit that costs sixteen times as much."""
    address = tmp_path / "ledger.sqlite"
    dear, cheap = TERMS, replace(TERMS, error=4 * TERMS.error)
    begun(address, terms=cheap)
    with scripted([False, *[True] * 5]) as now, Desk(SMALL, address) as one, Desk(SMALL, address) as two:
        now.analyst = ANYONE
        assert one.ask(QUESTIONS[0], error=4 * ERROR, confidence=SURE).origin == "model"
        assert two.session == cheap
        two._executor.note(dear, dear.coin.opening, "a dearer session", analyst=ANYONE)
        use_up(two)
        seen = {ask(one, question, now) for question in QUESTIONS[1:]}
        assert now.heads.total() == 0
        # What the cheap stake gives back is enough for measurements, and not for a hit.
        assert seen <= {"measured", "known", "BudgetExceeded"}
    assert shortfall(address, now) == ([], 0)


def test_a_forked_process_has_no_stake_of_its_parent(with_session, tmp_path):
    address = fresh(with_session, tmp_path)
    with scripted([False, True]) as now, Desk(SMALL, address) as desk:
        ask(desk, QUESTIONS[0], now)

        def child():
            ask(desk, QUESTIONS[1], now)
            desk._models.close()
            return len(desk.ledger.stakes), now.heads.total()

        # Its hit was paid from a stake of its own, and ours is still there.
        assert apart(child) == (1, 1)
        assert ask(desk, QUESTIONS[2], now) == "known" or now.heads.total() == 1
    with Ledger(address) as owner:
        assert sum(hits_of(spend.event) for spend in owner.history()) == 2


def test_holds_and_sessions_of_the_version_before_are_read_and_nothing_is_tossed_under_such_a_hold(tmp_path):
    address = tmp_path / "ledger.sqlite"
    begun(address)
    with Ledger(address) as before:
        hold = before.reserve(TERMS.coin.hit, "the next failed check", table=SMALL.identity)
    with scripted([False]) as now, Desk(SMALL, address) as desk:
        assert ask(desk, QUESTIONS[0], now) == "model"
        assert desk.ledger.holds.keys() - {hold} == desk.ledger.stakes
        assert hold not in desk.ledger.stakes
    with Ledger(address) as owner:
        assert list(owner.holds) == [hold]
        owner.close_hold(hold)
        assert not owner.holds


# --- Analysts --------------------------------------------------------------------------------------------------------


def open_orders(account, coin):
    """The orders of an account that are still open, although a pass of this coin is not free there."""
    closed = account.gate.charge(coin.opening)
    return [place for place, (have, price) in enumerate(zip(account.spent_ticks, closed, strict=True)) if price > have]


def test_everybody_who_tosses_pays_the_opening_once_for_every_account_over_them(tmp_path):
    address = tmp_path / "ledger.sqlite"
    begun(address, each=True, opener="ana")
    for _ in range(2):
        with scripted([]) as now, Desk(SMALL, address) as desk:
            for analyst, question in zip(["ana", "ben", "ben", "cy"], QUESTIONS, strict=False):
                assert ask(desk, question, now, analyst) == "model"
    with Ledger(address) as owner:
        for analyst in ("ana", "ben", "cy"):
            accounts = owner.balances(table="data", analyst=analyst)
            assert len(accounts) == 2
            assert [open_orders(account, TERMS.coin) for account in accounts] == [[], []]
        paid = [spend.analyst for spend in owner.history() if spend.event == TERMS.coin.opening]
        assert sorted(paid) == ["ana", "ben", "cy"]


def test_an_opening_that_leaves_an_analyst_nothing_to_stake_is_not_charged(tmp_path):
    address = tmp_path / "ledger.sqlite"
    begun(address, opener="ana")
    with Ledger(address) as owner:
        owner.cap(Budget(epsilon=Fraction(385, 1000), delta=1e-9, gate="renyi"), table="data", analyst="ben")
    with scripted([]) as now, Desk(SMALL, address) as desk:
        ask(desk, QUESTIONS[0], now, "ben")
        assert now.tosses == 0
        assert [spend.analyst for spend in desk.history() if spend.event == TERMS.coin.opening] == ["ana"]


# --- Whatever happens ------------------------------------------------------------------------------------------------

FAULTS = st.builds(
    Fault,
    st.integers(0, 3),
    st.sampled_from(ERRORS),
    after=st.booleans(),
    lasting=st.booleans(),
    calls=st.sampled_from([WRITES, WRITES, (*WRITES, *READS, "stakes")]),
)
ASKS = st.tuples(
    st.just("ask"), st.integers(0, 1), st.sampled_from(["ana", "ben"]), st.integers(0, 15), st.booleans(), FAULTS
)
STEPS = st.one_of(
    ASKS,
    ASKS,
    ASKS,
    st.tuples(st.sampled_from(["restart", "crash"]), st.integers(0, 1), FAULTS),
    st.tuples(st.just("owner closes"), st.integers(0, 3)),
    st.tuples(st.just("raise")),
)


def lived_through(address, steps):
    """Two workers, two analysts and an owner do these things, one after the other."""
    desks = [Desk(SMALL, address, ledger=FailingLedger) for _ in range(2)]
    tosses, epsilon = [], 3
    with scripted(tosses) as now, Ledger(address) as owner:
        for what, *facts in steps:
            match what:
                case "ask":
                    which, analyst, question, toss, fault = facts
                    now.script[:] = [toss]
                    desks[which].ledger.fault = replaced(fault)
                    ask(desks[which], QUESTIONS[question], now, analyst)
                    desks[which].ledger.fault = Fault()
                case "restart" | "crash":
                    which, fault = facts
                    desks[which].ledger.fault = replaced(fault)
                    if what == "restart":
                        with suppress(Exception, KeyboardInterrupt):
                            desks[which].close()
                    desks[which].ledger.close()
                    desks[which] = Desk(SMALL, address, ledger=FailingLedger)
                case "owner closes":
                    for hold in list(owner.holds)[facts[0] :][:1]:
                        owner.close_hold(hold)
                case _:
                    epsilon += 1
                    owner.raise_cap(Budget(epsilon=epsilon, delta=1e-9, gate="renyi"), table="data")
        for desk in desks:
            desk.close()
        return shortfall(address, now)[0], now


def replaced(fault):
    """The same fault, which has not fired yet."""
    return Fault(fault.at, fault.error, after=fault.after, lasting=fault.lasting, calls=fault.calls)


def story(chance):
    """A dozen things that happen, each as likely as another: strategies prefer those that are simple."""

    def fault():
        calls = chance.choice([WRITES, WRITES, (*WRITES, *READS, "stakes")])
        after, lasting = chance.random() < 0.5, chance.random() < 0.5
        return Fault(chance.randint(0, 3), chance.choice(ERRORS), after=after, lasting=lasting, calls=calls)

    def step():
        match chance.randrange(10):
            case 0:
                return chance.choice(["restart", "crash"]), chance.randrange(2), fault()
            case 1:
                return "owner closes", chance.randrange(3)
            case 2:
                return ("raise",)
            case _:
                who, question, toss = chance.choice(["ana", "ben"]), chance.randrange(16), chance.random() < 0.5
                return "ask", chance.randrange(2), who, question, toss, fault()

    return [step() for _ in range(12)]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(chance=st.randoms(use_true_random=True))
def test_whoever_does_whatever_nothing_is_owed(chance, tmp_path_factory):
    address = tmp_path_factory.mktemp("lived") / "ledger.sqlite"
    begun(address, each=True, opener="ana")
    lacking, _ = lived_through(address, story(chance))
    assert lacking == []


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@given(steps=st.lists(STEPS, min_size=3, max_size=30))
def test_whoever_does_whatever_for_long_nothing_is_owed(steps, tmp_path_factory):
    address = tmp_path_factory.mktemp("lived") / "ledger.sqlite"
    begun(address, each=True, opener="ana")
    lacking, _ = lived_through(address, steps)
    assert lacking == []


# --- Two workers -----------------------------------------------------------------------------------------------------


def race(address, everybody_is_there, number):
    """One worker: opens a session for its own error at the same moment as the others, and is hit at every toss."""
    terms = replace(TERMS, error=TERMS.error * (1 + number))
    with scripted([True] * 50) as now, Desk(SMALL, address) as desk:
        everybody_is_there()
        desk._executor.note(terms, terms.coin.opening, "a session of one's own", analyst=ANYONE)
        desk._executor.refresh()
        found = desk._executor.session
        for question in QUESTIONS[number::3]:
            now.analyst = ANYONE
            desk.ask(question, error=float(TERMS.error) * 3, confidence=SURE)
        return str(found.error), str(desk.session.error), now.heads.total()


@pytest.mark.process
@pytest.mark.parametrize("round_", range(4))
def test_workers_that_race_to_open_find_one_session_and_every_toss_is_paid(round_, tmp_path):
    raced(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("round_", range(100))
def test_workers_that_race_again_and_again_find_one_session(round_, tmp_path):
    raced(tmp_path)


def raced(folder):
    address = folder / "ledger.sqlite"
    with Ledger(address) as ledger:
        ledger.cap(LARGE, table="data")
    found = in_processes(2, lambda number, wait: race(address, wait, number))
    assert len({error for pair in found for error in pair[:2]}) == 1
    with Ledger(address) as owner:
        records = [record_of(spend.released) for spend in owner.history()]
        noted = [record for record in records if record is not None and record.kind == "session"]
        assert sum("session" in record.fields for record in noted) == 1
        assert not owner.holds
        coin = replace(TERMS, error=Fraction(found[0][0])).coin
        heads = sum(hits for *_, hits in found)
        assert heads > 0
        (account,) = owner.balances(table="data")
        owed = account.gate.charge(replace(coin.hit, hits=heads))
        assert all(have >= need for have, need in zip(account.spent_ticks, owed, strict=True))
        assert sum(hits_of(spend.event) for spend in owner.history()) >= heads
