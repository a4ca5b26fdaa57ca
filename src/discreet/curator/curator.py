"""Plan, spend, evaluate, release, record, answer: many questions, one budget."""

import os
from collections.abc import Sequence
from copy import copy
from json import dumps
from math import inf
from types import TracebackType
from typing import Any, overload

import numpy as np

from discreet.answer import Answer
from discreet.curator.asked import Askable, Reading, read_question, single
from discreet.curator.bars import bars_of
from discreet.curator.free import Free, free_now
from discreet.curator.models import Models
from discreet.curator.promise import Plan, beyond, few_rows, next_steps, promised
from discreet.curator.release import Release
from discreet.curator.releasing import Releasing
from discreet.curator.reply import meets, reply
from discreet.curator.teller import Teller
from discreet.curator.wish import Wish, modelled, read_wish, targets_of
from discreet.errors import BadParameter, BudgetExceeded
from discreet.known.bars import Bars
from discreet.known.known import Known
from discreet.ledger import Budget, Ledger, Spend
from discreet.ledger.ledger import ANYONE
from discreet.model.ensemble import Tell
from discreet.parameter import Number, probability, text, whole
from discreet.picture import error_text
from discreet.plan.plan import Steps, plan_steps
from discreet.privacy.gate import Gate
from discreet.query.wire import query_to_plain
from discreet.release.goal import Wanted
from discreet.release.methods import AUTO, ReleasePlan, limits_of
from discreet.source.table import Table

# How often a mean may be looked at anew, when it turned out that fewer rows than expected have a value.
_ROUNDS = 12
# So many numbers are told at once.
FEW = 500


