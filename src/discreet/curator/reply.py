"""From numbers with bars to what an analyst gets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.answer import Answer
from discreet.curator.asked import Reading
from discreet.curator.layout import laid_out
from discreet.curator.teller import Teller
from discreet.curator.wish import Wish
from discreet.errors import BadParameter
from discreet.known.bars import Bars
from discreet.plan.plan import Origin, Steps
from discreet.privacy.event import Event, Nothing


def reply(
    teller: Teller,
    analyst: str,
    reading: Reading,
    wish: Wish,
    bars: Sequence[Bars],
    paid: Sequence[Steps] = (),
    nonnegative: bool = False,
    *,
    origin: Origin | None = None,
    cost: Event | None = None,
) -> Answer:
    """The answer to a question, from its bars and what was paid for them."""
    if wish.nothing and origin is None:
        require_known(bars)
    if nonnegative:
        bars = [Bars(np.maximum(bar.values, 0.0), bar.errors) for bar in bars]
    table = teller.table
    value, error, columns = laid_out(reading, bars, table.domain)
    steps = Steps(tuple(step for each in paid for step in each.steps))
    if cost is None:
        cost = steps.event(table.domain, table.unit) if paid else Nothing()
    if analyst not in teller.left:
        teller.left[analyst] = teller.ledger.remaining(table=table.name, analyst=analyst)
    facts: dict[str, Any] = {"origin": origin or steps.origin, "remaining": teller.left[analyst]}
    return Answer(value, error, wish.confidence, cost, teller.neighbors, columns, **facts)


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
