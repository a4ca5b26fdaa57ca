"""What was released, as bytes in the ledger: one format for everything that is recorded.

    discreet record 2            the format, and its version
    {"kind": "steps", …}         a line of JSON: what it is a record of, and what that needs
    …                            bytes that belong to it, say the numbers

Records of the first version had a name of their own for each kind in the first line; `record_of` reads them too.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from discreet.errors import LedgerDamaged

# The first line: the name of the format, and its version.
_NAME, VERSION = b"discreet record ", 2
_FIRST_LINE = b"%s%d\n" % (_NAME, VERSION)

# The first lines of version 1, and the kinds that they stood for. A curator's record said its kind in its header.
_VERSION_1 = {
    b"discreet curator 1\n": None,
    b"discreet answers 1\n": "answers",
    b"discreet release 1\n": "synthetic",
    b"discreet kmeans 1\n": "kmeans",
    b"discreet weights 1\n": "pmw",
    b"discreet holdout 1\n": "holdout",
}

Told = TypeVar("Told")


class Record(NamedTuple):
    """What a record is of, what it says as plain values, and bytes that belong to it.

    >>> written = Record("kmeans", {"centers": [[0, 1]]}).to_bytes()
    >>> written
    b'discreet record 2\\n{"kind": "kmeans", "centers": [[0, 1]]}\\n'
    >>> record_of(written)
    Record(kind='kmeans', fields={'centers': [[0, 1]]}, payload=b'')
    """

    kind: str
    fields: Mapping[str, Any]
    payload: bytes = b""

    def to_bytes(self) -> bytes:
        """The bytes to record."""
        return _FIRST_LINE + json.dumps({"kind": self.kind, **self.fields}).encode() + b"\n" + self.payload


class Codec(NamedTuple, Generic[Told]):
    """How a value is written as a record and read again, and the kinds of records that it can be read from."""

    kinds: tuple[str, ...]
    to_record: Callable[[Told], Record]
    from_record: Callable[[Record], Told]


def record_of(released: bytes | None) -> Record | None:
    """The record in an entry; None if there is none, or if it was not written by Discreet."""
    if released is None or not released.startswith(b"discreet "):
        return None
    first, _, rest = released.partition(b"\n")
    if first + b"\n" == _FIRST_LINE:
        fields, payload = _read(rest)
        return Record(fields.pop("kind"), fields, payload)
    if first.startswith(_NAME):
        raise LedgerDamaged(
            f"a record of the ledger has format {first.removeprefix(_NAME).decode(errors='replace')} and this program "
            f"knows {VERSION}. A newer discreet wrote it: upgrade discreet."
        )
    if first + b"\n" not in _VERSION_1:
        return None
    fields, payload = _read(rest)
    kind = _VERSION_1[first + b"\n"]
    if isinstance(fields, list):
        # What was said to a request with a key was a list.
        fields = {"answers": fields}
    return Record(fields.pop("is", "steps") if kind is None else kind, fields, payload)


def _read(rest: bytes) -> tuple[Any, bytes]:
    header, _, payload = rest.partition(b"\n")
    return json.loads(header), payload
