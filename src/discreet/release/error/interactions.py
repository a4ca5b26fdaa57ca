"""The expected error of a model of marginals, given the precision of their residuals.

A marginal is a sum of interactions: its single columns, what its pairs add to these, what its triples add, and so on.
Of each order of interaction, a model that is fitted to noisy numbers learns what exceeds the noise and misses the rest.
How strong interactions are is not public, so it is guessed from the sizes of columns.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from discreet.cache import memoize
from discreet.estimate.estimator import Estimator
from discreet.estimate.residual_lattice import subsets
from discreet.query.linear import Marginal
from discreet.release.task import Goal
from discreet.schema.domain import Domain
from discreet.types import Columns, Ints, Numbers


@dataclass(frozen=True, slots=True)
class InteractionTuning:
    """What is supposed of tables. Chosen on drawn tables (bench/release_calibrate.py), but for the first."""

    # The share of the r-th largest cell of a column is supposed to be proportional to r to minus this. It was chosen on
    # 105 marginals of three public tables, whose error is then forecast within a factor of 1.3 (one standard
    # deviation): allocate.md §6.
    cell_exponent: float = 2.0
    # Marginals that represent all of a goal, evenly spread by their number of cells.
    sampled_marginals: int = 24
    # The error of a cell: this part of its rows if they are lost in the noise, else this many deviations of the noise.
    lost_cell_error: float = 2.6
    error_per_deviation: float = 0.7
    # The distance of pairs of large columns from independence, as a part of the rows, and the power by which it falls
    # for smaller columns.
    pair_distance: float = 0.3
    size_power: float = 1.0
    # What each further column adds to that distance; and how much of the sampling error of the rows can be learnt.
    interaction_decay: float = 0.25
    learnable_sampling: float = 0.7
    # The noise of a fit over the noise of what it is fitted to: it averages some noise away, and adds some of its own.
    fit_noise: float = 1.1
    # More cells than this are put into groups: this many for each factor of e, down to this part of the rows.
    most_ungrouped_cells: int = 256
    groups_per_factor: int = 3
    smallest_share: float = 1e-12
    # The largest error that is forecast.
    largest_error: float = 1.8


INTERACTION = InteractionTuning()


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A distribution of rows over cells: `cells[i]` cells have about `counts[i]` rows each."""

    counts: Numbers
    cells: Numbers

    @property
    def rows(self) -> float:
        """The number of rows."""
        return float(self.counts @ self.cells)


@dataclass(frozen=True, slots=True, eq=False)
class Supposed:
    """What is supposed of a table: the spread of its rows over columns, and the distance of pairs from independence.

    Counts are parts of all rows, so that a spread has one row. The distance is the L1 distance, as a part of the rows.
    """

    spread: Callable[[Columns], Spread]
    distance: Callable[[str, str], float]


@dataclass(frozen=True, eq=False)
class Layers:
    """The blocks of residuals of a goal: one for each subset of its marginals' columns, the empty one first.

    `cells` and `freedom` are a block's numbers of cells and of degrees of freedom; `price` is the price of a unit of
    precision where a person is a row. Entry i says that block `places[i]` is part of marginal `rows[i]`, and that each
    of its cells is spread over `others[i]` cells.
    """

    goal: Goal
    columns: tuple[Columns, ...]
    index: dict[Columns, int]
    cells: Numbers
    freedom: Numbers
    price: Numbers
    weights: Numbers
    rows: Ints
    places: Ints
    others: Numbers

    @property
    def depth(self) -> Ints:
        """The number of columns of each block."""
        return np.array([len(columns) for columns in self.columns])

    def summed(self, numbers: Numbers) -> Numbers:
        """Numbers of the entries, added up for each block."""
        return np.bincount(self.places, weights=numbers, minlength=len(self.columns)).astype(np.float64, copy=False)


