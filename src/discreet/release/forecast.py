"""The forecast of each release method: its error, seconds and memory, from public facts alone, before anything is paid.

The error follows from the precision with which a method would know each block of residuals (`ExpectedPrecision`), by
error/interactions.py. A forecast is meant to put methods, tables and budgets in the right order, and is right within a
factor of two or so, because how much the columns of a table depend on each other is not public.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from discreet.accounting.sensitivity import Sensitivity, histogram_sensitivity
from discreet.estimate.estimator import Estimator
from discreet.estimate.residual_lattice import subsets
from discreet.model.interface import total_of
from discreet.model.mixture.features import MOST_FEATURES, MOST_TURNS
from discreet.plan.allocation import fill_to_budget
from discreet.query.residual import axis_of
from discreet.release.error.interactions import (
    INTERACTION,
    Layers,
    clarity,
    expected_error,
    layers_of,
    precisions_known,
)
from discreet.release.methods.aim import AIM
from discreet.release.methods.fitting import ENSEMBLE_FIT, components_of, members_for, too_large_to_fit
from discreet.release.methods.mixture import MIXTURE_METHOD, shares_of, size_power
from discreet.release.task import Brief, Forecast, Goal
from discreet.types import Columns, Numbers

NEEDS_DELTA = "delta is 0, and this method needs Gaussian noise. Give a budget with a delta above 0."


@dataclass(frozen=True, slots=True)
class ForecastTuning:
    """Constants of forecasts. Chosen on drawn tables, times measured on one processor: bench/release_calibrate.py."""

    # Rounds of reweighting by which the split of "lattice" approaches the least absolute error.
    reweighting_rounds: int = 6
    # Different marginals that "adaptive" selects for each column. They are those with most structure: they hold the
    # part of all structure that is their part of all marginals, to this power.
    selected_per_column: float = 2.0
    selected_structure_power: float = 0.3
    # Cells of pairs that a mixture is fitted to, at most: they are held as a square of features.
    most_pair_cells: int = 2**26
    # Bytes and seconds of a process that has loaded and compiled all it needs and made a first tiny release.
    base_memory: float = 250e6
    base_seconds: float = 2.0
    # Bytes for each measured number: as it is read, released, recorded, known and fitted to.
    bytes_per_number: int = 60
    # Seconds for a step of a member of an ensemble, and in it for each component and number of pairs, of triples; and
    # the part of the planned steps that is taken.
    seconds_per_step: float = 1e-4
    seconds_per_pair_number: float = 1.2e-10
    seconds_per_triple_number: float = 4e-9
    steps_taken: float = 0.15
    # Seconds to measure a number, and to plan, pay for and record a block.
    seconds_per_number: float = 1e-6
    seconds_per_block: float = 1e-3
    # Seconds for a round of "adaptive", and for each cell of the marginals that it selects from.
    seconds_per_round: float = 3e-2
    seconds_per_candidate_cell: float = 1e-8


FORECAST = ForecastTuning()


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedPrecision:
    """The expected precision of each block after a method has spent its budget.

    `pairs` and `deeper` are the parts of the structure of pairs, and of more columns, that lie in measured marginals.
    `finer` is the number of selections over the number that is planned at first.
    """

    precision: Numbers
    pairs: float = 1.0
    deeper: float = 1.0
    finer: float = 1.0


def mixture_precision(brief: Brief, rows: float) -> ExpectedPrecision:
    """Singles, pairs and small triples, as "mixture" splits its budget; all pairs are taken for equally dependent."""
    layers, units, goal = layers_of(brief.goal), float(brief.units), brief.goal
    shares = shares_of(goal, rows, units, public=is_public(brief.known))
    unclear = clarity(goal, rows, units) < ENSEMBLE_FIT.clear_from
    importance = layers.summed(layers.weights[layers.rows]) ** MIXTURE_METHOD.weight_power
    depth, found = layers.depth, precisions_known(layers, brief.known)
    pays = prices(layers, brief.known)
    alone, small = depth == 1, (depth == 3) & (layers.cells <= shares.room)
    for part, where, power in (
        (shares.total, depth == 0, 0.0),
        (shares.singles, alone, size_power(clarity(goal, rows, units))),
        (shares.pairs, depth == 2, MIXTURE_METHOD.freedom_powers[unclear]),
        (shares.triples, small, MIXTURE_METHOD.triple_freedom_power),
    ):
        if part > 0 and where.any():
            size = layers.cells if where is alone else layers.freedom
            wanted = (importance * size**power)[where]
            found[where] = fill_to_budget(wanted, pays[where], found[where], part * units)
    return ExpectedPrecision(found)


def adaptive_precision(brief: Brief, rows: float, depth: int) -> ExpectedPrecision:
    """Singles, and the marginals of `depth` columns that "adaptive" would select: few, each more precise."""
    layers, units = layers_of(brief.goal), float(brief.units)
    deep, found, pays = layers.depth, precisions_known(layers, brief.known), prices(layers, brief.known)
    sizes = layers.cells[deep == 1]
    clear = max(rows, 1.0) * units**0.5 / sizes.sum()
    possible = (deep == depth) & (deep > 1)
    single = min(1.0, AIM.singles * (1 + AIM.clarity_of_double_singles / clear)) if possible.any() else 1.0
    total = 0.0 if is_public(brief.known) else AIM.first_count
    if total and (total * units) ** -0.5 > AIM.count_deviation * rows:
        total += AIM.second_count
    for part, where in ((total, deep == 0), (min(single, 1 - total), deep == 1)):
        if part > 0:
            found[where] = fill_to_budget(np.sqrt(layers.cells[where]), pays[where], found[where], part * units)
    left = (1 - AIM.selection) * (1 - min(1.0, single + total)) * units
    if left <= 0:
        return ExpectedPrecision(found)
    # As "adaptive" paces itself: more selections where a measurement has little noise.
    noise = (
        INTERACTION.error_per_deviation
        * np.median(layers.cells[deep == 2])
        * (AIM.selections_per_column * len(sizes) / left) ** 0.5
        / rows
    )
    finer = float(np.clip(AIM.low_noise / noise, 1.0, AIM.most_refinement))
    many = int(possible.sum())
    chosen = min(1.0, FORECAST.selected_per_column * finer * len(sizes) / many)
    top = left / (many * chosen * float(moves_of(brief.known).l2_squared))
    # The precision that a measured marginal gives subsets of its columns; and all its columns, where it was selected.
    asked = np.array([len(scope) for scope in brief.goal.scopes])[layers.rows]
    implied = layers.summed(np.where(asked == depth, chosen * top / layers.others, 0.0))
    lower = (deep > 1) & (deep < depth)
    found[lower] += implied[lower]
    found[possible] = np.maximum(found[possible], top)
    part = chosen**FORECAST.selected_structure_power
    return ExpectedPrecision(found, part if depth == 2 else 1.0, part if depth > 2 else 1.0, finer)


def direct_precision(brief: Brief, weights: Mapping[Columns, float], rows: float) -> ExpectedPrecision:
    """Some marginals, each measured whole, as "direct" splits its budget."""
    layers, known, goal = layers_of(brief.goal), brief.known, brief.goal
    power = 1 / (1 + known.rate)
    worth = {scope: (weight * goal.cells(scope)) ** power for scope, weight in weights.items()}
    every, moves = sum(worth.values()), moves_of(known)
    found = precisions_known(layers, known)
    for scope, each in worth.items():
        units = float(brief.units) * each / every
        variance = known.variance_for(moves, units)
        places = [layers.index[chosen] for chosen in subsets(scope)]
        found[places] += layers.cells[places] / (goal.cells(scope) * variance)
    return ExpectedPrecision(found)


def lattice_precision(brief: Brief) -> ExpectedPrecision:
    """All residuals, as "lattice" splits its budget for the least absolute error."""
    layers = layers_of(brief.goal)
    before, pays = precisions_known(layers, brief.known), prices(layers, brief.known)
    energy = layers.freedom[layers.places] / layers.others
    weights, found = layers.weights, before
    cells = np.array([float(layers.goal.cells(scope)) for scope in layers.goal.scopes])
    for _ in range(FORECAST.reweighting_rounds):
        demand = layers.summed(energy * weights[layers.rows])
        wanted = np.sqrt(np.divide(demand, pays, out=np.zeros_like(demand), where=pays > 0))
        found = fill_to_budget(wanted, pays, before, float(brief.units))
        noise, known = np.zeros_like(energy), found[layers.places]
        # A column of one value has residuals without energy, which cost nothing.
        with np.errstate(divide="ignore"):
            np.divide(energy, known, out=noise, where=energy > 0)
        variance = np.bincount(layers.rows, weights=noise, minlength=len(cells))
        weights = layers.weights * np.sqrt(cells / np.maximum(variance, 1e-30))
    return ExpectedPrecision(found)


def prices(layers: Layers, known: Estimator) -> Numbers:
    """The price of a unit of precision of each block, in squared mu; 0 for a number of rows that is public."""
    found = layers.price * float(moves_of(known).l2_squared)
    found[0] = float(moves_of(known, cells=1).l2_squared)
    return found


def moves_of(known: Estimator, cells: int = 2) -> Sensitivity:
    """The sensitivity of a marginal of `cells` cells."""
    return histogram_sensitivity(cells, known.lattice.unit, droppable=known.domain.drops)


def is_public(known: Estimator) -> bool:
    """Whether the number of rows is known exactly."""
    return total_of(known.lattice)[1] == 0


def mixture_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "mixture": an ensemble fitted to singles, pairs and small triples."""
    goal, many = brief.goal, max(rows, 1.0)
    layers = layers_of(goal)
    if not brief.known.measures_residuals:
        return impossible("mixture", NEEDS_DELTA)
    features, numbers = number_of_features(goal), float(layers.cells[layers.depth == 2].sum())
    if features > MOST_FEATURES or numbers > FORECAST.most_pair_cells:
        return impossible(
            "mixture",
            f"the single columns have {features} features and the pairs {numbers:.0f} cells; the limits are "
            f"{MOST_FEATURES} and {FORECAST.most_pair_cells}. "
            "Leave out columns with many cells.",
        )
    units = float(brief.units)
    shares = shares_of(goal, many, units, public=is_public(brief.known))
    small = (layers.depth == 3) & (layers.cells <= shares.room) if shares.triples else np.zeros(1, dtype=bool)
    triples = float(layers.cells[small].sum()) if small.any() else 0.0
    measured = sum(
        weight
        for scope, weight in goal.weights
        if len(scope) < 2 or (len(scope) == 2 and shares.pairs > 0) or (small.any() and small[layers.index[scope]])
    )
    blocks = int((layers.depth <= 2).sum() + small.sum())
    work = Work(numbers + triples, triples, blocks, measured)
    return _fitted("mixture", brief, many, mixture_precision(brief, many), work)


