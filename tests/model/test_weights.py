"""However a stream is chosen, the model is wrong no more often than the proofs say; and the proofs are nearly tight."""

from math import log

import numpy as np
import pytest

from discreet.errors import BadParameter, BadQuery
from discreet.lab.textbook.multiplicative_weights import (
    RULES,
    least_fall,
    most_updates,
    multiplicative_weights,
    project,
    relative_entropy,
    step_between,
    updated,
)
from discreet.model.dense.dense_model import Dense
from discreet.query import col, count
from discreet.schema import Boolean, Domain, Integers

ERRORS = [pytest.param(0.05, marks=pytest.mark.long), 0.1, 0.3, 0.6]


def tables(cells):
    rng = np.random.default_rng(cells)
    return {
        "one cell": np.eye(1, cells)[0],
        "few cells": rng.multinomial(10**6, rng.dirichlet(np.full(cells, 0.05))),
        "spread": rng.multinomial(10**6, rng.dirichlet(np.ones(cells))),
        "counts": rng.poisson(3.0, size=cells) + np.eye(1, cells)[0],
    }


def random_stream(cells, seed, length=300):
    rng = np.random.default_rng(seed)
    for _ in range(length):
        yield rng.random(cells) if rng.random() < 0.5 else (rng.random(cells) < rng.random()).astype(float)


def worst(truth, error):
    """Always the query on which the model is worst: all cells of which it has too little."""
    target = truth / truth.sum()
    return at_most(5000, lambda model: (target > model).astype(float) if half_l1(target, model) > error else None)


def half_l1(one, other):
    return float(np.abs(one - other).sum() / 2)


def barely(truth, error, *, fractions):
    """Always a query that only just forces an update: so little is learnt that there are as many as can be."""
    target = truth / truth.sum()

    def ask(model):
        ahead = target - model
        gap = float(ahead[ahead > 0].sum())
        if gap <= error * (1 + 1e-9):
            return None
        if fractions:
            part = error * (1 + 1e-9) / gap
            return np.where(ahead > 0, part, 0.0) + (1 - part) / 2
        order = np.argsort(-ahead, kind="stable")
        reached = np.cumsum(np.maximum(ahead[order], 0.0))
        chosen = np.zeros(len(target))
        chosen[order[: 1 + np.searchsorted(reached, error * (1 + 1e-9))]] = 1.0
        return chosen

    return at_most(5000, ask)


def at_most(length, ask):
    """An adaptive stream that ends: one that asks in vain would go on for ever."""
    left = iter(range(length))
    return lambda model: None if next(left, None) is None else ask(model)


def streams(truth, error):
    yield random_stream(len(truth), 1)
    yield random_stream(len(truth), 2)
    yield worst(truth, error)
    yield barely(truth, error, fractions=False)
    yield barely(truth, error, fractions=True)


