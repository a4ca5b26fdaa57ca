"""The product of the single columns: each column as the looks at it say, by their precisions, and never negative."""

import numpy as np
import pytest

from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.independent_model import nearest, product_of, soften
from discreet.query.residual import axis_of
from discreet.schema import Boolean, Categories, Domain, Integers

PEOPLE = Domain(
    {
        "region": Categories(list("wxyz"), outside="drop"),
        "age": Integers(0, 4, missing="drop"),
        "ill": Boolean(),
        "one": Categories(["x"], outside="drop"),
    }
)
TOTAL = 400.0


def part_looks(name, counts, weight=1.0):
    """A look at each part of a column."""
    axis = axis_of(PEOPLE[name])
    return [NoisyMarginal((name,), (part,), axis.measure(part) @ counts, weight) for part in range(1, axis.parts)]


def column_of(model, name):
    return model.marginal([name])


# --- The nearest distribution -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_shares_are_shares_and_none_is_nearer(seed):
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 40):
        wild = rng.normal(scale=rng.choice([0.1, 1, 30]), size=size)
        found = nearest(wild)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        # A convex set: no vertex lies beyond the plane through the nearest point, so nothing is nearer.
        assert ((np.eye(size) - found) @ (wild - found)).max() <= 1e-9 * max(1, np.abs(wild).max())


def test_shares_stay_as_they_are():
    shares = np.random.default_rng(0).dirichlet(np.ones(9))
    np.testing.assert_allclose(nearest(shares), shares)


# --- What looks say ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "counts"), [("region", [100, 0, 60, 240]), ("age", [1, 9, 90, 0, 300]), ("ill", [390, 10])]
)
def test_exact_looks_give_the_column_back_whether_whole_or_in_parts(name, counts):
    counts = np.array(counts, dtype=float)
    whole = [NoisyMarginal((name,), None, counts, 1.0)]
    for looks in (whole, part_looks(name, counts), [*whole, *part_looks(name, counts, weight=7.0)]):
        np.testing.assert_allclose(column_of(product_of(PEOPLE, looks, total=TOTAL), name), counts, atol=1e-9)


def test_what_nobody_looked_at_is_uniform_and_columns_do_not_go_together():
    counts = np.array([100.0, 0, 60, 240])
    model = product_of(PEOPLE, [NoisyMarginal(("region",), None, counts, 1.0)], total=TOTAL)
    np.testing.assert_allclose(column_of(model, "age"), TOTAL / 5)
    np.testing.assert_allclose(model.marginal(["ill", "region"]), np.outer([0.5, 0.5], counts))
    assert model.total == TOTAL
    assert model.marginal([]) == pytest.approx(TOTAL)
    assert len(model.weights) == 1


def test_a_whole_marginal_says_something_of_each_of_its_columns_and_parts_of_several_nothing():
    table = np.outer([30.0, 70.0], [100.0, 0, 60, 240]) / 100
    model = product_of(PEOPLE, [NoisyMarginal(("ill", "region"), None, table, 1.0)], total=TOTAL)
    np.testing.assert_allclose(column_of(model, "ill"), [120, 280])
    np.testing.assert_allclose(column_of(model, "region"), [100, 0, 60, 240], atol=1e-9)
    contrast = NoisyMarginal(("ill", "region"), (1, 1), np.full((1, 4), 99.0), 1.0)
    alone = product_of(PEOPLE, [contrast], total=TOTAL)
    np.testing.assert_allclose(column_of(alone, "region"), 100)


def test_looks_are_joined_by_their_precisions():
    one, other = np.array([100.0, 300.0]), np.array([200.0, 200.0])
    looks = [NoisyMarginal(("ill",), None, one, 3.0), NoisyMarginal(("ill",), None, other, 1.0)]
    np.testing.assert_allclose(column_of(product_of(PEOPLE, looks, total=TOTAL), "ill"), [125, 275])
    # Of a marginal of eight cells a column of two has four numbers a cell: a quarter of the precision.
    pair = NoisyMarginal(("ill", "region"), None, np.outer(other, np.ones(4)) / 4, 4.0)
    found = product_of(PEOPLE, [NoisyMarginal(("ill",), None, one, 3.0), pair], total=TOTAL)
    np.testing.assert_allclose(column_of(found, "ill"), [125, 275])


