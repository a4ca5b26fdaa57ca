"""The history of a ledger: what was paid for and what was revealed, in order, for people and other programs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from discreet.accounting.event import Event, event_from_plain
from discreet.errors import BadData
from discreet.ledger.state import damaged
from discreet.ledger.store import Entry

# What is recorded instead of an answer if the source failed, so that the key may be used again; and as version 1 did.
FAILED = b'discreet record 2\n{"kind": "failed"}\n'
_FAILED_BEFORE = b"discreet source failed 1\n"


@dataclass(frozen=True, slots=True)
class Spend:
    """One spend: the analyst, the table, the reason, the privacy event, and what was released for it.

    `released` is None if no answer was kept: it is being computed, the source failed, or a crash came between.
    """

    sequence: int
    at: str
    table: str
    analyst: str
    why: str
    event: Event
    key: str | None = None
    released: bytes | None = None


def spends(entries: Iterable[Entry]) -> list[Spend]:
    """The spends among these entries, each with its answer."""
    found: dict[int, Spend] = {}
    for entry in entries:
        fields = json.loads(entry.body)
        match fields["is"]:
            case "spend":
                said = {name: fields[name] for name in ("at", "table", "analyst", "why")}
                event = recorded_event(entry, fields)
                found[entry.sequence] = Spend(entry.sequence, **said, event=event, key=fields.get("key"))
            case "record" if fields["records"] in found and not is_failed(entry.released):
                found[fields["records"]] = replace(found[fields["records"]], released=entry.released)
    return list(found.values())


def recorded_event(entry: Entry, fields: Mapping[str, Any]) -> Event:
    """The privacy event of a spend. It could be read when it was paid for, so an unreadable one was forged."""
    try:
        return event_from_plain(fields["event"])
    except (BadData, KeyError, ArithmeticError, RecursionError):
        raise damaged(entry.sequence, "has an event that cannot be read; upgrade discreet") from None


def is_failed(released: bytes | None) -> bool:
    """Whether an entry records that the source failed, so that nothing was released."""
    return released in (FAILED, _FAILED_BEFORE)
