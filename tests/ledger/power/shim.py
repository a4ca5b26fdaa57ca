"""Run a Python program whose changes to a folder are recorded, and let its disk fail."""

import os
import subprocess
import sys
from atexit import register
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ledger.power.journal import begin_journal
from support.needs import needs

TESTS = Path(__file__).parents[2]

needs_power_cuts = [
    pytest.mark.process,
    needs(command="cc"),
    pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**32, reason="the recorder is for 64-bit Linux"),
]


# No file, all files, or the files whose names end so ("-wal"; the watched folder itself has the name "").
Fault = bool | str


@cache
def build(folder: Path) -> Path:
    """The recorder, compiled into a folder; once per process."""
    library = folder / "record.so"
    source = Path(__file__).with_name("record.c")
    # Without fortification, whose headers would put their own names before those that the recorder defines.
    flags = ["-std=gnu11", "-O1", "-Wall", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-pthread"]
    subprocess.run(["cc", *flags, "-o", library, source], check=True)
    return library


@cache
def _library() -> Path:
    folder = TemporaryDirectory(prefix="discreet-power-")
    register(folder.cleanup)
    return build(Path(folder.name))


def start(
    arguments: Sequence[str | Path],
    watched: Path,
    journal: Path,
    *,
    sync_fails: Fault = False,
    disk_full: Fault = False,
    **options: Any,
) -> subprocess.Popen[str]:
    """Start Python with these arguments, and go on; `options` are those of Popen.

    A journal that is there already is continued. The program can import what the tests can.
    """
    watched, journal = watched.resolve(), journal.resolve()
    if journal.is_relative_to(watched):
        raise ValueError(f"the journal {journal} would be recorded itself: put it outside of {watched}")
    if not journal.exists():
        begin_journal(journal, watched)
    switch(journal, sync_fails=sync_fails, disk_full=disk_full)
    environment = os.environ | options.pop("env", {})
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), environment.get("PYTHONPATH")]))
    environment |= {"LD_PRELOAD": str(_library()), "POWER_WATCHED": str(watched), "POWER_JOURNAL": str(journal)}
    return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, **options)


def run(
    arguments: Sequence[str | Path], watched: Path, journal: Path, *, timeout: float = 120, **faults_and_options: Any
) -> str:
    """Run Python with these arguments to its end, which must be a good one; what it printed."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | faults_and_options
    with start(arguments, watched, journal, **options) as program:
        try:
            printed, complaint = program.communicate(timeout=timeout)
        finally:
            program.kill()
    if program.returncode != 0:
        raise RuntimeError(f"the recorded program ended with {program.returncode}:\n{complaint}")
    return printed


def switch(journal: Path, *, sync_fails: Fault = False, disk_full: Fault = False) -> None:
    """Say which faults the disk has from now on; also while the program runs, and also by the program itself."""
    for name, fault in {"sync_fails": sync_fails, "disk_full": disk_full}.items():
        trigger = journal.with_name(f"{journal.name}.{name}")
        if fault is False:
            trigger.unlink(missing_ok=True)
        else:
            # Put in place whole: half a trigger would be another one.
            draft = trigger.with_name(f"{trigger.name}.draft")
            draft.write_text("" if fault is True else fault)
            draft.replace(trigger)
