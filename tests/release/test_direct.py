"""Every marginal by itself: what it costs, what is not paid twice, and what comes of it."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from discreet.errors import TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice, gaussian_noise
from discreet.estimate.laplace_estimator import LaplaceMarginals, estimator_for, laplace_noise
from discreet.estimate.measurements import GaussianQuery, LaplaceMarginal
from discreet.model.interface import total_of
from discreet.plan.plan import Measure, Steps, run
from discreet.query.linear import Marginal
from discreet.release.budget_allocation import measure_row_count
from discreet.release.methods.direct import best_depth, depths, direct_release, direct_steps, known_variance
from discreet.release.methods.fitting import MOST_FITTED_CELLS, joined_lattice, too_large_to_fit
from discreet.release.methods.residual_planner import allocate, as_steps
from discreet.release.task import Brief, goal_of
from discreet.schema import Boolean, Domain, Integers
from release.procedures import (
    ADD,
    DOMAIN,
    PAIRS,
    PLENTY,
    REPLACE,
    ROWS,
    SOME,
    TRIPLES,
    UNITS,
    counts_of,
    desk_of,
    error_of,
    linked_rows,
    quick_fits,
    refused,
    table_of,
)


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_it_costs_what_it_may_and_not_a_hair_more(unit, pure, tmp_path):
    for units in (Fraction(1, 700), SOME):
        with desk_of(tmp_path, unit=unit, pure=pure) as desk, quick_fits():
            desk.release(direct_release, units)
            assert Fraction(999, 1000) * units < desk.spent() <= units


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_with_plenty_the_model_is_near_the_table(unit, pure, tmp_path):
    with desk_of(tmp_path, unit=unit, pure=pure) as desk, quick_fits(members=4, components=16, steps=200):
        model = desk.release(direct_release, PLENTY)
        assert model.total == pytest.approx(ROWS, rel=0.002)
        assert error_of(model) < 0.03
        for scope in TRIPLES.scopes:
            assert model.marginal(scope).min() >= 0


def test_a_public_number_of_rows_is_not_counted(tmp_path):
    with desk_of(tmp_path, unit=REPLACE) as desk, quick_fits():
        model = desk.release(direct_release)
        assert model.total == ROWS
        assert [len(request.steps.steps) for request in desk.requests] == [len(TRIPLES.scopes)]


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_the_split_is_by_a_power_of_weight_times_cells(pure):
    goal = goal_of({("age",): 1, ("ill", "old"): 1, ("age", "city"): 2}, DOMAIN)
    known = estimator_for("pure" if pure else "gaussian", DOMAIN, ADD)
    steps = direct_steps(known, goal, dict(goal.weights), Fraction(1)).steps
    power = 1 / 2 if pure else 2 / 3
    prices = np.array([step.price for step in steps])
    worth = np.array([weight * goal.cells(scope) for scope, weight in goal.weights]) ** power
    assert np.allclose(prices, worth / worth.sum(), rtol=1e-6)
    assert all(isinstance(step, LaplaceMarginal if pure else GaussianQuery) for step in steps)


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_what_is_in_the_ledger_has_the_noise_that_was_charged(pure, tmp_path):
    """Squares of normals have mean 1 and variance 2, absolute values of Laplace noise mean 1 and variance 1."""
    sizes = [PAIRS.cells(scope) for scope in PAIRS.scopes]
    truth = np.concatenate([counts_of(scope).ravel() for scope in PAIRS.scopes])
    with desk_of(tmp_path, pure=pure) as desk:
        steps = direct_steps(
            estimator_for("pure" if pure else "gaussian", DOMAIN, ADD), PAIRS, dict(PAIRS.weights), Fraction(1, 50)
        )
        for _ in range(20):
            desk.answer(Measure(steps, "marginals"))
        assert desk.prices()[0] <= Fraction(1, 50)
        entries = [entry.released for entry in desk.executor.ledger.entries() if entry.released]
    values = np.array([np.frombuffer(released[-8 * sum(sizes) :], dtype="<i8") for released in entries])
    off = (values - truth) / np.repeat([float(step.scale if pure else step.sigma) for step in steps.steps], sizes)

    def right(noise):
        mean, deviation = (np.abs(noise).mean(), 1.0) if pure else ((noise**2).mean(), sqrt(2))
        return abs(mean - 1) < 6.5 * deviation / sqrt(noise.size)

    assert off.size == 20 * sum(sizes)
    assert right(off)
    assert not right(off / 2)
    assert not right(off * 1.5)


# --- What is known ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_marginals_that_are_known_better_are_not_measured_again(pure, tmp_path):
    with desk_of(tmp_path, pure=pure) as desk, quick_fits():
        scope = PAIRS.scopes[0]
        before = direct_steps(desk.known, PAIRS, {scope: 1.0}, Fraction(20))
        desk.answer(Measure(before, "looked at before"))
        steps = direct_steps(desk.known, PAIRS, dict(PAIRS.weights), SOME)
        names = [step.columns if pure else step.question.columns for step in steps.steps]
        assert names == list(PAIRS.scopes[1:])
        assert 0.999 * SOME < sum(step.price for step in steps.steps) <= SOME
        again = direct_steps(desk.known, PAIRS, {scope: 1.0}, SOME)
        assert again.steps == ()


def test_what_the_lattice_knows_is_not_measured_again(tmp_path):
    with desk_of(tmp_path) as desk:
        goal = goal_of([["age", "old"]], DOMAIN)
        assert known_variance(desk.known, ("age", "old")) == float("inf")
        desk.answer(Measure(as_steps(desk.known, allocate(goal, desk.known, budget=1), budget=1), "the lattice"))
        # One marginal alone costs the lattice as much as it costs directly.
        assert known_variance(desk.known, ("age", "old")) == pytest.approx(1, rel=0.35)
        assert direct_steps(desk.known, goal, dict(goal.weights), Fraction(1, 3)).steps == ()
        assert len(direct_steps(desk.known, goal, dict(goal.weights), Fraction(3)).steps) == 1


@pytest.mark.parametrize("pure", [False, True], ids=["gaussian", "pure"])
def test_rows_that_were_counted_well_are_not_counted_again(pure, tmp_path):
    with desk_of(tmp_path, pure=pure) as desk, quick_fits():
        run(measure_row_count(desk.known, Fraction(50)), desk.answer)
        variance = total_of(desk.known.lattice)[1]
        assert variance < 0.2
        desk.release(direct_release)
        assert not any(step == () for request in desk.requests for step in _columns(request))
        assert Fraction(999, 1000) * SOME < desk.spent() <= SOME


def _columns(request):
    for step in request.steps.steps:
        yield (
            step.columns
            if isinstance(step, LaplaceMarginal)
            else step.question.columns
            if isinstance(step, GaussianQuery)
            else ()
        )


def test_whole_marginals_and_pieces_are_joined_without_loss(tmp_path):
    """Marginals measured whole, in any order of columns, say what they said; the total too."""
    with desk_of(tmp_path) as desk:
        sigma = Fraction(1, 4)
        for columns in (("rich", "age"), ("age", "city", "ill")):
            desk.answer(Measure(Steps((GaussianQuery(Marginal(columns), sigma, 16.0),)), "a marginal"))
        found = joined_lattice(desk.known, TRIPLES)
        assert total_of(found)[0] == pytest.approx(ROWS, abs=6)
        seen = GaussianLattice(found)
        for columns in (("age", "rich"), ("age", "city", "ill"), ("city", "ill"), ("age",)):
            family = seen.family(Marginal(columns))
            assert np.abs(seen.estimate_family(family).values - counts_of(columns)).max() < 6
        # What the executor knows is as it was.
        assert desk.known.lattice.blocks.get(("age", "rich")) is None


# --- Where delta is 0 -------------------------------------------------------------------------------------------------


def test_the_depth_goes_with_the_rows():
    known = LaplaceMarginals.nothing(DOMAIN, ADD)
    chosen = [best_depth(TRIPLES, known, rows, Fraction(1)).columns for rows in (30, 3_000, 10**7)]
    assert chosen == sorted(chosen)
    assert (chosen[0], chosen[-1]) == (1, 3)
    for depth in depths(TRIPLES, known, 3_000, Fraction(1)):
        assert {len(scope) for scope in depth.weights} == {depth.columns}
        assert sum(depth.weights.values()) == pytest.approx(1)


def test_with_few_rows_single_columns_are_measured_and_that_is_better(tmp_path, monkeypatch):
    codes, units, errors = linked_rows(400, seed=3), Fraction(1, 8), {1: [], 3: []}
    table = table_of(ADD, codes)
    for columns, found in errors.items():
        for _ in range(8):
            with desk_of(tmp_path, pure=True, table=table) as desk, quick_fits(3, 4, 60):
                run(measure_row_count(desk.known, Fraction(5)), desk.answer)
                if columns == 3:
                    deep = depths(TRIPLES, desk.known, 400, units)[2]
                    monkeypatch.setattr("discreet.release.methods.direct.best_depth", lambda *_, deep=deep: deep)
                model = desk.release(direct_release, units)
                names = [step.columns for request in desk.requests for step in request.steps.steps]
                assert {len(name) for name in names} == {columns}
                found.append(error_of(model, codes=codes))
    assert np.mean(errors[1]) < np.mean(errors[3])


# --- Refusals ---------------------------------------------------------------------------------------------------------


def test_too_many_cells_are_refused_before_anything_is_asked():
    wide = Domain({name: Integers(1, 1500, outside="drop", missing="drop") for name in "abc"})
    goal = goal_of([["a", "b"], ["a", "c"]], wide)
    assert str(2 * 1500**2) in too_large_to_fit(goal)
    assert 2 * 1500**2 > MOST_FITTED_CELLS >= 1500**2
    error = refused(direct_release(Brief(GaussianLattice.nothing(wide, ADD), goal, SOME)))
    assert isinstance(error, TooLarge)
    assert str(error) == too_large_to_fit(goal)
    many = Domain({f"x{place:02}": Boolean() for place in range(16)})
    assert "65536 residuals" in too_large_to_fit(goal_of([list(many)], many))
    long = Domain({"a": Integers(1, 5000, outside="drop", missing="drop")})
    assert "features" in too_large_to_fit(goal_of([["a"]], long))
    assert too_large_to_fit(TRIPLES) == ""


def test_noise_is_the_least_that_a_price_allows():
    rng = np.random.default_rng(0)
    for _ in range(200):
        moves = Fraction(int(rng.integers(1, 100)), int(rng.integers(1, 10)))
        units = Fraction(float(np.exp(rng.uniform(-20, 8))))
        sigma, scale = gaussian_noise(moves, units), laplace_noise(moves, units)
        near = 1 - Fraction(1, 2**26)
        assert near * units < moves / sigma**2 <= units
        assert near * units < moves / scale <= units
