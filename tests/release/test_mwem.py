"""MWEM: the composed law of whole runs, the calls it makes, and a model that is better than none."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet as dp
from discreet import noise, verify
from discreet.accounting.event import Compose, Gaussian, Laplace, Repeat, Selection, total_loss
from discreet.accounting.filter import accounting_for
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, TooLarge
from discreet.lab.textbook.mwem import Batch, Learner, expected_rows, mwem, plan_rounds, project
from discreet.mechanism.protocol import LAW_BITS, Law
from discreet.model.dense.dense_model import Dense
from discreet.numeric import precision
from discreet.query.aggregates import count, total
from discreet.query.workload import monotone_conjunctions
from support.failing_source import Unreadable

REPLACE = dp.Unit(neighbors="replace_one")
THREE = dp.Domain({"city": dp.Categories(["a", "b", "c"], outside="a", missing="a")})
TWO_COUNTS = [count(THREE, dp.col("city") == "a"), count(THREE, dp.col("city") != "c")]
EFFECTS = np.array([query.table(THREE) for query in TWO_COUNTS])


def binary(rows=2000, columns=5, unit=REPLACE, seed=0):
    """Correlated columns: two kinds of people."""
    rng = np.random.default_rng(seed)
    leaning = rng.random((2, columns))[rng.integers(0, 2, rows)]
    answers = rng.random((rows, columns)) < leaning
    domain = dp.Domain({f"x{i}": dp.Boolean() for i in range(columns)})
    return dp.open({f"x{i}": answers[:, i].tolist() for i in range(columns)}, domain=domain, unit=unit), answers


def largest_error(model, table, answers):
    """Over all monotone conjunctions, as a fraction of the rows."""
    errors = []
    for query in monotone_conjunctions(table.domain):
        places = [int(name[1:]) for name in query.scope]
        errors.append(abs(answers[:, places].all(axis=1).sum() - model.answer(query)))
    return max(errors) / len(answers)


# --- Privacy, exactly -------------------------------------------------------------------------------------------------


class Composed:
    """The law of all that two rounds release: which query, its noisy value, which query, its noisy value."""

    def __init__(self, plan):
        self.plan, self.known = plan, {}
        self.batch = Batch(TWO_COUNTS, THREE)

    def expected(self, *measured):
        """What the model says after these measurements; it depends on nothing else."""
        if measured not in self.known:
            learner = Learner(Dense(THREE), TWO_COUNTS, "projected")
            learner.begin(2)
            for place, value in measured:
                learner.learn(place, value)
            self.known[measured] = expected_rows(learner.model, self.batch)
        return self.known[measured]

    def law(self, values, beside):
        found = {}
        with precision(LAW_BITS):
            listed = arb(0)
            for place, chance in self.plan.choose(self.expected()).law(values).probabilities.items():
                noisy = self.plan.measure.law([values[place]]).probabilities
                for value in range(-15, 18):
                    mass = chance * noisy.get((value,), arb(0))
                    listed += mass
                    again = self.plan.choose(self.expected((place, value))).law(values)
                    for other, choice in again.probabilities.items():
                        last = self.plan.measure.law([values[other]], beside=[[beside[other]]])
                        for end, share in last.probabilities.items():
                            found[place, value, other, end] = mass * choice * share
            return Law(found, 1 - listed)


def worst_delta(composed, unit, epsilon):
    pairs = {
        tuple(tuple((EFFECTS @ np.array(table)).tolist()) for table in pair)
        for pair in verify.neighboring_tables(3, 2, unit)
    }
    worst = 0.0
    for one, other in sorted(pair for pair in pairs if pair[0] != pair[1]):
        here, there = composed.law(one, other), composed.law(other, one)
        worst = max(worst, verify.divergence(here, there, epsilon).upper, verify.divergence(there, here, epsilon).upper)
    return worst


@pytest.mark.parametrize("unit", [dp.Unit(), REPLACE], ids=lambda unit: unit.describe)
def test_two_whole_rounds_are_as_private_as_they_say_over_all_small_tables(unit):
    moves = matrix_sensitivity(EFFECTS, unit)
    plan = plan_rounds(2, moves, epsilon=Fraction(8))
    share = Fraction(2)
    assert plan.event == Repeat(Compose((Selection(share), Laplace(1 / share, Fraction(1)))), 2)
    assert (plan.choose(np.zeros(2, dtype=np.int64)).event, plan.measure.event) == plan.event.event.events
    assert worst_delta(Composed(plan), unit, 8) < 1e-9
    # Not for less: a third of the budget is not enough for what is released.
    assert worst_delta(Composed(plan), unit, Fraction(8, 3)) > 1e-3


def test_a_share_for_each_of_choosing_and_measuring_that_is_twice_too_large_is_caught():
    """The budget split over the rounds and not over the two things that each of them does."""
    eager = plan_rounds(2, matrix_sensitivity(EFFECTS, REPLACE), epsilon=Fraction(16))
    assert worst_delta(Composed(eager), REPLACE, 8) > 1e-3


def test_with_a_delta_selection_and_measurement_cost_the_same_and_fit_the_budget():
    plan = plan_rounds(10, matrix_sensitivity([[1, 0]], dp.Unit()), epsilon=Fraction(1), delta=Fraction(1, 10**9))
    match plan.event:
        case Repeat(Compose((Selection(chosen), Gaussian(sigma, squared))), 10):
            assert chosen == 2 / sigma
            assert squared == 1
        case other:
            raise AssertionError(other)
    accounting = accounting_for("gaussian")
    assert 0.99 < accounting.epsilon(total_loss(plan.event, accounting), Fraction(1, 10**9)) <= 1
    assert (plan.choose(np.zeros(2, dtype=np.int64)).event, plan.measure.event) == plan.event.event.events


@pytest.mark.parametrize("delta", [0, Fraction(1, 10**9)])
def test_three_rows_a_person_are_three_times_the_noise(delta):
    one, three = (Sensitivity(l1=Fraction(2 * m), l2_squared=Fraction(2 * m * m), linf=Fraction(m)) for m in (1, 3))
    plain, wide = (plan_rounds(4, moves, epsilon=Fraction(1), delta=Fraction(delta)) for moves in (one, three))
    assert wide.measure.error(0.95) == pytest.approx(3 * plain.measure.error(0.95), rel=0.02)
    expected = np.zeros(2, dtype=np.int64)
    assert wide.choose(expected).error(0.95) == pytest.approx(3 * plain.choose(expected).error(0.95))


def test_on_neighbouring_tables_the_same_noise_is_asked_for(monkeypatch):
    """Noise frozen, and the query that is chosen the same in both: then all that is asked of the noise is the same."""
    calls = []

    def race(scores, rate):
        calls[-1].append(("race", len(scores), rate, np.array(scores)))
        return 0

    def laplace(scale, size=None):
        calls[-1].append(("laplace", scale, size))
        return np.ones(size, dtype=np.int64)

    monkeypatch.setattr(noise, "gumbel_race", race)
    monkeypatch.setattr(noise, "discrete_laplace", laplace)
    for cities in (["a", "b", "c", "c"], ["a", "b", "c", "b"]):
        calls.append([])
        mwem(dp.open({"city": cities}, domain=THREE, unit=REPLACE), TWO_COUNTS, epsilon=1, rounds=3)
    assert len(calls[0]) == len(calls[1]) == 6
    for one, other in zip(*calls, strict=True):
        assert one[:3] == other[:3]
        if one[0] == "race":
            assert np.abs(one[3] - other[3]).max() <= 1
    assert any(np.any(one[3] != other[3]) for one, other in zip(*calls, strict=True) if one[0] == "race")


# --- The model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["projected", "textbook"])
def test_the_model_is_nearer_to_the_table_than_a_uniform_one(step):
    table, answers = binary()
    queries = list(monotone_conjunctions(table.domain))
    model = mwem(table, queries, epsilon=20, rounds=12, step=step)
    before = largest_error(Dense(table.domain, total=2000), table, answers)
    after = largest_error(model, table, answers)
    assert model.total == 2000
    assert after < (0.25 if step == "projected" else 0.95) * before


def test_where_the_number_of_rows_is_private_it_is_counted_with_noise():
    """Off by 30, with epsilon 1 for it, once in 10^13."""
    table, _ = binary(unit=dp.Unit())
    queries = list(monotone_conjunctions(table.domain))
    assert mwem(table, queries, epsilon=20, rounds=2).total == pytest.approx(2000, abs=30)


def test_the_projected_step_learns_more_than_the_textbooks():
    table, answers = binary(seed=3)
    queries = list(monotone_conjunctions(table.domain))
    errors = [
        largest_error(mwem(table, queries, epsilon=20, rounds=12, step=step), table, answers)
        for step in ("projected", "textbook")
    ]
    assert errors[0] < errors[1]


def test_the_textbooks_step_is_the_formula_and_its_answer_the_mean_of_all_rounds():
    learner = Learner(Dense(THREE), TWO_COUNTS, "textbook")
    learner.begin(10)
    weights, kept = np.full(3, 1 / 3), []
    for place, value in ((0, 8), (1, 9), (0, 7)):
        learner.learn(place, value)
        query = EFFECTS[place]
        weights = weights * np.exp(query * (value - 10 * (query @ weights)) / 20)
        weights /= weights.sum()
        kept.append(weights)
    assert learner.result().marginal(["city"]) == pytest.approx(10 * np.mean(kept, axis=0))


def test_a_projection_meets_what_was_measured_and_stays_a_table_where_that_is_impossible():
    model = Dense(THREE, total=10)
    project(model, TWO_COUNTS[0], 7)
    assert model.answer(TWO_COUNTS[0]) == pytest.approx(7)
    for impossible in (-50, 500):
        project(model, TWO_COUNTS[0], impossible)
        assert 0 < model.answer(TWO_COUNTS[0]) < 10
    everyone = count(THREE)
    project(model, everyone, 3)
    assert model.answer(everyone) == pytest.approx(10)


def test_the_batch_answers_what_the_model_answers(monkeypatch):
    table, _ = binary(50)
    queries = [*monotone_conjunctions(table.domain), 3 * count(table.domain, dp.col("x1") == False)]  # noqa: E712
    model = mwem(table, queries[:-1], epsilon=5, rounds=3)
    one_by_one = [model.answer(query) for query in queries]
    assert Batch(queries, table.domain).answers(model) == pytest.approx(one_by_one)
    monkeypatch.setattr("discreet.lab.textbook.mwem.MOST_KEPT", 3)
    assert Batch(queries, table.domain).answers(model) == pytest.approx(one_by_one)


# --- Paying -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "budget.sqlite") as opened:
        opened.cap(dp.Budget(epsilon=1), table="data")
        yield opened


@pytest.mark.parametrize("unit", [dp.Unit(), REPLACE], ids=lambda unit: unit.describe)
def test_everything_is_paid_at_once_before_a_row_is_read(ledger, unit):
    table = dp.open({"city": ["a", "b", "c"]}, domain=THREE, unit=unit)
    broken = dp.Table(table.schema, Unreadable())
    with pytest.raises(RuntimeError, match="disk"):
        mwem(broken, TWO_COUNTS, epsilon=0.25, rounds=5, ledger=ledger)
    assert ledger.remaining(table="data").epsilon == 0.75
    assert broken.source.asked == 1
    mwem(table, TWO_COUNTS, epsilon=0.5, rounds=5, ledger=ledger)
    assert ledger.remaining(table="data").epsilon == pytest.approx(0.25)
    assert len(ledger.history(table="data")) == 2


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"rounds": 0}, BadParameter),
        ({"epsilon": 0}, BadParameter),
        ({"epsilon": 2}, BudgetExceeded),
        ({"step": "newton"}, BadParameter),
        ({"queries": []}, BadQuery),
        ({"queries": [2 * TWO_COUNTS[0]]}, BadQuery),
        ({"queries": ["a"]}, BadQuery),
        ({"total": -3}, BadParameter),
        ({"delta": 1}, BadParameter),
    ],
)
def test_what_is_refused_is_neither_paid_nor_read(ledger, changes, error):
    table = dp.open({"city": ["a", "b", "c"]}, domain=THREE, unit=REPLACE)
    broken = dp.Table(table.schema, Unreadable())
    asked = {"queries": TWO_COUNTS, "epsilon": 0.5, "rounds": 2, "ledger": ledger} | changes
    with pytest.raises(error):
        mwem(broken, asked.pop("queries"), **asked)
    assert ledger.remaining(table="data").epsilon == 1
    assert broken.source.asked == 0


def test_a_domain_too_large_to_list_is_refused_with_its_cells_and_bytes(ledger):
    wide = dp.Domain({f"x{i}": dp.Boolean() for i in range(40)})
    table = dp.open({f"x{i}": [True] for i in range(40)}, domain=wide)
    with pytest.raises(TooLarge, match=rf"{2**40} cells and needs {2**43} bytes"):
        mwem(table, [count(wide)], epsilon=0.5, rounds=2, ledger=ledger)
    assert ledger.remaining(table="data").epsilon == 1


def test_the_same_key_gives_the_same_model_and_is_paid_once(ledger):
    table = dp.open({"city": ["a", "b", "c"] * 9}, domain=THREE)
    first = mwem(table, TWO_COUNTS, epsilon=0.5, rounds=4, ledger=ledger, key="monday")
    broken = dp.Table(table.schema, Unreadable())
    again = mwem(broken, TWO_COUNTS, epsilon=0.5, rounds=4, ledger=ledger, key="monday")
    assert first.marginal(["city"]).tolist() == again.marginal(["city"]).tolist()
    assert first.total == again.total
    assert ledger.remaining(table="data").epsilon == pytest.approx(0.5)


def test_sums_are_refused_by_name():
    domain = dp.Domain({"children": dp.Integers(0, 3)})
    table = dp.open({"children": [1, 2]}, domain=domain)
    with pytest.raises(BadQuery, match="a row weighs from 0 to 3"):
        mwem(table, [total(domain, "children")], epsilon=1, rounds=1)
