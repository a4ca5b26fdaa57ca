"""Plans: they change nothing, they reach what they promise, and what they say they cost is what is paid."""

from copy import deepcopy
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from discreet.accounting.event import Gaussian
from discreet.estimate.estimator import normal_quantile
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals
from discreet.mechanism.gaussian import gaussian_half_width
from discreet.plan.plan import plan_steps, step_event
from discreet.plan.steps import Target, _lattice, sigma_for, step_for
from discreet.query import Linear, Marginal, col, count
from discreet.query.product import Product
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from support.dense_estimator import random_domain, random_linear, random_question
from support.strategies import law

UNITS = [Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=3)]


def random_asked(rng, domain, *, linear=False):
    """A question about some column; the total, and a question that weighs nothing, are tested by themselves."""
    while True:
        question = random_linear(rng, domain) if linear else random_question(rng, domain)
        weight = question.weight if isinstance(question, Marginal) else question
        if question.scope and (weight is None or weight.products):
            return question


def random_known(rng, domain, *, unit=None, directs=True):
    """What some earlier questions left behind."""
    known = GaussianLattice.nothing(domain, unit or UNITS[rng.integers(3)])
    if known.lattice.unit.neighbors == "replace_one" and known.lattice.unit.key is None:
        known.learn_total(1000)
    for _ in range(int(rng.integers(0, 4))):
        question = random_asked(rng, domain)
        step = step_for(question, Target(float(np.exp(rng.uniform(0, 6)))), known)
        if isinstance(step, GaussianResiduals) or (directs and step is not None):
            learn(step, known)
    return known


def learn(step, known):
    """Take a step, with numbers that do not matter."""
    known.learn(step)


def state(known):
    """Everything that answers depend on."""
    blocks = {
        columns: (
            block.precision.tolist(),
            None if block.values is None else block.values.tolist(),
        )
        for columns, block in known.lattice.blocks.items()
        if block.version
    }
    groups = {
        columns: [(each.value, each.variance) for each in group.directs]
        for columns, group in known.directs.groups.items()
    }
    told = {
        question: (each.values.tolist(), each.variance, each.sigma) for question, each in known.direct_answers.items()
    }
    return deepcopy((blocks, groups, told, known.paid, known.lattice.used))


def error_of(question, target, known):
    """The half-width with which a question is known."""
    return float(known.intervals(question, target.confidence, target.joint).errors.max())


def random_target(rng):
    return Target(float(np.exp(rng.uniform(-2, 7))), float(rng.choice([0.8, 0.95, 0.999])), int(rng.choice([1, 20])))


@law(50)
def test_a_plan_changes_nothing_and_is_made_twice_alike(seed):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain)
    asked = [(random_asked(rng, domain), random_target(rng)) for _ in range(int(rng.integers(1, 4)))]
    before = state(known)
    plan = plan_steps(asked, known)
    assert state(known) == before
    assert plan_steps(asked, known) == plan


def reach(seed, *, directs):
    """Carry out a random plan: the questions, and how well they are known then."""
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain, directs=directs)
    asked = [(random_asked(rng, domain), random_target(rng)) for _ in range(int(rng.integers(1, 4)))]
    steps = plan_steps(asked, known).steps
    alone = {step.question for step in steps if isinstance(step, GaussianQuery)}
    if not directs:
        # A direct answer moves what the lattice says of others; a Marginal has a test of its own.
        steps = [step for step in steps if isinstance(step, GaussianResiduals)]
    for step in steps:
        learn(step, known)
    return [(target, error_of(question, target, known)) for question, target in asked if question not in alone]


@law(80)
def test_what_a_plan_promises_is_reached(seed):
    for target, error in reach(seed, directs=False):
        assert error <= target.error * (1 + 1e-8)


@pytest.mark.xfail(
    strict=True,
    reason="a direct is parted with when its pieces are measured: PARTED in tests/estimate/test_direct_measurements.py",
)
def test_what_a_plan_promises_is_reached_beside_direct_answers_too():
    for seed in (117, 192, 181208593):
        for target, error in reach(seed, directs=True):
            assert error <= target.error * (1 + 1e-8)


@law(100)
def test_one_question_alone_is_reached_and_then_free(seed):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain, directs=False)
    question, target = random_asked(rng, domain), random_target(rng)
    step = step_for(question, target, known)
    if step is None:
        assert error_of(question, target, known) <= target.error * (1 + 1e-8)
        return
    learn(step, known)
    assert step_for(question, target, known) is None
    assert plan_steps([(question, target)] * 2, known).origin == "known"


WIDE = Domain(
    {
        "age": Integers(17, 90, missing="drop"),
        "city": Categories(list("abcde"), outside="drop"),
        "hours": Integers(1, 99, missing="drop"),
        "job": Categories(list("abcdefgh"), outside="drop"),
        "sex": Boolean(),
    }
)


