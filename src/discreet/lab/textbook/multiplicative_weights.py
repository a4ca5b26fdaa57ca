"""Multiplicative weights: learn a table from the queries on which a model of it is wrong. Not private.

It is here to teach and to test; the private form, which uses noisy values only, is `lab/textbook/pmw.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import log, log1p
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, BadQuery
from discreet.model.interface import Model
from discreet.numeric import positive
from discreet.query.linear import Linear
from discreet.types import Numbers

Rule = Literal["linear", "exponential", "projection"]
RULES: tuple[Rule, ...] = ("linear", "exponential", "projection")
# A query: its weight in every cell, between 0 and 1.
Query = NDArray[Any] | Linear
# Queries one after the other; or a function from the current model to the next query, or None at the end.
Stream = Iterable[Query] | Callable[[Numbers], Query | None]

# The tolerance of the dual problem: the model's answer is within this of the target.
_CLOSE = 1e-14


@dataclass(frozen=True, slots=True)
class Learned:
    """The answers to a stream, the model, and its relative entropy to the truth at the start and after each update."""

    answers: tuple[float, ...]
    model: Numbers
    potentials: tuple[float, ...]

    @property
    def updates(self) -> int:
        """The number of updates."""
        return len(self.potentials) - 1


def multiplicative_weights(
    queries: Stream, truth: NDArray[Any] | Model, *, error: float, rule: Rule = "projection"
) -> Learned:
    """Answer each query within `error`, as a fraction of all rows, from a model that is updated where it is wrong.

    The model begins uniform. Where |q(model) − q(truth)| ≤ error the answer is the model's. Otherwise it is the true
    one, and the model is updated:

    * "linear": by 1 − e·m(x), with m = q if the model is too high and m = 1 − q if it is too low (000, Algorithm 1);
    * "exponential": by exp(±(e/2)·q(x)), down or up (003, Algorithm 1, whose threshold is e = 2η);
    * "projection": to the nearest distribution in relative entropy whose answer to q is right.

    For every stream, also an adaptive one, there are at most `most_updates(cells, error, rule)` updates.

    where e is `error`. This is not private: it reads the truth for every query.

    >>> truth, half = np.array([0.7, 0.1, 0.1, 0.1]), np.array([1, 1, 0, 0])
    >>> found = multiplicative_weights([half, half], truth, error=0.1)
    >>> found.answers, found.updates, found.model.round(2).tolist()
    ((0.8, 0.8), 1, [0.4, 0.4, 0.1, 0.1])

    [000, Claim 15; 003, Corollary 7]; proofs, with better constants: multiplicative_weights.md
    """
    bound, chosen = _read_error(error), _read_rule(rule)
    counts = _counts(truth)
    target = counts / counts.sum()
    model = np.full(target.shape, 1.0 / target.size)
    answers, potentials = list[float](), [relative_entropy(target, model)]
    ask = queries if callable(queries) else _in_turn(iter(queries))
    while (query := ask(model)) is not None:
        weight = _weight(query, truth, target.shape)
        true, guess = _mean(weight, target), _mean(weight, model)
        if abs(guess - true) <= bound:
            answers.append(guess)
            continue
        answers.append(true)
        model = updated(model, weight, true, error=bound, rule=chosen)
        potentials.append(relative_entropy(target, model))
    return Learned(tuple(answers), model, tuple(potentials))


def most_updates(cells: int, error: float, rule: Rule = "projection") -> int:
    """The largest number of updates on any stream: floor(ln(cells)/d), with d the least fall of the potential.

    For e < 0.99, d is more than (7/8)e² for "linear" (the lectures: e²/4), (15/32)e² for "exponential" (the lectures:
    e²/4) and 2e² for "projection"; in full `least_fall`.

    >>> [most_updates(2**20, 0.1, rule) for rule in RULES], round(4 * log(2**20) / 0.1**2)
    ([1515, 2957, 693], 5545)
    """
    return int(log(cells) / least_fall(error, rule))


def least_fall(error: float, rule: Rule) -> float:
    """The least decrease of the relative entropy by an update; proofs: multiplicative_weights.md."""
    bound = _read_error(error)
    match _read_rule(rule):
        case "linear":
            step = -log1p(-bound)
            return step * bound - step**2 / 8
        case "exponential":
            return bound**2 / 2 - (bound / 2) ** 2 / 8
    return 2 * bound**2


def updated(model: Numbers, query: Numbers, target: float, *, error: float, rule: Rule) -> Numbers:
    """The model after one update towards a target that it misses."""
    low = _mean(query, model) < target
    match rule:
        case "linear":
            scaled = model * (1.0 - error * (1.0 - query if low else query))
        case "exponential":
            scaled = model * np.exp((0.5 if low else -0.5) * error * query)
        case _:
            return project(model, query, target)
    return _normal(scaled)


def relative_entropy(truth: Numbers, model: Numbers) -> float:
    """Σ truth ln(truth/model), in nats; infinite where the model has no mass and the truth has some."""
    some = truth > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(truth[some] * np.log(truth[some] / model[some])))


def project(model: Numbers, query: NDArray[Any], target: float) -> Numbers:
    """The distribution nearest to the model in relative entropy, among those whose answer to the query is the target.

    It is the model times exp(t·q(x)), normalised. For weights 0 and 1 that scales the inside to the target and the
    outside to the rest; otherwise t is the root of an increasing function, found by Newton's method within a bracket.

    >>> project(np.full(4, 0.25), np.array([1, 0, 0, 0]), 0.4).round(6).tolist()
    [0.4, 0.2, 0.2, 0.2]
    """
    inside = model > 0
    lowest, highest = float(query[inside].min()), float(query[inside].max())
    if not lowest - _CLOSE <= target <= highest + _CLOSE:
        raise BadParameter(
            f"the target is {target!r}; where the model has mass the query weighs from {lowest:g} to {highest:g}, so "
            "the target must lie between. Give one that a table can have."
        )
    if target <= lowest or target >= highest:
        # Only the cells with the extreme weight can give it.
        kept = np.where(inside & (query == (lowest if target <= lowest else highest)), model, 0.0)
        return _normal(kept)
    if ((query == 0) | (query == 1)).all():
        guess = _mean(query, model) / float(model.sum())
        scaled = model * np.where(query == 1, target / guess, (1.0 - target) / (1.0 - guess))
        return _normal(scaled)
    return _tilted(model, query, _dual(model, query, target))


def step_between(guess: float, target: float) -> float:
    """The t for which scaling the inside of a 0/1 query by e^t moves its answer from `guess` to `target`, fractions.

    >>> round(step_between(0.25, 0.4), 6), round(log((0.4 / 0.6) / (0.25 / 0.75)), 6)
    (0.693147, 0.693147)
    """
    return log(target) - log1p(-target) - (log(guess) - log1p(-guess))


def _dual(model: Numbers, query: Numbers, target: float) -> float:
    """The t with mean(t) = target, where mean(t) is the query's answer on the model tilted by t."""
    low, high = -1.0, 1.0
    while _mean(query, _tilted(model, query, low)) > target:
        low *= 2.0
    while _mean(query, _tilted(model, query, high)) < target:
        high *= 2.0
    t = 0.0
    for _ in range(200):
        tilted = _tilted(model, query, t)
        mean = _mean(query, tilted)
        low, high = (t, high) if mean < target else (low, t)
        if abs(mean - target) <= _CLOSE or high - low <= 1e-15 * max(1.0, abs(t)):
            break
        # The derivative of the mean is the variance.
        newton = t + (target - mean) / max(_mean((query - mean) ** 2, tilted), 1e-300)
        t = newton if low < newton < high else (low + high) / 2
    return t


