"""The executor: every effect of a curator, in this order: pay, read, add noise, record, and only then know.

Before anything is known, answered or paid, the table is compared with the one that its ledger has. `mechanism_of` makes
the mechanism that releases a step of a plan.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from json import loads
from threading import RLock
from time import monotonic, sleep

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Compose, Event, Nothing
from discreet.accounting.filter import Gate
from discreet.curator.question import Keyed
from discreet.curator.records import (
    RECORD_KINDS,
    Prints,
    Released,
    Session,
    from_bytes,
    learn,
    released_of,
    released_to_record,
    require_priced,
)
from discreet.errors import BudgetExceeded
from discreet.estimate import Estimator, estimator_for
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, Step
from discreet.ledger import Balance, Budget, Ledger
from discreet.ledger.accounts import narrowest
from discreet.ledger.ledger import ANYONE
from discreet.ledger.store import Entry
from discreet.ledger.transaction import Access, Codec, Payment, Record, Result, Transacted, transact
from discreet.mechanism.gaussian import gaussian, gaussian_pieces
from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.mechanism.public import public
from discreet.numeric import Number, positive
from discreet.plan.plan import Steps, query_of
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.schema.unit import Identity
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.table import Table

# Seconds for which known answers rely on the last check of the source; a payment checks it again.
LOOK_AGAIN = 1.0


class Watch:
    """Binds a table in its ledger when it is first needed, and compares the two from then on."""

    def __init__(self, table: Table, ledger: Ledger, prints: Prints) -> None:
        self._table, self._ledger, self._prints = table, ledger, prints
        self._identity: Identity | None = None
        # What was paid for up to this entry is about earlier versions of the table.
        self._since, self._looked = 0, 0.0

    def open(self, budget: Budget | None, analyst: str) -> None:
        """Bind the table and cap it, together with those that share people with it; raise what a spend would."""
        self.bind()
        if budget is not None:
            self._ledger.cap(budget, tables=self._ledger.sharing(self._table.name))
        self._ledger.remaining(table=self._table.name, analyst=analyst)

    def bind(self) -> Identity:
        """Bind the table in the ledger, or raise what is wrong with it."""
        self._identity, self._looked = self._table.identity, monotonic()
        if self._table.name not in self._ledger.tables:
            require_priced(self._ledger, self._table)
        self._ledger.bind(self._identity)
        self._since = self._ledger.since(self._table.name)
        return self._identity

    def head(self) -> int:
        """The number of the ledger's last entry, if the table still is the one that is bound there."""
        identity = self._identity
        if identity is None:
            identity = self.bind()
        elif monotonic() - self._looked > LOOK_AGAIN:
            self._identity = identity = self._table.identity
            self._looked = monotonic()
        return self._ledger.look(identity).sequence

    def released(self, entry: Entry) -> Released | None:
        """What an entry records, if that is about this table and was paid for in its current version."""
        if entry.released is None or (self._since and loads(entry.body).get("records", 0) <= self._since):
            return None
        return from_bytes(entry.released, self._table.name, self._prints)


def mechanism_of(step: Step, table: Table) -> Mechanism[NDArray[np.int64]]:
    """The mechanism of a step, calibrated to what one person can move: known from the schema, before a row is read."""
    moves = sensitivity_of(query_of(step), table.domain, table.unit)
    match step:
        case GaussianResiduals():
            return gaussian_pieces(sensitivity=moves, stretches=step.measurement.stretches(table.domain))
        case GaussianQuery():
            return gaussian(sigma=step.sigma, sensitivity=moves)
    return laplace(epsilon=moves.l1 / step.scale, sensitivity=moves)


_FREE = Nothing()
_NO_NUMBERS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
_SECONDS = "Give seconds, say 0.05, or 0 to take no longer than need be."


def left_of(begun: float, quantum: float) -> float:
    """How many seconds are left of one quantum since `begun`; or of two, four, eight … of them, if it is over."""
    passed, whole = monotonic() - begun, quantum
    while 0 < whole < passed:
        whole *= 2
    return max(0.0, whole - passed)


@dataclass(frozen=True, slots=True)
class Paying:
    """The analyst who pays, the hold that they pay from, and the key that makes a request safe to repeat.

    `error` is the half-width that is paid for, so that a refusal can say which one would fit.
    """

    analyst: str
    hold: int | None = None
    keyed: Keyed | None = None
    error: float | None = None


