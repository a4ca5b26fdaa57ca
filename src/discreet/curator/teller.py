"""Pay, read, release, record, and only then know: every effect of a curator is here, in its order."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import RLock
from time import monotonic, sleep
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet.curator.measuring import mechanism_of
from discreet.curator.released import Prints, Released, from_bytes, learn, to_bytes
from discreet.curator.session import Session
from discreet.curator.watch import Watch
from discreet.errors import BudgetExceeded, KeyReused
from discreet.known.known import Known
from discreet.ledger import Balance, Budget, Ledger, Receipt
from discreet.ledger.balance import narrowest
from discreet.ledger.failed import reading_for
from discreet.ledger.ledger import ANYONE
from discreet.mechanism.distance import farthest, noisy_distances
from discreet.mechanism.parts import Parts
from discreet.mechanism.protocol import Mechanism
from discreet.mechanism.public import public
from discreet.mechanism.surprise import largest_surprise, surprise_quantile
from discreet.parameter import Number, positive
from discreet.plan.plan import Steps, measured
from discreet.plan.request import Choose, Distances, Farthest, Measure, Quantile, Request, SmallTable, marginal_moves
from discreet.privacy.event import Compose, Event, Nothing
from discreet.privacy.gate import Gate
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product
from discreet.release.smalldb import choosing
from discreet.source.effect import sensitivity_of
from discreet.source.exact import Exact
from discreet.source.table import Table
from discreet.types import Columns

_FREE = Nothing()
_SECONDS = "Give seconds, say 0.05, or 0 to take no longer than need be."


def left_of(begun: float, quantum: float) -> float:
    """How many seconds are left of one quantum since `begun`; or of two, four, eight … of them, if it is over."""
    passed, whole = monotonic() - begun, quantum
    while 0 < whole < passed:
        whole *= 2
    return max(0.0, whole - passed)


Heard = TypeVar("Heard", int, NDArray[np.int64], tuple[int, ...])


@dataclass(frozen=True, slots=True)
class Paying:
    """Who pays for a request, from which hold if there is one; and a key, if it must be safe to repeat."""

    analyst: str
    hold: int | None = None
    key: str | None = None


def heard(request: Request, released: Released) -> int | NDArray[np.int64]:
    """What a procedure hears: that its steps were taken, or what was said."""
    match request:
        case Measure():
            return 0
        case Distances() | SmallTable():
            return released.values
        case _:
            return int(released.values[0])


class Teller:
    """One table and one ledger. What is `known`, and the `session` that is open, follow from the ledger alone."""

    def __init__(self, table: Table, ledger: Ledger, quantum: Number = 0) -> None:
        self.table, self.ledger, self.neighbors = table, ledger, table.unit.describe
        self.known = Known.nothing(table.domain, table.unit)
        self.session: Session | None = None
        # One pays at a time; and what is known is looked at or changed by one at a time. Who pays takes both, in this
        # order, and lets go of the second while rows are read: so what is known is told in the meantime.
        self.paying, self.knowing = RLock(), RLock()
        self._quantum = float(positive("quantum", quantum, next_step=_SECONDS)) if quantum else 0.0
        # What was left for each analyst when we last looked; emptied when something is spent.
        self.left: dict[str, Budget] = {}
        self._seen, self._prints = 0, Prints(table.domain)
        self.watch = Watch(table, ledger, self._prints)
        # True values of questions that a procedure asks again and again, sealed: they are read once.
        self._sealed: tuple[tuple[Linear, ...], Exact] | None = None
        self._sealed_marginals: dict[Columns, Exact] = {}

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One's turn to pay, with all that is known by now."""
        with self.paying, self.looking():
            yield

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A look at all that is known by now, which nobody changes meanwhile."""
        with self.knowing:
            self.refresh()
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While rows are read: others may look at what is known, and how long it takes says nothing.

        It takes one quantum, or two, four, eight … of them: what can be learnt from a clock is at most which.
        """
        begun = monotonic()
        with self._aside():
            try:
                yield
            finally:
                sleep(left_of(begun, self._quantum))

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """While we wait for the source, others may look at what is known."""
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

    def known_at(self, sequence: int) -> Known:
        """What was known after an entry of the ledger: ours to change."""
        known = Known.nothing(self.table.domain, self.table.unit, pure=self.known.pure)
        for entry in self.ledger.entries():
            if entry.sequence > sequence:
                break
            released = self.watch.released(entry)
            if released is not None:
                learn(released, known)
        return known

    def begin(self, why: str, *, analyst: str, key: str | None, body: bytes, older: Sequence[bytes] = ()) -> Receipt:
        """Say that a release begins. Of a repeated one the receipt has `released`: it was said before."""
        receipt = self.spend(Nothing(), why, analyst=analyst, key=key, body=body, older=older)
        self.release(receipt, lambda: Released((), np.zeros(0, dtype=np.int64), "release"))
        return receipt

    def written(self, released: Released) -> bytes:
        """The bytes that stand in the ledger for what was released."""
        return to_bytes(self.table.name, self._prints, released)

    def spend(
        self,
        event: Event,
        why: str,
        *,
        analyst: str,
        key: str | None = None,
        body: bytes | None = None,
        hold: int | None = None,
        error: float | None = None,
        older: Sequence[bytes] = (),
    ) -> Receipt:
        """Pay, durably, or raise BudgetExceeded."""
        table = self.table.identity
        return self.ledger.spend(
            event, why, table=table, analyst=analyst, key=key, body=body, hold=hold, error=error, older=older
        )

    def reserve(self, event: Event, why: str, *, analyst: str, stake: bool = False) -> int:
        """Set budget aside, durably, or raise BudgetExceeded."""
        return self.ledger.reserve(event, why, table=self.table.identity, analyst=analyst, stake=stake)

    def record(self, receipt: Receipt, released: Released) -> None:
        """Keep what was released, durably, before anybody is told."""
        self.ledger.record(receipt, self.written(released))

    def _record_change(
        self, receipt: Receipt, released: Released, change: Callable[[Session | None], Session | None]
    ) -> None:
        """Keep what was released, and what it makes of the session that there is then; None leaves it as it is."""
        recorded = False
        while not recorded:
            # Another process may begin or change one at any time: what we say must be of the last.
            self.refresh()
            made = self.written(replace(released, session=change(self.session)))
            recorded = self.ledger.record(receipt, made, after=self._seen)
        self.refresh()

    def measure(
        self,
        steps: Steps,
        why: str,
        *,
        analyst: str,
        key: str | None = None,
        body: bytes | None = None,
        hold: int | None = None,
        error: float | None = None,
        older: Sequence[bytes] = (),
    ) -> bool:
        """Take some steps. Whether something was paid: a repeated request is not."""
        event = steps.event(self.table.domain, self.table.unit)
        # Built before paying: what cannot be drawn must not be charged.
        mechanisms = self._mechanisms(steps)
        self.touch(analyst, key)
        receipt = self.spend(event, why, analyst=analyst, key=key, body=body, hold=hold, error=error, older=older)
        self.release(receipt, partial(self._taken, steps, mechanisms), event=event, key=key)
        return receipt.released is None

    def touch(self, analyst: str = "", key: str | None = None) -> None:
        """See before paying that the rows can be read; not for an answer that is kept."""
        if key is None or not self.ledger.is_answered(key, analyst=analyst):
            with self._aside():
                self.table.touch()

    def release(
        self, receipt: Receipt, draw: Callable[[], Released], *, event: Event = _FREE, key: str | None = None
    ) -> Released:
        """What is released for a receipt: drawn and recorded now, or what was recorded when its key was used before."""
        if receipt.released is not None:
            before = from_bytes(receipt.released, self.table.name, self._prints)
            if before is None:
                raise KeyReused(
                    "this key came before with a request of another kind. Use a new key for every new question."
                )
            self.refresh()
            return before
        with self.reading(), reading_for(self.ledger, receipt, event, key):
            released = draw()
        self.record(receipt, released)
        self.refresh()
        return released

    def measure_after_hit(self, steps: Steps, session: Session, why: str, *, analyst: str, hold: int) -> None:
        """Pay for a hit of a session, from its stake, and for the steps that the model did not save."""
        mechanisms = self._mechanisms(steps)
        event = Compose((session.coin.hit, steps.event(self.table.domain, self.table.unit)))
        # An owner who closes a stake pays it.
        held = hold if hold in self.ledger.holds else None
        receipt = self.spend(event, why, analyst=analyst, hold=held)
        with self.reading(), reading_for(self.ledger, receipt, event, None):
            taken = self._taken(steps, mechanisms)
        self._record_change(receipt, replace(taken, kind="hit"), session.after_one)

    def note(self, session: Session | None, event: Event, why: str, *, analyst: str) -> None:
        """Begin, change or end a session, for whoever reads the ledger; unless another process has changed it before.

        Without a session only the event is paid.
        """
        before = self.session
        receipt = self.spend(event, why, analyst=analyst)
        noted = Released((), np.zeros(0, dtype=np.int64), "session")
        self._record_change(receipt, noted, lambda now: session if now == before else None)

    @overload
    def answer(
        self, request: Measure | Choose | Quantile | Farthest, *, analyst: str, hold: int | None = None
    ) -> int: ...
    @overload
    def answer(
        self, request: Distances | SmallTable, *, analyst: str, hold: int | None = None
    ) -> NDArray[np.int64]: ...
    def answer(self, request: Request, *, analyst: str, hold: int | None = None) -> int | NDArray[np.int64]:
        """Do what a procedure asks for, and say what it hears."""
        return heard(request, self.do(request, Paying(analyst, hold))[1])

    def do(self, request: Request, paying: Paying) -> tuple[int, Released]:
        """Do what a procedure asks for: the number of its spend in the ledger, and what is released for it."""
        domain, unit = self.table.domain, self.table.unit
        match request:
            case Measure(steps, why):
                mechanisms = self._mechanisms(steps)
                event = steps.event(domain, unit)
                receipt = self._pay(event, why, paying, repr(steps))
                draw = partial(self._taken, steps, mechanisms)
                return receipt.sequence, self.release(receipt, draw, event=event, key=paying.key)
            case Choose(questions, expected, epsilon, why):
                moves = sensitivity_of(questions, domain, unit)
                chosen = largest_surprise(epsilon=epsilon, sensitivity=moves, expected=expected)
                return self._hear(chosen, lambda: self._questions(questions), why, paying)
            case Quantile(questions, expected, sigma, rank, why):
                moves = sensitivity_of(questions, domain, unit)
                heard = surprise_quantile(sigma=sigma, sensitivity=moves, expected=expected, rank=rank)
                return self._hear(heard, lambda: self._questions(questions), why, paying)
            case Distances(scopes, middle, sigma, why):
                each = marginal_moves(scopes, middle, domain, unit)
                far = noisy_distances(sigma=sigma, sensitivity=each, expected=middle)
                return self._hear(far, lambda: self._marginals(scopes), why, paying)
            case Farthest(scopes, middle, handicaps, epsilon, why):
                each = marginal_moves(scopes, middle, domain, unit)
                place = farthest(epsilon=epsilon, sensitivity=each, expected=middle, handicaps=handicaps)
                return self._hear(place, lambda: self._marginals(scopes), why, paying)
            case SmallTable(questions, rows, epsilon, why):
                choose, imbalances = choosing(questions, domain, unit, epsilon=epsilon, rows=rows)
                return self._hear(choose, lambda: self.table.evaluate(imbalances), why, paying)

    def _hear(
        self, mechanism: Mechanism[Heard], read: Callable[[], Exact], why: str, paying: Paying
    ) -> tuple[int, Released]:
        receipt = self._pay(mechanism.event, why, paying, "")

        def draw() -> Released:
            return Released((), np.atleast_1d(np.array(mechanism.release(read()), dtype=np.int64)), "heard")

        return receipt.sequence, self.release(receipt, draw, event=mechanism.event, key=paying.key)

    def _pay(self, event: Event, why: str, paying: Paying, what: str) -> Receipt:
        self.touch(paying.analyst, paying.key)
        body = None if paying.key is None else repr((event, why, what)).encode()
        return self.spend(event, why, analyst=paying.analyst, hold=paying.hold, key=paying.key, body=body)

    def _questions(self, questions: tuple[Linear, ...]) -> Exact:
        if self._sealed is None or self._sealed[0] is not questions:
            self._sealed = questions, self.table.evaluate(questions)
        return self._sealed[1]

    def _marginals(self, scopes: tuple[Columns, ...]) -> Parts:
        kept = self._sealed_marginals
        with self.table.snapshot():
            for scope in scopes:
                if scope not in kept:
                    kept[scope] = self.table.evaluate(Marginal(scope))
        return Parts([kept[scope] for scope in scopes])

    def forget_sealed(self) -> None:
        """Let go of the true values that a procedure has used."""
        self._sealed = None
        self._sealed_marginals = {}

    def _mechanisms(self, steps: Steps) -> list[Mechanism[NDArray[np.int64]]]:
        return [mechanism_of(step, self.table) for step in steps.steps]

    def _taken(self, steps: Steps, mechanisms: list[Mechanism[NDArray[np.int64]]]) -> Released:
        # All from one state of the table, and no noise before all was read.
        with self.table.snapshot():
            exact = [self.table.evaluate(measured(step)) for step in steps.steps]
        numbers = [mechanism.release(one) for mechanism, one in zip(mechanisms, exact, strict=True)]
        return Released(steps.steps, np.concatenate(numbers))

    def tell_total(self) -> None:
        """The number of rows, where no person can move it: it is public, and is read once."""
        total = Linear([Product(())])
        moves = sensitivity_of(total, self.table.domain, self.table.unit)
        if moves.l1 > 0 or self.known.lattice.block(()).version:
            return
        self.touch()
        receipt = self.spend(Nothing(), "the number of rows, which is public", analyst=ANYONE)
        with self.reading():
            rows: NDArray[np.int64] = public().release(self.table.evaluate(total))
        self.record(receipt, Released((), rows))
        self.refresh()

    # What only looks is below.

    def accounts(self, analyst: str) -> list[Balance]:
        """The accounts that a spend must fit."""
        return self.ledger.balances(table=self.table.name, analyst=analyst)

    def fits(self, event: Event, analyst: str) -> bool:
        """Whether an event can be paid now."""
        try:
            return all(one.gate.fits(one.total_grains, one.gate.charge(event)) for one in self.accounts(analyst))
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
        """The currency in which it is counted."""
        return self.balance(analyst).gate
