"""Power cuts: what the disk may hold and what the world has seen, at any moment of a recorded program."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from random import Random
from typing import get_args

from ledger.power.disk import Disk, Keep, is_on_disk
from ledger.power.journal import Found, Operation, Written, read_journal


@dataclass(frozen=True)
class Cut:
    """The power failed after so many operations: what the disk holds, and what the world had seen."""

    after: int
    kind: Keep
    disk: dict[str, bytes]
    revealed: bytes

    def write(self, folder: Path) -> Path:
        return write_disk(self.disk, folder)


def cuts(journal: Path, how_many: int, seed: int) -> Iterator[Cut]:
    """Power cuts at random moments, in their order; each kind in turn."""
    operations, rng = read_journal(journal), Random(seed)
    # A journal begins with what was there before the program.
    begin = sum(isinstance(operation, Found) for operation in operations)
    moments = sorted(rng.randint(begin, len(operations)) for _ in range(how_many))
    return _cuts(operations, zip(moments, cycle(get_args(Keep)), strict=False), rng)


def disk_after(operations: Sequence[Operation], cut: int, rng: Random, keep: Keep) -> dict[str, bytes]:
    """What the disk holds if the power fails when the first `cut` operations have happened."""
    return next(_cuts(operations, [(cut, keep)], rng)).disk


def revealed_before(operations: Sequence[Operation], cut: int) -> bytes:
    """What the world had seen by then."""
    return b"".join(map(_revealed, operations[:cut]))


def write_disk(disk: dict[str, bytes], folder: Path) -> Path:
    # A new folder always: a log left by another disk would be taken for a part of this one.
    folder.mkdir(parents=True)
    for name, data in disk.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read_disk(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without what is not on the disk: equal to all kept after the last operation."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in names.items() if is_on_disk(name)}


def _cuts(operations: Sequence[Operation], moments: Iterable[tuple[int, Keep]], rng: Random) -> Iterator[Cut]:
    disk, revealed, done = Disk(), bytearray(), 0
    for moment, keep in moments:
        for number in range(done, moment):
            disk.happen(number, operations[number])
            revealed += _revealed(operations[number])
        done = moment
        yield Cut(moment, keep, disk.after_power_cut(keep, rng), bytes(revealed))


def _revealed(operation: Operation) -> bytes:
    return operation.data if isinstance(operation, Written) and operation.path.endswith(".revealed") else b""
