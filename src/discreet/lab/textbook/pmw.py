"""Private multiplicative weights: thousands of counts behind one payment. Proofs: pmw.md"""

import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from threading import RLock
from types import TracebackType
from typing import NoReturn

from discreet.accounting.event import Event, Nothing
from discreet.accounting.filter import Gate, gate_for
from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.answer import Answer
from discreet.errors import BadParameter, Refusal, SealBroken
from discreet.lab.textbook.pmw_design import MOST_UPDATES, Design, Setting, Terms, solved
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.lab.textbook.pmw_model import (
    ROWS_CODEC,
    Countable,
    Opened,
    PMWModel,
    Update,
    name_of,
    opening,
    past,
    read_count,
    updating,
)
from discreet.ledger import Ledger
from discreet.ledger.accounts import narrowest
from discreet.ledger.ledger import ANYONE
from discreet.ledger.transaction import Access, Payment, transact
from discreet.mechanism.laplace import laplace
from discreet.mechanism.public import public
from discreet.mechanism.sparse_vector import Run
from discreet.numeric import Number, positive, probability, text, whole
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import Exact
from discreet.source.table import Table

_SETTINGS = ("calibrated", "bun", "cube", "root")
_EVERYONE = Linear([Product(())])


class PMW:
    """A session that answers counts from a model, tests each answer against the table, and pays only when it opens.

    Give two of `epsilon` (the price, at the table's delta), `error` (of every answer, in rows) and `updates` (how often
    the model may be found wrong); the third follows. With probability `confidence` all answers, to at most `queries`
    questions, are within the error. The whole session is paid at the start, before a row is read; then questions are
    free until the updates are used up.

    The threshold is a secret of this process and is stored nowhere. After a crash the model is rebuilt from the ledger;
    to continue, `reopen=True` pays for a new session that begins with that model.

    >>> import tempfile, discreet as dp
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = dp.Ledger(f"{folder.name}/budget.sqlite")
    >>> ledger.cap(dp.Budget(epsilon=2), table="data")
    >>> people = dp.open({"age": [31] * 5000 + [64] * 9000}, domain=dp.Domain({"age": dp.Integers(0, 99)}))
    >>> session = dp.PMW(people, ledger=ledger, epsilon=1, updates=10)
    >>> session.error, session.ask("age < 50").origin, session.updates_left
    (1001, 'measured', 9)
    >>> session.ask("age >= 50").origin, session.ask("age < 50").origin, ledger.remaining(table="data")
    ('model', 'known', Budget(epsilon=1))
    >>> session.close(), ledger.close()
    (None, None)

    [HR10; 000, Algorithm 2; 003, Algorithm 2]; proofs: pmw.md
    """

    def __init__(
        self,
        table: Table,
        *,
        ledger: Ledger | str | os.PathLike[str],
        epsilon: Number | None = None,
        error: Number | None = None,
        updates: int | None = None,
        confidence: Number = 0.95,
        queries: int = 10_000,
        setting: Setting = "calibrated",
        name: str = "pmw",
        analyst: str = ANYONE,
        order: Sequence[str] = (),
        reopen: bool = False,
    ) -> None:
        if not isinstance(table, Table):
            raise BadParameter(
                f"table is a {type(table).__name__}; it must be a Table. Open one: dp.open('people.yaml')."
            )
        self.table, self.name, self.analyst = table, text("name", name), text("analyst", analyst)
        self._known_as = name_of(table.name, self.name, table.domain)
        self._owned = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._lock, self._process = RLock(), os.getpid()
        self._run: Run | None = None
        self._answers: dict[Linear, Answer] = {}
        self.confidence = float(probability("confidence", confidence))
        self._queries = whole("queries", queries, least=1)
        self.asked = 0
        try:
            # Bound before anything is asked or paid: answers about an older version say nothing about this one.
            self.ledger.bind(table.identity)
            before = self._past(reopen)
            self.design = self._designed(setting, epsilon, error, updates, _rows(before))
            self._begin(before, order)
        except BaseException:
            self.close()
            raise
        self._runs_left, self._run = self.design.runs - 1, self._mechanism.init()

    def ask(self, question: Countable) -> Answer:
        """How many rows satisfy a condition: SQL, a text as after WHERE, a predicate, or a query of weights 0 and 1.

        The origin is "model" if the model passed its test, "measured" if it did not and the count was measured, and
        "known" if the same was asked before. Refuses when the updates or the questions are used up.
        """
        query = read_count(question, self.table.domain, self.table.name)
        with self._lock:
            self._require_own_process()
            self.ledger.look(self.table.identity)
            if query in self._answers:
                return replace(self._answers[query], origin="known", remaining=self._remaining)
            self._require_open()
            answer = self._test_and_answer(query)
            self._answers[query] = answer
            return answer

    @property
    def updates_left(self) -> int:
        """The number of updates that are left."""
        if self._run is None:
            return 0
        return self._run.hits_left + self._runs_left * self.design.hits

    @property
    def queries_left(self) -> int:
        """The number of further questions that the confidence covers."""
        return self._queries - self.asked

    @property
    def cost(self) -> Event:
        """The event that was paid for when the session opened."""
        return self.design.event

    @property
    def error(self) -> int:
        """The error of every answer, in rows."""
        return self.design.error

    def close(self) -> None:
        """Forget the threshold, and close the ledger's files if this session opened them."""
        self._run = None
        self._runs_left = 0
        if self._owned:
            self.ledger.close()

    def __enter__(self) -> "PMW":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<PMW: {self.name} of {self.table.name}; {self.updates_left} of {self.design.updates} updates left>"

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise SealBroken(
            "a session holds a secret threshold and cannot be copied or pickled: no proof covers two copies that share "
            "it. Open another session."
        )

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse_copy

    # Methods with effects, in the order in which they are called.

    def _past(self, reopen: bool) -> list[Opened | Update]:
        before = past(self.ledger.entries(), self._known_as, since=self.ledger.since(self.table.name))
        if before and not reopen:
            updates = sum(isinstance(each, Update) for each in before)
            raise Refusal(
                f'session "{self.name}" of table "{self.table.name}" was opened before and made {updates} updates. Its '
                "threshold is gone with its process, so continuing needs a new run, at the full price of its updates: "
                "give reopen=True to pay that and begin with the old model, or give another name."
            )
        if reopen and not before:
            raise BadParameter(
                f'no session "{self.name}" of table "{self.table.name}" is in this ledger. Leave out reopen=True.'
            )
        return before

    def _designed(
        self, setting: Setting, epsilon: Number | None, error: Number | None, updates: int | None, rows: int | None
    ) -> Design:
        if setting not in _SETTINGS:
            raise BadParameter(f"setting is {setting!r}; it must be one of {', '.join(_SETTINGS)}. Give one of them.")
        gate, domain, unit = self._gate(), self.table.domain, self.table.unit
        price = None if epsilon is None else positive("epsilon", epsilon)
        bar = None if error is None else floor(positive("error", error, next_step="Give a number of rows."))
        most = None if updates is None else whole("updates", updates, least=1, most=MOST_UPDATES)
        moves = int(scalar_sensitivity(0, 1, unit, droppable=domain.drops).linf)
        terms = Terms(
            gate_for(gate, gate.epsilon if price is None else price),
            self._queries,
            float(1 - Fraction(str(self.confidence))),
            moves,
            tells_rows=rows is None and not self._rows_are_public,
        )
        if setting != "calibrated":
            return self._from_textbook(setting, terms, price, bar, most)
        if [price, bar, most].count(None) > 1:
            raise BadParameter(
                f"two of epsilon, error and updates are needed, and the third follows; they are {epsilon}, {error} and "
                f"{updates}. Give, for example, epsilon=1 and updates=20."
            )
        return solved(gate, terms, error=bar, updates=most, epsilon=price)

    def _from_textbook(
        self, setting: Setting, terms: Terms, price: Fraction | None, bar: int | None, most: int | None
    ) -> Design:
        if price is None or bar is not None or most is not None:
            raise BadParameter(
                f'setting "{setting}" takes epsilon alone; error and updates follow from its theorem. Leave them out.'
            )
        if not self._rows_are_public:
            raise BadParameter(
                f'setting "{setting}" needs a public number of rows, and here {self.table.unit.describe}. '
                'Use setting="calibrated", or declare neighbors="replace_one".'
            )
        # No person can move it, so it costs nothing; and the price of the session depends on it.
        payment = self._payment(Nothing(), "the number of rows, which is public")
        rows = transact(self.ledger, payment, self._public_rows, ROWS_CODEC, self._access).result
        return textbook(setting, terms, cells=self.table.domain.size, rows=rows)

    def _begin(self, before: Sequence[Opened | Update], order: Sequence[str]) -> None:
        """Make the model, pay, and learn what earlier sessions of this name have recorded."""
        # Before paying: a model that does not fit into memory must not be charged.
        self._fitted = PMWModel(self.table.domain, self.design.rule, self.design.rate, order)
        self._mechanism = self.design.mechanism()
        self._open(_rows(before))
        for each in before:
            if isinstance(each, Update):
                self._fitted.learn(each)

    def _open(self, before: int | None) -> None:
        """Pay for everything, durably; only then read a row. The number of rows is not measured twice."""
        design = self.design
        why = f'session "{self.name}": {design.updates} updates, error {design.error}'
        payment = self._payment(design.event, why, error=float(max(design.error, 1)))

        def count_rows() -> int:
            if before is not None:
                return before
            return self._public_rows() if self._rows_are_public else self._noisy_rows()

        rows = transact(self.ledger, payment, count_rows, opening(self._known_as, design), self._access).result
        self._fitted.set_rows(rows)
        self._remaining = self.ledger.remaining(table=self.table.name, analyst=self.analyst)

    def _payment(self, event: Event, why: str, *, error: float | None = None) -> Payment:
        return Payment(event, why, self.table, self.analyst, error=error)

    @property
    def _access(self) -> Access:
        return Access(self.table.touch)

    def _noisy_rows(self) -> int:
        moves = sensitivity_of(_EVERYONE, self.table.domain, self.table.unit)
        mechanism = laplace(epsilon=moves.l1 / self.design.value_scale, sensitivity=moves)
        return int(mechanism.release(self.table.evaluate(_EVERYONE))[0])

    def _public_rows(self) -> int:
        return int(public().release(self.table.evaluate(_EVERYONE))[0])

    def _test_and_answer(self, query: Linear) -> Answer:
        """Test the model's answer from both sides; if it fails, return the measured value, and learn it."""
        guess = self._fitted.answer(query)
        # Both are read in any case, so that the reading reveals nothing.
        self.table.touch()
        with self.table.snapshot():
            above, below = self.table.evaluate(query), self.table.evaluate(-query)
        self.asked += 1
        value, low = self._step(above, guess), True
        if value is None:
            value, low = self._step(below, -guess), False
            value = None if value is None else -value
        if value is None:
            return self._answer_of(guess, self.design.error, "model")
        found = Update(query, value, low, float(self.design.value_scale))
        self._keep(found)
        self._fitted.learn(found)
        return self._answer_of(value, self.design.value_error, "measured")

    def _step(self, exact: Exact, guess: int) -> int | None:
        """Whether the exact value is above the guess by more than the threshold; if so, the value with fresh noise.

        The guess is public, so it is added to the threshold instead of taken from the value, which stays sealed.
        """
        # If anything fails from here on, the run is over.
        run, self._run = self._run, None
        assert run is not None, "the session is open"
        shifted = replace(run, noisy_threshold=run.noisy_threshold + guess)
        after, answer = self._mechanism.step(shifted, exact)
        if after.hits_left or not self._runs_left:
            self._run = replace(after, noisy_threshold=run.noisy_threshold)
        else:
            self._run, self._runs_left = self._mechanism.init(), self._runs_left - 1
        return None if answer is None else int(answer)

    def _keep(self, found: Update) -> None:
        """Record an update before it is released. If that fails, nothing is released, and the session is over."""
        run, self._run = self._run, None
        payment = self._payment(Nothing(), f'session "{self.name}": an update, paid when it was opened')
        transact(self.ledger, payment, lambda: found, updating(self._known_as))
        self._run = run

    # Methods without effects.

    def _answer_of(self, value: int, error: int, origin: str) -> Answer:
        columns: dict[str, list[float]] = {"count": [value], "count_error": [float(error)]}
        neighbors = self.table.unit.describe
        return Answer(
            value, float(error), self.confidence, Nothing(), neighbors, columns, origin, remaining=self._remaining
        )

    @property
    def _rows_are_public(self) -> bool:
        return sensitivity_of(_EVERYONE, self.table.domain, self.table.unit).l1 == 0

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise Refusal(
                "this session belongs to another process, from which this one was forked: two processes that share its "
                f'secret threshold are no longer private. Open another one: PMW(…, name="{self.name}-2").'
            )

    def _require_open(self) -> None:
        if self._run is None:
            raise Refusal(
                f'session "{self.name}" was closed or interrupted. Its answers are known; PMW(…, reopen=True) pays for '
                "a new run that begins with its model."
            )
        if self._run.hits_left == 0:
            raise Refusal(
                f'session "{self.name}" has used its {self.design.updates} updates. PMW(…, reopen=True) pays for more '
                "and begins with its model."
            )
        if self.asked >= self._queries:
            raise Refusal(
                f'session "{self.name}" has answered its {self._queries} questions; the confidence covers no more. '
                "PMW(…, reopen=True, queries=…) pays for more and begins with its model."
            )

    def _gate(self) -> Gate:
        """The currency of the table's own budget, or of the narrowest over it."""
        accounts = self.ledger.balances(table=self.table.name, analyst=self.analyst)
        if all(one.scope.analyst is not None for one in accounts):
            # Raises, and says how to set a budget.
            self.ledger.remaining(table=self.table.name, analyst=self.analyst)
        return narrowest(accounts).gate


def _rows(before: Sequence[Opened | Update]) -> int | None:
    """The number of rows that an earlier opening recorded: it is not measured twice."""
    return next((each.rows for each in before if isinstance(each, Opened)), None)
