"""The leaderboard: changes for improvements only, holds for the population, and is not climbed by learning it."""

import copy
import json
import os
import pickle

import numpy as np
import pytest

import discreet as dp
from discreet.errors import BadData, BadParameter, BudgetExceeded, Refusal, SealBroken
from discreet.learn.holdout.leaderboard import Leaderboard
from support.statistics import assert_rate_at_least

ROWS = 2000


def labels(rng, rows=ROWS):
    return rng.integers(0, 2, rows)


def right(rng, truth, rate):
    """Predictions of which so many are right."""
    return np.where(rng.random(len(truth)) < rate, truth, 1 - truth)


def board_of(held, **named):
    return Leaderboard(held, **({"epsilon": 20, "submissions": 200, "start": 0.5, "step": 0.05} | named))


def test_only_an_improvement_by_more_than_a_step_changes_the_best():
    rng = np.random.default_rng(1)
    truth = labels(rng)
    board = board_of(truth)
    first = board.submit(right(rng, truth, 0.7), name="a")
    assert first.improved
    assert abs(first.best - 0.7) < 0.06
    same = board.submit(right(rng, truth, 0.7), name="b")
    assert not same.improved
    assert (same.best, same.improvements_left) == (first.best, first.improvements_left)
    better = board.submit(right(rng, truth, 0.95), name="c")
    assert better.improved
    assert better.low <= 0.95 <= better.high
    assert better.error <= board.worst_error
    assert [one.name for one in board.standings if one.improved] == ["a", "c"]
    assert "a\n" in str(board)
    assert "b\n" not in str(board)
    assert "c: a new best" in str(better)
    assert board.submissions_left == 197


@pytest.mark.parametrize(
    "named", [{}, {"delta": 1e-6, "method": "gaussian"}, {"delta": 1e-6, "method": "coin"}], ids=str
)
def test_a_worse_submission_is_no_hit_and_a_better_one_is(named):
    """A coin too is tossed for one side only."""
    truth = labels(np.random.default_rng(11))
    board = board_of(truth, **named)
    left = board.improvements_left
    assert not board.submit(1 - truth).improved
    assert board.improvements_left == left
    assert board.submit(truth).improved
    assert board.improvements_left == left - 1
    assert board.best > 0.9


def test_statistics_and_predictions_are_scored_alike():
    rng = np.random.default_rng(2)
    truth = labels(rng)
    guess = right(rng, truth, 0.9)
    x = np.stack([guess, 1 - guess], axis=1)
    one = board_of((x, truth)).submit(guess)
    two = board_of((x, truth)).submit(lambda x, y: y == x[:, 0])
    assert abs(one.best - two.best) < 0.02


def test_a_submission_of_the_wrong_length_is_refused_and_not_counted():
    board = board_of(labels(np.random.default_rng(3)))
    with pytest.raises(BadData, match="one for each of 2000 rows"):
        board.submit(np.zeros(3))
    assert board.submitted == 0


def test_it_stops_after_its_improvements_and_its_submissions():
    rng = np.random.default_rng(4)
    truth = labels(rng)
    board = board_of(truth, improvements=1)
    board.submit(truth)
    with pytest.raises(Refusal, match="1 improvements"):
        board.submit(truth)
    board = board_of(truth, submissions=1)
    board.submit(1 - truth)
    with pytest.raises(Refusal, match="1 submissions"):
        board.submit(truth)


def test_the_step_that_is_chosen_has_the_smallest_error():
    truth = labels(np.random.default_rng(5))
    chosen = board_of(truth, step=None)
    assert chosen.worst_error <= min(board_of(truth, step=step).worst_error for step in (0.02, 0.1, 0.25))
    assert 0.01 < chosen.step < 0.3


# --- The boosting attack ---------------------------------------------------------------------------------------------


def attacked(rng, rows, submissions, better):
    """Random labels: keep those of which the board says that they are better than a guess; submit their majority."""
    guesses = rng.integers(0, 2, size=(submissions, rows), dtype=np.int8)
    kept = [guess for guess in guesses if better(guess)]
    votes = np.sum(kept, axis=0) * 2 - len(kept) if kept else np.zeros(rows)
    return np.where(votes == 0, rng.integers(0, 2, rows), votes > 0).astype(int)


