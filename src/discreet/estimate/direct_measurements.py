"""Numbers that were measured directly, joined to the lattice: one underlying estimate for everything.

A direct measurement of a query w on the columns T carries information about all residuals of w. It is assigned to
those residuals of all of T that were never measured: their estimate moves along w until the answer to w is what was
released. So every answer is still the value of one estimate, no variance grows, and the error of an answer is one sum
of independent noises, whose variance is computed exactly (lattice.md §4). Once the lattice has measured these
residuals, the direct measurement is dropped; its own answer stays.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise
from math import inf, prod
from typing import Any

import numpy as np

from discreet.cache import LruCache, memoize
from discreet.estimate.residual_lattice import MOST_LATTICE_NUMBERS, Lattice, among, weighed_energies
from discreet.estimate.separable import MOST_TABLE, Family, energies_of
from discreet.estimate.transform import Listed, Transformed, as_listed
from discreet.types import Columns, Numbers

# The most direct measurements of one set of columns that are joined to the lattice; others only answer themselves.
MOST_DIRECTS = 16
# The precision of a residual that was never measured, relative to the least precise direct: in place of 0.
UNMEASURED = 1e-9
# What rounding leaves of the unknown variance, relative to itself, when directs have explained all of it.
EXPLAINED = 3e-13
# A direct with less than this share of the best one's precision is not joined: it would only cost digits.
NEGLIGIBLE = 1e-10
# A variance is a difference of larger numbers. This part of them is added to it, as a bound on the rounding error.
VARIANCE_ROUNDING = 2.0**-42
# The most sets of columns with directs, and the most directs, that one answer uses.
MOST_GROUPS, MOST_JOINED = 64, 512
_CACHE = partial(LruCache[Any, Any], MOST_LATTICE_NUMBERS)


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """One number that was measured: its question, what was released, and the variance of the noise.

    `strength` is its precision about the residuals that were unknown when it was joined.
    """

    question: Hashable
    family: Family
    value: float
    variance: float
    strength: float


@dataclass(slots=True, eq=False)
class DirectGroup:
    """The directs of one set of columns, their products in one pile."""

    columns: Columns
    directs: list[Direct] = field(default_factory=list)
    version: int = 0
    _pile: "Pile | None" = None

    def add(self, direct: Direct, *, version: int) -> None:
        """Join one more; no version number is used twice."""
        self.directs.append(direct)
        self.version = version
        self._pile = None

    @property
    def pile(self) -> "Pile":
        """All products of all directs."""
        if self._pile is None:
            self._pile = pile_families([direct.family for direct in self.directs])
        return self._pile


def keep(
    groups: dict[Columns, DirectGroup], chosen: Columns, wanted: Callable[[Direct], bool], *, version: int
) -> None:
    """Drop the directs of a group that are not wanted; their own answers stay."""
    before = groups[chosen].directs
    kept = [direct for direct in before if wanted(direct)]
    if not kept:
        del groups[chosen]
    elif len(kept) < len(before):
        groups[chosen] = DirectGroup(chosen, kept, version)


def make_room(groups: dict[Columns, DirectGroup], strength: float, *, version: int) -> bool:
    """Whether a direct of this strength is joined; those that are negligible beside it are dropped.

    Doubles have too few digits to join numbers of very different precision, and the least precise would add nothing.
    """
    every = [direct.strength for group in groups.values() for direct in group.directs]
    if strength < NEGLIGIBLE * max(every, default=0.0):
        return False
    if min(every, default=strength) < NEGLIGIBLE * strength:
        for chosen in list(groups):
            keep(groups, chosen, lambda direct: direct.strength >= NEGLIGIBLE * strength, version=version)
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Pile:
    """Some queries of the same columns: for each column the readings of all their products.

    `mix` has a row for each query: the coefficients of its own products. With groups (`cells`), all queries have one
    product list and differ in the cells.
    """

    columns: Columns
    readings: tuple[Transformed, ...]
    starts: tuple[tuple[int, ...], ...]
    cells: tuple[int, ...]
    mix: Numbers

    def listed(self, place: int) -> Listed:
        """The reading of a column that is not grouped."""
        return as_listed(self.readings[place])


def pile_families(families: Sequence[Family]) -> Pile:
    """Queries without groups, side by side."""
    first = families[0]
    widths = [family.products for family in families]
    mix = np.zeros((len(families), sum(widths)))
    start = 0
    for row, family in enumerate(families):
        mix[row, start : start + widths[row]] = family.coefficients
        start += widths[row]
    readings = [_stacked([family.listed(place) for family in families]) for place in range(len(first.columns))]
    return Pile(first.columns, tuple(readings), tuple(axis.starts for axis in first.axes), first.cells, mix)


def _stacked(readings: Sequence[Listed]) -> Listed:
    return Listed(
        readings[0].axis,
        np.vstack([each.vectors for each in readings]),
        np.vstack([each.units for each in readings]),
        np.vstack([each.energies for each in readings]),
    )


def pile_of(family: Family) -> Pile:
    """One family, with its groups."""
    starts = tuple(axis.starts for axis in family.axes)
    return Pile(family.columns, family.readings, starts, family.cells, family.coefficients[None, :])


def residual_products(left: Pile, right: Pile) -> Numbers:
    """The inner products of each residual of two piles, for the columns that both have: (residual, query, query).

    The right pile has no groups; the left may have them, and then has one query for each of their cells.
    """
    products = left.mix.shape[1]
    tensor: Numbers = np.ones((1, 1, products, right.mix.shape[1]))
    for place, name in enumerate(left.columns):
        reading = left.readings[place]
        if name not in right.columns:
            means = reading.means(products)
            tensor = (tensor[:, :, None] * means[None, None, :, :, None]).reshape(
                tensor.shape[0], -1, *tensor.shape[2:]
            )
            continue
        both = reading.meet(right.listed(right.columns.index(name)), products)
        tensor = tensor[:, None, :, None] * both[None, :, None, :]
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], -1, *tensor.shape[4:])
    for place, name in enumerate(right.columns):
        if name not in left.columns:
            tensor = tensor * right.listed(place).vectors[:, 0]
    mixed = tensor @ right.mix.T
    if len(left.mix) == 1:
        return np.asarray(left.mix[0] @ mixed)
    return np.asarray(left.mix @ mixed[:, 0])


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """How the directs of some groups move the estimate: the moves are `gain` times (released − lattice).

    `piles`, `members` and `tops` are those of the groups; `spread` is the covariance of (released − lattice), and
    `unknown` the part of it that comes from residuals never measured. `moves` is by how much each direct moves its
    block, in units of its own residuals there.
    """

    piles: tuple[Pile, ...]
    tops: tuple[list[int], ...]
    members: tuple[slice, ...]
    gain: Numbers
    spread: Numbers
    unknown: Numbers
    moves: Numbers


# 1/precision of each residual of some columns: those that were measured, and those that were not.
Inverses = Callable[[Columns], tuple[Numbers, Numbers]]
# The inner products of each residual of the directs of two groups.
ResidualProducts = Callable[[DirectGroup, DirectGroup], Numbers]


def solve(ordered: Sequence[DirectGroup], inverses: Inverses, pieces: ResidualProducts, surprise: Numbers) -> Solution:
    """Join the directs of some groups, smaller sets of columns first; `surprise` is (released − lattice) of each."""
    piles = tuple(group.pile for group in ordered)
    ends = [0, *accumulate(len(group.directs) for group in ordered)]
    members = tuple(slice(begin, end) for begin, end in pairwise(ends))
    known, unknown, tops = _covariances(ordered, members, inverses, pieces)
    variances = np.array([direct.variance for group in ordered for direct in group.directs])
    gain: Numbers = np.zeros((ends[-1], ends[-1]))
    for place, own in enumerate(members):
        before: Numbers = np.zeros((own.stop - own.start, ends[-1]))
        for earlier in range(place):
            if set(piles[earlier].columns) <= set(piles[place].columns):
                before += tops[own, members[earlier]] @ gain[members[earlier]]
        gain[own] = _gain(known + unknown, variances, tops[own, own], before, own)
    spread = known + np.diag(variances)
    tops_of = tuple(unmeasured(pile, inverses(pile.columns)[1]) for pile in piles)
    return Solution(piles, tops_of, members, gain, spread, unknown, gain @ surprise)


def _covariances(
    groups: Sequence[DirectGroup], members: Sequence[slice], inverses: Inverses, pieces_of: ResidualProducts
) -> tuple[Numbers, Numbers, Numbers]:
    """Of all directs: the covariance by what is known, by what is not, and what each adds to the queries of others."""
    total = members[-1].stop
    known, unknown, tops = (np.zeros((total, total)) for _ in range(3))
    for row, left in enumerate(groups):
        for column, right in enumerate(groups[: row + 1]):
            pieces = pieces_of(left, right)
            shared = tuple(name for name in left.columns if name in right.columns)
            inverse, missing = inverses(shared)
            here, there = members[row], members[column]
            known[here, there] = np.tensordot(inverse, pieces, 1)
            unknown[here, there] = np.tensordot(missing, pieces, 1)
            known[there, here], unknown[there, here] = known[here, there].T, unknown[here, there].T
            if shared == right.columns:
                # What an earlier group adds to this one's queries: by the residuals of all its columns not yet
                # measured.
                tops[here, there] = pieces[unmeasured(right.pile, missing)].sum(axis=0)
    return known, unknown, tops


def _gain(covariance: Numbers, variances: Numbers, top: Numbers, before: Numbers, own: slice) -> Numbers:
    """How one group moves its block, given what the groups before it (`before`) have moved already."""
    moved = before @ covariance[:, own]
    everything = covariance + np.diag(variances)
    spread = covariance[own, own] - moved - moved.T + before @ everything @ before.T
    noise = np.diag(variances[own])
    # The unknown variance may be so large that the noise is lost in rounding, and the inverse inexact. The answer is
    # valid all the same: its variance is computed for the gain that is used.
    trust = np.eye(len(spread)) - noise @ np.linalg.pinv(spread + noise, rcond=1e-15, hermitian=True)
    innovation = -before
    innovation[:, own] += np.eye(len(spread))
    return np.asarray(np.linalg.pinv(top, rcond=1e-10, hermitian=True) @ trust @ innovation)


def values_of(pile: Pile, vectors: Sequence[Numbers], values: Numbers) -> Numbers:
    """The estimated answer to each query of a pile: for each column the rows of its vectors, one for each product."""
    said = np.empty(pile.mix.shape[1])
    for product in range(len(said)):
        left = values
        for rows in vectors:
            left = np.tensordot(rows[product], left, 1)
        said[product] = left
    return np.asarray(pile.mix @ said)


def unmeasured(pile: Pile, missing: Numbers) -> list[int]:
    """The places, among the residuals of some columns, of those that vary in every column and were never measured."""
    return [place for place in _top_of(tuple(len(starts) for starts in pile.starts)) if missing[place] > 0]


@memoize(1024)
def _top_of(shape: tuple[int, ...]) -> list[int]:
    grid = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1))
    return np.flatnonzero((grid > 0).all(axis=0)).tolist()


@dataclass(eq=False)
class Directs:
    """The direct measurements that are joined to a lattice, in groups by their columns.

    `unknown` is the precision of residuals that were never measured, in place of 0: far below that of every direct.
    """

    lattice: Lattice
    groups: dict[Columns, DirectGroup] = field(default_factory=dict)
    unknown: float = inf
    _solutions: LruCache[tuple[Columns, ...], tuple[object, Solution]] = field(default_factory=_CACHE)
    _products: LruCache[tuple[Columns, Columns], tuple[object, Numbers]] = field(default_factory=_CACHE)

    def join(self, question: Hashable, family: Family, value: float, variance: float, *, version: int) -> None:
        """Join a direct measurement if it says something new; if there are too many already it is left out."""
        strength = self._new(family) / variance if family.columns else 0.0
        if not strength or not make_room(self.groups, strength, version=version):
            return
        group = self.groups.get(family.columns) or DirectGroup(family.columns)
        products = family.products + sum(direct.family.products for direct in group.directs)
        pieces = prod(axis.parts for axis in family.axes)
        if len(group.directs) < MOST_DIRECTS and pieces * products**2 <= MOST_TABLE:
            self.groups[family.columns] = group
            group.add(Direct(question, family, value, variance, strength), version=version)
            every = (each.strength for group in self.groups.values() for each in group.directs)
            self.unknown = UNMEASURED * min(every)

    def drop_implied(self, columns: Columns, *, version: int) -> None:
        """Drop direct measurements whose residuals the lattice has measured by now; their own answers stay."""
        for chosen in among(self.groups, columns):
            keep(self.groups, chosen, lambda direct: self._new(direct.family) > 0, version=version)

    def has(self, question: Hashable, columns: Columns) -> bool:
        """Whether a direct measurement of this question is joined."""
        group = self.groups.get(columns)
        return group is not None and any(direct.question == question for direct in group.directs)

    def groups_for(self, family: Family) -> tuple[Columns, ...]:
        """The groups of directs from which the answers of a family are learnt.

        If that is too much work, groups are left out, those on the fewest columns first, because they say least; if
        there are too many cells, all. That is allowed because released values are public.
        """
        groups = among(self.groups, family.columns)
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

    def apply(self, family: Family, groups: tuple[Columns, ...]) -> tuple[Numbers, Numbers]:
        """By how much directs move each value, and the new variance: that of the lattice less what they explain."""
        solution = self._solution(groups)
        pile = pile_of(family)
        count = len(solution.gain)
        reach, known, unknown = (np.zeros((family.size, count)) for _ in range(3))
        for there, top, members in zip(solution.piles, solution.tops, solution.members, strict=True):
            pieces = residual_products(pile, there)
            inverse, missing = self._inverses(there.columns)
            known[:, members] = np.tensordot(inverse, pieces, 1)
            unknown[:, members] = np.tensordot(missing, pieces, 1)
            reach[:, members] = pieces[top].sum(axis=0)
        moves = reach @ solution.gain
        view = self.lattice.viewed(family.columns)
        before, missing = (
            weighed_energies(family, each).reshape(-1) for each in (view.inverse, view.unknown / self.unknown)
        )
        certain = before - 2 * (moves * known).sum(axis=1) + ((moves @ solution.spread) * moves).sum(axis=1)
        doubt = missing - 2 * (moves * unknown).sum(axis=1) + ((moves @ solution.unknown) * moves).sum(axis=1)
        # A difference of large numbers: a bound on its rounding error is added, so an interval is only ever wider.
        terms = np.sqrt(before) + np.abs(moves) @ np.sqrt(np.diag(solution.spread))
        certain = np.maximum(certain, 0.0) + VARIANCE_ROUNDING * terms**2
        variances = np.where(doubt > 1e-3 * certain + EXPLAINED * missing, inf, certain)
        return reach @ solution.moves, variances.reshape(family.cells)

    def _new(self, family: Family) -> float:
        """The energy of a query in residuals of all its columns that were never measured."""
        top: Any = (slice(1, None),) * len(family.columns)
        energies = energies_of(family).reshape(tuple(axis.parts for axis in family.axes))
        return float((energies * self.lattice.viewed(family.columns).unknown)[top].sum())

    def _solution(self, groups: tuple[Columns, ...]) -> Solution:
        """How the directs of some groups move the estimate now; smaller sets of columns come first."""
        members = [self.groups[columns] for columns in groups]
        stamp = self.unknown, *((group.version, self.lattice.viewed(group.columns).stamp) for group in members)
        found = self._solutions.get(groups)
        if found is None or found[0] != stamp:
            surprise = np.concatenate([self._surprise(group) for group in members])
            found = stamp, solve(members, self._inverses, self._pieces, surprise)
            self._solutions.put(groups, found, size=8 * found[1].gain.size + 1000)
        return found[1]

    def _surprise(self, group: DirectGroup) -> Numbers:
        """What was released less what the lattice says, of each direct."""
        vectors = [group.pile.listed(place).vectors for place in range(len(group.columns))]
        said = values_of(group.pile, vectors, self.lattice.gathered(self.lattice.viewed(group.columns)))
        return np.array([direct.value for direct in group.directs]) - said

    def _pieces(self, left: DirectGroup, right: DirectGroup) -> Numbers:
        """The inner products of two groups, cached: they depend on the queries alone."""
        key = left.columns, right.columns
        stamp = left.version, right.version
        found = self._products.get(key)
        if found is None or found[0] != stamp:
            found = stamp, residual_products(left.pile, right.pile)
            self._products.put(key, found, size=found[1].size + 1000)
        return found[1]

    def _inverses(self, columns: Columns) -> tuple[Numbers, Numbers]:
        view = self.lattice.viewed(columns)
        return view.inverse.ravel(), view.unknown.ravel() / self.unknown
