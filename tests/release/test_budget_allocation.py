"""Many columns are raised on one budget, all to the same multiple; what is known is not paid again."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.filter import loss
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.plan.allocation import fill_to_budget
from discreet.plan.plan import Steps
from discreet.release.budget_allocation import steps_within
from discreet.schema import Boolean, Categories, Domain, Integers, Unit

DOMAIN = Domain(
    {
        "age": Integers(0, 9, missing="drop"),
        "city": Categories(["a", "b", "c", "d", "e"], outside="drop", missing="drop"),
        "ill": Boolean(),
        "one": Categories(["x"], outside="drop", missing="drop"),
    }
)
UNITS = [
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(key="who", contributions=3),
    Unit(key="who", contributions=2, neighbors="replace_one"),
]
WANTED = {("age",): 1.0, ("city",): 2.0, ("age", "city"): 0.1, ("age", "ill"): 0.5, ("ill",): 1.0}


def bought(known, steps):
    """Learn how well everything is known once the steps are taken; what they cost, exactly."""
    for step in steps.steps:
        known.learn(step)
    return loss(steps.event(DOMAIN, known.lattice.unit))


def nothing(unit=None):
    return GaussianLattice.nothing(DOMAIN, Unit() if unit is None else unit)


def multiples(known, wanted=WANTED):
    """For each scope, the least and the largest precision of its pieces in parts of what was wanted."""
    precisions = {scope: known.lattice.block(scope).precision / wanted[scope] for scope in wanted}
    return np.array([(each.min(), each.max()) for each in precisions.values()])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("units", [1e-9, 1e-4, 0.03, 0.4, 10, 100])
def test_the_price_is_never_above_the_budget_and_all_but_reaches_it(unit, units):
    steps = steps_within(nothing(unit), WANTED, units)
    price = loss(steps.event(DOMAIN, unit))
    assert Fraction(99_999, 100_000) * Fraction(units) < price <= Fraction(units)
    # However rich the budget, nothing is left out.
    assert {step.measurement.columns for step in steps.steps} == set(WANTED)
    assert steps.price == pytest.approx(float(price))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_every_piece_is_raised_to_the_same_multiple_of_what_is_wanted(unit):
    known = nothing(unit)
    bought(known, steps_within(known, WANTED, 1e-3))
    found = multiples(known)
    np.testing.assert_allclose(found, found[0, 0], rtol=1e-4)
    # Only what was named, not its subsets.
    assert not known.lattice.block(()).precision
    alone = nothing(unit)
    bought(alone, steps_within(alone, {("age", "city"): 1.0}, 1e-3))
    assert not alone.lattice.block(("age",)).precision.any()


def test_what_is_known_already_is_not_paid_again():
    """In two goes, or for half of the scopes first: in the end it is as if all had been bought at once."""
    first, second, once = nothing(), nothing(), nothing()
    spent = bought(once, steps_within(once, WANTED, 1e-3))
    for part in (0.2, 0.8):
        spent -= bought(first, steps_within(first, WANTED, part * 1e-3))
    np.testing.assert_allclose(multiples(first), multiples(once), rtol=1e-4)
    half = {scope: WANTED[scope] for scope in (("age",), ("age", "city"))}
    early = bought(second, steps_within(second, half, 2e-4))
    bought(second, steps_within(second, WANTED, 1e-3 - float(early)))
    np.testing.assert_allclose(multiples(second), multiples(once), rtol=1e-4)
    assert abs(spent) < 1e-7


def test_what_is_known_better_stays_as_it_is():
    known = nothing()
    bought(known, steps_within(known, {("city",): 1.0}, 0.1))
    before = known.lattice.block(("city",)).precision.copy()
    steps = steps_within(known, WANTED, 1e-3)
    bought(known, steps)
    np.testing.assert_array_equal(known.lattice.block(("city",)).precision, before)
    assert ("city",) not in {step.measurement.columns for step in steps.steps}
    rest = {scope: share for scope, share in WANTED.items() if scope != ("city",)}
    other = nothing()
    bought(other, steps_within(other, rest, 1e-3))
    np.testing.assert_allclose(multiples(known, rest), multiples(other, rest), rtol=1e-4)


def test_a_public_number_of_rows_is_not_bought():
    known = nothing(Unit(neighbors="replace_one"))
    known.learn_total(100)
    assert steps_within(known, {(): 1.0}, 0.5) == Steps(())
    steps = steps_within(known, {(): 1.0, ("ill",): 1.0}, 0.5)
    assert [step.measurement.columns for step in steps.steps] == [("ill",)]
    assert float(loss(steps.event(DOMAIN, known.lattice.unit))) == pytest.approx(0.5, rel=1e-3)
    # Power: where persons are added, it is private, and is bought.
    assert steps_within(nothing(), {(): 1.0}, 0.5).steps


@pytest.mark.parametrize(
    ("wanted", "units"), [({}, 1.0), ({("ill",): 0.0}, 1.0), (WANTED, 0.0), (WANTED, -1.0), ({("one",): 1.0}, 1.0)]
)
def test_nothing_is_bought_for_nothing(wanted, units):
    assert steps_within(nothing(), wanted, units) == Steps(())


def test_a_column_of_one_cell_takes_nothing_from_the_others():
    alone, beside = (steps_within(nothing(), wanted, 1e-3) for wanted in (WANTED, {**WANTED, ("one",): 9.0}))
    assert alone == beside


def test_the_order_of_what_is_wanted_does_not_matter():
    forwards, backwards = (
        steps_within(nothing(), dict(order), 1e-3) for order in (WANTED.items(), [*WANTED.items()][::-1])
    )
    assert sorted(map(repr, forwards.steps)) == sorted(map(repr, backwards.steps))


# --- Precisions alone -------------------------------------------------------------------------------------------------


def test_raising_leaves_alone_what_is_known_better():
    rng = np.random.default_rng(0)
    before, wanted, price = rng.exponential(size=(3, 20))
    found = fill_to_budget(wanted, price, before, 2.0)
    bought = found > before
    assert (found >= before).all()
    assert float((found - before) @ price) == pytest.approx(2.0)
    assert np.ptp(found[bought] / wanted[bought]) < 1e-9
    assert (before / wanted)[~bought].min() >= (found / wanted).min()


def test_nothing_is_raised_for_nothing_or_where_nothing_can_be_bought():
    before = np.array([0.0, 3.0, np.inf])
    for wanted, price, units in [
        (np.ones(3), np.ones(3), 0.0),
        (np.zeros(3), np.ones(3), 5.0),
        (np.ones(3), np.zeros(3), 5.0),
        (np.array([0.0, 0.0, 1.0]), np.ones(3), 5.0),
    ]:
        np.testing.assert_array_equal(fill_to_budget(wanted, price, before, units), before)
    # Power: what is wanted, has a price and is not exact is raised, and nothing else.
    np.testing.assert_allclose(fill_to_budget(np.ones(3), np.ones(3), before, 5.0), [4.0, 4.0, np.inf])


@pytest.mark.parametrize("unit", UNITS[:1] + UNITS[2:3], ids=lambda unit: unit.describe)
def test_precisions_that_are_raised_are_those_that_are_bought(unit):
    """Where pieces together cost what they cost one by one."""
    known = nothing(unit)
    bought(known, steps_within(known, {("age",): 1.0}, 2e-4))
    blocks = {scope: known.lattice.block(scope) for scope in WANTED}
    before = np.array([block.precision.min() for block in blocks.values()])
    price = np.array([block.price.sum() for block in blocks.values()])
    foreseen = fill_to_budget(np.array([*WANTED.values()]), price, before, 1e-3)
    bought(known, steps_within(known, WANTED, 1e-3))
    found = [known.lattice.block(scope).precision.min() for scope in WANTED]
    np.testing.assert_allclose(found, foreseen, rtol=1e-3)
