"""Forecasts of the error from noise, against noise that is drawn."""

from fractions import Fraction
from itertools import pairwise
from math import pi

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet as dp
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.query.workload import marginals
from discreet.release.error.interactions import Spread
from discreet.release.error.noise_error import (
    guessed_spread,
    lattice_errors,
    marginal_errors,
    mean_error,
    projected_error,
    raw_error,
    spread_of,
)
from discreet.release.methods.residual_planner import allocate, as_steps
from discreet.release.task import goal_of


def nearest_table(numbers, rows):
    """The nearest point of the simplex of so many rows."""
    falling = np.sort(numbers)[::-1]
    levels = (np.cumsum(falling) - rows) / np.arange(1, len(falling) + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    return np.maximum(numbers - level, 0)


def drawn(rng, noise, deviation, size):
    return rng.normal(0, deviation, size) if noise == "gaussian" else rng.laplace(0, deviation / 2**0.5, size)


def drawn_table(rng, sizes, rows):
    """Counts of rows of a mixture of three kinds of people, with few common and many rare values."""
    kinds = [[rng.dirichlet(0.5 * np.ones(size)) for size in sizes] for _ in range(3)]
    shares = rng.dirichlet(np.ones(3))
    table = np.zeros(sizes)
    for share, laws in zip(shares, kinds, strict=True):
        each = np.ones(())
        for law in laws:
            each = np.multiply.outer(each, law)
        table += share * each
    return rng.multinomial(rows, table.ravel())


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_raw_error_is_the_mean_of_drawn_noise(noise):
    rng = np.random.default_rng(1)
    draws = np.abs(drawn(rng, noise, 7.0, 400_000))
    mean, spread = float(draws.mean()), float(draws.std()) / len(draws) ** 0.5
    assert abs(raw_error(50, 1000, 7.0, noise=noise) - 50 * mean / 1000) < 7 * 50 * spread / 1000


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("sizes", [(2,), (6, 5), (8, 7, 6), (20, 15, 10)])
def test_a_projected_error_is_about_that_of_drawn_noise(noise, sizes):
    rng = np.random.default_rng(2)
    rows, cells = 5000, int(np.prod(sizes))
    for share in (0.05, 0.5) if cells < 10 else (0.05, 0.5, 5.0):
        counts = drawn_table(rng, sizes, rows)
        deviation = share * rows / cells
        tries = [
            np.abs(nearest_table(counts + drawn(rng, noise, deviation, cells), rows) - counts).sum() / rows
            for _ in range(max(5, 2000 // cells))
        ]
        forecast = projected_error(spread_of(counts), deviation, noise=noise)
        assert forecast == pytest.approx(np.mean(tries), rel=0.12), (share, forecast)


def test_a_guessed_spread_forecasts_drawn_tables_within_a_factor_of_two():
    rng = np.random.default_rng(3)
    sizes, rows = (12, 9, 4), 20_000
    domain = dp.Domain(
        {
            name: dp.Categories(range(size), outside="drop", missing="drop")
            for name, size in zip("abc", sizes, strict=True)
        }
    )
    guess = guessed_spread(domain, "abc", rows)
    for share in (0.1, 1.0, 10.0):
        deviation, errors = share * rows / 432, []
        for _ in range(10):
            counts = drawn_table(rng, sizes, rows)
            noisy = nearest_table(counts + rng.normal(0, deviation, 432), rows)
            errors.append(np.abs(noisy - counts).sum() / rows)
        assert 0.5 < projected_error(guess, deviation) / np.mean(errors) < 2


def test_a_guess_has_all_rows_and_cells_and_falls_as_a_power():
    domain = dp.Domain({name: dp.Integers(0, 31, outside="drop", missing="drop") for name in "abc"})
    guess = guessed_spread(domain, "abc", 1234)
    assert guess.rows == pytest.approx(1234)
    assert guess.cells.sum() == pytest.approx(32**3)
    assert len(guess.counts) <= 256
    assert np.all(np.diff(guess.counts) >= 0)
    one = guessed_spread(domain, "a", 1000)
    assert one.counts[-1] / one.counts[-3] == pytest.approx(9), "the third cell has a ninth of the first"


def test_groups_of_cells_forecast_like_single_cells():
    counts = np.random.default_rng(4).pareto(1.0, size=5000) * 10
    for deviation in (3.0, 30.0, 300.0):
        alone = Spread(counts, np.ones(len(counts)))
        assert projected_error(spread_of(counts), deviation) == pytest.approx(
            projected_error(alone, deviation), rel=0.01
        )


def test_more_noise_is_more_error_and_a_table_is_never_further_than_two():
    guess = spread_of(np.arange(200))
    errors = [projected_error(guess, deviation) for deviation in (0.0, 0.1, 1.0, 10.0, 100.0, 1e4, np.inf)]
    assert errors[0] == 0
    assert errors[-1] == 2
    assert all(less < more for less, more in pairwise(errors))
    assert projected_error(guess, 0.1) == pytest.approx(raw_error(200, guess.rows, 0.1), rel=0.01)
    assert projected_error(guess, 1e4) < raw_error(200, guess.rows, 1e4) / 40


def test_a_lattice_error_is_that_of_the_answers():
    """Read off the lattice after the steps: the mean variance of the cells of each marginal."""
    domain = dp.Domain(
        {
            "a": dp.Integers(0, 7, outside="drop", missing="drop"),
            "b": dp.Categories(range(5), outside="drop", missing="drop"),
            "c": dp.Boolean(),
        }
    )
    goal, known, budget = (
        goal_of(marginals(domain, 2), domain),
        GaussianLattice.nothing(domain, dp.Unit()),
        Fraction(1, 100),
    )
    precisions = allocate(goal, known, budget=budget)
    for step in as_steps(known, precisions, budget=budget).steps:
        known.learn(step)
    errors = lattice_errors(goal, precisions, 1000)
    for scope, error in zip(goal.scopes, errors.tolist(), strict=True):
        variances = known.estimate_family(known.family(dp.query.Marginal(scope))).variances
        assert error == pytest.approx(np.sqrt(2 / pi * variances).sum() / 1000, rel=1e-6)
    projected = lattice_errors(goal, precisions, 1000, projected=True)
    assert np.all(projected < errors)
    told = {goal.scopes[0]: spread_of(np.full(goal.cells(goal.scopes[0]), 1000 / goal.cells(goal.scopes[0])))}
    with_told = lattice_errors(goal, precisions, 1000, projected=True, spreads=told)
    assert with_told[0] != projected[0]
    assert with_told[1:].tolist() == projected[1:].tolist()


@pytest.mark.parametrize(("noise", "power"), [("gaussian", 0.5), ("laplace", 1.0)])
def test_marginals_by_themselves_share_a_budget_in_the_best_way(noise, power):
    """The error of a marginal is weight · cells · constant/share^power: no split of the budget is better."""
    domain = dp.Domain(
        {name: dp.Integers(0, size - 1, outside="drop", missing="drop") for name, size in (("a", 3), ("b", 40))}
    )
    goal = goal_of({("a",): 1.0, ("b",): 2.0, ("a", "b"): 0.5}, domain)
    best = mean_error(goal, marginal_errors(goal, dp.Unit(), 1000, budget=0.01, noise=noise))
    worth = np.array([weight * goal.cells(scope) for scope, weight in goal.weights])
    constant = (2 / pi) ** 0.5 if noise == "gaussian" else 1.0

    def error(logs):
        shares = 0.01 * np.exp(logs) / np.exp(logs).sum()
        return float((worth * constant / shares**power).sum() / 1000)

    found = minimize(error, np.zeros(3), method="BFGS")
    assert best == pytest.approx(found.fun, rel=1e-5)


def test_exchanged_people_and_people_with_several_rows_need_more_noise():
    domain = dp.Domain({"a": dp.Integers(0, 3, outside="drop", missing="drop"), "b": dp.Boolean()})
    goal = goal_of(marginals(domain, 1), domain)
    one = marginal_errors(goal, dp.Unit(), 1000, budget=0.01)
    three = marginal_errors(goal, dp.Unit(key="who", contributions=3), 1000, budget=0.01)
    exchanged = marginal_errors(goal, dp.Unit(neighbors="replace_one"), 1000, budget=0.01)
    np.testing.assert_allclose(three, 3 * one)
    np.testing.assert_allclose(exchanged, 2**0.5 * one)


def test_the_lattice_beats_marginals_by_themselves():
    """For all pairs of ten columns every single column is in nine pairs, and is paid once."""
    domain = dp.Domain({f"x{place}": dp.Boolean() for place in range(10)})
    goal, known = goal_of(marginals(domain, 2), domain), GaussianLattice.nothing(domain, dp.Unit())
    alone = mean_error(goal, marginal_errors(goal, dp.Unit(), 1000, budget=0.01))
    together = mean_error(goal, lattice_errors(goal, allocate(goal, known, budget=0.01, norm="l1"), 1000))
    assert together < 0.85 * alone
