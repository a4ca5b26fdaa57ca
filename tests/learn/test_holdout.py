"""The holdout: intervals that hold for the population, checks that are counted, and what is refused."""

import copy
import os
import pickle
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.event import total_loss
from discreet.accounting.filter import accounting_for, gate_for, pure_gate
from discreet.errors import BadParameter, BudgetExceeded, Refusal, SealBroken
from discreet.learn.holdout import generalization
from discreet.learn.holdout.comparison_design import ComparisonTerms, best_design
from discreet.learn.holdout.generalization import chernoff_interval, description_nats, population_of
from discreet.learn.holdout.holdout import Holdout, HoldoutEstimate
from discreet.learn.holdout.scores import GRID, sum_sensitivity
from support.statistics import assert_rate_at_least

ROWS = 2000


def coins(rng, rows=ROWS, columns=1):
    return rng.integers(0, 2, size=(rows, columns)).astype(np.int8)


def opened(rng, *, train=None, held=None, **named):
    named = {"epsilon": 20, "queries": 100, "checks": 3} | named
    return Holdout(coins(rng) if train is None else train, coins(rng) if held is None else held, **named)


def overfit(x):
    """Says 1 for the training rows, which are all 1 here, and what it should for others."""
    return x[:, 0]


def one(x):
    return x[:, 0] == 1


def test_where_both_agree_the_training_mean_is_told_and_no_check_is_used():
    rng = np.random.default_rng(1)
    train = coins(rng)
    holdout = opened(rng, train=train)
    found = holdout.estimate(one)
    assert found.value == train.mean()
    assert (found.origin, holdout.checks_left, holdout.queries_left) == ("training", 3, 99)
    assert found.low <= 0.5 <= found.high
    assert found.error == max(found.value - found.low, found.high - found.value) <= holdout.worst_error
    assert "training" in str(found)
    assert float(found) == found.value


@pytest.mark.parametrize(
    "named", [{}, {"delta": 1e-6, "method": "gaussian"}, {"delta": 1e-6, "method": "coin"}, {"delta": 1e-6}], ids=str
)
def test_an_overfit_is_found_and_told_from_the_held_rows(named):
    rng = np.random.default_rng(2)
    holdout = opened(rng, train=np.ones((ROWS, 1)), **named)
    found = holdout.estimate(one)
    assert (found.origin, holdout.checks_left) == ("holdout", 2)
    assert found.low <= 0.5 <= found.high
    assert found.error < 0.2
    assert holdout.design.method == named.get("method", holdout.design.method)
    # From the other side too: too low on the training rows.
    found = holdout.estimate(lambda x: x[:, 0] == 0)
    assert found.origin == "holdout"
    assert abs(found.value - 0.5) < 0.1


@pytest.mark.parametrize("train", [np.ones((ROWS, 1)), None], ids=["holdout", "training"])
def test_an_interval_has_room_for_the_noise_the_grid_and_the_rows(train):
    """On its own a value is off by as much as the design allows, and the rows by as much as the description does."""
    rng = np.random.default_rng(22)
    holdout = opened(rng, train=train)
    found, whole = holdout.estimate(one), ROWS * GRID
    told = found.origin == "holdout"
    # On the grid: only so many values can be told, which is what the bound counts.
    assert not told or found.value * holdout.population.values == round(found.value * holdout.population.values)
    off = (
        holdout.design.value_error / whole + 0.5 / holdout.population.values
        if told
        else holdout.design.pass_error / whole
    )
    nats = description_nats(asked=0, hits=0, queries=100, checks=3, values=holdout.population.values + 1, failure=0.025)
    low, high = chernoff_interval(found.value - off, found.value + off, rows=ROWS, nats=nats)
    assert found.low <= low
    assert found.high >= high
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-5)


def test_after_the_last_check_it_refuses_and_says_what_to_do():
    holdout = opened(np.random.default_rng(3), train=np.ones((ROWS, 1)))
    for _ in range(3):
        holdout.estimate(one)
    assert holdout.checks_left == 0
    with pytest.raises(Refusal, match=r"3 overfits.*[Hh]old out fresh rows"):
        holdout.estimate(one)


def test_after_the_last_question_it_refuses():
    holdout = opened(np.random.default_rng(4), queries=2)
    holdout.estimate(one)
    holdout.estimate(one)
    with pytest.raises(Refusal, match="2 questions"):
        holdout.estimate(one)
    assert holdout.worst_error > 0


