"""A request with a key: what was asked, in bytes that are always the same; and its answer, to be given again.

What is kept is what was said: numbers, errors, where they come from, what they cost and what was left. How they are
laid out follows from the question, which the key is bound to.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from json import dumps
from typing import Any

import numpy as np

from discreet.curator.asked import Reading
from discreet.curator.reply import Said
from discreet.curator.teller import Keyed
from discreet.curator.wish import Wish
from discreet.errors import LedgerDamaged
from discreet.known.bars import Bars
from discreet.ledger import Budget, legacy
from discreet.ledger.keys import key_body, own_key
from discreet.ledger.record import Record, record_of
from discreet.privacy.wire import event_from_plain, event_to_plain
from discreet.query.predicate import Predicate
from discreet.query.statement import Aggregate, Select
from discreet.query.wire import condition_to_plain, query_to_plain


def keyed(key: str, kind: str, readings: Sequence[Reading], wish: Wish, *, nonnegative: bool = False) -> Keyed:
    """A request under a key. What matters is what was asked and how it is shown, not how it was written."""
    asked = [query_to_plain(each) for reading in readings for part in reading.parts for each in part.questions]
    how = [wish.error, wish.confidence, wish.epsilon, bool(wish.joint), bool(nonnegative)]
    body = key_body(kind, [asked, [_layout(reading, condition_to_plain) for reading in readings], how])
    # As version 1 wrote it: the layout with conditions as texts; and before that the wish, as it was represented.
    first = dumps([kind, asked, [_layout(reading, legacy.text) for reading in readings], how])
    old = legacy.named("Wish", error=wish.error, confidence=wish.confidence, epsilon=wish.epsilon, joint=wish.joint)
    return Keyed(own_key(key), body, (first.encode(), dumps([asked, old]).encode()))


def packed(saids: Sequence[Said]) -> bytes:
    """What was said, for the ledger."""
    header = [
        {
            "sizes": [len(bar.values) for bar in said.bars],
            "origin": said.origin,
            "cost": event_to_plain(said.cost),
            "left": [str(said.remaining.epsilon), str(said.remaining.delta), said.remaining.gate],
            "price": said.price,
        }
        for said in saids
    ]
    numbers = [each for said in saids for bar in said.bars for each in (bar.values, bar.errors)]
    return Record("answers", {"answers": header}, b"".join(each.astype("<f8").tobytes() for each in numbers)).to_bytes()


def unpacked(kept: bytes) -> list[Said]:
    """What was said when the request came first."""
    record = record_of(kept)
    if record is None or record.kind != "answers":
        raise LedgerDamaged("an answer is kept in a form that this version does not know. Upgrade discreet.")
    numbers = np.frombuffer(record.payload, dtype="<f8").astype(np.float64)
    saids, start = [], 0
    for each in record.fields["answers"]:
        bars = []
        for size in each["sizes"]:
            bars.append(Bars(numbers[start : start + size], numbers[start + size : start + 2 * size]))
            start += 2 * size
        epsilon, delta, gate = each["left"]
        left = Budget(Fraction(epsilon), Fraction(delta), gate)
        saids.append(Said(tuple(bars), each["origin"], event_from_plain(each["cost"]), left, each["price"]))
    return saids


def _layout(reading: Reading, condition: Callable[[Predicate], Any]) -> Any:
    """How an answer is shown: names, groups, and which rows in which order."""
    select = reading.select
    if not isinstance(select, Select):
        return [list(reading.group)]
    items = [[each.kind if isinstance(each, Aggregate) else "group", each.column, each.name] for each in select.items]
    order = [[each.name, each.descending] for each in select.order]
    return [list(select.group), items, condition(select.having), order, select.limit]