def test_a_naive_board_is_climbed_and_ours_is_not():
    rng = np.random.default_rng(6)
    few = labels(rng, 500)
    final = attacked(rng, 500, 400, lambda guess: np.mean(guess == few) > 0.5)
    assert np.mean(final == few) > 0.6
    truth = labels(rng)
    board = board_of(truth, submissions=401)
    final = attacked(rng, ROWS, 400, lambda guess: board.submit(guess).improved)
    standing = board.submit(final)
    assert not standing.improved
    assert standing.best == 0.5 <= standing.high


def test_what_is_said_of_the_best_holds_for_the_population():
    """Submissions that learn from each standing: after every one the best in the population is in the interval."""
    rng, runs, kept = np.random.default_rng(7), 15, 0
    for _ in range(runs):
        truth = labels(rng, 500)
        board = board_of(truth, submissions=30, step=0.1)
        guess, best, holds = labels(rng, 500), 0.5, True
        for _ in range(25):
            if not board.improvements_left:
                break
            # A coin for each row but those that were learnt, which nobody outside has: ½ in the population.
            tried = np.where(rng.random(500) < 0.3, labels(rng, 500), guess)
            standing = board.submit(tried)
            guess = tried if standing.improved else guess
            holds &= standing.low <= best <= standing.high
        kept += holds
    assert_rate_at_least(kept, runs, 0.95)


# --- The price -------------------------------------------------------------------------------------------------------


def test_it_is_paid_before_a_row_is_read_and_improvements_are_recorded(tmp_path):
    truth = labels(np.random.default_rng(8))
    with dp.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(dp.Budget(epsilon=5), table="labels")
        with pytest.raises(BudgetExceeded):
            board_of(truth, epsilon=6, ledger=ledger, table="labels")
        board = board_of(truth, epsilon=4, ledger=ledger, table="labels")
        assert ledger.remaining(table="labels").epsilon == 1
        best = board.submit(truth).best
        board.submit(1 - truth)
        history = ledger.history(table="labels")
        assert len(history) == 2
        assert f'"value": {best}'.encode() in history[1].released
        with pytest.raises(Refusal, match="reopen=True"):
            board_of(truth, epsilon=1, ledger=ledger, table="labels")


def test_what_is_recorded_is_the_best_and_never_a_value_below_it(tmp_path, monkeypatch):
    """A hit whose noisy value is below the best says nothing: neither to who submits nor to who reads the ledger."""
    truth, values = labels(np.random.default_rng(12)), iter([0.75, 0.25, 0.625, 1.0])
    with dp.Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(dp.Budget(epsilon=500), table="labels")
        board = board_of(truth, epsilon=400, start=0.5, step=0.01, ledger=ledger, table="labels", improvements=9)
        monkeypatch.setattr(
            board._checks, "value_if_above", lambda exact, guess: int(next(values) * ROWS * 2**20), raising=True
        )
        told = [board.submit(truth).best for _ in range(4)]
        history = [one.released for one in ledger.history(table="labels")][1:]
    recorded = [json.loads(one.partition(b"\n")[2])["value"] for one in history]
    assert recorded == told == sorted(told)
    assert [round(one, 2) for one in told] == [0.75, 0.75, 0.75, 1.0]


def test_the_secret_is_not_copied_pickled_or_forked():
    truth = labels(np.random.default_rng(9))
    board = board_of(truth)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(SealBroken):
            attempt(board)
    child = os.fork()
    if child == 0:
        try:
            board.submit(truth)
        except Refusal:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    with board:
        assert repr(board).startswith("<Leaderboard of 2,000 rows")
    with pytest.raises(Refusal, match="closed"):
        board.submit(truth)


@pytest.mark.parametrize("named", [{"step": 0}, {"start": 1}, {"submissions": 0}, {"improvements": 0}], ids=str)
def test_nonsense_is_refused(named):
    with pytest.raises(BadParameter):
        board_of(labels(np.random.default_rng(10)), **named)
