"""Which columns a model joins: pairs whose noisy counts it cannot explain, as long as its tables stay small."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from discreet.estimate.estimator import Estimator
from discreet.model.interface import Model, NoisyMarginal, noisy_marginals, total_of
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import Tree, fit_tree
from discreet.query.residual import axes_of
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# The most cells of all tables of a model: an answer takes a fraction of a millisecond.
MOST_CLIQUE_CELLS = 2**16
# The most of them for pairs that were measured only roughly; the rest is for errors that are found later.
GLANCED_CELLS = 2**14
# A pair is not explained if its p-value is below this. Measuring a pair in vain is cheaper than missing one.
UNLIKELY = 0.003
# The number of pairs that join before the model is fitted again: those that join explain others.
AT_ONCE = 8
MOST_JOINING_ROUNDS = 40


def fit_scopes(known: Estimator, scopes: Sequence[Columns], columns: Columns, start: Tree | None = None) -> Tree:
    """The distribution of largest entropy that agrees with what is known of some scopes and of every single column."""
    every = [*scopes, *((name,) for name in columns)]
    total, _ = total_of(known.lattice)
    # Pairs inside a triple that did not join themselves were measured only roughly: their noise would be fitted.
    chosen = set(every)
    measurements = [each for each in noisy_marginals(known.lattice, every) if each.columns in chosen]
    return fit_tree(known.domain, measurements, total=max(total, 1.0), scopes=every, start=start)


def join_pairs(known: Estimator, columns: Columns, scopes: Sequence[Columns] = ()) -> tuple[list[Columns], Tree]:
    """Join pairs until what is known of every pair is explained, or the tables would be too large."""
    found = list(scopes)
    model = fit_scopes(known, found, columns)
    pairs = list(combinations(columns, 2))
    for _ in range(MOST_JOINING_ROUNDS):
        suspects = surprising(known, model, [pair for pair in pairs if pair not in found])
        before = len(found)
        # In the first round a forest: of pairs that close a ring, the weakest is explained by the others.
        roots = {name: name for name in columns}
        for pair in suspects:
            ends = [_root(roots, name) for name in pair]
            if ends[0] != ends[1] and fits(found, pair, _sizes(known.domain, columns), GLANCED_CELLS):
                found.append(pair)
                roots[ends[0]] = ends[1]
                if before and len(found) >= before + AT_ONCE:
                    break
        if len(found) == before:
            break
        model = fit_scopes(known, found, columns, model)
    return found, model


def surprising(known: Estimator, model: Model, pairs: Iterable[Columns]) -> list[Columns]:
    """The pairs that a model does not explain, the most dependent first."""
    found = []
    for pair in pairs:
        measurements = [each for each in noisy_marginals(known.lattice, [pair]) if each.columns == pair]
        if not measurements:
            continue
        marginal = model.marginal(pair)
        distance = sum(_distance(each, marginal, known.domain) for each in measurements)
        freedom = sum(_freedom(each, known.domain) for each in measurements)
        if float(chdtrc(freedom, distance)) < UNLIKELY:
            found.append((-_dependence(marginal, distance - freedom, measurements), pair))
    return [pair for _, pair in sorted(found)]


def _distance(measurement: NoisyMarginal, marginal: Numbers, domain: Domain) -> float:
    residual = measurement.residual(marginal, domain)
    return float(measurement.weight * np.sum(residual * residual))


def _freedom(measurement: NoisyMarginal, domain: Domain) -> int:
    """The degrees of freedom of the noise of a measurement: contrasts of a category add up to zero."""
    free = 1
    for axis, part in zip(axes_of(domain, measurement.columns), measurement.parts or (), strict=True):
        free *= axis.rows(part) if axis.levels else axis.cells - 1
    return free


def _dependence(marginal: Numbers, excess: float, measurements: Sequence[NoisyMarginal]) -> float:
    """About how dependent two columns are beyond the model, with the expected share of the noise subtracted.

    The squared distance in rows, over the spread of each column; so skewed columns that always go together count.
    """
    weight = max(measurement.weight for measurement in measurements)
    one, other = marginal.sum(axis=1), marginal.sum(axis=0)
    total = max(float(marginal.sum()), 1.0)
    spreads = [max(1.0 - float(np.sum((side / total) ** 2)), 1e-3) for side in (one, other)]
    return max(excess, 0.0) / weight / (spreads[0] * spreads[1])


def _root(roots: dict[str, str], name: str) -> str:
    while roots[name] != name:
        name = roots[name]
    return name


def _sizes(domain: Domain, columns: Columns) -> dict[str, int]:
    return {name: domain[name].size for name in columns}
