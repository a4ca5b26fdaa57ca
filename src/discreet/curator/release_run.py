"""Requests of procedures: what a release method, or the building of a model, asks of the rows.

One run of a release: plan the workload, reserve its budget, run the method, and return what was not needed.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from json import dumps
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Event, Nothing, event_to_plain
from discreet.accounting.filter import Gate, loss
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.curator.executor import Executor, Paying
from discreet.curator.question import Keyed
from discreet.curator.records import Released, learn, step_to_plain
from discreet.curator.release import Bill, Release
from discreet.curator.release_basis import fitted_to
from discreet.errors import BadParameter, BudgetExceeded
from discreet.estimate.estimator import Estimator
from discreet.ledger import Budget, Ledger, legacy
from discreet.ledger.accounts import as_budget, budget_of, gate_of, narrowest
from discreet.ledger.idempotency import key_body, own_key, part_of
from discreet.ledger.state import plus
from discreet.ledger.transaction import Transacted
from discreet.mechanism.distance import Parts, farthest, largest_surprise, noisy_distances, surprise_quantile
from discreet.mechanism.protocol import Mechanism
from discreet.model.mixture.ensemble import Tell
from discreet.numeric import Number, positive
from discreet.plan.plan import (
    Choose,
    Distances,
    Farthest,
    Measure,
    Quantile,
    Request,
    SmallTable,
    Steps,
    marginal_moves,
    run,
)
from discreet.query.linear import Linear, Marginal
from discreet.release.method_choice import Forecasts, asked_of, make_release, plan_release, require_method
from discreet.release.small_table import choosing
from discreet.release.task import Brief, Goal, Limits, ReleasePlan, Wanted, goal_of
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import Exact
from discreet.source.table import Table
from discreet.types import Columns

ReleasedValue = TypeVar("ReleasedValue", int, NDArray[np.int64], tuple[int, ...])


def result_of(request: Request, released: Released) -> int | NDArray[np.int64]:
    """What a procedure gets back: that its steps were taken, or the released value."""
    match request:
        case Measure():
            return 0
        case Distances() | SmallTable():
            return released.values
        case _:
            return int(released.values[0])


class RequestExecutor(Executor):
    """An executor that also executes the requests of procedures."""

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
        """Execute the request of a procedure; returns what the procedure gets back."""
        return result_of(request, self.do(request, Paying(analyst, hold))[1])

    def do(self, request: Request, paying: Paying) -> tuple[int, Released]:
        """Execute the request of a procedure: the number of its spend in the ledger, and what was released for it."""
        domain, unit = self.table.domain, self.table.unit
        match request:
            case Measure(steps, why):
                mechanisms = self._mechanisms(steps)
                event = steps.event(domain, unit)
                return self._request(event, why, paying, steps, partial(self._take_steps, steps, mechanisms))
            case Choose(questions, expected, epsilon, why):
                moves = sensitivity_of(questions, domain, unit)
                chosen = largest_surprise(epsilon=epsilon, sensitivity=moves, expected=expected)
                return self._release_value(chosen, lambda: self._questions(questions), why, paying)
            case Quantile(questions, expected, sigma, rank, why):
                moves = sensitivity_of(questions, domain, unit)
                quantile = surprise_quantile(sigma=sigma, sensitivity=moves, expected=expected, rank=rank)
                return self._release_value(quantile, lambda: self._questions(questions), why, paying)
            case Distances(scopes, middle, sigma, why):
                each = marginal_moves(scopes, middle, domain, unit)
                distances = noisy_distances(sigma=sigma, sensitivity=each, expected=middle)
                return self._release_value(distances, lambda: self._marginals(scopes), why, paying)
            case Farthest(scopes, middle, handicaps, epsilon, why):
                each = marginal_moves(scopes, middle, domain, unit)
                place = farthest(epsilon=epsilon, sensitivity=each, expected=middle, handicaps=handicaps)
                return self._release_value(place, lambda: self._marginals(scopes), why, paying)
            case SmallTable(questions, rows, epsilon, why):
                choose, imbalances = choosing(questions, domain, unit, epsilon=epsilon, rows=rows)
                return self._release_value(choose, lambda: self.table.evaluate(imbalances), why, paying)

    def _release_value(
        self, mechanism: Mechanism[ReleasedValue], read: Callable[[], Exact], why: str, paying: Paying
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
            older = legacy.version_1_text((event, why, "" if steps is None else legacy.version_1_text(steps))).encode()
            bound = Keyed(paying.keyed.key, key_body("request", [event_to_plain(event), why, plain]), (older,))
            paying = replace(paying, keyed=bound)
        done = self.transact(self._payment(event, why, paying), draw)
        return done.sequence, done.result

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
        """Drop the true values that a procedure has used."""
        self._sealed = None
        self._sealed_marginals = {}


# The part of a budget that is kept back, because prices are rounded up.
ROUNDING_RESERVE = Fraction(1, 10**7)


class Releasing:
    """Releases of one table. The desk answers while a model is fitted: only the executor's turns exclude it."""

    def __init__(self, executor: RequestExecutor) -> None:
        self.executor = executor

    def plan(self, wanted: Wanted, budget: Budget, limits: Limits, rows: Number | None, analyst: str) -> ReleasePlan:
        """What each method would do: reads no row and spends nothing."""
        supposed = None if rows is None else float(positive("rows", rows, next_step="Say about how many there are."))
        with self.executor.knowing:
            self.executor.refresh()
            brief = self._brief(
                goal_of(wanted, self.executor.table.domain), wanted, budget, analyst, self.executor.known
            )
            return plan_release(brief, rows=supposed, limits=limits)

    def release(
        self,
        wanted: Wanted,
        budget: Budget,
        method: str,
        limits: Limits,
        analyst: str,
        key: str | None,
        tell: Tell | None,
    ) -> Release:
        """Make a release: refused, or paid from what was set aside, request after request."""
        require_method(method)
        key = None if key is None else own_key(key)
        executor = self.executor
        goal = goal_of(wanted, executor.table.domain)
        with executor.knowing:
            executor.refresh()
            brief = self._brief(goal, wanted, budget, analyst, executor.known)
            forecasts = Forecasts(brief)
            forecasts.require(method, limits)
        paying = Paying(analyst, keyed=None if key is None else _request(key, goal, budget, method, limits))
        with ExitStack() as stack:
            hold = None
            try:
                hold = stack.enter_context(self._reserve_budget(brief, budget, analyst, key))
            except BudgetExceeded:
                # Under its key it may have been begun before; then it goes on with what was paid, and may end.
                if key is None or not executor.ledger.has(key, analyst=analyst):
                    raise
            with executor.turn():
                why = f"a release for {goal.describe}"
                begun = executor.begin(why, paying)
                known = executor.known_at(begun.sequence)
            # Copied now: the known grows while the release measures.
            fitted = fitted_to(known, goal)
            brief = replace(brief, known=known)
            maker = _Maker(executor, brief, replace(paying, hold=hold))
            forecast, model = run(make_release(forecasts.again_for(brief), method, limits, tell), maker.answer)
        with executor.knowing:
            bill = self._bill(begun, budget, maker, analyst)
        fitted = fitted.with_own(executor.record_of(each).to_bytes() for each in maker.released if each.steps)
        schema = executor.table.schema
        return Release(schema, goal, forecast, model, fitted.known(schema), fitted, bill)

    def _bill(self, begun: Transacted[Released], budget: Budget, maker: "_Maker", analyst: str) -> Bill:
        entries, table = (begun.sequence, *maker.sequences), self.executor.table.name
        # The balances of the time when the release was paid: a repetition under its key has the same bill.
        account = narrowest(self.executor.ledger.balances(table=table, analyst=analyst, at=entries[-1]))
        gate = account.gate
        # Each request was rounded up when it was paid.
        ticks = reduce(plus, map(gate.charge, maker.events), gate.nothing)
        before = [spend for spend in self.executor.ledger.history(table=table) if spend.sequence < begun.sequence]
        # How many there were is known only to those who asked.
        earlier = int(any(not isinstance(spend.event, Nothing) for spend in before))
        # The release keeps the budget that it was given, whatever the table's cap is.
        spent = as_budget(gate_of(Budget(budget.epsilon, budget.delta, gate.kind)), ticks)
        return Bill(budget, spent, ticks, budget_of(gate), account.spent, earlier, entries, begun.at)

    def _brief(self, goal: Goal, wanted: Wanted, budget: Budget, analyst: str, known: Estimator) -> Brief:
        units = units_of(budget, self.executor.gate(analyst)) * (1 - ROUNDING_RESERVE)
        return Brief(known, goal, units, asked_of(wanted, self.executor.table.domain))

    @contextmanager
    def _reserve_budget(self, brief: Brief, budget: Budget, analyst: str, key: str | None) -> Iterator[int]:
        """Reserve the budget, so that no other request can take it; what is left of it is returned."""
        event = brief.known.event_for(brief.units)
        ledger, table = self.executor.ledger, self.executor.table.name
        try:
            hold = self.executor.reserve(event, held_for(brief.goal.describe, key), analyst=analyst)
        except BudgetExceeded:
            left = ledger.remaining(table=table, analyst=analyst)
            raise BudgetExceeded(
                f"a release for {budget} is more than is left: {left}. Give a smaller epsilon, or leave the budget out "
                "for all that is left."
            ) from None
        try:
            yield hold
        finally:
            with self.executor.turn():
                ledger.close_hold(hold)
                self.executor.forget_sealed()


