"""The lattice against dense linear algebra: pieces, their energies, estimates and variances of any query."""

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.measurements import GaussianResiduals
from discreet.estimate.residual_lattice import variance_of
from discreet.estimate.separable import energies_of
from discreet.query import Linear, Marginal, Residual
from discreet.query.product import Factor, Product, box
from discreet.query.residual import Measurement, axis_of
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from support.dense_estimator import (
    Releases,
    Space,
    estimate,
    random_domain,
    random_linear,
    random_marginal,
    random_measurements,
    random_question,
)
from support.strategies import law


def table(rng, domain):
    """Random counts on the declared cells."""
    return rng.integers(0, 50, size=domain.size)


def numbers_of(releases, counts, rng):
    """What would be released of these counts."""
    space = releases.space
    padded = np.zeros(len(space.declared))
    padded[space.declared] = counts
    noise = np.rint(rng.normal(0, np.sqrt(releases.variances)))
    return np.rint(releases.design @ padded + noise).astype(np.int64)


@law(30)
def test_the_pieces_are_orthogonal_projections_that_add_up_to_everything(seed):
    space = Space(random_domain(np.random.default_rng(seed), most_cells=64))
    projections = [space.projection(piece) for piece in space.pieces()]
    assert np.allclose(sum(projections), np.eye(len(space.declared)))
    for place, one in enumerate(projections):
        for other in projections[:place]:
            assert np.abs(one @ other).max() < 1e-9


@law(30)
def test_a_measuring_matrix_is_flat_and_its_gain_times_a_projection(seed):
    space = Space(random_domain(np.random.default_rng(seed), most_cells=64))
    for name in space.domain:
        axis = axis_of(space.domain[name])
        assert axis.parts == len(space.parts[name])
        for part, dense in enumerate(space.parts[name]):
            assert np.array_equal(axis.measure(part), dense[:, : axis.cells])
            assert np.allclose(dense.T @ dense, axis.gain(part) * np.linalg.pinv(dense) @ dense)
            assert set((dense**2).sum(axis=0)) == {axis.squared_norm(part)}


