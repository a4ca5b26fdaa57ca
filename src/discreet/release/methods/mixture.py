"""The method "mixture": singles, pairs and small triples are measured, and an ensemble of mixtures is fitted to them.

What is measured depends on sizes, the budget and released numbers, and on nothing else. On tables of a few thousand
rows and on those of a million, with columns of two values and of ninety, this is the best of our methods for marginals
of a few columns (bench/release.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from discreet.estimate.estimator import Estimator
from discreet.model.interface import noisy_marginals, total_of
from discreet.model.mixture.ensemble import Tell
from discreet.model.mixture.independent_model import product_of
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.model.tree.tree_model import Tree
from discreet.plan.plan import Measure, Procedure, Steps
from discreet.release.budget_allocation import distances_for, steps_within
from discreet.release.error.interactions import clarity
from discreet.release.methods.fitting import ENSEMBLE_FIT, fit_low_order, tree_of_pairs
from discreet.release.methods.pair_split import PairDistances, Split, best_split
from discreet.release.task import Goal
from discreet.types import Columns


@dataclass(frozen=True, slots=True)
class MixtureMethodTuning:
    """How the budget is split, chosen on drawn tables (bench/release_calibrate.py) and public ones (bench/release.py).

    A share is a part of the budget. Clarity is the signal-to-noise ratio of rows (`interactions.clarity`).
    """

    # A first count of the rows, if their number is not public; an error of it is one of every marginal.
    first_count: float = 0.002
    # The most that counting gets; what it gets at clarity 1; and the error of single columns at clarity 1, with which
    # that of the count is balanced (`_balanced`).
    largest_count: float = 0.05
    count_at_unit_clarity: float = 0.075
    singles_error_at_unit_clarity: float = 0.6
    # Counting is repeated until the deviation is this part of the rows, for at most the second share in all. Each
    # count gets at most this factor times the share of the one before.
    count_deviation: float = 0.2
    largest_repeated_count: float = 0.25
    count_growth: float = 5.0
    # Single columns: twice as much at this clarity, and this part more where all triples are measured, because the
    # noise of a cell is that of all its residuals.
    singles: float = 0.1
    clarity_of_double_singles: float = 5.0
    singles_with_triples: float = 0.4
    # Distances of pairs from independence: more, up to a limit, if the deviation of a distance would otherwise be more
    # than this part of the rows.
    distances: float = 0.015
    largest_distances: float = 0.1
    distance_deviation: float = 0.1
    # Triples: those with fewer cells than this power of the clarity, if they are at least this part of the goal.
    triples: float = 0.48
    triple_cells_power: float = 1.5
    least_triples: float = 0.2
    # Weights of pairs, singles and triples are products of powers: of the distance and the degrees of freedom of a
    # pair (at high clarity, at low clarity), of the size of a single column, of the degrees of freedom of a triple, and
    # of the weight in the goal. The power of the size falls to 0 with the clarity, because large columns are lost in
    # noise there; it is half at the clarity below.
    distance_powers: tuple[float, float] = (0.5, 0.85)
    freedom_powers: tuple[float, float] = (0.4, 0.0)
    size_power: float = 0.5
    clarity_of_half_size_power: float = 0.1
    triple_freedom_power: float = 0.5
    weight_power: float = 2 / 3
    # Less than this part of the budget is not worth another measurement.
    least_share: float = 1e-3


MIXTURE_METHOD = MixtureMethodTuning()


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """Shares of the budget for the count of rows, singles, distances of pairs, pairs and triples; they add up to 1.

    Triples of at most `room` cells are measured.
    """

    total: float
    singles: float
    distances: float
    pairs: float
    triples: float
    room: int


@dataclass(frozen=True, slots=True, eq=False)
class MixtureState:
    """The state between stages: shares of the budget `whole`, weights of the marginals to measure, noisy distances.

    `importance` is the weight of the goal that needs each set of up to three columns. `seen` are the distances of pairs
    from independence, and `split` is the split that follows from them.
    """

    known: Estimator
    goal: Goal
    units: float
    rows: float
    shares: BudgetShares
    whole: float
    importance: Mapping[Columns, float]
    singles: Mapping[Columns, float]
    pairs: Mapping[Columns, float] = field(default_factory=dict)
    seen: PairDistances | None = None
    split: Split | None = None

    @property
    def known_pairs(self) -> tuple[Columns, ...]:
        """The pairs that are known well, if not all of them are."""
        if self.split is None or len(self.split.well_known) == len(self.goal.of_size(2)):
            return ()
        return self.split.well_known


# A stage is given what is left of the budget; it returns the state after it and what it cost.
Stage = Callable[[MixtureState, float], Procedure[tuple[MixtureState, float]]]


def mixture(
    known: Estimator, goal: Goal, units: float, *, tell: Tell | None = None
) -> Procedure[Mixture | Blend | Tree]:
    """Measure, and fit; `units` of squared mu are spent in all."""
    state, left = yield from init(known, goal, units)
    deeper = state.shares.pairs + state.shares.triples > 0
    stages: tuple[Stage, ...] = (_singles, _distances, _divide, _pairs, _triples, _rest) if deeper else (_only_singles,)
    for stage in stages:
        state, cost = yield from stage(state, left)
        left -= cost
    tree = tree_of_pairs(known, goal, state.known_pairs) if state.split is not None and state.split.clear else None
    return fit_low_order(known, goal, units, state.seen, tell) if tree is None else tree


def init(known: Estimator, goal: Goal, units: float) -> Procedure[tuple[MixtureState, float]]:
    """Count the rows if their number is not public, and split the budget; also returns what is left of it."""
    rows, variance = total_of(known.lattice)
    public, left = variance == 0, units
    if not public:
        left -= yield from _count_rows(known, goal, units)
        rows, _ = total_of(known.lattice)
    shares = shares_of(goal, rows, units, public=public)
    importance, by_size = _importance(goal), size_power(clarity(goal, rows, units))
    singles: dict[Columns, float] = {
        (name,): importance[name,] ** MIXTURE_METHOD.weight_power * goal.domain[name].size ** by_size
        for name in goal.names
    }
    # Counting may have cost more than its share, or less; the others get their shares of the rest.
    return MixtureState(known, goal, units, rows, shares, left / (1 - shares.total), importance, singles), left


def _count_rows(known: Estimator, goal: Goal, units: float) -> Procedure[float]:
    """Count the rows until their number is as precise as their share of the budget demands; returns the cost."""
    spent, wanted = 0.0, MIXTURE_METHOD.first_count
    while spent < (1 - MIXTURE_METHOD.least_share) * wanted * units:
        steps = steps_within(known, {(): 1.0}, wanted * units - spent)
        if not steps.steps:
            break
        spent += yield from _measure(steps, "the number of rows, for a release")
        rows, variance = total_of(known.lattice)
        # Err towards few rows: they need the larger count.
        few = max(rows - variance**0.5, 1.0)
        enough = min(MIXTURE_METHOD.largest_repeated_count, (MIXTURE_METHOD.count_deviation * few) ** -2 / units)
        share = shares_of(goal, rows, units, public=False).total
        wanted = min(MIXTURE_METHOD.count_growth * wanted, max(share, enough))
    return spent


def _only_singles(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Single columns, for all that is left."""
    return state, (yield from _measure_singles(state, left))


