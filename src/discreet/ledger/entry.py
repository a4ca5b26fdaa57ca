"""One entry of the log, and the chain that binds it to all entries before it.

The body is a JSON text; its member "is" says what happened: open, cap, raise, table, spend, record, hold, stake, close,
or answer, which keeps what was said to a request with a key. What was released lies beside it as bytes. The hash of an
entry covers the hash of the one before, so whoever knows the last hash knows that nothing before it was changed.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

# Made once: the functions of the module would make or look for one at every call.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_DECODER = json.JSONDecoder()

# 1 counted in grains of 2^-50, 2 counts in grains of 10^-15.
FORMAT = 2
GENESIS = bytes(32)


class Entry(NamedTuple):
    """An entry as it is stored."""

    sequence: int
    body: str
    released: bytes | None
    hash: bytes


class Appended(NamedTuple):
    """An entry of our own, with what it says."""

    entry: Entry
    fields: Mapping[str, Any]


class Draft(NamedTuple):
    """What somebody wants to append."""

    fields: Mapping[str, Any]
    released: bytes | None = None


def chained(previous: bytes, sequence: int, draft: Draft) -> Entry:
    """A draft as the entry after the one with this hash.

    >>> first = chained(GENESIS, 1, Draft({"is": "open"}))
    >>> first.body, len(first.hash)
    ('{"is":"open"}', 32)
    """
    body = _ENCODER.encode(draft.fields)
    return Entry(sequence, body, draft.released, seal(previous, body, draft.released))


def decoded(body: str) -> Any:
    """What a body says.

    >>> decoded('{"is":"open"}')
    {'is': 'open'}
    """
    fields, end = _DECODER.raw_decode(body)
    if end != len(body):
        raise ValueError("more than one JSON value")
    return fields


def seal(previous: bytes, body: str, released: bytes | None) -> bytes:
    """The hash of an entry: SHA-256 of the previous hash, the length of the body, the body and what was released."""
    text = body.encode()
    digest = sha256(previous + len(text).to_bytes(8, "big") + text)
    if released is not None:
        # A byte more than nothing: releasing nothing differs from not releasing.
        digest.update(b"\x01" + released)
    return digest.digest()


def key_of(analyst: str, key: str, attempt: int = 1) -> str:
    """An analyst's idempotency key as it is looked up: keys of different analysts, and attempts, never meet."""
    # The first begins with a digit, so that it is not one of the others.
    again = "" if attempt == 1 else f"again {attempt} "
    return sha256(f"{again}{len(analyst)} {analyst}{key}".encode()).hexdigest()


def answer_of(analyst: str, key: str) -> str:
    """The same for the answer that was kept under a key: beside what was paid under it, never in its place."""
    return sha256(f"answer {len(analyst)} {analyst}{key}".encode()).hexdigest()


def looked_up(fields: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The two things by which an entry is found again: its key, and the spend that it records."""
    key, attempt = fields.get("key"), fields.get("attempt", 1)
    if key is not None and fields.get("is") == "answer":
        return answer_of(fields["analyst"], key), None
    return (None if key is None else key_of(fields["analyst"], key, attempt)), fields.get("records")