def test_a_statistic_that_is_refused_is_no_question():
    holdout = opened(np.random.default_rng(4))
    with pytest.raises(BadParameter):
        holdout.estimate(lambda x: x.mean())
    assert holdout.queries_left == 100


def test_intervals_grow_with_what_was_learnt_and_never_beyond_the_worst():
    holdout = opened(np.random.default_rng(5), train=np.ones((ROWS, 1)), checks=5)
    errors = [holdout.error, *(holdout.estimate(one) and holdout.error for _ in range(4))]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1] <= holdout.worst_error


def test_scores_near_one_have_narrower_intervals():
    rows = np.ones((ROWS, 1))
    holdout = opened(np.random.default_rng(6), train=rows, held=rows)
    assert holdout.estimate(one).error < 0.85 * holdout.error


# --- The promise -----------------------------------------------------------------------------------------------------


def adaptive(rng, holdout_of, features=60, rows=ROWS):
    """Ask of each feature how often it is 1, then of the vote by the answers; of each answer, whether it holds."""
    train, held = coins(rng, rows, features), coins(rng, rows, features)
    holdout = holdout_of(train, held)
    answers = [holdout.estimate(lambda x, at=at: x[:, at]) for at in range(features)]
    signs = np.sign([found.value - 0.5 for found in answers])
    votes = [lambda x, kept=kept: (x[:, :kept] - 0.5) @ signs[:kept] > 0 for kept in (15, 30, 60)]
    return answers + [holdout.estimate(vote) for vote in votes]


class Naive:
    """Exact means of the held rows, and an interval that counts the questions and not what was learnt."""

    def __init__(self, train, held, queries):
        self.held, self.checks_left = held, 10**9
        self.off = (np.log(2 * queries / 0.05) / 2 / len(held)) ** 0.5

    def estimate(self, statistic):
        value = float(np.mean(statistic(self.held)))
        low, high = value - self.off, value + self.off
        return HoldoutEstimate(value, self.off, low, high, 0.95, "holdout", "", 1, 1)


def test_every_interval_holds_under_an_adaptive_attack_which_a_naive_holdout_does_not_survive():
    rng = np.random.default_rng(7)

    def ours(train, held):
        return Holdout(train, held, epsilon=20, queries=65, checks=5)

    def naive(train, held):
        return Naive(train, held, 65)

    def holds(answers):
        return all(found.low <= truth <= found.high for found, truth in zip(answers, truths, strict=False))

    # The vote of an even number of fair coins is above ½ with probability (1 − tie)/2.
    ties = [np.exp(_log_tie(kept)) for kept in (15, 30, 60)]
    truths = [0.5] * 60 + [(1 - tie) / 2 for tie in ties]
    runs = 25
    assert_rate_at_least(sum(holds(adaptive(rng, ours)) for _ in range(runs)), runs, 0.95)
    # 60 exact answers at 200 rows.
    assert sum(holds(adaptive(rng, naive, rows=200)) for _ in range(runs)) < runs / 2


def _log_tie(coins_in_all):
    from math import lgamma, log

    if coins_in_all % 2:
        return -np.inf
    half = coins_in_all // 2
    return lgamma(coins_in_all + 1) - 2 * lgamma(half + 1) - coins_in_all * log(2)


def test_what_does_not_overfit_uses_no_check():
    """300 statistics that were fixed in advance, at 2000 rows: none is a hit, with probability 0.95 or more."""
    rng = np.random.default_rng(8)
    train, held = coins(rng, columns=300), coins(rng, columns=300)
    clean = 0
    for _ in range(3):
        holdout = Holdout(train, held, epsilon=20, queries=300, checks=2)
        clean += all(holdout.estimate(lambda x, at=at: x[:, at]).origin == "training" for at in range(300))
    assert_rate_at_least(clean, 3, 0.95)


TERMS = ComparisonTerms(pure_gate(2), 1000, 10, 0.025, ceil(0.03 * 10**4 * GRID), sum_sensitivity())


def test_description_length_is_taken_and_what_was_learnt_before_counts():
    design = best_design(TERMS)
    taken = population_of(design, rows=10**4, failure=0.05)
    assert taken.bound == "description length [DFHPRR15b]"
    carried = population_of(design, rows=10**4, failure=0.05, carried=100.0)
    assert carried.half_width(0.06, asked=5, hits=1) > taken.half_width(0.06, asked=5, hits=1) + 0.04


