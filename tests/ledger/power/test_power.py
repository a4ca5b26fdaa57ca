"""Power cuts of SQLite: where it promises that a commit lasts no cut shows a loss, elsewhere many do."""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ledger.power import counting
from ledger.power.replay import cuts
from ledger.power.shim import needs_power_cuts, run

pytestmark = needs_power_cuts

CUTS = 200
ROWS = 120


@pytest.fixture
def record(tmp_path):
    def record(journal_mode, synchronous):
        watched, journal = tmp_path / "watched", tmp_path / "journal"
        watched.mkdir()
        run([counting.__file__, watched / "x.db", journal_mode, synchronous, str(ROWS)], watched, journal)
        return journal

    return record


def numbers(database):
    """What a table holds after a restart: nothing if even the table was not safe yet."""
    with closing(sqlite3.connect(database)) as connection:
        # Its recovery need not last: the folder is thrown away.
        connection.execute("PRAGMA synchronous=OFF")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
        return {i for (i,) in connection.execute("SELECT i FROM number")} if tables else set()


def is_kept(cut):
    """Whether the database is whole, and holds all that the world has seen."""
    with TemporaryDirectory() as folder:
        try:
            return set(map(int, cut.revealed.split())) <= numbers(cut.write(Path(folder) / "disk") / "x.db")
        except (sqlite3.DatabaseError, AssertionError):
            return False


def violations(journal, how_many=CUTS, seed=0):
    return [cut.kind for cut in cuts(journal, how_many, seed) if not is_kept(cut)]


@pytest.mark.parametrize(
    ("journal_mode", "synchronous"), [("WAL", "FULL"), ("DELETE", "EXTRA"), ("TRUNCATE", "FULL"), ("PERSIST", "FULL")]
)
def test_what_the_world_has_seen_is_in_the_database_after_every_cut(record, journal_mode, synchronous):
    assert violations(record(journal_mode, synchronous)) == []


@pytest.mark.parametrize(
    ("journal_mode", "synchronous"),
    [
        ("WAL", "NORMAL"),
        ("WAL", "OFF"),
        ("DELETE", "OFF"),
        # The removal of the rollback journal is not synced: it may come back, and undo the last commit.
        ("DELETE", "FULL"),
    ],
)
def test_cuts_show_where_a_commit_does_not_last(record, journal_mode, synchronous):
    found = violations(record(journal_mode, synchronous))
    assert len(found) >= 20
    assert set(found) == {"nothing", "some"}


def test_without_a_loss_even_a_careless_database_is_whole(record):
    """The program's own crash is no power cut: all that it wrote stays, and nothing is lost by any setting."""
    journal = record("WAL", "OFF")
    assert all(is_kept(cut) for cut in cuts(journal, 90, seed=1) if cut.kind == "all")


@pytest.mark.long
@pytest.mark.parametrize(("journal_mode", "synchronous"), [("WAL", "FULL"), ("DELETE", "EXTRA")])
def test_ten_thousand_cuts_show_no_loss(record, journal_mode, synchronous):
    journal = record(journal_mode, synchronous)
    assert [lost for seed in range(50) for lost in violations(journal, seed=seed)] == []