def _tilted(model: Numbers, query: Numbers, t: float) -> Numbers:
    # The largest exponent is 0, so that nothing overflows.
    scaled: Numbers = model * np.exp(t * (query - (query.max() if t > 0 else query.min())))
    return _normal(scaled)


def _normal(weights: Numbers) -> Numbers:
    distribution: Numbers = weights / weights.sum()
    return distribution


def _mean(query: NDArray[Any], distribution: Numbers) -> float:
    return float(np.vdot(query, distribution))


def _in_turn(queries: Iterator[Query]) -> Callable[[Numbers], Query | None]:
    return lambda _: next(queries, None)


def _counts(truth: NDArray[Any] | Model) -> Numbers:
    counts = np.asarray(
        truth if isinstance(truth, np.ndarray) else truth.marginal(list(truth.domain)), dtype=np.float64
    )
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
        raise BadParameter("the truth has negative, infinite or no counts; it must be a histogram with some rows.")
    return counts


def _weight(query: Query, truth: NDArray[Any] | Model, shape: tuple[int, ...]) -> Numbers:
    """The weight of a query in every cell."""
    weight: NDArray[Any]
    if isinstance(query, Linear):
        if isinstance(truth, np.ndarray):
            raise BadQuery("a Linear is asked of a Model, which has a domain; of an array ask arrays of weights.")
        names = list(truth.domain)
        table, scope = query.table(truth.domain), query.scope
        sizes = [truth.domain[name].size if name in scope else 1 for name in names]
        weight = table.transpose(np.argsort([names.index(name) for name in scope])).reshape(sizes)
        weight = np.broadcast_to(weight, shape).astype(np.float64)
    else:
        weight = np.asarray(query, dtype=np.float64)
    if weight.shape != shape or not ((weight >= 0) & (weight <= 1)).all():
        raise BadQuery(f"a query has a weight from 0 to 1 for each of the cells {shape}; this one has not. Scale it.")
    return weight


def _read_error(error: float) -> float:
    bound = float(positive("error", error, next_step="Give a fraction of all rows, say 0.1."))
    if bound >= 0.99:
        raise BadParameter(f"error is {error!r}; it must be below 0.99: a fraction of all rows. Give one, say 0.1.")
    return bound


def _read_rule(rule: Rule) -> Rule:
    if rule not in RULES:
        raise BadParameter(f"rule is {rule!r}; it must be one of {', '.join(RULES)}. Leave it out for the default.")
    return rule