def test_the_transfer_theorem_is_taken_where_it_says_less(monkeypatch):
    monkeypatch.setattr(generalization, "_transfer", lambda *_, **__: 0.02)
    taken = population_of(best_design(TERMS), rows=10**4, failure=0.05)
    assert taken.bound == "transfer theorem [JLNRSS20]"
    assert taken.half_width(0.5, asked=999, hits=9) == 0.02
    assert taken.interval(0.5, (0.3, 0.3), asked=999, hits=9) == pytest.approx((0.48, 0.52), abs=1e-6)
    # It needs the epsilon of all that was ever told.
    assert population_of(best_design(TERMS), rows=10**4, failure=0.05, carried=1.0).bound.startswith("description")


def test_what_is_skipped_as_too_large_is_too_large():
    """The quick test against `jung` itself, with a design for which both can be computed."""
    terms = ComparisonTerms(pure_gate(0.01), 100, 2, 0.025, ceil(1e-3 * 10**6 * GRID), sum_sensitivity())
    design, whole = best_design(terms), 10**6 * GRID
    full = generalization._transfer(design, whole, 0.05, less_than=1.0)
    assert 0.01 + design.errors(0.05)[0] / whole < full < 0.5
    assert generalization._transfer(design, whole, 0.05, less_than=full / 4) == 1.0


# --- The price -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checks", [1, 4])
@pytest.mark.parametrize("method", ["thresholdout", "gaussian", "coin"])
def test_a_session_costs_what_was_said(checks, method):
    delta = None if method == "thresholdout" else 1e-6
    holdout = opened(np.random.default_rng(9), epsilon=2, delta=delta, checks=checks, method=method)
    gate, charge = holdout.design.terms.gate, holdout.design.terms.gate.charge(holdout.cost)
    assert (holdout.design.method, gate.epsilon, gate.delta) == (
        method,
        2,
        Fraction(delta or 0).limit_denominator(10**9),
    )
    assert gate.fits(gate.nothing, charge)
    less = gate_for(gate, Fraction(198, 100))
    assert not less.fits(less.nothing, charge)
    if delta is None:
        assert total_loss(holdout.cost, accounting_for("pure")) == 2


@pytest.mark.parametrize("method", ["gaussian", "coin"])
def test_gaussian_values_need_a_delta(method):
    with pytest.raises(BadParameter, match="delta"):
        opened(np.random.default_rng(9), method=method)


def test_the_best_method_has_the_smallest_error():
    """A coin wins with a delta and many checks; without a delta there is none."""
    named = {"train": np.ones(20_000), "held": np.ones(20_000), "epsilon": 1, "checks": 30}
    errors = {method: opened(None, delta=1e-6, method=method, **named).worst_error for method in ("best", "coin")}
    assert errors["best"] == errors["coin"] < opened(None, **named).worst_error / 1.3


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "budget.sqlite") as books:
        books.cap(dp.Budget(epsilon=5), table="held")
        yield books


def test_it_is_paid_once_and_what_is_told_is_recorded(ledger):
    rng = np.random.default_rng(10)
    with opened(rng, train=np.ones((ROWS, 1)), epsilon=4, ledger=ledger, table="held") as holdout:
        assert ledger.remaining(table="held").epsilon == 1
        found = holdout.estimate(one)
        assert found.origin == "holdout"
    assert ledger.remaining(table="held").epsilon == 1
    kept = [spend.released for spend in ledger.history(table="held")]
    assert len(kept) == 2
    assert f'"value": {found.value}'.encode() in kept[1]
    assert b"threshold" not in b"".join(kept)


def test_what_is_not_in_the_budget_is_refused_before_a_held_row_is_read(ledger):
    class Untouchable(np.ndarray):
        def __getitem__(self, at):
            raise AssertionError("a held row was read")

    held = coins(np.random.default_rng(11)).view(Untouchable)
    with pytest.raises(BudgetExceeded):
        opened(np.random.default_rng(11), held=held, epsilon=6, ledger=ledger, table="held")
    assert ledger.history(table="held") == []


