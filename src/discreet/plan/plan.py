"""A plan: what would be measured for some questions and what it costs. It reads nothing and spends nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from math import inf, prod
from typing import Literal

import numpy as np

from discreet.accounting.event import Compose, Event, Gaussian, Laplace, Nothing, Repeat
from discreet.errors import TooLarge
from discreet.estimate.estimator import Known, quantile
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.estimate.measurements import (
    GaussianQuery,
    GaussianResiduals,
    LaplaceMarginal,
    Question,
    Step,
    weighs_nothing,
)
from discreet.estimate.residual_lattice import MOST_PIECES, among
from discreet.estimate.separable import Family, axes_of
from discreet.plan.allocation import Sparse, fill_to_targets
from discreet.plan.laplace_plan import pure_step
from discreet.plan.steps import MOST_NOISE, Target, aimed, can_buy, direct_step, kinds_of, lattice_step, step_for
from discreet.query.linear import Marginal
from discreet.query.residual import Measurement
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

Origin = Literal["known", "measured", "direct", "mixed", "model"]
Measured = Measurement | Question

# So many equal events in a row are written as one.
LONG_RUN = 8


# A batch is planned together up to so many pieces of its questions, counted with each of them, and up to so many
# questions times sets of columns: each answer says what all of them cost. Where delta is 0 each answer has a noise of
# each known marginal.
MOST_TOGETHER, MOST_ANSWERED, MOST_NOISES = 2**12, 2**19, 2**11


@dataclass(frozen=True, slots=True)
class Steps:
    """What will be done to the rows for a question or a batch of them, in one payment."""

    steps: tuple[Step, ...]

    @property
    def origin(self) -> Origin:
        """Where the answer will come from."""
        kinds = {
            "measured" if isinstance(step, GaussianResiduals | LaplaceMarginal) else "direct" for step in self.steps
        }
        return "known" if not kinds else "mixed" if len(kinds) > 1 else "measured" if "measured" in kinds else "direct"

    @property
    def price(self) -> float:
        """What it costs: in squared mu, or where delta is 0 in epsilon."""
        return sum(step.price for step in self.steps)

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What will be done, as the ledger writes it."""
        events = _folded([event_of(step, domain, unit) for step in self.steps])
        return Nothing() if not events else events[0] if len(events) == 1 else Compose(tuple(events))


def _folded(events: Sequence[Event]) -> list[Event]:
    """The same events, with long runs of one as a `Repeat`: a model looks at thousands of pieces alike."""
    found: list[Event] = []
    for event, run in groupby(events):
        times = sum(1 for _ in run)
        found += [Repeat(event, times)] if times >= LONG_RUN else [event] * times
    return found


def measured(step: Step) -> Measured:
    """What a step asks of the source."""
    match step:
        case GaussianResiduals():
            return step.measurement
        case LaplaceMarginal():
            return Marginal(step.columns)
        case _:
            return step.question


def event_of(step: Step, domain: Domain, unit: Unit) -> Event:
    """What a step does. All pieces of a measurement together are one Gaussian vector in units of its noise."""
    moves = sensitivity_of(measured(step), domain, unit)
    match step:
        case GaussianResiduals():
            return Gaussian(Fraction(1), moves.l2_squared)
        case GaussianQuery():
            return Gaussian(step.sigma, moves.l2_squared)
        case _:
            return Laplace(step.scale, moves.l1)


def require_few(questions: Sequence[Question], known: Known) -> None:
    """Refuse a batch that is too large to be planned together, from what was asked and the schema alone."""
    pieces = [prod(axis.parts for axis in axes_of(known.domain, question.scope)) for question in questions]
    # What has too many pieces for the lattice is measured by itself.
    every = sum(8 + (each if each <= MOST_PIECES else 0) for each in pieces)
    sets = len({question.scope for question in questions}) + len(known.wholes)
    most = MOST_NOISES if isinstance(known, LaplaceMarginals) else MOST_ANSWERED
    if len(questions) > 1 and (every > MOST_TOGETHER or sets * len(questions) > most):
        raise TooLarge(
            f"{len(questions)} questions on {sets} sets of columns, with {every} pieces, are too many together; the "
            f"limits are {MOST_TOGETHER} pieces, and {most} questions times sets of columns. Nothing was measured for "
            "them. Ask in several batches."
        )