def _singles(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Single columns, for their share."""
    return state, (yield from _measure_singles(state, state.shares.singles * state.whole))


def _distances(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Distances of pairs from independence."""
    units = state.shares.distances * state.whole
    if not units:
        return state, 0.0
    seen = yield from distances_of_pairs(state.known, state.goal.of_size(2), state.rows, units)
    return replace(state, seen=seen), units


def _divide(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """If distances were measured, decide on the share of pairs, and spend the rest on single columns."""
    goal, scopes, seen = state.goal, state.goal.of_size(2), state.seen
    unclear = clarity(goal, state.rows, state.units) < ENSEMBLE_FIT.clear_from
    weights = {
        pair: state.importance[pair] ** MIXTURE_METHOD.weight_power
        * distance ** MIXTURE_METHOD.distance_powers[unclear]
        * goal.freedom(pair) ** MIXTURE_METHOD.freedom_powers[unclear]
        for pair, distance in zip(scopes, np.ones(len(scopes)) if seen is None else seen.about, strict=True)
    }
    if seen is None:
        return replace(state, pairs=weights), 0.0
    wanted, rows = (state.singles, weights), max(state.rows, 1.0)
    split = best_split(state.known, seen, wanted, state.importance, left, rows)
    cost = yield from _measure_singles(state, (1 - split.part) * left)
    return replace(state, pairs=split.weights, split=split), cost


def _pairs(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Pairs, for what is left but for the share of triples."""
    shares = state.shares
    triples = left * shares.triples / (shares.pairs + shares.triples)
    steps = steps_within(state.known, state.pairs, left - triples)
    return state, (yield from _measure(steps, "pairs of columns, for a release"))


def _triples(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Small triples; where only some pairs are known, those that have at least two of them."""
    goal, known = state.goal, state.known_pairs
    if not state.shares.triples:
        return state, 0.0
    weights = {
        each: state.importance[each] ** MIXTURE_METHOD.weight_power
        * goal.freedom(each) ** MIXTURE_METHOD.triple_freedom_power
        for each in goal.of_size(3)
        if goal.cells(each) <= state.shares.room
        and (not known or sum(pair in known for pair in combinations(each, 2)) > 1)
    }
    steps = steps_within(state.known, weights, left)
    return state, (yield from _measure(steps, "triples of columns, for a release"))


def _rest(state: MixtureState, left: float) -> Procedure[tuple[MixtureState, float]]:
    """Single columns again, if much is left: a pair with a column of one value adds nothing to the other column."""
    if left <= MIXTURE_METHOD.least_share * state.units:
        return state, 0.0
    return state, (yield from _measure_singles(state, left))


def _measure_singles(state: MixtureState, units: float) -> Procedure[float]:
    return (yield from _measure(steps_within(state.known, state.singles, units), "single columns, for a release"))


def _measure(steps: Steps, why: str) -> Procedure[float]:
    """Take some steps; returns their cost."""
    if steps.steps:
        yield Measure(steps, why)
    return steps.price


def distances_of_pairs(known: Estimator, scopes: list[Columns], rows: float, units: float) -> Procedure[PairDistances]:
    """Noisy distances of pairs from the products of their columns."""
    singles = sorted({(name,) for scope in scopes for name in scope})
    alone = product_of(known.domain, noisy_marginals(known.lattice, singles), total=max(rows, 1.0))
    expected = [alone.marginal(scope) for scope in scopes]
    request = distances_for(known, scopes, expected, units, "how far pairs are from independent")
    distances = yield request
    return PairDistances(alone, tuple(scopes), np.asarray(distances, dtype=np.float64), float(request.sigma))


def shares_of(goal: Goal, rows: float, units: float, *, public: bool) -> BudgetShares:
    """The split of the budget, by sizes, rows and budget alone; `public` says whether the number of rows is."""
    clear = clarity(goal, rows, units)
    deep = max(map(len, goal.scopes))
    more = 1 + MIXTURE_METHOD.clarity_of_double_singles / clear
    cells = sum(goal.domain[name].size for name in goal.names)
    # An error of the number of rows is one of every marginal; it matters where rows are few or other errors small.
    total = max(MIXTURE_METHOD.first_count, more / cells, MIXTURE_METHOD.count_at_unit_clarity / clear)
    total = 0.0 if public else min(MIXTURE_METHOD.largest_count, _balanced(rows, units, clear), total)
    singles = min(1.0, MIXTURE_METHOD.singles * more) if deep > 1 else 1.0
    if singles == 1.0:
        return BudgetShares(total, 1.0 - total, 0.0, 0.0, 0.0, 0)
    room = int(clear**MIXTURE_METHOD.triple_cells_power)
    covered = _covered(goal, room) if deep > 2 else 0.0
    triples = MIXTURE_METHOD.triples * covered**0.5 if covered >= MIXTURE_METHOD.least_triples else 0.0
    left = 1.0 - total
    singles = singles * left * (1 + (MIXTURE_METHOD.singles_with_triples * covered if triples else 0.0))
    distances = _share_of_distances(goal, rows, units) * left
    triples = min(triples, 1 - singles) * left
    return BudgetShares(total, singles, distances, left - singles - distances - triples, triples, room)


def _share_of_distances(goal: Goal, rows: float, units: float) -> float:
    """The share of the distances of pairs, of what counting leaves; 0 if all columns have two values."""
    pairs = goal.of_size(2)
    if all(goal.cells(pair) <= 4 for pair in pairs):
        return 0.0
    wanted = len(pairs) / (MIXTURE_METHOD.distance_deviation * max(rows, 1.0)) ** 2 / units
    return max(MIXTURE_METHOD.distances, min(MIXTURE_METHOD.largest_distances, wanted))


def size_power(clear: float) -> float:
    """The power of a column's size in its weight."""
    return MIXTURE_METHOD.size_power * clear / (clear + MIXTURE_METHOD.clarity_of_half_size_power)


def _balanced(rows: float, units: float, clear: float) -> float:
    """The part of a budget for the number of rows beyond which single columns lose more than it gains.

    With a part s the number is off by 1/(√s n μ), and an error E of single columns grows to about (1 + s/2) E: the sum
    is least at s = (n μ E)^(−2/3).
    """
    error = min(1.0, MIXTURE_METHOD.singles_error_at_unit_clarity / clear)
    return float((max(rows, 1.0) * units**0.5 * error) ** (-2 / 3))


def _importance(goal: Goal) -> Mapping[Columns, float]:
    """The weight of the goal's marginals that contain each set of up to three columns."""
    found = dict.fromkeys(goal.below, 0.0)
    for scope, weight in goal.weights:
        for size in range(1, min(3, len(scope)) + 1):
            for chosen in combinations(scope, size):
                found[chosen] += weight
    return found


def _covered(goal: Goal, room: int) -> float:
    """The part of the goal's triples, by weight, that have at most `room` cells."""
    importance, triples = _importance(goal), goal.of_size(3)
    whole = sum(importance[each] for each in triples)
    return sum(importance[each] for each in triples if goal.cells(each) <= room) / whole if whole else 0.0