@pytest.mark.parametrize(
    ("error", "before"),
    [
        (60, None),
        (60.7, None),
        (60, 72),
    ],
)
def test_a_marginal_that_is_measured_directly_is_measured_once(error, before, monkeypatch):
    where = (col("age") >= 33) & (col("hours") >= 33) & (col("city") == "a") & (col("job") != "b")
    question, known, target = (
        Marginal(("sex",), count(WIDE, where)),
        GaussianLattice.nothing(WIDE, Unit()),
        Target(error),
    )
    if before is not None:
        # An old ledger may hold more pieces than are bought at once today.
        monkeypatch.setattr("discreet.plan.steps.MOST_DRAWN", 2**30)
        learn(_lattice(known.family(question), Target(before), known), known)
    step = step_for(question, target, known)
    assert isinstance(step, GaussianQuery)
    learn(step, known)
    assert step_for(question, target, known) is None


def test_a_question_that_weighs_nothing_is_known():
    assert step_for(Linear([]), Target(1.0), GaussianLattice.nothing(DOMAIN, Unit())) is None


def test_a_sum_of_counts_that_is_measured_directly_is_measured_once(monkeypatch):
    """No product is on all columns, so there is no piece of all of them into which the answer could go."""
    one = (col("age") >= 33) & (col("hours") >= 33) & (col("city") == "a")
    other = (col("hours") >= 50) & (col("job") == "a") & (col("sex") == True)  # noqa: E712
    question, known = count(WIDE, one) + count(WIDE, other), GaussianLattice.nothing(WIDE, Unit())
    monkeypatch.setattr("discreet.plan.steps.MOST_DRAWN", 2**30)
    learn(_lattice(known.family(question), Target(72), known), known)
    step = step_for(question, Target(60), known)
    assert isinstance(step, GaussianQuery)
    learn(step, known)
    assert step_for(question, Target(60), known) is None


@law(50)
def test_the_price_is_that_of_the_event(seed):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain)
    step = step_for(random_asked(rng, domain), random_target(rng), known)
    if step is not None:
        event = step_event(step, domain, known.lattice.unit)
        assert isinstance(event, Gaussian)
        assert step.price == pytest.approx(float(event.squared_sensitivity / event.sigma**2), rel=1e-12)


@law(50)
def test_pieces_of_the_lattice_are_measured_with_a_sigma_of_at_least_one(seed):
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain)
    step = step_for(random_asked(rng, domain), random_target(rng), known)
    if isinstance(step, GaussianResiduals):
        assert all(sigma >= 1 for _, sigma in step.measurement.pieces)


@law(30)
def test_a_larger_error_is_cheaper(seed):
    """Among plans of one kind. A plan that changes from the lattice to a direct answer may cost less and teach less."""
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    known = random_known(rng, domain)
    question = random_asked(rng, domain)
    prices = {GaussianResiduals: [], GaussianQuery: []}
    for error in np.exp(np.linspace(-2, 7, 19)):
        step = step_for(question, Target(float(error)), known)
        if step is not None:
            prices[type(step)].append(step.price)
    for found in prices.values():
        # Sigmas are rounded to 24 bits.
        assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(found))


@law(40)
def test_what_is_known_never_makes_a_question_dearer(seed):
    """Measured piece by piece; reuse may raise pieces further, so its weights are set aside."""
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    unit = UNITS[rng.integers(2)]
    empty = GaussianLattice.nothing(domain, unit)
    if unit.neighbors == "replace_one":
        empty.learn_total(1000)
    known, question, target = (
        random_known(rng, domain, unit=unit),
        random_asked(rng, domain, linear=True),
        Target(1000.0),
    )
    known.lattice.used.clear()
    known.paid.clear()
    known.directs.groups.clear()
    before, after = step_for(question, target, empty), step_for(question, target, known)
    if (
        isinstance(before, GaussianResiduals)
        and isinstance(after, GaussianResiduals)
        and unit.neighbors == "add_remove"
    ):
        assert after.price <= before.price * (1 + 1e-6)


