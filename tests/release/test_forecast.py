"""Forecasts of releases: they move the right way, name what cannot be done, are quick, and tell methods apart."""

from fractions import Fraction
from itertools import combinations
from math import inf
from time import process_time

import numpy as np
import pytest

from discreet.estimate.laplace_estimator import estimator_for
from discreet.estimate.measurements import GaussianQuery
from discreet.lab.textbook.mwem_release import mwem_forecast
from discreet.lab.textbook.small_db import small_db_forecast
from discreet.query.residual import Residual
from discreet.release.error.interactions import (
    expected_error,
    guessed_shares,
    layers_of,
    noise_share,
    precisions_known,
    sampled,
)
from discreet.release.error.noise_error import guessed_spread, projected_error
from discreet.release.forecast import (
    adaptive_forecast,
    direct_forecast,
    lattice_forecast,
    lattice_precision,
    mixture_forecast,
    mixture_precision,
)
from discreet.release.task import Brief, goal_of
from discreet.schema import Unit
from discreet.schema.column import Categories
from discreet.schema.domain import Domain

FORECASTS = {
    "direct": direct_forecast,
    "lattice": lattice_forecast,
    "adaptive": adaptive_forecast,
    "mixture": mixture_forecast,
    "mwem": mwem_forecast,
    "small_db": small_db_forecast,
}
GAUSSIAN = ("direct", "lattice", "adaptive", "mixture")
SMALL = (2, 3, 2, 4)
WIDE = (74, 7, 16, 16, 7, 14, 6, 5, 2, 90, 40, 90, 41, 2, 9)


def domain_of(sizes):
    return Domain(
        {f"x{n:03}": Categories([*range(size)], outside="drop", missing="drop") for n, size in enumerate(sizes)}
    )


def brief_of(sizes, ways, units, *, pure=False, unit=None):
    domain = domain_of(sizes)
    known = estimator_for("pure" if pure else "gaussian", domain, unit or Unit())
    return Brief(known, goal_of([*combinations(domain, ways)], domain), Fraction(units))


@pytest.mark.parametrize("method", FORECASTS)
def test_a_forecast_has_its_method_and_figures_that_can_be(method):
    found = FORECASTS[method](brief_of(SMALL, 2, Fraction(1, 10)), 1000.0)
    assert found.method == method
    assert found.possible
    assert not found.why_not
    assert 0 < found.error <= 2
    assert 0 < found.seconds < 600
    assert 1e8 < found.memory < 1e10


@pytest.mark.parametrize("method", GAUSSIAN)
@pytest.mark.parametrize(("sizes", "ways"), [(SMALL, 2), (SMALL, 3), ((2,) * 8, 3), ((5, 9, 12, 4, 7), 3)])
def test_more_budget_or_more_rows_are_not_worse(method, sizes, ways):
    grid = [
        [FORECASTS[method](brief_of(sizes, ways, Fraction(10) ** -power), rows).error for power in range(6, -3, -1)]
        for rows in (1e3, 1e4, 1e5, 1e6)
    ]
    # Shares change with the budget in steps, so a forecast may rise by a little.
    assert (np.diff(np.log(grid), axis=0) < 0.1).all()
    assert (np.diff(np.log(grid), axis=1) < 0.1).all()
    assert grid[-1][-1] < 0.01 < 0.5 < grid[0][0] <= 2


@pytest.mark.parametrize("method", GAUSSIAN)
def test_four_times_the_budget_halves_the_error_of_a_rich_release(method):
    little, much = (FORECASTS[method](brief_of(SMALL, 2, units), 1e5).error for units in (4, 16))
    assert much == pytest.approx(little / 2, rel=0.2)


@pytest.mark.parametrize("method", GAUSSIAN)
def test_what_is_known_makes_a_release_better(method):
    before, after = brief_of(SMALL, 2, Fraction(1, 1000)), brief_of(SMALL, 2, Fraction(1, 1000))
    for columns in ((), *after.goal.below):
        after.known.lattice.add(Residual(tuple((name, 1) for name in columns)), variance=1.0, values=None)
    assert FORECASTS[method](after, 1e4).error < FORECASTS[method](before, 1e4).error / 5


def test_a_person_with_several_rows_costs_accuracy():
    one, three = (brief_of(SMALL, 3, 1, unit=unit) for unit in (Unit(), Unit(key="who", contributions=3)))
    assert mixture_forecast(three, 1e4).error > 2 * mixture_forecast(one, 1e4).error


@pytest.mark.parametrize("method", ["lattice", "adaptive", "mixture"])
def test_without_a_delta_methods_of_gaussian_noise_say_why_they_cannot(method):
    found = FORECASTS[method](brief_of(SMALL, 2, 1, pure=True), 1000.0)
    assert found.error == inf
    assert not found.possible
    assert "delta is 0" in found.why_not


