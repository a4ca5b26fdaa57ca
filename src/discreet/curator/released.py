"""What was released, as bytes: enough to know it again after a restart, to the bit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.curator.session import Session, session_from_plain, session_to_plain
from discreet.errors import BadSchema, LedgerDamaged
from discreet.known.known import Known
from discreet.known.steps import GaussianQuery, GaussianResiduals, LaplaceMarginal, LaplaceQuery, Step
from discreet.ledger.legacy import column_print
from discreet.ledger.record import Record, record_of
from discreet.plan.plan import measured
from discreet.privacy.event import Compose, Event, Nothing
from discreet.query.linear import Marginal
from discreet.query.measurement import Measurement
from discreet.query.residual import Residual
from discreet.query.wire import query_from_plain, query_to_plain
from discreet.schema.domain import Domain

# What a record is of: steps that were taken; a number that a procedure heard; a session that begins, changes or ends;
# steps that were taken because a model failed its check; a release that begins.
Kind = Literal["steps", "heard", "session", "hit", "release"]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """The numbers of some steps, one after the other; of no steps, the public number of rows."""

    steps: tuple[Step, ...]
    values: NDArray[np.int64]
    kind: Kind = "steps"
    session: Session | None = None


class Prints(dict[str, str]):
    """Of each column a few letters that tell it from other columns, made when first needed."""

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
    """What a record of one of our `KINDS` says."""
    fields: Any = record.fields
    steps = tuple(_step_from_plain(plain, prints) for plain in fields["steps"])
    session = session_from_plain(fields["session"]) if "session" in fields else None
    values = np.frombuffer(record.payload, dtype="<i8").astype(np.int64)
    return Released(steps, values, cast(Kind, record.kind), session)


def from_bytes(released: bytes, table: str, prints: Prints) -> Released | None:
    """What was recorded, if it is of this table and ours."""
    record = record_of(released)
    if record is None or record.kind not in KINDS or record.fields["table"] != table:
        return None
    return released_of(record, prints)


def learn(released: Released, known: Known) -> None:
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
    what = measured(step)
    if isinstance(what, Measurement):
        return sum(size for _, size in what.stretches(domain))
    return what.size(domain) if isinstance(what, Marginal) else 1


def step_to_plain(step: Step, prints: Prints) -> dict[str, Any]:
    """A step as plain values, with the prints of its columns."""
    what = measured(step)
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
                f'column "{name}" is declared otherwise than when the ledger\'s answers about it were measured. '
                "Declare it as it was, or declare a new version of the table (version: 2): what was spent stays spent."
            )


def together(events: Sequence[Event]) -> Event:
    """Several events as one."""
    some = tuple(event for event in events if not isinstance(event, Nothing))
    return some[0] if len(some) == 1 else Compose(some) if some else Nothing()
