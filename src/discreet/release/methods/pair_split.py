"""How a budget is split between single columns and pairs, and which pairs are measured.

Whether pairs are worth measuring is not public. After their distances from independence were measured with noise,
something of it is known. Everything here is computed from what was released.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.estimate.estimator import Known
from discreet.model.mixture.mixture_model import Mixture
from discreet.plan.allocation import fill_to_budget
from discreet.release.error.interactions import INTERACTION, CellShares, independent_shares, noise_share, scatter
from discreet.types import Bools, Columns, Numbers


@dataclass(frozen=True, slots=True)
class PairSplitTuning:
    """How shares of pairs are compared. Set by hand; bench/release.py measures the result on public tables.

    A ratio is an expected error over another; the first is better where it is smaller.
    """

    # The shares of the budget for pairs that are compared.
    candidate_shares: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
    # Pairs get nothing if the error with them is not below this part of the error without them.
    worthwhile_ratio: float = 0.92
    # Pairs get all of the budget unless the best share is below this part of the error at all of it: a fit learns more
    # from pairs together than from each.
    partial_ratio: float = 0.9
    # Only pairs that stand out are measured if that is below this part of the error of measuring all, and if of the
    # others a smaller part than `rare_dependence` is dependent: mixtures learn weak dependence from many pairs.
    selective_ratio: float = 0.97
    rare_dependence: float = 0.2
    # A measured pair is clear if its noise is less than this part of its distance from independence.
    clear_noise: float = 0.5
    # Relative tolerance in comparisons of precisions.
    precision_tolerance: float = 1e-6


PAIR_SPLIT = PairSplitTuning()


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A look: how far each pair is from the product of its columns, in rows, with noise of this deviation."""

    alone: Mixture
    pairs: tuple[Columns, ...]
    far: Numbers
    deviation: float

    @property
    def about(self) -> Numbers:
        """How far each is, never less than half a deviation."""
        return np.asarray(np.hypot(np.maximum(self.far, 0.0), self.deviation / 2))


@dataclass(frozen=True, slots=True)
class Split:
    """The part of a budget that pairs get, and the weights of those that get some.

    `told` are those that are known as well then as their weight is worth, some of them perhaps from before. `clear` is
    whether the noise of those that stand out is small beside what they say.
    """

    part: float
    weights: Mapping[Columns, float]
    told: tuple[Columns, ...]
    clear: bool


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """How far pairs are from independent, as far as a look tells, as parts of the rows.

    Those that stand out are so far as was seen. Of the others, a part `often` are `usually` so far, and the rest are
    independent.
    """

    stand: Bools
    far: Numbers
    often: float
    usually: float

    def clear(self, noise: Numbers) -> bool:
        """Whether pairs that stand out are learnt well from numbers with such noise."""
        return bool(self.stand.any() and np.median(noise[self.stand] / self.far[self.stand]) < PAIR_SPLIT.clear_noise)

    def left(self, noise: Numbers, below: Numbers) -> Numbers:
        """How far off a model is that is fitted to pairs with such noise; `below` are squared errors of their columns.

        Of a pair at the distance D it learns the part D²/(D² + N²), and as much of the noise N. Of pairs that do not
        stand out nobody knows which are apart, and it learns the same part of all.
        """
        usual = np.full_like(self.far, self.often**0.5 * self.usually)
        errors = []
        for far, supposed in ((self.far, self.far), (self.usually, usual), (0.0, usual)):
            learnt = np.divide(supposed**2, supposed**2 + noise**2, out=np.zeros_like(noise), where=supposed > 0)
            noisy = np.multiply(learnt, noise, out=np.zeros_like(noise), where=learnt > 0)
            errors.append(np.sqrt(below + noisy**2 + ((1 - learnt) * far) ** 2))
        stands, often, seldom = errors
        return np.asarray(np.where(self.stand, stands, self.often * often + (1 - self.often) * seldom))


@dataclass(frozen=True, slots=True, order=True)
class Choice:
    """A part of the budget for some pairs, and the error that is expected then."""

    error: float
    part: float
    pairs: Bools = field(compare=False)
    told: Bools = field(compare=False)
    clear: bool = field(compare=False)


def best_split(
    known: Known,
    seen: Seen,
    wanted: tuple[Mapping[Columns, float], Mapping[Columns, float]],
    importance: Mapping[Columns, float],
    units: float,
    rows: float,
) -> Split:
    """The split of so many units with the least expected error of pairs: of all of them, or of those that stand out.

    `wanted` are the weights of single columns and of pairs. A pair is off by the noise of its columns and by what its
    own noise leaves of its distance from independent (`Apart.left`). Only pairs are looked at: what is wrong about more
    columns is about the same, whatever the split.
    """
    table = _Table.of(known, seen, rows)
    apart = apart_of(seen.far / rows, seen.deviation / rows, table.by_chance)
    singles = np.array([wanted[0][name,] for name in table.names])
    weights = np.array([wanted[1][pair] for pair in seen.pairs])
    matters = np.array([importance[pair] for pair in seen.pairs])
    found = []
    for part in PAIR_SPLIT.candidate_shares:
        precision = fill_to_budget(singles, table.singles.price, table.singles.precision, (1 - part) * units)
        below = (table.singles.noise(precision, rows)[table.columns] ** 2).sum(axis=1)
        for chosen in (np.ones_like(apart.stand), apart.stand):
            precision = fill_to_budget(
                np.where(chosen, weights, 0.0), table.both.price, table.both.precision, part * units
            )
            noise = table.both.noise(precision, rows)
            here = _told(precision, weights, chosen)
            found.append(Choice(float(matters @ apart.left(noise, below)), part, chosen, here, apart.clear(noise)))
    best = _chosen([each for each in found if apart.often < PAIR_SPLIT.rare_dependence or each.pairs.all()])
    some = [pair for pair, here in zip(seen.pairs, best.pairs, strict=True) if here and best.part]
    told = tuple(pair for pair, here in zip(seen.pairs, best.told, strict=True) if here)
    return Split(best.part, {pair: wanted[1][pair] for pair in some}, told, best.clear)


