"""What a procedure asks of the rows: it says what it wants, and somebody else pays, reads and releases."""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from discreet.plan.plan import Steps
from discreet.privacy.event import Event, Gaussian, Selection
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.effect import sensitivity_of

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Measure:
    """Take these steps; afterwards they are known."""

    steps: Steps
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows."""
        return self.steps.event(domain, unit)


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """Say which question is (about) furthest from what is expected: the answer is its place."""

    questions: tuple[Linear, ...]
    expected: tuple[int, ...]
    epsilon: Fraction
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows."""
        return Selection(self.epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class Quantile:
    """Say how far the rank-th nearest question is from what is expected, with Gaussian noise."""

    questions: tuple[Linear, ...]
    expected: tuple[int, ...]
    sigma: Fraction
    rank: int
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows. However many questions there are, a person moves each distance by this."""
        moves = sensitivity_of(self.questions, domain, unit).linf
        return Gaussian(self.sigma, moves**2)


Request = Measure | Choose | Quantile
# A procedure yields requests, is sent the released number of each (of a Measure: 0), and returns what it has made.
Procedure = Generator[Request, int, Done]
