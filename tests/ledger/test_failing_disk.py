"""A disk that fails to sync or is full, and then a power cut: nothing is granted that does not last, then or later."""

import subprocess
from functools import partial

import pytest

from ledger import asking
from ledger.aftermath import NAME, cuts_since, violations, witness_on
from ledger.bystander import bystander
from ledger.power.journal import SyncFailed, read_journal
from ledger.power.shim import needs_power_cuts, start, switch

pytestmark = needs_power_cuts

CUTS = 30
DONE = "done"
NOT_STORED, FULL = "the disk failed to store", "the disk is full"
FAULTS = {
    "no sync": ({"sync_fails": True}, NOT_STORED),
    "no sync of the log": ({"sync_fails": "-wal"}, NOT_STORED),
    "full": ({"disk_full": True}, FULL),
    "full for the log": ({"disk_full": "-wal"}, FULL),
}
faults = pytest.mark.parametrize(("fault", "reason"), FAULTS.values(), ids=FAULTS)


class Program:
    """A recorded program with a ledger: a function that has it do things in turn, and tells how each went."""

    def __init__(self, watched, journal, name):
        arguments = [asking.__file__, watched / name]
        self._program = start(arguments, watched, journal, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, *lines):
        return [self._ask(line) for line in lines]

    def _ask(self, line):
        self._program.stdin.write(f"{line}\n")
        self._program.stdin.flush()
        return self._program.stdout.readline().strip()

    def kill(self):
        with self._program:
            self._program.kill()


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def new_program(tmp_path, journal):
    """A function that starts a program with the same ledger, after it has killed the one before."""
    watched, programs = tmp_path / "watched", []
    (watched / "folder").mkdir(parents=True)

    def new_program(name=NAME):
        for program in programs:
            program.kill()
        programs.append(Program(watched, journal, name))
        return programs[-1]

    yield new_program
    for program in programs:
        program.kill()


def is_clear(outcome, reason=""):
    """Whether it is a failure in our words, for this reason, that says what to do and nothing of the question."""
    said = outcome.startswith("LedgerFailed: ") and outcome.endswith(". Nothing was released.") and reason in outcome
    return said and ("Check" in outcome or "Make room" in outcome) and asking.WHY not in outcome


def assert_fails_for_a_while(new_program, journal, fault, reason, *, restarts, cuts):
    program = new_program()
    assert set(program("open", "spend", "record", "spend")) == {DONE}
    switch(journal, **fault)
    since = len(read_journal(journal))
    first, *others = program("record", "spend", "spend")
    assert is_clear(first, reason)
    assert all(map(is_clear, others))
    switch(journal)
    if restarts:
        program = new_program()
        assert program("open") == [DONE]
        assert violations(journal, cuts, since=since) == []
    assert set(program("spend", "record", "spend", "spend", "record")) == {DONE}
    assert set(program("open", "spend", "record")) == {DONE}
    assert violations(journal, cuts, since=since) == []


@faults
def test_while_the_disk_fails_nothing_is_granted_and_what_is_granted_later_lasts(new_program, journal, fault, reason):
    assert_fails_for_a_while(new_program, journal, fault, reason, restarts=False, cuts=CUTS)


def test_a_sync_that_failed_is_not_believed_by_the_next_program(new_program, journal):
    assert_fails_for_a_while(new_program, journal, *FAULTS["no sync"], restarts=True, cuts=CUTS)


def test_a_sync_that_failed_is_not_believed_after_a_lock_either(new_program, journal, tmp_path):
    watched, program = tmp_path / "watched", new_program()
    assert set(program("hurry", "open", "spend", "record", "spend")) == {DONE}
    switch(journal, sync_fails=True)
    since = len(read_journal(journal))
    assert is_clear(*program("spend"))
    switch(journal)
    with bystander(watched / NAME, "BEGIN IMMEDIATE", start=partial(start, watched=watched, journal=journal)):
        (outcome,) = program("spend")
        assert "another program keeps it locked" in outcome
    assert set(program("spend", "spend", "spend", "record")) == {DONE}
    assert violations(journal, CUTS, since=since) == []


def test_a_head_that_was_lost_does_not_begin_with_what_is_not_on_the_disk(new_program, journal, tmp_path):
    program = new_program()
    assert set(program("open", "spend", "record", "spend")) == {DONE}
    switch(journal, sync_fails=True)
    assert is_clear(*program("record"))
    switch(journal)
    program = new_program()
    (tmp_path / "watched" / f"{NAME}.head").unlink()
    since = len(read_journal(journal))
    assert program("open") == [DONE]
    assert "runs ahead" not in {witness_on(cut) for cut in cuts_since(journal, 200, seed=0, since=since)}


@pytest.mark.long
@faults
@pytest.mark.parametrize("restarts", [False, True], ids=["same program", "next program"])
def test_five_hundred_cuts_after_a_failure_break_no_promise(new_program, journal, fault, reason, restarts):
    assert_fails_for_a_while(new_program, journal, fault, reason, restarts=restarts, cuts=500)


def test_cuts_show_what_is_forgotten_by_a_ledger_that_believes_too_much(new_program, journal):
    program = new_program()
    assert set(program("open", "believe", "spend", "record", "spend")) == {DONE}
    switch(journal, sync_fails=True)
    assert set(program("record", "spend", "spend")) == {DONE}
    assert len(violations(journal, CUTS)) >= 3


@pytest.mark.parametrize("fault", ["sync_fails", "disk_full"])
def test_what_is_granted_stays_granted_though_the_log_cannot_be_copied_back(new_program, journal, fault):
    program = new_program()
    assert set(program("open", "tidy", "spend", "record")) == {DONE}
    switch(journal, **{fault: NAME})
    since = len(read_journal(journal))
    assert set(program("spend", "record", "spend", "record")) == {DONE}
    switch(journal)
    assert set(program("spend", "record", "open", "spend", "record")) == {DONE}
    assert violations(journal, CUTS, since=since) == []
    assert any(isinstance(one, SyncFailed) for one in read_journal(journal)) == (fault == "sync_fails")


def test_a_folder_that_does_not_keep_the_names_of_files_keeps_no_ledger(new_program, journal):
    """SQLite does not look whether the folder was synced; if not, a cut takes away the whole log."""
    program = new_program(f"folder/{NAME}")
    switch(journal, sync_fails="folder")
    assert is_clear(*program("open"))
    assert violations(journal, CUTS, name=f"folder/{NAME}") == []


def test_a_head_that_cannot_be_written_fails_who_opens_and_nobody_who_spends(new_program, journal):
    program = new_program()
    assert set(program("open", "spend")) == {DONE}
    switch(journal, disk_full=".head")
    since = len(read_journal(journal))
    assert set(program("spend", "record", "spend", "record")) == {DONE}
    assert is_clear(*program("open"), FULL)
    switch(journal)
    assert set(program("open", "spend", "record")) == {DONE}
    assert violations(journal, CUTS, since=since) == []
