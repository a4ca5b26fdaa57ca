"""From numbers with bars to what an analyst gets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.answer import Answer
from discreet.curator.asked import Reading
from discreet.curator.layout import laid_out
from discreet.curator.teller import Teller
from discreet.curator.wish import Wish
from discreet.errors import BadParameter
from discreet.known.bars import Bars
from discreet.ledger.budget import Budget, as_budget
from discreet.plan.plan import Origin, Steps
from discreet.privacy.event import Compose, Event, Nothing
from discreet.schema.domain import Domain


class Said(NamedTuple):
    """What is said to a question before it is laid out: numbers with bars, where they come from, and what they cost.

    `price` is what the cost alone is, as an epsilon at the table's delta; `remaining` is what was left then.
    """

    bars: tuple[Bars, ...]
    origin: str
    cost: Event
    remaining: Budget
    price: float


def said(
    teller: Teller,
    analyst: str,
    wish: Wish,
    bars: Sequence[Bars],
    paid: Sequence[Steps] = (),
    *,
    origin: Origin | None = None,
    cost: Event | None = None,
) -> Said:
    """What is said to a question, from its bars and what was paid for them."""
    if wish.nothing and origin is None:
        require_known(bars)
    steps = Steps(tuple(step for each in paid for step in each.steps))
    if cost is None:
        cost = cost_of(teller, paid)
    if analyst not in teller.left:
        teller.left[analyst] = teller.ledger.remaining(table=teller.table.name, analyst=analyst)
    return Said(tuple(bars), origin or steps.origin, cost, teller.left[analyst], price_of(teller, analyst, cost))


def cost_of(teller: Teller, paid: Sequence[Steps]) -> Event:
    """What was done to the table, all together."""
    steps = Steps(tuple(step for each in paid for step in each.steps))
    return steps.event(teller.table.domain, teller.table.unit) if paid else Nothing()


def together(events: Sequence[Event]) -> Event:
    """Several events as one."""
    some = tuple(event for event in events if not isinstance(event, Nothing))
    return some[0] if len(some) == 1 else Compose(some) if some else Nothing()


def price_of(teller: Teller, analyst: str, cost: Event) -> float:
    """What that costs, as an epsilon at the table's delta."""
    if isinstance(cost, Nothing):
        return 0.0
    gate = teller.gate(analyst)
    return float(as_budget(gate, gate.charge(cost)).epsilon)


def lifted(reading: Reading, bars: Sequence[Bars], domain: Domain) -> list[Bars]:
    """What is below zero and cannot be is lifted to zero, which is nearer to the truth: the errors still hold."""
    return [
        Bars(np.maximum(bar.values, 0.0), bar.errors) if part.never_negative(domain) else bar
        for part, bar in zip(reading.parts, bars, strict=True)
    ]


def laid(teller: Teller, reading: Reading, wish: Wish, found: Said) -> Answer:
    """What was said, as an analyst gets it."""
    value, error, columns = laid_out(reading, found.bars, teller.table.domain)
    facts: dict[str, Any] = {"origin": found.origin, "remaining": found.remaining, "price": found.price}
    return Answer(value, error, wish.confidence, found.cost, teller.neighbors, columns, **facts)


def require_known(bars: Sequence[Bars]) -> None:
    """Refuse to answer a question of which nothing is known, if nothing may be paid."""
    if any(np.isinf(bar.errors).all() for bar in bars):
        raise BadParameter(
            "nothing that was asked so far says anything about this. Say how good the answer must be (error), or what "
            "it may cost (epsilon)."
        )


def meets(bars: Sequence[Bars], wish: Wish) -> bool:
    """Whether all errors are as small as wished, but for rounding. Small groups of a mean never are."""
    return wish.error is not None and all(float(bar.errors.max()) <= wish.error * (1 + 1e-8) for bar in bars)
