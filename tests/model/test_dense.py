"""The dense model answers like its own table, touches what it must, and neither drifts nor overflows."""

import numpy as np
import pytest

from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.model.dense import dense_model, ranges
from discreet.model.dense.dense_model import LARGEST_STEP, MOST_DOUBT, Dense
from discreet.model.dense.ranges import runs_of
from discreet.query import Linear, col, count
from discreet.query.product import Factor, Product, box
from discreet.schema import Boolean, Categories, Domain, Integers

SMALL = Domain({"a": Integers(0, 3), "b": Boolean(), "c": Categories(list("xyz"))})
# Large enough for the compiled kernels.
LARGE = Domain({f"c{at}": Categories(list("pqrs"), outside="drop", missing="drop") for at in range(8)})


def random_box(rng, domain, columns):
    masks = {}
    for name in columns:
        mask = rng.random(domain[name].size) < 0.5
        mask[rng.integers(mask.size)] = True
        masks[name] = mask
    return Linear([box(masks)])


def random_columns(rng, domain):
    names = list(domain)
    return [names[at] for at in rng.permutation(len(names))[: rng.integers(0, len(names) + 1)]]


def table_of(model):
    """The normalised weights with axes in the order of the domain, from the flat array itself."""
    cube = model._weights.reshape([model.domain[name].size for name in model.columns])
    cube = cube.transpose([model.columns.index(name) for name in model.domain])
    return cube / cube.sum()


def weight_of(query, domain):
    shape = [domain[name].size if name in query.scope else 1 for name in domain]
    order = sorted(range(len(query.scope)), key=lambda at: list(domain).index(query.scope[at]))
    return np.broadcast_to(query.table(domain).transpose(order).reshape(shape), domain.shape)


@pytest.mark.parametrize("domain", [SMALL, LARGE], ids=["numpy", "compiled"])
@pytest.mark.parametrize("seed", range(3))
def test_updates_and_answers_are_those_of_the_whole_table(domain, seed):
    rng = np.random.default_rng(seed)
    model = Dense(domain, total=1000.0, order=random_columns(rng, domain))
    cube = np.ones(domain.shape)
    assert (cube.size < dense_model.FEW_CELLS) == (domain is SMALL)
    for _ in range(25):
        query, step = random_box(rng, domain, random_columns(rng, domain)), float(rng.normal())
        model.update(query, step=step)
        cube *= np.exp(step * weight_of(query, domain))
        np.testing.assert_allclose(table_of(model), cube / cube.sum(), rtol=1e-12)
        asked = random_box(rng, domain, random_columns(rng, domain))
        expected = 1000 * float((cube * weight_of(asked, domain)).sum() / cube.sum())
        assert model.answer(asked) == pytest.approx(expected, rel=1e-11)


def test_any_linear_query_is_answered_and_learnt_from():
    """Sums of boxes, weights that are no box, tables over two columns, and the query that is nowhere."""
    rng = np.random.default_rng(5)
    queries = [
        count(SMALL, (col("a") >= 2) | (col("b") == True)),  # noqa: E712
        3 * count(SMALL, col("a") == 1) - count(SMALL, col("c") == "x"),
        Linear([Product((Factor(("a",), np.array([0, 1, 2, 3, 0])),))]),
        Linear([Product((Factor(("a", "c"), rng.integers(-2, 3, size=(5, 4))),))]),
        Linear([Product((Factor(("b", "c"), rng.integers(0, 2, size=(2, 4))), Factor(("a",), np.arange(5))), 2)]),
        Linear([]),
        Linear([box({})]),
    ]
    # The columns of a factor may lie in another order than its axes.
    model, cube = Dense(SMALL, total=7.0, order=["c", "a"]), np.ones(SMALL.shape)
    for query in [*queries, *queries]:
        model.update(query, step=0.3)
        cube *= np.exp(0.3 * weight_of(query, SMALL))
        for asked in queries:
            expected = 7 * float((cube * weight_of(asked, SMALL)).sum() / cube.sum())
            assert model.answer(asked) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_a_marginal_has_the_axes_that_were_named():
    rng = np.random.default_rng(1)
    weights = rng.random(SMALL.shape)
    model = Dense(SMALL, total=10.0, weights=weights, order=["b"])
    whole = 10 * weights / weights.sum()
    np.testing.assert_allclose(model.marginal(["c", "a"]), whole.sum(axis=1).T)
    np.testing.assert_allclose(model.marginal(["a", "b", "c"]), whole)
    np.testing.assert_allclose(model.marginal([]), 10.0)
    with pytest.raises(BadQuery, match="did you mean"):
        model.marginal(["aa"])
    with pytest.raises(BadQuery, match="named once"):
        model.marginal(["a", "a"])


def test_runs_are_exactly_the_cells_of_the_box():
    """Every kernel, by the form that is chosen for it: long runs, a mask, single cells."""
    rng = np.random.default_rng(2)
    forms, code = set(), ranges.range_kernels()
    for _ in range(300):
        shape = tuple(rng.integers(1, 9, size=rng.integers(1, 6)))
        chosen = [None if rng.random() < 0.4 else rng.random(size) < rng.random() for size in shape]
        for mask in chosen:
            if mask is not None:
                mask[rng.integers(mask.size)] = True
        runs = runs_of(shape, chosen)
        forms.add("runs" if runs._long else "mask" if runs._crowded else "cells")
        inside = np.ones(shape)
        for axis, mask in enumerate(chosen):
            if mask is not None:
                inside = inside * mask.reshape([-1 if at == axis else 1 for at in range(len(shape))])
        weights = rng.random(shape)
        flat = weights.ravel().copy()
        assert runs.cells == inside.sum()
        assert runs.total(flat, code) == pytest.approx(float((weights * inside).sum()), rel=1e-14)
        assert runs.scale(flat, 3.0, code) == pytest.approx(float((weights * inside).sum()), rel=1e-14)
        np.testing.assert_array_equal(flat.reshape(shape), weights * np.where(inside > 0, 3.0, 1.0))
    assert forms == {"runs", "mask", "cells"}


