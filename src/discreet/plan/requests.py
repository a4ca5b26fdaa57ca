"""What a procedure asks of the rows: it yields a request, and its runner pays, reads and releases."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from discreet.accounting.event import Event, Gaussian, Selection
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter
from discreet.plan.plan import Steps
from discreet.query.linear import Linear, Marginal
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Ints

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


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Say how far each of some marginals is from what is expected, Σ |true − expected| over its cells, with noise.

    The answer is a number for each marginal. `expected` has the integers of each as `Marginal` releases them: the
    columns sorted, the last one varying fastest.
    """

    scopes: tuple[Columns, ...]
    expected: tuple[Ints, ...]
    sigma: Fraction
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows. One person moves all distances at once, each by the L1 of its marginal."""
        moves = marginal_moves(self.scopes, self.expected, domain, unit)
        return Gaussian(self.sigma, sum((each.l1**2 for each in moves), Fraction(0)))


@dataclass(frozen=True, slots=True, eq=False)
class Farthest:
    """Say which marginal is (about) farthest from what is expected, beyond its handicap: the answer is its place.

    `expected` is as in `Distances`; a marginal's score is its distance minus its handicap.
    """

    scopes: tuple[Columns, ...]
    expected: tuple[Ints, ...]
    handicaps: tuple[int, ...] | None
    epsilon: Fraction
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows."""
        return Selection(self.epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class SmallTable:
    """Choose a table of a few rows that answers every question nearly as the true one does (SmallDB).

    The answer is the cell of each row, numbered with the columns sorted and the last one varying fastest.
    """

    questions: tuple[Linear, ...]
    rows: int
    epsilon: Fraction
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows."""
        return Selection(self.epsilon)


def marginal_moves(
    scopes: tuple[Columns, ...], expected: tuple[Ints, ...], domain: Domain, unit: Unit
) -> tuple[Sensitivity, ...]:
    """How far one person moves each of some marginals; refuses expected integers that are not one for each cell.

    >>> import numpy as np
    >>> from discreet.schema.column import Boolean
    >>> marginal_moves((("a",),), (np.array([3, 4, 5]),), Domain({"a": Boolean()}), Unit())
    Traceback (most recent call last):
    discreet.errors.BadParameter: the marginal of a has 2 cells and 3 are expected; there must be one for each. Give ...
    """
    if len(scopes) != len(expected):
        raise BadParameter(
            f"there are {len(scopes)} marginals and {len(expected)} are expected; there must be one for each. "
            "Give the expected integers of every marginal."
        )
    moves = []
    for scope, integers in zip(scopes, expected, strict=True):
        marginal = Marginal(scope)
        moves.append(sensitivity_of(marginal, domain, unit))
        cells = marginal.size(domain)
        if len(integers) != cells:
            raise BadParameter(
                f"the marginal of {', '.join(scope) or 'nothing'} has {cells} cells and {len(integers)} are expected; "
                "there must be one for each. Give the integers of its cells, the last column varying fastest."
            )
    return tuple(moves)


Request = Measure | Choose | Quantile | Distances | Farthest | SmallTable
# A procedure yields requests, is sent what was released for each (for a Measure: 0), and returns what it has made.
Procedure = Generator[Request, Any, Done]


def run(procedure: Procedure[Done], answer: Callable[[Request], Any]) -> Done:
    """Run a procedure to its end, with someone who answers its requests."""
    try:
        request = next(procedure)
        while True:
            request = procedure.send(answer(request))
    except StopIteration as done:
        made: Done = done.value
        return made
