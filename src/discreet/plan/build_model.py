"""How a model is built: measure single columns and pairs, join pairs that are not explained, and probe its error.

A procedure (`request.py`): it says what it wants measured, chosen or probed, and reads no row itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Literal

import numpy as np

from discreet.estimate.estimator import Estimator
from discreet.estimate.measurements import GaussianResiduals
from discreet.model.interface import noisy_marginals, total_of
from discreet.model.mixture.mixture_model import Mixture, fit_mixture
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import Tree
from discreet.plan.allocation import fill_each
from discreet.plan.model_forecast import PAIR_UNITS, SINGLE_UNITS, TOTAL_UNITS, Stream, probes
from discreet.plan.model_structure import MOST_CLIQUE_CELLS, fit_scopes, join_pairs, surprising
from discreet.plan.plan import Choose, Measure, Procedure, Quantile, Steps
from discreet.plan.steps import Target, lattice_step
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.query.residual import axes_of
from discreet.types import Columns

ModelKind = Literal["tree", "mixture"]

# Units for a residual of a pair or triple that has joined, for one selection, for one probe, and for every triple of a
# mixture: first, and if that is promising once more.
TOP_UP, SELECTION, PROBE, MIXED = 1.0, 1.0, 10.0, (1 / 24, 1 / 16)
# The number of public questions in a probe, and the quantile of their errors that it measures.
PROBES, SHARE = 10_000, 0.999
# In parts of the wanted error: a model with at most this error is used, one with at least this error is given up.
GOOD, GIVEN_UP = 0.7, 1.5
# A mixture fitted to pairs with at least this error is given up: triples would not make it good enough.
MIXABLE = 4.0
# A residual is measured again if its precision grows by at least this factor.
LEAST_GAIN = 1.1
# The number of selections in each cycle; then a probe decides. If the model is not good enough, the next cycle first
# measures everything in it better, by this factor.
SELECTIONS, BETTER = (40, 16, 16), 1.3
# The number of pairs and triples of a question's columns that are selected after a failed check.
MENDED = 4
# No more candidates than this are compared at once, and no more triples measured.
MOST_MODEL_CANDIDATES = 20_000
# An error in a pair moves more answers, and moves them more, than the same error in a triple.
EMPHASIS = {2: 3, 3: 2}
# If a tree leaves a larger share of the pairs unexplained, the columns depend on a hidden variable.
UNEXPLAINED = 0.02


@dataclass(frozen=True, slots=True)
class Built:
    """What a model is rebuilt from: its kind, its columns and the scopes that it is fitted to."""

    kind: ModelKind
    columns: Columns
    scopes: tuple[Columns, ...]


def model_of(built: Built, known: Estimator) -> Tree | Mixture:
    """The model: a function of released values, so that everyone who reads the same ledger has the same one."""
    if built.kind == "tree":
        return fit_scopes(known, built.scopes, built.columns)
    total, _ = total_of(known.lattice)
    # Few columns have no triples, and perhaps none was measured.
    scopes = combinations(built.columns, min(3, len(built.columns)))
    return fit_mixture(known.domain, noisy_marginals(known.lattice, list(scopes)), total=max(total, 1.0))


def build(known: Estimator, target: Target, stream: Stream) -> Procedure[Built | None]:
    """Build a model of the columns that were asked about, good enough for the target; None if no model is.

    Singles first, and all pairs roughly; pairs that are not explained join a tree and are measured well; pairs and
    triples that it is most wrong about are selected and join it; a probe decides. If no tree is good enough, a
    mixture is tried.
    """
    columns = tuple(sorted(stream.columns))
    unit = 1 / target.variance
    yield from _top_up(known, [()], TOTAL_UNITS * unit, "the number of rows, for a model")
    yield from _top_up(known, [(name,) for name in columns], SINGLE_UNITS * unit, "single columns, for a model")
    yield from _top_up(known, list(combinations(columns, 2)), PAIR_UNITS * unit, "pairs of columns, for a model")
    scopes, tree = join_pairs(known, columns)
    left = surprising(known, tree, [pair for pair in combinations(columns, 2) if pair not in scopes])
    if len(left) <= UNEXPLAINED * len(columns) * (len(columns) - 1) / 2:
        found = yield from _grow(known, target, stream, columns, scopes, tree)
        if found is not None:
            return found
    return (yield from _mix(known, target, stream, columns))


def _grow(
    known: Estimator, target: Target, stream: Stream, columns: Columns, scopes: list[Columns], tree: Tree
) -> Procedure[Built | None]:
    """A tree that is good enough, or None."""
    unit = 1 / target.variance
    for _ in range(2):
        yield from _top_up(known, scopes, TOP_UP * unit, "pairs that a model does not explain")
        scopes, tree = join_pairs(known, columns, scopes)
    yield from _top_up(known, scopes, TOP_UP * unit, "pairs that a model does not explain")
    tree = fit_scopes(known, scopes, columns, tree)
    for cycle, times in enumerate(SELECTIONS):
        if cycle:
            better = BETTER**cycle * unit
            yield from _top_up(
                known, [(name,) for name in columns], SINGLE_UNITS * better, "single columns, for a model"
            )
            yield from _top_up(known, scopes, TOP_UP * better, "pairs that a model does not explain")
            tree = fit_scopes(known, scopes, columns, tree)
        scopes, tree = yield from _select(known, tree, columns, scopes, unit, times)
        off = yield from _probe(tree, stream, columns, unit)
        if off <= GOOD * target.error:
            return Built("tree", columns, tuple(scopes))
        if off > GIVEN_UP * target.error:
            break
    return None


def _mix(known: Estimator, target: Target, stream: Stream, columns: Columns) -> Procedure[Built | None]:
    """A mixture of products that is good enough, or None. Many mixtures agree on all pairs, so triples are measured."""
    unit = 1 / target.variance
    triples = list(combinations(columns, 3))
    pieces = sum(prod(axis.parts - 1 for axis in axes_of(known.domain, triple)) for triple in triples)
    built = Built("mixture", columns, ())
    off = yield from _probe(model_of(built, known), stream, columns, unit)
    if off > MIXABLE * target.error or pieces > MOST_MODEL_CANDIDATES:
        return None
    for units in MIXED:
        yield from _top_up(known, triples, units * unit, "triples of columns, for a mixture")
        off = yield from _probe(model_of(built, known), stream, columns, unit)
        if off <= GOOD * target.error:
            return built
        if off > GIVEN_UP * target.error:
            break
    return None


def _top_up(known: Estimator, scopes: Sequence[Columns], units: float, why: str) -> Procedure[None]:
    """Raise every residual of all columns of each scope to the precision that `units` buy, where it is lower."""
    steps = [step for scope in scopes if (step := _raise(known, scope, units)) is not None]
    if steps:
        yield Measure(Steps(tuple(steps)), why)


def _raise(known: Estimator, scope: Columns, units: float) -> GaussianResiduals | None:
    view = known.lattice.view(scope)
    if view is None:
        return None
    wanted = view.precision.copy()
    top = (slice(1, None),) * len(scope)
    wanted[top] = fill_each(view.price[top], view.precision[top], units, least_gain=LEAST_GAIN)
    return lattice_step(known, scope, wanted)


def mend(known: Estimator, built: Built, tree: Tree, question: Linear, target: Target) -> Procedure[Built]:
    """Add to a tree the pairs or triples with its largest errors, among the columns of a question it failed on."""
    scopes, _ = yield from _select(
        known, tree, built.columns, list(built.scopes), 1 / target.variance, MENDED, among=question.scope
    )
    return replace(built, scopes=tuple(scopes))


def _select(
    known: Estimator,
    tree: Tree,
    columns: Columns,
    scopes: list[Columns],
    unit: float,
    times: int,
    *,
    among: Columns | None = None,
) -> Procedure[tuple[list[Columns], Tree]]:
    """Add to the tree, one by one, the pairs and triples with its largest errors, where they fit."""
    names = [name for name in among or columns if known.domain[name].size == 2]
    candidates = [each for size in (2, 3) for each in combinations(names, size)][:MOST_MODEL_CANDIDATES]
    candidates = [each for each in candidates if each not in scopes]
    emphasis = np.array([EMPHASIS[len(each)] for each in candidates], dtype=np.int64)
    questions = tuple(EMPHASIS[len(each)] * _character(each) for each in candidates)
    sizes = {name: known.domain[name].size for name in columns}
    for _ in range(times if candidates else 0):
        expected = tuple((emphasis * np.rint(tree.characters(candidates)).astype(np.int64)).tolist())
        # A selection of bounded range e costs as much as a Gaussian with mu = e/2.
        epsilon = Fraction(2 * (SELECTION * unit) ** 0.5).limit_denominator(10**9)
        chosen = candidates[(yield Choose(questions, expected, epsilon, "where a model is most wrong"))]
        if chosen not in scopes and fits(scopes, chosen, sizes, MOST_CLIQUE_CELLS):
            yield from _top_up(known, [chosen], TOP_UP * unit, "where a model is most wrong")
            scopes = [*scopes, chosen]
            tree = fit_scopes(known, scopes, columns, tree)
    return scopes, tree


def _probe(model: Tree | Mixture, stream: Stream, columns: Columns, unit: float) -> Procedure[int]:
    """A noisy quantile of the model's errors on public questions like those that were asked."""
    questions = probes(stream, columns, model, PROBES)
    expected = tuple(np.rint(model.answers(questions)).astype(np.int64).tolist())
    sigma = Fraction((PROBE * unit) ** -0.5).limit_denominator(10**6)
    off: int = yield Quantile(questions, expected, sigma, round(SHARE * len(questions)), "how wrong a model is")
    return off


def _character(columns: Columns) -> Linear:
    """+1 for rows with an even number of second cells, −1 for the others."""
    signs = np.array([1, -1], dtype=np.int64)
    return Linear([Product(tuple(Factor((name,), signs) for name in columns))])