class _Maker:
    """Answers the requests of a procedure, and keeps what it has learnt apart from what others learn meanwhile."""

    def __init__(self, executor: RequestExecutor, brief: Brief, paying: Paying) -> None:
        self._executor, self._brief, self._paying = executor, brief, paying
        self._left = brief.units
        self.events: list[Event] = []
        self.released: list[Released] = []
        self.sequences: list[int] = []

    def answer(self, request: Request) -> Any:
        """Pay, read, release, record, learn; returns what the procedure gets back."""
        table, paying = self._executor.table, self._paying
        if paying.keyed is not None:
            key = part_of(paying.keyed.key, "request", len(self.events) + 1)
            paying = replace(paying, keyed=paying.keyed._replace(key=key))
        event, known = request.event(table.domain, table.unit), self._brief.known
        # The ledger keeps the table's budget; the release's own is kept here.
        self._left -= loss(event, by=known.accounting)
        if self._left < 0:
            raise BudgetExceeded(
                f"a method of releases asked for more than its budget ({request.why}). Please report it."
            )
        with self._executor.turn():
            sequence, released = self._executor.do(request, paying)
        self.events.append(event)
        self.released.append(released)
        self.sequences.append(sequence)
        if isinstance(request, Measure):
            learn(released, known)
        return result_of(request, released)