def test_the_same_rows_again_need_reopen_and_have_wider_intervals(ledger):
    rng = np.random.default_rng(12)
    first = opened(rng, epsilon=2, ledger=ledger, table="held")
    first.close()
    with pytest.raises(Refusal, match="reopen=True"):
        opened(rng, epsilon=2, ledger=ledger, table="held")
    second = opened(rng, epsilon=2, ledger=ledger, table="held", reopen=True)
    assert second.worst_error > first.worst_error
    ledger.raise_cap(dp.Budget(epsilon=9), table="held")
    third = opened(rng, epsilon=2, ledger=ledger, table="held", reopen=True)
    assert third.population.carried == pytest.approx(second.population.nats)


def test_reopen_without_a_past_is_a_mistake(ledger):
    with pytest.raises(BadParameter):
        opened(np.random.default_rng(12), epsilon=2, ledger=ledger, table="held", reopen=True)
    with pytest.raises(BadParameter):
        opened(np.random.default_rng(12), reopen=True)
    with pytest.raises(BadParameter, match="delta"):
        opened(np.random.default_rng(12), epsilon=2, delta=1e-9, ledger=ledger, table="held")


def test_a_ledger_that_fails_to_record_ends_the_session(ledger, monkeypatch):
    holdout = opened(np.random.default_rng(13), train=np.ones((ROWS, 1)), epsilon=4, ledger=ledger, table="held")
    monkeypatch.setattr(ledger, "record", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        holdout.estimate(one)
    with pytest.raises(Refusal, match="interrupted"):
        holdout.estimate(one)


def test_the_secret_is_not_copied_pickled_or_forked():
    holdout = opened(np.random.default_rng(14))
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(SealBroken):
            attempt(holdout)
    assert str(holdout._checks._run.noisy_threshold) not in repr(holdout) + repr(holdout._checks._run)
    child = os.fork()
    if child == 0:
        try:
            holdout.estimate(one)
        except Refusal:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    holdout.close()
    with pytest.raises(Refusal, match="closed"):
        holdout.estimate(one)


# --- scikit-learn ----------------------------------------------------------------------------------------------------


class Constant:
    def __init__(self, value):
        self.value = value

    def predict(self, X):
        return np.full(len(X), self.value)


def test_a_scorer_scores_classifiers_and_regressors():
    x, y = np.zeros((ROWS, 1)), np.full(ROWS, 3.0)
    holdout = Holdout((x, y), (x, y), epsilon=20)
    assert holdout.scorer()(Constant(3.0)) == 1
    assert holdout.scorer()(Constant(2.0), x, y) == 0
    assert holdout.scorer("absolute", most=4)(Constant(1.0)) == 0.5
    assert holdout.scorer("squared", most=4)(Constant(2.0)) == 0.75
    assert holdout.scorer("squared", most=4)(Constant(99.0)) == 0
    with pytest.raises(BadParameter, match="loss"):
        holdout.scorer("cubic")
    with pytest.raises(BadParameter, match="most"):
        holdout.scorer("squared")
    with pytest.raises(BadParameter, match=r"\(X, y\)"):
        Holdout(x, x, epsilon=20).scorer()


def test_a_search_of_scikit_learn_takes_the_scorer():
    from sklearn.model_selection import GridSearchCV
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(15)
    x = rng.normal(size=(3 * ROWS, 4))
    y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
    holdout = Holdout((x[ROWS : 2 * ROWS], y[ROWS : 2 * ROWS]), (x[2 * ROWS :], y[2 * ROWS :]), epsilon=20, queries=20)
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, 3, None]},
        scoring=holdout.scorer(),
        cv=[(np.arange(ROWS), np.arange(1))],
        error_score="raise",
    )
    search.fit(x[:ROWS], y[:ROWS])
    assert search.best_params_["max_depth"] in (1, 3)
    assert holdout.queries_left == 17


@pytest.mark.parametrize(
    "named",
    [{"epsilon": 0}, {"checks": 0}, {"queries": 0}, {"confidence": 1}, {"method": "magic"}, {"threshold": 2}],
    ids=str,
)
def test_nonsense_is_refused(named):
    with pytest.raises(BadParameter):
        opened(np.random.default_rng(16), **named)


def test_train_and_held_must_be_alike():
    with pytest.raises(BadParameter, match="parts"):
        Holdout((np.zeros(5), np.zeros(5)), np.zeros(5), epsilon=1)
