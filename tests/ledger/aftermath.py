"""What a ledger has promised to the world (spending.py says how), and whether a disk after a power cut keeps it."""

import sqlite3
from collections import defaultdict
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import cycle
from json import loads
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import get_args

from discreet.errors import BadParameter, DiscreetError
from discreet.ledger import Head, Ledger, verify
from ledger.power.disk import Keep
from ledger.power.journal import read_journal
from ledger.power.replay import Cut, cuts, disk_after, revealed_before
from ledger.spending import BUDGET, EVENT

NAME = "x.sqlite"
# For what need not last.
_MEMORY = Path("/dev/shm")


def violations(journal, how_many, *, seed=0, since=0, before=b"", name=NAME):
    """The cuts after which a promise is broken: of each its kind and what is wrong.

    All happen when so many operations were journalled, or later; `before` is what was seen before the journal.
    """
    found = []
    for cut in cuts_since(journal, how_many, seed, since) if since else cuts(journal, how_many, seed):
        with disk_of(cut) as folder:
            # Directories are taken to be there.
            (folder / name).parent.mkdir(exist_ok=True)
            if broken := broken_promises(folder / name, before + cut.revealed):
                found.append((cut.kind, broken))
    return found


def cuts_since(journal, how_many, seed, since):
    """Power cuts of a short journal at random moments after so many operations; each kind in turn."""
    operations, rng = read_journal(journal), Random(seed)
    for keep, _ in zip(cycle(get_args(Keep)), range(how_many), strict=False):
        moment = rng.randint(since, len(operations))
        disk = disk_after(operations, moment, rng, keep)
        yield Cut(moment, keep, disk, revealed_before(operations, moment))


@contextmanager
def scratch():
    """A folder in memory, where that can be; thrown away in the end."""
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def disk_of(cut):
    """A folder with what a power cut left."""
    with scratch() as folder:
        yield cut.write(folder / "disk")


def broken_promises(file, revealed):
    """What is wrong with a ledger for those who have seen this, as sentences. It must open by itself and go on."""
    try:
        with Ledger(file) as ledger:
            head, entries = ledger.head, list(ledger.entries())
            _go_on(ledger)
        with Ledger(file) as ledger:
            _go_on(ledger)
        verify(file, head=head)
    except DiscreetError as error:
        return [f"{type(error).__name__}: {error}"]
    return list(_forgotten(entries, revealed))


def _go_on(ledger):
    ledger.cap(BUDGET, table="people")
    ledger.record(ledger.spend(EVENT, "after the cut", table="people"), b"an answer")


def _forgotten(entries, revealed):
    kinds = defaultdict(dict)
    for entry in entries:
        fields = loads(entry.body)
        kinds[fields["is"]][entry.sequence] = fields
    hashes = {entry.sequence: entry.hash.hex() for entry in entries}
    released = {entry.sequence: entry.released for entry in entries}
    paid = {fields["why"]: [str(number), hashes[number]] for number, fields in kinds["spend"].items()}
    answers = {fields["records"]: sha256(released[number]).hexdigest() for number, fields in kinds["record"].items()}
    closed = {fields["hold"] for fields in kinds["close"].values()}
    for line in revealed.decode().splitlines():
        match line.split():
            case ["capped"]:
                kept = bool(kinds["cap"])
            case ["held", hold]:
                kept = int(hold) in kinds["hold"]
            case ["closed", hold]:
                kept = int(hold) in closed
            case ["revealed", why, *receipt]:
                kept = why in paid and receipt in ([], paid[why])
            case ["recorded", sequence, answer]:
                kept = answers.get(int(sequence)) == answer
        if not kept:
            yield f"forgotten: {line}"


def _entries_on(cut):
    """The hash of each entry after a cut, read without our help."""
    with disk_of(cut) as folder, closing(sqlite3.connect(folder / NAME)) as connection:
        if not connection.execute("SELECT name FROM sqlite_master").fetchall():
            return {}
        return dict(connection.execute("SELECT sequence, hash FROM discreet_ledger"))


def witness_on(cut):
    """How the file that remembers the head compares with the entries after a cut."""
    try:
        head = Head.parse(cut.disk.get(f"{NAME}.head", b"").decode())
    except BadParameter:
        return "says nothing"
    entries = _entries_on(cut)
    if entries.get(head.sequence) != head.hash:
        return "runs ahead"
    return "is up to date" if head.sequence == max(entries) else "lags behind"
