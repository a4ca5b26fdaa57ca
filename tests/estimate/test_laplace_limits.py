"""Where delta is 0, and for batches: what is too much work is bounded, and what is bounded is still right."""

import tracemalloc
from fractions import Fraction
from itertools import combinations
from json import dumps, loads

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator.release_basis import fitted_from_plain, fitted_to, fitted_to_plain
from discreet.errors import TooLarge
from discreet.estimate import laplace_estimator, laplace_marginal
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import LaplaceMarginals, _cell, _one_bar
from discreet.estimate.laplace_sum import chernoff_half_width, laplace_sum_half_width
from discreet.estimate.measurements import LaplaceMarginal, LaplaceQuery
from discreet.plan import allocation
from discreet.plan.allocation import Sparse, fill_to_targets
from discreet.plan.laplace_plan import laplace_step
from discreet.plan.plan import require_small_batch
from discreet.plan.steps import Target
from discreet.query import Marginal, col, count
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.release.task import goal_of
from discreet.schema.column import Boolean, Categories, Integers
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.schema.unit import Unit

FLAGS = Domain({f"f{i:02d}": Boolean(missing="drop", outside="drop") for i in range(20)})
SMALL = Domain({"age": Integers(0, 8), "city": Categories(["a", "b", "c"]), "sex": Boolean(), "ill": Boolean()})


def conjunction(names, domain=FLAGS):
    found = col(names[0]) == True  # noqa: E712, a predicate
    for name in names[1:]:
        found = found & (col(name) == True)  # noqa: E712
    return count(domain, found)


def told(domain=SMALL, seed=1):
    """What is known after some whole marginals."""
    known, rng = LaplaceMarginals.nothing(domain, Unit()), np.random.default_rng(seed)
    for columns, scale in (
        (("age", "city"), 7),
        (("age", "city", "sex"), 9),
        (("ill", "sex"), 5),
        (("age", "sex"), 4),
        (("age", "city", "ill", "sex"), 30),
    ):
        size = int(np.prod([domain[name].size for name in columns]))
        known.learn(LaplaceMarginal(columns, Fraction(scale), 0.0), rng.integers(0, 100, size))
    return known


WEIGHT = Linear([Product((Factor(("city",), np.array([1, 2, 5, 3][: SMALL["city"].size])),))])


@pytest.mark.parametrize(
    "question",
    [
        Marginal(("city", "sex")),
        Marginal(("age",)),
        Marginal(("age", "sex")),
        Marginal(("city",), WEIGHT),
        Marginal(("sex", "city"), WEIGHT),
    ],
)
def test_cells_that_look_alike_have_the_bars_they_would_have_alone(question):
    known = told()
    found = known.intervals(question, 0.95).errors
    alone = [_one_bar(_cell(question, known, place), known, 0.95) for place in range(question.size(SMALL))]
    np.testing.assert_allclose(found, alone, rtol=0.02)
    assert np.isfinite(found).all()


def test_beyond_the_limit_an_answer_comes_from_one_marginal(monkeypatch):
    """Its value is that of the marginal, its error that of its noise alone: wider, and never too narrow."""
    known, question = told(), Marginal(("city", "sex"))
    usual = known.intervals(question, 0.95)
    monkeypatch.setattr(laplace_marginal, "MOST_WEIGHED", 0)
    found = known.intervals(question, 0.95)
    best = next(each for each in known.marginals if each.columns == ("age", "city", "sex"))
    np.testing.assert_array_equal(found.values, best.values.reshape(best.shape).sum(axis=0).ravel())
    expected = laplace_sum_half_width(np.ones(1), np.array([9.0]), np.array([SMALL["age"].size]), confidence=0.95)
    assert set(found.errors.tolist()) == {expected}
    assert usual.errors.max() <= expected
    one = count(SMALL, (col("city") == "a") & (col("sex") == True))  # noqa: E712
    cell = told().intervals(one, 0.95)
    assert cell.errors.tolist() == [expected]
    assert cell.values[0] in found.values


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(1, 40)), min_size=1, max_size=12),
    st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
