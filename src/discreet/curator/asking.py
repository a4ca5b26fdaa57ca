"""How a question is answered: what is known is told, what is not is paid for; under a key, once and always the same."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from discreet.curator.asked import Reading, single
from discreet.curator.bars import all_bars
from discreet.curator.keyed import packed, unpacked
from discreet.curator.models import Models
from discreet.curator.promise import beyond, next_steps
from discreet.curator.reply import Said, cost_of, lifted, meets, price_of, said, together
from discreet.curator.teller import Keyed, Paying, Teller
from discreet.curator.wish import Wish, few_rows, modelled, targets_of
from discreet.errors import BudgetExceeded, TableChanged, TooLarge
from discreet.known.bars import Bars
from discreet.known.known import Known
from discreet.ledger import Ledger
from discreet.picture import error_text
from discreet.plan.plan import Steps, plan_steps, require_few
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
    _teller: Teller
    _models: Models

    # What may pay is below.

    def _once(self, request: Keyed | None, answered: Callable[[], list[Said]]) -> list[Said]:
        """What is said to a request: under a key that was paid with, always the same. Free answers leave no trace."""
        if request is None:
            return answered()
        if (kept := self._kept(request)) is not None:
            return kept
        saids = answered()
        if all(isinstance(each.cost, Nothing) for each in saids) and not self._used(request):
            return saids
        # What the rows are now does not matter, for they were read; but the version must still be the current one.
        table = replace(self.table.identity, fingerprint=None)
        try:
            stored = self.ledger.keep(packed(saids), request.key, table=table, analyst=self.analyst, body=request.body)
        except TableChanged:
            raise TableChanged(
                f'a new version of table "{table.table}" was declared while this was answered about the one before. It '
                "was charged, and is not told as an answer about the new one. Ask again, under a new key."
            ) from None
        return unpacked(stored)

    def _asked(self, reading: Reading, wish: Wish, nonnegative: bool, request: Keyed | None) -> Said:
        # Somebody may have paid for it while we waited for our turn.
        if (found := self._told(reading, wish, nonnegative)) is not None:
            return found
        checked, asked = None, modelled(reading, wish)
        self._models.take_cost()
        if asked is not None:
            checked = self._models.ask(asked, wish.target, reading.text, self.analyst)
        done = [self._models.take_cost()]
        if checked is not None and checked.steps is None:
            bar = Bars(np.array([float(checked.value)]), np.array([checked.error]))
            return self._said(wish, [bar], origin="model", cost=together(done))
        hit = [] if checked is None or checked.steps is None else [checked.steps]
        paid = [*hit]
        with self._told_what_was(paid, done[0]):
            self._meet(reading, wish, request, paid)
        # The event of a hit has what was measured after it.
        done += [] if checked is None or checked.cost is None else [checked.cost]
        cost = together([*done, cost_of(self._teller, paid[len(hit) :])])
        return self._said(wish, self._shown(reading, self._bars(reading, wish), nonnegative), paid, cost=cost)

    def _asked_many(self, readings: Sequence[Reading], wish: Wish, request: Keyed | None) -> list[Said]:
        paid: list[Steps] = []
        questions = [question for reading in readings for part in reading.parts for question in part.questions]
        if self._known.pure or not all(modelled(reading, wish) for reading in readings):
            require_few(questions, self._known)
        self._models.take_cost()
        certified = self._certified(readings, wish)
        done = self._models.take_cost()
        if certified is not None:
            return [self._said(wish, [bar], origin="model", cost=done) for bar in certified]
        with self._told_what_was(paid, done):
            require_few(questions, self._known)
            asked = [pair for reading in readings for pair in targets_of(reading, wish, self._known, self._gate())]
            steps = plan_steps(asked, self._known)
            if steps.steps:
                why = f"{len(readings)} questions: " + "; ".join(reading.text for reading in readings[:3])
                if self._measure(steps, why, request, wish, readings):
                    paid.append(steps)
            # Means may need another look, now that the number of their values is known.
            for place, reading in enumerate(readings):
                part = None if request is None else request.part("question", place + 1)
                self._meet(reading, wish, part, paid)
        # All were paid for together: what it cost is worked out once, not once for each of them.
        whole = self._said(wish, (), paid, cost=together([done, cost_of(self._teller, paid)]))
        return [whole._replace(bars=tuple(self._bars(reading, wish))) for reading in readings]

    @contextmanager
    def _told_what_was(self, paid: Sequence[Steps], done: Event) -> Iterator[None]:
        """Say in a refusal what was charged before it: looks of a mean, the rest of a batch, what a model took."""
        try:
            yield
        except (BudgetExceeded, TooLarge) as refused:
            cost = together([done, cost_of(self._teller, paid)])
            if isinstance(cost, Nothing):
                raise
            price = price_of(self._teller, self.analyst, cost)
            raise type(refused)(
                f"{refused}\n    What was measured before that was clear is charged: epsilon {price:.3g}."
            ) from None

    def _meet(self, reading: Reading, wish: Wish, request: Keyed | None, paid: list[Steps]) -> None:
        """Measure until the wish is met. Only a mean takes more than one round."""
        all_parts, narrowest = False, inf
        for place in range(_ROUNDS):
            if wish.nothing or meets(self._bars(reading, wish), wish):
                break
            if beyond(self._teller, self.analyst, reading, wish):
                raise BudgetExceeded(f"{few_rows(wish)}{self._for_free([reading], wish)}")
            try:
                asked = targets_of(reading, wish, self._known, self._gate())
            except BudgetExceeded as refused:
                raise BudgetExceeded(f"{refused}{self._for_free([reading], wish)}") from None
            steps = next_steps(self._teller, self.analyst, asked, wish)
            width = self._width(reading, wish)
            if not steps.steps or (all_parts and not width < narrowest):
                # What a round has not made narrower, another will not.
                break
            all_parts, narrowest = len(asked) > len(reading.parts), width
            part = None if request is None else request.part("round", place)
            if self._measure(steps, reading.text, part, wish, [reading]):
                paid.append(steps)
            if wish.epsilon is not None:
                break

    def _measure(self, steps: Steps, why: str, request: Keyed | None, wish: Wish, readings: Sequence[Reading]) -> bool:
        """Take some steps. Whether something was paid: a repeated request is not."""
        paying = Paying(self.analyst, keyed=request, error=wish.error or None)
        try:
            return self._teller.measure(steps, why, paying)
        except BudgetExceeded as refused:
            raise BudgetExceeded(f"{refused}{self._for_free(readings, wish)}") from None

    def _certified(self, readings: Sequence[Reading], wish: Wish) -> list[Bars] | None:
        """A batch answered by a model, all of it within the wanted error; None if that does not pay or is not so."""
        asked = [modelled(reading, wish) for reading in readings]
        clear = [each for each in asked if each is not None]
        found = self._models.certify(clear, len(asked), wish.target, self.analyst)
        return None if found is None else found.bars

    # What only looks is below.

    def _used(self, request: Keyed | None) -> bool:
        return request is not None and self.ledger.used(request.key, analyst=self.analyst)

    def _kept(self, request: Keyed) -> list[Said] | None:
        """What was said to a request when it came first under its key."""
        named: dict[str, Any] = {"table": self.table.name, "analyst": self.analyst}
        kept = self.ledger.kept(request.key, body=request.body, older=request.older, **named)
        return None if kept is None else unpacked(kept)

    def _told(self, reading: Reading, wish: Wish, nonnegative: bool) -> Said | None:
        """The answer if nothing need be paid for it, or nothing may be."""
        asked = modelled(reading, wish)
        if asked is not None and self._known.surely_unknown(asked):
            return None
        bars = self._bars(reading, wish)
        if meets(bars, wish):
            return self._said(wish, self._shown(reading, bars, nonnegative))
        if wish.nothing:
            return self._guess(reading, wish, bars) or self._said(wish, self._shown(reading, bars, nonnegative))
        return None

    def _for_free(self, readings: Sequence[Reading], wish: Wish) -> str:
        """What can be had without paying, as the end of a refusal."""
        error = max(float(bar.errors.max()) for each in readings for bar in self._bars(each, wish))
        if error < inf:
            return f"\n    What is known answers it for free with error {error_text(error)}: ask without an error."
        if any(self._models.guess(asked) is not None for each in readings if (asked := single(each)) is not None):
            return "\n    A model answers it for free, without any guarantee: ask without an error."
        return "\n    Nothing that follows from earlier answers says more about it; see known()."

    def _guess(self, reading: Reading, wish: Wish, bars: Sequence[Bars]) -> Said | None:
        """What a model says of a question of which nothing is known: its error is infinite, for it has no guarantee."""
        asked = single(reading)
        value = None if asked is None or bars[0].errors.min() < inf else self._models.guess(asked)
        if value is None:
            return None
        return self._said(wish, [Bars(np.array([round(value)]), np.array([inf]))], (), origin="model")

    def _bars(self, reading: Reading, wish: Wish) -> list[Bars]:
        joint = wish.joint_of(reading, self.table.domain)
        return all_bars(reading.parts, self._known, wish.confidence, joint)

    def _shown(self, reading: Reading, bars: list[Bars], nonnegative: bool) -> list[Bars]:
        return lifted(reading, bars, self.table.domain) if nonnegative else bars

    def _width(self, reading: Reading, wish: Wish) -> float:
        """How wide all bars are together."""
        return float(sum(bar.errors.sum() for bar in self._bars(reading, wish)))

    def _said(self, wish: Wish, bars: Sequence[Bars], paid: Sequence[Steps] = (), **facts: Any) -> Said:
        return said(self._teller, self.analyst, wish, bars, paid, **facts)

    def _gate(self) -> Gate:
        return self._teller.gate(self.analyst)

    @property
    def _known(self) -> Known:
        return self._teller.known
