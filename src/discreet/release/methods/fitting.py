"""Fits one model to all that is known of a goal's columns: residuals, and marginals that were measured whole."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, pi, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.estimate.estimator import DirectAnswer, Estimator
from discreet.estimate.residual_lattice import MOST_RESIDUALS, Lattice
from discreet.model.interface import LARGEST_WEIGHT, NoisyMarginal, noisy_marginals, total_of
from discreet.model.mixture.ensemble import Tell, fit_ensemble
from discreet.model.mixture.features import MOST_FEATURES
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import Tree, fit_tree
from discreet.query.linear import Marginal
from discreet.query.residual import Residual, axes_of, axis_of
from discreet.release.error.interactions import clarity
from discreet.release.methods.pair_split import PairDistances
from discreet.release.task import Goal
from discreet.types import Columns

# A mixture is fitted to no more numbers than this: every step of the fit uses all of them.
MOST_FITTED_CELLS = 2**22


@dataclass(frozen=True, slots=True)
class EnsembleFitTuning:
    """Constants of the fit of an ensemble, chosen on drawn tables and three public ones (bench/release.py)."""

    # A member has a component for each this many rows that exceed the noise, within these limits.
    rows_per_component: float = 50.0
    fewest_components: int = 4
    most_components: int = 256
    # Members of an ensemble: more if they are small, so that there are this many components in all; as few as
    # `fewest_members` where all of the goal is triples that were measured, which take time.
    members: int = 24
    components_in_all: int = 1000
    fewest_members: int = 6
    steps: int = 600
    # Below this clarity (`interactions.clarity`), a tree of the strongest pairs with at most this many cells is blended
    # in: the ensemble learns a little of every pair, most of it noise, and the tree learns a few pairs well.
    clear_from: float = 15.0
    blended_tree_cells: int = 4000
    blended_tree_share: float = 0.25
    # If only some pairs were measured, at most this part of all, the model is a tree that holds them, if it has at most
    # this many cells: a mixture would fill in the other pairs at random.
    most_tree_cells: int = 2**17
    most_pairs_in_tree: float = 0.5
    # A pair is strong if it is further from independent than this part of its noise.
    strong_pair: float = 0.5


ENSEMBLE_FIT = EnsembleFitTuning()


def too_large_to_fit(goal: Goal) -> str:
    """Why the marginals of a goal cannot be measured whole and fitted; empty if they can.

    >>> from discreet.release.task import goal_of
    >>> from discreet.schema.column import Integers
    >>> from discreet.schema.domain import Domain
    >>> wide = Domain({name: Integers(1, 2500, outside="drop", missing="drop") for name in "ab"})
    >>> too_large_to_fit(goal_of([["a", "b"]], wide)).split(".")[0]
    'the marginals have 6250000 cells together; the limit is 4194304'
    """
    cells = sum(goal.cells(scope) for scope in goal.scopes)
    if cells > MOST_FITTED_CELLS:
        return (
            f"the marginals have {cells} cells together; the limit is {MOST_FITTED_CELLS}. Ask for fewer columns "
            "at once."
        )
    deepest = max(goal.scopes, key=lambda scope: _number_of_residuals(goal, scope))
    residuals = _number_of_residuals(goal, deepest)
    if residuals > MOST_RESIDUALS:
        return (
            f"the marginal of {', '.join(deepest)} has {residuals} residuals; the limit is {MOST_RESIDUALS}. "
            "Ask for fewer columns at once."
        )
    features = 1 + sum(axis_of(goal.domain[name]).starts[-1] for name in goal.names)
    if features > MOST_FEATURES:
        return (
            f"the single columns have {features} features together; a mixture is fitted to {MOST_FEATURES}. "
            "Leave out columns with many cells."
        )
    return ""


def fitted_to_all(known: Estimator, goal: Goal, units: float, tell: Tell | None = None) -> Mixture:
    """The model of all that is known of a goal's columns, with marginals of any order. `units` are squared mu.

    Marginals that were measured whole are decomposed into residuals, which loses nothing, and averaged with those of
    the lattice by precision. Counts of conditions that were measured directly are not used.
    """
    everything = joined_lattice(known, goal)
    rows, _ = total_of(everything)
    return fit_ensemble(
        goal.domain,
        noisy_marginals(everything, list(everything.blocks)),
        total=max(rows, 1.0),
        members=ENSEMBLE_FIT.members,
        components=components_of(rows, max(units, worth(everything, goal))),
        steps=ENSEMBLE_FIT.steps,
        tell=tell,
    )


def components_of(rows: float, units: float) -> int:
    """The number of components of a member of the ensemble."""
    wanted = max(rows, 1.0) * units**0.5 / ENSEMBLE_FIT.rows_per_component
    return int(np.clip(wanted, ENSEMBLE_FIT.fewest_components, ENSEMBLE_FIT.most_components))


def members_for(components: int, measured: float) -> int:
    """The number of members of an ensemble; they differ most in the part of the goal that was not `measured` itself."""
    unmeasured = round(ENSEMBLE_FIT.members * (1 - measured) ** 2)
    return max(ENSEMBLE_FIT.fewest_members, unmeasured, ENSEMBLE_FIT.components_in_all // components)


def rows_of(lattice: Lattice) -> float:
    """The number of rows of a model: a little less than the estimate where that is mostly noise, and at least 1.

    For an estimate n ± σ it is n/(1 + σ²/n²): too many rows cause larger errors than too few, because then most cells
    are noise too.
    """
    rows, variance = total_of(lattice)
    return max(1.0, rows / (1 + variance / rows**2)) if rows > 0 else 1.0


def worth(lattice: Lattice, goal: Goal) -> float:
    """The price of the known residuals of up to three columns of a goal, one by one, in squared mu."""
    blocks = [lattice.blocks.get(scope) for scope in goal.below if len(scope) <= 3]
    return sum(float((block.price * block.precision).sum()) for block in blocks if block is not None)


def fit_low_order(
    known: Estimator, goal: Goal, units: float, seen: PairDistances | None = None, tell: Tell | None = None
) -> Mixture | Blend | Tree:
    """The model of all that is known of up to three columns of a goal, and of the measured distances of pairs."""
    rows, _ = total_of(known.lattice)
    # What was paid before counts as much as what is paid now.
    units = max(units, worth(known.lattice, goal))
    measured = noisy_marginals(known.lattice, [scope for scope in goal.below if len(scope) <= 3])
    components = components_of(rows, units)
    members = members_for(components, _measured_triples(known, goal))
    ensemble = fit_ensemble(
        goal.domain,
        measured,
        total=rows_of(known.lattice),
        members=members,
        components=components,
        steps=ENSEMBLE_FIT.steps,
        supposed=() if seen is None else _supposed_independent(known, seen),
        tell=tell,
    )
    if clarity(goal, rows, units) > ENSEMBLE_FIT.clear_from or len(ensemble.weights) == 1:
        return ensemble
    tree, share = _tree_of_strongest(known, goal, ensemble), ENSEMBLE_FIT.blended_tree_share
    return Blend([ensemble, tree], [1 - share, share])


def _measured_triples(known: Estimator, goal: Goal) -> float:
    """The part of the goal, by weight, that is of three columns and was measured as it is asked for."""
    blocks = known.lattice.blocks
    return sum(
        weight
        for scope, weight in goal.weights
        if len(scope) == 3 and scope in blocks and blocks[scope].precision.min(initial=1.0) > 0
    )


def tree_of_pairs(known: Estimator, goal: Goal, pairs: Collection[Columns]) -> Tree | None:
    """The tree of some pairs and all single columns, if the pairs are few and fit; and of the triples that fit too."""
    sizes = {name: goal.domain[name].size for name in goal.names}
    if not 0 < len(pairs) <= ENSEMBLE_FIT.most_pairs_in_tree * len(goal.of_size(2)):
        return None
    scopes: list[Columns] = [(name,) for name in sizes]
    for pair in pairs:
        if not fits(scopes, pair, sizes, ENSEMBLE_FIT.most_tree_cells):
            return None
        scopes.append(pair)
    for triple in goal.of_size(3):
        if triple in known.lattice.blocks and fits(scopes, triple, sizes, ENSEMBLE_FIT.most_tree_cells):
            scopes.append(triple)
    return fit_tree(goal.domain, _marginals_of_exactly(known, scopes), total=rows_of(known.lattice), scopes=scopes)


def _tree_of_strongest(known: Estimator, goal: Goal, model: Mixture) -> Tree:
    """The tree of all single columns and of the pairs that, by a model, exceed their noise most."""
    names = goal.names
    beyond = {pair: _beyond_noise(known, goal, model, pair) for pair in goal.of_size(2)}
    sizes = {name: goal.domain[name].size for name in names}
    scopes: list[Columns] = [(name,) for name in names]
    for pair in sorted(beyond, key=lambda each: (-beyond[each], each)):
        if beyond[pair] > 0 and fits(scopes, pair, sizes, max(ENSEMBLE_FIT.blended_tree_cells, sum(sizes.values()))):
            scopes.append(pair)
    return fit_tree(goal.domain, _marginals_of_exactly(known, scopes), total=model.total, scopes=scopes)


def _beyond_noise(known: Estimator, goal: Goal, model: Mixture, pair: Columns) -> float:
    """The L1 distance of a pair from independence, in rows, less a part of the noise with which it was measured."""
    block = known.lattice.blocks.get(pair)
    precision = 0.0 if block is None else float(block.precision.min(initial=inf))
    if precision == 0.0:
        return 0.0
    alone = np.outer(*(model.marginal([name]) for name in pair)) / model.total
    noise = goal.cells(pair) * sqrt(2 / pi / precision)
    return float(np.abs(model.marginal(pair) - alone).sum()) - ENSEMBLE_FIT.strong_pair * noise


def _marginals_of_exactly(known: Estimator, scopes: Sequence[Columns]) -> list[NoisyMarginal]:
    """What is known of some scopes, and not of their subsets unless they are among them."""
    return [each for each in noisy_marginals(known.lattice, scopes) if each.columns in set(scopes)]


def _supposed_independent(known: Estimator, seen: PairDistances) -> list[NoisyMarginal]:
    """Pairs that were never measured: each is supposed to be independent, within its noisy distance from that."""
    found = []
    for pair, distance in zip(seen.pairs, seen.about, strict=True):
        block = known.lattice.block(pair)
        if block.precision.any():
            continue
        expected = seen.alone.marginal(pair)
        # The variance of normal numbers whose mean absolute value is the distance of a cell.
        variance = pi / 2 * (distance / expected.size) ** 2
        for parts in product(*(range(1, axis.parts) for axis in block.axes)):
            gain = prod(axis.gain(part) for axis, part in zip(block.axes, parts, strict=True))
            nothing = NoisyMarginal(pair, parts, np.zeros(()), min(1 / (variance * gain), LARGEST_WEIGHT))
            found.append(replace(nothing, values=nothing.residual(expected, known.domain)))
    return found


def joined_lattice(known: Estimator, goal: Goal) -> Lattice:
    """The residuals of a goal's columns, from the lattice and from marginals that were measured whole."""
    names = set(goal.names)
    blocks = {
        columns: replace(block, precision=block.precision.copy(), values=block.values.copy())
        for columns, block in known.lattice.blocks.items()
        if block.values is not None and names.issuperset(columns)
    }
    found = Lattice(known.domain, known.lattice.unit, blocks)
    for question, answer in known.direct_answers.items():
        if isinstance(question, Marginal) and question.weight is None and names.issuperset(question.columns):
            for residual, variance, numbers in _residuals(question, answer, known):
                found.add(residual, variance=variance, values=numbers)
    return found


