"""Idempotency keys: each is bound to one request of one analyst about one table."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count
from json import dumps, loads
from typing import Any, Literal

from discreet.errors import AnswerLost, BadParameter, KeyReused
from discreet.ledger.log import Head
from discreet.ledger.state import State, damaged, require
from discreet.ledger.store import Entry, Store, key_hash
from discreet.numeric import text

# How a request that pays several times names its further payments.
_PART = re.compile(r", (round|question|request) [0-9]+$")
# A key gets a number for each further payment of its request; so there must be room.
_LONGEST = 10_000


def part_of(key: str, what: Literal["round", "question", "request"], place: int) -> str:
    """The key of a further payment of a request."""
    return f"{key}, {what} {place}"


def key_body(kind: str, asked: Any) -> bytes:
    """What a key is bound to: a kind of request, and what was asked as plain values.

    >>> key_body("release", ["a workload", 0.5])
    b'{"format": 2, "kind": "release", "asked": ["a workload", 0.5]}'
    """
    return dumps({"format": 2, "kind": kind, "asked": asked}).encode()


def own_key(key: str) -> str:
    """A key as a caller gives it; refused if it could be that of a further payment of another request."""
    found = _PART.search(text("key", key, longest=_LONGEST))
    if found:
        raise BadParameter(
            f'key ends with "{found[0]}", as those do that discreet makes for the parts of a request. Use another key.'
        )
    return key


def bound_request(key: str, table: str, analyst: str, body: bytes) -> dict[str, Any]:
    """What an entry says of a request under a key: of what was asked only a hash."""
    require("body", body, bytes, "Encode it first.")
    said = {"table": text("table", table), "analyst": text("analyst", analyst), "key": text("key", key)}
    return {**said, "asked": sha256(body).hexdigest()}


def same_request(before: Entry, request: Mapping[str, Any], older: Sequence[bytes] = (), *, since: int = 0) -> Any:
    """The content of an entry that was found by a key, if it is of the same request; `older` are its old forms.

    What came up to the entry `since` was about another version of the table.
    """
    said = loads(before.body)
    if (said.get("analyst"), said.get("key")) != (request["analyst"], request["key"]):
        raise damaged(before.sequence, "is stored under another key than it names")
    if said["table"] != request["table"]:
        raise _reused(said, "table")
    if said["asked"] not in _forms(request, older):
        raise _reused(said, "request")
    if before.sequence <= since:
        raise _reused(said, "version of the table")
    return said


def _reused(said: Mapping[str, Any], what: str) -> KeyReused:
    return KeyReused(
        f'key "{said["key"]}" came before with another {what}, at {said["at"]}. Use a new key for every new question.'
    )


def last_attempt(store: Store, analyst: str, key: str) -> tuple[int, Entry] | None:
    """The newest spend with this key, and its number among them: a key is used again if the source failed."""
    last = None
    for attempt in count(1):
        found = store.find(key=key_hash(analyst, key, attempt))
        if found is None:
            break
        last = attempt, found
    return last


def paid_before(store: Store, before: Entry, request: Mapping[str, Any], older: Sequence[bytes] = ()) -> int | None:
    """The spend whose payment is left over from a failed attempt of this request, if it was for the same event."""
    paid: int = loads(before.body).get("paid", before.sequence)
    found = store.find(sequence=paid)
    said = {} if found is None else loads(found.body)
    same = all(said.get(name) == request[name] for name in ("event", "table", "analyst", "key"))
    return paid if same and said.get("asked") in _forms(request, older) else None


def _forms(request: Mapping[str, Any], older: Sequence[bytes]) -> set[str]:
    """The hashes that an entry of this request may have: of its form now, and of its old forms."""
    return {request["asked"], *(sha256(each).hexdigest() for each in older)}


def repeated_receipt(
    store: Store, state: State, before: Entry, request: Mapping[str, Any], older: Sequence[bytes] = ()
) -> tuple[Head, str, bytes | None]:
    """The receipt of a repeated request, found by its key: its head, its time, and what was released."""
    said = same_request(before, request, older, since=state.since(request["table"]))
    record = store.find(records=before.sequence)
    if record is None:
        raise AnswerLost(
            f'the request with key "{request["key"]}" was charged at {said["at"]} and its answer is not recorded. '
            "If it is still being computed, repeat it in a moment; otherwise the answer was lost in a crash, and "
            "a new key asks, and pays, again."
        )
    if loads(record.body).get("records") != before.sequence:
        raise damaged(record.sequence, "is stored as the answer to another spend than it names")
    return Head(state.ledger, before.sequence, before.hash), said["at"], record.released
