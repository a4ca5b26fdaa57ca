"""Sessions that are paid when they open: whatever write fails, and whenever, no more hits are seen than were paid."""

from itertools import product
from uuid import uuid4

import numpy as np
import pytest

import discreet as dp
from discreet.errors import Refusal
from discreet.ledger import Ledger
from support.failing_ledger import ERRORS, FailingLedger, Fault
from support.neighbours import Session

ROWS, HITS = 20_000, 2
NAMES = [f"x{place}" for place in range(5)]
PEOPLE = dp.open(dict.fromkeys(NAMES, [True] * ROWS), domain=dp.Domain(dict.fromkeys(NAMES, dp.Boolean())))
ONES, ZEROS = np.ones(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int64)


# Each opens a session with two hits, and asks it questions of which every one is a hit, unless it was one before.


def weights(ledger, reopen):
    session = dp.PMW(PEOPLE, ledger=ledger, epsilon=1, updates=HITS, queries=10, reopen=reopen)
    return [lambda name=name: session.ask(name).origin == "measured" for name in NAMES]


def holdout(ledger, reopen):
    session = dp.Holdout(ZEROS, ONES, ledger=ledger, table="data", epsilon=1, checks=HITS, queries=10, reopen=reopen)
    return [lambda: session.estimate(lambda y: y == 1).origin == "holdout"] * 5


def leaderboard(ledger, reopen):
    session = dp.Leaderboard(
        ONES, ledger=ledger, table="data", epsilon=1, step=0.1, improvements=HITS, submissions=10, reopen=reopen
    )
    guesses = [np.arange(ROWS) < ROWS * part // 5 for part in range(1, 6)]
    return [lambda guess=guess: session.submit(guess.astype(np.int64)).improved for guess in guesses]


SESSIONS = {"weights": weights, "holdout": holdout, "leaderboard": leaderboard}


def hits_seen(session, ledger, *, reopen):
    """Open a session and ask until it refuses: how often a hit was seen, in an answer or in an error."""
    try:
        questions = session(ledger, reopen)
    except (Exception, KeyboardInterrupt):
        return 0
    seen = 0
    for ask in questions:
        try:
            seen += ask()
        except Refusal:
            continue
        except (Exception, KeyboardInterrupt):
            seen += 1
    return seen


def paid(address):
    """The hits that were paid: so many for every session that was debited."""
    with Ledger(address) as owner:
        events = [spend.event for spend in owner.history()]
    return HITS * sum(type(event).__name__ not in ("Nothing",) for event in events)


@pytest.mark.parametrize("name", SESSIONS)
def test_whatever_write_fails_no_more_hits_are_seen_than_were_paid(name, tmp_path):
    session, faults = SESSIONS[name], 0
    for at, error, after in product(range(1, 8), ERRORS, (False, True)):
        address = tmp_path / f"{uuid4().hex}.sqlite"
        with FailingLedger(address) as ledger:
            ledger.session = Session()
            ledger.cap(dp.Budget(epsilon=10), table="data")
            ledger.fault = fault = Fault(at, error, after=after, lasting=True, calls=("spend", "record"))
            first = hits_seen(session, ledger, reopen=False)
            assert first <= HITS
            if at > 2:
                # A hit whose record failed is seen, and ends the session.
                assert first == (HITS if at > 6 else (at - 1) // 2)
            ledger.fault = Fault()
            again = hits_seen(session, ledger, reopen=True) or hits_seen(session, ledger, reopen=False)
            faults += fault.fired
        assert first + again <= paid(address)
    assert faults >= 6 * 3 * 2


def test_the_same_test_sees_a_session_that_goes_on_after_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(dp.Holdout, "estimate", _careless(dp.Holdout.estimate))
    with FailingLedger(tmp_path / "ledger.sqlite") as ledger:
        ledger.session = Session()
        ledger.cap(dp.Budget(epsilon=10), table="data")
        ledger.fault = Fault(3, lasting=True, calls=("spend", "record"))
        assert hits_seen(holdout, ledger, reopen=False) > HITS


def _careless(right):
    def estimate(self, statistic):
        run = self._checks._run
        try:
            return right(self, statistic)
        except Exception:
            # As if nothing had happened.
            self._checks._run = run
            raise

    return estimate