def test_parts_and_wholes_are_joined_by_their_precisions():
    one, other = np.array([100.0, 300.0]), np.array([200.0, 200.0])
    (part,) = part_looks("ill", other, weight=1.0)
    gain = axis_of(PEOPLE["ill"]).gain(1)
    found = product_of(PEOPLE, [NoisyMarginal(("ill",), None, one, 3.0 * gain), part], total=TOTAL)
    np.testing.assert_allclose(column_of(found, "ill"), [125, 275])


def test_a_look_whose_sum_is_not_the_total_is_moved_evenly():
    found = product_of(PEOPLE, [NoisyMarginal(("ill",), None, np.array([300.0, 200.0]), 1.0)], total=TOTAL)
    np.testing.assert_allclose(column_of(found, "ill"), [250, 150])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_noise_it_is_a_distribution_and_the_order_of_looks_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    looks = [
        NoisyMarginal((name,), None, rng.normal(scale=500, size=PEOPLE[name].size), rng.random()) for name in PEOPLE
    ]
    for name in ("age", "region", "ill"):
        looks += part_looks(name, rng.normal(scale=500, size=PEOPLE[name].size), weight=rng.random())
    model, again = (product_of(PEOPLE, each, total=TOTAL) for each in (looks, looks[::-1]))
    assert model.tables.min() >= 0
    for name in PEOPLE:
        assert column_of(model, name).sum() == pytest.approx(TOTAL)
    np.testing.assert_allclose(model.tables, again.tables, atol=1e-12)


def test_more_precise_looks_give_a_nearer_column():
    """On average over noise of the spread that is said: the mean of both looks is nearer than the worse of them."""
    rng, counts, errors = np.random.default_rng(0), np.array([80.0, 80, 80, 80, 80]), []
    for _ in range(200):
        looks = [
            NoisyMarginal(("age",), None, counts + spread * rng.normal(size=5), 1 / spread**2) for spread in (5.0, 10.0)
        ]
        each = [looks[:1], looks[1:], looks]
        errors.append([np.abs(column_of(product_of(PEOPLE, some, total=TOTAL), "age") - counts).sum() for some in each])
    sharp, blurred, both = np.mean(errors, axis=0)
    assert both < sharp < 0.7 * blurred


# --- Soft columns -----------------------------------------------------------------------------------------------------


def test_a_soft_column_is_a_distribution_and_the_nearest_one_where_there_is_no_noise():
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        for deviation in (0.0, 1e-9, 0.1, 10.0):
            shares = rng.dirichlet(np.ones(size)) + deviation * rng.normal(size=size)
            soft = soften(shares, deviation)
            assert soft.min() >= 0
            assert soft.sum() == pytest.approx(1)
            if deviation < 1e-6:
                np.testing.assert_allclose(soft, nearest(shares), atol=1e-7)


@pytest.mark.parametrize(("flat", "deviation"), [(1.0, 0.3), (1.0, 1.0), (0.1, 1.0)])
def test_where_noise_is_large_a_soft_column_is_nearer_than_the_nearest(flat, deviation):
    """In the mean over columns with some in many cells, and over columns with most in few."""
    rng, gains = np.random.default_rng(1), []
    for _ in range(200):
        true = rng.dirichlet(np.full(12, flat))
        shares = true + deviation * rng.normal(size=12)
        gains.append([np.abs(each - true).sum() for each in (soften(shares, deviation), nearest(shares))])
    soft, hard = np.mean(gains, axis=0)
    deviations = np.std(np.diff(gains, axis=1)) / len(gains) ** 0.5
    assert hard - soft > 6 * deviations


def test_a_soft_product_has_the_noise_of_its_looks():
    """Whole or in parts: what is known well is as it was measured, what is not is nearly uniform."""
    domain = Domain({"sharp": Categories([*range(6)]), "dim": Categories([*range(6)])})
    size = domain["dim"].size
    counts = np.zeros(size)
    counts[0] = 100.0
    parted = [
        NoisyMarginal((name,), (1,), size * counts - counts.sum(), weight / size**2)
        for name, weight in (("sharp", 1e6), ("dim", 1e-6))
    ]
    whole = [NoisyMarginal((name,), None, counts, weight) for name, weight in (("sharp", 1e6), ("dim", 1e-6))]
    for looks in (parted, whole, [*parted, *whole]):
        model = product_of(domain, looks, total=100.0, soft=True)
        np.testing.assert_allclose(model.marginal(["sharp"]), counts, atol=0.01)
        assert model.marginal(["dim"]).max() < 60
        hard = product_of(domain, looks, total=100.0)
        np.testing.assert_allclose(hard.marginal(["dim"]), counts, atol=1e-6)
