"""Opaque rows: computed with, each by itself, and never seen; what cannot be done so is refused without looking."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.learn.holdout.opaque import Opaque, judged_blind

RNG = np.random.default_rng(0)
SIZE = 37

STEPS = [
    lambda x, w: x @ w,
    lambda x, w: x[:, 1] / x[:, 0],
    lambda x, w: np.sqrt(np.abs(x[:, 2])) - x[:, 0] ** 2,
    lambda x, w: x.sum(axis=1),
    lambda x, w: np.mean(x * w, axis=-1),
    lambda x, w: np.where(x[:, 0] > x[:, 1], x[:, 2], -1.5),
    lambda x, w: np.clip(x[:, 0], -1, 1),
    lambda x, w: np.maximum(x[:, [0, 1]], x[:, 1:3])[:, 0],
    lambda x, w: np.minimum(0.25, x[:, 0]),
    lambda x, w: (x > 0).any(axis=1) & ~np.all(x > 1, axis=1),
    lambda x, w: x[:, None][:, 0][:, 1].astype(np.float32),
    lambda x, w: (x @ np.stack([w, -w], axis=1))[:, 1],
    lambda x, w: (np.isnan(x[:, 0]) | (x[:, 1] <= 0)) ^ (x[:, 2] != 0),
    lambda x, w: w[0] * x[:, 0] + 2 - (-x[:, 1]),
]


def rows(kind, size=SIZE):
    made = RNG.normal(size=(size, 3)) * 3
    if np.dtype(kind).kind == "f":
        made[::5, 0] = RNG.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308], len(made[::5]))
    with np.errstate(all="ignore"):
        return made.astype(kind)


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_it_gives_what_numpy_gives_and_the_same_for_each_row_alone(step, kind):
    """To the last bit, wherever the row lies; beside numpy itself, which adds in another order, about."""
    weights = np.array([0.1, -0.7, 1.3]).astype(kind)
    given, statistic = rows(kind), lambda x: STEPS[step](x, weights)
    with np.errstate(all="ignore"):
        plain = np.asarray(statistic(given), dtype=np.float64)
    found = judged_blind(statistic, (given,))
    assert found is not None
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)
    order = RNG.permutation(SIZE)
    for moved, places in ((np.asfortranarray(given[order]), order), *((given[[at]], [at]) for at in range(SIZE))):
        again = judged_blind(statistic, (moved,))
        assert again.tobytes() == found[places].tobytes()


def test_a_product_is_the_same_for_a_row_wherever_it_lies():
    """A library's is not: rows alike have products that differ in the last bit, by place and by length of the call."""
    row, weights = RNG.normal(size=100), RNG.normal(size=100)
    found = {judged_blind(lambda x: x @ weights, (np.tile(row, (size, 1)),)).tobytes()[:8] for size in range(1, 40)}
    every = {float(one) for one in judged_blind(lambda x: x @ weights, (np.tile(row, (999, 1)),))}
    assert len(found) == len(every) == 1
    librarys = {float(one) for size in range(1, 40) for one in np.tile(row, (size, 1)) @ weights}
    assert every != librarys


@pytest.mark.parametrize(
    "look",
    [
        *(bool, int, float, list, tuple, np.asarray, np.array, pickle.dumps, copy.copy, copy.deepcopy),
        *(np.argsort, np.sort, np.unique, np.exp, np.cumsum, np.max, np.isin, np.signbit, np.add.reduce),
        *(lambda x: x[0], lambda x: x[1:], lambda x: x[x > 0], lambda x: x[:, x > 0], lambda x: x[..., 0]),
        *(lambda x: x.sum(), lambda x: x.sum(axis=0), lambda x: np.mean(x), lambda x: x.T, lambda x: 1 in x),
        *(lambda x: np.add(x, 1, out=np.zeros(9)), lambda x: x.__iadd__(1), lambda x: np.ones(9) @ x),
        *(lambda x: x**0.5, lambda x: x % 2, lambda x: np.dot(x, x), lambda x: x @ x, lambda x: x.astype(int)),
        *(lambda x: x + np.arange(9), lambda x: np.add.outer(x, x), lambda x: x == [1] * 9, lambda x: x + None),
        *(lambda x: x + np.ma.array(1.0), lambda x: np.where(x > 0), lambda x: np.add(x, 1, where=False)),
    ],
)
def test_what_would_look_at_rows_or_mix_them_is_refused_whatever_they_are(look):
    for values in (np.zeros(9), np.full(9, np.nan), np.arange(9.0)):
        with pytest.raises((TypeError, AttributeError)):
            look(Opaque(values))
        assert judged_blind(look, (values,)) is None


def test_rows_as_many_as_columns_are_not_mixed():
    """A vector of rows does not become one of columns because there are as many."""
    square, vector = Opaque(np.ones((3, 3))), Opaque(np.arange(3.0))
    for mix in (lambda: square * vector, lambda: square @ vector, lambda: np.where(square > 0, vector, 0)):
        with pytest.raises(TypeError):
            mix()


def test_no_floating_point_error_tells_of_a_value():
    def asks(x):
        with np.errstate(all="raise"):
            return 1 / x > 0

    assert judged_blind(asks, (np.array([1.0, 0.0, np.nan]),)).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", [object, complex, np.float16, np.longdouble, "datetime64[D]"])
def test_types_whose_arithmetic_is_not_exact_are_left_to_single_rows(kind):
    assert judged_blind(lambda x: x == x, (np.zeros(3).astype(kind),)) is None


def test_texts_are_compared_and_no_more():
    names = np.array(["a", "b", "a"])
    assert judged_blind(lambda x: x == "a", (names,)).tolist() == [1.0, 0.0, 1.0]
    assert judged_blind(lambda x: x < "b", (names,)) is None


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), step=st.sampled_from(STEPS))
def test_an_exchanged_row_changes_its_own_number_alone(seed, step):
    rng = np.random.default_rng(seed)
    one, weights = rows(np.float64), rng.normal(size=3)
    other, at = one.copy(), int(rng.integers(SIZE))
    other[at] = rng.choice([np.nan, np.inf, 0.0, 1e300], 3)
    before, after = (judged_blind(lambda x: step(x, weights), (given,)) for given in (one, other))
    rest = np.arange(SIZE) != at
    assert before[rest].tobytes() == after[rest].tobytes()
