"""A plan: what would be measured for some questions and what it costs. It reads nothing and spends nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from discreet.known.family import Family
from discreet.known.known import Known, Question
from discreet.known.lattice import Columns
from discreet.known.reading import Numbers
from discreet.plan.fill import fill_jointly
from discreet.plan.step import Directly, Lattice, Step, lattice_step, significant, step_for, worst
from discreet.plan.target import Target
from discreet.privacy.event import Compose, Event, Gaussian, Nothing
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.effect import sensitivity_of

Origin = Literal["known", "measured", "direct", "mixed"]

# A batch is planned jointly up to so many numbers in its table of energies.
MOST_ENERGIES = 2**24


@dataclass(frozen=True, slots=True)
class Steps:
    """What will be done to the rows for a question or a batch of them, in one payment."""

    steps: tuple[Lattice | Directly, ...]

    @property
    def origin(self) -> Origin:
        """Where the answer will come from."""
        kinds = {"measured" if isinstance(step, Lattice) else "direct" for step in self.steps}
        return "known" if not kinds else "mixed" if len(kinds) > 1 else "measured" if "measured" in kinds else "direct"

    @property
    def price(self) -> float:
        """What it costs, in squared mu."""
        return sum(step.price for step in self.steps)

    def event(self, domain: Domain, unit: Unit) -> Event:
        """What will be done, as the ledger writes it."""
        events = [event_of(step, domain, unit) for step in self.steps]
        return Nothing() if not events else events[0] if len(events) == 1 else Compose(tuple(events))


def event_of(step: Lattice | Directly, domain: Domain, unit: Unit) -> Event:
    """What a step does. All pieces of a measurement together are one Gaussian vector in units of its noise."""
    if isinstance(step, Lattice):
        from fractions import Fraction

        return Gaussian(Fraction(1), sensitivity_of(step.measurement, domain, unit).l2_squared)
    return Gaussian(step.sigma, sensitivity_of(step.question, domain, unit).l2_squared)


def plan_steps(asked: Sequence[tuple[Question, Target]], known: Known) -> Steps:
    """The cheapest way to answer some questions together: those that want the lattice share it."""
    chosen = [(question, target, step_for(question, target, known)) for question, target in dict.fromkeys(asked)]
    needed = [(question, target, step) for question, target, step in chosen if step is not None]
    shared = [(question, target) for question, target, step in needed if isinstance(step, Lattice)]
    alone: list[Lattice | Directly] = [step for _, _, step in needed if isinstance(step, Directly)]
    if len(shared) <= 1:
        return Steps(tuple(step for _, _, step in needed))
    together = _together(shared, known)
    return Steps((*(together or [step for _, _, step in needed if isinstance(step, Lattice)]), *alone))


def _together(shared: Sequence[tuple[Question, Target]], known: Known) -> list[Lattice] | None:
    """The measurements that serve several questions, each piece once; None if there are too many pieces."""
    families = [known.family(question) for question, _ in shared]
    places: dict[tuple[Columns, tuple[int, ...]], int] = {}
    rows: list[tuple[list[int], Numbers]] = []
    for family in families:
        assert family is not None, "only what the lattice can answer is planned for it"
        rows.append(_energies(family, known, places))
    if len(rows) * len(places) > MOST_ENERGIES:
        return None
    table = np.zeros((len(rows), len(places)))
    for row, (indices, energies) in enumerate(rows):
        table[row, indices] = energies
    price = np.array([known.lattice.block(columns).price[parts] for columns, parts in places])
    precision = np.array([known.lattice.block(columns).precision[parts] for columns, parts in places])
    wanted = fill_jointly(table, price, precision, [target.variance for _, target in shared])
    return _measurements(known, families, dict(zip(places, wanted.tolist(), strict=True)))


def _energies(
    family: Family, known: Known, places: dict[tuple[Columns, tuple[int, ...]], int]
) -> tuple[list[int], Numbers]:
    """The energies of a question, and where its pieces stand among all."""
    energies = significant(worst(known.energies(family), len(family.columns)))
    indices, values = [], []
    for place in np.argwhere(energies > 0).tolist():
        columns = tuple(name for name, part in zip(family.columns, place, strict=True) if part)
        parts = tuple(part - 1 for part in place if part)
        if known.lattice.block(columns).precision[parts] < inf:
            indices.append(places.setdefault((columns, parts), len(places)))
            values.append(float(energies[tuple(place)]))
    return indices, np.array(values)


def _measurements(
    known: Known, families: Sequence[Family | None], wanted: dict[tuple[Columns, tuple[int, ...]], float]
) -> list[Lattice] | None:
    """One measurement for each set of columns, the largest first; a piece goes to the first that has it."""
    left = dict(wanted)
    found: list[Lattice] = []
    scopes = sorted({family.columns for family in families if family is not None}, key=lambda each: (-len(each), each))
    for scope in scopes:
        view = known.lattice.view(scope)
        assert view is not None, "a family has a view"
        precisions = view.precision.copy()
        for (columns, parts), precision in list(left.items()):
            if set(columns) <= set(scope):
                by_name = dict(zip(columns, parts, strict=True))
                precisions[tuple(by_name[name] + 1 if name in by_name else 0 for name in scope)] = precision
                del left[columns, parts]
        if np.any(precisions > view.precision):
            step = lattice_step(known, scope, precisions)
            if step is None:
                return None
            found.append(step)
    return found


__all__ = ["Directly", "Lattice", "Origin", "Step", "Steps", "event_of", "plan_steps"]
