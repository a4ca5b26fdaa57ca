"""Numbers that were measured directly, joined to the lattice: one underlying estimate for everything.

A direct measurement of a query w on the columns T says something about all pieces of w. What it says beyond the lattice
is put into the block of T alone: the estimate of that block moves along the pieces of w in it, as far as makes the
answer to w the best that follows from both. So every answer is still the value of one estimate, and its error is one
sum of independent noises, whose variance is computed exactly (lattice.md §4).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.known.family import Family
from discreet.known.reading import Numbers, Reading

Columns = tuple[str, ...]

# So many directs of one set of columns are joined to the lattice; further ones are remembered as they are.
MOST_DIRECTS = 64
# How little is known, against a direct measurement, of what was never measured: nothing, but for rounding.
FAINT = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """One number that was measured: its query, what was released, and the variance of the noise."""

    family: Family
    value: float
    variance: float


@dataclass(slots=True, eq=False)
class Group:
    """The directs of one set of columns, their products in one pile."""

    columns: Columns
    directs: list[Direct] = field(default_factory=list)
    version: int = 0

    def add(self, direct: Direct) -> None:
        """Join one more."""
        self.directs.append(direct)
        self.version += 1

    @property
    def pile(self) -> "Pile":
        """All products of all directs."""
        return piled([direct.family for direct in self.directs])


@dataclass(frozen=True, slots=True, eq=False)
class Pile:
    """Some queries of the same columns: for each column the means and units of all their products.

    `mix` has a row for each query: the coefficients of its own products. With groups (`cells`), all queries have one
    product list and differ in the cells.
    """

    columns: Columns
    means: tuple[Numbers, ...]
    units: tuple[Numbers, ...]
    starts: tuple[tuple[int, ...], ...]
    cells: tuple[int, ...]
    mix: Numbers


def piled(families: Sequence[Family]) -> Pile:
    """Queries without groups, side by side."""
    first = families[0]
    widths = [family.products for family in families]
    mix = np.zeros((len(families), sum(widths)))
    start = 0
    for row, family in enumerate(families):
        mix[row, start : start + widths[row]] = family.coefficients
        start += widths[row]
    columns = range(len(first.columns))
    return Pile(
        first.columns,
        tuple(np.hstack([family.readings[place].vectors[:, 0] for family in families])[None, :] for place in columns),
        tuple(np.vstack([family.readings[place].units for family in families])[None, :, :] for place in columns),
        tuple(axis.starts for axis in first.axes),
        first.cells,
        mix,
    )


def pile_of(family: Family) -> Pile:
    """One family, with its groups."""
    products = family.products

    def means(reading: Reading) -> Numbers:
        return reading.vectors[:, 0].reshape(-1, products)

    def units(reading: Reading) -> Numbers:
        return reading.units.reshape(len(reading.units) // products, products, -1)

    return Pile(
        family.columns,
        tuple(map(means, family.readings)),
        tuple(map(units, family.readings)),
        tuple(axis.starts for axis in family.axes),
        family.cells,
        family.coefficients[None, :],
    )


def products_of_pieces(left: Pile, right: Pile) -> Numbers:
    """The inner products of each piece of two piles, for the columns that both have: (piece, query, query).

    The right pile has no groups; the left may have them, and then has one query for each of their cells.
    """
    tensor = np.ones((1, 1, left.mix.shape[1], right.mix.shape[1]))
    for place, name in enumerate(left.columns):
        means = left.means[place]
        if name not in right.columns:
            tensor = (tensor[:, :, None] * means[None, None, :, :, None]).reshape(
                tensor.shape[0], -1, *tensor.shape[2:]
            )
            continue
        other = right.columns.index(name)
        both = _column(means, left.units[place], right.means[other][0], right.units[other][0], left.starts[place])
        tensor = tensor[:, None, :, None] * both[None, :, None, :]
        tensor = tensor.reshape(tensor.shape[0] * tensor.shape[1], -1, *tensor.shape[4:])
    for place, name in enumerate(right.columns):
        if name not in left.columns:
            tensor = tensor * right.means[place][0]
    if len(left.mix) == 1:
        return np.einsum("vbjk,j,mk->vbm", tensor, left.mix[0], right.mix, optimize=True)
    return np.einsum("vjk,qj,mk->vqm", tensor[:, 0], left.mix, right.mix, optimize=True)


def _column(
    means: Numbers, units: Numbers, other_means: Numbers, other_units: Numbers, starts: tuple[int, ...]
) -> Numbers:
    """For one column, the inner products of each part: (part, cell, product, product)."""
    parts = [means[:, :, None] * other_means]
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        parts.append(units[:, :, begin:end] @ other_units[:, begin:end].T)
    return np.stack(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """How the directs of some groups move the estimate: the moves are `gain` times (released − lattice).

    `piles`, `members` and `tops` are those of the groups; `spread` is the covariance of (released − lattice), of which
    `unknown` is what comes from pieces never measured.
    """

    groups: tuple[Group, ...]
    piles: tuple[Pile, ...]
    members: tuple[slice, ...]
    gain: Numbers
    spread: Numbers
    unknown: Numbers


# 1/precision of each piece of some columns: what is known of them, and what is not.
Inverses = Callable[[Columns], tuple[Numbers, Numbers]]


def solve(groups: Sequence[Group], inverses: Inverses) -> Solution:
    """Join the directs of some groups, smaller sets of columns first."""
    ordered = tuple(sorted(groups, key=lambda group: (len(group.columns), group.columns)))
    piles = tuple(group.pile for group in ordered)
    ends = np.cumsum([0, *(len(group.directs) for group in ordered)])
    members = tuple(slice(int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True))
    total = int(ends[-1])
    known, unknown, tops = np.zeros((total, total)), np.zeros((total, total)), np.zeros((total, total))
    for row, left in enumerate(piles):
        for column, right in enumerate(piles):
            if column <= row:
                pieces = products_of_pieces(left, right)
                shared = tuple(name for name in left.columns if name in right.columns)
                inverse, missing = inverses(shared)
                here = members[row], members[column]
                known[here] = np.tensordot(inverse, pieces, 1)
                unknown[here] = np.tensordot(missing, pieces, 1)
                known[here[::-1]], unknown[here[::-1]] = known[here].T, unknown[here].T
                if shared == right.columns:
                    # What an earlier group adds to this one's queries: the piece in which no column is constant.
                    tops[here] = pieces[top_of(right)].sum(axis=0)
    noise = np.diag([direct.variance for group in ordered for direct in group.directs])
    covariance = known + unknown
    gain = np.zeros((total, total))
    for place, here in enumerate(members):
        before = np.zeros((here.stop - here.start, total))
        for earlier in range(place):
            if set(piles[earlier].columns) <= set(piles[place].columns):
                before += tops[here, members[earlier]] @ gain[members[earlier]]
        spread = covariance[here, here] - before @ covariance[:, here]
        spread = spread - covariance[here] @ before.T + before @ (covariance + noise) @ before.T
        trust = np.eye(len(spread)) - noise[here, here] @ np.linalg.pinv(spread + noise[here, here], hermitian=True)
        innovation = np.zeros_like(before)
        innovation[:, here] = np.eye(len(spread))
        own = np.linalg.pinv(tops[here, here], rcond=1e-10, hermitian=True)
        gain[here] = own @ trust @ (innovation - before)
    return Solution(ordered, piles, members, gain, known + noise, unknown)


def top_of(pile: Pile) -> list[int]:
    """Where, among the pieces of some columns in their order, those lie in which no column is constant."""
    shape = tuple(len(starts) for starts in pile.starts)
    grid = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1))
    return np.flatnonzero((grid > 0).all(axis=0)).tolist()
