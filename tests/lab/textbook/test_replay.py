"""Record and replay: with the noise frozen, a session does and says the same on two neighbouring tables.

What was released on the first table is told on the second; then every call must be the same, to the last bit of every
answer and every byte in the ledger, and the true values may differ by no more than the noise was calibrated for.
"""

from contextlib import contextmanager
from uuid import uuid4

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.lab.textbook.pmw import PMW
from discreet.ledger import Budget
from discreet.query import Linear
from discreet.query.product import Product, box
from discreet.source.source import unseal
from support.neighbours import HeardLedger, HeardTable, Session, differences, listening, random_pair, told

# Large, because the tables are small: otherwise nothing would ever be above the threshold.
BUDGETS = [Budget(epsilon=300), Budget(epsilon=300, delta=1e-6)]


def random_counts(rng, domain, how_many):
    asked = []
    while len(asked) < how_many:
        names = [str(name) for name in rng.permutation(list(domain))[: rng.integers(1, 4)]]
        masks = {name: rng.random(domain[name].size) < 0.6 for name in names}
        if all(mask.any() for mask in masks.values()):
            asked.append(Linear([box(masks)]))
    return asked


def heard_session(table, questions, *, folder, budget, seed=0, first=None):
    session, rng = Session(), np.random.default_rng(seed)
    with listening(session, rng, first), HeardLedger(folder / f"{uuid4().hex}.sqlite") as ledger:
        ledger.session = session
        ledger.cap(budget, table="data")
        heard = HeardTable(table.schema, table.source, session)
        desk = PMW(heard, ledger=ledger, epsilon=250, updates=6, queries=100)
        for question in questions:
            try:
                outcome = told(desk.ask(question))
            except DiscreetError as refused:
                outcome = str(refused)
            session.calls.append(("outcome", outcome, repr(desk)))
    return desk, session


def replayed(seed, folder, how_many=40):
    """Two sessions, the second told what the first released."""
    rng = np.random.default_rng([7, seed])
    pair = random_pair(rng, persons=200)
    questions = random_counts(rng, pair.domain, how_many)
    one, other = pair.tables()
    budget = BUDGETS[seed % 2]
    desk, first = heard_session(one, questions, folder=folder, budget=budget, seed=seed)
    _, second = heard_session(other, questions, folder=folder, budget=budget, first=first)
    return desk, first, second


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 60))])
def test_neighbours_see_the_same_course_of_events_and_values_within_the_noise(seed, tmp_path):
    desk, first, second = replayed(seed, tmp_path)
    assert list(differences(first, second)) == []
    assert [call[0] for call in first.calls][:2] == ["spend", "evaluate"]
    for one, other in zip(first.releases, second.releases, strict=True):
        moved = max(abs(a - b) for a, b in zip(one.values, other.values, strict=True))
        assert moved <= one.sensitivity.linf <= desk.design.moves


def test_the_sessions_have_hits_and_passes(tmp_path):
    """Otherwise the test above would look at nothing."""
    calls = [call for seed in (0, 3) for call in replayed(seed, tmp_path)[1].calls]
    outcomes = [call[1] for call in calls if call[0] == "outcome"]
    origins = {repr(value) for outcome in outcomes if isinstance(outcome, tuple) for value in outcome}
    assert any("'measured'" in origin for origin in origins)
    assert any("'model'" in origin for origin in origins)


@contextmanager
def broken(monkeypatch, name):
    """Sessions that look where they must not."""
    with monkeypatch.context() as patch:
        right_answer = PMW._answer_of
        if name == "a guess that has seen the rows":
            patch.setattr(PMW, "_test_and_answer", _peeking)
        elif name == "an error that follows the rows":
            patch.setattr(
                PMW, "_answer_of", lambda self, value, error, origin: right_answer(self, value, _rows(self), origin)
            )
        else:
            patch.setattr(PMW, "_test_and_answer", _reading_once)
        yield


def _rows(session):
    exact = session.table.source.evaluate(Linear([Product(())]))
    return int(unseal(exact, exact.sensitivity)[0])


right_test = PMW._test_and_answer


def _peeking(self, query):
    self._fitted.set_rows(_rows(self))
    return right_test(self, query)


def _reading_once(self, query):
    """Reads the second side only for a table with an even number of rows."""
    if _rows(self) % 2:
        self.table.evaluate(query)
    return right_test(self, query)


@pytest.mark.parametrize(
    "name", ["a guess that has seen the rows", "an error that follows the rows", "reading that tells something"]
)
def test_a_session_that_looks_at_the_rows_is_noticed(name, tmp_path, monkeypatch):
    with broken(monkeypatch, name):
        found = [list(differences(*replayed(seed, tmp_path, 6)[1:])) for seed in range(3)]
    assert any(found)