@pytest.mark.parametrize("method", ["direct", "mwem", "small_db"])
def test_without_a_delta_the_others_can_and_more_epsilon_helps(method):
    little, much = (FORECASTS[method](brief_of(SMALL, 2, units, pure=True), 1e4) for units in (Fraction(1, 20), 20))
    assert much.possible
    assert much.error < little.error <= 2


@pytest.mark.parametrize("method", ["direct", "lattice", "mwem", "small_db"])
def test_what_is_too_large_is_refused_with_its_number(method):
    found = FORECASTS[method](brief_of((200, 200, 200), 3, 1), 1e5)
    assert not found.possible
    assert "8000000" in found.why_not
    assert "limit" in found.why_not


def test_a_mixture_of_too_many_features_is_refused():
    found = mixture_forecast(brief_of((3000, 3000), 2, 1), 1e5)
    assert not found.possible
    assert "6001" in found.why_not


def test_the_lattice_has_the_least_noise_and_the_mixture_wins_where_most_pieces_are_noise():
    rich, poor = brief_of((2,) * 8, 3, 100), brief_of((12, 20, 30, 9, 15), 3, Fraction(1, 1000))
    assert lattice_forecast(rich, 1e5).error < mixture_forecast(rich, 1e5).error
    assert mixture_forecast(poor, 1e4).error < 0.8 * lattice_forecast(poor, 1e4).error


@pytest.mark.parametrize("make", [lambda brief: mixture_precision(brief, 1e4), lattice_precision])
def test_precisions_cost_no_more_than_the_budget(make):
    brief = brief_of((5, 9, 12, 4), 3, Fraction(1, 10))
    layers = layers_of(brief.goal)
    spent = float(make(brief).precision @ np.where(layers.depth == 0, 1.0, layers.price))
    assert 0.9 * 0.1 < spent <= 0.1 * (1 + 1e-9)


def test_the_quick_noise_is_about_that_of_the_nearest_table():
    for sizes in [(2,), (30,), (2, 10), (20, 30), (3, 4, 5), (10, 10, 10)]:
        domain = domain_of(sizes)
        for deviation in (1e-4, 1e-3, 1e-2, 0.1):
            exact = projected_error(guessed_spread(domain, list(domain), 1.0), deviation)
            assert noise_share(guessed_shares(sizes), deviation) == pytest.approx(exact, rel=0.4)


def test_a_sample_of_marginals_stands_for_all():
    brief = brief_of(WIDE, 3, 1)
    layers, few = layers_of(brief.goal), sampled(brief.goal)
    known = mixture_precision(brief, 5e4).precision
    every = sampled(brief.goal, len(brief.goal.scopes))
    assert len(few) == 24
    assert len(every) == 455
    assert sum(weight for _, weight in few) == pytest.approx(1)
    assert expected_error(layers, known, 5e4) == pytest.approx(
        sum(
            weight * expected_error(layers_of(goal_of([scope], brief.goal.domain)), _of(known, layers, scope), 5e4)
            for scope, weight in every
        ),
        rel=0.1,
    )


def _of(precision, layers, scope):
    own = layers_of(goal_of([scope], layers.goal.domain))
    return np.array([precision[layers.index[columns]] for columns in own.columns])


def test_a_marginal_that_was_measured_whole_counts_for_its_columns_too():
    from discreet.query.linear import Marginal

    brief = brief_of(SMALL, 2, 1)
    scope = brief.goal.scopes[0]
    brief.known.learn(GaussianQuery(Marginal(scope), Fraction(10), 0.0), np.zeros(6, dtype=np.int64))
    layers = layers_of(brief.goal)
    found = precisions_known(layers, brief.known)
    assert found[layers.index[scope]] == pytest.approx(1 / 100, rel=0.01)
    assert found[layers.index[scope[:1]]] == pytest.approx(1 / 300, rel=0.01)


@pytest.mark.parametrize("method", GAUSSIAN)
def test_forecasts_are_the_same_each_time(method):
    first, second = (FORECASTS[method](brief_of(WIDE, 2, Fraction(1, 7)), 4e4) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("sizes", "ways", "seconds"), [(WIDE, 3, 0.4), ((4,) * 100, 2, 2.0)])
def test_all_forecasts_are_quick(sizes, ways, seconds):
    brief = brief_of(sizes, ways, Fraction(1, 10))
    start = process_time()
    for forecast in FORECASTS.values():
        forecast(brief, 5e4)
    assert process_time() - start < seconds
