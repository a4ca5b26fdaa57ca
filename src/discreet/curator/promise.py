"""A plan as an analyst sees it: what a question would cost, and the error that it would give, before paying."""

from dataclasses import dataclass, field

from discreet.curator.asked import Reading
from discreet.curator.teller import Teller
from discreet.curator.wish import Wish
from discreet.ledger.budget import Budget, as_budget
from discreet.picture import error_text
from discreet.plan.plan import Lattice, Origin, Steps
from discreet.privacy.event import Event, Nothing


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done for a question. Nothing was read and nothing was spent.

    `cost` is what would be done to the table, `price` what that alone would cost as an epsilon at the table's delta,
    and `fits` whether that is still there. `error` is the half-width that was asked for, or the best one for
    the price. `note` says what the plan cannot know yet.
    """

    question: str
    error: float
    confidence: float
    origin: Origin
    cost: Event
    price: Budget
    fits: bool
    note: str = ""
    steps: Steps = field(default=Steps(()), repr=False)

    @property
    def free(self) -> bool:
        """Whether nothing will be paid: it is known, or a model answers."""
        return isinstance(self.cost, Nothing)

    def __str__(self) -> str:
        """One sentence for each thing that matters."""
        how = {
            "known": "it is known: free",
            "measured": "pieces of the lattice are topped up",
            "direct": "the numbers are measured by themselves",
            "model": "a model answers, and is checked: free if it passes",
            "mixed": "some pieces of the lattice are topped up and some numbers are measured by themselves",
        }[self.origin]
        lines = [f"± {error_text(self.error)} ({100 * self.confidence:g} %): {how}."]
        if not self.free:
            pieces = sum(len(step.measurement.pieces) for step in self.steps.steps if isinstance(step, Lattice))
            detail = "" if not pieces else ", 1 piece" if pieces == 1 else f", {pieces} pieces"
            room = "" if self.fits else " That is more than is left."
            lines.append(f"Price: {self.price}{detail}.{room}")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def model_plan(teller: Teller, analyst: str, reading: Reading, wish: Wish) -> Plan:
    """The plan of a question that a model answers."""
    session, gate = teller.session, teller.gate(analyst)
    assert session is not None, "a model that serves has a session"
    hit = as_budget(gate, gate.charge(session.coin.hit), teller.balance(analyst).room)
    note = f"Should the check fail, it is measured, and costs {hit} more than that."
    free = as_budget(gate, gate.nothing)
    return Plan(reading.text, float(session.error), wish.confidence, "model", Nothing(), free, True, note)