@memoize(4)
def layers_of(goal: Goal) -> Layers:
    """The layers of a goal, cached because the forecast of each method needs them."""
    index: dict[Columns, int] = {(): 0}
    rows, places = [], []
    for row, scope in enumerate(goal.scopes):
        for chosen in subsets(scope):
            rows.append(row)
            places.append(index.setdefault(chosen, len(index)))
    sizes = [[goal.domain[name].size for name in columns] for columns in index]
    cells = np.array([float(prod(each)) for each in sizes])
    freedom = np.array([float(prod(size - 1 for size in each)) for each in sizes])
    whole = np.array([float(goal.cells(scope)) for scope in goal.scopes])
    owner, place = np.array(rows), np.array(places)
    return Layers(
        goal,
        tuple(index),
        index,
        cells,
        freedom,
        freedom / cells,
        np.array([weight for _, weight in goal.weights]),
        owner,
        place,
        whole[owner] / cells[place],
    )


def clarity(goal: Goal, rows: float, units: float) -> float:
    """The signal-to-noise ratio of rows in the cells of single columns: n μ / Σ sizes."""
    clear: float = max(rows, 1.0) * units**0.5 / sum(goal.domain[name].size for name in goal.names)
    return clear


def precisions_known(layers: Layers, known: Estimator) -> Numbers:
    """The precision of each block: 1 over the mean variance of its residuals, 0 if one is unknown."""
    found = np.zeros(len(layers.columns))
    for columns, block in known.lattice.blocks.items():
        place = layers.index.get(columns)
        if place is not None and block.precision.size and block.precision.all():
            variance = float((1 / block.precision).mean())
            found[place] = 1 / variance if variance else np.inf
    for question, answer in known.direct_answers.items():
        if isinstance(question, Marginal) and question.weight is None and answer.variance:
            cells = prod(known.domain[name].size for name in question.scope)
            for columns in subsets(question.scope):
                place = layers.index.get(columns)
                if place is not None:
                    found[place] += layers.cells[place] / (cells * answer.variance)
    return found


def expected_error(layers: Layers, precision: Numbers, rows: float, chosen: tuple[float, float] = (1.0, 1.0)) -> float:
    """The expected mean error of the goal's marginals for these precisions and about `rows` rows.

    `chosen` are the parts of the structure of pairs, and of more columns, that lie in measured marginals.
    """
    total, weights, supposed = 0.0, 0.0, guessed(layers.goal.domain)
    for scope, weight in sampled(layers.goal):
        total += weight * error_of_marginal(layers, scope, precision, rows, supposed, chosen)
        weights += weight
    return total / weights


def error_of_marginal(
    layers: Layers,
    scope: Columns,
    precision: Numbers,
    rows: float,
    supposed: Supposed,
    chosen: tuple[float, float] = (1.0, 1.0),
) -> float:
    """The expected error of one marginal of a goal.

    Of the structure S of an order of interaction a model misses S N/√(S² + N²), where N is the noise: about S if the
    noise is larger, and about N if it is smaller. The squares of what is missed are added up over the orders.
    """
    squares = 0.0
    for depth in range(len(scope) + 1):
        noise, there = 0.0, 0.0
        for columns in combinations(scope, depth):
            spread = supposed.spread(columns)
            noise += noise_of(layers, columns, precision, rows, spread) ** 2
            distance = sum(supposed.distance(*pair) ** 2 for pair in combinations(columns, 2))
            sampling = (INTERACTION.learnable_sampling * scatter(spread, rows)) ** 2
            there += INTERACTION.interaction_decay ** (2 * (depth - 2)) * distance + sampling
        part = chosen[depth > 2]
        squares += noise if depth < 2 else part * missed(there, noise) + (1 - part) * there
    return float(min(INTERACTION.largest_error, squares**0.5))


def noise_of(layers: Layers, columns: Columns, precision: Numbers, rows: float, spread: Spread) -> float:
    """The noise of the interaction of some columns, as a part of the rows; infinite if it was not measured."""
    place = layers.index[columns]
    known = float(precision[place])
    if not known:
        return float("inf")
    return INTERACTION.fit_noise * noise_share(spread, (float(layers.price[place]) / known) ** 0.5 / rows)


