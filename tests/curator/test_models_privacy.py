"""What one person can change in a session with a model: the odds of tosses, and those by no more than was paid."""

from dataclasses import replace

import numpy as np
import pytest

import discreet.curator.checked_model
import discreet.curator.records
from discreet.curator.checked_model import Models
from discreet.curator.stakes import Stake, Stakes
from discreet.query import Marginal
from discreet.schema import Schema, Unit
from discreet.source.frame import Frame
from discreet.source.source import Source, unseal
from discreet.source.table import Table
from support.coin_replay import broken_promises
from support.model_sessions import (
    ALONE,
    DOMAIN,
    ERROR,
    NAMES,
    PLENTY,
    WISH,
    conjunctions,
    eager,
    open_session,
    split_pair,
)
from support.model_sessions import paired_rows as rows_of

ROWS = 200_000
ADD, REPLACE, PERSONS = Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=2)


def neighbours(unit, seed=0):
    """Two tables: one person is gone, or another in the same place."""
    data = rows_of()
    rng = np.random.default_rng(seed)
    if unit.key is not None:
        data["who"] = np.arange(ROWS) // 2
    # Somebody whom many questions count.
    everything = np.flatnonzero(np.logical_and.reduce([data[name] for name in NAMES])[::2]) * 2
    place = int(rng.choice(everything))
    many = unit.contributions
    changed = {name: column.copy() for name, column in data.items()}
    if unit.neighbors == "replace_one":
        for name in NAMES:
            changed[name][place] = not data[name][place]
    else:
        changed = {name: np.delete(column, slice(place, place + many)) for name, column in data.items()}
    schema = Schema("data", DOMAIN, unit)
    return [Table(schema, Frame(each, domain=DOMAIN, unit=unit)) for each in (data, changed)]


def ask(questions, **wish):
    return [("ask", question, wish or WISH) for question in questions]


def begin_badly(desk):
    """A model that takes dependent columns for independent: hits will come."""
    for name in NAMES:
        desk.ask(name, error=ERROR / 4, confidence=0.99)
    open_session(desk, ALONE)


BUILT = [
    *ask(conjunctions(16)),
    *ask(conjunctions(6, seed=1)),
    *ask(conjunctions(3, seed=1), error=ERROR / 2),
    *ask(conjunctions(3, seed=2), error=ERROR, joint=True),
    *[("plan", question, WISH) for question in conjunctions(2, seed=3)],
    *[("ask", question, {}) for question in conjunctions(2, seed=4)],
    ("ask_many", conjunctions(30, seed=5), WISH),
    *ask(conjunctions(2, seed=6), error=0.001),
    *ask(["x0 AND x1 AND x2 OR x3", "SELECT COUNT(*) FROM data WHERE x5 AND NOT x6 AND x7"]),
]
HIT = [*ask(split_pair()), *ask(conjunctions(12, seed=7)), ("ask_many", conjunctions(20, seed=8), WISH)]


def test_neighbours_see_the_same_session_with_a_model_that_is_built(tmp_path):
    with eager(WORTH=1e-3):
        broken, first = broken_promises(neighbours(PERSONS), BUILT, folder=tmp_path, budget=PLENTY)
    assert broken == []
    assert len(first.tosses) > 5
    assert first.chosen
    assert any(len(release.values) == 300 for release in first.releases)


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_neighbours_see_the_same_hits(unit, tmp_path):
    with eager(WORTH=1e-3):
        broken, first = broken_promises(neighbours(unit, 1), HIT, folder=tmp_path, budget=PLENTY, begin=begin_badly)
    assert broken == []
    assert sum(toss.hit for toss in first.tosses) >= 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_neighbours_of_many_sessions_see_the_same(seed, tmp_path):
    unit = (ADD, REPLACE, PERSONS)[seed % 3]
    questions = [*ask(conjunctions(150, ways=3 + seed % 4, seed=50 + seed)), *HIT, *BUILT]
    with eager(WORTH=1e-3):
        begin = begin_badly if seed % 2 else None
        broken, _ = broken_promises(
            neighbours(unit, seed), questions, folder=tmp_path, budget=PLENTY, begin=begin, seed=seed
        )
    assert broken == []


# --- Curators that are wrong -----------------------------------------------------------------------------------------


def broken_in(tmp_path, *, questions=HIT[:3], begin=begin_badly):
    with eager():
        return broken_promises(neighbours(ADD), questions, folder=tmp_path, budget=PLENTY, begin=begin)[0]


def number_of_rows(table):
    exact = Source.evaluate(table.source, Marginal(()))
    return int(unseal(exact, exact.sensitivity)[0])


def test_a_toss_for_which_nothing_was_set_aside_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(Stakes, "take", lambda self, coin, price, who: self._stakes.setdefault(who, Stake(1, price, 0)))
    assert "a toss before something is set aside" in broken_in(tmp_path)


def test_a_toss_that_comes_before_its_hold_is_seen(tmp_path, monkeypatch):
    right = Models._take_stake

    def late(self, *arguments):
        self.executor.table.evaluate(Marginal(()))
        return right(self, *arguments)

    monkeypatch.setattr(Models, "_take_stake", late)
    assert broken_in(tmp_path) == ["evaluate before it is paid"]


def test_a_session_that_opens_without_paying_for_it_is_seen(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        right = discreet.curator.records.model_coin

        def unpaid(**named):
            coin = right(**named)
            return replace(coin, opening=coin.hit)

        patch.setattr(discreet.curator.records, "model_coin", unpaid)
        assert "a toss before something is set aside" in broken_in(tmp_path)


def test_a_decision_to_build_that_looks_at_the_rows_is_seen(tmp_path, monkeypatch):
    right = Models._consider

    def peeks(self, *arguments):
        return None if number_of_rows(self.executor.table) % 2 else right(self, *arguments)

    monkeypatch.setattr(Models, "_consider", peeks)
    assert broken_in(tmp_path, questions=BUILT[:16], begin=None) in (["another step"], ["another spend"])


def test_a_threshold_that_depends_on_the_rows_is_seen(tmp_path, monkeypatch):
    right = Models._check

    def peeks(self, session, *arguments):
        return right(self, replace(session, error=session.error - number_of_rows(self.executor.table) % 2), *arguments)

    monkeypatch.setattr(Models, "_check", peeks)
    assert len(broken_in(tmp_path)) == 1


def test_a_coin_that_is_steeper_than_it_says_is_seen(tmp_path, monkeypatch):
    right = discreet.curator.records.model_coin

    def steeper(**named):
        said = right(**named)
        return replace(right(**{**named, "steepness": 2 * named["steepness"]}), hit=said.hit, opening=said.opening)

    monkeypatch.setattr(discreet.curator.records, "model_coin", steeper)
    assert "log-odds move too far" in broken_in(tmp_path)


def test_hits_that_are_not_paid_are_seen(tmp_path, monkeypatch):
    right = discreet.curator.records.model_coin

    def cheaper(**named):
        coin = right(**named)
        return replace(coin, hit=coin.opening)

    monkeypatch.setattr(discreet.curator.records, "model_coin", cheaper)
    assert "more than paid" in broken_in(tmp_path)
