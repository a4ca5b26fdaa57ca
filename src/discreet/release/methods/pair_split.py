"""How a budget is split between single columns and pairs, and which pairs are measured.

Whether pairs are worth measuring is not public. It is estimated from noisy distances of the pairs from independence.
Everything here is computed from what was released.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.estimate.estimator import Estimator
from discreet.model.mixture.mixture_model import Mixture
from discreet.plan.allocation import fill_to_budget
from discreet.release.error.interactions import INTERACTION, Spread, independent_shares, noise_share, scatter
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
    # Only significant pairs are measured if the error is then below this part of the error of measuring all, and if of
    # the others a smaller part than `rare_dependence` is dependent: mixtures learn weak dependence from many pairs.
    selective_ratio: float = 0.97
    rare_dependence: float = 0.2
    # A measured pair is clear if its noise is less than this part of its distance from independence.
    clear_noise: float = 0.5
    # Relative tolerance in comparisons of precisions.
    precision_tolerance: float = 1e-6


PAIR_SPLIT = PairSplitTuning()


@dataclass(frozen=True, slots=True, eq=False)
class PairDistances:
    """Measured distances of pairs from the product of their columns, in rows, with noise of this deviation."""

    alone: Mixture
    pairs: tuple[Columns, ...]
    distance: Numbers
    deviation: float

    @property
    def about(self) -> Numbers:
        """The distance of each pair, never less than half a deviation."""
        return np.asarray(np.hypot(np.maximum(self.distance, 0.0), self.deviation / 2))


@dataclass(frozen=True, slots=True)
class Split:
    """The share of a budget that pairs get, and the weights of the pairs that get some of it.

    `well_known` are pairs whose precision then reaches the share that their weight earns, by this release or an earlier
    one. `clear` is whether the noise of significant pairs is small beside their distance from independence.
    """

    part: float
    weights: Mapping[Columns, float]
    well_known: tuple[Columns, ...]
    clear: bool


@dataclass(frozen=True, slots=True, eq=False)
class PairDependence:
    """The distances of pairs from independence, as parts of the rows, estimated from noisy distances.

    Each `significant` pair has its measured distance. Of the others a part, `frequency`, is supposed to be at the
    `usual_distance`, and the rest to be independent.
    """

    significant: Bools
    distance: Numbers
    frequency: float
    usual_distance: float

    def clear(self, noise: Numbers) -> bool:
        """Whether significant pairs are learnt well from numbers with this noise."""
        if not self.significant.any():
            return False
        ratio = np.median(noise[self.significant] / self.distance[self.significant])
        return bool(ratio < PAIR_SPLIT.clear_noise)

    def remaining_error(self, noise: Numbers, below: Numbers) -> Numbers:
        """The error of a model that is fitted to pairs with this noise; `below` are squared errors of their columns.

        Of a pair at the distance D it learns the part D²/(D² + N²), and as much of the noise N. It is not known which
        of the other pairs are dependent, so the model learns the same part of all of them.
        """
        usual = np.full_like(self.distance, self.frequency**0.5 * self.usual_distance)
        errors = []
        for distance, supposed in ((self.distance, self.distance), (self.usual_distance, usual), (0.0, usual)):
            learnt = np.divide(supposed**2, supposed**2 + noise**2, out=np.zeros_like(noise), where=supposed > 0)
            noisy = np.multiply(learnt, noise, out=np.zeros_like(noise), where=learnt > 0)
            errors.append(np.sqrt(below + noisy**2 + ((1 - learnt) * distance) ** 2))
        significant, dependent, independent = errors
        others = self.frequency * dependent + (1 - self.frequency) * independent
        return np.asarray(np.where(self.significant, significant, others))


@dataclass(frozen=True, slots=True, order=True)
class Choice:
    """A share of the budget for some pairs, and the expected error."""

    error: float
    part: float
    pairs: Bools = field(compare=False)
    well_known: Bools = field(compare=False)
    clear: bool = field(compare=False)


def best_split(
    known: Estimator,
    seen: PairDistances,
    wanted: tuple[Mapping[Columns, float], Mapping[Columns, float]],
    importance: Mapping[Columns, float],
    units: float,
    rows: float,
) -> Split:
    """The split of a budget that gives pairs the least expected error, where all or the significant ones are measured.

    `wanted` are the weights of single columns and of pairs. The error of a pair is the noise of its columns and what
    its own noise leaves of its distance from independence (`PairDependence.remaining_error`). Only pairs are compared:
    the error of more columns hardly depends on the split.
    """
    table = _Table.of(known, seen, rows)
    dependence = dependence_of(seen.distance / rows, seen.deviation / rows, table.by_chance)
    singles = np.array([wanted[0][name,] for name in table.names])
    weights = np.array([wanted[1][pair] for pair in seen.pairs])
    matters = np.array([importance[pair] for pair in seen.pairs])
    found = []
    for part in PAIR_SPLIT.candidate_shares:
        precision = fill_to_budget(singles, table.singles.price, table.singles.precision, (1 - part) * units)
        below = (table.singles.noise(precision, rows)[table.columns] ** 2).sum(axis=1)
        for chosen in (np.ones_like(dependence.significant), dependence.significant):
            precision = fill_to_budget(
                np.where(chosen, weights, 0.0), table.both.price, table.both.precision, part * units
            )
            noise = table.both.noise(precision, rows)
            error = float(matters @ dependence.remaining_error(noise, below))
            known_well = _well_known(precision, weights, chosen)
            found.append(Choice(error, part, chosen, known_well, dependence.clear(noise)))
    rare = dependence.frequency < PAIR_SPLIT.rare_dependence
    best = _best_choice([each for each in found if rare or each.pairs.all()])
    some = [pair for pair, here in zip(seen.pairs, best.pairs, strict=True) if here and best.part]
    well_known = tuple(pair for pair, here in zip(seen.pairs, best.well_known, strict=True) if here)
    return Split(best.part, {pair: wanted[1][pair] for pair in some}, well_known, best.clear)


def _well_known(precision: Numbers, weights: Numbers, chosen: Bools) -> Bools:
    """Pairs whose precision reaches the share that their weight earns (pairs of weight zero count as reached)."""
    paid = chosen & (weights > 0)
    if not paid.any():
        return chosen
    return np.asarray(
        precision >= (1 - PAIR_SPLIT.precision_tolerance) * (precision[paid] / weights[paid]).min() * weights
    )


def _best_choice(found: Sequence[Choice]) -> Choice:
    """Nothing for pairs if they gain little; some pairs if that is better; all of the budget unless less gains more."""
    every = [each for each in found if each.pairs.all()]
    some = [each for each in found if not each.pairs.all()]
    kind = some if some and min(some).error < PAIR_SPLIT.selective_ratio * min(every).error else every
    best, everything = min(kind), kind[-1]
    if best.error > PAIR_SPLIT.worthwhile_ratio * found[0].error:
        return found[0]
    return everything if best.error > PAIR_SPLIT.partial_ratio * everything.error else best


def dependence_of(measured: Numbers, deviation: float, by_chance: Numbers) -> PairDependence:
    """The dependence of pairs, from measured distances with noise of this deviation.

    `by_chance` is the distance that a pair of independent columns would have, because rows are a sample. A pair at the
    distance D is measured at √(c² + D²), where c is by chance. If a part f of the pairs that are not significant is at
    the distance D, the mean of their distances is f (√(c² + D²) − c) above chance, and that of their squares f D²: the
    two means give f and D.

    >>> one = dependence_of(np.array([0.9, 0.1, 0.1]), 0.1, np.full(3, 0.1))
    >>> one.significant.tolist(), one.frequency
    ([True, False, False], 0.0)
    """
    # About the largest of this many normal numbers.
    noise = sqrt(2 * log(len(measured) + 1)) * deviation
    significant = measured - noise > by_chance
    distance = np.sqrt(np.maximum(measured**2 - deviation**2 - by_chance**2, 0.0))
    others, chance = measured[~significant], by_chance[~significant]
    if not len(others):
        return PairDependence(significant, distance, 0.0, 0.0)
    above = float((others - chance).mean())
    square = float((others**2 - chance**2).mean()) - deviation**2
    if above <= 0 or square <= 0:
        return PairDependence(significant, distance, 0.0, 0.0)
    mean = float(chance.mean())
    usual = sqrt(max((square / above - mean) ** 2 - mean**2, square))
    return PairDependence(significant, distance, min(1.0, square / usual**2), usual)


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Of blocks of residuals, the price of a unit of precision, the precision, and a cell's variance at precision 1."""

    price: Numbers
    precision: Numbers
    cell: Numbers
    spread: Sequence[Spread]

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
    singles: _Blocks
    both: _Blocks
    rows: float

    @classmethod
    def of(cls, known: Estimator, seen: PairDistances, rows: float) -> "_Table":
        names = sorted({name for pair in seen.pairs for name in pair})
        place = {name: at for at, name in enumerate(names)}
        columns = np.array([[place[name] for name in pair] for pair in seen.pairs])
        shares = [seen.alone.marginal([name]) / seen.alone.total for name in names]
        singles = _blocks(known, [(name,) for name in names], [independent_shares([each]) for each in shares])
        both = _blocks(known, seen.pairs, [independent_shares([shares[at] for at in pair]) for pair in columns])
        return cls(names, columns, singles, both, rows)

    @property
    def by_chance(self) -> Numbers:
        """The expected measured distance of independent columns: rows are a sample, and columns are noisy."""
        noise = self.singles.noise(self.singles.precision, self.rows)[self.columns]
        sample = [scatter(spread, self.rows) for spread in self.both.spread]
        return np.asarray(np.sqrt(np.square(sample) + (noise**2).sum(axis=1)))


def _blocks(known: Estimator, scopes: Sequence[Columns], spread: Sequence[Spread]) -> _Blocks:
    blocks = [known.lattice.block(columns) for columns in scopes]
    return _Blocks(
        np.array([float(block.price.sum()) for block in blocks]),
        np.array([float(block.precision.min(initial=inf)) for block in blocks]),
        np.array([prod(1 - 1 / known.domain[name].size for name in columns) for columns in scopes]),
        spread,
    )
