"""A budget split over the lattice: against an optimiser that knows nothing of it, closed forms, and exact prices."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import discreet as dp
from discreet.accounting.event import total_loss
from discreet.accounting.gaussian_dp import GAUSSIAN
from discreet.errors import BadParameter
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.measurements import GaussianResiduals
from discreet.estimate.residual_lattice import precision_prices
from discreet.query.linear import Marginal
from discreet.query.residual import Residual, axes_of
from discreet.query.workload import conjunctions, marginals
from discreet.release.methods.residual_planner import PLANNER, allocate, as_steps, market_of, terms
from discreet.release.methods.residual_workload import asked_marginals, asked_prefixes, asked_questions, asked_ranges
from discreet.release.task import goal_of

seeds = st.integers(0, 2**32 - 1)
UNITS = [
    dp.Unit(),
    dp.Unit(neighbors="replace_one"),
    dp.Unit(key="who", contributions=3),
    dp.Unit(key="who", contributions=2, neighbors="replace_one"),
]


def law(examples):
    return lambda test: settings(max_examples=examples)(given(seed=seeds)(test))


def whole(size, ordered=True, *, drops=True):
    """A column of so many cells, all of them declared; rows with other values are dropped, or go to the first."""
    rule = "drop" if drops else 0
    if ordered:
        return dp.Integers(0, size - 1, outside=rule, missing=rule)
    return dp.Categories(range(size), outside=rule, missing=rule)


def binary(columns):
    return dp.Domain({f"x{place}": dp.Boolean() for place in range(columns)})


def random_case(rng, unit, *, categories=False):
    """A domain, a goal of some of its marginals, and something known, of one piece all."""
    drops = bool(rng.random() < 0.5)
    ordered = [not categories and rng.random() < 0.5 for _ in range(3)]
    domain = dp.Domain(
        {name: whole(int(rng.integers(2, 6)), each, drops=drops) for name, each in zip("abc", ordered, strict=True)}
    )
    scopes = [("a", "b"), ("b", "c"), ("a",), ("a", "b", "c")]
    goal = goal_of({scope: float(rng.uniform(0.1, 1)) for scope in scopes if rng.random() < 0.7} or {("a",): 1}, domain)
    known = GaussianLattice.nothing(domain, unit)
    for scope in goal.below:
        block = known.lattice.blocks.setdefault(scope, known.lattice.block(scope))
        block.precision[...] = rng.gamma(1.0, 1e-3, size=block.precision.shape) * (rng.random() < 0.4)
    if rng.random() < 0.3:
        known.learn_total(1000)
    return domain, goal, known


def learn(known, steps):
    """Take the steps without looking at any row: only how well the pieces are known then."""
    for step in steps.steps:
        assert isinstance(step, GaussianResiduals)
        known.learn(step)


# --- The optimum ------------------------------------------------------------------------------------------------------


def objective(asked, market, weight, norm):
    variances = asked.variances(market.reached(weight))
    if norm == "l2":
        return float(asked.weights @ variances)
    return float(asked.weights @ np.sqrt(asked.answers * variances))


def searched(asked, market, budget, norm):
    """The least objective that a general optimiser finds, over the logarithms of the weights, from several starts."""
    free = np.flatnonzero((asked.demand(asked.weights) > 0) & (market.price > 0) & (market.known < np.inf))

    def weight(logs):
        found = np.zeros(asked.size)
        found[free] = np.exp(logs)
        return found * budget / market.cost(found)

    best = inf
    for start in range(3):
        begin = np.random.default_rng(start).normal(size=len(free))
        found = minimize(
            lambda logs: np.log(objective(asked, market, weight(logs), norm)),
            begin,
            method="L-BFGS-B",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        best = min(best, objective(asked, market, weight(found.x), norm))
    return best


@pytest.mark.parametrize("norm", ["l2", "l1"])
@law(12)
def test_no_optimiser_finds_better_precisions(norm, seed):
    rng = np.random.default_rng(seed)
    unit = UNITS[rng.integers(4)]
    _, goal, known = random_case(rng, unit, categories=unit.neighbors == "replace_one")
    asked, budget = asked_marginals(goal), float(10 ** rng.uniform(-4, -2))
    market = market_of(asked, known)
    weight = market.bought(asked.joined(allocate(goal, known, budget=budget, norm=norm)))
    assert market.cost(weight) == pytest.approx(budget, rel=1e-8)
    least = searched(asked, market, budget, norm)
    assert objective(asked, market, weight, norm) <= least * (1 + 1e-6)
    assert objective(asked, market, weight, norm) >= least * (1 - 1e-2), "the other optimiser looked well enough"


@law(60)
def test_what_is_not_known_has_the_closed_form(seed):
    """σ_V² = (T/μ²)√(c_V/v_V) with T = Σ √(v c)."""
    rng = np.random.default_rng(seed)
    domain, goal, _ = random_case(rng, dp.Unit())
    known, asked = GaussianLattice.nothing(domain, dp.Unit()), asked_marginals(goal)
    market, demand, budget = market_of(asked, known), asked.demand(asked.weights), 1e-3
    reached = asked.joined(allocate(goal, known, budget=budget))
    wanted = demand > 0
    constant = np.sqrt(demand * market.price)[wanted].sum() / budget
    closed = constant * np.sqrt(market.price[wanted] / demand[wanted]) + market.rounding[wanted]
    np.testing.assert_allclose(1 / reached[wanted], closed, rtol=1e-9)
    assert not reached[~wanted].any()


@pytest.mark.parametrize(("columns", "width"), [(3, 1), (5, 2), (6, 3), (4, 4)])
def test_all_marginals_of_binary_columns_have_the_variance_of_residual_planner(columns, width):
    """By hand: there are C(d, j) pieces of j columns, of price 2^−j, each in C(d − j, k − j) marginals."""
    domain, budget = binary(columns), 1e-3
    goal = goal_of(marginals(domain, width), domain)
    asked = asked_marginals(goal)
    precision = asked.joined(allocate(goal, GaussianLattice.nothing(domain, dp.Unit()), budget=budget))
    roots = sum(comb(columns, size) * comb(columns - size, width - size) ** 0.5 for size in range(width + 1))
    by_hand = 2**-width * roots**2 / budget
    rounding = sum(
        comb(columns, size) * comb(columns - size, width - size) * 2.0 ** (size - width) / (12 * 2**size)
        for size in range(width + 1)
    )
    assert asked.variances(precision).sum() == pytest.approx(by_hand + rounding, rel=1e-9)


@law(30)
def test_more_budget_leaves_no_piece_less_known_and_no_answer_worse(seed):
    rng = np.random.default_rng(seed)
    unit = UNITS[rng.integers(4)]
    _, goal, known = random_case(rng, unit, categories=unit.neighbors == "replace_one")
    asked = asked_marginals(goal)
    budgets = np.sort(10 ** rng.uniform(-6, 0, size=5)).tolist()
    found = [asked.joined(allocate(goal, known, budget=budget)) for budget in budgets]
    for less, more in pairwise(found):
        assert np.all(more >= less * (1 - 1e-12))
    market = market_of(asked, known)
    for norm in ("l2", "l1"):
        reached = [asked.joined(allocate(goal, known, budget=budget, norm=norm)) for budget in budgets]
        values = [objective(asked, market, market.bought(each), norm) for each in reached]
        assert all(after <= before * (1 + 1e-9) for before, after in pairwise(values))


def test_the_l1_norm_gives_small_marginals_less_than_variances_would():
    """A large marginal has nearly all of the variance; of the absolute error it has less."""
    domain = dp.Domain({"small": whole(2), "large": whole(1000, ordered=False)})
    goal, known = goal_of([["small"], ["large"]], domain), GaussianLattice.nothing(domain, dp.Unit())
    asked = asked_marginals(goal)
    small = goal.scopes.index(("small",))
    two, one = (
        asked.variances(asked.joined(allocate(goal, known, budget=1e-3, norm=norm)))[small] for norm in ("l2", "l1")
    )
    assert one != pytest.approx(two, rel=0.05)
    market = market_of(asked, known)
    values = {
        norm: objective(asked, market, market.bought(asked.joined(allocate(goal, known, budget=1e-3, norm=norm))), "l1")
        for norm in ("l2", "l1")
    }
    assert values["l1"] < values["l2"]


def test_an_unknown_norm_is_refused():
    domain = binary(2)
    with pytest.raises(BadParameter, match="l1"):
        allocate(goal_of(marginals(domain, 2), domain), GaussianLattice.nothing(domain, dp.Unit()), budget=1, norm="l3")


# --- Exchanged people: pieces of a block cost less together -----------------------------------------------------------


def test_the_joint_price_of_a_block_is_that_of_the_measurement():
    rng = np.random.default_rng(0)
    for unit, sizes in product(UNITS, [(8,), (5, 3), (2, 6, 4)]):
        domain = dp.Domain({f"c{place}": whole(size, place != 1) for place, size in enumerate(sizes)})
        known, goal = GaussianLattice.nothing(domain, unit), goal_of([list(domain)], domain)
        asked = asked_marginals(goal)
        market = market_of(asked, known)
        weight = rng.gamma(1.0, 1e-3, size=asked.size) * (market.price > 0)
        steps = as_steps(known, asked.split(market.reached(weight)))
        assert steps.price == pytest.approx(market.cost(weight), rel=1e-8)


@pytest.mark.parametrize("by_name", [asked_ranges, asked_prefixes])
def test_the_levels_of_an_exchange_are_near_the_optimum(by_name):
    """Minimise Σ v/w with the largest move at most the budget: SLSQP, a constraint for each kind of exchange."""
    domain, unit, budget = dp.Domain({"age": whole(32)}), dp.Unit(neighbors="replace_one"), 1e-4
    asked, known = by_name(domain, "age"), GaussianLattice.nothing(domain, unit)
    known.learn_total(1000)
    market, demand = market_of(asked, known), asked.demand(asked.weights)
    weight = market.bought(asked.joined(allocate(asked, known, budget=budget)))
    (exchange,) = market.exchanges
    places = exchange.places[0]

    def moves(some):
        every = np.zeros(asked.size)
        every[places] = some
        return exchange.moves(every)[0]

    scale = 1 / exchange.lengths
    found = minimize(
        lambda some: float((demand[places] / (some * scale)).sum()),
        np.full(len(places), 0.05),
        bounds=[(1e-6, 1)] * len(places),
        constraints={"type": "ineq", "fun": lambda some: 1 - moves(some * scale)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-9},
    )
    assert found.success
    assert market.cost(weight) == pytest.approx(budget, rel=1e-8)
    ours = float((demand[places] / weight[places] * budget).sum())
    assert found.fun * (1 - 1e-4) <= ours <= found.fun * 1.003


def test_prices_are_those_of_the_lattice():
    for unit, sizes in product(UNITS, [(), (2,), (7,), (4, 5), (3, 2, 9), (1, 3)]):
        domain = dp.Domain({name: whole(size, size % 2 == 0) for name, size in zip("abc", (*sizes, 2), strict=False)})
        columns = tuple("abc"[: len(sizes)])
        price, gain = terms(axes_of(domain, columns), unit, droppable=domain.drops)
        every = precision_prices(axes_of(domain, columns), unit, droppable=domain.drops)
        np.testing.assert_allclose(price, every[(slice(1, None),) * len(columns)], rtol=1e-12)
        assert price.shape == gain.shape


# --- Steps: what is paid and what is then known -----------------------------------------------------------------------


@law(40)
def test_steps_cost_the_budget_and_never_more(seed):
    rng = np.random.default_rng(seed)
    unit = UNITS[rng.integers(4)]
    domain, goal, known = random_case(rng, unit)
    budget = Fraction(float(10 ** rng.uniform(-6, -2))).limit_denominator(10**9)
    steps = as_steps(known, allocate(goal, known, budget=budget, norm=("l2", "l1")[rng.integers(2)]), budget=budget)
    spent = total_loss(steps.event(domain, unit), GAUSSIAN)
    assert spent <= budget, "in exact arithmetic"
    assert spent >= budget * PLANNER.spent_share
    assert len(steps.steps) == len({step.measurement.columns for step in steps.steps}), "one for each block"


@law(40)
def test_steps_reach_the_precisions_and_answers_have_the_forecast_variances(seed):
    rng = np.random.default_rng(seed)
    _, goal, known = random_case(rng, dp.Unit())
    asked, budget = asked_marginals(goal), Fraction(1, 1000)
    wanted = allocate(goal, known, budget=budget)
    learn(known, as_steps(known, wanted, budget=budget))
    for columns, precision in wanted.items():
        np.testing.assert_allclose(known.lattice.block(columns).precision, precision, rtol=1e-8)
    forecast = asked.variances(asked.joined(wanted))
    for scope, variance in zip(goal.scopes, forecast.tolist(), strict=True):
        variances = known.estimate_family(known.family(Marginal(scope))).variances
        assert variances.sum() == pytest.approx(variance, rel=1e-8)


@law(30)
def test_what_is_known_is_not_paid_again(seed):
    """Two halves of a budget, one after the other, lead to the precisions of the whole, but for the rounding."""
    rng = np.random.default_rng(seed)
    domain, goal, _ = random_case(rng, dp.Unit())
    half, once, twice = (
        Fraction(1, 2000),
        GaussianLattice.nothing(domain, dp.Unit()),
        GaussianLattice.nothing(domain, dp.Unit()),
    )
    asked = asked_marginals(goal)
    at_once = asked.joined(allocate(goal, once, budget=2 * half))
    for _ in range(2):
        learn(twice, as_steps(twice, allocate(goal, twice, budget=half), budget=half))
    in_two = asked.joined({columns: block.precision for columns, block in twice.lattice.blocks.items()})
    np.testing.assert_allclose(in_two, at_once, rtol=1e-3)
    for columns in asked.starts:
        known_well = GaussianLattice.nothing(domain, dp.Unit())
        block = known_well.lattice.blocks.setdefault(columns, known_well.lattice.block(columns))
        block.precision[...] = inf
        steps = as_steps(known_well, allocate(goal, known_well, budget=half), budget=half)
        assert columns not in [step.measurement.columns for step in steps.steps], "what is known exactly is not bought"
        assert steps.price <= half


def test_pieces_that_are_known_better_than_needed_are_left_alone():
    domain = binary(3)
    goal, known = goal_of(marginals(domain, 2), domain), GaussianLattice.nothing(domain, dp.Unit())
    known.lattice.add(Residual((("x0", 1),)), variance=10.0, values=None)
    before = float(known.lattice.block(("x0",)).precision[0])
    found = allocate(goal, known, budget=1e-4)
    assert found["x0",] == before
    steps = as_steps(known, found, budget=1e-4)
    assert ("x0",) not in [step.measurement.columns for step in steps.steps]
    alone = asked_marginals(goal)
    nothing = allocate(goal, GaussianLattice.nothing(domain, dp.Unit()), budget=1e-4)
    others = [columns for columns in alone.starts if columns != ("x0",)]
    assert all(np.all(found[columns] > nothing[columns]) for columns in others), "what it costs goes to the others"


@pytest.mark.parametrize("unit", UNITS[:2])
def test_noise_is_never_below_one_and_what_cannot_be_spent_is_left(unit):
    domain = dp.Domain({"a": whole(8), "b": whole(3, ordered=False)})
    goal, known = goal_of([["a", "b"]], domain), GaussianLattice.nothing(domain, unit)
    rich = as_steps(known, allocate(goal, known, budget=10**6), budget=10**6)
    assert {sigma for step in rich.steps for _, sigma in step.measurement.pieces} == {1}
    assert rich.price < 10**6
    # Some pieces are full, and the others get what is left.
    budget = Fraction(round(rich.price * 0.7 * 1000), 1000)
    some = as_steps(known, allocate(goal, known, budget=budget), budget=budget)
    sigmas = [sigma for step in some.steps for _, sigma in step.measurement.pieces]
    assert min(sigmas) >= 1
    assert budget * PLANNER.spent_share <= total_loss(some.event(domain, unit), GAUSSIAN) <= budget


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_where_everything_is_known_nothing_is_bought(norm):
    domain = dp.Domain({"a": whole(4), "b": whole(1)})
    goal, known = goal_of([["a", "b"]], domain), GaussianLattice.nothing(domain, dp.Unit())
    for columns in ((), ("a",)):
        block = known.lattice.blocks.setdefault(columns, known.lattice.block(columns))
        block.precision[...] = inf
    found = allocate(goal, known, budget=1, norm=norm)
    assert all(np.all(precision == inf) for precision in found.values())
    assert as_steps(known, found, budget=1).steps == ()


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_public_number_of_rows_costs_nothing_whether_it_was_told_or_not(norm):
    domain = dp.Domain({"a": whole(4, drops=False), "b": dp.Boolean()})
    unit = dp.Unit(neighbors="replace_one")
    goal = goal_of(marginals(domain, 1), domain)
    told, untold = GaussianLattice.nothing(domain, unit), GaussianLattice.nothing(domain, unit)
    told.learn_total(100)
    found = [allocate(goal, known, budget=0.01, norm=norm) for known in (told, untold)]
    for columns in found[0]:
        assert found[0][columns].tolist() == found[1][columns].tolist()
    assert all(step.measurement.columns for step in as_steps(untold, found[1], budget=0.01).steps)


def test_precisions_without_a_budget_are_bought_as_they_are():
    known = GaussianLattice.nothing(binary(2), dp.Unit())
    learn(known, as_steps(known, {("x0",): np.array([0.02]), ("x0", "x1"): np.array([[0.01]])}))
    assert known.lattice.block(("x0",)).precision == pytest.approx(0.02, rel=1e-9)
    assert known.lattice.block(("x0", "x1")).precision == pytest.approx(0.01, rel=1e-9)
    assert as_steps(known, {("x0",): np.array([0.01])}).steps == (), "it is known better"
    assert as_steps(known, {("x0",): np.array([0.01])}, budget=1).steps == ()


# --- Questions other than marginals -----------------------------------------------------------------------------------


def test_cells_asked_one_by_one_are_bought_like_the_marginal():
    domain = dp.Domain({"a": whole(8), "b": whole(3, ordered=False)})
    known, budget = GaussianLattice.nothing(domain, dp.Unit()), 1e-3
    marginal = allocate(goal_of([["a", "b"]], domain), known, budget=budget)
    for norm, apart in (("l2", False), ("l1", True)):
        questions = asked_questions(conjunctions(domain, 2), domain, apart=apart)
        cells = allocate(questions, known, budget=budget, norm=norm)
        for columns, precision in marginal.items():
            np.testing.assert_allclose(cells[columns], precision, rtol=1e-6)


def spectral_bound(weights):
    """No strategy with Gaussian noise has a lower mean variance: (Σ singular values)²/(cells · queries)."""
    return float(np.linalg.svd(weights, compute_uv=False).sum() ** 2 / weights.size)


def all_ranges(cells):
    starts, ends = np.triu_indices(cells)
    places = np.arange(cells)
    return ((places >= starts[:, None]) & (places <= ends[:, None])).astype(np.float64)


def test_all_ranges_are_near_the_bound_for_all_strategies():
    cells = 64
    domain = dp.Domain({"age": whole(cells)})
    asked, known = asked_ranges(domain, "age"), GaussianLattice.nothing(domain, dp.Unit())
    budget = 1e-6
    variance = float(asked.weights @ asked.variances(asked.joined(allocate(asked, known, budget=budget)))) * budget
    bound = spectral_bound(all_ranges(cells))
    identity = (cells + 2) / 3
    equal = asked.weights @ asked.variances(np.concatenate([[1.0], market_of(asked, known).most[1:]]) * budget / 7)
    assert bound * (1 - 1e-9) <= variance <= 1.6 * bound
    assert variance < float(equal) * budget < identity