@law(60)
def test_the_energies_of_a_query_are_the_squared_lengths_of_its_projections(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    question = random_question(rng, space.domain)
    known = GaussianLattice.nothing(space.domain, Unit())
    family = known.family(question)
    energies = energies_of(family).reshape(family.size, *(axis.parts for axis in family.axes))
    padded = space.queries(question) @ space.pad.T
    everything = (padded**2).sum(axis=1).max()
    # The total is measured once, not once for each cell: the constants of a column count for one cell and not for N.
    for piece in space.pieces():
        parts = dict(piece.parts)
        constant = np.prod([space.parts[name][0].shape[1] for name in space.domain if name not in parts])
        dense = ((padded @ space.projection(piece)) ** 2).sum(axis=1) / constant
        if set(parts) <= set(family.columns):
            found = energies[(slice(None), *(parts.get(name, 0) for name in family.columns))]
            assert found == pytest.approx(dense, rel=1e-9, abs=1e-9 * everything)
        else:
            assert dense == pytest.approx(0, abs=1e-9 * everything)


@law(40)
def test_estimates_and_variances_are_those_of_generalised_least_squares(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    releases = Releases(
        space, random_measurements(rng, space, share=rng.choice([0.5, 0.9, 1.0])), [], bool(rng.random() < 0.3)
    )
    counts = table(rng, space.domain)
    numbers = numbers_of(releases, counts, rng)
    known = releases.learnt(numbers, total=int(counts.sum()))
    best, covariance, estimable = releases.least_squares(numbers, total=int(counts.sum()))
    for _ in range(4):
        question = random_question(rng, space.domain)
        family = known.family(question)
        found = known.estimate_family(family)
        padded = space.queries(question) @ space.pad.T
        scale = np.abs(padded).max() + 1e-300
        can = np.abs(padded @ estimable - padded).max(axis=1) < 1e-7 * scale
        # Where products cancel to nothing in a cell, rounding is left: see the test of this below.
        there = np.abs(padded).max(axis=1) > 0 if family.products > 1 else np.ones(len(padded), dtype=bool)
        assert np.array_equal(np.isfinite(found.variances).ravel()[there], can[there])
        can &= np.isfinite(found.variances).ravel()
        dense = np.einsum("qi,ij,qj->q", padded, covariance, padded)
        assert found.variances.ravel()[can] == pytest.approx(dense[can], rel=1e-6, abs=1e-9 * scale**2)
        assert found.values.ravel()[can] == pytest.approx((padded @ best)[can], rel=1e-7, abs=1e-6 * scale)
        assert known.largest_variance(family) == pytest.approx(float(found.variances.max()))


def known_without_noise(rng, space):
    """A random table, and an estimator that has learnt every residual of it exactly."""
    releases = Releases(space, [Measurement(tuple((piece, Fraction(1)) for piece in space.pieces()))], [])
    counts = table(rng, space.domain)
    padded = np.zeros(len(space.declared))
    padded[space.declared] = counts
    return counts, releases.learnt(np.rint(releases.design @ padded).astype(np.int64))


@law(40)
def test_without_noise_every_answer_is_the_truth(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    counts, known = known_without_noise(rng, space)
    question = random_question(rng, space.domain)
    truth = space.queries(question) @ counts
    assert known.estimate_family(known.family(question)).values.ravel() == pytest.approx(truth, abs=1e-6, rel=1e-9)


@law(40)
def test_the_cells_of_a_marginal_are_laid_out_in_the_order_in_which_its_columns_were_named(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    counts, known = known_without_noise(rng, space)
    question = random_marginal(rng, space.domain)
    values, variances = estimate(question, known)
    names, weight = list(space.domain), question.weight
    weighted = counts.reshape(space.domain.shape) * (1 if weight is None else weight.table(space.domain, names))
    others = tuple(axis for axis, name in enumerate(names) if name not in question.columns)
    kept = [name for name in names if name in question.columns]
    truth = weighted.sum(axis=others).transpose([kept.index(name) for name in question.columns])
    assert values == pytest.approx(truth.ravel(), abs=1e-6, rel=1e-9)
    assert variances.shape == values.shape


@law(40)
def test_answers_add_up(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    releases = Releases(space, random_measurements(rng, space), [])
    known = releases.learnt(numbers_of(releases, table(rng, space.domain), rng))

    def value(query):
        return float(estimate(query, known)[0][0])

    one, other = random_linear(rng, space.domain), random_linear(rng, space.domain)
    size = abs(value(one)) + abs(value(other)) + 1
    assert value(3 * one - other) == pytest.approx(3 * value(one) - value(other), abs=1e-7 * size)
    marginal = random_marginal(rng, space.domain)
    whole = Linear([Product(())]) if marginal.weight is None else marginal.weight
    cells, _ = estimate(marginal, known)
    assert cells.sum() == pytest.approx(value(whole), abs=1e-7 * (np.abs(cells).sum() + 1))


@law(25)
def test_precisions_add_in_any_order(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    releases = Releases(space, random_measurements(rng, space, share=1.0), [])
    numbers = numbers_of(releases, table(rng, space.domain), rng)
    starts = np.cumsum([0, *(sum(size for _, size in each.stretches(space.domain)) for each in releases.measurements)])
    order = rng.permutation(len(releases.measurements))
    shuffled = Releases(space, [releases.measurements[place] for place in order], [])
    again = shuffled.learnt(np.concatenate([numbers[starts[place] : starts[place + 1]] for place in order]))
    known, question = releases.learnt(numbers), random_question(rng, space.domain)
    one, other = known.estimate_family(known.family(question)), again.estimate_family(again.family(question))
    assert one.values == pytest.approx(other.values, abs=1e-7 * (np.abs(one.values).max() + 1))
    assert one.variances == pytest.approx(other.variances)


@law(25)
def test_measuring_more_never_makes_a_variance_larger(seed):
    rng = np.random.default_rng(seed)
    space = Space(random_domain(rng))
    measurements = random_measurements(rng, space, share=0.9)
    fewer = Releases(space, measurements[:-1], [])
    more = Releases(space, measurements, [])
    question = random_question(rng, space.domain)
    numbers = np.zeros(len(more.variances), dtype=np.int64)
    before, after = fewer.learnt(numbers), more.learnt(numbers)
    one, other = before.estimate_family(before.family(question)), after.estimate_family(after.family(question))
    assert np.all(other.variances <= one.variances * (1 + 1e-9))


DOMAIN = Domain(
    {"age": Integers(1, 5, missing="drop"), "city": Categories(["a", "b", "c"], outside="drop"), "sex": Boolean()}
)


def box_of(**cells):
    return box({name: np.isin(np.arange(DOMAIN[name].size), chosen) for name, chosen in cells.items()})


def known_of(*residuals, total=None, domain=DOMAIN):
    known = GaussianLattice.nothing(domain, Unit())
    if total is not None:
        known.learn_total(total)
    for parts in residuals:
        residual = Residual(parts)
        known.learn(
            GaussianResiduals(Measurement(((residual, Fraction(5)),)), 0.0),
            np.zeros(residual.size(domain), dtype=np.int64),
        )
    return known


def test_of_nothing_nothing_is_known_and_the_empty_question_is():
    known = GaussianLattice.nothing(DOMAIN, Unit())
    assert known.largest_variance(known.family(Linear([Product(())]))) == np.inf
    assert known.largest_variance(known.family(Marginal(("city",)))) == np.inf
    values, variances = estimate(Linear([]), known)
    assert (values.tolist(), variances.tolist()) == ([0.0], [0.0])


def test_what_is_not_asked_need_not_be_known():
    known = known_of((), (("sex", 1),))
    sex = Linear([box_of(sex=[1])])
    assert known.largest_variance(known.family(sex)) < np.inf
    # Men and women of all ages: age is constant.
    assert known.largest_variance(known.family(Linear([box_of(sex=[1]), box_of(sex=[0])]))) < np.inf
    assert known.largest_variance(known.family(Linear([box_of(sex=[1], age=[0])]))) == np.inf


LITTLE = Linear([box_of(sex=[1])])
EVERYONE = Linear([Product(())])


@pytest.mark.parametrize("times", [1, 1000, 2**21])
def test_a_little_of_what_is_unknown_is_unknown_however_much_of_the_known_is_beside_it(times):
    known = known_of(total=1000)
    assert known.largest_variance(known.family(times * EVERYONE + LITTLE)) == np.inf


@pytest.mark.parametrize("top", [100, 99_999])
def test_a_sum_of_a_wide_column_is_unknown_while_the_number_of_its_rows_is(top):
    """Distances from the middle have a mean of 1/2, and it counts: Σ over the rows of it is half their number."""
    domain = Domain({"gain": Integers(0, top, missing="drop"), "sex": Boolean()})
    axis = axis_of(domain["gain"])
    pieces = [(("gain", part), ("sex", 1)) for part in range(1, axis.parts)] + [
        (("gain", part),) for part in range(1, axis.parts)
    ]
    known = known_of((), *pieces, domain=domain)
    women = box({"sex": np.array([False, True])})
    centred = Linear([women.times("gain", np.arange(top + 1) - top // 2 + 1)])
    assert known.largest_variance(known.family(centred)) == np.inf


def test_a_cell_in_which_the_weights_cancel_is_known_to_be_zero():
    rng, known = np.random.default_rng(0), known_of(())
    for _ in range(20):
        ones = Linear([Product([Factor(("age",), rng.integers(1, 9, size=5)), Factor(("city",), np.array([1, 3, 7]))])])
        nothing = ones - Linear([Product([Factor(("age", "city"), ones.table(DOMAIN))])])
        _, variances = estimate(Marginal(("age", "city"), nothing), known)
        assert np.all(variances == 0)


def test_rounding_adds_a_twelfth():
    """Σ k² Pr[round(Y) = k], from the law itself."""
    from scipy.stats import norm

    for sigma in (1.0, 1.3, 2.0, 5.0):
        k = np.arange(1, 80)
        mass = norm.sf(k - 0.5, scale=sigma) - norm.sf(k + 0.5, scale=sigma)
        assert variance_of(sigma) == pytest.approx(float(2 * (mass * k**2).sum()), rel=1.1e-8)
    k = np.arange(1, 80)
    mass = norm.sf(k - 0.5, scale=0.5) - norm.sf(k + 0.5, scale=0.5)
    assert variance_of(0.5) != pytest.approx(float(2 * (mass * k**2).sum()), rel=1e-3), "below 1 it is not so"


@law(20)
def test_power_a_wrong_gain_or_a_wrong_mean_of_the_padding_is_noticed(seed):
    """The dense reference tells them apart: padding with zeros instead of the mean changes some variance."""
    rng = np.random.default_rng(seed)
    domain = Domain({"a": Integers(1, 5, missing="drop"), "b": Integers(1, 3, missing="drop")})
    space = Space(domain)
    releases = Releases(space, [Measurement(tuple((piece, Fraction(7)) for piece in space.pieces()))], [])
    known = releases.learnt(np.zeros(len(releases.variances), dtype=np.int64))
    _, covariance, _ = releases.least_squares(np.zeros(len(releases.variances)))
    query = Linear([box({"a": np.arange(5) < 2, "b": np.arange(3) == int(rng.integers(3))})])
    zeros = np.zeros(len(space.declared))
    zeros[space.declared] = space.queries(query)[0]
    wrong = zeros @ covariance @ zeros
    assert known.largest_variance(known.family(query)) != pytest.approx(wrong, rel=1e-3)


def test_padding_with_the_mean_is_never_worse_than_with_zeros_for_one_column():
    """f − f̄ has the least energy of all shifts of f, part by part."""
    domain = Domain({"a": Integers(1, 5, missing="drop")})
    space = Space(domain)
    for mask in range(1, 31):
        weights = np.array([mask >> bit & 1 for bit in range(5)])
        mean = space.pad @ weights
        zero = np.r_[weights, np.zeros(3)]
        projections = [space.projection(piece) for piece in space.pieces()[1:]]
        energy = [reduce(lambda total, p: total + ((p @ f) ** 2).sum(), projections, 0.0) for f in (mean, zero)]
        assert energy[0] <= energy[1] + 1e-12
