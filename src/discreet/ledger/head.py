"""The head of a ledger: one line that proves, kept elsewhere, that nothing before it was forgotten."""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from discreet.errors import BadParameter
from discreet.ledger.failure import translated

# So long that every head fits, and so short that it lies in one sector of a disk: it is written whole or not at all.
_WIDTH = 160


class Head(NamedTuple):
    """The last entry of a ledger at some moment: its number and its hash.

    >>> head = Head("3f2a", 17, bytes(32))
    >>> Head.parse(str(head)) == head
    True
    """

    ledger: str
    sequence: int
    hash: bytes

    def __str__(self) -> str:
        return f"discreet-head {self.ledger} {self.sequence} {self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        """The head that this line says."""
        try:
            word, ledger, sequence, digest = text.split()
            head = cls(ledger, int(sequence), bytes.fromhex(digest))
        except ValueError:
            head, word = cls("", 0, b""), ""
        if word != "discreet-head" or len(head.hash) != 32:
            raise BadParameter(
                f'"{text.strip()[:80]}" is not the head of a ledger; it must be a line "discreet-head …". '
                "`discreet ledger verify` prints it."
            )
        return head


class Witness:
    """A small file that remembers the head. It may lag behind, and it never runs ahead of the ledger.

    It is written after an entry is durable, and not forced to the disk: an older head is still a true one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def read(self) -> Head | None:
        """The head that it remembers, or None if it remembers nothing yet."""
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise BadParameter(f'the head in "{self.path}" cannot be read ({type(error).__name__}).') from None
        # A power cut can leave a file that has its size and not yet its content.
        return Head.parse(text) if text.strip("\0 \n") else None

    def write(self, head: Head) -> None:
        """Remember this head."""
        line = f"{head}\n".ljust(_WIDTH).encode()
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
            os.pwrite(self._descriptor, line, 0)
        except OSError as error:
            raise translated(error, str(self.path)) from None

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)
