"""The outcome of an attack: how much was learnt from each answerer, beside what the budget permits."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["exact", "rounded", "ours"]


@dataclass(frozen=True, slots=True)
class Learnt:
    """An answerer, and what was learnt: the share of people guessed right, of pairs ordered right, or a certainty."""

    source: str
    kind: Kind
    share: float


@dataclass(frozen=True, slots=True)
class Roc:
    """A ROC curve: hits over false alarms."""

    kind: Kind
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attack, tried on several answerers.

    chance    what anybody reaches who learns nothing
    limit     the most that the budget permits on average, to any attacker
    luck      the most that it permits in one experiment, but for a probability of 1 − `confidence`
    """

    name: str
    title: str
    how: str
    measure: str
    learnt: tuple[Learnt, ...]
    chance: float
    limit: float
    luck: float
    confidence: float
    epsilon: float
    delta: float
    notes: tuple[str, ...] = ()
    curves: tuple[Roc, ...] = ()

    def best(self, kind: Kind) -> float:
        """The most that was learnt from this kind of answers."""
        return max((each.share for each in self.learnt if each.kind == kind), default=0.0)

    @property
    def holds(self) -> bool:
        """Whether no more was learnt from private answers than the budget permits."""
        return self.best("ours") <= self.luck

    @property
    def budget(self) -> str:
        """The promise in words."""
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
