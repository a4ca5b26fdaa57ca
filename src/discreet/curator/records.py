"""Records of the curator, as bytes in the ledger: after a restart, what was released or answered is known to the bit.

The kinds are released steps, checked models (what each is for, how it is made, how many failed checks it has left),
and the answers given under a key. Of an answer the numbers, errors, origins, price and remaining budget are kept; the
layout follows from the question, which the key is bound to. Ledgers from before tables were bound do not name their
unit: it is inferred here from the prices of their answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from json import loads
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Compose, Event, Nothing, event_from_plain, event_to_plain
from discreet.accounting.filter import loss
from discreet.errors import BadSchema, LedgerDamaged
from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import (
    GaussianQuery,
    GaussianResiduals,
    Intervals,
    LaplaceMarginal,
    LaplaceQuery,
    Step,
)
from discreet.ledger import Budget, Ledger
from discreet.ledger.transaction import Record, record_of
from discreet.mechanism.model_coin import ModelCoin, model_coin
from discreet.plan.build_model import Built
from discreet.plan.plan import Steps, query_of
from discreet.query.linear import Linear, Marginal, counts_rows
from discreet.query.query_wire import query_from_plain, query_to_plain
from discreet.query.residual import Measurement, Residual
from discreet.schema.domain import Domain, column_print
from discreet.source.table import Table

# By this much the log-odds of a check fall from a right answer to one that is off by the whole error.
STEEPNESS = 34
# The share of the allowed failures that is for answers that pass the check; the rest is for those measured on a hit.
PASSED = Fraction(9, 10)


@dataclass(frozen=True)
class Session:
    """Model and coin: every answer of the model is checked with a coin, and only hits cost.

    `error` and `confidence` are what each answer keeps; `rows` is how many rows a person may have. Without `built` the
    attempt was given up: no model fits well enough.
    """

    error: Fraction
    confidence: Fraction
    rows: int
    hits_left: int
    built: Built | None

    @cached_property
    def coin(self) -> ModelCoin:
        """The check of one answer."""
        return model_coin(
            steepness=STEEPNESS / self.error,
            sensitivity=self.rows,
            error=self.error,
            confidence=1 - PASSED * (1 - self.confidence),
        )

    @property
    def after_hit(self) -> float:
        """The confidence with which a question is measured that the model did not answer."""
        return float(1 - (1 - PASSED) * (1 - self.confidence))

    @property
    def open(self) -> bool:
        """Whether it may still answer."""
        return self.built is not None and self.hits_left > 0

    def after_one(self, now: "Session | None") -> "Session | None":
        """What a hit of this session makes of the one that there is `now`; None if that is another."""
        if now is None or (now.error, now.confidence, now.rows) != (self.error, self.confidence, self.rows):
            return None
        return replace(now, hits_left=max(0, now.hits_left - 1))

    def keeps(self, error: float, confidence: float) -> bool:
        """Whether its answers are as accurate as is wanted."""
        return self.open and float(self.error) <= error and float(self.confidence) >= confidence


def session_to_plain(session: Session) -> dict[str, Any]:
    """A session as plain values."""
    built = session.built
    return {
        "error": str(session.error),
        "confidence": str(session.confidence),
        "rows": session.rows,
        "hits_left": session.hits_left,
        "model": None if built is None else [built.kind, list(built.columns), [list(scope) for scope in built.scopes]],
    }


def session_from_plain(plain: Any) -> Session:
    """The session that `session_to_plain` wrote.

    >>> one = Session(Fraction(100), Fraction(99, 100), 1, 3, Built("tree", ("a", "b"), (("a", "b"),)))
    >>> session_from_plain(session_to_plain(one)) == one
    True
    """
    built = None
    if plain["model"] is not None:
        kind, columns, scopes = plain["model"]
        built = Built(kind, tuple(columns), tuple(map(tuple, scopes)))
    return Session(Fraction(plain["error"]), Fraction(plain["confidence"]), plain["rows"], plain["hits_left"], built)


# What a record is of: steps that were taken; a number released to a procedure; a session that begins, changes or ends;
# steps that were taken because a model failed its check; a release that begins. The names are stored: never change one.
RecordKind = Literal["steps", "heard", "session", "hit", "release"]
RECORD_KINDS: tuple[str, ...] = get_args(RecordKind)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """The numbers of some steps, one after the other; of no steps, the public number of rows."""

    steps: tuple[Step, ...]
    values: NDArray[np.int64]
    kind: RecordKind = "steps"
    session: Session | None = None


class Prints(dict[str, str]):
    """A short hash of each column's declaration, made when first needed."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def __missing__(self, name: str) -> str:
        print_ = column_print(self._domain[name]) if name in self._domain else ""
        return self.setdefault(name, print_)


