"""One held row, exchanged for any other, moves a sum by one row at most, whatever a statistic computes or does."""

import os
import signal
import threading
import time
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import BadParameter, Refusal
from discreet.learn.holdout.scores import GRID, held_sums, read_rows, sum_sensitivity
from discreet.source.source import unseal
from learn.strange import CORES, DEEDS, FAILURES, ODD, Stop, case_of, questions, statistic_of
from support.holdout_replay import BUDGETS, heard_session
from support.neighbours import differences

LOOKING = ("by the length", "by the mean", "by the first row", "by the rank", "what it was cut from")


def total(statistic, held, **named):
    above, _ = held_sums(statistic, read_rows("held", held), **named)
    return int(unseal(above, sum_sensitivity())[0])


@settings(max_examples=300, deadline=None)
@given(question=questions())
def test_one_row_moves_the_sum_by_one_row_whatever_the_statistic(question):
    case, statistic = question
    again = deepcopy(statistic)
    assert abs(total(statistic, case.held) - total(again, case.other)) <= GRID
    assert statistic.calls == again.calls


KEEPING = tuple(core for core in CORES if core not in LOOKING)


@settings(max_examples=100, deadline=None)
@given(question=questions(KEEPING, tuple(FAILURES)), many=st.sampled_from([2, 7, 16, 1000]))
def test_it_does_so_in_larger_calls_for_a_statistic_that_keeps_the_promise(question, many):
    """Products and what fails keep it: of a call of one shape, the number at a place depends on the row there."""
    case, statistic = question
    again = deepcopy(statistic)
    assert abs(total(statistic, case.held, rows_per_call=many) - total(again, case.other, rows_per_call=many)) <= GRID


def test_a_broken_promise_is_noticed():
    """The power of the tests above: in larger calls a mean over the call moves every row of it."""
    held, other = np.ones((50, 2)), np.ones((50, 2))
    other[7, 1] = 1e6
    above = CORES["by the mean"]
    assert total(lambda x: above(x, 0, 0), held) == total(lambda x: above(x, 0, 0), other)
    below = [total(lambda x: x[:, 1] >= x[:, 1].mean(), one, rows_per_call=50) for one in (held, other)]
    assert abs(below[0] - below[1]) > GRID


def test_a_row_that_a_library_refuses_leaves_the_others_as_they_were():
    """The hole of shapes: rows alike, a linear model that refuses nan, and a cut in the last bit of its product."""
    sklearn = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    model = sklearn.LogisticRegression().fit(rng.normal(size=(20, 64)), np.arange(20) % 2)
    row, weights, moved = rng.normal(size=64), rng.normal(size=64), 0
    held = np.tile(row, (600, 1))
    other = held.copy()
    other[599, 0] = np.nan
    for cut in {float(value) for length in (1, 2, 3, 9, 600) for value in held[:length] @ weights}:
        model.coef_, model.intercept_ = weights[None, :], np.array([-cut])
        for named in ({}, {"rows_per_call": 64}):
            moved = max(moved, abs(total(model.predict, held, **named) - total(model.predict, other, **named)))
    assert moved <= GRID


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 60))])
@pytest.mark.parametrize("board", [False, True], ids=["holdout", "leaderboard"])
def test_neighbours_hear_the_same_answers_and_counts(seed, board, tmp_path):
    """Whole sessions with frozen noise, and twenty strange statistics."""
    rng = np.random.default_rng([5, seed])
    case = case_of(rng, rows=(20, 40))
    asked = [statistic_of(rng, case, rng.choice(list(CORES)), rng.choice(list(DEEDS))) for _ in range(20)]
    again = deepcopy(asked)
    named = {"folder": tmp_path, "budget": BUDGETS[seed % 3], "seed": seed, "board": board}
    first = heard_session(case.train, case.held, asked, **named)
    second = heard_session(case.train, case.other, again, **named, first=first)
    assert list(differences(first, second)) == []
    for one, other in zip(first.releases[1:], second.releases[1:], strict=True):
        assert abs(one.values[0] - other.values[0]) <= GRID


@pytest.mark.parametrize("deed", sorted(DEEDS))
@pytest.mark.parametrize("board", [False, True], ids=["holdout", "leaderboard"])
def test_an_odd_held_row_is_not_heard_and_the_question_is_counted(deed, board):
    rng = np.random.default_rng(1)
    train, held = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    held[11, 0] = ODD

    class Asked:
        desk = None

        def ask(self, question):
            return self.desk.submit(question) if board else self.desk.estimate(question)

        def __call__(self, x):
            return DEEDS[deed](self, x) if (x[:, 0] == ODD).any() else np.abs(x[:, 1]) < 0.5

    asked = Asked()
    if board:
        asked.desk = dp.Leaderboard(held, epsilon=1, submissions=10)
        asked.desk.submit(asked)
        assert (asked.desk.submitted, asked.desk.submissions_left) == (1, 9)
    else:
        asked.desk = dp.Holdout(train, held, epsilon=1, queries=10)
        asked.desk.estimate(asked)
        assert (asked.desk.asked, asked.desk.queries_left) == (1, 9)
    # And it goes on.
    asked.ask(lambda x: x[:, 1] > 0)