def check(found, truth, error, rule):
    """What was proved, of one run."""
    falls = -np.diff(found.potentials)
    assert found.potentials[0] <= log(len(truth)) + 1e-12
    assert (falls >= least_fall(error, rule) * (1 - 1e-9)).all()
    assert found.updates <= most_updates(len(truth), error, rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("error", ERRORS)
def test_every_update_lowers_the_potential_as_proved_on_every_stream(rule, error):
    for cells in (2, 7, 64):
        for truth in tables(cells).values():
            for queries in streams(truth, error):
                check(multiplicative_weights(queries, truth, error=error, rule=rule), truth, error, rule)


@pytest.mark.parametrize("rule", RULES)
def test_every_answer_is_within_the_error(rule):
    truth = tables(32)["few cells"]
    asked = list(random_stream(32, 3))
    found = multiplicative_weights(asked, truth, error=0.05, rule=rule)
    assert found.updates > 0
    for query, answer in zip(asked, found.answers, strict=True):
        assert abs(answer - query @ truth / truth.sum()) <= 0.05 + 1e-12


def test_the_bounds_are_nearly_tight():
    """An adversary gets within a few hundredths of the proved fall, and of the number of updates for the lectures'."""
    smallest = dict.fromkeys(RULES, np.inf)
    for truth in (tables(64)["few cells"], tables(1024)["few cells"]):
        for rule in RULES:
            found = multiplicative_weights(barely(truth, 0.1, fractions=False), truth, error=0.1, rule=rule)
            smallest[rule] = min(smallest[rule], -np.diff(found.potentials).max() / least_fall(0.1, rule))
    assert all(1 - 1e-9 <= ratio <= 1.05 for ratio in smallest.values()), smallest
    point = tables(64)["one cell"]
    for rule in ("linear", "exponential"):
        found = multiplicative_weights(barely(point, 0.1, fractions=True), point, error=0.1, rule=rule)
        assert found.updates >= 0.8 * most_updates(64, 0.1, rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("error", [0.01, 0.1, 0.5, 0.9, 0.98])
def test_the_bounds_are_no_worse_than_the_lectures(rule, error):
    theirs = {"linear": 4 / error**2, "exponential": 1 / (error / 2) ** 2, "projection": 1 / (2 * error**2)}[rule]
    assert most_updates(10**6, error, rule) <= theirs * log(10**6)
    if rule == "linear":
        assert least_fall(error, rule) >= 7 / 8 * error**2 * (1 - 1e-12)


def wrong_way(model, query, target, *, error, rule):
    return updated(model, query, 2 * float(query @ model) - target, error=error, rule=rule)


def too_far(model, query, target, *, error, rule):
    return updated(model, query, target, error=0.98 if rule == "linear" else 40 * error, rule=rule)


def too_short(model, query, target, *, error, rule):
    return updated(model, query, target, error=error / 12, rule=rule)


@pytest.mark.parametrize("rule", ["linear", "exponential"])
@pytest.mark.parametrize("wrong", [wrong_way, too_far, too_short])
def test_a_wrong_update_is_noticed(rule, wrong, monkeypatch):
    """The power of the tests above: a wrong direction, a step too far or too short breaks what was proved."""
    truth, error = tables(64)["few cells"], 0.08
    monkeypatch.setattr("discreet.lab.textbook.multiplicative_weights.updated", wrong)
    asked = list(random_stream(64, 4))
    found = multiplicative_weights(asked, truth, error=error, rule=rule)
    with pytest.raises(AssertionError):
        check(found, truth, error, rule)


def test_a_projection_on_a_wrong_target_is_noticed(monkeypatch):
    truth = tables(64)["few cells"]
    shy = lambda model, query, target: project(model, query, 0.25 * target + 0.75 * float(query @ model))
    monkeypatch.setattr("discreet.lab.textbook.multiplicative_weights.project", shy)
    with pytest.raises(AssertionError):
        check(
            multiplicative_weights(random_stream(64, 4), truth, error=0.08, rule="projection"),
            truth,
            0.08,
            "projection",
        )


@pytest.mark.parametrize("seed", range(20))
def test_a_projection_meets_its_target_and_is_the_nearest(seed):
    rng = np.random.default_rng(seed)
    model, truth = rng.dirichlet(np.full(12, 0.3)), rng.dirichlet(np.full(12, 0.3))
    query = (rng.random(12) < 0.5).astype(float) if seed % 2 else rng.random(12)
    target = float(query @ truth)
    found = project(model, query, target)
    assert float(query @ found) == pytest.approx(target, abs=1e-12)
    # Pythagoras, exactly: the truth is another distribution with this answer.
    whole = relative_entropy(truth, found) + relative_entropy(found, model)
    assert whole == pytest.approx(relative_entropy(truth, model), rel=1e-9)


def test_a_projection_to_the_end_keeps_the_extreme_cells_only():
    model = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(project(model, np.array([1, 0, 1, 0]), 0.0), [0, 1 / 3, 0, 2 / 3])
    np.testing.assert_allclose(project(model, np.array([0.2, 0.9, 0.9, 0.5]), 0.9), [0, 0.4, 0.6, 0])
    for target in (-0.1, 1.2):
        with pytest.raises(BadParameter, match="must lie between"):
            project(model, np.array([1, 0, 1, 0]), target)


def test_a_projection_is_found_at_the_far_ends_too():
    model, query = np.array([1 - 3e-9, 1e-9, 1e-9, 1e-9]), np.array([0.0, 0.3, 0.6, 1.0])
    for target in (1e-12, 1e-9, 0.5, 0.999, 1 - 1e-9):
        assert float(query @ project(model, query, target)) == pytest.approx(target, rel=1e-6, abs=1e-14)


def test_the_dense_model_is_projected_by_one_step():
    domain = Domain({"a": Integers(0, 3), "b": Boolean()})
    model, query = Dense(domain, total=50.0), count(domain, (col("a") >= 2) & (col("b") == True))  # noqa: E712
    model.update(query, step=step_between(model.answer(query) / 50, 0.7))
    assert model.answer(query) == pytest.approx(35.0)


def test_the_truth_may_be_a_model_and_the_query_a_linear():
    domain = Domain({"b": Boolean(), "a": Integers(0, 3)})
    truth = Dense(domain, weights=np.random.default_rng(0).random(domain.shape))
    asked = [count(domain, (col("a") >= k) | (col("b") == True)) for k in range(4)]  # noqa: E712
    found = multiplicative_weights(asked, truth, error=0.01)
    for query, answer in zip(asked, found.answers, strict=True):
        assert abs(answer - truth.answer(query)) <= 0.01


def test_nonsense_is_refused():
    truth = np.ones(4)
    with pytest.raises(BadQuery, match="from 0 to 1"):
        multiplicative_weights([np.array([2.0, 0, 0, 0])], truth, error=0.1)
    with pytest.raises(BadQuery, match="from 0 to 1"):
        multiplicative_weights([np.ones(3)], truth, error=0.1)
    with pytest.raises(BadParameter, match="error is 1"):
        multiplicative_weights([], truth, error=1.0)
    with pytest.raises(BadParameter, match="rule is"):
        multiplicative_weights([], truth, error=0.1, rule="best")
    with pytest.raises(BadParameter, match="no counts"):
        multiplicative_weights([], np.zeros(4), error=0.1)
    with pytest.raises(BadQuery, match="asked of a Model"):
        multiplicative_weights([count(Domain({"b": Boolean()}))], truth, error=0.1)