def released_to_record(table: str, prints: Prints, released: Released) -> Record:
    """What is recorded: the table, the steps, the session if it changes, and the integers."""
    fields: dict[str, Any] = {"table": table, "steps": [step_to_plain(step, prints) for step in released.steps]}
    if released.session is not None:
        fields["session"] = session_to_plain(released.session)
    return Record(released.kind, fields, released.values.astype("<i8").tobytes())


def released_of(record: Record, prints: Prints) -> Released:
    """What a record of one of our `RECORD_KINDS` says."""
    fields: Any = record.fields
    steps = tuple(_step_from_plain(plain, prints) for plain in fields["steps"])
    session = session_from_plain(fields["session"]) if "session" in fields else None
    values = np.frombuffer(record.payload, dtype="<i8").astype(np.int64)
    return Released(steps, values, cast(RecordKind, record.kind), session)


def from_bytes(released: bytes, table: str, prints: Prints) -> Released | None:
    """What was recorded, if it is of this table and ours."""
    record = record_of(released)
    if record is None or record.kind not in RECORD_KINDS or record.fields["table"] != table:
        return None
    return released_of(record, prints)


def learn(released: Released, known: Estimator) -> None:
    """Add what was released to what is known, in the order of the ledger."""
    if not released.steps:
        if released.kind == "steps":
            known.learn_total(int(released.values[0]))
        return
    start = 0
    for step in released.steps:
        size = size_of(step, known.domain)
        numbers = released.values[start : start + size]
        if len(numbers) != size:
            raise LedgerDamaged("a recorded answer is shorter than its question. Restore the ledger as it was.")
        start += size
        known.learn(step, numbers)


def size_of(step: Step, domain: Domain) -> int:
    """How many numbers a step releases."""
    what = query_of(step)
    if isinstance(what, Measurement):
        return sum(size for _, size in what.stretches(domain))
    return what.size(domain) if isinstance(what, Marginal) else 1


def step_to_plain(step: Step, prints: Prints) -> dict[str, Any]:
    """A step as plain values, with the prints of its columns."""
    what = query_of(step)
    columns = what.columns if isinstance(what, Measurement) else what.scope
    plain: dict[str, Any] = {"price": step.price, "of": {name: prints[name] for name in columns}}
    match step:
        case GaussianResiduals():
            plain["pieces"] = [
                [[dict(residual.parts).get(name, 0) for name in columns], str(sigma)]
                for residual, sigma in step.measurement.pieces
            ]
        case LaplaceMarginal():
            plain |= {"whole": list(step.columns), "scale": str(step.scale)}
        case GaussianQuery():
            plain |= {"direct": query_to_plain(step.question), "sigma": str(step.sigma)}
        case LaplaceQuery():
            plain |= {"direct": query_to_plain(step.question), "scale": str(step.scale)}
    return plain


def _step_from_plain(plain: Any, prints: Prints) -> Step:
    columns = tuple(plain["of"])
    _compare(prints, plain["of"])
    price = float(plain["price"])
    match plain:
        case {"pieces": pieces}:
            return GaussianResiduals(
                Measurement(tuple((_residual(columns, parts), Fraction(sigma)) for parts, sigma in pieces)), price
            )
        case {"whole": whole, "scale": scale}:
            return LaplaceMarginal(tuple(whole), Fraction(scale), price)
        case {"direct": query, "sigma": sigma}:
            return GaussianQuery(query_from_plain(query), Fraction(sigma), price)
        case {"direct": query, "scale": scale}:
            return LaplaceQuery(query_from_plain(query), Fraction(scale), price)
    raise LedgerDamaged(
        "a recorded answer is of no kind that this version knows. A newer discreet may have written it."
    )


