"""The model of a session: what it answers, and how it learns from a question that it got wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

from discreet.model.dense import Dense
from discreet.model.weights import Rule, step_between
from discreet.query.linear import Linear
from discreet.schema.domain import Domain

# How often all measurements are looked at again after a new one; noise may make them contradict each other.
_SWEEPS = 20


@dataclass(frozen=True, slots=True)
class Update:
    """A question on which the model was wrong, what was measured instead, and the scale of the noise in it."""

    query: Linear
    value: int
    low: bool
    scale: float


class PMWModel:
    """A dense model of `rows` rows, and the updates that it has learnt."""

    def __init__(self, domain: Domain, rule: Rule, rate: float, order: Sequence[str] = ()) -> None:
        self.model = Dense(domain, order=order)
        self.rule, self.rate = rule, rate
        self.measured: list[Update] = []

    @property
    def rows(self) -> float:
        """How many rows there are thought to be."""
        return self.model.total

    def told_rows(self, rows: int) -> None:
        """The number of rows, public or measured. A table is thought to have at least one."""
        self.model.total = float(max(rows, 1))

    def answer(self, query: Linear) -> int:
        """The model's answer, a whole number: the same that is compared with the truth is released."""
        return round(min(max(self.model.answer(query), 0.0), self.rows))

    def learn(self, found: Update) -> None:
        """One update. By projection, all measurements so far are met again, within their noise."""
        self.measured.append(found)
        match self.rule:
            case "linear":
                # Down: 1 − a inside. Up: 1 − a outside, which is 1/(1 − a) inside but for the normalisation.
                self.model.update(found.query, step=log1p(-self.rate) * (-1 if found.low else 1))
            case "exponential":
                self.model.update(found.query, step=self.rate * (1 if found.low else -1))
            case "projection":
                self._move(found.query, found.value)
                self._meet_all()

    def _meet_all(self) -> None:
        """Project on one measurement after the other, each a slab as wide as its noise, until all are met."""
        for _ in range(_SWEEPS):
            missed = False
            for each in self.measured:
                # What no table can have is met as nearly as one can.
                value, width = min(max(float(each.value), 0.0), self.rows), max(each.scale, 1.0)
                off = value - self.model.answer(each.query)
                if abs(off) > width:
                    missed = True
                    # Within the slab by a little, so that what meets it is not looked at again.
                    self._move(each.query, value - (0.9 * width if off > 0 else -0.9 * width))
            if not missed:
                return

    def _move(self, query: Linear, target: float) -> None:
        """Scale the inside of a query so that its answer is the target, kept off the ends: no cell is given up."""
        edge = 0.5 / self.rows
        guess = min(max(self.model.answer(query) / self.rows, 1e-12), 1 - 1e-12)
        self.model.update(query, step=step_between(guess, min(max(target / self.rows, edge), max(edge, 1 - edge))))
