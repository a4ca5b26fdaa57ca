"""One truth for all threads, processes and forks that share a ledger."""

import gc
import os
import sqlite3
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from json import loads
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest

from discreet.accounting.event import Laplace, Repeat
from discreet.errors import AnswerLost, BadParameter, BudgetExceeded
from discreet.ledger import Budget, Ledger, verify
from support.ledger_places import needs_postgres, new_database, new_file, tell
from support.processes import PATIENCE, Elsewhere, apart, child, crowd, in_processes, in_threads

pytestmark = pytest.mark.process

# An event that costs epsilon 1.
ONE = Laplace(scale=1, sensitivity=1)
CAP = Budget(epsilon=10)


def spend(ledger, event=ONE, **how):
    return ledger.spend(event, "a test", table="people", **how)


def left(ledger):
    return ledger.remaining(table="people").epsilon


@pytest.fixture
def elsewhere(address):
    """A function that opens the ledger in another process; the first one caps it."""
    opened = []

    def elsewhere():
        opened.append(Elsewhere(lambda: Ledger(address)))
        opened[-1].cap(CAP, table="people")
        return opened[-1]

    yield elsewhere
    for one in opened:
        one.kill()


@pytest.fixture
def capped(address):
    """The address of a ledger that has a cap and was never open in this process."""

    def cap():
        with Ledger(address) as ledger:
            ledger.cap(CAP, table="people")

    apart(cap)
    return address


@pytest.fixture
def ledger(address):
    """The ledger, open in this process."""
    with Ledger(address) as ledger:
        ledger.cap(CAP, table="people")
        yield ledger


# Processes.


def test_each_process_sees_at_once_what_the_other_has_spent(elsewhere):
    here, there = elsewhere(), elsewhere()
    for spent in range(1, 10, 2):
        spend(here)
        assert left(there) == 10 - spent
        spend(there)
        assert left(here) == 9 - spent
    with pytest.raises(BudgetExceeded):
        spend(here)
    assert here.head() == there.head()


def test_each_process_sees_at_once_that_the_other_has_raised_a_cap(elsewhere):
    here, there = elsewhere(), elsewhere()
    spend(here, Repeat(ONE, 10))
    for most in range(11, 15):
        with pytest.raises(BudgetExceeded):
            spend(there)
        here.raise_cap(Budget(epsilon=most), table="people")
        spend(there)
        here, there = there, here


def test_each_process_sees_at_once_that_the_other_has_set_a_cap(elsewhere):
    here, there = elsewhere(), elsewhere()
    spend(here, analyst="ana")
    there.cap(Budget(epsilon=1), table="people", analyst="ana")
    with pytest.raises(BudgetExceeded):
        spend(here, analyst="ana")
    spend(here, analyst="bob")


def test_two_ledgers_in_one_process_see_each_other(address, ledger):
    with Ledger(address) as other:
        for spent in range(1, 10, 2):
            spend(ledger)
            assert left(other) == 10 - spent
            spend(other)
            assert left(ledger) == 9 - spent
        with pytest.raises(BudgetExceeded):
            spend(ledger)
    assert verify(address).spends == 10


def test_processes_that_make_a_ledger_at_once_make_one(new_address):
    for _ in range(5):
        address = new_address()

        def make(_, everybody_is_there, address=address):
            everybody_is_there()
            with Ledger(address) as ledger:
                ledger.cap(CAP, table="people")
                return ledger.head.ledger

        assert len(set(in_processes(4, make))) == 1
        with Ledger(address) as ledger:
            assert [loads(entry.body)["is"] for entry in ledger.entries()] == ["open", "cap"]


# Holds.


def test_a_hold_is_seen_by_all_processes_and_paid_from_by_any(elsewhere):
    here, there = elsewhere(), elsewhere()
    hold = here.reserve(Repeat(ONE, 10), "a session", table="people")
    assert there.holds() == {hold: ("people", "anyone")}
    with pytest.raises(BudgetExceeded):
        spend(there)
    spend(there, hold=hold)
    spend(here, Repeat(ONE, 9), hold=hold)
    with pytest.raises(BudgetExceeded):
        spend(here, hold=hold)


