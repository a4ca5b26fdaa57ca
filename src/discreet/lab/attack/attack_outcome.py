"""What came out of an attack: how much was learnt from whom, beside what is permitted."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["exact", "rounded", "ours"]


@dataclass(frozen=True, slots=True)
class Learnt:
    """From whom, and what share was learnt: of people guessed right, of pairs told apart, or how sure one can be."""

    source: str
    kind: Kind
    share: float


@dataclass(frozen=True, slots=True)
class Roc:
    """A curve of hits over false alarms."""

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
        """Whether nothing was learnt from private answers that is not permitted."""
        return self.best("ours") <= self.luck

    @property
    def budget(self) -> str:
        """The promise in words."""
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
