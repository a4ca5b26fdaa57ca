"""SmallDB as a procedure, and the request that it makes of the executor."""

from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest

from discreet.accounting.event import Selection
from discreet.curator.records import Prints, from_bytes
from discreet.curator.release_run import RequestExecutor
from discreet.errors import BudgetExceeded, TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.lab.textbook.small_db import MOST_WORK, best_size, cells_of_goal, small, too_many_tables
from discreet.plan.plan import SmallTable
from discreet.release.task import Brief, goal_of
from discreet.schema import Boolean, Domain, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from release.procedures import ADD, PERSONS, REPLACE, desk_of, refused
from support.statistics import assert_follows, rejects

FEW = Domain({"ill": Boolean(), "old": Boolean(), "rich": Boolean()})
GOAL = goal_of([["ill", "old"], ["old", "rich"]], FEW)
CELLS = np.array([300, 40, 10, 50, 20, 60, 20, 500])
ROWS = int(CELLS.sum())


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    """Tables of fewer rows: what is asked and paid is the same."""
    monkeypatch.setattr("discreet.lab.textbook.small_db.MOST_WORK", 2**18)


def few_rows(unit=ADD, cells=CELLS):
    bits = np.array(np.unravel_index(np.repeat(np.arange(8), cells), (2, 2, 2))).astype(bool)
    data = dict(zip(sorted(FEW), bits.tolist(), strict=True)) | {"who": list(range(bits.shape[1]))}
    return Table(Schema("data", FEW, unit), Frame(data, domain=FEW, unit=unit))


def marginal(columns):
    others = tuple(place for place, name in enumerate(sorted(FEW)) if name not in columns)
    return CELLS.reshape(2, 2, 2).sum(axis=others)


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSONS], ids=lambda unit: unit.describe)
def test_it_costs_what_it_may(unit, pure, tmp_path):
    for units in (Fraction(1, 50), Fraction(1)):
        with desk_of(tmp_path, pure=pure, table=few_rows(unit)) as desk:
            model = desk.release(small, units, GOAL)
            assert Fraction(99, 100) * units < desk.spent() <= units
            assert isinstance(desk.requests[-1], SmallTable)
            assert len(desk.requests) == (1 if unit == REPLACE else 2)
            assert model.number == desk.requests[-1].rows


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_with_plenty_it_is_as_near_as_so_few_rows_can_be(pure, tmp_path):
    with desk_of(tmp_path, pure=pure, table=few_rows(REPLACE)) as desk:
        model = desk.release(small, Fraction(20), GOAL)
        assert model.total == pytest.approx(ROWS)
        few = model.number
        assert few >= 8
        for scope in GOAL.scopes:
            assert np.abs(model.marginal(scope) - marginal(scope)).max() < ROWS / few


def test_where_the_rows_are_counted_the_table_stands_for_as_many(tmp_path):
    with desk_of(tmp_path, table=few_rows()) as desk:
        model = desk.release(small, Fraction(100), GOAL)
        assert model.total == pytest.approx(ROWS, abs=10)


def test_the_teller_draws_the_table_by_its_law(tmp_path):
    """Two rows of two cells, a few hundred times; laws of other epsilons are told apart."""
    domain = Domain({"old": Boolean()})
    data = {"old": [True] * 7 + [False] * 3}
    table = Table(Schema("data", domain, REPLACE), Frame(data, domain=domain, unit=REPLACE))
    questions = cells_of_goal(goal_of([["old"]], domain))
    request = SmallTable(questions, 2, Fraction(1), "a small table")
    with desk_of(tmp_path, pure=True, table=table) as desk:
        drawn = [tuple(desk.answer(request).tolist()) for _ in range(250)]

    def law(epsilon):
        # n times the largest error of a fraction: with k of two rows old, |7 − 5k|.
        weights = {cells: exp(-epsilon * abs(7 - 5 * sum(cells)) / 2) for cells in ((0, 0), (0, 1), (1, 1))}
        return {cells: weight / sum(weights.values()) for cells, weight in weights.items()}

    assert_follows(drawn, law(1))
    assert rejects(drawn, law(4))
    assert rejects(drawn, law(0.25))


def test_what_was_heard_is_in_the_ledger_with_its_price_and_nothing_is_known_of_it(tmp_path):
    with desk_of(tmp_path, table=few_rows()) as desk:
        request = SmallTable(cells_of_goal(GOAL), 3, Fraction(1, 3), "a small table")
        cells = desk.answer(request)
        ledger = desk.executor.ledger
        kept = [from_bytes(entry.released, "data", Prints(FEW)) for entry in ledger.entries() if entry.released]
        assert [released.kind for released in kept] == ["heard"]
        assert kept[0].values.tolist() == cells.tolist()
        assert [spend.event for spend in ledger.history()] == [Selection(Fraction(1, 3))]
        again = RequestExecutor(desk.executor.table, ledger)
        again.refresh()
        assert again.known.version == desk.known.version == 0


def test_it_is_paid_from_a_hold(tmp_path):
    with desk_of(tmp_path, table=few_rows()) as desk:
        request = SmallTable(cells_of_goal(GOAL), 3, Fraction(1, 3), "a small table")
        held = desk.executor.reserve(Selection(Fraction(1, 2)), "a release", analyst="ana")
        before = desk.executor.balance("ana").total_ticks
        desk.executor.answer(request, analyst="ana", hold=held)
        # What was set aside is still counted, what was paid is part of it.
        assert desk.executor.balance("ana").total_ticks == before


def test_what_is_too_dear_or_too_large_is_neither_charged_nor_read(tmp_path, monkeypatch):
    with desk_of(tmp_path, table=few_rows()) as desk:
        monkeypatch.setattr(Table, "evaluate", lambda *_: pytest.fail("rows were read"))
        questions = cells_of_goal(GOAL)
        with pytest.raises(TooLarge, match="multisets of 600 rows"):
            desk.answer(SmallTable(questions, 600, Fraction(1), "a small table"))
        with pytest.raises(BudgetExceeded):
            desk.answer(SmallTable(questions, 3, Fraction(10**6), "a small table"))
        assert not any(desk.executor.balance("ana").spent_ticks)


def test_the_size_is_that_of_the_least_promised_error():
    known = GaussianLattice.nothing(FEW, ADD)
    sizes = [best_size(GOAL, known, rows, 1.0)[0] for rows in (10, 1_000, 100_000)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    # Persons with several rows hide less well.
    assert best_size(GOAL, GaussianLattice.nothing(FEW, PERSONS), 1_000, 1.0)[1] > best_size(GOAL, known, 1_000, 1.0)[1]
    assert 8 * comb(8 + sizes[-1] - 1, sizes[-1]) <= 2**18 < MOST_WORK


def test_it_is_refused_before_anything_is_asked():
    wide = Domain({f"x{place:02}": Boolean() for place in range(16)})
    goal = goal_of([[one, other] for one in wide for other in wide if one < other], wide)
    error = refused(small(Brief(GaussianLattice.nothing(wide, Unit()), goal, Fraction(1))))
    assert isinstance(error, TooLarge)
    assert str(error) == too_many_tables(goal)
    assert "480 counts" in str(error)
    assert too_many_tables(GOAL) == ""
