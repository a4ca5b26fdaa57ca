"""What was paid for and what was revealed, in order, for people and other programs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from discreet.ledger.entry import Entry
from discreet.privacy.event import Event
from discreet.privacy.wire import event_from_plain


@dataclass(frozen=True, slots=True)
class Spend:
    """One spend: who asked what of which table and why, what was done, and what was released for it.

    `released` is None if no answer was kept: it is being computed, or a crash came between.
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
                event = event_from_plain(fields["event"])
                found[entry.sequence] = Spend(entry.sequence, **said, event=event, key=fields.get("key"))
            case "record" if fields["records"] in found:
                found[fields["records"]] = replace(found[fields["records"]], released=entry.released)
    return list(found.values())
