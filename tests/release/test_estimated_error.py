"""What a release is thought to be off by, beside what it is off by."""

from itertools import combinations

import numpy as np
import pytest

from discreet.curator.release_run import RequestExecutor
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.ledger import Budget, Ledger
from discreet.model.dense.dense_model import Dense
from discreet.model.interface import noisy_marginals, total_of
from discreet.model.mixture.ensemble import fit_ensemble
from discreet.model.mixture.mixture_model import Blend, Mixture
from discreet.model.rows import Rows
from discreet.model.tree.tree_model import fit_tree
from discreet.plan.plan import run
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.release.error.estimated_error import estimated_error_of, estimated_errors, members_of
from discreet.release.methods.mixture import mixture
from discreet.release.task import goal_of
from discreet.schema import Schema, Unit
from discreet.schema.column import Categories
from discreet.schema.domain import Domain
from discreet.source.frame import Frame
from discreet.source.table import Table

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5, "e": 3, "f": 4}
ROWS, KINDS = 20_000, 4
DOMAIN = Domain({name: Categories([*range(size)], outside="drop", missing="drop") for name, size in SIZES.items()})
GOAL = goal_of([*combinations(SIZES, 3)], DOMAIN)


@pytest.fixture(scope="module")
def codes():
    """Rows of four kinds of people, within each of which columns are independent."""
    rng = np.random.default_rng(5)
    kind = rng.integers(KINDS, size=ROWS)
    laws = {name: np.cumsum(rng.dirichlet(np.full(size, 0.7), KINDS), axis=1) for name, size in SIZES.items()}
    return {name: (rng.random(ROWS)[:, None] > law[kind][:, :-1]).sum(axis=1) for name, law in laws.items()}


@pytest.fixture(scope="module")
def truth(codes):
    return Rows(DOMAIN, codes)


@pytest.fixture(scope="module")
def release(codes, tmp_path_factory):
    """The model of the main method for a poor budget, and for a rich one; each with what is known then."""
    unit = Unit()
    columns = [codes[name] for name in DOMAIN]
    table = Table(Schema("people", DOMAIN, unit), Frame.of_codes(columns, domain=DOMAIN, unit=unit))
    found = {}
    for name, units in (("poor", 1e-4), ("rich", 1e-1)):
        executor = RequestExecutor(table, Ledger(tmp_path_factory.mktemp(name) / "ledger.sqlite"))
        executor.watch.open(Budget(epsilon=100, delta=1e-9), "anyone")
        model = run(
            mixture(executor.known, GOAL, units),
            lambda request, executor=executor: executor.answer(request, analyst="ana"),
        )
        found[name] = model, executor.known
    return found


def off(model, truth, scope):
    return float(np.abs(model.marginal(scope) - truth.marginal(scope)).sum()) / ROWS


def conjunctions(count, seed=0):
    """Counts of the rows that have one of some values in each of two to four columns."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        names = sorted(rng.choice(list(SIZES), rng.integers(2, 5), replace=False).tolist())
        factors = []
        for name in names:
            chosen = rng.permutation(SIZES[name]) < rng.integers(1, SIZES[name])
            factors.append(Factor((name,), chosen.astype(np.int64)))
        yield Linear([Product(tuple(factors))])


@pytest.mark.parametrize("budget", ["poor", "rich"])
def test_estimates_are_within_a_factor_of_two(release, truth, budget):
    model, known = release[budget]
    thought = estimated_errors(model, known, GOAL)
    assert list(thought) == list(GOAL.scopes)
    ratios = np.array([thought[scope] / off(model, truth, scope) for scope in GOAL.scopes])
    assert 0.5 < np.median(ratios) < 2
    assert np.quantile(ratios, 0.1) > 0.4
    assert np.quantile(ratios, 0.9) < 2.5


def test_a_rich_release_is_thought_to_be_better(release):
    poor, rich = (estimated_errors(*release[budget], GOAL) for budget in ("poor", "rich"))
    assert all(rich[scope] < poor[scope] / 4 for scope in GOAL.scopes)


@pytest.mark.parametrize("budget", ["poor", "rich"])
def test_the_error_of_a_question_holds_about_as_often_as_it_says(release, truth, budget):
    model, known = release[budget]
    ratios = np.array(
        [
            abs(model.answer(query) - truth.answer(query)) / estimated_error_of(query, model, known, 0.9)
            for query in conjunctions(100)
        ]
    )
    assert np.mean(ratios <= 1) > 0.75
    # A bound that always holds says nothing: a tenth of it must fail often.
    assert np.mean(ratios <= 0.1) < 0.5


def test_more_confidence_is_a_wider_error(release):
    model, known = release["rich"]
    query = next(conjunctions(1))
    widths = [estimated_error_of(query, model, known, confidence) for confidence in (0.5, 0.9, 0.99)]
    assert 0 < widths[0] < widths[1] < widths[2]


def other_models(known):
    """A model of every other kind, from the same looks."""
    looks, total = noisy_marginals(known.lattice, GOAL.below), max(total_of(known.lattice)[0], 1.0)
    tree = fit_tree(DOMAIN, looks, total=total, scopes=GOAL.scopes)
    return {"tree": tree, "rows": Rows(DOMAIN, tree.rows(ROWS)), "blend": Blend([tree, Dense(DOMAIN)], [99, 1])}


@pytest.mark.parametrize("kind", ["tree", "rows", "blend"])
def test_other_models_have_estimates_too(release, truth, kind):
    _, known = release["rich"]
    model = other_models(known)[kind]
    thought = estimated_errors(model, known, GOAL)
    ratios = [thought[scope] / off(model, truth, scope) for scope in GOAL.scopes]
    assert 0.3 < np.median(ratios) < 3
    assert 0 < estimated_error_of(next(conjunctions(1)), model, known, 0.95) < ROWS


def test_where_nothing_is_known_nearly_everything_may_be_wrong():
    known = GaussianLattice.nothing(DOMAIN, Unit())
    model = Rows(DOMAIN, {name: np.zeros(100) for name in SIZES})
    assert min(estimated_errors(model, known, GOAL).values()) > 1


def test_the_members_of_an_ensemble_are_found(release):
    _, known = release["rich"]
    looks = noisy_marginals(known.lattice, GOAL.below)
    made = fit_ensemble(DOMAIN, looks, total=ROWS, members=5, components=6, steps=40)
    found = members_of(made)
    assert len(found) == 5
    assert all(isinstance(each, Mixture) and abs(each.weights.sum() - 1) < 1e-6 for each in found)
    scope = GOAL.scopes[0]
    np.testing.assert_allclose(np.mean([each.marginal(scope) for each in found], axis=0), made.marginal(scope))
    assert len(members_of(found[0])) == 1
    assert members_of(truth_like := Rows(DOMAIN, {name: np.zeros(3) for name in SIZES})) == [truth_like]


def test_estimates_are_the_same_each_time(release):
    model, known = release["poor"]
    query = next(conjunctions(1))
    assert estimated_errors(model, known, GOAL) == estimated_errors(model, known, GOAL)
    assert estimated_error_of(query, model, known, 0.9) == estimated_error_of(query, model, known, 0.9)
