"""A ledger that fails where one says, tosses that fall as one says, and the sum of what was seen and what was paid.

Every toss that is heads counts as seen, whatever the analyst was told: an answer, an error, or nothing. What was paid
is read from the ledger by somebody else, after an owner has closed all that was left open.
"""

from collections import Counter
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import pytest

from discreet import noise
from discreet.accounting.event import Coin, Compose
from discreet.curator.checked_model import Models
from discreet.curator.records import Session
from discreet.errors import LedgerFailed
from discreet.ledger import Budget, Ledger
from discreet.ledger.ledger import ANYONE
from support.model_sessions import ALONE, ERROR, SURE, Desk, HeardLedger, paired_rows, table_of

ROWS = 64
LARGE, EACH = Budget(epsilon=3, delta=1e-9, gate="renyi"), Budget(epsilon=2, delta=1e-9, gate="renyi")
WRITES = ("spend", "record", "reserve", "close_hold")
READS = (*(["look"] if hasattr(Ledger, "look") else []), "holds", "head", "balances", "remaining", "entries")
TERMS = Session(Fraction(ERROR), Fraction(SURE).limit_denominator(10**9), 1, 10**6, ALONE)


class Down(LedgerFailed):
    """What a full disk, a lost server or a locked file does."""


ERRORS = (Down, OSError, KeyboardInterrupt)


class Fault:
    """Fails at the call of this number, before it has an effect or after; once, or from then on until it is mended."""

    def __init__(self, at=0, error=Down, *, after=False, lasting=False, calls=WRITES):
        self.at, self.error, self.after, self.lasting, self.calls = at, error, after, lasting, calls
        self.count, self.fired = 0, 0

    def around(self, name, call):
        if name not in self.calls:
            return call()
        self.count += 1
        now = self.at and (self.count == self.at or (self.lasting and self.count > self.at))
        if not now:
            return call()
        self.fired += 1
        if self.after:
            call()
        raise self.error("the ledger failed: the disk is full.")


class FailingLedger(HeardLedger):
    """A ledger whose every call may fail, as its `fault` says."""

    fault = Fault()


def _failing(name):
    right = getattr(HeardLedger, name)
    if isinstance(right, property):
        return property(lambda self: self.fault.around(name, lambda: right.fget(self)))
    return lambda self, *given, **named: self.fault.around(name, lambda: right(self, *given, **named))


for _name in (*WRITES, *READS):
    setattr(FailingLedger, _name, _failing(_name))
if hasattr(Ledger, "stakes"):
    FailingLedger.stakes = _failing("stakes")


@contextmanager
def scripted(tosses):
    """Coins that fall as written, then tails; the heads so far, for each analyst that asks (`now.analyst`)."""
    script, now = list(tosses), SimpleNamespace(analyst=ANYONE, heads=Counter(), tosses=0)
    now.script = script

    def coin(chance):
        now.tosses += 1
        hit = bool(script.pop(0)) if script else False
        now.heads[now.analyst] += hit
        return hit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "coin", coin)
        # What is learnt from a hit takes long, and comes after all that matters here.
        patch.setattr(Models, "_learn", lambda *_: None)
        yield now


SMALL = table_of(paired_rows(ROWS))


def begun(address, *, each=False, terms=TERMS, opener=ANYONE):
    """A ledger with a session, opened by one analyst."""
    with Ledger(address) as ledger:
        ledger.cap(LARGE, table="data")
        if each:
            ledger.cap(EACH, table="data", analyst="*")
    with Desk(SMALL, address) as desk:
        desk._executor.note(terms, terms.coin.opening, "a model of one's own", analyst=opener)


def ask(desk, question, now, analyst=ANYONE):
    """What an analyst sees of a question: where the answer comes from, or the name of the error."""
    now.analyst = analyst
    try:
        return desk.ask(question, error=ERROR, confidence=SURE, analyst=analyst).origin
    except (Exception, KeyboardInterrupt) as error:
        return type(error).__name__


def shortfall(address, now, terms=TERMS):
    """How much less was paid than was seen, in words; nothing if all is paid. An owner closes what is open first."""
    lacking = []
    with Ledger(address) as owner:
        for hold in owner.holds:
            owner.close_hold(hold)
        analysts = [who for who, heads in now.heads.items() if heads]
        for analyst in analysts:
            for account in owner.balances(table="data", analyst=analyst):
                heads = now.heads.total() if account.scope.analyst is None else now.heads[analyst]
                owed = account.gate.charge(Coin(terms.coin.hit.log_odds, heads))
                if any(have < need for have, need in zip(account.spent_ticks, owed, strict=True)):
                    lacking.append(f"{account.scope}: {heads} hits were seen and not all are paid")
        paid = sum(hits_of(spend.event) for spend in owner.history())
    if paid < now.heads.total():
        lacking.append(f"{now.heads.total()} hits were seen and {paid} paid")
    return lacking, paid


def hits_of(event):
    """How many hits an event pays."""
    match event:
        case Compose(parts):
            return sum(map(hits_of, parts))
        case Coin(_, hits):
            return hits
        case _:
            return 0