class Curator:
    """Answers questions about one table, as many as there are, on one budget.

    Each question says how good the answer must be (`error`, a half-width that holds with probability `confidence`) or
    what it may cost (`epsilon`). What follows from earlier answers is free; what is new is paid from the ledger before
    a row is read. Everything that is known is a function of the ledger, so a curator that starts again on the same
    ledger gives the same answers.

    Where questions name many columns and there are many of them (`expected_questions` says about how many), a model may
    be cheaper; under a Rényi gate the curator then builds one, and checks each of its answers (docs/many.md).

    Where people who ask could hold a clock, as on a server, `quantum` says in how many seconds rows are read: if it
    takes longer, then in twice, four times as many; so the time says nothing of the rows. Threads may share a curator.

    >>> import tempfile, discreet as dp
    >>> folder = tempfile.TemporaryDirectory()
    >>> desk = Curator(dp.load_adult(), budget=Budget(epsilon=1, delta=1e-9), ledger=f"{folder.name}/budget.sqlite")
    >>> paid = desk.ask("SELECT COUNT(*) FROM adult WHERE age >= 65 AND sex = 'Female'", error=200)
    >>> paid.error <= 200, paid.origin, desk.ask("age >= 65 AND sex = 'Female'", error=200).origin
    (True, 'measured', 'known')
    >>> desk.close()
    """

    def __init__(
        self,
        table: Table,
        *,
        budget: Budget | None = None,
        ledger: Ledger | str | os.PathLike[str],
        analyst: str = ANYONE,
        expected_questions: int | None = None,
        quantum: Number = 0,
    ) -> None:
        if not isinstance(table, Table):
            raise BadParameter(
                f"table is a {type(table).__name__}; it must be a Table. Open one: dp.open('people.yaml')."
            )
        self.table, self.analyst = table, text("analyst", analyst)
        self._owned = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._teller = Teller(table, self.ledger, quantum)
        if expected_questions is not None:
            whole("expected_questions", expected_questions, least=1, next_step="Say about how many will be asked.")
        self._models = Models(self._teller, expected_questions)
        self._releasing = Releasing(self._teller)
        try:
            if budget is not None:
                self._teller.set_cap(budget)
            self._known.pure = self._gate().kind == "pure"
            with self._teller.turn():
                self._teller.tell_total()
        except BaseException:
            self.close()
            raise

    def ask(
        self,
        question: Askable,
        *,
        error: Number | None = None,
        confidence: Number = 0.95,
        epsilon: Number | None = None,
        joint: bool = False,
        nonnegative: bool = False,
        analyst: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """The answer to a question: SQL, a condition as after WHERE, a predicate, or a query object.

        Give the `error` that the answer may have, in its own unit, or the price it may have as an `epsilon` at the
        table's delta; with neither it is answered as well as it is known. For a GROUP BY each error holds by itself,
        with `joint` all of them together. `nonnegative` lifts what is below zero to zero, where it must be nearer to
        the truth; parts may then not add up to the whole. `key` makes the request safe to repeat (see Ledger.spend).

        Raises BudgetExceeded, and spends nothing, if it costs more than is left; a mean may have paid for a first look
        at how many rows it is of, at most a few hundredths of the budget.
        """
        if analyst is not None:
            mine: dict[str, Any] = {"error": error, "confidence": confidence, "epsilon": epsilon, "joint": joint}
            return self.seen_by(analyst).ask(question, **mine, nonnegative=nonnegative, key=key)
        reading = read_question(question, self.table.domain, self.table.name)
        wish = read_wish(error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        with self._teller.looking():
            if (answer := self._told(reading, wish, nonnegative)) is not None:
                return answer
        with self._teller.turn():
            # Somebody may have paid for it while we waited for our turn.
            if (answer := self._told(reading, wish, nonnegative)) is not None:
                return answer
            checked, asked = None, modelled(reading, wish)
            if asked is not None:
                checked = self._models.ask(asked, wish.target, reading.text, self.analyst)
            if checked is not None and checked.steps is None:
                bar = Bars(np.array([float(checked.value)]), np.array([checked.error]))
                return self._answer(reading, wish, [bar], (), origin="model")
            paid = [] if checked is None or checked.steps is None else [checked.steps]
            paid += self._meet(reading, wish, key)
            cost = None if checked is None else checked.cost
            return self._answer(reading, wish, self._bars(reading, wish), paid, nonnegative, cost=cost)

    def told(
        self,
        question: Askable,
        *,
        error: Number | None = None,
        confidence: Number = 0.95,
        epsilon: Number | None = None,
        joint: bool = False,
        nonnegative: bool = False,
        patient: bool = False,
    ) -> Answer | None:
        """The answer if it is known, and None if it must be paid for.

        A server asks it first, on the thread that serves everybody; so unless `patient` it is None too where it would
        take longer: where others have to be waited for, or where there are many numbers.
        """
        reading = read_question(question, self.table.domain, self.table.name)
        wish = read_wish(error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        if patient:
            with self._teller.looking():
                return self._told(reading, wish, nonnegative)
        if wish.nothing or reading.size(self.table.domain) > FEW or not self._teller.knowing.acquire(blocking=False):
            return None
        try:
            return self._told(reading, wish, nonnegative) if self._teller.is_fresh else None
        finally:
            self._teller.knowing.release()

    def ask_many(
        self,
        questions: Sequence[Askable],
        *,
        error: Number,
        confidence: Number = 0.95,
        analyst: str | None = None,
        key: str | None = None,
    ) -> list[Answer]:
        """The answers to several questions, planned together and paid at once: cheaper than one after the other.

        Where a model is far cheaper, it answers, and one noisy maximum of its errors on this batch certifies that all
        are good enough; then all errors hold together.
        """
        if analyst is not None:
            return self.seen_by(analyst).ask_many(questions, error=error, confidence=confidence, key=key)
        readings = [read_question(each, self.table.domain, self.table.name) for each in questions]
        wish = read_wish(error=error, confidence=confidence, epsilon=None, joint=False)
        with self._teller.turn():
            paid: list[Steps] = []
            certified = self._certified(readings, wish)
            if certified is not None:
                return certified
            asked = [pair for reading in readings for pair in targets_of(reading, wish, self._known, self._gate())]
            steps = plan_steps(asked, self._known)
            if steps.steps:
                why = f"{len(readings)} questions: " + "; ".join(reading.text for reading in readings[:3])
                if self._measure(steps, why, key, wish, readings):
                    paid.append(steps)
            # Means may need another look, now that the number of their values is known.
            for reading in readings:
                paid += self._meet(reading, wish, None)
            return [self._answer(reading, wish, self._bars(reading, wish), paid) for reading in readings]

    # fmt: off
    @overload
    def plan(self, question: Askable, *, error: Number | None = None, confidence: Number = 0.95,
             epsilon: Number | None = None, joint: bool = False) -> Plan: ...
    @overload
    def plan(self, question: Wanted, *, budget: Budget, rows: Number | None = None, seconds: Number | None = None,
             memory: Number | None = None) -> ReleasePlan: ...
    # fmt: on
    def plan(
        self,
        question: Any,
        *,
        error: Number | None = None,
        confidence: Number = 0.95,
        epsilon: Number | None = None,
        joint: bool = False,
        budget: Budget | None = None,
        rows: Number | None = None,
        seconds: Number | None = None,
        memory: Number | None = None,
    ) -> Plan | ReleasePlan:
        """What a question would cost, before paying: reads no row and spends nothing.

        With a `budget` it is the plan of a release (see `release`): what each method would do with a workload. If
        nothing is known of the number of rows, say about how many there are (`rows`).
        """
        if budget is not None:
            return self._releasing.plan(question, budget, limits_of(seconds, memory), rows, self.analyst)
        reading = read_question(question, self.table.domain, self.table.name)
        wish = read_wish(error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        with self._teller.looking():
            return promised(self._teller, self._models, self.analyst, reading, wish)

    def release(
        self,
        workload: Wanted,
        budget: Budget | None = None,
        *,
        method: str = AUTO,
        seconds: Number | None = None,
        memory: Number | None = None,
        analyst: str | None = None,
        key: str | None = None,
        tell: Tell | None = None,
    ) -> Release:
        """A model of the whole table that is right about a workload, synthetic rows, and a card: docs/release.md.

        The workload is `dp.marginals(domain, 3)`, a list of marginals, questions or columns, or a dict of how much each
        matters. What is known is used first; what is measured for it is known afterwards. The `method` is the one
        with the best forecast (see `plan`) that takes at most so many `seconds` of a processor and bytes of `memory`.
        All of the `budget` is used; without one, all that is left. `key` makes it safe to repeat, and `tell` hears how
        much is done, from 0 to 1.

        Raises BudgetExceeded or TooLarge, and spends nothing, if it does not fit.
        """
        if analyst is not None:
            mine: dict[str, Any] = {"method": method, "seconds": seconds, "memory": memory}
            return self.seen_by(analyst).release(workload, budget, **mine, key=key, tell=tell)
        given, limits = self.remaining if budget is None else budget, limits_of(seconds, memory)
        return self._releasing.release(workload, given, method, limits, self.analyst, key, tell)

    @property
    def remaining(self) -> Budget:
        """What one more release could cost, as an epsilon at the table's delta."""
        return self.ledger.remaining(table=self.table.name, analyst=self.analyst)

    @property
    def spent(self) -> Budget:
        """What was spent on the table so far, as an epsilon at its delta."""
        return self._teller.balance(self.analyst).spent

    def known(self, *, confidence: Number = 0.95) -> list[Free]:
        """What can be answered for free now: of which columns every cell, range and subset, and with what error a cell.

        Only the largest sets of columns are listed; what can be asked of them can be asked of fewer.
        """
        chance = float(probability("confidence", confidence, next_step="Give one, say 0.95."))
        with self._teller.looking():
            return free_now(self._known, chance)

    def seen_by(self, analyst: str) -> "Curator":
        """The same desk for another analyst: what is known is shared; what is left is what this analyst may spend."""
        other = copy(self)
        other.analyst, other._owned = text("analyst", analyst), False
        return other

    def history(self) -> list[Spend]:
        """Every spend on this table, in order."""
        return self.ledger.history(table=self.table.name)

    def close(self) -> None:
        """Give back what was set aside for a model, and the ledger's files if this curator opened them."""
        self._models.close()
        if self._owned:
            self.ledger.close()

    def __enter__(self) -> "Curator":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Curator: {self.table.name}; {self.remaining} left>"

    # What may pay is below.

    def _meet(self, reading: Reading, wish: Wish, key: str | None) -> list[Steps]:
        """Measure until the wish is met. Only a mean takes more than one round."""
        paid: list[Steps] = []
        for _ in range(_ROUNDS):
            if wish.nothing or meets(self._bars(reading, wish), wish):
                break
            if beyond(self._teller, self.analyst, reading, wish):
                raise BudgetExceeded(f"{few_rows(wish)}{self._for_free([reading], wish)}")
            steps = next_steps(self._teller, self.analyst, targets_of(reading, wish, self._known, self._gate()), wish)
            if not steps.steps:
                break
            if self._measure(steps, reading.text, key, wish, [reading]):
                paid.append(steps)
            key = None
            if wish.epsilon is not None:
                break
        return paid

    def _measure(self, steps: Steps, why: str, key: str | None, wish: Wish, readings: Sequence[Reading]) -> bool:
        """Take some steps. Whether something was paid: a repeated request is not."""
        # The same request may be planned otherwise when it comes again: what counts is what was asked.
        asked = [query_to_plain(each) for reading in readings for part in reading.parts for each in part.questions]
        body = None if key is None else dumps([asked, repr(wish)]).encode()
        try:
            return self._teller.measure(steps, why, analyst=self.analyst, key=key, body=body, error=wish.error or None)
        except BudgetExceeded as refused:
            raise BudgetExceeded(f"{refused}{self._for_free(readings, wish)}") from None

    def _certified(self, readings: Sequence[Reading], wish: Wish) -> list[Answer] | None:
        """A batch answered by a model, all of it within the wanted error; None if that does not pay or is not so."""
        asked = [modelled(reading, wish) for reading in readings]
        clear = [each for each in asked if each is not None]
        found = self._models.certify(clear, len(asked), wish.target, self.analyst)
        if found is None:
            return None
        return [
            self._answer(reading, wish, [bar], origin="model", cost=found.cost)
            for reading, bar in zip(readings, found.bars, strict=True)
        ]

    # What only looks is below.

    def _told(self, reading: Reading, wish: Wish, nonnegative: bool) -> Answer | None:
        """The answer if nothing need be paid for it, or nothing may be."""
        asked = modelled(reading, wish)
        if asked is not None and self._known.surely_unknown(asked):
            return None
        bars = self._bars(reading, wish)
        if meets(bars, wish):
            return self._answer(reading, wish, bars, (), nonnegative)
        if wish.nothing:
            return self._guess(reading, wish, bars) or self._answer(reading, wish, bars, (), nonnegative)
        return None

    def _for_free(self, readings: Sequence[Reading], wish: Wish) -> str:
        """What can be had without paying, as the end of a refusal."""
        error = max(float(bar.errors.max()) for each in readings for bar in self._bars(each, wish))
        if error < inf:
            return f"\n    What is known answers it for free with error {error_text(error)}: ask without an error."
        if any(self._models.guess(asked) is not None for each in readings if (asked := single(each)) is not None):
            return "\n    A model answers it for free, without any guarantee: ask without an error."
        return "\n    Nothing that follows from earlier answers says more about it; see known()."

    def _guess(self, reading: Reading, wish: Wish, bars: Sequence[Bars]) -> Answer | None:
        """What a model says of a question of which nothing is known: its error is infinite, for it has no guarantee."""
        asked = single(reading)
        value = None if asked is None or bars[0].errors.min() < inf else self._models.guess(asked)
        if value is None:
            return None
        return self._answer(reading, wish, [Bars(np.array([round(value)]), np.array([inf]))], (), origin="model")

    def _bars(self, reading: Reading, wish: Wish) -> list[Bars]:
        joint = wish.joint_of(reading, self.table.domain)
        return [bars_of(part, self._known, wish.confidence, joint) for part in reading.parts]

    def _answer(
        self, reading: Reading, wish: Wish, bars: Sequence[Bars], paid: Sequence[Steps] = (), *more: bool, **facts: Any
    ) -> Answer:
        return reply(self._teller, self.analyst, reading, wish, bars, paid, *more, **facts)

    def _gate(self) -> Gate:
        return self._teller.gate(self.analyst)

    @property
    def _known(self) -> Known:
        return self._teller.known
