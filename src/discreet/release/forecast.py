"""What each method of releases would do: its error, seconds and memory, from public facts alone, before it is paid.

Errors come from the noise that a method would have in each piece of the goal's marginals (`bought.py`, `layers.py`).
They are meant to put methods, tables and budgets in the right order, and are right within a factor of two or so: how
much the columns of a table say of each other is not public. Constants were chosen on drawn tables, and times measured
on one processor: bench/release_calibrate.py
"""

from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np

from discreet.model.features import MOST_FEATURES, MOST_TURNS
from discreet.query.axis import axis_of
from discreet.release import adaptive, bought
from discreet.release.bought import Bought
from discreet.release.brief import Brief, Forecast
from discreet.release.fitting import FIT, components_of, members_for, too_large
from discreet.release.goal import Goal
from discreet.release.layers import WORST, error_of, layers_of
from discreet.release.pairs import shares_of
from discreet.types import Columns

# Numbers of pairs that a mixture is fitted to, at most: they are held as a square of features.
MOST_NUMBERS = 2**26
NEEDS_DELTA = "delta is 0, and this method needs Gaussian noise. Give a budget with a delta above 0."
# A process that has loaded what it needs, compiled it, and made its first release of next to nothing: bytes, seconds.
BASE_MEMORY, BASE_SECONDS = 250e6, 2.0
# Bytes for each number that was measured: as it is read, released, recorded, known and looked at.
A_HELD = 60
# Seconds for a step of a member of an ensemble, and for each number and component in it, of pairs and of triples; the
# part of all steps that is taken.
A_STEP, A_PAIR, A_TRIPLE, TAKEN = 1e-4, 1.2e-10, 4e-9, 0.15
# Seconds to measure a number, and to plan, pay and record a block.
A_NUMBER, A_BLOCK = 1e-6, 1e-3
# Seconds for a round of `adaptive`, and for each cell of all marginals that it chooses among.
A_ROUND, A_CANDIDATE = 3e-2, 1e-8


def mixture_forecast(brief: Brief, rows: float) -> Forecast:
    """The main method, which is called "mixture"."""
    goal, many = brief.goal, max(rows, 1.0)
    layers = layers_of(goal)
    if not brief.known.measures_residuals:
        return impossible("mixture", NEEDS_DELTA)
    features, numbers = features_of(goal), float(layers.cells[layers.depth == 2].sum())
    if features > MOST_FEATURES or numbers > MOST_NUMBERS:
        return impossible(
            "mixture",
            f"the single columns have {features} features and the pairs {numbers:.0f} cells; the limits are "
            f"{MOST_FEATURES} and {MOST_NUMBERS}. Leave out columns with many cells, or declare coarser ones.",
        )
    units = float(brief.units)
    shares = shares_of(goal, many, units, public=bought.is_public(brief.known))
    small = (layers.depth == 3) & (layers.cells <= shares.room) if shares.triples else np.zeros(1, dtype=bool)
    triples = float(layers.cells[small].sum()) if small.any() else 0.0
    measured = sum(
        weight
        for scope, weight in goal.weights
        if len(scope) < 2 or (len(scope) == 2 and shares.pairs > 0) or (small.any() and small[layers.index[scope]])
    )
    blocks = int((layers.depth <= 2).sum() + small.sum())
    work = Work(numbers + triples, triples, blocks, measured)
    return _fitted("mixture", brief, many, bought.mixture(brief, many), work)


def direct_forecast(brief: Brief, rows: float) -> Forecast:
    """Every marginal by itself; where delta is 0 their pairs or single columns, if that is better."""
    goal, many = brief.goal, max(rows, 1.0)
    refused = too_large(goal)
    if refused:
        return impossible("direct", refused)
    deep = max(map(len, goal.scopes))
    depths = range(1, deep + 1) if brief.known.accounting == "pure" else (deep,)
    found = []
    for depth in depths:
        weights = weights_of(goal, depth)
        numbers = float(sum(goal.cells(scope) for scope in weights))
        triples = float(sum(goal.cells(scope) for scope in weights if len(scope) > 2))
        known = bought.marginals(brief, weights, many)
        work = Work(numbers, triples, len(weights), float(depth == deep))
        found.append(_fitted("direct", brief, many, known, work))
    return min(found, key=lambda each: each.error)


