"""The curator: plans a question, spends, measures, records and answers. Many questions share one budget."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from copy import copy
from types import TracebackType
from typing import Any, overload

from discreet.answer import Answer
from discreet.curator.answers import Asking, answer_of, rehearse
from discreet.curator.checked_model import Models
from discreet.curator.explanation import Free, Plan, explain_plan, free_now
from discreet.curator.question import (
    Askable,
    PreparedQuestion,
    Unpaid,
    keyed,
    read_accuracy,
    read_question,
    read_questions,
)
from discreet.curator.records import UnlaidAnswer
from discreet.curator.release import Release
from discreet.curator.release_run import Releasing, RequestExecutor
from discreet.errors import BadParameter
from discreet.estimate.laplace_estimator import estimator_for
from discreet.ledger import Budget, Ledger, Spend
from discreet.ledger.idempotency import own_key
from discreet.ledger.ledger import ANYONE
from discreet.ledger.transaction import Codec, Payment, Result, Transacted
from discreet.model.mixture.ensemble import Tell
from discreet.numeric import Number, confidence_of, text, whole
from discreet.release.task import AUTO, ReleasePlan, Wanted, limits_of
from discreet.source.table import Table

# A question of more numbers is not answered on the event loop of a server.
FAST_PATH_NUMBERS = 500


class Curator(Asking):
    """Answers any number of questions about one table, on one budget.

    Each question says how good the answer must be (`error`, a half-width that holds with probability `confidence`) or
    what it may cost (`epsilon`). What follows from earlier answers is free; what is new is paid from the ledger before
    a row is read. Everything that is known is a function of the ledger, so a curator that starts again on the same
    ledger gives the same answers.

    Where questions name many columns and there are many of them (`expected_questions` says about how many), a model may
    be cheaper; under a Rényi gate the curator then builds one, and checks each of its answers (docs/many.md).

    Where analysts can measure time, as on a server, reading rows takes `quantum` seconds, or twice, four times … as
    many if that is too short; so the time reveals nothing else of the rows. Threads may share a curator.

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
        self._executor = RequestExecutor(table, self.ledger, quantum)
        if expected_questions is not None:
            whole("expected_questions", expected_questions, least=1, next_step="Say about how many will be asked.")
        self._models = Models(self._executor, expected_questions)
        self._releasing = Releasing(self._executor)
        try:
            self._executor.watch.open(budget, self.analyst)
            self._executor.known = estimator_for(self._gate(self.analyst).kind, table.domain, table.unit)
            with self._executor.turn():
                self._executor.read_public_total()
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
        with `joint` all of them together. `nonnegative` lifts to zero what is below it and cannot be, say a count; then
        parts may not add up to the whole. `key` makes the request safe to repeat (see Ledger.spend).

        Raises BudgetExceeded, and spends nothing, if it costs more than is left. Only a mean may then have paid for
        counts of its rows (at most 3 % of the budget in squared mu, 6 % of epsilon where delta is 0); the message says
        how much.
        """
        found = self.look(
            self.prepare(
                question,
                error=error,
                confidence=confidence,
                epsilon=epsilon,
                joint=joint,
                nonnegative=nonnegative,
                analyst=analyst,
                key=key,
            )
        )
        return found if isinstance(found, Answer) else self.pay(found)

    def prepare(
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
    ) -> PreparedQuestion:
        """A question, parsed and checked once, for `look` and `pay`. The parameters are those of `ask`."""
        parsed = read_question(question, self.table.domain, self.table.name)
        accuracy = read_accuracy(error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        who = self.analyst if analyst is None else text("analyst", analyst)
        return PreparedQuestion(parsed, accuracy, who, bool(nonnegative), None if key is None else own_key(key))

    def look(self, asked: PreparedQuestion, *, wait: bool = True) -> Answer | Unpaid:
        """The answer if it is known, or was given under its key; otherwise what `pay` takes. Spends nothing.

        A server calls it first, on its event loop, without `wait`: then it does not try where that could take long,
        because another thread holds the lock or the answer has many numbers.
        """
        executor = self._executor
        if self._is_used(asked.key, asked.analyst):
            assert asked.keyed is not None, "what was used is a key"
            # A caller who waits also checks that the table has not changed.
            with executor.looking() if wait else nullcontext():
                kept = self._kept_answers(asked.keyed, asked.analyst)
            # Paid for, and not yet answered: the caller waits for it.
            return Unpaid(asked) if kept is None else answer_of(executor, asked, kept[0])
        if wait:
            with executor.looking():
                return self._known_or_unpaid(asked)
        many = asked.parsed.size(self.table.domain) > FAST_PATH_NUMBERS
        if asked.accuracy.nothing or many or not executor.knowing.acquire(blocking=False):
            return Unpaid(asked, looked=False)
        try:
            return self._known_or_unpaid(asked) if executor.is_fresh else Unpaid(asked, looked=False)
        finally:
            executor.knowing.release()

    def _known_or_unpaid(self, asked: PreparedQuestion) -> Answer | Unpaid:
        found = self._free_answer(asked)
        return Unpaid(asked, self._known.version) if found is None else answer_of(self._executor, asked, found)

    def pay(self, unpaid: Unpaid) -> Answer:
        """The answer to a question that was not known: paid for now, unless another request has paid meanwhile."""
        asked, request = unpaid.asked, unpaid.asked.keyed
        rehearse(asked.parsed, self.table.domain)

        def answered() -> list[UnlaidAnswer]:
            # Another request may have paid for it while this one waited for its turn.
            known = None if unpaid.version == self._known.version else self._free_answer(asked)
            return [self._pay_for(asked) if known is None else known]

        with self._executor.turn():
            (found,) = self._answer_once(request, asked.analyst, answered)
            return answer_of(self._executor, asked, found)

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

        Where a model is much cheaper, it answers, and one noisy maximum of its errors on this batch certifies that all
        are good enough; then all errors hold together.
        """
        every = read_questions(questions, self.table.domain, self.table.name)
        accuracy = read_accuracy(error=error, confidence=confidence, epsilon=None, joint=False)
        who = self.analyst if analyst is None else text("analyst", analyst)
        request = None if key is None else keyed(key, "ask many", every, accuracy)
        batch = [PreparedQuestion(parsed, accuracy, who) for parsed in every]
        for parsed in every:
            rehearse(parsed, self.table.domain)
        with self._executor.turn():
            found = self._answer_once(request, who, lambda: self._pay_together(batch, request))
            return [answer_of(self._executor, asked, each) for asked, each in zip(batch, found, strict=True)]

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
        the number of rows is not known, give an estimate (`rows`).
        """
        if budget is not None:
            return self._releasing.plan(question, budget, limits_of(seconds, memory), rows, self.analyst)
        asked = self.prepare(question, error=error, confidence=confidence, epsilon=epsilon, joint=joint)
        with self._executor.looking():
            return explain_plan(self._executor, self._models, asked)

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
        with the best forecast (see `plan`) among those that take at most `seconds` of a processor and `memory` bytes.
        All of the `budget` is used; without one, all that is left. `key` makes it safe to repeat, and `tell` is
        called with the progress, from 0 to 1.

        Raises BudgetExceeded or TooLarge, and spends nothing, if it does not fit.
        """
        who = self.analyst if analyst is None else text("analyst", analyst)
        given = self.ledger.remaining(table=self.table.name, analyst=who) if budget is None else budget
        return self._releasing.release(workload, given, method, limits_of(seconds, memory), who, key, tell)

    def _transact(self, payment: Payment, measure: Callable[[], Result], codec: Codec[Result]) -> Transacted[Result]:
        """A transaction about this table that is not a question, say k-means, under this curator's lock and quantum."""
        return self._executor.other(payment, measure, codec)

    @property
    def remaining(self) -> Budget:
        """What one more release could cost, as an epsilon at the table's delta."""
        return self.ledger.remaining(table=self.table.name, analyst=self.analyst)

    @property
    def spent(self) -> Budget:
        """What was spent on the table so far, as an epsilon at its delta."""
        return self._executor.balance(self.analyst).spent

    def known(self, *, confidence: Number = 0.95) -> list[Free]:
        """Sets of columns that can be asked for free now: every cell, range and subset, with the error of a cell.

        Only the largest sets of columns are listed; what can be asked of them can be asked of fewer.
        """
        chance = confidence_of(confidence)
        with self._executor.looking():
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
        with closing(self.ledger) if self._owned else nullcontext():
            self._models.close()

    def __enter__(self) -> "Curator":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Curator: {self.table.name}; {self.remaining} left>"