def test_the_shared_bound_is_never_below_the_tail(terms, confidence):
    weights, scales, counts = (np.array(each) for each in zip(*terms, strict=True))
    exact = laplace_sum_half_width(weights.astype(float), scales.astype(float), counts, confidence=confidence)
    found = chernoff_half_width(weights.astype(float), scales.astype(float), counts, failure=1 - confidence)
    assert exact <= found * (1 + 1e-9)
    more = chernoff_half_width(weights + 1.0, scales.astype(float), counts, failure=1 - confidence)
    assert exact <= more * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "count"), [(1e3, 10**6), (1e6, 10**6), (1e9, 10**9)])
def test_the_shared_bound_holds_for_very_large_noise(scale, count):
    """Of so many noises the sum is Gaussian, and cosh x − 1 is 0 in doubles."""
    spread = (2 * count) ** 0.5 * scale
    found = chernoff_half_width(np.ones(1), np.array([scale]), np.array([count]), failure=0.05)
    assert 1.959 * spread < found < 3 * spread


def test_cells_that_are_too_large_as_questions_of_their_own_have_the_bar_of_one_marginal():
    """The weight alone can be added up exactly, and not together with the cell of a group: no bar of 0 for that."""
    domain = Domain(
        {name: Integers(0, 29, missing="drop") for name in "ab"} | {"g": Categories(list("uvwxyz"), outside="drop")}
    )
    known, rng = LaplaceMarginals.nothing(domain, Unit()), np.random.default_rng(1)
    known.learn(LaplaceMarginal(("a", "b", "g"), Fraction(9), 0.0), rng.integers(0, 9, 30 * 30 * 6))
    first = (np.arange(30) < 10).astype(np.int64)
    weight = Linear([Product((Factor((name,), first),), sign * 2**21) for name, sign in (("a", 1), ("b", -1))])
    for question in (Marginal(("g",), weight), Marginal(("a", "g"), weight), weight):
        found = known.intervals(question, 0.95)
        assert found.errors.min() > 2**21


def test_very_many_different_weights_are_bounded(monkeypatch):
    known, question = told(), count(SMALL, (col("age") >= 3) & (col("sex") == True))  # noqa: E712
    exact = known.intervals(question, 0.95).errors
    monkeypatch.setattr(laplace_estimator, "MOST_FACTORS", 0)
    monkeypatch.setattr(laplace_estimator, "_WIDTHS", type(laplace_estimator._WIDTHS)(2**20))
    found = told().intervals(question, 0.95).errors
    assert exact < found < 2 * exact


def test_cells_of_one_name_in_two_tables_are_told_apart():
    """What is kept between requests is kept for one shape: another table may call other columns the same."""
    weight = Linear([Product((Factor(("sex",), np.array([1, 3, 1][: SMALL["sex"].size])),))])
    other = Domain({**{name: SMALL[name] for name in SMALL}, "city": Categories(["a", "b", "c", "d", "e"])})
    found = [laplace_estimator._kinds(Marginal(("city",), weight), told(domain)) for domain in (SMALL, other)]
    assert [each.which.size for each in found] == [SMALL["city"].size, other["city"].size]


def test_the_noises_of_a_wide_column_take_room_like_its_cells():
    """Of n cells the measuring matrices have n² numbers; they are never written down."""
    domain = Domain({"income": Integers(0, 9999, missing="drop")})
    known = LaplaceMarginals.nothing(domain, Unit())
    known.learn(LaplaceMarginal(("income",), Fraction(9), 0.0), np.zeros(10_000, dtype=np.int64))
    tracemalloc.start()
    try:
        known.intervals(Linear([Product((Factor(("income",), np.arange(10_000)),))]), 0.95)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_a_whole_marginal_of_too_many_pieces_is_not_bought():
    known = LaplaceMarginals.nothing(FLAGS, Unit())
    names = sorted(FLAGS)
    for many, kind in ((11, LaplaceMarginal), (12, LaplaceQuery)):
        question = Marginal(tuple(names[:many]), conjunction(names[:1]))
        for ahead in (True, False):
            found = laplace_step(question, Target(error=1000.0, confidence=0.95, joint=1), known, ahead=ahead)
            assert isinstance(found, kind) or not ahead, (many, found)
            assert not isinstance(found, LaplaceMarginal) or len(found.columns) <= 11


