"""What a session tells, as bytes in the ledger: enough to rebuild its model, and nothing of its threshold."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from discreet.errors import BadSchema, LedgerDamaged
from discreet.ledger.entry import Entry
from discreet.model.weights import Rule
from discreet.query.linear import Linear
from discreet.query.wire import query_from_plain, query_to_plain
from discreet.schema.domain import Domain
from discreet.session.design import Design
from discreet.session.fitted import Measured

# The first line of the bytes; others may keep other things in the same ledger.
MAGIC = b"discreet weights 1\n"


@dataclass(frozen=True, slots=True)
class Name:
    """Which session: of a table, by name, and of which columns."""

    table: str
    session: str
    print_: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A session was opened, by which rule it learns, and how many rows there are."""

    rule: Rule
    rate: float
    rows: int


def name_of(table: str, session: str, domain: Domain) -> Name:
    """The name, with a few letters that tell the columns from other columns."""
    return Name(table, session, sha256(repr(domain).encode()).hexdigest()[:16])


def opening(name: Name, design: Design, rows: int) -> bytes:
    """What is recorded when a session opens."""
    said = {"rule": design.rule, "rate": design.rate, "rows": rows, "updates": design.updates, "error": design.error}
    return _written(name, {"opened": said})


def update(name: Name, found: Measured) -> bytes:
    """What is recorded of an update."""
    said = {"query": query_to_plain(found.query), "value": found.value, "low": found.low, "scale": found.scale}
    return _written(name, {"update": said})


def past(entries: Iterable[Entry], name: Name, *, since: int = 0) -> list[Opened | Measured]:
    """What the ledger has of this session, in order, that was paid for after the entry `since`."""
    found: list[Opened | Measured] = []
    for entry in entries:
        if entry.released is None or not entry.released.startswith(MAGIC):
            continue
        said = json.loads(entry.released[len(MAGIC) :])
        if (said["table"], said["session"]) != (name.table, name.session):
            continue
        if since and json.loads(entry.body).get("records", 0) <= since:
            continue
        if said["of"] != name.print_:
            raise BadSchema(
                f'session "{name.session}" was opened when the columns of "{name.table}" were declared otherwise. '
                "Declare them as they were, or open a session with another name."
            )
        found.append(_read(said))
    return found


def _written(name: Name, said: dict[str, Any]) -> bytes:
    return MAGIC + json.dumps({"table": name.table, "session": name.session, "of": name.print_, **said}).encode()


def _read(said: Any) -> Opened | Measured:
    match said:
        case {"opened": {"rule": rule, "rate": rate, "rows": rows}}:
            return Opened(rule, float(rate), int(rows))
        case {"update": {"query": plain, "value": value, "low": low, "scale": scale}}:
            query = query_from_plain(plain)
            if isinstance(query, Linear):
                return Measured(query, int(value), bool(low), float(scale))
    raise LedgerDamaged(
        "a recorded update is of no kind that we know; a newer discreet may have written it. Upgrade discreet."
    )
