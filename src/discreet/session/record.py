"""What a session has released, as records in the ledger: enough to rebuild its model, and nothing of its threshold."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet.errors import BadSchema, LedgerDamaged
from discreet.ledger.entry import Entry
from discreet.ledger.legacy import domain_print
from discreet.ledger.record import Codec, Record, record_of
from discreet.model.weights import Rule
from discreet.query.linear import Linear
from discreet.query.wire import query_from_plain, query_to_plain
from discreet.schema.domain import Domain
from discreet.session.design import Design
from discreet.session.fitted import Update

PMW_KIND, ROWS_KIND = "pmw", "pmw rows"
# The public number of rows, where a setting needs it before the price is known.
ROWS_CODEC: Codec[int] = Codec(
    (ROWS_KIND,), lambda rows: Record(ROWS_KIND, {"rows": rows}), lambda record: int(record.fields["rows"])
)


@dataclass(frozen=True, slots=True)
class SessionName:
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


def name_of(table: str, session: str, domain: Domain) -> SessionName:
    """The name, with a print of the columns as they are declared."""
    return SessionName(table, session, domain_print(domain))


def opening(name: SessionName, design: Design) -> Codec[int]:
    """How the opening of a session is recorded, with the number of rows."""

    def to_record(rows: int) -> Record:
        said = {"rule": design.rule, "rate": design.rate, "rows": rows}
        return _record(name, {"opened": {**said, "updates": design.updates, "error": design.error}})

    return Codec((PMW_KIND,), to_record, lambda record: int(record.fields["opened"]["rows"]))


def updating(name: SessionName) -> Codec[Update]:
    """How an update is recorded."""

    def to_record(found: Update) -> Record:
        said = {"query": query_to_plain(found.query), "value": found.value, "low": found.low, "scale": found.scale}
        return _record(name, {"update": said})

    return Codec((PMW_KIND,), to_record, lambda record: _measured(record.fields["update"]))


def past(entries: Iterable[Entry], name: SessionName, *, since: int = 0) -> list[Opened | Update]:
    """What the ledger has of this session, in order, that was paid for after the entry `since`."""
    found: list[Opened | Update] = []
    for entry in entries:
        record = record_of(entry.released)
        if record is None or record.kind != PMW_KIND:
            continue
        said = record.fields
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


def _record(name: SessionName, said: dict[str, Any]) -> Record:
    return Record(PMW_KIND, {"table": name.table, "session": name.session, "of": name.print_, **said})


def _read(said: Any) -> Opened | Update:
    match said:
        case {"opened": {"rule": rule, "rate": rate, "rows": rows}}:
            return Opened(rule, float(rate), int(rows))
        case {"update": update}:
            return _measured(update)
    raise _unknown()


def _measured(said: Any) -> Update:
    query = query_from_plain(said["query"])
    if not isinstance(query, Linear):
        raise _unknown()
    return Update(query, int(said["value"]), bool(said["low"]), float(said["scale"]))


def _unknown() -> LedgerDamaged:
    return LedgerDamaged(
        "a recorded update is of no kind that we know; a newer discreet may have written it. Upgrade discreet."
    )
