"""What was answered to a request with a key, as bytes: to be given again, always the same.

Kept are numbers, errors, where they come from, what they cost and what was left. How they are laid out follows from the
question, which the key is bound to.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet.errors import LedgerDamaged
from discreet.known.bars import Bars
from discreet.ledger import Budget
from discreet.ledger.record import Record, record_of
from discreet.privacy.event import Event
from discreet.privacy.wire import event_from_plain, event_to_plain


class UnlaidAnswer(NamedTuple):
    """An answer before it is laid out: numbers with bars, where they come from, and what they cost.

    `price` is what the cost alone is, as an epsilon at the table's delta; `remaining` is what was left then.
    """

    bars: tuple[Bars, ...]
    origin: str
    cost: Event
    remaining: Budget
    price: float


def packed(answers: Sequence[UnlaidAnswer]) -> bytes:
    """Answers, for the ledger."""
    header = [
        {
            "sizes": [len(bar.values) for bar in answer.bars],
            "origin": answer.origin,
            "cost": event_to_plain(answer.cost),
            "left": [str(answer.remaining.epsilon), str(answer.remaining.delta), answer.remaining.gate],
            "price": answer.price,
        }
        for answer in answers
    ]
    numbers = [each for answer in answers for bar in answer.bars for each in (bar.values, bar.errors)]
    return Record("answers", {"answers": header}, b"".join(each.astype("<f8").tobytes() for each in numbers)).to_bytes()


def unpacked(kept: bytes) -> list[UnlaidAnswer]:
    """What was answered when the request came first."""
    record = record_of(kept)
    if record is None or record.kind != "answers":
        raise LedgerDamaged("an answer is kept in a form that this version does not know. Upgrade discreet.")
    numbers = np.frombuffer(record.payload, dtype="<f8").astype(np.float64)
    answers, start = [], 0
    for each in record.fields["answers"]:
        bars = []
        for size in each["sizes"]:
            bars.append(Bars(numbers[start : start + size], numbers[start + size : start + 2 * size]))
            start += 2 * size
        epsilon, delta, gate = each["left"]
        left = Budget(Fraction(epsilon), Fraction(delta), gate)
        answers.append(UnlaidAnswer(tuple(bars), each["origin"], event_from_plain(each["cost"]), left, each["price"]))
    return answers