def direct_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "direct": every marginal by itself; where delta is 0, pairs or single columns if better."""
    goal, many = brief.goal, max(rows, 1.0)
    refused = too_large_to_fit(goal)
    if refused:
        return impossible("direct", refused)
    deep = max(map(len, goal.scopes))
    depths = range(1, deep + 1) if brief.known.accounting == "pure" else (deep,)
    found = []
    for depth in depths:
        weights = goal.weights_at_depth(depth)
        numbers = float(sum(goal.cells(scope) for scope in weights))
        triples = float(sum(goal.cells(scope) for scope in weights if len(scope) > 2))
        known = direct_precision(brief, weights, many)
        work = Work(numbers, triples, len(weights), float(depth == deep))
        found.append(_fitted("direct", brief, many, known, work))
    return min(found, key=lambda each: each.error)


def lattice_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "lattice": all residuals of the goal's marginals, with the least noise."""
    goal, many = brief.goal, max(rows, 1.0)
    refused = too_large_to_fit(goal) if brief.known.measures_residuals else NEEDS_DELTA
    if refused:
        return impossible("lattice", refused)
    layers = layers_of(goal)
    triples = float(layers.cells[layers.depth > 2].sum())
    work = Work(float(layers.cells.sum()), triples, len(layers.columns), 1.0)
    return _fitted("lattice", brief, many, lattice_precision(brief), work)