def _residuals(
    question: Marginal, answer: DirectAnswer, known: Estimator
) -> Iterator[tuple[Residual, float, NDArray[np.int64]]]:
    """Every residual of a marginal with the same noise in all cells, the variance of its noise, and its numbers."""
    columns: Columns = question.scope
    order = [question.columns.index(name) for name in columns]
    counts = answer.values.reshape(question.shape(known.domain)).transpose(order)
    axes = axes_of(known.domain, columns)
    for parts in product(*(range(axis.parts) for axis in axes)):
        others = tuple(place for place, part in enumerate(parts) if not part)
        # A sum over the other columns has the noise of all their cells; a measuring matrix multiplies it by its gain.
        gain = prod(axis.gain(part) for axis, part in zip(axes, parts, strict=True) if part)
        numbers = counts.sum(axis=others, keepdims=True)
        for place, (axis, part) in enumerate(zip(axes, parts, strict=True)):
            if part:
                numbers = axis.apply(part, numbers, place)
        residual = Residual(tuple((name, part) for name, part in zip(columns, parts, strict=True) if part))
        variance = answer.variance * gain * prod(counts.shape[place] for place in others)
        # A lattice takes whole numbers. Only the average of two measurements is none.
        yield residual, variance, np.rint(numbers).ravel().astype(np.int64)


def _number_of_residuals(goal: Goal, scope: Columns) -> int:
    return prod(axis.parts for axis in axes_of(goal.domain, scope))
