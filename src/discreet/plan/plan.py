"""A plan: what would be measured for some questions and what it costs. It reads nothing and spends nothing.

Requests of a procedure: it yields one, and its runner pays, reads the rows and releases the result.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from math import prod
from typing import Any, Literal, TypeVar

from discreet.accounting.event import Compose, Event, Gaussian, Laplace, Nothing, Repeat, Selection
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter, TooLarge
from discreet.estimate.estimator import Estimator, normal_quantile
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.estimate.measurements import (
    GaussianQuery,
    GaussianResiduals,
    LaplaceMarginal,
    Question,
    Step,
)
from discreet.estimate.residual_lattice import MOST_RESIDUALS
from discreet.plan.laplace_plan import laplace_steps
from discreet.plan.steps import MOST_NOISE, Target, gaussian_steps
from discreet.query.linear import Linear, Marginal, weighs_nothing
from discreet.query.residual import Measurement, axes_of
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Ints

Origin = Literal["known", "measured", "direct", "mixed", "model"]
Measured = Measurement | Question

# From this number on, equal events in a row are written as one.
LONG_RUN = 8
# The most residuals of all questions of a batch that is planned together, and the most questions times sets of columns:
# each answer says what all of them cost. Where delta is 0, an answer has noise from every known marginal, so fewer.
MOST_TOGETHER, MOST_ANSWERED, MOST_NOISES = 2**12, 2**19, 2**11


@dataclass(frozen=True, slots=True)
class Steps:
    """What will be done to the rows for a question or a batch of them, in one payment."""

    steps: tuple[Step, ...]

    @property
    def origin(self) -> Origin:
        """Where the answer will come from."""
        if not self.steps:
            return "known"
        reusable = {isinstance(step, GaussianResiduals | LaplaceMarginal) for step in self.steps}
        if len(reusable) > 1:
            return "mixed"
        return "measured" if reusable.pop() else "direct"

    @property
    def price(self) -> float:
        """What it costs: in squared mu, or where delta is 0 in epsilon."""
        return sum(step.price for step in self.steps)

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What will be done, as the ledger writes it."""
        match _fold_repeats([step_event(step, domain, unit) for step in self.steps]):
            case []:
                return Nothing()
            case [event]:
                return event
            case events:
                return Compose(tuple(events))


def _fold_repeats(events: Sequence[Event]) -> list[Event]:
    """The same events, with long runs of one as a `Repeat`: a model measures thousands of residuals alike."""
    found: list[Event] = []
    for event, run in groupby(events):
        times = sum(1 for _ in run)
        found += [Repeat(event, times)] if times >= LONG_RUN else [event] * times
    return found


def query_of(step: Step) -> Measured:
    """What a step asks of the source."""
    match step:
        case GaussianResiduals():
            return step.measurement
        case LaplaceMarginal():
            return Marginal(step.columns)
        case _:
            return step.question


def step_event(step: Step, domain: Domain, unit: Unit) -> Event:
    """What a step does. All residuals of a measurement together are one Gaussian vector in units of its noise."""
    moves = sensitivity_of(query_of(step), domain, unit)
    match step:
        case GaussianResiduals():
            return Gaussian(Fraction(1), moves.l2_squared)
        case GaussianQuery():
            return Gaussian(step.sigma, moves.l2_squared)
        case _:
            return Laplace(step.scale, moves.l1)


def require_small_batch(questions: Sequence[Question], known: Estimator) -> None:
    """Refuse a batch that is too large to be planned together, from what was asked and the schema alone."""
    pieces = [prod(axis.parts for axis in axes_of(known.domain, question.scope)) for question in questions]
    # A question with too many residuals for the lattice is measured by itself.
    every = sum(8 + (each if each <= MOST_RESIDUALS else 0) for each in pieces)
    sets = len({question.scope for question in questions}) + len(known.marginals)
    most = MOST_NOISES if isinstance(known, LaplaceMarginals) else MOST_ANSWERED
    if len(questions) > 1 and (every > MOST_TOGETHER or sets * len(questions) > most):
        raise TooLarge(
            f"{len(questions)} questions on {sets} sets of columns, with {every} residuals, are too many together; the "
            f"limits are {MOST_TOGETHER} residuals, and {most} questions times sets of columns. Nothing was measured "
            "for them. Ask in several batches."
        )


def plan_steps(asked: Sequence[tuple[Question, Target]], known: Estimator, *, ahead: bool = True) -> Steps:
    """The cheapest way to answer some questions together: those that want the lattice share it.

    If it plans `ahead`, the steps may cost more and serve later questions.
    """
    asked = [
        (question, _within(question, target, known))
        for question, target in dict.fromkeys(asked)
        if not weighs_nothing(question)
    ]
    if isinstance(known, LaplaceMarginals):
        return Steps(laplace_steps(asked, known, ahead=ahead))
    return Steps(gaussian_steps(asked, known, ahead=ahead))


def _within(question: Question, target: Target, known: Estimator) -> Target:
    """The target, or the one that the most noise of a plan meets if that is smaller and not known."""
    most = MOST_NOISE * normal_quantile(target.confidence, target.joint)
    # Weights are whole numbers, so a sensitivity below 1 is 0.
    if target.error <= most:
        return target
    moves = sensitivity_of(question, known.domain, known.lattice.unit)
    most *= float(moves.l1) if isinstance(known, LaplaceMarginals) else float(moves.l2_squared) ** 0.5
    if most == 0 or target.error <= most:
        return target
    error = float(known.intervals(question, target.confidence, target.joint).errors.max())
    return target if error <= target.error else replace(target, error=most)


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
    """Choose a question whose distance from the expected answer is about the largest: the answer is its place."""

    questions: tuple[Linear, ...]
    expected: tuple[int, ...]
    epsilon: Fraction
    why: str

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What is done to the rows."""
        return Selection(self.epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class Quantile:
    """Release the rank-th smallest distance of the questions from the expected answers, with Gaussian noise."""

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
    """Release the distance of each of some marginals from the expected one, Σ |true − expected|, with noise.

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
    """Choose a marginal whose distance from the expected one, less its handicap, is about the largest: its place.

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
    """By how much one person moves each of some marginals; refuses expected integers that are not one for each cell.

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