def lattice_forecast(brief: Brief, rows: float) -> Forecast:
    """All pieces of the goal's marginals, measured as is best for their noise."""
    goal, many = brief.goal, max(rows, 1.0)
    refused = too_large(goal) if brief.known.measures_residuals else NEEDS_DELTA
    if refused:
        return impossible("lattice", refused)
    layers = layers_of(goal)
    triples = float(layers.cells[layers.depth > 2].sum())
    work = Work(float(layers.cells.sum()), triples, len(layers.columns), 1.0)
    return _fitted("lattice", brief, many, bought.pieces(brief), work)


def adaptive_forecast(brief: Brief, rows: float) -> Forecast:
    """A tree that is measured where it is most wrong."""
    if not brief.known.measures_residuals:
        return impossible("adaptive", NEEDS_DELTA)
    goal, many = brief.goal, max(rows, 1.0)
    layers = layers_of(goal)
    names = int((layers.depth == 1).sum())
    candidates = float(layers.cells[layers.depth > 1].sum())
    # It goes on to larger marginals when pairs have nothing more to say.
    depths = sorted({2, min(3, max(map(len, goal.scopes)))})
    found = [bought.selected(brief, many, depth) for depth in depths]
    error = min(error_of(layers, known.precision, many, (known.pairs, known.deeper)) for known in found)
    planned = adaptive.ROUNDS * names * max(known.finer for known in found)
    seconds = BASE_SECONDS + planned * (A_ROUND + A_CANDIDATE * candidates)
    return Forecast("adaptive", error, seconds, BASE_MEMORY + A_HELD * candidates)


def weights_of(goal: Goal, depth: int) -> dict[Columns, float]:
    """All sets of so many columns of a goal's marginals, with the weight of these split between them."""
    if depth >= max(map(len, goal.scopes)):
        return dict(goal.weights)
    found: dict[Columns, float] = {}
    for scope, weight in goal.weights:
        chosen = list(combinations(scope, min(depth, len(scope))))
        for each in chosen:
            found[each] = found.get(each, 0.0) + weight / len(chosen)
    return found


def features_of(goal: Goal) -> int:
    """How many features a mixture of the goal's columns has."""
    names = sorted({name for scope in goal.scopes for name in scope})
    return 1 + sum(axis_of(goal.domain[name]).starts[-1] for name in names)


@dataclass(frozen=True, slots=True)
class Work:
    """What an ensemble is fitted to: how many numbers, those of three columns and more, in how many blocks.

    `measured` is the part of the goal that is measured as it is asked for: members differ in the rest.
    """

    numbers: float
    triples: float
    blocks: int
    measured: float


def _fitted(method: str, brief: Brief, rows: float, known: Bought, work: Work) -> Forecast:
    """The forecast of a method that measures, and fits an ensemble."""
    goal = brief.goal
    units = brief.known.squared_mu_for(brief.units, len(goal.weights))
    components, features = components_of(rows, units), features_of(goal)
    members = members_for(components, work.measured)
    # A step goes through a part of the triples, about as many as there are pairs.
    turns = max(1.0, min(MOST_TURNS, work.triples // features**2))
    step = A_STEP + components * (A_PAIR * features**2 + A_TRIPLE * work.triples / turns)
    seconds = TAKEN * members * FIT.steps * step + A_NUMBER * work.numbers + A_BLOCK * work.blocks
    held = A_HELD * work.numbers + 48 * features**2 + 16 * members * components * features
    error = error_of(layers_of(goal), known.precision, rows, (known.pairs, known.deeper))
    return Forecast(method, min(error, WORST), BASE_SECONDS + seconds, BASE_MEMORY + held)


def impossible(method: str, why: str) -> Forecast:
    """The forecast of a method that cannot be used."""
    return Forecast(method, inf, inf, inf, why)