def test_a_box_among_the_first_columns_is_one_run():
    names = list(LARGE)
    first = [np.arange(4) == 1 if name in names[:3] else None for name in names]
    runs = runs_of(LARGE.shape, first)
    assert (len(runs.offsets), len(runs.starts)) == (1, 1)


def test_a_domain_that_is_too_large_is_refused_before_anything_is_allocated():
    huge = Domain({f"c{at}": Integers(0, 997) for at in range(8)})
    with pytest.raises(TooLarge, match=rf"{huge.size} cells and needs {8 * huge.size} bytes"):
        Dense(huge)
    with pytest.raises(TooLarge, match="the limit is 10 cells"):
        Dense(SMALL, most_cells=10)


@pytest.mark.parametrize("domain", [SMALL, LARGE], ids=["numpy", "compiled"])
def test_the_running_total_does_not_drift(domain):
    rng = np.random.default_rng(3)
    model = Dense(domain)
    boxes = [random_box(rng, domain, random_columns(rng, domain)) for _ in range(20)]
    for turn in range(1000 if domain is SMALL else 300):
        model.update(boxes[turn % 20], step=float(rng.normal()))
        assert abs(model._mass - model._weights.sum()) <= MOST_DOUBT * model._mass


def test_a_total_that_cancels_is_counted_anew():
    """All mass but a trillionth in one box, and the box scaled away: what is left must not be a difference of noise."""
    model = Dense(SMALL)
    most = count(SMALL, col("a") == 0)
    model.update(most, step=45.0)
    model.update(most, step=-100.0)
    assert model._mass == pytest.approx(float(model._weights.sum()), rel=1e-12)
    assert model.answer(count(SMALL, col("a") == 1)) == pytest.approx(0.25, rel=1e-12)


def test_without_counting_anew_the_total_would_be_wrong(monkeypatch):
    """The power of the two tests above."""
    model = Dense(SMALL)
    monkeypatch.setattr(Dense, "recount", lambda self: None)
    most = count(SMALL, col("a") == 0)
    model.update(most, step=45.0)
    model.update(most, step=-100.0)
    assert model._mass != pytest.approx(float(model._weights.sum()), rel=1e-6)


@pytest.mark.parametrize("step", [LARGEST_STEP, -LARGEST_STEP])
def test_no_weight_overflows_or_is_lost_to_zero(step):
    model, query = Dense(SMALL), count(SMALL, col("a") == 0)
    for _ in range(40):
        model.update(query, step=step)
        assert np.isfinite(model._weights).all()
        assert (model._weights >= np.finfo(float).tiny).all()
    assert model.answer(query) == pytest.approx(1.0 if step > 0 else 0.0, abs=1e-200)
    # From the brink it comes back.
    for _ in range(4):
        model.update(query, step=-step)
    assert model.answer(query) == pytest.approx(0.0 if step > 0 else 1.0, abs=1e-12)


def test_a_step_that_no_double_can_take_is_refused():
    model = Dense(SMALL)
    for step in (LARGEST_STEP * 1.01, float("inf"), float("nan")):
        with pytest.raises(BadParameter, match="Take several steps"):
            model.update(count(SMALL, col("a") == 0), step=step)


def test_a_query_for_other_columns_is_refused():
    other = Domain({"a": Integers(0, 9)})
    with pytest.raises(BadQuery, match="made for other columns"):
        Dense(SMALL).answer(count(other, col("a") == 0))
    with pytest.raises(BadQuery, match="made for other columns"):
        Dense(SMALL).update(count(other, col("a") == 0), step=1.0)


def test_weights_must_fit_and_have_mass():
    for weights in (np.ones((2, 2)), np.zeros(SMALL.shape), np.full(SMALL.shape, np.nan), -np.ones(SMALL.shape)):
        with pytest.raises(BadParameter, match="weights have"):
            Dense(SMALL, weights=weights)


def test_rows_are_drawn_from_the_distribution():
    """Each cell's number of rows is binomial: within seven standard deviations, false alarm below 1e-9 for 75 cells."""
    rng = np.random.default_rng(4)
    weights = rng.random(SMALL.shape)
    model = Dense(SMALL, weights=weights, order=["c"])
    number = 200_000
    drawn = model.rows(number)
    assert list(drawn) == ["a", "b", "c"]
    found = np.zeros(SMALL.shape)
    np.add.at(found, tuple(drawn[name] for name in SMALL), 1)
    chance = weights / weights.sum()
    assert (np.abs(found - number * chance) <= 7 * np.sqrt(number * chance * (1 - chance)) + 3).all()
    # The power: rows of a model that forgot its weights would be noticed.
    assert (np.abs(found - number / found.size) > 7 * np.sqrt(number / found.size)).any()