def plan_steps(asked: Sequence[tuple[Question, Target]], known: Known, *, ahead: bool = True) -> Steps:
    """The cheapest way to answer some questions together: those that want the lattice share it.

    If it looks `ahead`, what is bought may be dearer and serve questions to come.
    """
    asked = [
        (question, _within(question, target, known))
        for question, target in dict.fromkeys(asked)
        if not weighs_nothing(question)
    ]
    if isinstance(known, LaplaceMarginals):
        return Steps(_pure_steps(asked, known, ahead))
    needed = []
    for question, target in asked:
        step = step_for(question, target, known, ahead=ahead)
        if step is not None:
            needed.append((question, target, step))
    if len(needed) <= 1:
        return Steps(tuple(step for _, _, step in needed))
    return min(_ways(needed, known), key=lambda steps: steps.price)


def _within(question: Question, target: Target, known: Known) -> Target:
    """The target, or that of the most noise there is, where less is wanted and not known."""
    most = MOST_NOISE * quantile(target.confidence, target.joint)
    # Weights are whole numbers, so a sensitivity below 1 is 0.
    if target.error <= most:
        return target
    moves = sensitivity_of(question, known.domain, known.lattice.unit)
    most *= float(moves.l1) if isinstance(known, LaplaceMarginals) else float(moves.l2_squared) ** 0.5
    if most == 0 or target.error <= most:
        return target
    error = float(known.intervals(question, target.confidence, target.joint).errors.max())
    return target if error <= target.error else replace(target, error=most)


def _ways(
    needed: Sequence[tuple[Question, Target, GaussianResiduals | GaussianQuery]], known: Known
) -> Iterator[Steps]:
    """Ways to answer a batch: the lattice for all, for none, for those that want it, and where it is cheaper."""
    wanting = [isinstance(step, GaussianResiduals) for _, _, step in needed]
    able = [_on_lattice(question, target, known) for question, target, _ in needed]
    totals: dict[Columns, float] = {}
    alone = [direct_step(question, target, known) for question, target, _ in needed]
    for (question, _, _), step in zip(needed, alone, strict=True):
        totals[question.scope] = totals.get(question.scope, 0.0) + (inf if step is None else step.price)
    cheaper = [
        can and (each is None or step.price <= totals[question.scope])
        for can, each, (question, _, step) in zip(able, alone, needed, strict=True)
    ]
    for choice in {tuple(able), tuple(wanting), tuple(cheaper), (False,) * len(needed)}:
        shared = [(question, target) for (question, target, _), chosen in zip(needed, choice, strict=True) if chosen]
        rest = [step for step, chosen in zip(alone, choice, strict=True) if not chosen]
        together = _together(shared, known) if shared else []
        if together is not None and all(step is not None for step in rest):
            yield Steps((*together, *(step for step in rest if step is not None)))
    yield Steps(tuple(step for _, _, step in needed))


def _pure_steps(asked: Sequence[tuple[Question, Target]], known: Known, ahead: bool) -> tuple[Step, ...]:
    """One step for each question that is not known; questions that the same marginal serves share it."""
    steps: dict[object, Step] = {}
    for question, target in asked:
        if known.intervals(question, target.confidence, target.joint).errors.max() <= target.error:
            continue
        step = pure_step(question, target, known, ahead=ahead)
        if step is None:
            continue
        key = step.columns if isinstance(step, LaplaceMarginal) else step.question
        before = steps.get(key)
        if before is None or before.price < step.price:
            steps[key] = step
    return tuple(steps.values())


