"""The answer to a question: known numbers are free, missing ones are measured, and intervals become an `Answer`.

Under an idempotency key the first answer is recorded, and given again every time. Before anything is paid, the layout
of an answer is tried on invented numbers, so that a question that cannot be laid out costs nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from json import dumps
from math import inf, nan

import numpy as np

from discreet.accounting.event import Event, Nothing
from discreet.accounting.filter import Gate
from discreet.answer import Answer, error_text
from discreet.curator.accuracy import all_intervals, few_rows, next_steps, surely_exceeds, targets_of
from discreet.curator.checked_model import Models
from discreet.curator.executor import Executor, Paying
from discreet.curator.question import Accuracy, Keyed, ParsedQuestion, PreparedQuestion, lay_out_answer, single
from discreet.curator.records import UnlaidAnswer, compose_events, pack_answers, unpack_answers
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, DiscreetError, TableChanged, TooLarge
from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import Intervals
from discreet.ledger import Ledger
from discreet.ledger.accounts import Budget, as_budget
from discreet.plan.plan import Origin, Steps, plan_steps, require_small_batch
from discreet.query.predicate import everyone
from discreet.schema.domain import Domain
from discreet.source.table import Table


def unlaid_answer(
    executor: Executor,
    asked: PreparedQuestion,
    bars: Sequence[Intervals],
    paid: Sequence[Steps] = (),
    *,
    origin: Origin | None = None,
    cost: Event | None = None,
) -> UnlaidAnswer:
    """The answer to a question, from its bars and what was paid for them."""
    analyst = asked.analyst
    if asked.accuracy.nothing and origin is None:
        require_known(bars)
    steps = Steps(tuple(step for each in paid for step in each.steps))
    if cost is None:
        cost = cost_of(executor, paid)
    if analyst not in executor.left:
        executor.left[analyst] = executor.ledger.remaining(table=executor.table.name, analyst=analyst)
    return UnlaidAnswer(
        tuple(bars), origin or steps.origin, cost, executor.left[analyst], event_epsilon(executor, analyst, cost)
    )


def cost_of(executor: Executor, paid: Sequence[Steps]) -> Event:
    """The event of all steps that were paid for, together."""
    steps = Steps(tuple(step for each in paid for step in each.steps))
    return steps.event(executor.table.domain, executor.table.unit) if paid else Nothing()


def event_epsilon(executor: Executor, analyst: str, cost: Event) -> float:
    """The price of an event, as an epsilon at the table's delta."""
    if isinstance(cost, Nothing):
        return 0.0
    gate = executor.gate(analyst)
    return float(as_budget(gate, gate.charge(cost)).epsilon)


def lift_negatives(parsed: ParsedQuestion, bars: Sequence[Intervals], domain: Domain) -> list[Intervals]:
    """Lift to zero what is negative and cannot be. That is closer to the truth, so the errors still hold."""
    return [
        Intervals(np.maximum(bar.values, 0.0), bar.errors) if part.never_negative(domain) else bar
        for part, bar in zip(parsed.parts, bars, strict=True)
    ]


def answer_of(executor: Executor, asked: PreparedQuestion, found: UnlaidAnswer) -> Answer:
    """The answer with its layout, as an analyst gets it."""
    value, error, columns = lay_out_answer(asked.parsed, found.bars, executor.table.domain)
    return Answer(
        value,
        error,
        asked.accuracy.confidence,
        found.cost,
        executor.neighbors,
        columns,
        origin=found.origin,
        remaining=found.remaining,
        price=found.price,
    )


def require_known(bars: Sequence[Intervals]) -> None:
    """Refuse a question about which nothing is known, if nothing may be paid."""
    if any(np.isinf(bar.errors).all() for bar in bars):
        raise BadParameter(
            "nothing is known about this yet. Say how good the answer must be (error), or what it may cost (epsilon)."
        )


def meets(bars: Sequence[Intervals], accuracy: Accuracy) -> bool:
    """Whether all errors are as small as wished, but for rounding. Small groups of a mean never are."""
    return accuracy.error is not None and all(float(bar.errors.max()) <= accuracy.error * (1 + 1e-8) for bar in bars)


