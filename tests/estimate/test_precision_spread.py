"""However far apart the precisions of what was measured are, no bar claims more than was paid for, and all hold."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import load_adult
from discreet.curator import Curator
from discreet.errors import BadParameter, BudgetExceeded
from discreet.estimate.estimator import normal_quantile
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.laplace_estimator import estimator_for
from discreet.estimate.measurements import GaussianQuery, LaplaceMarginal
from discreet.ledger import Budget
from discreet.plan import plan as plan_module
from discreet.plan.plan import plan_steps
from discreet.plan.steps import MOST_NOISE, Target, direct_step, step_for
from discreet.query import Linear, Marginal, col, count
from discreet.query.product import Factor, Product
from discreet.schema import Boolean, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.source import unseal
from discreet.source.table import Table

DOMAIN = Domain({"age": Integers(0, 15), "city": Integers(0, 2), "smoker": Boolean()})
ROWS = 3000
UNIT, CITIES, SMOKERS = Unit(), DOMAIN["city"].size, DOMAIN["smoker"].size
# So rarely does one bar fail that of all the bars here none does.
SURE = 1 - 1e-9
SMOKES = col("smoker") == True  # noqa: E712
CONDITIONS = [
    *(col("age") >= at for at in (3, 7, 8, 12)),
    *(col("city") == at for at in (0, 1, 2)),
    *((col("age") >= at) & (col("city") == 1) for at in (5, 8)),
    (col("age") >= 8) & SMOKES,
    (col("city") == 2) & SMOKES,
    SMOKES,
]
QUESTIONS = [count(DOMAIN, each) for each in CONDITIONS]


def rows_of(seed):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(0, 16, ROWS).tolist(),
        "city": rng.integers(0, 3, ROWS).tolist(),
        "smoker": (rng.random(ROWS) < 0.3).tolist(),
    }


PEOPLE = Table(Schema("people", DOMAIN, Unit()), Frame(rows_of(7), domain=DOMAIN, unit=Unit()))


def exact(question):
    sealed = PEOPLE.source.evaluate(question)
    return unseal(sealed, sealed.sensitivity, stretches=sealed.stretches)


def take(step, known, rng):
    """Do what a step says with noise of our own, and say what it cost."""
    if isinstance(step, GaussianQuery):
        noise = rng.normal(scale=float(step.sigma), size=1)
        known.learn(GaussianQuery(step.question, step.sigma, 0.0), _whole(exact(step.question) + noise))
        return step.price
    values = exact(step.measurement)
    sizes = [known.lattice.size(residual) for residual, _ in step.measurement.pieces]
    scales = np.repeat([float(sigma) for _, sigma in step.measurement.pieces], sizes)
    known.learn(step, _whole(values + rng.normal(scale=scales)))
    return step.price


def _whole(numbers):
    return np.rint(numbers).astype(np.int64)


def require_true(known, price):
    """Every bar holds, and none is narrower than all that was paid can make it.

    One row more moves a count by 1. An unbiased estimate that tells it apart with a standard deviation s needs a
    squared mu of 1/s² (Cramér and Rao), whatever was measured.
    """
    for question in QUESTIONS:
        for confidence in (0.95, SURE):
            bar = known.intervals(question, confidence)
            error, missed = float(bar.errors[0]), abs(float(bar.values[0]) - float(exact(question)[0]))
            # A whole noise is within t as soon as the noise before rounding is within t + 1/2.
            assert error >= normal_quantile(confidence) * price**-0.5 * (1 - 1e-6) - 0.5
            if confidence == SURE:
                assert missed <= error * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_bars_hold_whatever_the_spread_of_the_errors(seed):
    rng = np.random.default_rng([seed, 1])
    known, price = GaussianLattice.nothing(DOMAIN, Unit()), 0.0
    for _ in range(10):
        question = QUESTIONS[rng.integers(len(QUESTIONS))]
        # Straight from the planner's parts, so beyond the most noise of a plan: old ledgers have such measurements.
        step = step_for(question, Target(10.0 ** rng.uniform(-3, 13)), known, ahead=bool(rng.integers(2)))
        if step is not None:
            price += take(step, known, rng)
            require_true(known, price)


@pytest.mark.parametrize("faint", [10.0**power for power in range(6, 15)])
def test_a_faint_measurement_beside_a_good_one(faint):
    rng = np.random.default_rng(5)
    known, price = GaussianLattice.nothing(DOMAIN, Unit()), 0.0
    first = step_for(QUESTIONS[-1], Target(faint), known)
    assert not isinstance(first, GaussianQuery), "pieces of the lattice are faint, and what follows is joined to them"
    price += take(first, known, rng)
    for question, error in ((QUESTIONS[2], 200.0), (QUESTIONS[9], 100.0)):
        step = direct_step(question, Target(error), known)
        price += take(step, known, rng)
        require_true(known, price)


@pytest.mark.parametrize("faint_first", [True, False])
def test_a_negligible_direct_is_told_but_not_joined(faint_first):
    known = GaussianLattice.nothing(DOMAIN, Unit())
    pair = [(QUESTIONS[0], 10**9), (QUESTIONS[1], 10)]
    for question, sigma in pair if faint_first else reversed(pair):
        known.learn(GaussianQuery(question, Fraction(sigma), 0.0), np.array([1000]))
    assert [known.directs.has(question, question.scope) for question, _ in pair] == [False, True]
    assert set(known.direct_answers) == {question for question, _ in pair}


@pytest.mark.parametrize("pure", [True, False])
def test_no_plan_has_more_noise_than_so_many_times_the_sensitivity(pure):
    known = estimator_for("pure" if pure else "gaussian", DOMAIN, Unit())
    for weight in (1, 10**6):
        question = weight * QUESTIONS[0]
        prices = [
            plan_steps([(question, Target(error * weight))], known, ahead=False).price for error in (1e9, 1e13, 1e30)
        ]
        assert prices[0] == prices[1] == prices[2] > 0.1 * MOST_NOISE ** (-1 if pure else -2)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("grouped", [(), ("city",), ("smoker",), ("city", "smoker")])
def test_what_is_left_of_products_that_cancel_has_its_own_value_and_bar(grouped, pure):
    """Doubles would not see a weight of 1 beside 2^40: the bar would be 0, and the value rounding."""
    known, rng = estimator_for("pure" if pure else "gaussian", DOMAIN, UNIT), np.random.default_rng(1)
    if pure:
        known.learn(LaplaceMarginal(("city", "smoker"), Fraction(9), 0.0), rng.integers(0, 99, CITIES * SMOKERS))
    else:
        for step in plan_steps([(Marginal(("city", "smoker")), Target(error=30.0, confidence=0.95))], known).steps:
            take(step, known, rng)
    here, weights = (np.arange(CITIES) == 0).astype(np.int64), 1 + np.arange(SMOKERS)
    # w(smoker) for everybody, as 2^40 w here and w everywhere, less 2^40 w in two pieces.
    large = [((2**40 * here + 1), weights, 1), (2**40 * here, 0 * weights + 1, -1), (2**40 * here, weights - 1, -1)]
    sums = [Product((Factor(("city",), city), Factor(("smoker",), smoker)), sign) for city, smoker, sign in large]
    plain = [Product((Factor(("smoker",), weights),))]
    questions = [Marginal(grouped, Linear(each)) if grouped else Linear(each) for each in (sums, plain)]
    found, expected = (known.intervals(each, 0.95) for each in questions)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.errors, expected.errors, rtol=0.02)
    assert found.errors.min() > 1


@pytest.fixture
def desk(tmp_path):
    opened = Curator(PEOPLE, budget=Budget(epsilon=50, delta=1e-9), ledger=tmp_path / "a.sqlite", analyst="eve")
    with opened:
        yield opened


@pytest.mark.parametrize("seed", range(4))
def test_analysts_who_ask_for_any_error_are_told_the_truth(seed, desk):
    rng = np.random.default_rng([seed, 2])
    desks = [desk, desk.seen_by("ana"), desk.seen_by("bob")]
    for _ in range(12):
        place, error = int(rng.integers(len(CONDITIONS))), 10.0 ** rng.uniform(-3, 13)
        try:
            answer = desks[rng.integers(3)].ask(CONDITIONS[place], error=error, confidence=SURE)
        except BudgetExceeded:
            continue
        missed = abs(answer.value - float(exact(QUESTIONS[place])[0]))
        assert missed <= answer.error * (1 + 1e-9)
        assert answer.error <= error * (1 + 1e-6)


def mean_after(asked, ledger):
    """A mean with its price and the payments for it, after what somebody else has asked."""
    with Curator(load_adult(), budget=Budget(epsilon=1, delta=1e-9), ledger=ledger, analyst="eve") as opened:
        for question, wish in asked:
            opened.ask(question, **wish)
        ana = opened.seen_by("ana")
        before, entries = float(ana.remaining.epsilon), len(opened.history())
        answer = ana.ask("SELECT AVG(age) FROM adult", error=20)
        return answer, before - float(ana.remaining.epsilon), len(opened.history()) - entries


FAINT = [("age >= 40", {"epsilon": 2e-7}), ("age >= 42", {"error": 1e9})]


@pytest.mark.parametrize("most", [MOST_NOISE, 1e30])
def test_a_mean_costs_no_more_after_questions_that_say_nothing(most, tmp_path, monkeypatch):
    # Without a bound on the noise too: old ledgers have such measurements.
    monkeypatch.setattr(plan_module, "MOST_NOISE", most)
    _, price, payments = mean_after([], tmp_path / "clean.sqlite")
    answer, after, more = mean_after(FAINT, tmp_path / "faint.sqlite")
    assert answer.error <= 20
    assert after <= 2 * price
    assert more <= payments + 1


def test_too_small_a_price_is_refused_with_the_least_one(desk):
    with pytest.raises(BadParameter, match="The least for this question is") as refused:
        desk.ask(CONDITIONS[0], epsilon=1e-12)
    assert not desk.history()
    least = float(str(refused.value).split("question is ")[1].split(". ")[0])
    assert desk.ask(CONDITIONS[0], epsilon=least).error > MOST_NOISE