def _on_lattice(question: Question, target: Target, known: Known) -> bool:
    family = known.family(question)
    return family is not None and can_buy(family) and aimed(family, target) > 0


def _together(shared: Sequence[tuple[Question, Target]], known: Known) -> list[GaussianResiduals] | None:
    """The measurements that serve several questions, each piece once; None if there are too many pieces."""
    families = [known.family(question) for question, _ in shared]
    places: dict[tuple[Columns, tuple[int, ...]], int] = {}
    # Of each piece, in the order of their places: what a unit of precision costs, and how much there is.
    market: list[tuple[float, float]] = []
    rows: list[tuple[list[int], Numbers]] = []
    aims: list[float] = []
    for family, (_, target) in zip(families, shared, strict=True):
        assert family is not None, "only what the lattice can answer is planned for it"
        for kind in kinds_of(family, known):
            rows.append(_energies(family, kind, known, places, market))
            aims.append(aimed(family, target))
    if len(rows) > 1 and not all(len(indices) for indices, _ in rows):
        kept = [row for row, (indices, _) in enumerate(rows) if len(indices)]
        rows, aims = [rows[row] for row in kept], [aims[row] for row in kept]
    if not rows:
        return []
    lengths = [len(indices) for indices, _ in rows]
    energies = Sparse(
        np.concatenate([each for _, each in rows]),
        np.concatenate([np.array(indices, dtype=np.int64) for indices, _ in rows]),
        np.cumsum([0, *lengths[:-1]]),
    )
    price, precision = np.array(market).reshape(-1, 2).T
    wanted = fill_to_targets(energies, price, precision, aims)
    return _measurements(known, families, dict(zip(places, wanted.tolist(), strict=True)))


def _energies(
    family: Family,
    kind: Numbers,
    known: Known,
    places: dict[tuple[Columns, tuple[int, ...]], int],
    market: list[tuple[float, float]],
) -> tuple[list[int], Numbers]:
    """The energies of a kind of cell, and where its pieces stand among all."""
    energies = kind.reshape(tuple(axis.parts for axis in family.axes))
    view = known.lattice.view(family.columns)
    assert view is not None, "a family has a view"
    indices, values = [], []
    for place in np.argwhere(energies > 0).tolist():
        columns = tuple(name for name, part in zip(family.columns, place, strict=True) if part)
        parts = tuple(part - 1 for part in place if part)
        if view.precision[tuple(place)] < inf:
            if (columns, parts) not in places:
                places[columns, parts] = len(places)
                market.append((float(view.price[tuple(place)]), float(view.precision[tuple(place)])))
            indices.append(places[columns, parts])
            values.append(float(energies[tuple(place)]))
    return indices, np.array(values)


def _measurements(
    known: Known, families: Sequence[Family | None], wanted: dict[tuple[Columns, tuple[int, ...]], float]
) -> list[GaussianResiduals] | None:
    """One measurement for each set of columns, the largest first; a piece goes to the first that has it."""
    left: dict[Columns, dict[tuple[int, ...], float]] = {}
    for (columns, parts), precision in wanted.items():
        left.setdefault(columns, {})[parts] = precision
    found: list[GaussianResiduals] = []
    scopes = sorted({family.columns for family in families if family is not None}, key=lambda each: (-len(each), each))
    for scope in scopes:
        view = known.lattice.view(scope)
        assert view is not None, "a family has a view"
        precisions = view.precision.copy()
        for columns in among(left, scope):
            for parts, precision in left.pop(columns).items():
                by_name = dict(zip(columns, parts, strict=True))
                precisions[tuple(by_name[name] + 1 if name in by_name else 0 for name in scope)] = precision
        if np.any(precisions > view.precision):
            step = lattice_step(known, scope, precisions)
            if step is None:
                return None
            found.append(step)
    return found
