"""Ctrl-C at any moment of a spend: it is granted or not, others are answered, and the ledger goes on."""

import signal
import sqlite3
import sys
from contextlib import closing, contextmanager, suppress
from itertools import count
from math import inf
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread, get_ident
from time import monotonic, sleep

import pytest

import discreet
from discreet.errors import LedgerFailed
from discreet.ledger import Ledger, verify
from ledger.aftermath import scratch
from ledger.spending import BUDGET, EVENT
from support.ledger_places import new_file
from support.processes import child

# An interrupt in what is thrown away anyway is only noted by Python.
pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

# Longer than anything here takes, in seconds: who has no answer then will have none.
PATIENCE = 3
# More than there are; then nobody is interrupted.
MOMENTS_OF_TWO = 500
OURS = str(Path(discreet.__file__).parent)


def spend(ledger):
    return ledger.spend(EVENT, "a question", table="people")


@contextmanager
def interrupted_at(moment):
    """The signal comes at this moment, of all at which Python looks for one in our code: after calls and returns."""
    moments = count()

    def look(frame, event, _argument):
        if event in ("call", "c_return") and frame.f_code.co_filename.startswith(OURS) and next(moments) == moment:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        yield moments
    finally:
        sys.setprofile(None)


def moments_of(ask):
    """How many moments there are."""
    with interrupted_at(inf) as moments:
        ask()
    return next(moments)


@pytest.fixture
def ledger(address):
    with Ledger(address) as ledger:
        ledger.cap(BUDGET, table="people")
        yield ledger


def test_an_interrupt_at_any_moment_leaves_a_ledger_that_works(ledger, address):
    granted = [spend(ledger).sequence]
    moments = moments_of(lambda: spend(ledger))
    assert moments > 50
    for moment in range(moments):
        with suppress(KeyboardInterrupt), interrupted_at(moment):
            granted.append(spend(ledger).sequence)
        granted.append(spend(ledger).sequence)
    paid = [one.sequence for one in ledger.history()]
    assert set(granted) <= set(paid)
    assert len(granted) == len(set(granted))
    assert verify(address).spends == len(paid)


def until(condition, patience=PATIENCE):
    end = monotonic() + patience
    while not condition() and monotonic() < end:
        sleep(0.0001)


class Turn:
    """A lock that one thread gets before all others."""

    def __init__(self):
        self._lock, self._first, self.others_may = Lock(), get_ident(), Event()

    def __enter__(self):
        if get_ident() != self._first:
            self.others_may.wait()
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


def interrupt_before_another(file):
    """Interrupt somebody at every moment of serving two: how many there are, if the other was always answered."""

    def ask():
        with suppress(LedgerFailed):
            spend(ledger)
        answered.append("an answer")

    def ask_for_both(moment):
        other = Thread(target=ask, daemon=True)
        other.start()
        until(lambda: ledger._log._waiting)
        try:
            with interrupted_at(moment):
                spend(ledger)
        except KeyboardInterrupt:
            interrupted.append(moment)
        ledger._log._turn.others_may.set()
        other.join(PATIENCE)

    ledger, interrupted = Ledger(file), []
    ledger.cap(BUDGET, table="people")
    for moment in range(MOMENTS_OF_TWO):
        answered, ledger._log._turn = [], Turn()
        ask_for_both(moment)
        assert answered, f"after an interrupt at moment {moment} another waits for ever"
        assert is_there_for_all(file, spend(ledger)), f"after an interrupt at moment {moment} nothing is committed"
    return max(interrupted)


def is_there_for_all(file, receipt):
    with closing(sqlite3.connect(file)) as connection:
        (last,) = connection.execute("SELECT max(sequence) FROM discreet_ledger").fetchone()
        return last == receipt.sequence


def test_whoever_waits_behind_somebody_who_is_interrupted_is_answered():
    """Something is granted and committed, or it is said that it failed; nobody waits for ever."""
    # In a process of its own, which can be killed if somebody does.
    with scratch() as folder, child(interrupt_before_another, new_file(folder)) as process:
        assert 200 < process.result() < MOMENTS_OF_TWO - 1


@contextmanager
def interrupted_after(seconds):
    """A real signal."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_hundred_signals_at_random_leave_a_ledger_that_works(ledger, address):
    rng, granted = Random(0), []
    for _ in range(100):
        with suppress(KeyboardInterrupt), interrupted_after(rng.uniform(0.0001, 0.005)):
            # Python forgets a signal that comes while it throws something away; then nobody is interrupted.
            until(lambda: granted.append(spend(ledger).sequence), patience=0.1)
        granted.append(spend(ledger).sequence)
    assert set(granted) <= {one.sequence for one in ledger.history()}
    verify(address)
