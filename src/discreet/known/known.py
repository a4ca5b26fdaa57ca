"""Everything that has been revealed, and what follows from it: the estimate and the variance of any query."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import expm1, inf, log1p, prod
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.cache import LruCache, memoize
from discreet.known.direct import (
    DOUBT,
    FAINT,
    MOST_DIRECTS,
    ROUNDING,
    Direct,
    Group,
    Solution,
    keep,
    make_room,
    pile_of,
    products_of_pieces,
    solve,
    values_of,
)
from discreet.known.family import MOST_TABLE, Family, energies_of, family_of, room_of
from discreet.known.lattice import (
    MOST_NUMBERS,
    Lattice,
    View,
    among,
    largest_variance,
    variance_of,
    variances_of,
    weighed_energies,
)
from discreet.known.steps import (
    GaussianQuery,
    GaussianResiduals,
    LaplaceMarginal,
    LaplaceQuery,
    Question,
    Step,
)
from discreet.known.whole import Whole, laplace_variance
from discreet.mechanism.gaussian import half_width
from discreet.mechanism.laplace import half_width as laplace_half_width
from discreet.query.linear import Linear
from discreet.query.measurement import Measurement
from discreet.query.residual import Residual
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.types import Columns, Ints, Numbers

# So many sets of columns with directs, and so many directs, are taken into one answer.
MOST_GROUPS, MOST_JOINED = 64, 512
_CACHE = partial(LruCache[Any, Any], MOST_NUMBERS)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The value of each question, the variance of its error (infinite if unknown), and half-widths found for it."""

    values: Numbers
    variances: Numbers
    widths: dict[tuple[float, int], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What direct measurements of one question said, kept as it is.

    `sigma` is set if there was one, with rounded Gaussian noise; `scale` if it had discrete Laplace noise.
    """

    values: Numbers
    variance: float
    sigma: Fraction | None = None
    scale: Fraction | None = None

    def error(self, confidence: float, *, joint: int = 1) -> float:
        """The half-width that holds with this probability; of one measurement, by the exact law of its noise."""
        if self.sigma is not None:
            return half_width(self.sigma, confidence, joint=joint)
        if self.scale is not None:
            return laplace_half_width(self.scale, confidence, joint=joint)
        return quantile(confidence, joint) * float(self.variance**0.5)


@memoize(1024)
def quantile(confidence: float, joint: int = 1) -> float:
    """The z with Pr[|N(0, 1)| ≤ z]^joint = confidence.

    For any jointly Gaussian errors, each within z of its standard deviations, all hold together at least so often:
    independent ones are the worst [Šidák 1967].

    >>> round(quantile(0.95), 3), round(quantile(0.95, joint=100), 3)
    (1.96, 3.474)
    """
    each = -expm1(log1p(-(1 - confidence)) / joint)
    return -NormalDist().inv_cdf(each / 2)


@dataclass(eq=False)
class Known:
    """What has been revealed of one table: a lattice, directs joined to it, and directs kept as they are."""

    lattice: Lattice
    pure: bool = False
    groups: dict[Columns, Group] = field(default_factory=dict)
    told: dict[Hashable, Told] = field(default_factory=dict)
    wholes: list[Whole] = field(default_factory=list)
    paid: dict[Columns, float] = field(default_factory=dict)
    cost: float = 0.0
    version: int = 0
    _estimates: LruCache[Hashable, tuple[int, Estimate]] = field(default_factory=_CACHE)
    _families: LruCache[Hashable, tuple[Family | None]] = field(default_factory=_CACHE)
    _solutions: LruCache[tuple[Columns, ...], tuple[object, Solution]] = field(default_factory=_CACHE)
    _products: LruCache[tuple[Columns, Columns], tuple[object, Numbers]] = field(default_factory=_CACHE)
    _faint: float = inf

    @classmethod
    def nothing(cls, domain: Domain, unit: Unit, *, pure: bool = False) -> "Known":
        """What is known before the first question. `pure` says that all noise is discrete Laplace."""
        return cls(Lattice(domain, unit), pure)

    @property
    def domain(self) -> Domain:
        """The domain of the table."""
        return self.lattice.domain

    def remembered(self, question: Question) -> Estimate | None:
        """The estimate of a question that was estimated since something was last learnt."""
        found = self._estimates.get(question)
        return found[1] if found is not None and found[0] == self.version else None

    def remember(self, question: Question, found: Estimate) -> Estimate:
        """Keep an estimate until something is learnt."""
        self._estimates.put(question, (self.version, found), size=2 * found.values.size + room_of(question))
        return found

    def family(self, question: Question) -> Family | None:
        """The question as the lattice sees it, or None if it has too many products, pieces or cells for that."""
        if self.lattice.view(question.scope) is None:
            return None
        found = self._families.get(question)
        if found is None:
            found = (family_of(question, self.domain),)
            self._families.put(question, found, size=room_of(question) + (found[0].room if found[0] else 0))
        return found[0]

    def learn(self, step: Step, values: Ints | None = None) -> None:
        """Learn what a step has measured; without values only how well it is known, to plan ahead."""
        self.version += 1
        self.cost += step.price
        match step:
            case GaussianResiduals(measurement):
                self._learn_residuals(measurement, values)
            case GaussianQuery(question, sigma, price):
                self.paid[question.scope] = self.paid.get(question.scope, 0.0) + price
                self._learn_gaussian(question, sigma, values)
            case LaplaceMarginal(columns, scale, price):
                self.paid[columns] = self.paid.get(columns, 0.0) + price
                self._learn_marginal(columns, scale, values)
            case LaplaceQuery(question, scale, price):
                self.paid[question.scope] = self.paid.get(question.scope, 0.0) + price
                self._learn_laplace(question, scale, values)

    def learn_total(self, rows: int) -> None:
        """Learn the number of rows where it is public."""
        self.version += 1
        self.lattice.add(Residual(()), variance=0.0, values=np.array([rows]))

    def _learn_residuals(self, measurement: Measurement, values: Ints | None) -> None:
        start = 0
        for residual, sigma in measurement.pieces:
            end = start + self.lattice.size(residual)
            part = None if values is None else values[start:end]
            self.lattice.add(residual, variance=variance_of(float(sigma)), values=part)
            start = end
        self.lattice.use(measurement.columns)
        # Drop direct measurements that the residuals imply by now; their own answers stay.
        for chosen in self._groups_in(measurement.columns):
            keep(self.groups, chosen, lambda direct: self._new(direct.family) > 0, version=self.version)

    def _learn_gaussian(self, question: Question, sigma: Fraction, values: Ints | None) -> None:
        """Learn a direct answer with Gaussian noise: as it is, and joined to the lattice where that can be."""
        variance = variance_of(float(sigma))
        numbers = np.zeros(1) if values is None else values.astype(np.float64)
        before = self.told.get(question)
        if before is None:
            self.told[question] = Told(numbers, variance, sigma)
        else:
            weight = before.variance / (before.variance + variance)
            self.told[question] = Told(before.values + weight * (numbers - before.values), variance * weight)
        family = self.family(question) if isinstance(question, Linear) else None
        strength = 0.0 if family is None or not family.columns else self._new(family) / variance
        if family is None or not strength or not make_room(self.groups, strength, version=self.version):
            return
        group = self.groups.setdefault(family.columns, Group(family.columns))
        products = family.products + sum(direct.family.products for direct in group.directs)
        pieces = prod(axis.parts for axis in family.axes)
        if len(group.directs) < MOST_DIRECTS and pieces * products**2 <= MOST_TABLE:
            group.add(Direct(question, family, float(numbers[0]), variance, strength), version=self.version)
            self._faint = FAINT * min(each.strength for group in self.groups.values() for each in group.directs)

    def _learn_marginal(self, columns: Columns, scale: Fraction, values: Ints | None) -> None:
        """Learn a whole marginal with discrete Laplace noise in every cell: every residual of its columns at once."""
        whole = Whole(columns, scale, values, tuple(self.domain[name].size for name in columns))
        self.wholes.append(whole)
        for residual, variance, numbers in whole.pieces(self.domain):
            self.lattice.add(residual, variance=variance, values=numbers)

    def _learn_laplace(self, question: Question, scale: Fraction, values: Ints | None) -> None:
        """Learn a direct answer with discrete Laplace noise; the one with the least noise is kept."""
        before = self.told.get(question)
        if before is None or before.scale is None or scale < before.scale:
            numbers = np.zeros(1) if values is None else values.astype(np.float64)
            self.told[question] = Told(numbers, laplace_variance(scale), scale=scale)

    def surely_unknown(self, question: Linear) -> bool:
        """Whether nothing can be known of a question, quickly: it has a piece of all its columns, never measured.

        If this is false, it may still be unknown.
        """
        columns = question.scope
        if len(question.products) != 1 or question in self.told or columns in self.groups or not columns:
            return False
        block = self.lattice.blocks.get(columns)
        return block is None or not block.precision.any()

    def is_joined(self, question: Question) -> bool:
        """Whether the estimate has learnt from a direct measurement of this question."""
        group = self.groups.get(question.scope)
        return group is not None and any(direct.question == question for direct in group.directs)

    def _new(self, family: Family) -> float:
        """How much of a query lies in pieces of all its columns that were never measured."""
        top: Any = (slice(1, None),) * len(family.columns)
        energies = energies_of(family).reshape(tuple(axis.parts for axis in family.axes))
        return float((energies * self._view(family.columns).unknown)[top].sum())

    def estimate(self, family: Family) -> Estimate:
        """The value and the variance of each question."""
        view = self._view(family.columns)
        groups = self._joined(family)
        if family.size == family.products == 1 and not groups:
            return Estimate(*self.lattice.estimate_one(family, view))
        values = self.lattice.values(family, view)
        if not groups:
            return Estimate(values, variances_of(family, view))
        moved, variances = self._with_directs(family, self._solution(groups))
        return Estimate(values + moved.reshape(values.shape), variances)

    def variance(self, family: Family) -> float:
        """The largest variance of the questions of a family."""
        groups = self._joined(family)
        if groups:
            return float(self._with_directs(family, self._solution(groups))[1].max())
        return largest_variance(family, self._view(family.columns))

    def _with_directs(self, family: Family, solution: Solution) -> tuple[Numbers, Numbers]:
        """By how much directs move each value, and the variance then: that of the lattice less what they explain."""
        pile = pile_of(family)
        count = len(solution.gain)
        reach, known, unknown = (np.zeros((family.size, count)) for _ in range(3))
        for there, top, members in zip(solution.piles, solution.tops, solution.members, strict=True):
            pieces = products_of_pieces(pile, there)
            inverse, missing = self._inverses(there.columns)
            known[:, members] = np.tensordot(inverse, pieces, 1)
            unknown[:, members] = np.tensordot(missing, pieces, 1)
            reach[:, members] = pieces[top].sum(axis=0)
        moves = reach @ solution.gain
        view = self._view(family.columns)
        before, missing = (
            weighed_energies(family, each).reshape(-1) for each in (view.inverse, view.unknown / self._faint)
        )
        certain = before - 2 * (moves * known).sum(axis=1) + ((moves @ solution.spread) * moves).sum(axis=1)
        doubt = missing - 2 * (moves * unknown).sum(axis=1) + ((moves @ solution.unknown) * moves).sum(axis=1)
        # A difference of large numbers: what rounding may have taken from it is added, so a bar is only ever wider.
        terms = np.sqrt(before) + np.abs(moves) @ np.sqrt(np.diag(solution.spread))
        certain = np.maximum(certain, 0.0) + ROUNDING * terms**2
        variances = np.where(doubt > 1e-3 * certain + DOUBT * missing, inf, certain)
        return reach @ solution.moves, variances.reshape(family.cells)

    def _view(self, columns: Columns) -> View:
        view = self.lattice.view(columns)
        assert view is not None, "a family has a view"
        return view

    def _groups_in(self, columns: Columns) -> tuple[Columns, ...]:
        """The sets of columns with directs, smaller ones first."""
        return tuple(among(self.groups, columns)) if self.groups else ()

    def _joined(self, family: Family) -> tuple[Columns, ...]:
        """The groups of directs from which the answers of a family are learnt.

        What is known is public, so we may leave some out, and do where it would be too much work: those on the fewest
        columns first, which say least. If there are too many cells, all.
        """
        groups = self._groups_in(family.columns)
        kept: list[Columns] = []
        directs, work, every, most = 0, 0, 0, 1
        for columns in reversed(groups[-MOST_GROUPS:]):
            group = self.groups[columns]
            products = sum(direct.family.products for direct in group.directs)
            pieces = prod(axis.parts for axis in group.directs[0].family.axes)
            directs, every, most = directs + len(group.directs), every + products, max(most, pieces)
            work += max(pieces * products * family.products * family.size, directs * family.size)
            if directs > MOST_JOINED or work > MOST_TABLE or most * every**2 > 8 * MOST_TABLE:
                break
            kept.append(columns)
        return tuple(reversed(kept))

    def _solution(self, groups: tuple[Columns, ...]) -> Solution:
        """How the directs of some groups move the estimate now; smaller sets of columns come first."""
        members = [self.groups[columns] for columns in groups]
        stamp = self._faint, *((group.version, self._view(group.columns).stamp) for group in members)
        found = self._solutions.get(groups)
        if found is None or found[0] != stamp:
            surprise = np.concatenate([self._surprise(group) for group in members])
            found = stamp, solve(members, self._inverses, self._pieces, surprise)
            self._solutions.put(groups, found, size=8 * found[1].gain.size + 1000)
        return found[1]

    def _surprise(self, group: Group) -> Numbers:
        """What was released less what the lattice says, of each direct."""
        vectors = [group.pile.listed(place).vectors for place in range(len(group.columns))]
        said = values_of(group.pile, vectors, self.lattice.gathered(self._view(group.columns)))
        return np.array([direct.value for direct in group.directs]) - said

    def _pieces(self, left: Group, right: Group) -> Numbers:
        """The inner products of two groups do not depend on what is known, so they are kept."""
        key = left.columns, right.columns
        stamp = left.version, right.version
        found = self._products.get(key)
        if found is None or found[0] != stamp:
            found = stamp, products_of_pieces(left.pile, right.pile)
            self._products.put(key, found, size=found[1].size + 1000)
        return found[1]

    def _inverses(self, columns: Columns) -> tuple[Numbers, Numbers]:
        view = self._view(columns)
        return view.inverse.ravel(), view.unknown.ravel() / self._faint
