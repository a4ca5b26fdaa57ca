"""The model of a session of private multiplicative weights: its answers, its updates, and its records in the ledger.

A session is asked counts, in any form. The records are enough to rebuild the model, and hold nothing of the threshold.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log1p
from typing import Any

from discreet.errors import BadQuery, BadSchema, LedgerDamaged
from discreet.lab.textbook.multiplicative_weights import Rule, step_between
from discreet.lab.textbook.pmw_design import Design
from discreet.ledger.legacy import domain_print
from discreet.ledger.store import Entry
from discreet.ledger.transaction import Codec, Record, record_of
from discreet.model.dense.dense_model import Dense
from discreet.query.aggregates import count
from discreet.query.linear import Linear
from discreet.query.predicate import Predicate, everyone
from discreet.query.query_wire import query_from_plain, query_to_plain
from discreet.query.sql import parse, parse_predicate
from discreet.query.statement import Aggregate, Select
from discreet.schema.domain import Domain

# The most passes over all measurements after a new one; noise may make them contradict each other.
_SWEEPS = 20


@dataclass(frozen=True, slots=True)
class Update:
    """A question on which the model was wrong, what was measured instead, and the scale of the noise in it."""

    query: Linear
    value: int
    low: bool
    scale: float


class PMWModel:
    """A dense model of `rows` rows, and the updates that it has learnt."""

    def __init__(self, domain: Domain, rule: Rule, rate: float, order: Sequence[str] = ()) -> None:
        self.model = Dense(domain, order=order)
        self.rule, self.rate = rule, rate
        self.measured: list[Update] = []

    @property
    def rows(self) -> float:
        """The estimated number of rows."""
        return self.model.total

    def set_rows(self, rows: int) -> None:
        """Set the number of rows, public or measured; it counts as at least 1."""
        self.model.total = float(max(rows, 1))

    def answer(self, query: Linear) -> int:
        """The model's answer, a whole number: the same that is compared with the truth is released."""
        return round(min(max(self.model.answer(query), 0.0), self.rows))

    def learn(self, found: Update) -> None:
        """One update. By projection, all measurements so far are met again, within their noise."""
        self.measured.append(found)
        match self.rule:
            case "linear":
                # Down: 1 − a inside. Up: 1 − a outside, which is 1/(1 − a) inside but for the normalisation.
                self.model.update(found.query, step=log1p(-self.rate) * (-1 if found.low else 1))
            case "exponential":
                self.model.update(found.query, step=self.rate * (1 if found.low else -1))
            case "projection":
                self._move(found.query, found.value)
                self._meet_all()

    def _meet_all(self) -> None:
        """Project on one measurement after the other, each a slab as wide as its noise, until all are met."""
        for _ in range(_SWEEPS):
            missed = False
            for each in self.measured:
                # An impossible value is approximated as closely as a table can.
                value, width = min(max(float(each.value), 0.0), self.rows), max(each.scale, 1.0)
                off = value - self.model.answer(each.query)
                if abs(off) > width:
                    missed = True
                    # Slightly inside the slab, so that a met measurement is not projected on again.
                    self._move(each.query, value - (0.9 * width if off > 0 else -0.9 * width))
            if not missed:
                return

    def _move(self, query: Linear, target: float) -> None:
        """Scale the inside of a query so that its answer is the target, kept off the ends: no cell is given up."""
        edge = 0.5 / self.rows
        guess = min(max(self.model.answer(query) / self.rows, 1e-12), 1 - 1e-12)
        self.model.update(query, step=step_between(guess, min(max(target / self.rows, edge), max(edge, 1 - edge))))


PMW_KIND, ROWS_KIND = "pmw", "pmw rows"
# The public number of rows, where a setting needs it before the price is known.
ROWS_CODEC: Codec[int] = Codec(
    (ROWS_KIND,), lambda rows: Record(ROWS_KIND, {"rows": rows}), lambda record: int(record.fields["rows"])
)


@dataclass(frozen=True, slots=True)
class SessionName:
    """The identity of a session: its table, its name and its columns."""

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
    """The ledger's records of this session, in order, that were paid for after the entry `since`."""
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
        "a recorded update is of an unknown kind; a newer discreet may have written it. Upgrade discreet."
    )


Countable = str | Predicate | Linear

_ONLY = 'A session answers counts: give a condition such as "age >= 65", a predicate made with col(), or a count().'


def read_count(question: Countable, domain: Domain, table: str) -> Linear:
    """The question as a linear query in which every row weighs 0 or 1.

    >>> from discreet.schema.column import Integers
    >>> people = Domain({"age": Integers(0, 99)})
    >>> read_count("age >= 65", people, "people") == read_count(
    ...     "SELECT COUNT(*) FROM people WHERE age >= 65", people, "people")
    True
    >>> read_count(2 * count(people), people, "people")
    Traceback (most recent call last):
    discreet.errors.BadQuery: a row weighs from 2 to 2 in this query; in a session it must weigh 0 or 1. …
    """
    match question:
        case str() if question.lstrip()[:6].lower() == "select":
            query = _of_select(parse(question, domain, table=table), domain)
        case str():
            query = count(domain, parse_predicate(question, domain))
        case Predicate():
            query = count(domain, question)
        case Linear():
            query = question
        case _:
            raise BadQuery(f"a {type(question).__name__} is not a question for a session. {_ONLY}")
    lowest, highest = query.range(domain)
    if lowest < 0 or highest > 1:
        raise BadQuery(
            f"a row weighs from {lowest} to {highest} in this query; in a session it must weigh 0 or 1. {_ONLY}"
        )
    return query


def _of_select(select: Select, domain: Domain) -> Linear:
    match select.aggregates:
        case (Aggregate("count", None),) if not select.group and select.having == everyone and select.limit is None:
            (query,) = select.questions(domain)
            if isinstance(query, Linear):
                return query
    raise BadQuery(f"the statement asks for more than one count. {_ONLY}")
