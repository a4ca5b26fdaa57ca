"""Singles and pairs of columns, small triples where the budget is rich, and an ensemble of mixtures fitted to them.

What is measured is decided by sizes, the budget and numbers that were released; nothing else is looked at. On tables
of a few thousand rows and on those of a million, with columns of two values and of ninety, this is the best of our
methods for marginals of a few columns (bench/release.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np

from discreet.known.known import Known
from discreet.model.alone import product_of
from discreet.model.blend import Blend
from discreet.model.cliques import fits
from discreet.model.ensemble import Tell, fit_ensemble
from discreet.model.looks import looks_of, total_of
from discreet.model.mixture import Mixture
from discreet.model.protocol import Numbers
from discreet.model.tree import Tree, fit_tree
from discreet.plan.plan import Steps
from discreet.plan.request import Distances, Measure, Procedure
from discreet.query.linear import Marginal
from discreet.release.goal import Columns, Goal
from discreet.release.topping import topped
from discreet.source.effect import sensitivity_of

# Parts of the budget: for a first look at the number of rows, if it is not public; for single columns, if the budget is
# rich; for finding out how far each pair is from independent; and for triples, if all of the goal's are small enough.
FIRST, SINGLES, LOOK, TRIPLES = 0.002, 0.1, 0.015, 0.48
# Single columns get so much more where all triples are measured: the noise of a cell is that of all its pieces.
WITH_TRIPLES = 0.4
# No more than this for the number of rows, and this where rows stand out by 1.
MOST_TOTAL, FEW_ROWS = 0.05, 0.075
# How well rows stand out of the noise at which the singles get twice that.
POOR = 2.5
# A triple is looked at if it has fewer cells than that to this power; none is, if so few of the goal's have.
ROOM, WORTH = 1.5, 0.2
# A pair gets more the further it is from independent and the more cells it has, by these powers, the first where rows
# stand out and the second where they do not; a single column by the power of its size; all by that of their weight.
BY_DISTANCE, BY_CELLS, BY_SIZE, BY_WEIGHT = (0.5, 0.7), (0.4, 0.25), 0.5, 2 / 3
# A component for so many rows that stand out of the noise.
ROWS_A_COMPONENT, FEWEST, MOST = 50.0, 4, 256
# So many members, more if they are small: this many components in all.
MEMBERS, TOGETHER, STEPS = 24, 1000, 600
# As few members will do where all marginals of the goal were measured.
FEWEST_MEMBERS = 6
# Where rows stand out less than this, a tree of the strongest pairs with so few cells is blended in with this share:
# the ensemble learns a little of every pair, most of it noise, and the tree learns a few pairs well.
UNCLEAR, TREE_CELLS, TREE_SHARE = 15.0, 1000, 0.2
# A pair is strong if it is this far from independent, in parts of the rows.
STRONG = 0.05


@dataclass(frozen=True, slots=True)
class Shares:
    """How a budget is split: for the rows, single columns, a look at pairs, pairs and triples; they add up to 1."""

    total: float
    singles: float
    look: float
    pairs: float
    triples: float
    room: int


def clarity(goal: Goal, rows: float, units: float) -> float:
    """How well rows stand out of the noise, for each cell of a single column: n μ / Σ sizes."""
    clear: float = max(rows, 1.0) * units**0.5 / _cells(goal)
    return clear


def shares_of(goal: Goal, rows: float, units: float, *, public: bool) -> Shares:
    """The split that did well on drawn tables and on three public ones, by sizes, rows and budget alone."""
    clear = clarity(goal, rows, units)
    deep = max(map(len, goal.scopes))
    more = 1 + POOR / clear
    # An error of the number of rows is one of every marginal; it matters where rows are few or other errors small.
    total = 0.0 if public else min(MOST_TOTAL, max(FIRST, more / _cells(goal), FEW_ROWS / clear))
    singles = min(1.0, SINGLES * more) if deep > 1 else 1.0
    if singles == 1.0:
        return Shares(total, 1.0 - total, 0.0, 0.0, 0.0, 0)
    room = int(clear**ROOM)
    covered = _covered(goal, room) if deep > 2 else 0.0
    triples = TRIPLES * covered**0.5 if covered >= WORTH else 0.0
    left = 1.0 - total
    singles = singles * left * (1 + (WITH_TRIPLES * covered if triples else 0.0))
    look = LOOK * left if any(goal.cells(pair) > 4 for pair in _of_size(goal, 2)) else 0.0
    triples = min(triples, 1 - singles) * left
    return Shares(total, singles, look, left - singles - look - triples, triples, room)


def components_of(rows: float, units: float) -> int:
    """How many components a member of the ensemble has."""
    return int(np.clip(max(rows, 1.0) * units**0.5 / ROWS_A_COMPONENT, FEWEST, MOST))


def pairs(known: Known, goal: Goal, units: float, *, tell: Tell | None = None) -> Procedure[Mixture | Blend]:
    """Measure, and fit; `units` of squared mu are spent in all."""
    rows, variance = total_of(known.lattice)
    public = variance == 0
    left = units
    if not public:
        left -= yield from _measure(topped(known, {(): 1.0}, FIRST * units), "the number of rows, for a release")
        shares = shares_of(goal, total_of(known.lattice)[0], units, public=public)
        steps = topped(known, {(): 1.0}, (shares.total - FIRST) * units)
        left -= yield from _measure(steps, "the number of rows, for a release")
        rows, _ = total_of(known.lattice)
    shares = shares_of(goal, rows, units, public=public)
    importance = _importance(goal)
    singles: dict[Columns, float] = {
        (name,): importance[name,] ** BY_WEIGHT * goal.domain[name].size ** BY_SIZE for name in _names(goal)
    }
    only = shares.pairs + shares.triples <= 0
    steps = topped(known, singles, left if only else shares.singles * units)
    left -= yield from _measure(steps, "single columns, for a release")
    if not only:
        scopes = _of_size(goal, 2)
        far = np.ones(len(scopes))
        if shares.look:
            far = yield from _distances(known, scopes, rows, shares.look * units)
            left -= shares.look * units
        unclear = clarity(goal, rows, units) < UNCLEAR
        weights = {
            pair: importance[pair] ** BY_WEIGHT
            * distance ** BY_DISTANCE[unclear]
            * _freedom(goal, pair) ** BY_CELLS[unclear]
            for pair, distance in zip(scopes, far, strict=True)
        }
        steps = topped(known, weights, left - shares.triples * units)
        left -= yield from _measure(steps, "pairs of columns, for a release")
        if shares.triples:
            small = [each for each in _of_size(goal, 3) if goal.cells(each) <= shares.room]
            weights = {each: importance[each] ** BY_WEIGHT * _freedom(goal, each) ** 0.5 for each in small}
            left -= yield from _measure(topped(known, weights, left), "triples of columns, for a release")
    return fitted(known, goal, units, tell)


def fitted(known: Known, goal: Goal, units: float, tell: Tell | None = None) -> Mixture | Blend:
    """The model of all that is known of up to three columns of a goal."""
    rows, _ = total_of(known.lattice)
    looks = looks_of(known.lattice, [scope for scope in goal.below if len(scope) <= 3])
    components = components_of(rows, units)
    # Members differ in what was not measured.
    members = max(FEWEST_MEMBERS, round(MEMBERS * (1 - _measured(known, goal)) ** 2), TOGETHER // components)
    ensemble = fit_ensemble(
        goal.domain, looks, total=max(rows, 1.0), members=members, components=components, steps=STEPS, tell=tell
    )
    if clarity(goal, rows, units) > UNCLEAR or len(ensemble.weights) == 1:
        return ensemble
    return Blend([ensemble, _tree(known, goal, ensemble)], [1 - TREE_SHARE, TREE_SHARE])


def _tree(known: Known, goal: Goal, model: Mixture) -> Tree:
    """The tree of the pairs that are furthest from independent, as far as a model knows, and of all single columns."""
    names = _names(goal)
    alone = {name: model.marginal([name]) / model.total for name in names}
    far = {
        (one, other): float(
            np.abs(model.marginal((one, other)) / model.total - np.outer(alone[one], alone[other])).sum()
        )
        for one, other in _of_size(goal, 2)
    }
    sizes = {name: goal.domain[name].size for name in names}
    scopes: list[Columns] = [(name,) for name in names]
    for pair in sorted(far, key=lambda each: (-far[each], each)):
        if far[pair] >= STRONG and fits(scopes, pair, sizes, max(TREE_CELLS, sum(sizes.values()))):
            scopes.append(pair)
    looks = [look for look in looks_of(known.lattice, scopes) if look.columns in set(scopes)]
    return fit_tree(goal.domain, looks, total=model.total, scopes=scopes)


def _measure(steps: Steps, why: str) -> Procedure[float]:
    """Take some steps: what they cost."""
    if steps.steps:
        yield Measure(steps, why)
    return steps.price


def _distances(known: Known, scopes: list[Columns], rows: float, units: float) -> Procedure[Numbers]:
    """How far each pair is from independent, about; never less than half of what noise makes of nothing."""
    moves = sum(float(sensitivity_of(Marginal(scope), known.domain, known.lattice.unit).l1) ** 2 for scope in scopes)
    sigma = Fraction((moves / units) ** 0.5).limit_denominator(10**6) + Fraction(1, 10**6)
    singles = sorted({(name,) for scope in scopes for name in scope})
    alone = product_of(known.domain, looks_of(known.lattice, singles), total=max(rows, 1.0))
    expected = tuple(np.rint(alone.marginal(scope)).astype(np.int64).ravel() for scope in scopes)
    heard = yield Distances(tuple(scopes), expected, sigma, "how far pairs are from independent")
    return np.asarray(np.hypot(np.maximum(heard, 0.0), float(sigma) / 2))


def _names(goal: Goal) -> list[str]:
    return sorted({name for scope in goal.scopes for name in scope})


def _cells(goal: Goal) -> int:
    """How many cells the single columns have."""
    return sum(goal.domain[name].size for name in _names(goal))


def _of_size(goal: Goal, size: int) -> list[Columns]:
    return [scope for scope in goal.below if len(scope) == size]


def _freedom(goal: Goal, columns: Columns) -> int:
    return prod(goal.domain[name].size - 1 for name in columns)


def _importance(goal: Goal) -> Mapping[Columns, float]:
    """How much of the goal's weight needs each set of up to three columns."""
    found = dict.fromkeys(goal.below, 0.0)
    for scope, weight in goal.weights:
        for size in range(1, min(3, len(scope)) + 1):
            for chosen in combinations(scope, size):
                found[chosen] += weight
    return found


def _measured(known: Known, goal: Goal) -> float:
    """The part of the goal, by weight, that was measured as it is asked for."""
    blocks = known.lattice.blocks
    return sum(
        weight for scope, weight in goal.weights if scope in blocks and blocks[scope].precision.min(initial=1.0) > 0
    )


def _covered(goal: Goal, room: int) -> float:
    """The part of the goal's triples, by weight, that have at most so many cells."""
    importance = _importance(goal)
    triples = _of_size(goal, 3)
    whole = sum(importance[each] for each in triples)
    return sum(importance[each] for each in triples if goal.cells(each) <= room) / whole if whole else 0.0
