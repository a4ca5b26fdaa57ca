"""The journal that record.c writes: every change that a program made to its files, in the true order."""

import struct
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path


@dataclass(frozen=True)
class Found:
    """A file that was there, safely, before the program began. A file is known by its inode."""

    path: str
    file: int
    data: bytes


@dataclass(frozen=True)
class Created:
    path: str
    file: int


@dataclass(frozen=True)
class Removed:
    path: str


@dataclass(frozen=True)
class Renamed:
    path: str
    to: str


@dataclass(frozen=True)
class Written:
    path: str
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Resized:
    path: str
    file: int
    size: int


@dataclass(frozen=True)
class SyncBegun:
    """A sync of a file, or of a directory (the watched one has the path ""); a thread has at most one under way."""

    path: str
    file: int
    thread: int


@dataclass(frozen=True)
class SyncDone:
    path: str
    file: int
    thread: int


@dataclass(frozen=True)
class SyncFailed:
    path: str
    file: int
    thread: int


@dataclass(frozen=True)
class Linked:
    """The file has another name too."""

    path: str
    to: str


Operation = Found | Created | Removed | Renamed | Written | Resized | SyncBegun | SyncDone | SyncFailed | Linked

# Kind, lengths of the two names, thread, file, offset or size, length of the data: `struct header` of record.c.
_HEADER = struct.Struct("<BHHIQQQ")
_FOUND = 0


def read_journal(journal: Path) -> list[Operation]:
    """All operations in their order; one that was being journalled when the program was killed is left out."""
    content, at, operations = journal.read_bytes(), 0, list[Operation]()
    while at + _HEADER.size <= len(content):
        kind, name_length, other_length, thread, file, number, data_length = _HEADER.unpack_from(content, at)
        ends = list(accumulate((name_length, other_length, data_length), initial=at + _HEADER.size))
        if ends[-1] > len(content):
            break
        name, other, data = (content[begin:end] for begin, end in pairwise(ends))
        operations.append(_operation(kind, name.decode(), other.decode(), thread, file, number, data))
        at = ends[-1]
    return operations


def _operation(kind: int, name: str, other: str, thread: int, file: int, number: int, data: bytes) -> Operation:
    match kind:
        case 0:
            return Found(name, file, data)
        case 1:
            return Created(name, file)
        case 2:
            return Removed(name)
        case 3:
            return Renamed(name, other)
        case 4:
            return Written(name, file, number, data)
        case 5:
            return Resized(name, file, number)
        case 6:
            return SyncBegun(name, file, thread)
        case 7:
            return SyncDone(name, file, thread)
        case 8:
            return SyncFailed(name, file, thread)
        case 9:
            return Linked(name, other)
    raise ValueError(f"operation of kind {kind}: this is not a journal of record.c")


def begin_journal(journal: Path, watched: Path) -> None:
    """Begin a journal with the files that are there already."""
    with journal.open("xb") as out:
        for path in sorted(path for path in watched.rglob("*") if path.is_file()):
            name, data = path.relative_to(watched).as_posix().encode(), path.read_bytes()
            out.write(_HEADER.pack(_FOUND, len(name), 0, 0, path.stat().st_ino, 0, len(data)) + name + data)