def test_a_hold_that_another_process_has_closed_pays_for_nothing(elsewhere):
    zombie, heir = elsewhere(), elsewhere()
    hold = zombie.reserve(Repeat(ONE, 10), "a session", table="people")
    spend(zombie, hold=hold)
    heir.close_hold(hold)
    with pytest.raises(BadParameter, match="not open"):
        spend(zombie, hold=hold)
    assert left(heir) == 9
    assert left(zombie) == 9


@pytest.mark.parametrize("goes_on", [True, False], ids=["goes on", "is closed"])
def test_a_hold_outlives_a_kill_and_is_continued_or_closed(elsewhere, goes_on):
    session = elsewhere()
    hold = session.reserve(Repeat(ONE, 10), "a session", table="people")
    spend(session, Repeat(ONE, 4), hold=hold)
    session.kill()
    heir = elsewhere()
    assert heir.holds() == {hold: ("people", "anyone")}
    assert left(heir) == 0
    if goes_on:
        spend(heir, Repeat(ONE, 6), hold=hold)
        assert left(heir) == 0
    else:
        heir.close_hold(hold)
        assert left(heir) == 6


# Keys.


def answers(address, keys, *, processes, threads):
    """What everybody got who asked with each of these keys until there was an answer, and who computed it."""

    def ask(ledger, key, name):
        until = monotonic() + PATIENCE
        while monotonic() < until:
            try:
                receipt = spend(ledger, key=key)
            except AnswerLost:
                sleep(0.001)
                continue
            if receipt.released is not None:
                return receipt.released, None
            answer = f"by {name} for {key}".encode()
            ledger.record(receipt, answer)
            return answer, name
        pytest.fail("there is no answer")

    def process(number, everybody_is_there):
        with Ledger(address) as ledger:
            everybody_is_there()
            return in_threads(threads, lambda thread: [ask(ledger, key, (number, thread)) for key in keys])

    asked = [asked for process in in_processes(processes, process) for asked in process]
    return {key: [one[place] for one in asked] for place, key in enumerate(keys)}


def test_one_key_is_charged_once_and_everybody_gets_the_same_bytes(capped):
    keys = [f"key {number}" for number in range(9)]
    for found in answers(capped, keys, processes=4, threads=8).values():
        assert len({answer for answer, _ in found}) == 1
        assert sum(computed_by is not None for _, computed_by in found) == 1
    audit = verify(capped)
    assert (audit.spends, audit.answered) == (9, 9)


def test_the_last_request_that_fits_is_not_refused_to_those_who_repeat_it(tmp_path):
    """While somebody else keeps the file, requests with one key gather and are decided together."""
    address = new_file(tmp_path)
    with Ledger(address) as ledger, ThreadPoolExecutor(9) as pool, closing(sqlite3.connect(address)) as other:
        ledger.cap(Budget(epsilon=2), table="people")
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        pool.submit(spend, ledger)
        sleep(0.1)
        repetitions = [pool.submit(spend, ledger, key="the same") for _ in range(8)]
        sleep(0.1)
        other.execute("ROLLBACK")
        outcomes = Counter(type(one.exception()) for one in repetitions)
    assert outcomes == {type(None): 1, AnswerLost: 7}


def test_without_a_key_everybody_is_charged(capped):
    granted = crowd(lambda: Ledger(capped), spend, processes=4, threads=2, requests=1)
    assert len(granted) == verify(capped).spends == 8


# Forks.


def test_a_ledger_that_is_open_across_a_fork_tells_both_one_truth(ledger):
    spend(ledger)
    there = Elsewhere(lambda: ledger)
    for spent in range(1, 9, 2):
        spend(there)
        assert left(ledger) == 9 - spent
        spend(ledger)
        assert left(there) == 8 - spent
    assert there.head() == ledger.head
    there.kill()
    spend(ledger)
    assert left(ledger) == 0


def test_a_child_may_close_what_it_inherited_while_the_parent_goes_on(address, ledger):
    def close():
        spend(ledger)
        ledger.close()
        gc.collect()

    spend(ledger)
    apart(close)
    spend(ledger)
    assert verify(address).spends == 3