def _request(key: str, goal: Goal, budget: Budget, method: str, limits: Limits) -> Keyed:
    """What a key is bound to: the workload, the budget, the method and the limits; and as it was written once."""
    given = [str(budget.epsilon), str(budget.delta), budget.gate]
    weights = [[list(columns), weight] for columns, weight in goal.weights]
    asked = [goal.describe, weights, given, method, [limits.seconds, limits.memory]]
    named = legacy.named("Limits", seconds=limits.seconds, memory=limits.memory)
    older = f"({', '.join(map(legacy.version_1_text, (goal.describe, goal.weights, budget, method)))}, {named})"
    return Keyed(key, key_body("release", asked), (dumps(["release", *asked]).encode(), older.encode()))


def held_for(goal: str, key: str | None) -> str:
    """The reason of a release's reservation: if its process dies, the reservation is found by its key."""
    return f"a release for {goal}" + ("" if key is None else f" ({key})")


def units_of(budget: Budget, gate: Gate) -> Fraction:
    """What a budget allows: squared mu, or epsilon where delta is 0."""
    if not isinstance(budget, Budget):
        raise BadParameter(
            f"budget is a {type(budget).__name__}; it must be a Budget. Write dp.Budget(epsilon=0.5, delta=1e-9)."
        )
    pure = gate.kind == "pure"
    if pure != (budget.delta == 0):
        raise BadParameter(
            f"the release's delta is {float(budget.delta):g} and the table's {float(gate.delta):g}; both are 0, or "
            f"neither is. Give delta {float(gate.delta):g}."
        )
    positive("epsilon", budget.epsilon, next_step="Give one, say 0.1; if nothing is left, ask the data owner for more.")
    return budget.epsilon if pure else gaussian_limit(budget.epsilon, budget.delta)