class Executor:
    """One table and one ledger. What is `known`, and the `session` that is open, follow from the ledger alone."""

    def __init__(self, table: Table, ledger: Ledger, quantum: Number = 0) -> None:
        self.table, self.ledger, self.neighbors = table, ledger, table.unit.describe
        self.known = estimator_for("gaussian", table.domain, table.unit)
        self.session: Session | None = None
        # One thread pays at a time, and one reads or changes what is known. A payer takes both locks, in this order,
        # and releases the second while rows are read: known answers are given in the meantime.
        self.paying, self.knowing = RLock(), RLock()
        self._quantum = float(positive("quantum", quantum, next_step=_SECONDS)) if quantum else 0.0
        # What was left for each analyst when we last looked; emptied when something is spent.
        self.left: dict[str, Budget] = {}
        self._seen, self._prints = 0, Prints(table.domain)
        self.watch = Watch(table, ledger, self._prints)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold both locks: this thread may pay, and what is known is up to date."""
        with self.paying, self.looking():
            yield

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Hold the lock on what is known, brought up to date."""
        with self.knowing:
            self.refresh()
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While rows are read: known answers are given to others, and the time is padded.

        It takes one quantum, or two, four, eight … of them: a clock reveals at most which of these.
        """
        begun = monotonic()
        with self._unlocked():
            try:
                yield
            finally:
                sleep(left_of(begun, self._quantum))

    @contextmanager
    def _unlocked(self) -> Iterator[None]:
        """Release the lock on what is known while we wait for the source."""
        try:
            self.knowing.release()
            held = True
        except RuntimeError:
            held = False
        try:
            yield
        finally:
            if held:
                self.knowing.acquire()

    @property
    def is_fresh(self) -> bool:
        """Whether all that the ledger has is known here."""
        return self.watch.head() == self._seen

    def refresh(self) -> None:
        """Learn what the ledger has recorded since, ours and that of other processes, in its order."""
        if self.watch.head() == self._seen:
            return
        for entry in self.ledger.entries(self._seen):
            self.left.clear()
            released = self.watch.released(entry)
            if released is not None:
                learn(released, self.known)
                self.session = released.session or self.session
            self._seen = entry.sequence

    def known_at(self, sequence: int) -> Estimator:
        """A new estimator with what was known after an entry of the ledger."""
        known = type(self.known).nothing(self.table.domain, self.table.unit)
        for entry in self.ledger.entries():
            if entry.sequence > sequence:
                break
            released = self.watch.released(entry)
            if released is not None:
                learn(released, known)
        return known

    def begin(self, why: str, paying: Paying) -> Transacted[Released]:
        """Record that a release begins. A repeated one gets the number and the time of the first."""
        return self.transact(
            self._payment(_FREE, why, paying), lambda: Released((), _NO_NUMBERS, "release"), touches=False
        )

    def record_of(self, released: Released) -> Record:
        """What is recorded in the ledger for what was released."""
        return released_to_record(self.table.name, self._prints, released)

    def transact(
        self,
        payment: Payment,
        measure: Callable[[], Released],
        *,
        touches: bool = True,
        change: Callable[[Session | None], Session | None] | None = None,
    ) -> Transacted[Released]:
        """Pay, read, release, record, know: one transaction, by the thread that holds the turn.

        `change` maps the session at the time of recording to the new one; None leaves it as it is.
        """
        codec, settle = self._codec, None
        if change is not None:
            # Another process may begin or change a session at any time: the record must follow from the last one.
            settle = self._last_entry
            codec = codec._replace(
                to_record=lambda released: self.record_of(replace(released, session=change(self.session)))
            )
        return transact(self.ledger, payment, measure, codec, self._access(touches), settle=settle)

    def other(self, payment: Payment, measure: Callable[[], Result], codec: Codec[Result]) -> Transacted[Result]:
        """A transaction of another kind about this table, say k-means, under its turn and its quantum."""
        with self.turn():
            return transact(self.ledger, payment, measure, codec, self._access())

    def _access(self, touches: bool = True) -> Access:
        return Access(self.touch if touches else lambda: None, self.reading, self.refresh)

    @property
    def _codec(self) -> Codec[Released]:
        return Codec(RECORD_KINDS, self.record_of, lambda record: released_of(record, self._prints))

    def _last_entry(self) -> int:
        self.refresh()
        return self._seen

    def _payment(self, event: Event, why: str, paying: Paying) -> Payment:
        key, body, older = paying.keyed or (None, None, ())
        return Payment(event, why, self.table, paying.analyst, key, body, older, paying.hold, paying.error)

    def reserve(self, event: Event, why: str, *, analyst: str, stake: bool = False) -> int:
        """Set budget aside, durably, or raise BudgetExceeded."""
        return self.ledger.reserve(event, why, table=self.table.identity, analyst=analyst, stake=stake)

    def measure(self, steps: Steps, why: str, paying: Paying) -> bool:
        """Measure some steps; returns whether they were paid for now: a repeated request is not."""
        event = steps.event(self.table.domain, self.table.unit)
        # Built before paying: noise that cannot be drawn must not be charged.
        mechanisms = self._mechanisms(steps)
        return not self.transact(
            self._payment(event, why, paying), partial(self._take_steps, steps, mechanisms)
        ).repeated

    def touch(self) -> None:
        """Check before paying that the rows can be read."""
        with self._unlocked():
            self.table.touch()

    def measure_after_hit(self, steps: Steps, session: Session, why: str, *, analyst: str, hold: int) -> None:
        """Pay for a hit of a session, from its stake, and for the measurement after it."""
        mechanisms = self._mechanisms(steps)
        event = Compose((session.coin.hit, steps.event(self.table.domain, self.table.unit)))
        # If the owner has closed the stake, it was paid then.
        held = hold if hold in self.ledger.holds else None

        def taken() -> Released:
            return replace(self._take_steps(steps, mechanisms), kind="hit")

        payment = self._payment(event, why, Paying(analyst, held))
        self.transact(payment, taken, touches=False, change=session.after_one)

    def note(self, session: Session | None, event: Event, why: str, *, analyst: str) -> None:
        """Begin, change or end a session in the ledger, unless another process has changed it meanwhile.

        Without a session only the event is paid.
        """
        before = self.session
        self.transact(
            self._payment(event, why, Paying(analyst)),
            lambda: Released((), _NO_NUMBERS, "session"),
            touches=False,
            change=lambda now: session if now == before else None,
        )

    def _mechanisms(self, steps: Steps) -> list[Mechanism[NDArray[np.int64]]]:
        return [mechanism_of(step, self.table) for step in steps.steps]

    def _take_steps(self, steps: Steps, mechanisms: list[Mechanism[NDArray[np.int64]]]) -> Released:
        # All from one state of the table, and no noise before all was read.
        with self.table.snapshot():
            exact = [self.table.evaluate(query_of(step)) for step in steps.steps]
        numbers = [mechanism.release(one) for mechanism, one in zip(mechanisms, exact, strict=True)]
        return Released(steps.steps, np.concatenate(numbers))

    def read_public_total(self) -> None:
        """Read and record the number of rows, once, where no person can change it: then it is public."""
        total = Linear([Product(())])
        moves = sensitivity_of(total, self.table.domain, self.table.unit)
        if moves.l1 > 0 or self.known.lattice.block(()).version:
            return

        def counted() -> Released:
            return Released((), public().release(self.table.evaluate(total)))

        self.transact(self._payment(_FREE, "the number of rows, which is public", Paying(ANYONE)), counted)

    # Methods that pay nothing.

    def accounts(self, analyst: str) -> list[Balance]:
        """The accounts that a spend must fit."""
        return self.ledger.balances(table=self.table.name, analyst=analyst)

    def fits(self, event: Event, analyst: str) -> bool:
        """Whether an event can be paid now."""
        try:
            return all(one.gate.fits(one.total_ticks, one.gate.charge(event)) for one in self.accounts(analyst))
        except BudgetExceeded:
            # It has no price at all.
            return False

    def balance(self, analyst: str) -> Balance:
        """The account of the table itself, or the narrowest over it."""
        accounts = self.accounts(analyst)
        if all(one.scope.analyst is not None for one in accounts):
            self.ledger.remaining(table=self.table.name, analyst=analyst)
        return narrowest(accounts)

    def gate(self, analyst: str) -> Gate:
        """The accounting (privacy filter) of that account."""
        return self.balance(analyst).gate