def test_a_parent_may_close_its_ledger_while_the_child_goes_on(address, ledger):
    there = Elsewhere(lambda: ledger)
    spend(there)
    ledger.close()
    gc.collect()
    spend(there)
    there.kill()
    assert verify(address).spends == 2
    Ledger(address).close()


def test_a_fork_amid_a_crowd_gets_a_ledger_that_works(address):
    """Other threads of the parent hold the turn and wait for it; the child must neither wait for them nor pay again."""
    with Ledger(address) as ledger:
        ledger.cap(Budget(epsilon=1000), table="people")

        def client(number):
            if number == 8:
                return [forked() for _ in range(10)]
            return [spend(ledger).sequence for _ in range(100)]

        def forked():
            with child(lambda: spend(ledger).sequence) as it:
                return it.result(patience=5)

        granted = [sequence for sequences in in_threads(9, client) for sequence in sequences]
    assert len(granted) == len(set(granted)) == verify(address).spends == 810


def granted_amid_forks(address, look):
    """What is granted to a thread that opens the ledger again and again and to what another forks; a third looks."""
    ignored, done = [], []
    sys.unraisablehook = lambda error: ignored.append(repr(error.exc_value))

    def granted():
        with Ledger(address) as ledger:
            return spend(ledger, Laplace(scale=1000, sensitivity=1)).sequence

    def client(number):
        while number == 2 and len(done) < 2:
            look(address)
        try:
            return [apart(granted) if number == 0 else granted() for _ in range(10 if number < 2 else 0)]
        finally:
            done.append(number)

    found = in_threads(3, client)
    return [sequence for sequences in found for sequence in sequences], ignored


def read_history(address):
    with Ledger(address) as ledger:
        for _ in range(10):
            ledger.history()


@pytest.mark.parametrize("look", [read_history, verify])
def test_a_fork_while_others_open_the_ledger_leaves_all_of_them_working(capped, look):
    with child(granted_amid_forks, capped, look, forks=True) as it:
        granted, ignored = it.result(patience=30)
    assert ignored == []
    assert len(granted) == len(set(granted)) == verify(capped).spends == 20


def open_files(folder):
    """The files in a folder that this process has open."""
    held = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return [path for path in held if path.startswith(str(folder))]


needs_list_of_open_files = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not say which files are open"
)


def inherited_amid_readers(folder):
    """The files of a ledger that forked processes find open, while others read its history."""
    address, over = new_file(folder), Event()

    def client(number):
        if number == 0:
            return [path for _ in range(10) for path in apart(open_files, address)]
        while not over.is_set():
            ledgers[number].history()
        return []

    def client_until_over(number):
        try:
            return client(number)
        finally:
            over.set()

    with ExitStack() as stack:
        ledgers = [stack.enter_context(Ledger(address)) for _ in range(8)]
        ledgers[0].cap(Budget(epsilon=100), table="people")
        for _ in range(50):
            spend(ledgers[0])
        return [path for paths in in_threads(8, client_until_over) for path in paths]


@needs_list_of_open_files
def test_no_connection_is_taken_into_a_forked_process(tmp_path):
    """SQLite would believe that it holds locks which only its parent has."""
    with child(inherited_amid_readers, tmp_path, forks=True) as it:
        found = it.result(patience=30)
    assert [path for path in found if not path.endswith(".head")] == []


# Closing.


@needs_list_of_open_files
def test_a_closed_ledger_holds_no_file(tmp_path):
    with Ledger(new_file(tmp_path)) as ledger:
        ledger.cap(CAP, table="people")
        spend(ledger)
    assert open_files(tmp_path) == []


CONNECTIONS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@needs_postgres
def test_a_closed_ledger_holds_no_connection():
    with new_database() as address:
        with Ledger(address) as ledger:
            ledger.cap(CAP, table="people")
            spend(ledger)
            assert tell(address, CONNECTIONS)
        # The server needs a moment to notice, also that our own question before this one is over.
        until = monotonic() + 5
        while (found := tell(address, CONNECTIONS)) and monotonic() < until:
            sleep(0.05)
        assert found == []
