"""How a question is answered: what is known is told, what is not is paid for; under a key, once and always the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf

import numpy as np

from discreet.curator.asked import Keyed, PreparedQuestion, single
from discreet.curator.bars import all_bars
from discreet.curator.executor import Executor, Paying
from discreet.curator.keyed import UnlaidAnswer, packed, unpacked
from discreet.curator.models import Models
from discreet.curator.released import together
from discreet.curator.reply import cost_of, lifted, meets, price_of, unlaid
from discreet.curator.wish import beyond, few_rows, next_steps, targets_of
from discreet.errors import BudgetExceeded, TableChanged, TooLarge
from discreet.known.bars import Bars
from discreet.known.known import Known
from discreet.ledger import Ledger
from discreet.picture import error_text
from discreet.plan.plan import Origin, Steps, plan_steps, require_few
from discreet.privacy.event import Event, Nothing
from discreet.privacy.gate import Gate
from discreet.source.table import Table

# How often a mean may be looked at anew, when it turned out that fewer rows than expected have a value.
_ROUNDS = 12


class Asking:
    """What a curator does with one question, or with several at once."""

    table: Table
    ledger: Ledger
    analyst: str
    _teller: Executor
    _models: Models

    # What may pay is below.

    def _once(
        self, keyed: Keyed | None, analyst: str, answered: Callable[[], list[UnlaidAnswer]]
    ) -> list[UnlaidAnswer]:
        """The answers to a request: under a key that was paid with, always the same. Free answers leave no trace."""
        if keyed is None:
            return answered()
        if (kept := self._kept(keyed, analyst)) is not None:
            return kept
        found = answered()
        if all(isinstance(each.cost, Nothing) for each in found) and not self._used(keyed, analyst):
            return found
        # What the rows are now does not matter, for they were read; but the version must still be the current one.
        table = replace(self.table.identity, fingerprint=None)
        try:
            stored = self.ledger.keep(packed(found), keyed.key, table=table, analyst=analyst, body=keyed.body)
        except TableChanged:
            raise TableChanged(
                f'a new version of table "{table.table}" was declared while this was answered about the one before. It '
                "was charged, and is not told as an answer about the new one. Ask again, under a new key."
            ) from None
        return unpacked(stored)

    def _paid(self, asked: PreparedQuestion) -> UnlaidAnswer:
        """The answer to a question that is not known: by a model that is checked, or measured."""
        checked, query = None, asked.single
        done: list[Event] = [Nothing()]
        if query is not None:
            self._models.take_cost()
            checked = self._models.ask(query, asked.accuracy.target, asked.parsed.text, asked.analyst)
            done = [self._models.take_cost()]
        if checked is not None and checked.steps is None:
            bar = Bars(np.array([float(checked.value)]), np.array([checked.error]))
            return self._unlaid(asked, [bar], origin="model", cost=together(done))
        hit = [] if checked is None or checked.steps is None else [checked.steps]
        paid = [*hit]
        with self._saying_what_was_charged(asked.analyst, paid, done[0]):
            self._meet(asked, asked.keyed, paid)
        # The event of a hit has what was measured after it.
        done += [] if checked is None or checked.cost is None else [checked.cost]
        cost = together([*done, cost_of(self._teller, paid[len(hit) :])])
        return self._unlaid(asked, self._shown(asked, self._bars(asked)), paid, cost=cost)

    def _paid_together(self, batch: Sequence[PreparedQuestion], keyed: Keyed | None) -> list[UnlaidAnswer]:
        """The answers to a batch, in one payment. All are asked by one analyst, with one accuracy."""
        if not batch:
            return []
        paid: list[Steps] = []
        accuracy, analyst = batch[0].accuracy, batch[0].analyst
        questions = [question for asked in batch for part in asked.parsed.parts for question in part.questions]
        if not self._known.measures_residuals or not all(asked.single for asked in batch):
            require_few(questions, self._known)
        self._models.take_cost()
        certified = self._certified(batch)
        done = self._models.take_cost()
        if certified is not None:
            return [
                self._unlaid(asked, [bar], origin="model", cost=done)
                for asked, bar in zip(batch, certified, strict=True)
            ]
        with self._saying_what_was_charged(analyst, paid, done):
            require_few(questions, self._known)
            gate = self._gate(analyst)
            targets = [pair for asked in batch for pair in targets_of(asked.parsed, accuracy, self._known, gate)]
            steps = plan_steps(targets, self._known)
            if steps.steps:
                why = f"{len(batch)} questions: " + "; ".join(asked.parsed.text for asked in batch[:3])
                if self._measure(steps, why, keyed, batch):
                    paid.append(steps)
            # Means may need another look, now that the number of their values is known.
            for place, asked in enumerate(batch):
                part = None if keyed is None else keyed.part("question", place + 1)
                self._meet(asked, part, paid)
        # All were paid for together: what it cost is worked out once, not once for each of them.
        whole = self._unlaid(batch[0], (), paid, cost=together([done, cost_of(self._teller, paid)]))
        return [whole._replace(bars=tuple(self._bars(asked))) for asked in batch]

    @contextmanager
    def _saying_what_was_charged(self, analyst: str, paid: Sequence[Steps], done: Event) -> Iterator[None]:
        """Say in a refusal what was charged before it: looks of a mean, the rest of a batch, what a model took."""
        try:
            yield
        except (BudgetExceeded, TooLarge) as refused:
            cost = together([done, cost_of(self._teller, paid)])
            if isinstance(cost, Nothing):
                raise
            price = price_of(self._teller, analyst, cost)
            raise type(refused)(
                f"{refused}\n    What was measured before that was clear is charged: epsilon {price:.3g}."
            ) from None

    def _meet(self, asked: PreparedQuestion, keyed: Keyed | None, paid: list[Steps]) -> None:
        """Measure until the wanted accuracy is met. Only a mean takes more than one round."""
        parsed, accuracy, analyst = asked.parsed, asked.accuracy, asked.analyst
        all_parts, narrowest = False, inf
        for place in range(_ROUNDS):
            bars = self._bars(asked)
            if accuracy.nothing or meets(bars, accuracy):
                break
            if beyond(self._teller, analyst, parsed, accuracy):
                raise BudgetExceeded(f"{few_rows(accuracy)}{self._for_free([asked])}")
            try:
                targets = targets_of(parsed, accuracy, self._known, self._gate(analyst))
            except BudgetExceeded as refused:
                raise BudgetExceeded(f"{refused}{self._for_free([asked])}") from None
            steps = next_steps(self._teller, analyst, targets, accuracy)
            width = float(sum(bar.errors.sum() for bar in bars))
            if not steps.steps or (all_parts and not width < narrowest):
                # What a round has not made narrower, another will not.
                break
            all_parts, narrowest = len(targets) > len(parsed.parts), width
            if self._measure(steps, parsed.text, None if keyed is None else keyed.part("round", place), [asked]):
                paid.append(steps)
            if accuracy.epsilon is not None:
                break

    def _measure(self, steps: Steps, why: str, keyed: Keyed | None, batch: Sequence[PreparedQuestion]) -> bool:
        """Take some steps. Whether something was paid: a repeated request is not."""
        paying = Paying(batch[0].analyst, keyed=keyed, error=batch[0].accuracy.error or None)
        try:
            return self._teller.measure(steps, why, paying)
        except BudgetExceeded as refused:
            raise BudgetExceeded(f"{refused}{self._for_free(batch)}") from None

    def _certified(self, batch: Sequence[PreparedQuestion]) -> list[Bars] | None:
        """A batch answered by a model, all of it within the wanted error; None if that does not pay or is not so."""
        clear = [query for asked in batch if (query := asked.single) is not None]
        found = self._models.certify(clear, len(batch), batch[0].accuracy.target, batch[0].analyst)
        return None if found is None else found.bars

    # What only looks is below.

    def _used(self, keyed: Keyed | None, analyst: str) -> bool:
        return keyed is not None and self.ledger.used(keyed.key, analyst=analyst)

    def _kept(self, keyed: Keyed, analyst: str) -> list[UnlaidAnswer] | None:
        """What was answered to a request when it came first under its key."""
        kept = self.ledger.kept(keyed.key, table=self.table.name, analyst=analyst, body=keyed.body, older=keyed.older)
        return None if kept is None else unpacked(kept)

    def _free(self, asked: PreparedQuestion) -> UnlaidAnswer | None:
        """The answer if nothing need be paid for it, or nothing may be."""
        query = asked.single
        if query is not None and self._known.surely_unknown(query):
            return None
        bars = self._bars(asked)
        if meets(bars, asked.accuracy):
            return self._unlaid(asked, self._shown(asked, bars))
        if asked.accuracy.nothing:
            return self._guess(asked, bars) or self._unlaid(asked, self._shown(asked, bars))
        return None

    def _for_free(self, batch: Sequence[PreparedQuestion]) -> str:
        """What can be had without paying, as the end of a refusal."""
        error = max(float(bar.errors.max()) for asked in batch for bar in self._bars(asked))
        if error < inf:
            return f"\n    What is known answers it for free with error {error_text(error)}: ask without an error."
        queries = [query for asked in batch if (query := single(asked.parsed)) is not None]
        if any(self._models.guess(query) is not None for query in queries):
            return "\n    A model answers it for free, without any guarantee: ask without an error."
        return "\n    Nothing that follows from earlier answers says more about it; see known()."

    def _guess(self, asked: PreparedQuestion, bars: Sequence[Bars]) -> UnlaidAnswer | None:
        """What a model says of a question of which nothing is known: its error is infinite, for it has no guarantee."""
        query = single(asked.parsed)
        value = None if query is None or bars[0].errors.min() < inf else self._models.guess(query)
        if value is None:
            return None
        return self._unlaid(asked, [Bars(np.array([round(value)]), np.array([inf]))], origin="model")

    def _bars(self, asked: PreparedQuestion) -> list[Bars]:
        joint = asked.joint(self.table.domain)
        return all_bars(asked.parsed.parts, self._known, asked.accuracy.confidence, joint)

    def _shown(self, asked: PreparedQuestion, bars: list[Bars]) -> list[Bars]:
        return lifted(asked.parsed, bars, self.table.domain) if asked.nonnegative else bars

    def _unlaid(
        self,
        asked: PreparedQuestion,
        bars: Sequence[Bars],
        paid: Sequence[Steps] = (),
        *,
        origin: Origin | None = None,
        cost: Event | None = None,
    ) -> UnlaidAnswer:
        return unlaid(self._teller, asked, bars, paid, origin=origin, cost=cost)

    def _gate(self, analyst: str) -> Gate:
        return self._teller.gate(analyst)

    @property
    def _known(self) -> Known:
        return self._teller.known
