"""A ledger that is asked to serve, or fails with a sentence of ours that repeats nothing private."""

from contextlib import contextmanager
from traceback import format_exception

import pytest

from discreet.errors import LedgerFailed
from discreet.ledger import Ledger, verify
from ledger.spending import BUDGET, EVENT

# What an error must not repeat.
PRIVATE, PASSWORD = "who is ill?", "swordfish"
DRIVERS = ("sqlite3", "psycopg.", "sqlalchemy", "SELECT", "INSERT", "PRAGMA", "Errno", "DETAIL", "HINT")
NOT_OURS = (*DRIVERS, PRIVATE, PASSWORD)


def spend(ledger):
    return ledger.spend(EVENT, PRIVATE, table="people", analyst=PRIVATE)


@contextmanager
def fails(reason, kind=LedgerFailed):
    """It fails with an error of ours that gives this reason, and says nothing of what was asked or of other errors."""
    with pytest.raises(kind, match=reason) as caught:
        yield
    assert type(caught.value) is kind
    assert [word for word in NOT_OURS if word in str(caught.value)] == []
    assert "".join(format_exception(caught.value)).count("Traceback") == 1


def assert_goes_on(ledger, address):
    """The same ledger, and one that is opened anew, serve as if nothing had been."""
    ledger.record(spend(ledger), b"an answer")
    with Ledger(address, create=False) as another:
        another.record(spend(another), b"an answer")
    ledger.record(spend(ledger), b"an answer")
    verify(address)


def capped(address):
    ledger = Ledger(address)
    ledger.cap(BUDGET, table="people")
    return ledger
