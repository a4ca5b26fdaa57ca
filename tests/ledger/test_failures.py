"""Files, locks and clocks that fail: no answer, a clear sentence, nothing forgotten, and nobody needed to go on."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from json import loads
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import pytest

from discreet.errors import BadParameter, LedgerDamaged, LedgerFailed
from discreet.ledger import Ledger, connection, store, verify
from ledger.bystander import bystander
from ledger.serving import assert_goes_on, capped, fails, spend
from ledger.spending import BUDGET
from support.processes import child


@pytest.fixture
def file(tmp_path):
    return tmp_path / "x.sqlite"


@pytest.fixture
def ledger(file):
    with capped(file) as ledger:
        yield ledger


# A small disk.


def mounting_is_allowed():
    with TemporaryDirectory() as folder:
        allowed = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0
        if allowed:
            subprocess.run(["umount", folder], check=True)
        return allowed


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    if not (sys.platform == "linux" and mounting_is_allowed()):
        pytest.skip("this user may not mount a file system; test_failing_disk.py shows a full disk without one")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def remount(folder, option):
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


def test_a_file_system_of_one_megabyte_is_filled_and_enlarged(small_disk):
    file = small_disk / "x.sqlite"
    with capped(file) as ledger:
        recorded = []
        with fails("the disk is full"):
            for _ in range(100):
                receipt = spend(ledger)
                ledger.record(receipt, bytes(30_000))
                recorded.append(receipt.sequence)
        assert len(recorded) > 5
        for _ in range(3):
            with fails("the disk"):
                for _ in range(1000):
                    spend(ledger)
        remount(small_disk, "size=8m")
        assert_goes_on(ledger, file)
        answered = [one.sequence for one in ledger.history() if one.released is not None]
    assert answered[: len(recorded)] == recorded


def test_room_that_somebody_makes_is_used(small_disk):
    file, ballast = small_disk / "x.sqlite", small_disk / "ballast"
    with capped(file) as ledger:
        with suppress(OSError), ballast.open("wb", buffering=0) as filling:
            while filling.write(bytes(4096)):
                pass
        with fails("the disk is full"):
            for _ in range(100):
                spend(ledger)
        ballast.unlink()
        assert_goes_on(ledger, file)


def test_no_ledger_is_begun_where_there_is_no_room(small_disk):
    file, ballast = small_disk / "x.sqlite", small_disk / "ballast"
    ballast.write_bytes(bytes(2**20 - 4096))
    with fails("the disk is full|cannot be opened"):
        Ledger(file)
    ballast.unlink()
    with capped(file) as ledger:
        assert_goes_on(ledger, file)


# Files that cannot be written, or are something else.


def test_no_ledger_is_served_from_a_disk_that_became_read_only(small_disk):
    file = small_disk / "x.sqlite"
    capped(file).close()
    remount(small_disk, "ro")
    with fails("may not be written|cannot be opened"):
        Ledger(file)
    remount(small_disk, "rw")
    with capped(file) as ledger:
        assert_goes_on(ledger, file)


@pytest.fixture
def common_folder():
    """A folder that every user can reach: those of pytest are for their owner only."""
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def as_nobody(work):
    """Do something in a process without the rights of root, whom no file mode stops."""

    def drop_rights_and_work():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work()

    with child(drop_rights_and_work) as process:
        process.result()


@pytest.mark.parametrize("read_only", ["file", "folder", "head"])
def test_what_may_not_be_written_is_said(common_folder, read_only):
    paths = {"file": common_folder / "x.sqlite", "head": common_folder / "x.sqlite.head", "folder": common_folder}
    capped(paths["file"]).close()
    for name, path in paths.items():
        path.chmod(0o555 if name == read_only else 0o777)

    def open_and_spend():
        with fails("may not be written|cannot be opened"), Ledger(paths["file"]) as ledger:
            spend(ledger)

    as_nobody(open_and_spend)
    for path in paths.values():
        path.chmod(0o777)
    with capped(paths["file"]) as ledger:
        assert ledger.history() == []
        assert_goes_on(ledger, paths["file"])


def test_a_ledger_whose_file_was_taken_away_grants_nothing(ledger, file, tmp_path):
    """The system lets a program go on with a file that has no name any more; nobody would find it again."""
    spend(ledger)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    kept = [path.rename(elsewhere / path.name) for path in tmp_path.glob("x.sqlite*")]
    with fails("cannot be opened|not there|gone"):
        spend(ledger)
    for path in kept:
        path.rename(tmp_path / path.name)
    assert_goes_on(ledger, file)


def test_a_ledger_whose_file_was_replaced_by_a_copy_grants_nothing(ledger, file):
    spend(ledger)
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    copy.replace(file)
    with pytest.raises((LedgerFailed, LedgerDamaged)):
        spend(ledger)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with fails("Check that the folder is there"):
        Ledger(tmp_path / "nowhere" / "x.sqlite")
    with fails("Check the path", BadParameter):
        Ledger(tmp_path / "nowhere" / "x.sqlite", create=False)


def test_a_folder_is_no_ledger(tmp_path):
    with fails("cannot be opened"):
        Ledger(tmp_path)


@pytest.mark.parametrize("content", [b"hello", b"name,age\n" * 1000, bytes(5000)], ids=["short", "long", "zeros"])
def test_a_file_of_another_kind_is_no_ledger_and_is_not_changed(file, content):
    file.write_bytes(content)
    with fails("not a whole SQLite database", LedgerDamaged):
        Ledger(file)
    assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


def test_a_head_that_cannot_be_kept_is_said_when_the_ledger_is_opened(file, tmp_path):
    with fails("Check that the folder is there"):
        Ledger(file, head=tmp_path / "nowhere" / "head")
    with fails("cannot be read", BadParameter):
        Ledger(file, head=tmp_path)
    (tmp_path / "notes").write_text("what I must not forget")
    with fails("is not the head of a ledger", BadParameter):
        Ledger(file, head=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "what I must not forget"
    with capped(file) as ledger:
        assert_goes_on(ledger, file)


# Others who use the file.


@pytest.fixture
def impatience(monkeypatch):
    """How long a ledger that is opened now waits for others, in seconds."""
    monkeypatch.setattr(connection, "LOCK_TIMEOUT", 0.3)
    monkeypatch.setattr(store, "LOCK_TIMEOUT", 0.3)
    return 0.3


@pytest.mark.parametrize(
    "statements",
    [["BEGIN IMMEDIATE"], ["PRAGMA locking_mode = EXCLUSIVE", "BEGIN IMMEDIATE"]],
    ids=["writes", "keeps it all to itself"],
)
def test_a_database_that_another_process_has_locked_is_waited_for_in_vain(file, impatience, statements):
    capped(file).close()
    with bystander(file, *statements):
        begun = monotonic()
        with fails("another program keeps it locked"), Ledger(file) as ledger:
            spend(ledger)
        assert impatience <= monotonic() - begun < 10
    with capped(file) as ledger:
        assert_goes_on(ledger, file)


def test_the_same_ledger_goes_on_when_the_lock_is_gone(file, impatience):
    with capped(file) as ledger:
        receipt = spend(ledger)
        with bystander(file, "BEGIN IMMEDIATE"):
            for _ in range(2):
                with fails("another program keeps it locked"):
                    spend(ledger)
            with fails("another program keeps it locked"):
                ledger.record(receipt, b"an answer")
            assert ledger.remaining(table="people").epsilon < BUDGET.epsilon
        ledger.record(receipt, b"an answer")
        assert_goes_on(ledger, file)
    assert verify(file).spends == 4


def test_what_is_left_can_be_read_while_another_process_writes(file, impatience):
    with capped(file) as ledger:
        spend(ledger)
        with bystander(file, "BEGIN IMMEDIATE"):
            with fails("another program keeps it locked"):
                spend(ledger)
            assert ledger.remaining(table="people").epsilon < BUDGET.epsilon
            assert len(ledger.history()) == 1


def test_somebody_who_reads_for_long_delays_no_spend_for_long(ledger, file, monkeypatch):
    monkeypatch.setattr(store, "CHECKPOINT_BYTES", 1)
    monkeypatch.setattr(store, "CHECKPOINT_TIMEOUT", 0.2)
    with bystander(file, "BEGIN", "SELECT count(*) FROM discreet_ledger"):
        begun = monotonic()
        for _ in range(5):
            spend(ledger)
        assert monotonic() - begun < 5 * (0.2 + 1)
    assert_goes_on(ledger, file)
    with closing(sqlite3.connect(file)) as database:
        _, logged, copied_back = database.execute("PRAGMA wal_checkpoint").fetchone()
    assert logged == copied_back


# The clock.


def test_time_never_moves_back_though_the_clock_does(ledger, file, monkeypatch):
    class Clock(datetime):
        moves = iter([0, -3600, -7200, 5, -10_000_000, 10, -1])

        @classmethod
        def now(cls, zone=None):
            return datetime.now(UTC) + timedelta(seconds=next(cls.moves, 0))

    monkeypatch.setattr(store, "datetime", Clock)
    for _ in range(7):
        spend(ledger)
    assert_goes_on(ledger, file)
    times = [loads(entry.body)["at"] for entry in ledger.entries()]
    assert times == sorted(times)
    assert len(set(times)) < len(times)