def guessed(domain: Domain) -> Supposed:
    """What is supposed of a table where only the sizes of its columns are known."""
    sizes = {name: column.size for name, column in domain.columns}
    return Supposed(
        lambda columns: guessed_shares(tuple(sorted(sizes[name] for name in columns))),
        lambda one, other: guessed_distance(sizes[one], sizes[other]),
    )


def missed(there: float, noise: float) -> float:
    """The squared error that a model leaves of squared structure `there`, measured with squared noise `noise`.

    >>> missed(1.0, 1.0), missed(1.0, float("inf"))
    (0.5, 1.0)
    """
    if noise == np.inf:
        return there
    return there * noise / (there + noise) if there else 0.0


def guessed_distance(one: int, other: int) -> float:
    """A guess at the L1 distance of two columns of these sizes from independence, as a part of the rows."""
    rest: float = ((1 - 1 / one) * (1 - 1 / other)) ** INTERACTION.size_power
    return INTERACTION.pair_distance * rest


def scatter(spread: Spread, rows: float) -> float:
    """The expected L1 sampling error of `rows` rows from a distribution, as a part of the rows."""
    sampling = INTERACTION.error_per_deviation * np.sqrt(spread.counts / rows)
    return float(spread.cells @ np.minimum(2 * spread.counts, sampling))


def unevenness(spread: Spread) -> float:
    """The L1 distance of a table from the uniform one, as a part of the rows."""
    return float(spread.cells @ np.abs(spread.counts - 1 / spread.cells.sum()))


def noise_share(spread: Spread, deviation: float) -> float:
    """The L1 error of a table by noise of this deviation, both as parts of the rows.

    Cells below the noise are lost, with the rows in them.
    """
    lost, noisy = INTERACTION.lost_cell_error * spread.counts, INTERACTION.error_per_deviation * deviation
    return min(2.0, float(spread.cells @ np.minimum(lost, noisy)))


def guessed_column(size: int) -> Numbers:
    """A guess at the shares of the cells of a column of this size, the largest first.

    >>> guessed_column(2)
    array([0.8, 0.2])
    """
    falling = np.arange(1.0, size + 1) ** -INTERACTION.cell_exponent
    shares: Numbers = falling / falling.sum()
    return shares


@memoize(1 << 14)
def guessed_shares(sizes: tuple[int, ...]) -> Spread:
    """A guess at the distribution of rows over the cells of columns of these sizes.

    `noise_error.guessed_spread` is the same guess in finer groups, which take longer; here many marginals are compared.
    """
    return independent_shares(map(guessed_column, sizes))


def independent_shares(columns: Iterable[Numbers]) -> Spread:
    """The distribution of rows over the cells of independent columns with these distributions.

    >>> independent_shares([np.array([0.5, 0.5]), np.array([1.0])])
    Spread(counts=array([0.5, 0.5]), cells=array([1., 1.]))
    """
    shares, cells = np.ones(1), np.ones(1)
    for column in columns:
        shares = np.multiply.outer(shares, column).ravel()
        cells = np.repeat(cells, len(column))
        if len(shares) > INTERACTION.most_ungrouped_cells:
            # Cells of similar counts are one group.
            logarithms = np.log(np.maximum(shares, INTERACTION.smallest_share))
            group = np.round(logarithms * INTERACTION.groups_per_factor).astype(np.int64)
            _, place = np.unique(group, return_inverse=True)
            many = np.bincount(place, weights=cells).astype(np.float64)
            shares, cells = np.bincount(place, weights=cells * shares) / many, many
    return Spread(shares, cells)


def sampled(goal: Goal, number: int = INTERACTION.sampled_marginals) -> list[tuple[Columns, float]]:
    """A sample of marginals that represents a goal, with a weight for each."""
    if len(goal.weights) <= number:
        return list(goal.weights)
    order = sorted(goal.weights, key=lambda each: (goal.cells(each[0]), each[0]))
    ends = np.cumsum([weight for _, weight in order])
    middles = (np.arange(number) + 0.5) / number * ends[-1]
    return [(order[place][0], 1 / number) for place in np.searchsorted(ends, middles).tolist()]
