"""Requests of procedures: what a release method, or the building of a model, asks of the rows."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Event, event_to_plain
from discreet.curator.executor import Executor, Paying
from discreet.curator.question import Keyed
from discreet.curator.records import Released, step_to_plain
from discreet.ledger import Ledger, legacy
from discreet.ledger.idempotency import key_body
from discreet.mechanism.distance import Parts, farthest, largest_surprise, noisy_distances, surprise_quantile
from discreet.mechanism.protocol import Mechanism
from discreet.parameter import Number
from discreet.plan.plan import Steps
from discreet.plan.requests import Choose, Distances, Farthest, Measure, Quantile, Request, SmallTable, marginal_moves
from discreet.query.linear import Linear, Marginal
from discreet.release.small_table import choosing
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import Exact
from discreet.source.table import Table
from discreet.types import Columns

Heard = TypeVar("Heard", int, NDArray[np.int64], tuple[int, ...])


def heard(request: Request, released: Released) -> int | NDArray[np.int64]:
    """What a procedure hears: that its steps were taken, or what was said."""
    match request:
        case Measure():
            return 0
        case Distances() | SmallTable():
            return released.values
        case _:
            return int(released.values[0])


class Teller(Executor):
    """An executor that also does what procedures ask for."""

    def __init__(self, table: Table, ledger: Ledger, quantum: Number = 0) -> None:
        super().__init__(table, ledger, quantum)
        # True values of questions that a procedure asks again and again, sealed: they are read once.
        self._sealed: tuple[tuple[Linear, ...], Exact] | None = None
        self._sealed_marginals: dict[Columns, Exact] = {}

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
                return self._request(event, why, paying, steps, partial(self._taken, steps, mechanisms))
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
        def draw() -> Released:
            return Released((), np.atleast_1d(np.array(mechanism.release(read()), dtype=np.int64)), "heard")

        return self._request(mechanism.event, why, paying, None, draw)

    def _request(
        self, event: Event, why: str, paying: Paying, steps: Steps | None, draw: Callable[[], Released]
    ) -> tuple[int, Released]:
        """One request of a procedure, paid and done; under a key it is bound to the event, the reason and the steps."""
        if paying.keyed is not None:
            plain = None if steps is None else [step_to_plain(step, self._prints) for step in steps.steps]
            older = legacy.text((event, why, "" if steps is None else legacy.text(steps))).encode()
            bound = Keyed(paying.keyed.key, key_body("request", [event_to_plain(event), why, plain]), (older,))
            paying = replace(paying, keyed=bound)
        done = self.transact(self._payment(event, why, paying), draw)
        return done.sequence, done.told

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
