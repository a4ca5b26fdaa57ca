"""Pay, release, record: the order in which every release happens."""

from collections.abc import Callable, Sequence
from json import dumps, loads
from typing import Any

from discreet.errors import BadParameter
from discreet.ledger import Ledger
from discreet.ledger.failed import reading_for
from discreet.mechanism.public import public
from discreet.privacy.event import Event
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.query.wire import query_to_plain
from discreet.source.effect import sensitivity_of
from discreet.source.table import Table

# The first line of what is kept in the ledger; the curator keeps other things there.
MAGIC = b"discreet release 1\n"

EVERYONE = Linear([Product(())])

# What may be kept: numbers, texts, lists and dicts of them.
Plain = dict[str, Any]


def paid(
    ledger: Ledger | None,
    event: Event,
    why: str,
    release: Callable[[], Plain],
    *,
    table: Table,
    asked: "Sequence[Linear]",
    analyst: str,
    key: str | None,
) -> Plain:
    """What `release` says, after the event was paid for, and kept; or what was kept when this key was used before.

    Without a ledger nobody keeps the account but the caller.
    """
    if ledger is None:
        table.touch()
        with table.snapshot():
            return release()
    if not isinstance(ledger, Ledger):
        raise BadParameter(f"ledger is a {type(ledger).__name__}; it must be a Ledger. Open one: dp.Ledger(path).")
    # Pay before reading: a crash now wastes budget; the other order would hide a loss.
    body = None if key is None else dumps([why, repr(event), [query_to_plain(query) for query in asked]]).encode()
    if key is None or not ledger.is_answered(key, analyst=analyst):
        table.touch()
    receipt = ledger.spend(event, why, table=table.identity, analyst=analyst, key=key, body=body)
    if receipt.released is not None:
        kept: Plain = loads(receipt.released.removeprefix(MAGIC))
        return kept
    with reading_for(ledger, receipt, event, key), table.snapshot():
        plain = release()
    ledger.record(receipt, MAGIC + dumps(plain).encode())
    return plain


def public_total(table: Table) -> int | None:
    """The number of rows, where no person can move it; otherwise None, and nothing is read."""
    if sensitivity_of(EVERYONE, table.domain, table.unit).l1 > 0:
        return None
    return int(public().release(table.evaluate(EVERYONE))[0])