def _residual(columns: Sequence[str], parts: Sequence[int]) -> Residual:
    return Residual(tuple((name, part) for name, part in zip(columns, parts, strict=True) if part))


def _compare(prints: Prints, recorded: Mapping[str, str]) -> None:
    for name, print_ in recorded.items():
        if prints[name] != print_:
            raise BadSchema(
                f'column "{name}" is not declared as it was when the ledger\'s answers about it were measured. '
                "Declare it as it was, or declare a new version of the table (version: 2): what was spent stays spent."
            )


def compose_events(events: Sequence[Event]) -> Event:
    """Several events as one."""
    some = tuple(event for event in events if not isinstance(event, Nothing))
    return some[0] if len(some) == 1 else Compose(some) if some else Nothing()


class UnlaidAnswer(NamedTuple):
    """An answer before it is laid out: numbers with bars, where they come from, and what they cost.

    `price` is what the cost alone is, as an epsilon at the table's delta; `remaining` is what was left then.
    """

    bars: tuple[Intervals, ...]
    origin: str
    cost: Event
    remaining: Budget
    price: float


def pack_answers(answers: Sequence[UnlaidAnswer]) -> bytes:
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


def unpack_answers(kept: bytes) -> list[UnlaidAnswer]:
    """The answers that were packed."""
    record = record_of(kept)
    if record is None or record.kind != "answers":
        raise LedgerDamaged("an answer is kept in a form that this version does not know. Upgrade discreet.")
    numbers = np.frombuffer(record.payload, dtype="<f8").astype(np.float64)
    answers, start = [], 0
    for each in record.fields["answers"]:
        bars = []
        for size in each["sizes"]:
            bars.append(Intervals(numbers[start : start + size], numbers[start + size : start + 2 * size]))
            start += 2 * size
        epsilon, delta, gate = each["left"]
        left = Budget(Fraction(epsilon), Fraction(delta), gate)
        answers.append(UnlaidAnswer(tuple(bars), each["origin"], event_from_plain(each["cost"]), left, each["price"]))
    return answers


# Another unit multiplies a price by at least two; smaller differences between versions are rounding.
_MORE = 1.5


def _plain(step: Step, domain: Domain) -> bool:
    """Whether a step measures residuals or counts: their sensitivity follows from the unit alone."""
    if isinstance(step, GaussianQuery) and isinstance(step.question, Linear):
        return counts_rows(domain, step.question)
    return isinstance(step, GaussianResiduals)


def require_priced(ledger: Ledger, table: Table) -> None:
    """Refuse to bind a table for whose unit earlier answers would have cost more than was paid for them.

    A unit for which they would have cost the same, or less, cannot be distinguished from the original one.
    """
    prints, events = Prints(table.domain), {}
    for entry in ledger.entries():
        fields = loads(entry.body)
        if fields["is"] == "spend" and fields["table"] == table.name:
            events[entry.sequence] = fields["event"]
        booked = events.pop(fields.get("records"), None)
        released = None if entry.released is None else from_bytes(entry.released, table.name, prints)
        if booked is None or released is None or released.kind != "steps" or not released.steps:
            continue
        if not all(_plain(step, table.domain) for step in released.steps):
            continue
        now = loss(Steps(released.steps).event(table.domain, table.unit))
        if now > _MORE * loss(event_from_plain(booked)):
            raise BadSchema(
                f'answers about table "{table.name}" in this ledger were paid for another unit than the one that its '
                f"schema has now: {table.unit.describe}. For this unit they would have cost more. Declare the unit as "
                "it was; or give the table another name: its promise then begins anew."
            )
