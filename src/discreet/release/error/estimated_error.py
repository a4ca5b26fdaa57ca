"""The estimated error of a finished release, where no guarantee covers it.

The noise of the measurements is known. Beyond that a model guesses, and the error of a guess is estimated from the
distance of the model's columns from independence (interactions.py). An estimate is no guarantee: on drawn tables it
was within a factor of 1.8 of the truth for eight of ten marginals (bench/release_calibrate.py).
Everything here is public: the model and what was released.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
    Layers,
    Spread,
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


@dataclass(frozen=True, slots=True)
class EstimateTuning:
    """Constants of the estimate. Chosen on drawn tables (bench/release_calibrate.py); limits are for speed."""

    # The standard deviation of a number whose mean absolute error is 1: √(π/2) for a normal one.
    deviation: float = 1.25
    # The part of an error that all cells of a marginal have in common.
    common_error: float = 0.3
    # The most members of an ensemble that are compared.
    most_members: int = 16
    # In a marginal of more cells, the number of used cells is the product of those of its single columns.
    most_exact_cells: int = 2**16
    # The error of a marginal of more columns is extrapolated from its marginals of this many columns.
    most_columns: int = 3
    # The weights of the components of each member have the same sum, up to this rounding error of single precision.
    rounding: float = 1e-3


ESTIMATE = EstimateTuning()


def estimated_errors(model: Model, known: Estimator, goal: Goal) -> Mapping[Columns, float]:
    """The expected L1 error of each of the goal's marginals, as a share of the rows."""
    layers = layers_of(goal)
    precision, rows = precisions_known(layers, known), max(model.total, 1.0)
    supposed = supposed_by(model, layers, precision)
    return {scope: error_of_marginal(layers, scope, precision, rows, supposed) for scope in goal.scopes}


def estimated_error_of(query: Linear, model: Model, known: Estimator, confidence: float) -> float:
    """The estimated error of a model's answer, in rows, at this confidence.

    The expected error of the marginal is distributed over its cells in proportion to the roots of their counts. The
    errors of the cells that the query adds up are taken for independent, except for a part that they have in common.
    The standard deviation of the answers of the members of an ensemble is added to that.
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
    in_cells = (mixed / _cells(model, scope) + (ESTIMATE.common_error * mixed) ** 2) ** 0.5
    spread = ESTIMATE.deviation * error * largest * rows * in_cells
    return normal_quantile(confidence) * float(np.hypot(apart, spread))


def supposed_by(model: Model, layers: Layers, precision: Numbers) -> Supposed:
    """A model's own spread of rows over columns, and its distances of pairs from independence.

    Where there is much noise, a model has learnt too little of how columns depend on each other: the part of a usual
    distance that it would miss is added. Rows are spread as if columns were independent, over more cells than in truth.
    """
    total = max(model.total, 1.0)

    @memoize(2**16)
    def alone(name: str) -> Numbers:
        counts = np.maximum(model.marginal([name]), 0.0)
        return np.asarray(counts / max(float(counts.sum()), 1e-9))

    @memoize(2**16)
    def spread(columns: Columns) -> Spread:
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
    """The members of an ensemble, or of the largest part of a blend; of another model, the model itself.

    Of an ensemble the components of each member lie together and weigh the same (`fit_ensemble`).
    """
    if isinstance(model, Blend):
        return members_of(model.models[int(np.argmax(model.shares))])
    if not isinstance(model, Mixture):
        return [model]
    number = _number_of_members(model)
    size = len(model.weights) // number
    places = [slice(each * size, (each + 1) * size) for each in range(min(number, ESTIMATE.most_members))]
    return [
        Mixture(model.domain, model.total, number * model.weights[place], model.tables[:, place]) for place in places
    ]


def _number_of_members(model: Mixture) -> int:
    many = len(model.weights)
    for number in range(many // 2, 1, -1):
        if many % number == 0:
            sums = number * model.weights.reshape(number, -1).sum(axis=1)
            if np.abs(sums - 1).max() < ESTIMATE.rounding:
                return number
    return 1


def _error_of(scope: Columns, model: Model, known: Estimator) -> float:
    """The expected error of the marginal of some columns; of many columns, extrapolated from marginals of fewer."""
    if len(scope) <= ESTIMATE.most_columns:
        goal = goal_of([scope], known.domain)
        return estimated_errors(model, known, goal)[goal.scopes[0]]
    parts = list(combinations(scope, ESTIMATE.most_columns))
    found = estimated_errors(model, known, goal_of(parts, known.domain))
    return min(2.0, sum(found.values()) / len(found) * len(scope) / ESTIMATE.most_columns)


def _cells(model: Model, scope: Columns) -> float:
    """The effective number of cells of a model: (Σ √p)², all of them if its rows are spread evenly."""
    total = max(model.total, 1.0)
    if prod(model.domain[name].size for name in scope) <= ESTIMATE.most_exact_cells:
        return float(np.sqrt(np.maximum(model.marginal(scope), 0.0) / total).sum() ** 2)
    return prod(_cells(model, (name,)) for name in scope)