def adaptive_forecast(brief: Brief, rows: float) -> Forecast:
    """The forecast of "adaptive": a tree that is measured where it is most wrong."""
    if not brief.known.measures_residuals:
        return impossible("adaptive", NEEDS_DELTA)
    goal, many = brief.goal, max(rows, 1.0)
    layers = layers_of(goal)
    names = int((layers.depth == 1).sum())
    candidates = float(layers.cells[layers.depth > 1].sum())
    # It goes on to larger marginals when pairs teach nothing more.
    depths = sorted({2, min(3, max(map(len, goal.scopes)))})
    found = [adaptive_precision(brief, many, depth) for depth in depths]
    error = min(expected_error(layers, known.precision, many, (known.pairs, known.deeper)) for known in found)
    planned = AIM.selections_per_column * names * max(known.finer for known in found)
    seconds = FORECAST.base_seconds + planned * (
        FORECAST.seconds_per_round + FORECAST.seconds_per_candidate_cell * candidates
    )
    return Forecast("adaptive", error, seconds, FORECAST.base_memory + FORECAST.bytes_per_number * candidates)


def number_of_features(goal: Goal) -> int:
    """The number of features of a mixture of the goal's columns."""
    names = sorted({name for scope in goal.scopes for name in scope})
    return 1 + sum(axis_of(goal.domain[name]).starts[-1] for name in names)