def test_a_batch_that_is_too_large_is_refused_and_nothing_is_paid():
    names = sorted(FLAGS)
    known = GaussianLattice.nothing(FLAGS, Unit())
    wide = [conjunction(names[place : place + 9]) for place in range(8)]
    require_small_batch(wide[:7], known)
    with pytest.raises(TooLarge, match="Ask in several batches"):
        require_small_batch(wide, known)
    require_small_batch([conjunction(names[:13])], known)
    pairs = [conjunction([one, other]) for one in names for other in names if one < other]
    require_small_batch(pairs, known)
    with pytest.raises(TooLarge, match="sets of columns"):
        require_small_batch(pairs, LaplaceMarginals.nothing(FLAGS, Unit()))
    require_small_batch(pairs[:40], LaplaceMarginals.nothing(FLAGS, Unit()))


@given(st.integers(0, 2**32 - 1))
def test_a_batch_is_planned_as_by_a_table(seed):
    """In linear time the same precisions are found, but for rounding, and every target holds."""
    energies, price, precision, targets = batch(seed)
    found = sparsely(energies, price, precision, targets, MOST_DENSE=0)
    table = energies.dense(len(price))
    slow = fill_to_targets(table, price, precision, targets)
    assert np.all((table / found).sum(axis=1) <= np.array(targets) * (1 + 1e-9))
    assert (price * (found - precision)).sum() <= (price * (slow - precision)).sum() * (1 + 1e-3) + 1e-9


@given(st.integers(0, 2**32 - 1))
def test_a_batch_meets_its_targets_however_early_the_search_ends(seed):
    energies, price, precision, targets = batch(seed)
    found = sparsely(energies, price, precision, targets, MOST_DENSE=0, MOST_ROUNDS=0, LEAST_ROUNDS=1)
    assert np.all(found >= precision)
    assert np.all((energies.dense(len(price)) / found).sum(axis=1) <= np.array(targets) * (1 + 1e-9))


def batch(seed):
    rng = np.random.default_rng(seed)
    pieces, questions = int(rng.integers(2, 8)), int(rng.integers(1, 9))
    chosen = [np.sort(rng.choice(pieces, rng.integers(1, pieces + 1), replace=False)) for _ in range(questions)]
    starts = np.cumsum([0, *(len(each) for each in chosen[:-1])])
    places = np.concatenate(chosen)
    energies = Sparse(rng.uniform(0.1, 5, len(places)), places, starts)
    return energies, rng.uniform(0.5, 3, pieces), rng.uniform(0, 1, pieces), rng.uniform(0.5, 2, questions).tolist()


def sparsely(*given, **limits):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(allocation, name, value)
        return fill_to_targets(*given)


NAMES = [
    ("age",),
    ("city",),
    ("age", "city"),
    ("ill", "sex"),
    ("age", "ill", "sex"),
    ("city", "sex"),
    ("age", "city", "ill", "sex"),
]


@pytest.mark.parametrize("names", NAMES)
def test_a_release_is_as_sure_of_its_columns_as_what_it_was_fitted_to(names):
    """Wide marginals say something of few columns, and their noise is in it: left out, bars would be far too narrow."""
    known, schema = told(), Schema("people", SMALL, Unit())
    fitted = fitted_to(known, goal_of([list(names)], SMALL))
    plain, arrays = fitted_to_plain(fitted)
    for found in (fitted, fitted_from_plain(loads(dumps(plain)), arrays, (), schema, pure=True)):
        for columns in (chosen for size in range(len(names) + 1) for chosen in combinations(names, size)):
            weight = Linear([Product([Factor((each,), np.arange(SMALL[each].size)) for each in columns])])
            for question in (Marginal(columns), weight, Marginal(columns[:1], weight)):
                there, here = (each.intervals(question, 0.95) for each in (found.known(schema), known))
                np.testing.assert_allclose(there.values, here.values, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(there.errors, here.errors, rtol=1e-9)