# The most rounds of measuring for a mean: another one follows where fewer rows than expected have a value.
_ROUNDS = 12


class Asking:
    """What a curator does with one question, or with several at once."""

    table: Table
    ledger: Ledger
    analyst: str
    _executor: Executor
    _models: Models

    # Methods that may pay.

    def _answer_once(
        self, keyed: Keyed | None, analyst: str, answered: Callable[[], list[UnlaidAnswer]]
    ) -> list[UnlaidAnswer]:
        """The answers to a request. If paid under a key, they are always the same; free answers leave no trace."""
        if keyed is None:
            return answered()
        if (kept := self._kept_answers(keyed, analyst)) is not None:
            return kept
        found = answered()
        if all(isinstance(each.cost, Nothing) for each in found) and not self._is_used(keyed.key, analyst):
            return found
        # The rows were read, so the source may have changed since; but the version must still be the current one.
        table = replace(self.table.identity, fingerprint=None)
        try:
            stored = self.ledger.keep(pack_answers(found), keyed.key, table=table, analyst=analyst, body=keyed.body)
        except TableChanged:
            raise TableChanged(
                f'a new version of table "{table.table}" was declared while this was answered about the one before. It '
                "was charged, and the answer is not given, because it is about the old one. Ask again with a new key."
            ) from None
        return unpack_answers(stored)

    def _pay_for(self, asked: PreparedQuestion) -> UnlaidAnswer:
        """The answer to a question that is not known: a model gives it and is checked, or it is measured."""
        checked, query = None, asked.single
        done: list[Event] = [Nothing()]
        if query is not None:
            self._models.take_cost()
            checked = self._models.ask(query, asked.accuracy.target, asked.parsed.text, asked.analyst)
            done = [self._models.take_cost()]
        if checked is not None and checked.steps is None:
            bar = Intervals(np.array([float(checked.value)]), np.array([checked.error]))
            return self._unlaid_answer(asked, [bar], origin="model", cost=compose_events(done))
        hit = [] if checked is None or checked.steps is None else [checked.steps]
        paid = [*hit]
        with self._add_charged(asked.analyst, paid, done[0]):
            self._meet(asked, asked.keyed, paid)
        # The event of a hit includes what was measured after it.
        done += [] if checked is None or checked.cost is None else [checked.cost]
        cost = compose_events([*done, cost_of(self._executor, paid[len(hit) :])])
        return self._unlaid_answer(asked, self._lift(asked, self._bars(asked)), paid, cost=cost)

    def _pay_together(self, batch: Sequence[PreparedQuestion], keyed: Keyed | None) -> list[UnlaidAnswer]:
        """The answers to a batch, in one payment. All are asked by one analyst, with one accuracy."""
        if not batch:
            return []
        paid: list[Steps] = []
        accuracy, analyst = batch[0].accuracy, batch[0].analyst
        questions = [question for asked in batch for part in asked.parsed.parts for question in part.questions]
        if not self._known.measures_residuals or not all(asked.single for asked in batch):
            require_small_batch(questions, self._known)
        self._models.take_cost()
        certified = self._certified_intervals(batch)
        done = self._models.take_cost()
        if certified is not None:
            return [
                self._unlaid_answer(asked, [bar], origin="model", cost=done)
                for asked, bar in zip(batch, certified, strict=True)
            ]
        with self._add_charged(analyst, paid, done):
            require_small_batch(questions, self._known)
            gate = self._gate(analyst)
            targets = [pair for asked in batch for pair in targets_of(asked.parsed, accuracy, self._known, gate)]
            steps = plan_steps(targets, self._known)
            if steps.steps:
                why = f"{len(batch)} questions: " + "; ".join(asked.parsed.text for asked in batch[:3])
                if self._measure(steps, why, keyed, batch):
                    paid.append(steps)
            # Means may need another round, now that the number of their values is known.
            for place, asked in enumerate(batch):
                part = None if keyed is None else keyed.part("question", place + 1)
                self._meet(asked, part, paid)
        # All were paid for together: what it cost is worked out once, not once for each of them.
        whole = self._unlaid_answer(batch[0], (), paid, cost=compose_events([done, cost_of(self._executor, paid)]))
        return [whole._replace(bars=tuple(self._bars(asked))) for asked in batch]

    @contextmanager
    def _add_charged(self, analyst: str, paid: Sequence[Steps], done: Event) -> Iterator[None]:
        """Add to a refusal what was charged before it: counts of a mean's rows, the rest of a batch, a model."""
        try:
            yield
        except (BudgetExceeded, TooLarge) as refused:
            cost = compose_events([done, cost_of(self._executor, paid)])
            if isinstance(cost, Nothing):
                raise
            price = event_epsilon(self._executor, analyst, cost)
            raise type(refused)(
                f"{refused}\n    What was measured before this refusal is charged: epsilon {price:.3g}."
            ) from None

    def _meet(self, asked: PreparedQuestion, keyed: Keyed | None, paid: list[Steps]) -> None:
        """Measure until the wanted accuracy is met. Only a mean takes more than one round."""
        parsed, accuracy, analyst = asked.parsed, asked.accuracy, asked.analyst
        all_parts, narrowest = False, inf
        for place in range(_ROUNDS):
            bars = self._bars(asked)
            if accuracy.nothing or meets(bars, accuracy):
                break
            if surely_exceeds(self._executor, analyst, parsed, accuracy):
                raise BudgetExceeded(f"{few_rows(accuracy)}{self._free_hint([asked])}")
            try:
                targets = targets_of(parsed, accuracy, self._known, self._gate(analyst))
            except BudgetExceeded as refused:
                raise BudgetExceeded(f"{refused}{self._free_hint([asked])}") from None
            steps = next_steps(self._executor, analyst, targets, accuracy)
            width = float(sum(bar.errors.sum() for bar in bars))
            if not steps.steps or (all_parts and not width < narrowest):
                # A round that narrowed nothing: another would not either.
                break
            all_parts, narrowest = len(targets) > len(parsed.parts), width
            if self._measure(steps, parsed.text, None if keyed is None else keyed.part("round", place), [asked]):
                paid.append(steps)
            if accuracy.epsilon is not None:
                break

    def _measure(self, steps: Steps, why: str, keyed: Keyed | None, batch: Sequence[PreparedQuestion]) -> bool:
        """Take some steps; returns whether they were paid for now: a repeated request is not."""
        paying = Paying(batch[0].analyst, keyed=keyed, error=batch[0].accuracy.error or None)
        try:
            return self._executor.measure(steps, why, paying)
        except BudgetExceeded as refused:
            raise BudgetExceeded(f"{refused}{self._free_hint(batch)}") from None

    def _certified_intervals(self, batch: Sequence[PreparedQuestion]) -> list[Intervals] | None:
        """A batch answered by a model, all within the wanted error; None if no model is cheaper and good enough."""
        clear = [query for asked in batch if (query := asked.single) is not None]
        found = self._models.certify(clear, len(batch), batch[0].accuracy.target, batch[0].analyst)
        return None if found is None else found.bars

    # Methods that pay nothing.

    def _is_used(self, key: str | None, analyst: str) -> bool:
        return key is not None and self.ledger.used(key, analyst=analyst)

    def _kept_answers(self, keyed: Keyed, analyst: str) -> list[UnlaidAnswer] | None:
        """The answers that were given when the request first came under its key."""
        kept = self.ledger.kept(keyed.key, table=self.table.name, analyst=analyst, body=keyed.body, older=keyed.older)
        return None if kept is None else unpack_answers(kept)

    def _free_answer(self, asked: PreparedQuestion) -> UnlaidAnswer | None:
        """The answer if it costs nothing, or if nothing may be paid."""
        query = asked.single
        if query is not None and self._known.surely_unknown(query):
            return None
        bars = self._bars(asked)
        if meets(bars, asked.accuracy):
            return self._unlaid_answer(asked, self._lift(asked, bars))
        if asked.accuracy.nothing:
            return self._guess(asked, bars) or self._unlaid_answer(asked, self._lift(asked, bars))
        return None

    def _free_hint(self, batch: Sequence[PreparedQuestion]) -> str:
        """The end of a refusal: which answer would be free."""
        error = max(float(bar.errors.max()) for asked in batch for bar in self._bars(asked))
        if error < inf:
            return f"\n    What is known answers it for free with error {error_text(error)}: ask without an error."
        queries = [query for asked in batch if (query := single(asked.parsed)) is not None]
        if any(self._models.guess(query) is not None for query in queries):
            return "\n    A model answers it for free, without any guarantee: ask without an error."
        return "\n    It does not follow from earlier answers, even roughly."

    def _guess(self, asked: PreparedQuestion, bars: Sequence[Intervals]) -> UnlaidAnswer | None:
        """A model's answer to a question about which nothing is known. It has no guarantee: its error is infinite."""
        query = single(asked.parsed)
        value = None if query is None or bars[0].errors.min() < inf else self._models.guess(query)
        if value is None:
            return None
        return self._unlaid_answer(asked, [Intervals(np.array([round(value)]), np.array([inf]))], origin="model")

    def _bars(self, asked: PreparedQuestion) -> list[Intervals]:
        joint = asked.joint(self.table.domain)
        return all_intervals(asked.parsed.parts, self._known, asked.accuracy.confidence, joint)

    def _lift(self, asked: PreparedQuestion, bars: list[Intervals]) -> list[Intervals]:
        return lift_negatives(asked.parsed, bars, self.table.domain) if asked.nonnegative else bars

    def _unlaid_answer(
        self,
        asked: PreparedQuestion,
        bars: Sequence[Intervals],
        paid: Sequence[Steps] = (),
        *,
        origin: Origin | None = None,
        cost: Event | None = None,
    ) -> UnlaidAnswer:
        return unlaid_answer(self._executor, asked, bars, paid, origin=origin, cost=cost)

    def _gate(self, analyst: str) -> Gate:
        return self._executor.gate(analyst)

    @property
    def _known(self) -> Estimator:
        return self._executor.known


