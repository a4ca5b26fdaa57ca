"""Whether a tree of the strongest pairs is a better model of a table than mixtures: a small part of the budget tells.

On some tables few columns go together, and closely: a tree is right about them, and `adaptive` finds out where. On
others everything goes together a little, and mixtures are right. No public fact says which: both are made of a first
look at all pairs, and how far both are from the table is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

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
from discreet.release.fitting import FIT, components_of
from discreet.release.goal import Goal
from discreet.release.layers import clarity, sampled
from discreet.release.topping import steps_within
from discreet.types import Columns, Numbers


@dataclass(frozen=True, slots=True)
class TrialTuning:
    """Constants of the trial, chosen on drawn tables: with few strong pairs, and many weak ones (bench/release.py)."""

    # The first measurement makes rows stand out of the noise by this much (`layers.clarity`), for shares of the budget
    # within these limits; single columns get so much of it, and pairs more by this power of their freedom.
    clarity: float = 7.0
    least_share: float = 0.002
    most_share: float = 0.02
    singles: float = 0.3
    freedom_power: float = 0.4
    # The verdict gets this share. It compares up to so many marginals, and is asked for only if the deviation of its
    # noise is below this part of the rows.
    verdict_share: float = 0.005
    verdict_marginals: int = 60
    verdict_deviation: float = 0.01
    # The tree wins if its distance is less than this part of that of the mixtures.
    nearer: float = 0.97
    # The tree has at most so many cells. It holds pairs that are so many deviations further from independent than
    # noise would take them; there is none if more than this part of all pairs are, or more than the second are in it.
    tree_cells: int = 2**14
    strong_deviations: float = 3.0
    most_strong: float = 0.8
    most_in_tree: float = FIT.most_pairs_in_tree
    # The ensemble that is compared with it: quicker than that of a release.
    members: int = 6
    components_in_all: int = 400
    steps: int = 300
    # With more pairs than this `adaptive` takes minutes.
    most_pairs: int = 500


TRIAL = TrialTuning()


def worthwhile(brief: Brief, rows: float) -> bool:
    """Whether a trial would tell something, by public facts."""
    goal = brief.goal
    if not brief.known.measures_residuals or not 3 <= len(goal.of_size(2)) <= TRIAL.most_pairs:
        return False
    judged = 2 * [scope for scope, _ in sampled(goal, TRIAL.verdict_marginals)]
    # The noise of a mean is smaller than that of each.
    noise = deviation_for(brief.known, judged, TRIAL.verdict_share * float(brief.units)) / len(judged) ** 0.5
    return bool(noise <= TRIAL.verdict_deviation * rows)


def tree_is_better(brief: Brief) -> Procedure[tuple[bool, Fraction]]:
    """Whether a tree is nearer to the goal's marginals than mixtures, as far as a small part of the budget tells.

    And what that cost: no more than a fortieth.
    """
    known, goal, units = brief.known, brief.goal, float(brief.units)
    rows, _ = total_of(known.lattice)
    part = min(TRIAL.most_share, max(TRIAL.least_share, (TRIAL.clarity / clarity(goal, rows, units)) ** 2))
    spent = Fraction(0)
    for size, share in ((1, TRIAL.singles), (2, 1 - TRIAL.singles)):
        wanted = {scope: goal.freedom(scope) ** TRIAL.freedom_power for scope in goal.of_size(size)}
        steps = steps_within(known, wanted, share * part * units)
        if steps.steps:
            request = Measure(steps, "a first look, for a release")
            yield request
            spent += paid(known, request)
    mixtures, tree = _models(known, goal, max(rows, 1.0), part * units)
    if tree is None:
        return False, spent
    scopes, expected = _expected(goal, (mixtures, tree))
    why = "whether a tree or mixtures are nearer"
    verdict = distances_for(known, scopes, expected, TRIAL.verdict_share * units, why)
    heard = yield verdict
    far, near = np.reshape(heard, (2, -1)).sum(axis=1)
    return bool(near < TRIAL.nearer * far), spent + paid(known, verdict)


def _models(known: Known, goal: Goal, rows: float, units: float) -> tuple[Mixture, Tree | None]:
    """Mixtures and a tree, fitted to what is known of pairs; no tree if no pair stands out, or most of them do."""
    looks = noisy_marginals(known.lattice, goal.of_size(2))
    components = components_of(rows, units)
    members = max(TRIAL.members, TRIAL.components_in_all // components)
    mixtures = fit_ensemble(goal.domain, looks, total=rows, members=members, components=components, steps=TRIAL.steps)
    scopes = _strong(goal, looks, rows)
    strong = sum(len(scope) == 2 for scope in scopes)
    if len(mixtures.weights) == 1 or not 0 < strong <= TRIAL.most_in_tree * len(goal.of_size(2)):
        return mixtures, None
    held = [look for look in looks if look.columns in set(scopes)]
    return mixtures, fit_tree(goal.domain, held, total=rows, scopes=scopes)


def _strong(goal: Goal, looks: Sequence[NoisyMarginal], rows: float) -> list[Columns]:
    """The single columns, and the pairs that stand out of their noise most, as many as a tree holds; if not all do."""
    alone = product_of(goal.domain, looks, total=rows)
    sizes = {name: goal.domain[name].size for name in goal.names}
    beyond: dict[Columns, float] = {}
    for pair in goal.of_size(2):
        off = [
            look.weight**0.5 * look.residual(alone.marginal(pair), goal.domain)
            for look in looks
            if look.columns == pair
        ]
        squares = np.concatenate([each.ravel() ** 2 for each in off] or [np.zeros(0)])
        # The squares of normal numbers add up to their number, give or take √2 times its root.
        deviations = float((squares.sum() - squares.size) / (2 * max(squares.size, 1)) ** 0.5)
        if squares.size and deviations > TRIAL.strong_deviations:
            beyond[pair] = deviations
    scopes: list[Columns] = [(name,) for name in goal.names]
    if len(beyond) > TRIAL.most_strong * len(goal.of_size(2)):
        return scopes
    for pair in sorted(beyond, key=lambda each: (-beyond[each], each)):
        if fits(scopes, pair, sizes, max(TRIAL.tree_cells, sum(sizes.values()))):
            scopes.append(pair)
    return scopes


def _expected(goal: Goal, models: Sequence[Model]) -> tuple[list[Columns], list[Numbers]]:
    """Some of the goal's marginals, and what each model expects of them; those that all can tell."""
    found: list[tuple[Columns, list[Numbers]]] = []
    for scope, _ in sampled(goal, TRIAL.verdict_marginals):
        try:
            found.append((scope, [model.marginal(scope) for model in models]))
        except TooLarge:
            continue
    return [scope for scope, _ in found] * len(models), [each[at] for at in range(len(models)) for _, each in found]
