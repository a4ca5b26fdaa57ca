"""The payment and the record of a textbook release: one transaction, whose record is plain values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from json import dumps
from typing import Any

from discreet.accounting.event import Event, event_to_plain
from discreet.ledger import Ledger, legacy
from discreet.ledger.idempotency import key_body
from discreet.ledger.transaction import Access, Codec, Payment, Record, transact
from discreet.mechanism.public import public
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.query.query_wire import query_to_plain
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.table import Table

EVERYONE = Linear([Product(())])

# The values of a record: numbers, texts, lists and dicts of them.
Plain = dict[str, Any]

_CODEC: Codec[Plain] = Codec(
    ("synthetic",), lambda plain: Record("synthetic", plain), lambda record: dict(record.fields)
)


def pay_and_release(
    ledger: Ledger | None,
    event: Event,
    why: str,
    release: Callable[[], Plain],
    *,
    table: Table,
    asked: Sequence[Linear],
    analyst: str,
    key: str | None,
) -> Plain:
    """Pay for the event, call `release` and record its result; under a used key, return what was recorded.

    Without a ledger nothing is recorded, and the caller must keep the account.
    """
    payment = Payment(event, why, table, analyst)
    if key is not None:
        queries = [query_to_plain(query) for query in asked]
        older = dumps([why, legacy.version_1_text(event), queries]).encode()
        body = key_body("synthetic", [why, event_to_plain(event), queries])
        payment = replace(payment, key=key, body=body, older=(older,))
    return transact(ledger, payment, release, _CODEC, Access(table.touch, table.snapshot)).result


def public_total(table: Table) -> int | None:
    """The number of rows, where no person can move it; otherwise None, and nothing is read."""
    if sensitivity_of(EVERYONE, table.domain, table.unit).l1 > 0:
        return None
    return int(public().release(table.evaluate(EVERYONE))[0])
