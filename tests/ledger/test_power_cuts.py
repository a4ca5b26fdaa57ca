"""Power cuts of the ledger: what the world has seen is paid, and it opens by itself. Careless ledgers are caught."""

from collections import Counter
from itertools import count
from random import Random

import pytest

from ledger import spending
from ledger.aftermath import NAME, violations, witness_on
from ledger.power.journal import SyncDone, read_journal
from ledger.power.replay import cuts, write_disk
from ledger.power.shim import needs_power_cuts, run

pytestmark = needs_power_cuts

CUTS = 200
FEWER = 40
ALONE = {"rounds": 25}
THREADS = {"rounds": 10, "threads": 4}
PROCESSES = {"rounds": 10, "threads": 2, "processes": 2}
CROWDS = pytest.mark.parametrize("crowd", [ALONE, THREADS, PROCESSES], ids=["alone", "threads", "processes"])


@pytest.fixture
def record(tmp_path):
    """A function that records what a crowd does with a ledger on such a disk: the journal."""
    numbers = count()

    def record(habit="right", *, rounds, threads=1, processes=1, disk=None):
        folder = tmp_path / f"recorded-{next(numbers)}"
        watched, journal = write_disk(disk or {}, folder / "watched"), folder / "journal"
        run([spending.__file__, watched / NAME, habit, *map(str, (rounds, threads, processes))], watched, journal)
        return journal

    return record


@CROWDS
def test_what_the_world_has_seen_is_paid_after_every_cut(record, crowd):
    journal = record(**crowd)
    assert violations(journal, CUTS if crowd is THREADS else FEWER) == []
    copied_back = [one for one in read_journal(journal) if isinstance(one, SyncDone) and one.path == NAME]
    assert len(copied_back) >= 5


def test_a_ledger_that_was_cut_while_it_was_made_is_made_by_the_next_who_opens_it(record):
    assert violations(record(rounds=0), FEWER) == []


def test_a_ledger_outlives_one_cut_after_another(record):
    assert_outlives(record, lives=3, cuts_of_each=15)


def assert_outlives(record, lives, cuts_of_each):
    disk, seen = {}, b""
    for life in range(lives):
        journal = record(rounds=4, threads=3, disk=disk)
        assert violations(journal, cuts_of_each, seed=life, before=seen) == []
        cut = Random(life).choice(list(cuts(journal, cuts_of_each, seed=life)))
        disk, seen = cut.disk, seen + cut.revealed


def test_the_witness_is_lost_or_lags_behind_and_never_runs_ahead(record):
    found = Counter(witness_on(cut) for cut in cuts(record(**THREADS), CUTS, seed=0))
    assert set(found) == {"says nothing", "is up to date", "lags behind"}
    assert min(found.values()) >= 1


def test_the_witness_of_a_careless_ledger_runs_ahead(record):
    found = Counter(witness_on(cut) for cut in cuts(record("sync_now_and_then", **THREADS), CUTS, seed=0))
    assert found["runs ahead"] >= 2


def test_cuts_show_what_a_careless_ledger_forgets(record):
    found = violations(record("sync_now_and_then", **THREADS), CUTS)
    assert len(found) >= 20
    assert {kind for kind, _ in found} == {"nothing", "some"}


def test_cuts_show_what_was_revealed_before_it_was_paid(record):
    found = violations(record("reveal_first", **THREADS), FEWER)
    assert len(found) >= 5
    # Also if nothing is lost that was written: it was not written yet.
    assert {kind for kind, _ in found} == {"nothing", "some", "all"}


@pytest.mark.long
@CROWDS
def test_two_thousand_cuts_break_no_promise(record, crowd):
    journal = record(**{**crowd, "rounds": 2 * crowd["rounds"]})
    assert [broken for seed in range(10) for broken in violations(journal, CUTS, seed=seed)] == []


@pytest.mark.long
def test_a_ledger_outlives_thirty_cuts_in_a_row(record):
    assert_outlives(record, lives=30, cuts_of_each=20)