def _told(precision: Numbers, weights: Numbers, chosen: Bools) -> Bools:
    """The pairs that are known as well as their weight is worth beside those that were chosen; what has none is."""
    paid = chosen & (weights > 0)
    if not paid.any():
        return chosen
    return np.asarray(
        precision >= (1 - PAIR_SPLIT.precision_tolerance) * (precision[paid] / weights[paid]).min() * weights
    )


def _chosen(found: Sequence[Choice]) -> Choice:
    """Nothing for pairs if little is gained; some of them if that is better; everything if little more is gained."""
    every = [each for each in found if each.pairs.all()]
    some = [each for each in found if not each.pairs.all()]
    kind = some if some and min(some).error < PAIR_SPLIT.selective_ratio * min(every).error else every
    best, everything = min(kind), kind[-1]
    if best.error > PAIR_SPLIT.worthwhile_ratio * found[0].error:
        return found[0]
    return everything if best.error > PAIR_SPLIT.partial_ratio * everything.error else best


def apart_of(far: Numbers, deviation: float, by_chance: Numbers) -> Apart:
    """What a look tells: `far` has noise of this deviation, and so far a pair of independent columns is by chance.

    A pair with the distance D is √(c² + D²) away, where c is by chance. Of those that do not stand out of the noise the
    means of how far they are and of its square are known, and these tell how often they are how far: if a part f is D
    away, they are f (√(c² + D²) − c) and f D² above chance.

    >>> one = apart_of(np.array([0.9, 0.1, 0.1]), 0.1, np.full(3, 0.1))
    >>> one.stand.tolist(), one.often
    ([True, False, False], 0.0)
    """
    # The largest of so many normal numbers is about this.
    noise = sqrt(2 * log(len(far) + 1)) * deviation
    stand = far - noise > by_chance
    distance = np.sqrt(np.maximum(far**2 - deviation**2 - by_chance**2, 0.0))
    others, chance = far[~stand], by_chance[~stand]
    if not len(others):
        return Apart(stand, distance, 0.0, 0.0)
    above = float((others - chance).mean())
    square = float((others**2 - chance**2).mean()) - deviation**2
    if above <= 0 or square <= 0:
        return Apart(stand, distance, 0.0, 0.0)
    mean = float(chance.mean())
    usually = sqrt(max((square / above - mean) ** 2 - mean**2, square))
    return Apart(stand, distance, min(1.0, square / usually**2), usually)


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Of blocks of pieces: what a unit of precision costs, what it is, and the variance of a cell at precision 1."""

    price: Numbers
    precision: Numbers
    cell: Numbers
    spread: Sequence[CellShares]

    def noise(self, precision: Numbers, rows: float) -> Numbers:
        """The error of the noise of each block, as a part of the rows; infinite where nothing is known."""
        shares = [
            noise_share(spread, sqrt(cell / each) / rows) if each else inf
            for spread, cell, each in zip(self.spread, self.cell, precision, strict=True)
        ]
        return INTERACTION.fit_noise * np.array(shares)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """What is known of single columns and pairs, and which columns each pair has."""

    names: list[str]
    columns: NDArray[np.int64]
    singles: _Pieces
    both: _Pieces
    rows: float

    @classmethod
    def of(cls, known: Known, seen: Seen, rows: float) -> "_Table":
        names = sorted({name for pair in seen.pairs for name in pair})
        place = {name: at for at, name in enumerate(names)}
        columns = np.array([[place[name] for name in pair] for pair in seen.pairs])
        shares = [seen.alone.marginal([name]) / seen.alone.total for name in names]
        singles = _pieces(known, [(name,) for name in names], [independent_shares([each]) for each in shares])
        both = _pieces(known, seen.pairs, [independent_shares([shares[at] for at in pair]) for pair in columns])
        return cls(names, columns, singles, both, rows)

    @property
    def by_chance(self) -> Numbers:
        """How far pairs of independent columns are from what is known of them: rows are a sample, columns noisy."""
        noise = self.singles.noise(self.singles.precision, self.rows)[self.columns]
        sample = [scatter(spread, self.rows) for spread in self.both.spread]
        return np.asarray(np.sqrt(np.square(sample) + (noise**2).sum(axis=1)))


def _pieces(known: Known, scopes: Sequence[Columns], spread: Sequence[CellShares]) -> _Pieces:
    blocks = [known.lattice.block(columns) for columns in scopes]
    return _Pieces(
        np.array([float(block.price.sum()) for block in blocks]),
        np.array([float(block.precision.min(initial=inf)) for block in blocks]),
        np.array([prod(1 - 1 / known.domain[name].size for name in columns) for columns in scopes]),
        spread,
    )
