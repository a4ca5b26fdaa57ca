"""Points for k-means, and the budget with which they are measured.

Points are the rows of an array, or columns of a table. A budget is split over several measurements; this module
computes the noise for each part.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Event, Gaussian, Pure
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.accounting.sensitivity import Sensitivity
from discreet.mechanism.gaussian import gaussian
from discreet.mechanism.laplace import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.query.points import Body, Boxes, Clusters, Grid
from discreet.schema.unit import Unit
from discreet.source.array_points import Points
from discreet.source.query_sensitivity import sensitivity_of
from discreet.source.source import Exact
from discreet.source.table import Table


@dataclass(frozen=True, slots=True)
class PrivatePoints:
    """Points on a grid, the privacy unit, and the array or table that holds the rows."""

    grid: Grid
    columns: tuple[str, ...]
    unit: Unit
    held: Points | Table

    @property
    def body(self) -> Body:
        """The set of possible integer points."""
        return self.grid.body

    def sensitivity(self, question: Boxes | Clusters) -> Sensitivity:
        """The sensitivity of the answer, without reading a row."""
        if isinstance(self.held, Points):
            return self.held.sensitivity(question)
        return sensitivity_of(question, self.held.domain, self.held.unit)

    def touch(self) -> None:
        """Check before paying that the rows can be read; an array always can."""
        if isinstance(self.held, Table):
            self.held.touch()

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything that is evaluated within it is read from one state of the rows."""
        return self.held.snapshot() if isinstance(self.held, Table) else nullcontext()

    def evaluate(self, question: Boxes | Clusters) -> Exact:
        """The true integers, sealed."""
        return self.held.evaluate(question)


NoiseKind = Literal["laplace", "gaussian"]

# Shares of a budget are multiples of 1/_PARTS, and roots of 1/_ROOT.
_PARTS, _ROOT = 2**20, 2**20


@dataclass(frozen=True, slots=True)
class BudgetSplit:
    """An amount of epsilon for discrete Laplace noise, or of squared mu for rounded Gaussian noise.

    The parts may depend on what was released before: as long as they add up to at most the whole, all measurements
    together cost what `event` says. [RRUV16] for epsilon, [ST22; KTH23] for mu; proof: kmeans.md, Theorem 2
    """

    noise: NoiseKind
    whole: Fraction

    @property
    def event(self) -> Event:
        """The event that is paid: the whole, for every split."""
        if self.noise == "laplace":
            return Pure(self.whole)
        return Gaussian(Fraction(1), self.whole)

    def part(self, share: float) -> Fraction:
        """An amount: this share of the whole, rounded down."""
        return self.whole * Fraction(int(share * _PARTS), _PARTS)

    def mechanism(self, amount: Fraction, sensitivity: Sensitivity) -> Mechanism[NDArray[np.int64]]:
        """The mechanism for values of this sensitivity that costs this amount."""
        if self.noise == "laplace":
            return laplace(epsilon=amount, sensitivity=sensitivity)
        return gaussian(sigma=_root_above(sensitivity.l2_squared / amount), sensitivity=sensitivity)

    def variance(self, share: float, l1: Any, l2_squared: Any) -> Any:
        """The approximate variance of the noise for a share of the whole and these sensitivities, also as arrays."""
        amount = share * float(self.whole)
        return 2 * (l1 / amount) ** 2 if self.noise == "laplace" else l2_squared / amount

    @property
    def power(self) -> int:
        """The variance falls with this power of the share."""
        return 2 if self.noise == "laplace" else 1


def budget_split(epsilon: Fraction, delta: Fraction, noise: NoiseKind) -> BudgetSplit:
    """A whole budget for one kind of noise.

    >>> budget_split(Fraction(1, 2), Fraction(0), "laplace")
    BudgetSplit(noise='laplace', whole=Fraction(1, 2))
    """
    return BudgetSplit(noise, epsilon if noise == "laplace" else gaussian_limit(epsilon, delta))


def _root_above(square: Any) -> Fraction:
    """A rational above the root of a square, by at most one part in a million (and a millionth)."""
    exact = Fraction(square)
    return Fraction(isqrt(-(-exact.numerator * _ROOT**2 // exact.denominator)) + 1, _ROOT)
