"""Singles and pairs of columns, small triples where the budget is rich, and an ensemble of mixtures fitted to them.

What is measured is decided by sizes, the budget and numbers that were released; nothing else is looked at. On tables
of a few thousand rows and on those of a million, with columns of two values and of ninety, this is the best of our
methods for marginals of a few columns (bench/release.py).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf, pi, prod, sqrt

import numpy as np

from discreet.known.known import Known
from discreet.known.lattice import Lattice
from discreet.model.alone import product_of
from discreet.model.blend import Blend
from discreet.model.cliques import fits
from discreet.model.ensemble import Tell, fit_ensemble
from discreet.model.looks import LARGEST_WEIGHT, noisy_marginals, total_of
from discreet.model.mixture import Mixture
from discreet.model.protocol import NoisyMarginal
from discreet.model.tree import Tree, fit_tree
from discreet.plan.plan import Steps
from discreet.plan.request import Measure, Procedure
from discreet.release.far import distances_for
from discreet.release.goal import Goal
from discreet.release.split import Seen, best_split
from discreet.release.topping import steps_within
from discreet.types import Columns

# Parts of the budget: for a first look at the number of rows, if it is not public; for single columns, if the budget is
# rich; for finding out how far each pair is from independent; and for triples, if all of the goal's are small enough.
FIRST, SINGLES, LOOK, TRIPLES = 0.002, 0.1, 0.015, 0.48
# Single columns get so much more where all triples are measured: the noise of a cell is that of all its pieces.
WITH_TRIPLES = 0.4
# No more than this for the number of rows, and this where rows stand out by 1; and no more than balances its error with
# that of single columns, which is about 1, or this over how well rows stand out (`_balanced`).
MOST_TOTAL, FEW_ROWS, COLUMNS = 0.05, 0.075, 0.6
# But as much as makes a deviation of it this part of the rows, if it is no more than that; each look at it is up to so
# many times as good as the one before.
SURE, MOST_SURE, FASTER = 0.2, 0.25, 5.0
# The look gets up to so much if a deviation of its noise is more than this part of the rows.
MOST_LOOK, SEEN = 0.1, 0.1
# How well rows stand out of the noise at which the singles get twice that.
POOR = 5.0
# A triple is looked at if it has fewer cells than that to this power; none is, if so few of the goal's have.
ROOM, WORTH = 1.5, 0.2
# A pair gets more the further it is from independent and the more cells it has, by these powers, the first where rows
# stand out and the second where they do not; a single column by the power of its size, which falls to 0 where rows
# stand out by less than DROWNED, as large columns are lost there; all by that of their weight.
BY_DISTANCE, BY_CELLS, BY_SIZE, BY_WEIGHT = (0.5, 0.85), (0.4, 0.0), 0.5, 2 / 3
DROWNED = 0.1
# Less than this part of the budget is not worth another look.
CRUMB = 1e-3
# A component for so many rows that stand out of the noise.
ROWS_A_COMPONENT, FEWEST, MOST = 50.0, 4, 256
# So many members, more if they are small: this many components in all.
MEMBERS, TOGETHER, STEPS = 24, 1000, 600
# As few members will do where all of the goal is triples that were measured; and those take time.
FEWEST_MEMBERS = 6
# Where rows stand out less than this, a tree of the strongest pairs with so many cells is blended in with this share:
# the ensemble learns a little of every pair, most of it noise, and the tree learns a few pairs well.
UNCLEAR, TREE_CELLS, TREE_SHARE = 15.0, 4000, 0.25
# If only some pairs were measured, a tree with at most so many cells is the model if it holds them, and if they are no
# more than this part of all: of the others, mixtures would say at random what nobody knows.
MOST_TREE_CELLS, FEW = 2**17, 0.5
# A pair is strong if it is further from independent than this part of its noise.
STRONG = 0.5


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


def size_power(clear: float) -> float:
    """The power of its size by which a single column gets more."""
    return BY_SIZE * clear / (clear + DROWNED)


def shares_of(goal: Goal, rows: float, units: float, *, public: bool) -> Shares:
    """The split that did well on drawn tables and on three public ones, by sizes, rows and budget alone."""
    clear = clarity(goal, rows, units)
    deep = max(map(len, goal.scopes))
    more = 1 + POOR / clear
    # An error of the number of rows is one of every marginal; it matters where rows are few or other errors small.
    total = max(FIRST, more / _cells(goal), FEW_ROWS / clear)
    total = 0.0 if public else min(MOST_TOTAL, _balanced(rows, units, clear), total)
    singles = min(1.0, SINGLES * more) if deep > 1 else 1.0
    if singles == 1.0:
        return Shares(total, 1.0 - total, 0.0, 0.0, 0.0, 0)
    room = int(clear**ROOM)
    covered = _covered(goal, room) if deep > 2 else 0.0
    triples = TRIPLES * covered**0.5 if covered >= WORTH else 0.0
    left = 1.0 - total
    singles = singles * left * (1 + (WITH_TRIPLES * covered if triples else 0.0))
    pairs = _of_size(goal, 2)
    look = max(LOOK, min(MOST_LOOK, len(pairs) / (SEEN * max(rows, 1.0)) ** 2 / units)) * left
    look = look if any(goal.cells(pair) > 4 for pair in pairs) else 0.0
    triples = min(triples, 1 - singles) * left
    return Shares(total, singles, look, left - singles - look - triples, triples, room)


def _balanced(rows: float, units: float, clear: float) -> float:
    """The part of a budget for the number of rows beyond which single columns lose more than it gains.

    With a part s the number is off by 1/(√s n μ), and an error E of single columns grows to about (1 + s/2) E: the sum
    is least at s = (n μ E)^(−2/3).
    """
    return float((max(rows, 1.0) * units**0.5 * min(1.0, COLUMNS / clear)) ** (-2 / 3))


def components_of(rows: float, units: float) -> int:
    """How many components a member of the ensemble has."""
    return int(np.clip(max(rows, 1.0) * units**0.5 / ROWS_A_COMPONENT, FEWEST, MOST))


def pairs(known: Known, goal: Goal, units: float, *, tell: Tell | None = None) -> Procedure[Mixture | Blend | Tree]:
    """Measure, and fit; `units` of squared mu are spent in all."""
    rows, variance = total_of(known.lattice)
    public = variance == 0
    left = units
    if not public:
        left -= yield from _counted(known, goal, units)
        rows, _ = total_of(known.lattice)
    shares = shares_of(goal, rows, units, public=public)
    # The rows may have got more than their share, or less; of the rest all others get theirs.
    whole = left / (1 - shares.total)
    importance = _importance(goal)
    by_size = size_power(clarity(goal, rows, units))
    singles: dict[Columns, float] = {
        (name,): importance[name,] ** BY_WEIGHT * goal.domain[name].size ** by_size for name in _names(goal)
    }
    only = shares.pairs + shares.triples <= 0
    # The pairs that are told, if not all of them are, and whether they stand out of their noise; what a look told.
    some: tuple[Columns, ...] = ()
    clear, seen = False, None
    steps = steps_within(known, singles, left if only else shares.singles * whole)
    left -= yield from _measure(steps, "single columns, for a release")
    if not only:
        scopes = _of_size(goal, 2)
        if shares.look:
            seen = yield from _distances(known, scopes, rows, shares.look * whole)
            left -= shares.look * whole
        unclear = clarity(goal, rows, units) < UNCLEAR
        weights: Mapping[Columns, float] = {
            pair: importance[pair] ** BY_WEIGHT
            * distance ** BY_DISTANCE[unclear]
            * _freedom(goal, pair) ** BY_CELLS[unclear]
            for pair, distance in zip(scopes, np.ones(len(scopes)) if seen is None else seen.about, strict=True)
        }
        if seen is not None:
            split = best_split(known, seen, (singles, weights), importance, left, max(rows, 1.0))
            weights = split.weights
            some, clear = () if len(split.told) == len(scopes) else split.told, split.clear
            left -= yield from _measure(
                steps_within(known, singles, (1 - split.part) * left), "single columns, for a release"
            )
        triples = left * shares.triples / (shares.pairs + shares.triples)
        left -= yield from _measure(steps_within(known, weights, left - triples), "pairs of columns, for a release")
        if shares.triples:
            small = [
                each
                for each in _of_size(goal, 3)
                if goal.cells(each) <= shares.room
                and (not some or sum(pair in some for pair in combinations(each, 2)) > 1)
            ]
            weights = {each: importance[each] ** BY_WEIGHT * _freedom(goal, each) ** 0.5 for each in small}
            left -= yield from _measure(steps_within(known, weights, left), "triples of columns, for a release")
        if left > CRUMB * units:
            # Pairs of which one column has one value say no more than the other.
            left -= yield from _measure(steps_within(known, singles, left), "single columns, for a release")
    tree = _tree_of(known, goal, some) if clear else None
    return fitted(known, goal, units, seen, tell) if tree is None else tree


def _counted(known: Known, goal: Goal, units: float) -> Procedure[float]:
    """Count the rows, again and again until they are known as well as so many are worth; what that cost."""
    spent, wanted = 0.0, FIRST
    while spent < (1 - CRUMB) * wanted * units:
        steps = steps_within(known, {(): 1.0}, wanted * units - spent)
        if not steps.steps:
            break
        spent += yield from _measure(steps, "the number of rows, for a release")
        rows, variance = total_of(known.lattice)
        # In doubt there are few.
        few = max(rows - variance**0.5, 1.0)
        wanted = min(FASTER * wanted, max(shares_of(goal, rows, units, public=False).total, _sure(few, units)))
    return spent


def _sure(rows: float, units: float) -> float:
    """The part of a budget that tells so many rows well enough."""
    return min(MOST_SURE, (SURE * rows) ** -2 / units)


def fitted(
    known: Known, goal: Goal, units: float, seen: Seen | None = None, tell: Tell | None = None
) -> Mixture | Blend | Tree:
    """The model of all that is known of up to three columns of a goal, and of what a look saw of pairs."""
    rows, _ = total_of(known.lattice)
    # What was paid before counts as much as what is paid now.
    units = max(units, worth(known.lattice, goal))
    looks = noisy_marginals(known.lattice, [scope for scope in goal.below if len(scope) <= 3])
    components = components_of(rows, units)
    # Members differ most in what was not measured.
    members = max(FEWEST_MEMBERS, round(MEMBERS * (1 - _measured(known, goal)) ** 2), TOGETHER // components)
    ensemble = fit_ensemble(
        goal.domain,
        looks,
        total=rows_of(known.lattice),
        members=members,
        components=components,
        steps=STEPS,
        supposed=() if seen is None else _supposed(known, seen),
        tell=tell,
    )
    if clarity(goal, rows, units) > UNCLEAR or len(ensemble.weights) == 1:
        return ensemble
    return Blend([ensemble, _tree(known, goal, ensemble)], [1 - TREE_SHARE, TREE_SHARE])


def _tree_of(known: Known, goal: Goal, pairs: Collection[Columns]) -> Tree | None:
    """The tree of some pairs and all single columns, if they are few and it holds them; of triples as it has room."""
    sizes = {name: goal.domain[name].size for name in _names(goal)}
    if not 0 < len(pairs) <= FEW * len(_of_size(goal, 2)):
        return None
    scopes: list[Columns] = [(name,) for name in sizes]
    for pair in pairs:
        if not fits(scopes, pair, sizes, MOST_TREE_CELLS):
            return None
        scopes.append(pair)
    for triple in _of_size(goal, 3):
        if triple in known.lattice.blocks and fits(scopes, triple, sizes, MOST_TREE_CELLS):
            scopes.append(triple)
    return fit_tree(goal.domain, _held(known, scopes), total=rows_of(known.lattice), scopes=scopes)


def rows_of(lattice: Lattice) -> float:
    """The number of rows of a model: a little less than was seen where that is mostly noise, and at least 1.

    Of n ± σ it is n/(1 + σ²/n²): too many rows make larger errors than too few, as most cells are noise then too.
    """
    rows, variance = total_of(lattice)
    return max(1.0, rows / (1 + variance / rows**2)) if rows > 0 else 1.0


def _held(known: Known, scopes: Sequence[Columns]) -> list[NoisyMarginal]:
    """What is known of some scopes, and not of their subsets unless they are among them."""
    return [look for look in noisy_marginals(known.lattice, scopes) if look.columns in set(scopes)]


def _supposed(known: Known, seen: Seen) -> list[NoisyMarginal]:
    """Pairs that were never measured: each is supposed to be independent, give or take as far as a look saw it."""
    found = []
    for pair, far in zip(seen.pairs, seen.about, strict=True):
        block = known.lattice.block(pair)
        if block.precision.any():
            continue
        expected = seen.alone.marginal(pair)
        # Normal numbers that are so far from zero in the mean.
        variance = pi / 2 * (far / expected.size) ** 2
        for parts in product(*(range(1, axis.parts) for axis in block.axes)):
            gain = prod(axis.gain(part) for axis, part in zip(block.axes, parts, strict=True))
            nothing = NoisyMarginal(pair, parts, np.zeros(()), min(1 / (variance * gain), LARGEST_WEIGHT))
            found.append(replace(nothing, values=nothing.residual(expected, known.domain)))
    return found


def worth(lattice: Lattice, goal: Goal) -> float:
    """What the known pieces of up to three columns of a goal cost, one by one, in squared mu."""
    blocks = [lattice.blocks.get(scope) for scope in goal.below if len(scope) <= 3]
    return sum(float((block.price * block.precision).sum()) for block in blocks if block is not None)


def _tree(known: Known, goal: Goal, model: Mixture) -> Tree:
    """The tree of the pairs that stand out of their noise most, as far as a model knows, and of all single columns."""
    names = _names(goal)
    beyond = {pair: _beyond(known, goal, model, pair) for pair in _of_size(goal, 2)}
    sizes = {name: goal.domain[name].size for name in names}
    scopes: list[Columns] = [(name,) for name in names]
    for pair in sorted(beyond, key=lambda each: (-beyond[each], each)):
        if beyond[pair] > 0 and fits(scopes, pair, sizes, max(TREE_CELLS, sum(sizes.values()))):
            scopes.append(pair)
    return fit_tree(goal.domain, _held(known, scopes), total=model.total, scopes=scopes)


def _beyond(known: Known, goal: Goal, model: Mixture, pair: Columns) -> float:
    """How many rows a pair is further from independent, in L1, than a part of the noise with which it was measured."""
    block = known.lattice.blocks.get(pair)
    precision = 0.0 if block is None else float(block.precision.min(initial=inf))
    if precision == 0.0:
        return 0.0
    alone = np.outer(*(model.marginal([name]) for name in pair)) / model.total
    noise = goal.cells(pair) * sqrt(2 / pi / precision)
    return float(np.abs(model.marginal(pair) - alone).sum()) - STRONG * noise


def _measure(steps: Steps, why: str) -> Procedure[float]:
    """Take some steps: what they cost."""
    if steps.steps:
        yield Measure(steps, why)
    return steps.price


def _distances(known: Known, scopes: list[Columns], rows: float, units: float) -> Procedure[Seen]:
    """How far each pair is from independent."""
    singles = sorted({(name,) for scope in scopes for name in scope})
    alone = product_of(known.domain, noisy_marginals(known.lattice, singles), total=max(rows, 1.0))
    expected = [alone.marginal(scope) for scope in scopes]
    request = distances_for(known, scopes, expected, units, "how far pairs are from independent")
    heard = yield request
    return Seen(alone, tuple(scopes), np.asarray(heard, dtype=np.float64), float(request.sigma))


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
    """The part of the goal, by weight, that is of three columns and was measured as it is asked for."""
    blocks = known.lattice.blocks
    return sum(
        weight
        for scope, weight in goal.weights
        if len(scope) == 3 and scope in blocks and blocks[scope].precision.min(initial=1.0) > 0
    )


def _covered(goal: Goal, room: int) -> float:
    """The part of the goal's triples, by weight, that have at most so many cells."""
    importance = _importance(goal)
    triples = _of_size(goal, 3)
    whole = sum(importance[each] for each in triples)
    return sum(importance[each] for each in triples if goal.cells(each) <= room) / whole if whole else 0.0
