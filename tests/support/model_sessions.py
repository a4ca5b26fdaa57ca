"""Small tables on which a curator opens a session with a model, and ledgers in which one is open."""

from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations
from shutil import copy

import numpy as np
import pytest

import discreet.curator.checked_model
import discreet.plan.build_model
import discreet.plan.model_forecast
from discreet.accounting.event import Coin, Compose, Gaussian
from discreet.curator import Curator
from discreet.curator.records import Session as Checked
from discreet.ledger import Budget
from discreet.ledger.ledger import ANYONE
from discreet.plan.build_model import Built
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema import Boolean, Domain, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.source import unseal
from discreet.source.table import Table
from support.neighbours import HeardLedger as Heard
from support.neighbours import HeardTable, Session

COLUMNS, ROWS = 8, 200_000
NAMES = tuple(f"x{place}" for place in range(COLUMNS))
DOMAIN = Domain({name: Boolean() for name in NAMES})
# An answer is wanted within one per cent of the rows.
ERROR, SURE = ROWS / 100, 0.99
WISH = {"error": ERROR, "confidence": SURE}
PLENTY = Budget(epsilon=3, delta=1e-9, gate="renyi")
# A session with all of its hits, and a model that takes columns for independent which are not.
ALONE = Built("tree", NAMES, ())


def paired_rows(rows=ROWS, seed=3):
    """Columns that go in pairs, each of which says the same nine times of ten."""
    rng = np.random.default_rng(seed)
    columns = []
    for _ in range(COLUMNS // 2):
        first = rng.random(rows) < 0.6
        columns += [first, np.where(rng.random(rows) < 0.1, ~first, first)]
    return dict(zip(NAMES, columns, strict=True))


def table_of(data, unit=None):
    """The columns, under protection."""
    unit = Unit() if unit is None else unit
    return Table(Schema("data", DOMAIN, unit), Frame(data, domain=DOMAIN, unit=unit))


def conjunctions(count, *, ways=4, seed=0, columns=COLUMNS):
    """So many different questions: some columns have some values."""
    rng, found = np.random.default_rng([7, seed]), {}
    while len(found) < count:
        places = sorted(rng.choice(columns, ways, replace=False).tolist())
        cells = [np.eye(2, dtype=np.int64)[rng.integers(2)] for _ in places]
        found[conjunction(places, cells)] = None
    return list(found)


def conjunction(places, cells):
    return Linear([Product(tuple(Factor((NAMES[place],), cell) for place, cell in zip(places, cells, strict=True)))])


def split_pair():
    """Questions on two whole pairs: a model that takes columns for independent is off by more than the error."""
    two = [np.array([0, 1]), np.array([0, 1])]
    pairs = combinations(range(0, COLUMNS, 2), 2)
    return [conjunction([i, i + 1, j, j + 1], two * 2) for i, j in pairs]


def truth_of(table, questions):
    exact = table.evaluate(tuple(questions))
    return unseal(exact, exact.sensitivity)


@contextmanager
def eager(**others):
    """Sessions open early and are cheap to build; `others` are constants of models.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.plan.model_forecast, "WORTH", 1e-6)
        patch.setattr(discreet.plan.model_forecast, "SETTLED", 6)
        patch.setattr(discreet.plan.build_model, "PROBES", 300)
        patch.setattr(discreet.plan.build_model, "SELECTIONS", (2, 1))
        patch.setattr(discreet.curator.checked_model, "SHARE_FOR_HITS", 1e6)
        patch.setattr(discreet.curator.checked_model, "MOST_HITS", 3)
        for name, value in others.items():
            patch.setattr(discreet.curator.checked_model, name, value)
        yield


def open_ledger(table, folder):
    """The address of a ledger in which a good model was built and its session is open."""
    address = folder / "ledger.sqlite"
    with eager(), Desk(table, address, budget=PLENTY) as desk:
        for question in conjunctions(30):
            desk.ask(question, **WISH)
        assert desk.session.open
        assert desk.session.built.columns == NAMES
    return address


class HeardLedger(Heard):
    """A ledger that also tells what is set aside and given back."""

    def reserve(self, event, why, **named):
        self.session.calls.append(("reserve", event, why, sorted(named.items())))
        return super().reserve(event, why, **named)

    def close_hold(self, hold, **named):
        self.session.calls.append(("close_hold", hold))
        super().close_hold(hold, **named)


class Desk(Curator):
    """A curator that tells what it did, in its order: `calls`."""

    def __init__(self, table, address, *, budget=None, expected_questions=100_000, ledger=HeardLedger, **named):
        heard = Session()
        book = ledger(address)
        book.session = heard
        self.calls = heard.calls
        super().__init__(
            HeardTable(table.schema, table.source, heard),
            budget=budget,
            ledger=book,
            expected_questions=expected_questions,
            **named,
        )
        self._owned = True

    @property
    def session(self):
        self._executor.refresh()
        return self._executor.session

    @property
    def model(self):
        return self._models._model(self.session.built)

    def reads(self):
        """How often rows were read."""
        return sum(call[0] == "evaluate" for call in self.calls)

    def hits(self):
        """What was paid for hits."""
        return [spend for spend in self.history() if is_hit(spend.event)]


def is_hit(event):
    return isinstance(event, Compose) and isinstance(event.events[0], Coin) and event.events[0].hits == 1


def open_session(desk, built, *, hits=3, error=ERROR, confidence=SURE):
    """Begin a session with a model of one's own."""
    chance = Fraction(confidence).limit_denominator(10**9)
    session = Checked(Fraction(error), chance, desk.table.unit.contributions, hits, built)
    desk._executor.note(session, session.coin.opening, "a model of one's own", analyst=ANYONE)
    return session


def use_up(desk, smallest=Fraction(10) ** 7):
    """Spend until not even a very noisy answer fits."""
    sigma = Fraction(1)
    while sigma < smallest:
        if desk._executor.fits(Gaussian(sigma, Fraction(1)), ANYONE):
            desk.ledger.spend(Gaussian(sigma, Fraction(1)), "something else", table=desk.table.identity)
        else:
            sigma *= Fraction(3, 2)


def copy_of(address, folder):
    """A ledger of one's own, with the same entries."""
    return copy(address, folder / "copy.sqlite")