DOMAIN = Domain(
    {"age": Integers(17, 90, missing="drop"), "city": Categories(["a", "b", "c"], outside="drop"), "sex": Boolean()}
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("error", [0.2, 1, 2])
@pytest.mark.parametrize("joint", [1, 150])
def test_tiny_errors_are_measured_directly_and_hold_exactly(unit, error, joint):
    for question in (count(DOMAIN, (col("age") >= 65) & (col("sex") == True)), Marginal(("age", "sex"))):  # noqa: E712
        for confidence in (0.5, 0.9, 0.95, 0.999):
            target = Target(error, confidence, joint)
            known = GaussianLattice.nothing(DOMAIN, unit)
            step = step_for(question, target, known)
            if isinstance(step, GaussianQuery):
                learn(step, known)
                assert gaussian_half_width(step.sigma, confidence, joint=joint) <= error
                wider = gaussian_half_width(step.sigma * Fraction(1001, 1000), confidence, joint=joint)
                assert wider > error or step.sigma >= 1, "the noise is as large as it can be"
            assert error_of(question, target, known) <= error if step is None else True


@pytest.mark.parametrize("error", [0.2, 0.5, 1.0])
def test_an_error_of_at_most_one_at_95_percent_needs_a_sigma_below_one(error):
    step = step_for(count(DOMAIN, col("age") >= 65), Target(error), GaussianLattice.nothing(DOMAIN, Unit()))
    assert isinstance(step, GaussianQuery)
    assert step.sigma < 1


EVERYONE, OLD = Linear([Product(())]), count(DOMAIN, col("age") >= 65)


def holds(bar, sigma):
    """Pr[|round(Y)| ≤ bar], exactly."""
    return 1 - 2 * norm.sf((np.floor(bar) + 0.5) / float(sigma))


@pytest.mark.parametrize("confidence", [0.8, 0.944, 0.99])
def test_a_promise_about_the_total_holds_by_the_exact_law_of_its_noise(confidence):
    for error in (1.99, 2.6, 3.9, 7.75, 20.9):
        known, target = GaussianLattice.nothing(DOMAIN, Unit()), Target(error, confidence)
        step = step_for(EVERYONE, target, known)
        learn(step, known)
        ((_, sigma),) = [(None, step.sigma)] if isinstance(step, GaussianQuery) else step.measurement.pieces
        assert holds(error_of(EVERYONE, target, known), sigma) >= confidence


@pytest.mark.parametrize("confidence", [0.8, 0.944, 0.99])
def test_the_bar_of_one_direct_answer_holds_by_the_exact_law_of_its_noise(confidence):
    for sigma in (Fraction(1), Fraction(13, 10), Fraction(5, 2), Fraction(51, 10), Fraction(20)):
        known = GaussianLattice.nothing(DOMAIN, Unit())
        known.learn(GaussianQuery(OLD, sigma, 0.0))
        assert holds(error_of(OLD, Target(1.0, confidence), known), sigma) >= confidence


@law(30)
def test_a_batch_costs_at_most_what_its_questions_cost_one_after_the_other(seed):
    """When no question is worth a direct answer; up to the hair that targets are met early."""
    rng = np.random.default_rng(seed)
    domain = random_domain(rng)
    unit = UNITS[rng.integers(3)]
    asked = [(random_asked(rng, domain, linear=True), Target(float(rng.uniform(100, 300)))) for _ in range(4)]
    together = plan_steps(asked, GaussianLattice.nothing(domain, unit))
    known, one_by_one, alone = GaussianLattice.nothing(domain, unit), 0.0, []
    for question, target in asked:
        step = step_for(question, target, known)
        if step is not None:
            alone.append(step)
            one_by_one += step.price
            learn(step, known)
    if all(isinstance(step, GaussianResiduals) for step in (*together.steps, *alone)):
        assert together.price <= one_by_one * 1.05 or unit.neighbors == "replace_one"
        assert together.price <= one_by_one * 2


@pytest.mark.parametrize("known_before", [False, True])
@pytest.mark.parametrize("error", [0.3, 1, 1.3, 2, 2.7, 3, 50])
def test_the_total_is_measured_once(error, known_before):
    known = GaussianLattice.nothing(DOMAIN, Unit())
    if known_before:
        learn(step_for(EVERYONE, Target(error + 20), known), known)
    learn(step_for(EVERYONE, Target(error), known), known)
    assert error_of(EVERYONE, Target(error), known) <= error * (1 + 1e-8)
    assert step_for(EVERYONE, Target(error), known) is None


def test_a_batch_with_the_total_in_it_is_measured_once():
    known = GaussianLattice.nothing(DOMAIN, Unit())
    asked = [(question, Target(50.0)) for question in (EVERYONE, OLD, Marginal(("city",)))]
    for step in plan_steps(asked, known).steps:
        learn(step, known)
    assert plan_steps(asked, known).steps == ()


@law(200)
def test_a_sigma_is_rounded_down_by_a_hair_and_has_a_short_inverse_square(seed):
    rng = np.random.default_rng(seed)
    variance, gain = float(np.exp(rng.uniform(-2, 20))), float(rng.integers(1, 5000))
    sigma = sigma_for(variance, gain)
    if sigma is None:
        assert variance * gain - 1 / 12 < 1
    else:
        assert sigma >= 1
        exact = (variance * gain - 1 / 12) ** 0.5
        assert exact * (1 - 2**-22) <= float(sigma) <= exact * (1 + 1e-12)
        assert sigma.numerator & (sigma.numerator - 1) == 0


def test_quantiles_are_exact_and_sidak():
    for confidence in (0.5, 0.95, 1 - 1e-9):
        for joint in (1, 7, 10**6):
            z = normal_quantile(confidence, joint)
            assert joint * np.log1p(-2 * norm.sf(z)) == pytest.approx(np.log(confidence), rel=1e-6)
