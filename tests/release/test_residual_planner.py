"""Releases from the lattice: what they cost, what is not paid twice, and what comes of them."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadParameter, TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals
from discreet.model.interface import total_of
from discreet.plan.plan import Measure, run
from discreet.query.workload import ranges
from discreet.release.methods.residual_planner import allocate, as_steps, lattice
from discreet.release.methods.residual_workload import asked_questions
from discreet.release.task import Brief, goal_of
from discreet.schema import Domain, Integers
from release.procedures import (
    ADD,
    DOMAIN,
    PAIRS,
    REPLACE,
    ROWS,
    SOME,
    TRIPLES,
    UNITS,
    desk_of,
    error_of,
    quick_fits,
    refused,
    table_of,
)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_it_costs_what_it_may_and_not_a_hair_more(unit, tmp_path):
    for units in (Fraction(1, 700), SOME):
        with desk_of(tmp_path, unit=unit) as desk, quick_fits():
            desk.release(lattice, units)
            assert Fraction(999, 1000) * units < desk.spent() <= units


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_with_plenty_the_model_is_near_the_table(unit, tmp_path):
    with desk_of(tmp_path, unit=unit) as desk, quick_fits(members=4, components=16, steps=200):
        model = desk.release(lattice, Fraction(30))
        assert model.total == pytest.approx(ROWS, rel=0.002)
        assert error_of(model) < 0.03


def test_marginals_of_four_columns_are_learnt(tmp_path):
    """Four columns of which each three tell nothing: only looks at all four see it."""
    rng = np.random.default_rng(5)
    codes = {name: rng.integers(2, size=ROWS) for name in ("ill", "old", "rich")}
    codes |= {"age": (codes["ill"] ^ codes["old"] ^ codes["rich"]), "city": rng.integers(3, size=ROWS)}
    codes["who"] = np.arange(ROWS)
    goal = goal_of([["age", "ill", "old", "rich"]], DOMAIN)
    with desk_of(tmp_path, table=table_of(ADD, codes)) as desk, quick_fits(members=4, components=16, steps=200):
        model = desk.release(lattice, SOME, goal)
        assert error_of(model, goal, codes) < 0.2
        assert error_of(model, goal_of([["age", "ill", "old"]], DOMAIN), codes) < 0.2
        assert Fraction(999, 1000) * SOME < desk.spent() <= SOME


def test_what_is_known_is_not_paid_again(tmp_path):
    with desk_of(tmp_path) as desk, quick_fits():
        before = as_steps(desk.known, allocate(PAIRS, desk.known, budget=50), budget=50)
        desk.answer(Measure(before, "looked at before"))
        precision = {columns: block.precision.copy() for columns, block in desk.known.lattice.blocks.items()}
        desk.release(lattice, SOME)
        (request,) = desk.requests
        measured = {step.measurement.columns for step in request.steps.steps}
        assert {len(columns) for columns in measured} == {3}
        for columns in [(), *PAIRS.scopes]:
            assert np.array_equal(desk.known.lattice.blocks[columns].precision, precision[columns])
        assert Fraction(999, 1000) * SOME < desk.spent() <= SOME


def test_rows_that_are_few_are_counted_so_that_it_matters_little(tmp_path):
    """Left to the split alone, the number of rows has the noise of a single cell of hundreds."""
    with desk_of(tmp_path) as desk, quick_fits():
        units = Fraction(1, 200)
        alone = allocate(TRIPLES, desk.known, budget=units, norm="l1")[()]
        desk.release(lattice, units)
        assert 1 / total_of(desk.known.lattice)[1] > 1.5 * float(alone)
        assert sum(len(request.steps.steps) == 1 for request in desk.requests) >= 1


def test_ranges_are_served_by_the_pieces_that_they_need(tmp_path):
    goal = goal_of([["age"]], DOMAIN)
    with desk_of(tmp_path, unit=REPLACE) as desk, quick_fits():
        asked = asked_questions(list(ranges(DOMAIN, "age")), DOMAIN)
        plain = allocate(goal, desk.known, budget=SOME, norm="l1")["age",]
        run(lattice(Brief(desk.known, goal, SOME, asked)), desk.answer)
        uneven = desk.known.lattice.blocks["age",].precision
        # A range has more of the coarse levels than a cell.
        assert uneven[0] / uneven[-1] > 1.04 * plain[0] / plain[-1]
        assert desk.spent() <= SOME


def test_it_is_refused_before_anything_is_asked():
    error = refused(lattice(Brief(LaplaceMarginals.nothing(DOMAIN, ADD), TRIPLES, SOME)))
    assert isinstance(error, BadParameter)
    assert 'method="direct"' in str(error)
    wide = Domain({name: Integers(1, 2500, outside="drop", missing="drop") for name in "ab"})
    error = refused(lattice(Brief(GaussianLattice.nothing(wide, ADD), goal_of([["a", "b"]], wide), SOME)))
    assert isinstance(error, TooLarge)
    assert "6250000 cells" in str(error)
