"""The outcome of a stream of questions: which were free, their answers, and the distances from the truth."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.answer import Answer
from discreet.errors import BudgetExceeded
from discreet.lab.demo.questions import KINDS, Question
from discreet.lab.demo.spending import Spending
from discreet.lab.demo.truth import Truth
from discreet.ledger import Budget


class Desk(Protocol):
    """What the demonstration needs of a curator."""

    ledger: Any

    def ask(self, question: str, /, *, error: float, confidence: float) -> Answer:
        """An answer with this error, or BudgetExceeded."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A question, its answer (None if it was refused), the truth, and the part of the budget that is used by now."""

    question: Question
    answer: Answer | None
    truth: tuple[int, ...]
    used: float

    @property
    def free(self) -> bool:
        """Whether it followed from earlier answers, and was free."""
        return self.answer is not None and getattr(self.answer, "origin", None) == "known"

    @property
    def values(self) -> NDArray[np.float64]:
        """The released numbers."""
        return np.atleast_1d(np.asarray(self.answer.value if self.answer else [], dtype=np.float64))

    @property
    def errors(self) -> NDArray[np.float64]:
        """The error that was promised for each."""
        promised = np.asarray(self.answer.error if self.answer else [], dtype=np.float64)
        return np.broadcast_to(np.atleast_1d(promised), self.values.shape)

    @property
    def misses(self) -> NDArray[np.float64]:
        """The distance of each number from the truth, in promised errors: above 1 the interval did not hold."""
        if self.answer is None:
            return np.zeros(0)
        away = np.abs(self.values - np.array(self.truth))
        return np.where(away == 0, 0.0, away / np.maximum(self.errors, 1e-12))


@dataclass(frozen=True)
class Outcome:
    """The whole stream."""

    replies: Sequence[Reply]
    budget: Budget
    confidence: float
    seconds: float

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which questions were free."""
        return np.array([reply.free for reply in self.replies])

    @property
    def refused(self) -> int:
        """The number of questions that the budget was too small for."""
        return sum(reply.answer is None for reply in self.replies)

    @property
    def spending(self) -> Spending:
        """The cost with Discreet."""
        return Spending("Discreet", [reply.used for reply in self.replies], self.budget, "squares")

    @cached_property
    def misses(self) -> dict[str, NDArray[np.float64]]:
        """For each kind of question, the distance of every number from the truth, in promised errors."""
        kinds: dict[str, list[NDArray[np.float64]]] = {kind: [] for kind in KINDS}
        for reply in self.replies:
            kinds[reply.question.kind].append(reply.misses)
        return {kind: np.concatenate(each) for kind, each in kinds.items() if each}

    @cached_property
    def every_miss(self) -> NDArray[np.float64]:
        """The same, of all questions."""
        return np.concatenate(list(self.misses.values()))

    @property
    def held(self) -> float:
        """The share of numbers that were within their promised error."""
        return float(np.mean(self.every_miss <= 1)) if self.every_miss.size else 1.0


def ask_all(
    desk: Desk,
    stream: Iterable[Question],
    truth: Truth,
    *,
    budget: Budget,
    confidence: float,
    watch: Callable[[Reply, float], None] = lambda reply, seconds: None,
) -> Outcome:
    """Ask one question after the other; `watch` is called with each reply and the seconds spent on asking so far."""
    replies, seconds, used = [], 0.0, _used(desk)
    for question in stream:
        start = perf_counter()
        try:
            answer = desk.ask(question.sql, error=question.error, confidence=confidence)
        except BudgetExceeded:
            answer = None
        seconds += perf_counter() - start
        true = truths(truth, question, answer) if answer is not None else ()
        if answer is not None and getattr(answer, "origin", None) != "known":
            used = _used(desk)
        replies.append(Reply(question, answer, true, used))
        watch(replies[-1], seconds)
    return Outcome(replies, budget, confidence, seconds)


def truths(truth: Truth, question: Question, answer: Answer) -> tuple[int, ...]:
    """The true number beside each that is shown, found by the labels of its row."""
    counts = truth.of(question)
    if not question.groups:
        return (counts[()],)
    return tuple(counts.get(row, 0) for row in zip(*(answer.columns[name] for name in question.groups), strict=True))


def _used(desk: Desk) -> float:
    return 1 - float(desk.ledger.balances()[0].share_left)
