"""What the makers of a release are told: what it is for, what is known, what it may cost; and what they foresee."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from discreet.known.known import Known
from discreet.model.ensemble import Tell
from discreet.model.protocol import Model
from discreet.plan.request import Procedure
from discreet.release.energies import Asked
from discreet.release.goal import Goal


@dataclass(frozen=True, slots=True, eq=False)
class Brief:
    """A goal, what is known of the table, and so many `units`: squared mu, or epsilon where delta is 0 (`known.pure`).

    `asked` is what is asked of the lattice if that is not all cells of the goal's marginals: ranges, say.
    """

    known: Known
    goal: Goal
    units: Fraction
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a method would do, from public facts alone.

    `error` is the mean L1 error of the goal's marginals, weighted, as a share of the rows; `seconds` are of one
    processor and `memory` is in bytes. A method that cannot be used has an infinite error, and `why_not` says why.
    """

    method: str
    error: float
    seconds: float
    memory: float
    why_not: str = ""

    @property
    def possible(self) -> bool:
        """Whether the method can be used."""
        return self.error < inf


@dataclass(frozen=True, slots=True)
class Method:
    """A way to make a release. `forecast` is told about how many rows there are, and is quick; it reads nothing."""

    name: str
    describe: str
    forecast: Callable[[Brief, float], Forecast]
    make: Callable[[Brief, Tell | None], Procedure[Model]]