# A longer answer is tried without its groups, which do not change how it is written.
MOST_TRIED = 2**10
# Invented values and errors: all numbers are there, or none is.
_TRIED = (((-1.5, 0.0, 7.0), (0.3, 1.0, inf)), ((nan,), (inf,)))
_LEFT = Budget(1)


def rehearse(parsed: ParsedQuestion, domain: Domain) -> None:
    """Raise BadQuery unless the answer to a question can be laid out, shown and sent, whatever is released for it."""
    if parsed.size(domain) > MOST_TRIED:
        if parsed.select is None:
            return
        select = replace(parsed.select, items=parsed.select.aggregates, group=(), having=everyone, order=(), limit=None)
        parsed = replace(parsed, group=(), select=select)
    size = parsed.size(domain) // len(parsed.parts)
    for values, errors in _TRIED:
        bar = Intervals(np.resize(values, size), np.resize(errors, size))
        try:
            _write_down(parsed, bar, domain)
        except DiscreetError:
            raise
        except Exception as error:
            raise BadQuery(
                f"the answer could not be written down ({type(error).__name__}), so nothing was asked or charged. Use "
                "simple names for the columns of the output, or ask in SQL."
            ) from None


def _write_down(parsed: ParsedQuestion, bar: Intervals, domain: Domain) -> None:
    """Lay out an answer, show it as a text and as a page would, and encode all of it."""
    value, error, columns = lay_out_answer(parsed, [bar] * len(parsed.parts), domain)
    answer = Answer(value, error, 0.95, Nothing(), "", columns, remaining=_LEFT)
    shown = [list(columns.items()), str(answer), answer._repr_html_(), parsed.text]
    dumps(shown, ensure_ascii=False, default=float).encode()
