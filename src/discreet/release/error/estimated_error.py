"""The estimated error of a finished release, where no guarantee covers it.

The noise of what was measured has a known size. Beyond that a model guesses, and its error is estimated by how much
there is to guess: how far the model's columns are from independent (interactions.py). An estimate is no guarantee: on
drawn tables it was within a factor of 1.8 of the truth for eight of ten marginals (bench/release_calibrate.py).
Everything here is public: the model and what was released.
"""

from collections.abc import Mapping
from itertools import combinations
from math import prod

import numpy as np

from discreet.cache import memoize
from discreet.errors import TooLarge
from discreet.estimate.estimator import Estimator, normal_quantile
from discreet.model.interface import Model
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.query.linear import Linear
from discreet.release.error.interactions import (
    CellShares,
    Layers,
    Supposed,
    error_of_marginal,
    guessed_distance,
    independent_shares,
    layers_of,
    missed,
    noise_of,
    precisions_known,
)
from discreet.release.task import Goal, goal_of
from discreet.types import Columns, Numbers

# The deviation of a number whose mean absolute error is 1; and the part of an error that cells have in common.
DEVIATION, IN_COMMON = 1.25, 0.3
# No more members than this are asked; and no marginal of more cells is looked at to see how its rows are spread.
MOST_MEMBERS, MOST_EXACT_CELLS = 16, 2**16
# Layers of more columns than this are not looked at one by one.
DEEPEST = 3
# Weights of the components of a member add up to an equal share, up to the rounding of single precision.
_ROUNDING = 1e-3


def estimated_errors(model: Model, known: Estimator, goal: Goal) -> Mapping[Columns, float]:
    """The L1 error that is expected of each of the goal's marginals, as a share of the rows."""
    layers = layers_of(goal)
    precision, rows = precisions_known(layers, known), max(model.total, 1.0)
    supposed = supposed_by(model, layers, precision)
    return {scope: error_of_marginal(layers, scope, precision, rows, supposed) for scope in goal.scopes}


def estimated_error_of(query: Linear, model: Model, known: Estimator, confidence: float) -> float:
    """About how far a model's answer is from the truth, in rows: it holds about as often as `confidence` says.

    The expected error of the marginal is spread over its cells as the roots of their numbers of rows. The errors of the
    cells that are asked for are added up as if they were independent but for a part that they have in common, and how
    far the members of an ensemble disagree is added to that.
    """
    rows, scope = max(model.total, 1.0), query.scope
    answers = np.array([part.answer(query) for part in members_of(model)])
    apart = float(answers.std(ddof=1)) if len(answers) > 1 else 0.0
    low, high = query.range(known.domain)
    largest = float(max(abs(low), abs(high)))
    if not scope or not largest:
        return normal_quantile(confidence) * apart
    share = float(np.clip(abs(model.answer(query)) / (largest * rows), 1 / rows, 1 - 1 / rows))
    error = _error_of(scope, model, known)
    mixed = share * (1 - share)
    spread = DEVIATION * error * largest * rows * (mixed / _cells(model, scope) + (IN_COMMON * mixed) ** 2) ** 0.5
    return normal_quantile(confidence) * float(np.hypot(apart, spread))


def supposed_by(model: Model, layers: Layers, precision: Numbers) -> Supposed:
    """What a model says of its table: how rows are spread, and how far two columns are from independent.

    Where there is much noise, a model has learnt too little of what columns say of each other: what would be missed of
    a usual distance is added. Rows are spread as if columns were independent: then they are in more cells than they
    are.
    """
    total = max(model.total, 1.0)

    @memoize(2**16)
    def alone(name: str) -> Numbers:
        counts = np.maximum(model.marginal([name]), 0.0)
        return np.asarray(counts / max(float(counts.sum()), 1e-9))

    @memoize(2**16)
    def spread(columns: Columns) -> CellShares:
        return independent_shares(alone(name) for name in columns)

    @memoize(2**16)
    def distance(one: str, other: str) -> float:
        pair = (one, other)
        usual = guessed_distance(model.domain[one].size, model.domain[other].size)
        try:
            both = model.marginal(pair) / total
        except TooLarge:
            return usual
        hidden = missed(usual**2, noise_of(layers, pair, precision, total, spread(pair)) ** 2)
        return float((hidden + np.abs(both - np.outer(alone(one), alone(other))).sum() ** 2) ** 0.5)

    return Supposed(spread, distance)


def members_of(model: Model) -> list[Model]:
    """The models that a model is the mean of, or itself: members of an ensemble, and of the first part of a blend.

    Of an ensemble the components of each member lie together and weigh the same (`fit_ensemble`).
    """
    if isinstance(model, Blend):
        return members_of(model.models[int(np.argmax(model.shares))])
    if not isinstance(model, Mixture):
        return [model]
    number = _number_of_members(model)
    size = len(model.weights) // number
    places = [slice(each * size, (each + 1) * size) for each in range(min(number, MOST_MEMBERS))]
    return [
        Mixture(model.domain, model.total, number * model.weights[place], model.tables[:, place]) for place in places
    ]


def _number_of_members(model: Mixture) -> int:
    many = len(model.weights)
    for number in range(many // 2, 1, -1):
        if many % number == 0:
            sums = number * model.weights.reshape(number, -1).sum(axis=1)
            if np.abs(sums - 1).max() < _ROUNDING:
                return number
    return 1


def _error_of(scope: Columns, model: Model, known: Estimator) -> float:
    """The expected error of the marginal of some columns: of more than a few, the whole of its parts."""
    if len(scope) <= DEEPEST:
        goal = goal_of([scope], known.domain)
        return estimated_errors(model, known, goal)[goal.scopes[0]]
    parts = list(combinations(scope, DEEPEST))
    found = estimated_errors(model, known, goal_of(parts, known.domain))
    return min(2.0, sum(found.values()) / len(found) * len(scope) / DEEPEST)


def _cells(model: Model, scope: Columns) -> float:
    """How many cells a model uses: (Σ √p)², all of them if its rows are spread evenly."""
    total = max(model.total, 1.0)
    if prod(model.domain[name].size for name in scope) <= MOST_EXACT_CELLS:
        return float(np.sqrt(np.maximum(model.marginal(scope), 0.0) / total).sum() ** 2)
    return prod(_cells(model, (name,)) for name in scope)
