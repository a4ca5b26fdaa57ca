"""What a disk may hold after a power cut, from the journal that record.c wrote of a program's changes to its files.

The model, as hostile as a disk may be and no more:

- A change of a file's contents or size is safe once a sync of the file that began after it has ended well. A created,
  removed or renamed name is safe once a sync of its directory has: syncing the file alone does not save its name.
- Of the other changes nothing stays, or all, or some. A sector of 512 bytes stays whole or not at all, and no sector
  waits for another: writes are torn, and later ones survive earlier ones. A sector that stays is as the program saw
  it at some moment, so it has all the bytes written to it up to then.
- After a sync that failed, the system forgets what it could not write: a later sync that ends well does not save it.
- Directories are taken to be there; a `-shm` file is left out, for SQLite never trusts one after a restart.
- What was written to a file named `*.revealed` was seen by the world at that moment, and is not on the disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeVar

import numpy as np

from ledger.power.journal import (
    Created,
    Found,
    Linked,
    Operation,
    Removed,
    Renamed,
    Resized,
    SyncBegun,
    SyncDone,
    SyncFailed,
    Written,
)

SECTOR = 512

Keep = Literal["nothing", "some", "all"]


def is_on_disk(name: str) -> bool:
    return not name.endswith(("-shm", ".revealed"))


@dataclass(kw_only=True)
class _Change:
    number: int
    fate: Literal["open", "safe", "forgotten"] = "open"


Key = TypeVar("Key", int, str)
AChange = TypeVar("AChange", bound=_Change)


def _settle(changes: list[AChange], before: int, fate: Literal["safe", "forgotten"]) -> list[AChange]:
    """A sync that began before such a number has ended: take out the changes that are safe, and after no other."""
    for change in changes:
        if change.number < before and change.fate == "open":
            change.fate = fate
    safe = next((place for place, change in enumerate(changes) if change.fate != "safe"), len(changes))
    taken, changes[:] = changes[:safe], changes[safe:]
    return taken


def _fit(image: bytearray, size: int) -> None:
    """Cut or lengthen with zeros."""
    del image[size:]
    image.extend(bytes(size - len(image)))


@dataclass
class _Edit(_Change):
    """Bytes put at an offset of a file, and its size after that; a file that shrinks has zeros put at its end."""

    offset: int
    data: bytes
    size: int
    resizes: bool = False

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def sectors(self) -> slice:
        return slice(self.offset // SECTOR, -(-self.end // SECTOR)) if self.data else slice(0)

    def apply(self, image: bytearray) -> None:
        _fit(image, max(len(image), self.end))
        image[self.offset : self.end] = self.data
        _fit(image, self.size)

    def apply_in(self, image: bytearray, staying: np.ndarray) -> None:
        """Apply to those of its sectors that stay."""
        if staying.all():
            image[self.offset : self.end] = self.data
            return
        for sector in (np.flatnonzero(staying) + self.sectors.start).tolist():
            begin, stop = max(self.offset, sector * SECTOR), min(self.end, (sector + 1) * SECTOR)
            image[begin:stop] = self.data[begin - self.offset : stop - self.offset]


@dataclass
class _File:
    """What of a file is surely on the disk, what the program sees of it, and the edits between."""

    safe: bytearray = field(default_factory=bytearray)
    seen: bytearray = field(default_factory=bytearray)
    edits: list[_Edit] = field(default_factory=list)

    def write(self, number: int, offset: int, data: bytes) -> None:
        self._edit(_Edit(offset, data, max(len(self.seen), offset + len(data)), number=number))

    def resize(self, number: int, size: int) -> None:
        zeros = bytes(max(0, len(self.seen) - size))
        self._edit(_Edit(size, zeros, size, resizes=True, number=number))

    def _edit(self, edit: _Edit) -> None:
        edit.apply(self.seen)
        self.edits.append(edit)

    def settle(self, before: int, fate: Literal["safe", "forgotten"]) -> None:
        for edit in _settle(self.edits, before, fate):
            edit.apply(self.safe)

    def after_power_cut(self, keep: Keep, rng: Random) -> bytes:
        settled = max((place for place, edit in enumerate(self.edits, 1) if edit.fate == "safe"), default=0)
        match keep:
            case "all":
                return bytes(self.seen)
            case "nothing":
                return self._partly(settled, 0.0, 0.0, rng)
            case "some":
                sized = rng.choice((len(self.edits), rng.randint(settled, len(self.edits))))
                # From hardly anything to hardly a loss: the worst damage is often the smallest.
                return self._partly(sized, rng.choice((0.1, 0.5, 0.9, 0.99)), rng.choice((0.0, 0.1, 0.5)), rng)

    def _partly(self, sized: int, chance: float, tearing: float, rng: Random) -> bytes:
        """The size as it was after so many edits; every other edit stays by chance, and may be torn."""
        size = self.edits[sized - 1].size if sized else len(self.safe)
        image = bytearray(self.safe)
        _fit(image, max([len(image), *(max(edit.end, edit.size) for edit in self.edits)]))
        # Of each sector, the last edit that reached the disk; it took along all earlier ones of that sector.
        last = np.full(-(-len(image) // SECTOR), -1)
        for place, edit in enumerate(self.edits):
            if edit.fate == "safe" or (edit.resizes and place < sized):
                last[edit.sectors] = place
            elif not edit.resizes and rng.random() < chance:
                _tear(last[edit.sectors], place, tearing, rng)
        for place, edit in enumerate(self.edits):
            edit.apply_in(image, last[edit.sectors] >= place)
        return bytes(image[:size])


def _tear(sectors: np.ndarray, place: int, tearing: float, rng: Random) -> None:
    if rng.random() < tearing:
        sectors[[rng.random() < 0.5 for _ in sectors]] = place
    else:
        sectors[:] = place


@dataclass
class _Naming(_Change):
    """A change of a directory: these names mean these files from now on, or none."""

    directory: str
    meanings: dict[str, _File | None]

    def apply(self, names: dict[str, _File]) -> None:
        for name, file in self.meanings.items():
            names.pop(name, None)
            if file is not None:
                names[name] = file


@dataclass
class Disk:
    """All files, the names that are surely on the disk, the names that the program sees, and the changes between."""

    files: dict[int, _File] = field(default_factory=dict)
    safe: dict[str, _File] = field(default_factory=dict)
    seen: dict[str, _File] = field(default_factory=dict)
    namings: dict[str, list[_Naming]] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)

    def happen(self, number: int, operation: Operation) -> None:
        match operation:
            case Found(path, file, data):
                self.files[file] = self.safe[path] = self.seen[path] = _File(bytearray(data), bytearray(data))
            case Created(path, file):
                # A new file even if the number is an old one: the system gives the inode of a removed file again.
                self.files[file] = _File()
                self._name(number, {path: self.files[file]})
            case Removed(path):
                self._name(number, {path: None})
            case Renamed(path, to):
                self._name(number, {path: None, to: self._known(self.seen, path, path)})
            case Linked(path, to):
                self._name(number, {to: self._known(self.seen, path, path)})
            case Written(path, file, offset, data):
                self._known(self.files, file, path).write(number, offset, data)
            case Resized(path, file, size):
                self._known(self.files, file, path).resize(number, size)
            case SyncBegun(_, _, thread):
                self.begun[thread] = number
            case SyncDone(path, file, thread):
                self._settle(path, file, self.begun.pop(thread), "safe")
            case SyncFailed(path, file, thread):
                self._settle(path, file, self.begun.pop(thread), "forgotten")

    def _known(self, files: Mapping[Key, _File], key: Key, path: str) -> _File:
        if key not in files:
            raise ValueError(f"{path!r} came from nowhere: did a program without the recorder make it?")
        return files[key]

    def _name(self, number: int, meanings: dict[str, _File | None]) -> None:
        naming = _Naming(next(iter(meanings)).rpartition("/")[0], meanings, number=number)
        naming.apply(self.seen)
        self.namings.setdefault(naming.directory, []).append(naming)

    def _settle(self, path: str, file: int, before: int, fate: Literal["safe", "forgotten"]) -> None:
        if file in self.files:
            self.files[file].settle(before, fate)
        for naming in _settle(self.namings.get(path, []), before, fate):
            naming.apply(self.safe)

    def after_power_cut(self, keep: Keep, rng: Random) -> dict[str, bytes]:
        names = dict(self.safe)
        for naming in (naming for namings in self.namings.values() for naming in namings):
            if naming.fate == "safe" or keep == "all" or (keep == "some" and rng.random() < 0.5):
                naming.apply(names)
        # A file of two names is one file: what is lost of it is lost under both.
        files = {id(file): file for name, file in names.items() if is_on_disk(name)}
        images = {known: file.after_power_cut(keep, rng) for known, file in files.items()}
        return {name: images[id(file)] for name, file in names.items() if is_on_disk(name)}
