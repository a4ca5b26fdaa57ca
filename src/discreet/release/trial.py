"""Whether a tree of the strongest pairs is a better model of a table than mixtures: a small part of the budget tells.

On some tables few columns go together, and closely: a tree is right about them, and `adaptive` finds out where. On
others everything goes together a little, and mixtures are right. No public fact says which: both are made of a first
look at all pairs, and how far both are from the table is measured.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np

from discreet.errors import TooLarge
from discreet.known.known import Known
from discreet.model.alone import product_of
from discreet.model.cliques import fits
from discreet.model.ensemble import fit_ensemble
from discreet.model.looks import noisy_marginals, total_of
from discreet.model.mixture import Mixture
from discreet.model.protocol import Model, NoisyMarginal
from discreet.model.tree import Tree, fit_tree
from discreet.plan.request import Measure, Procedure
from discreet.release.brief import Brief
from discreet.release.counting import paid
from discreet.release.far import deviation_for, distances_for
from discreet.release.goal import Goal
from discreet.release.layers import sampled
from discreet.release.pairs import FEW, clarity, components_of
from discreet.release.topping import steps_within
from discreet.types import Columns, Numbers

# The first look is as good as makes rows stand out of the noise by this much (`pairs.clarity`), for at most and at
# least these parts of the budget; single columns get so much of it, and larger pairs more by this power.
CLEAR, MOST, LEAST, SINGLES = 7.0, 0.02, 0.002, 0.3
# The verdict gets this part of the budget. It is asked for only if a deviation of its noise is below this part of the
# rows, and by so many marginals.
VERDICT, SHARP, MARGINALS = 0.005, 0.01, 60
# So many cells has the tree; it must be nearer than the mixtures by this factor.
CELLS, NEARER = 2**14, 0.97
# A pair is in the tree if it is so many deviations further from independent than its noise; there is no tree if more
# than this part of all pairs are.
DEVIATIONS, MOST_STRONG = 3.0, 0.8
BY_FREEDOM = 0.4
MEMBERS, TOGETHER, STEPS = 6, 400, 300
# Of more pairs than this `adaptive` takes minutes.
MOST_PAIRS = 500


def worthwhile(brief: Brief, rows: float) -> bool:
    """Whether a trial would tell something, by public facts."""
    goal = brief.goal
    pairs = [scope for scope in goal.below if len(scope) == 2]
    if brief.known.pure or not 3 <= len(pairs) <= MOST_PAIRS:
        return False
    judged = 2 * [scope for scope, _ in sampled(goal, MARGINALS)]
    # The noise of a mean is smaller than that of each.
    noise = deviation_for(brief.known, judged, VERDICT * float(brief.units)) / len(judged) ** 0.5
    return bool(noise <= SHARP * rows)


def tree_is_better(brief: Brief) -> Procedure[tuple[bool, Fraction]]:
    """Whether a tree is nearer to the goal's marginals than mixtures, as far as a small part of the budget tells.

    And what that cost: no more than a fortieth.
    """
    known, goal, units = brief.known, brief.goal, float(brief.units)
    rows, _ = total_of(known.lattice)
    part = min(MOST, max(LEAST, (CLEAR / clarity(goal, rows, units)) ** 2))
    spent = Fraction(0)
    for size, share in ((1, SINGLES), (2, 1 - SINGLES)):
        wanted = {scope: _freedom(goal, scope) ** BY_FREEDOM for scope in goal.below if len(scope) == size}
        steps = steps_within(known, wanted, share * part * units)
        if steps.steps:
            request = Measure(steps, "a first look, for a release")
            yield request
            spent += paid(known, request)
    mixtures, tree = _models(known, goal, max(rows, 1.0), part * units)
    if tree is None:
        return False, spent
    scopes, expected = _expected(goal, (mixtures, tree))
    verdict = distances_for(known, scopes, expected, VERDICT * units, "whether a tree or mixtures are nearer")
    heard = yield verdict
    far, near = np.reshape(heard, (2, -1)).sum(axis=1)
    return bool(near < NEARER * far), spent + paid(known, verdict)


def _models(known: Known, goal: Goal, rows: float, units: float) -> tuple[Mixture, Tree | None]:
    """Mixtures and a tree, fitted to what is known of pairs; no tree if no pair stands out, or most of them do."""
    looks = noisy_marginals(known.lattice, [scope for scope in goal.below if len(scope) == 2])
    components = components_of(rows, units)
    members = max(MEMBERS, TOGETHER // components)
    mixtures = fit_ensemble(goal.domain, looks, total=rows, members=members, components=components, steps=STEPS)
    scopes = _strong(goal, looks, rows)
    strong = sum(len(scope) == 2 for scope in scopes)
    if len(mixtures.weights) == 1 or not 0 < strong <= FEW * sum(len(scope) == 2 for scope in goal.below):
        return mixtures, None
    held = [look for look in looks if look.columns in set(scopes)]
    return mixtures, fit_tree(goal.domain, held, total=rows, scopes=scopes)


def _strong(goal: Goal, looks: Sequence[NoisyMarginal], rows: float) -> list[Columns]:
    """The single columns, and the pairs that stand out of their noise most, as many as a tree holds; if not all do."""
    alone = product_of(goal.domain, looks, total=rows)
    names = sorted({name for scope in goal.scopes for name in scope})
    sizes = {name: goal.domain[name].size for name in names}
    beyond: dict[Columns, float] = {}
    for pair in goal.below:
        if len(pair) != 2:
            continue
        off = [
            look.weight**0.5 * look.residual(alone.marginal(pair), goal.domain)
            for look in looks
            if look.columns == pair
        ]
        squares = np.concatenate([each.ravel() ** 2 for each in off] or [np.zeros(0)])
        # The squares of normal numbers add up to their number, give or take √2 times its root.
        if squares.size and (much := float((squares.sum() - squares.size) / (2 * squares.size) ** 0.5)) > DEVIATIONS:
            beyond[pair] = much
    scopes: list[Columns] = [(name,) for name in names]
    if len(beyond) > MOST_STRONG * sum(len(scope) == 2 for scope in goal.below):
        return scopes
    for pair in sorted(beyond, key=lambda each: (-beyond[each], each)):
        if fits(scopes, pair, sizes, max(CELLS, sum(sizes.values()))):
            scopes.append(pair)
    return scopes


def _expected(goal: Goal, models: Sequence[Model]) -> tuple[list[Columns], list[Numbers]]:
    """Some of the goal's marginals, and what each model expects of them; those that all can tell."""
    found: list[tuple[Columns, list[Numbers]]] = []
    for scope, _ in sampled(goal, MARGINALS):
        try:
            found.append((scope, [model.marginal(scope) for model in models]))
        except TooLarge:
            continue
    return [scope for scope, _ in found] * len(models), [each[at] for at in range(len(models)) for _, each in found]


def _freedom(goal: Goal, columns: Columns) -> int:
    return prod(goal.domain[name].size - 1 for name in columns)