def test_what_a_statistic_writes_to_its_rows_changes_none():
    held = np.random.default_rng(2).random((30, 2))
    before = held.copy()

    def write(x):
        x *= 0
        return x[:, 0] == 0

    assert total(write, held) == 30 * GRID
    assert total(write, held, rows_per_call=8) == 30 * GRID
    assert (held == before).all()


def test_an_array_that_is_filled_anew_is_read_each_time():
    same = np.zeros(1)

    def statistic(x):
        same[:] = np.array(x)
        return same

    assert total(statistic, np.array([1.0, 0.0, 1.0, 0.0])) == 2 * GRID


def test_what_a_row_sets_ends_with_it():
    """Filters for warnings and floating point: a row that makes them strict makes no other row fail."""

    def statistic(x):
        if x[0] == ODD:
            warnings.simplefilter("error")
            np.seterr(all="raise")
            return x
        return np.array(x) / 0 > 0

    held = np.ones(30)
    other = np.where(np.arange(30) == 3, ODD, held)
    before = list(warnings.filters), np.geterr()
    assert abs(total(statistic, held) - total(statistic, other)) <= GRID
    assert (list(warnings.filters), np.geterr()) == before


def test_a_statistic_cannot_end_or_ask_the_session_that_calls_it():
    """Otherwise a held row could decide how many checks are left."""
    held = np.ones((40, 1))
    for deed in ("ends the session", "asks again"):
        # Several runs, one for each check: these are what ending it would take away.
        holdout = dp.Holdout(np.zeros((40, 1)), held, epsilon=1, delta=1e-6, queries=10, checks=4, method="gaussian")

        def statistic(x, deed=deed, holdout=holdout):
            if x[0, 0] == 1:
                holdout.close() if deed == "ends the session" else holdout.estimate(lambda x: x[:, 0] > 0)
            return np.array(x[:, 0] == 1)

        holdout.estimate(statistic)
        assert holdout.asked == 1
        assert holdout.checks_left >= 3


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("rows_per_call", [1, 4])
def test_frames_are_judged_row_by_row_too(kind, rows_per_call):
    frame = kind({"a": [1.0, 2.0, float("nan"), 4.0, 5.0], "b": [0, 1, 0, 1, 0]})

    def fails_on_two(rows):
        if (np.asarray(rows["a"]) == 2).any():
            raise Stop
        return np.asarray(rows["a"]) > 3

    assert total(fails_on_two, frame, rows_per_call=rows_per_call) == 2 * GRID


def test_a_statistic_that_takes_no_single_row_is_refused_by_the_training_rows():
    rng = np.random.default_rng(3)
    holdout = dp.Holdout(rng.random(200), rng.random(200), epsilon=1)
    with pytest.raises(BadParameter, match="one at a time"):
        holdout.estimate(lambda y: np.exp(y - y[1]) > 1)
    assert holdout.asked == 0


@pytest.mark.parametrize("rows_per_call", [0, 10_001, 1.5])
def test_rows_per_call_is_a_whole_number_within_bounds(rows_per_call):
    with pytest.raises(BadParameter, match="rows_per_call"):
        dp.Holdout(np.zeros(9), np.zeros(9), epsilon=1, rows_per_call=rows_per_call)


# --- Signals ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def ctrl_c():
    """As in a program at a terminal: what a shell starts in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(statistic, **named):
    """A holdout that was asked by somebody who pressed Ctrl-C, while it read held rows."""
    holdout = dp.Holdout(np.zeros((200, 1)), np.ones((400, 1)), epsilon=1, queries=10, **named)
    with pytest.raises(KeyboardInterrupt):
        holdout.estimate(statistic)
    assert holdout.asked == 1
    with pytest.raises(Refusal, match="interrupted"):
        holdout.estimate(lambda x: x[:, 0] > 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("swallows", [False, True])
def test_a_real_interrupt_stops_the_program_and_ends_the_session(swallows):
    """Even if the statistic catches everything."""

    def statistic(x):
        if len(x) == 1 and x[0, 0] == 1:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            except BaseException:
                if not swallows:
                    raise
        return np.array(x[:, 0] == 1)

    interrupted(statistic)


def test_a_handler_that_raises_nothing_is_called_and_nothing_else_happens():
    came = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    try:
        holdout = dp.Holdout(np.zeros((20, 1)), np.ones((20, 1)), epsilon=1, queries=10)

        def statistic(x):
            if len(x) == 1:
                signal.raise_signal(signal.SIGUSR1)
            return np.array(x[:, 0] == 1)

        holdout.estimate(statistic)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(came) >= 20
    assert holdout.asked == 1


def test_in_another_thread_a_keyboard_interrupt_is_a_failed_row():
    said = []

    def ask():
        held = np.arange(40.0)[:, None]
        holdout = dp.Holdout(np.ones((40, 1)), held, epsilon=1, queries=10)

        def statistic(x):
            if (x == 7).any():
                raise KeyboardInterrupt
            return np.array(x[:, 0] > 3)

        said.append(holdout.estimate(statistic))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(30)
    assert len(said) == 1
