"""From numbers with bars to what an analyst gets."""

from collections.abc import Sequence

import numpy as np

from discreet.answer import Answer
from discreet.curator.asked import Accuracy, ParsedQuestion, PreparedQuestion
from discreet.curator.executor import Executor
from discreet.curator.keyed import UnlaidAnswer
from discreet.curator.layout import laid_out
from discreet.errors import BadParameter
from discreet.known.bars import Bars
from discreet.ledger.budget import as_budget
from discreet.plan.plan import Origin, Steps
from discreet.privacy.event import Event, Nothing
from discreet.schema.domain import Domain


def unlaid(
    teller: Executor,
    asked: PreparedQuestion,
    bars: Sequence[Bars],
    paid: Sequence[Steps] = (),
    *,
    origin: Origin | None = None,
    cost: Event | None = None,
) -> UnlaidAnswer:
    """The answer to a question, from its bars and what was paid for them."""
    analyst = asked.analyst
    if asked.accuracy.nothing and origin is None:
        require_known(bars)
    steps = Steps(tuple(step for each in paid for step in each.steps))
    if cost is None:
        cost = cost_of(teller, paid)
    if analyst not in teller.left:
        teller.left[analyst] = teller.ledger.remaining(table=teller.table.name, analyst=analyst)
    return UnlaidAnswer(
        tuple(bars), origin or steps.origin, cost, teller.left[analyst], price_of(teller, analyst, cost)
    )


def cost_of(teller: Executor, paid: Sequence[Steps]) -> Event:
    """What was done to the table, all together."""
    steps = Steps(tuple(step for each in paid for step in each.steps))
    return steps.event(teller.table.domain, teller.table.unit) if paid else Nothing()


def price_of(teller: Executor, analyst: str, cost: Event) -> float:
    """What that costs, as an epsilon at the table's delta."""
    if isinstance(cost, Nothing):
        return 0.0
    gate = teller.gate(analyst)
    return float(as_budget(gate, gate.charge(cost)).epsilon)


def lifted(parsed: ParsedQuestion, bars: Sequence[Bars], domain: Domain) -> list[Bars]:
    """What is below zero and cannot be is lifted to zero, which is nearer to the truth: the errors still hold."""
    return [
        Bars(np.maximum(bar.values, 0.0), bar.errors) if part.never_negative(domain) else bar
        for part, bar in zip(parsed.parts, bars, strict=True)
    ]


def laid(teller: Executor, asked: PreparedQuestion, found: UnlaidAnswer) -> Answer:
    """An answer as an analyst gets it."""
    value, error, columns = laid_out(asked.parsed, found.bars, teller.table.domain)
    return Answer(
        value,
        error,
        asked.accuracy.confidence,
        found.cost,
        teller.neighbors,
        columns,
        origin=found.origin,
        remaining=found.remaining,
        price=found.price,
    )


def require_known(bars: Sequence[Bars]) -> None:
    """Refuse to answer a question of which nothing is known, if nothing may be paid."""
    if any(np.isinf(bar.errors).all() for bar in bars):
        raise BadParameter(
            "nothing that was asked so far says anything about this. Say how good the answer must be (error), or what "
            "it may cost (epsilon)."
        )


def meets(bars: Sequence[Bars], accuracy: Accuracy) -> bool:
    """Whether all errors are as small as wished, but for rounding. Small groups of a mean never are."""
    return accuracy.error is not None and all(float(bar.errors.max()) <= accuracy.error * (1 + 1e-8) for bar in bars)