@dataclass(frozen=True, slots=True)
class Work:
    """The size of a fit: all numbers, those of three columns and more, and the number of blocks.

    `measured` is the part of the goal that is measured as it is asked for: members of the ensemble differ in the rest.
    """

    numbers: float
    triples: float
    blocks: int
    measured: float


def _fitted(method: str, brief: Brief, rows: float, known: ExpectedPrecision, work: Work) -> Forecast:
    """The forecast of a method that measures, and fits an ensemble."""
    goal = brief.goal
    units = brief.known.squared_mu_for(brief.units, len(goal.weights))
    components, features = components_of(rows, units), number_of_features(goal)
    members = members_for(components, work.measured)
    # A step goes through a part of the triples, about as many as there are pairs.
    turns = max(1.0, min(MOST_TURNS, work.triples // features**2))
    step = FORECAST.seconds_per_step + components * (
        FORECAST.seconds_per_pair_number * features**2 + FORECAST.seconds_per_triple_number * work.triples / turns
    )
    seconds = (
        FORECAST.steps_taken * members * ENSEMBLE_FIT.steps * step
        + FORECAST.seconds_per_number * work.numbers
        + FORECAST.seconds_per_block * work.blocks
    )
    held = FORECAST.bytes_per_number * work.numbers + 48 * features**2 + 16 * members * components * features
    error = expected_error(layers_of(goal), known.precision, rows, (known.pairs, known.deeper))
    return Forecast(
        method, min(error, INTERACTION.largest_error), FORECAST.base_seconds + seconds, FORECAST.base_memory + held
    )


def impossible(method: str, why: str) -> Forecast:
    """The forecast of a method that cannot be used."""
    return Forecast(method, inf, inf, inf, why)
