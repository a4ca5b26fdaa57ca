"""A statistic judges each row by itself; what is wrong with it is said from the training rows alone."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.errors import BadData, BadParameter
from discreet.learn.holdout.scores import GRID, held_sums, read_rows, sum_sensitivity, training_sum
from discreet.source.source import unseal


def held(statistic, *parts, rows_per_call=1):
    """What the sealed sums hold."""
    above, below = held_sums(statistic, read_rows("held", parts), rows_per_call)
    total = int(unseal(above, sum_sensitivity())[0])
    assert int(unseal(below, sum_sensitivity())[0]) == -total
    return total / GRID


X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 1])


@pytest.mark.parametrize(
    "rows",
    [(X, Y), (pd.DataFrame(X), pd.Series(Y)), (pl.DataFrame(X), pl.Series(Y)), (X.tolist(), Y.tolist())],
    ids=["numpy", "pandas", "polars", "lists"],
)
def test_rows_are_arrays_frames_or_lists(rows):
    read = read_rows("train", rows)
    assert read.size == 6
    assert training_sum(lambda x, y: np.asarray(y) == 1, read) == 4 * GRID
    assert [np.asarray(part).shape[0] for part in read.cut(2, 5).parts] == [3, 3]


@pytest.mark.parametrize("rows", [(X, Y[:5]), np.zeros((0, 2)), 3, (), ("text", Y)])
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises(BadData):
        read_rows("train", rows)


@pytest.mark.parametrize(
    ("statistic", "why"),
    [
        (3, "function"),
        (lambda y: y.mean(), "one for each"),
        (lambda y: y[:2], "one for each"),
        (lambda y: ["a"] * len(y), "one for each"),
        (lambda y: y * 2.0, "above 1"),
        (lambda y: y - 1.0, "below 0"),
        (lambda y: np.where(y == 1, np.nan, 0), "nan"),
        (lambda y: np.full(len(y), y[0] / 100 if len(y) == 101 else 1.0), "by itself"),
        (lambda y: np.full(len(y), (y == y[0]).mean()), "by itself"),
        (lambda y: np.argsort(np.argsort(y)) / len(y), "by itself"),
    ],
)
def test_a_statistic_that_breaks_the_rule_is_named_from_the_training_rows(statistic, why):
    rows = read_rows("train", np.random.default_rng(0).integers(0, 2, 101))
    with pytest.raises(BadParameter, match=why):
        training_sum(statistic, rows)


def test_one_tie_that_rounding_decides_is_no_mistake():
    rows = read_rows("train", np.arange(100))
    assert training_sum(lambda y: np.where(y == 99, len(y) == 100, np.array(y) % 2), rows) == 50 * GRID
    with pytest.raises(BadParameter, match="by itself"):
        training_sum(lambda y: np.where(y >= 98, len(y) == 100, np.array(y) % 2), rows)


def test_held_rows_make_no_error_and_no_warning():
    def touchy(y):
        if (y == 7).any():
            raise KeyError("7")
        return 1 / y

    def loud(y):
        warnings.warn(f"rows: {y}", stacklevel=1)
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held(touchy, np.array([1, 2, 7, 4])) == 1.75
        assert held(loud, np.array([1, 0, 1])) == 2
        assert held(lambda y: y / 0, np.array([1.0, 0.0, -1.0])) == 1
        assert held(lambda y: "no numbers", np.array([1, 0, 1])) == 0
        assert held(lambda y: [[1, 2]] * len(y), np.array([1, 0, 1])) == 0
        assert held(lambda y: y, np.array([np.nan, 0.5, 3.0, -2.0])) == 1.5


def worst_move(statistic, cells, rows=4, **named):
    """How far one row, exchanged for any other, moves the sum: over all pairs of tiny tables."""
    tables = np.array(np.meshgrid(*[cells] * rows)).reshape(rows, -1).T
    sums = {tuple(table): held(statistic, table, **named) for table in tables}
    return max(
        abs(total - sums[(*table[:at], other, *table[at + 1 :])])
        for table, total in sums.items()
        for at in range(rows)
        for other in cells
    )


def raising(y):
    if (y == 2).any():
        raise ValueError("two")
    return y


@pytest.mark.parametrize("statistic", [raising, lambda y: y == 1, lambda y: y * 100.0, lambda y: np.log(y)])
def test_one_row_moves_a_sum_by_at_most_one(statistic):
    assert worst_move(statistic, (0.0, 1.0, 2.0)) <= float(sum_sensitivity().linf / GRID) == 1


def test_counting_nothing_at_all_where_a_call_fails_is_noticed():
    """The power of the test above: a failure that takes all rows with it moves the sum by more than one row may.

    In a call for each row it cannot: that holds whatever a statistic promises.
    """

    def all_or_nothing(y):
        return np.zeros(len(y)) if (y == 2).any() else y

    assert worst_move(all_or_nothing, (0.0, 1.0, 2.0), rows_per_call=4) > 1
    assert worst_move(all_or_nothing, (0.0, 1.0, 2.0)) == 1
