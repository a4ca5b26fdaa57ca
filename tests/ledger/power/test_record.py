"""The recorder misses nothing, and lets the disk fail when it is told to."""

import subprocess
from pathlib import Path

import pytest

from ledger.power import busy, counting
from ledger.power.journal import SyncDone, SyncFailed, read_journal
from ledger.power.replay import cuts, disk_after, read_disk
from ledger.power.shim import needs_power_cuts, run, start, switch

pytestmark = needs_power_cuts


@pytest.fixture
def watched(tmp_path):
    folder = tmp_path / "watched"
    folder.mkdir()
    return folder


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def ask(watched, journal):
    """A program that tries to commit one number more, each time that it is asked, and says how it went."""
    arguments = [counting.__file__, watched / "x.db", "WAL", "FULL", "ask"]
    with start(arguments, watched, journal, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:

        def ask():
            program.stdin.write("\n")
            program.stdin.flush()
            return program.stdout.readline().strip()

        yield ask
        program.stdin.close()


def everything_seen(journal):
    operations = read_journal(journal)
    return disk_after(operations, len(operations), None, "all")


def test_the_journal_tells_all_that_threads_and_processes_did(watched, journal):
    run([busy.__file__, watched, "first"], watched, journal)
    assert len(read_journal(journal)) > 3000
    assert everything_seen(journal) == read_disk(watched)


def test_a_journal_knows_the_files_that_were_there_and_is_continued_by_the_next_program(watched, journal):
    (watched / "old").write_bytes(b"was here before")
    for seed in ("first", "second"):
        run([busy.__file__, watched, seed], watched, journal)
    assert everything_seen(journal) == read_disk(watched)
    assert read_disk(watched)["old"] == b"was here before"


def test_what_was_there_before_is_there_after_every_cut(watched, journal):
    (watched / "old").write_bytes(b"was here before")
    run(["-c", "open(__import__('sys').argv[1], 'w').close()", watched / "new"], watched, journal)
    assert all(cut.disk["old"] == b"was here before" for cut in cuts(journal, 60, seed=0))


def test_a_database_is_recorded_as_it_is(watched, journal):
    run([counting.__file__, watched / "x.db", "WAL", "FULL", "50"], watched, journal)
    assert everything_seen(journal) == read_disk(watched)
    assert set(read_disk(watched)) == {"x.db", "x.db-wal"}


def test_all_ways_to_write_that_cannot_be_recorded_are_refused(watched, journal):
    ways = """
import os, pathlib, shutil, sys
folder = pathlib.Path(sys.argv[1])
(folder / "a").write_bytes(b"abc")
shutil.copyfile(folder / "a", folder / "b")
fd = os.open(folder / "b", os.O_RDWR)
for way in (
    lambda: os.writev(fd, [b"x"]),
    lambda: os.pwritev(fd, [b"x"], 0),
    lambda: os.sendfile(fd, os.open(folder / "a", os.O_RDONLY), 0, 3),
    lambda: os.copy_file_range(os.open(folder / "a", os.O_RDONLY), fd, 3),
    lambda: os.link(folder / "a", folder.parent / "c"),
    lambda: os.rename(folder / "a", folder.parent / "c"),
):
    try:
        way()
        print("done")
    except OSError:
        print("refused")
"""
    assert run(["-c", ways, watched], watched, journal).split() == ["refused"] * 6
    assert everything_seen(journal) == read_disk(watched) == {"a": b"abc", "b": b"abc"}


@pytest.mark.parametrize(
    ("fault", "complaint"), [("sync_fails", "disk I/O error"), ("disk_full", "database or disk is full")]
)
def test_a_commit_fails_while_the_disk_does_and_goes_on_after_it(ask, journal, fault, complaint):
    assert ask() == "committed"
    switch(journal, **{fault: True})
    assert [ask() for _ in range(3)] == [f"OperationalError: {complaint}"] * 3
    switch(journal)
    assert [ask() for _ in range(3)] == ["committed"] * 3
    assert any(isinstance(operation, SyncFailed) for operation in read_journal(journal)) == (fault == "sync_fails")


def test_a_fault_can_be_of_some_files_only(ask, journal):
    assert ask() == "committed"
    switch(journal, sync_fails="x.db")
    enough_for_a_checkpoint = counting.CHECKPOINT_EVERY
    assert [ask() for _ in range(enough_for_a_checkpoint)] == ["committed"] * enough_for_a_checkpoint
    failed = {operation.path for operation in read_journal(journal) if isinstance(operation, SyncFailed)}
    assert failed == {"x.db"}
    switch(journal, sync_fails="-wal")
    assert ask() == "OperationalError: disk I/O error"


@pytest.mark.parametrize("fault", ["sync_fails", "disk_full"])
def test_a_program_can_start_with_a_failing_disk(watched, journal, fault):
    with pytest.raises(RuntimeError, match="OperationalError"):
        run([counting.__file__, watched / "x.db", "DELETE", "FULL", "1"], watched, journal, **{fault: True})
    assert not any(isinstance(operation, SyncDone) for operation in read_journal(journal)) or fault == "disk_full"


def test_marks_are_seen_though_the_disk_is_full(watched, journal):
    mark = "import os, sys; os.write(os.open(sys.argv[1] + '/x.revealed', os.O_CREAT | os.O_WRONLY), b'seen')"
    run(["-c", mark, watched], watched, journal, disk_full=True)
    last = list(cuts(journal, 50, seed=0))[-1]
    assert last.revealed == b"seen"
    assert last.disk == {}


def test_a_journal_is_not_kept_where_it_would_record_itself(watched):
    with pytest.raises(ValueError, match="outside"):
        start(["-c", ""], watched, Path(watched) / "journal")
