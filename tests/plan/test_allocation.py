"""Water filling: the target is met, and at the least price, as an optimiser that knows nothing of it confirms."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.plan.allocation import fill_each, fill_to_budget, fill_to_targets, water_level
from discreet.plan.steps import fill_to_target
from support.strategies import law


def random_case(rng, *, pieces=None):
    """Energies, prices, what is known already (of some nothing, of some everything), and a target below the present."""
    count = int(rng.integers(1, 9)) if pieces is None else pieces
    energies = rng.gamma(0.5, size=count) * (rng.random(count) < 0.8)
    price = rng.uniform(0.05, 2, size=count)
    precision = rng.gamma(1.0, size=count) * (rng.random(count) < 0.6)
    precision[rng.random(count) < 0.1] = np.inf
    energies[0] += 0.1
    precision[0] = min(precision[0], 1.0)
    now = left(energies, precision)
    fixed = left(energies, np.where(np.isinf(precision), np.inf, 1e12))
    target = float(rng.uniform(0.1, 0.9)) * (now if now < np.inf else 10.0) + fixed
    return energies, price, precision, target


def left(energies, precision):
    """The variance of a question."""
    asked = energies > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(energies[asked] / precision[asked]))


def cost(price, precision, result):
    more = np.zeros_like(price)
    raised = result > precision
    more[raised] = result[raised] - precision[raised]
    return float(price @ more)


@law(200)
def test_the_target_is_met_and_nothing_is_lowered(seed):
    rng = np.random.default_rng(seed)
    energies, price, precision, target = random_case(rng)
    uses = rng.integers(0, 5, size=len(price)).astype(float)
    result = fill_to_target(energies, price, precision, target, uses)
    assert np.all(result >= precision)
    assert left(energies, result) == pytest.approx(target, rel=1e-9) or np.array_equal(result, precision)
    assert left(energies, result) <= target * (1 + 1e-9)
    assert np.array_equal(result[energies == 0], precision[energies == 0]), "what is not asked is not bought"


@law(200)
def test_without_reuse_no_price_is_lower(seed):
    """Karush, Kuhn, Tucker: a/(c p²) is one number on the pieces that were raised, and no larger on the others.

    The problem is convex, so this is the optimum.
    """
    rng = np.random.default_rng(seed)
    energies, price, precision, target = random_case(rng)
    result = fill_to_target(energies, price, precision, target, np.zeros(len(price)))
    raised = result > precision
    slopes = energies / (price * np.where(energies > 0, result, 1.0) ** 2)
    if raised.any():
        assert slopes[raised] == pytest.approx(np.full(raised.sum(), slopes[raised][0]), rel=1e-9)
        assert np.all(slopes[~raised] <= slopes[raised][0] * (1 + 1e-9))


def optimum(table, price, precision, targets, start):
    """The least price by sequential quadratic programming, in the logarithms of the precisions."""
    free = np.flatnonzero((table.max(axis=0) > 0) & np.isfinite(precision))

    def full(x):
        result = precision.copy()
        result[free] = np.exp(x)
        return result

    constraints = [
        {"type": "ineq", "fun": lambda x, row=row, target=target: 1 - left(row, full(x)) / target}
        for row, target in zip(table, targets, strict=True)
    ]
    bounds = [(np.log(max(precision[place], 1e-9)), None) for place in free]
    scale = cost(price, precision, start)
    found = minimize(
        lambda x: float(price[free] @ (np.exp(x) - precision[free])) / scale,
        np.log(np.maximum(start[free] * 1.05, 1e-9)),
        constraints=constraints,
        bounds=bounds,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    feasible = all(left(row, full(found.x)) <= target * (1 + 1e-6) for row, target in zip(table, targets, strict=True))
    return float(found.fun) * scale if feasible else np.inf


@law(25)
def test_an_optimiser_finds_nothing_cheaper(seed):
    rng = np.random.default_rng(seed)
    energies, price, precision, target = random_case(rng)
    result = fill_to_target(energies, price, precision, target, np.zeros(len(price)))
    paid = cost(price, precision, result)
    if paid > 0:
        assert paid <= optimum(energies[None, :], price, precision, [target], result) * (1 + 1e-6)


@law(100)
def test_reuse_is_dearer_now_and_never_much(seed):
    """By Cauchy and Schwarz, shares multiplied by √m with m in [1, M] cost at most (1 + √M)²/(4 √M) as much."""
    rng = np.random.default_rng(seed)
    energies, price, _, target = random_case(rng)
    nothing, uses = np.zeros(len(price)), rng.integers(0, 9, size=len(price)).astype(float)
    plain, reused = (fill_to_target(energies, price, nothing, target, each) for each in (nothing, uses))
    most = np.sqrt(1 + uses.max())
    assert cost(price, nothing, plain) <= cost(price, nothing, reused) * (1 + 1e-9)
    assert cost(price, nothing, reused) <= cost(price, nothing, plain) * (1 + most) ** 2 / (4 * most) * (1 + 1e-9)


def random_batch(rng):
    count, several = int(rng.integers(2, 8)), int(rng.integers(2, 6))
    table = rng.gamma(0.5, size=(several, count)) * (rng.random((several, count)) < 0.7)
    table[np.arange(several), rng.integers(count, size=several)] += 0.1
    price = rng.uniform(0.05, 2, size=count)
    precision = rng.gamma(1.0, size=count) * (rng.random(count) < 0.5)
    targets = [float(rng.uniform(0.05, 0.9)) * min(left(row, precision), 10.0) for row in table]
    return table, price, precision, targets


@law(100)
def test_jointly_all_targets_are_met_and_nothing_is_lowered(seed):
    table, price, precision, targets = random_batch(np.random.default_rng(seed))
    result = fill_to_targets(table, price, precision, targets)
    assert np.all(result >= precision)
    for row, target in zip(table, targets, strict=True):
        assert left(row, result) <= target * (1 + 1e-9)


@law(60)
def test_jointly_is_within_one_percent_of_the_optimum(seed):
    table, price, precision, targets = random_batch(np.random.default_rng(seed))
    result = fill_to_targets(table, price, precision, targets)
    assert cost(price, precision, result) <= 1.01 * optimum(table, price, precision, targets, result)


def test_jointly_what_is_known_well_is_not_bought_again_beside_what_is_not():
    """A batch that needs a little of one piece pays for that, and not a thousandth more of another, costly one."""
    table = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [2.0, 1.0, 1.0]])
    price, precision = np.ones(3), np.array([1e4, 0.0, 0.0])
    targets = [0.9, 1.1, 2.5]
    result = fill_to_targets(table, price, precision, targets)
    for row, target in zip(table, targets, strict=True):
        assert left(row, result) <= target * (1 + 1e-9)
    assert cost(price, precision, result) <= 1.01 * optimum(table, price, precision, targets, result)


@pytest.mark.xfail(
    strict=True, reason="the multipliers of a small top-up are far from converged after all rounds: up to 60 % too dear"
)
@law(40)
def test_jointly_a_small_top_up_is_within_one_percent_too(seed):
    rng = np.random.default_rng(seed)
    table, price, _, _ = random_batch(rng)
    precision = rng.gamma(1.0, size=len(price)) + 0.1
    targets = [float(rng.uniform(0.97, 0.999)) * left(row, precision) for row in table]
    result = fill_to_targets(table, price, precision, targets)
    for row, target in zip(table, targets, strict=True):
        assert left(row, result) <= target * (1 + 1e-9)
    assert cost(price, precision, result) <= 1.01 * optimum(table, price, precision, targets, result)


@law(60)
def test_jointly_is_no_dearer_than_one_after_the_other(seed):
    table, price, precision, targets = random_batch(np.random.default_rng(seed))
    together = fill_to_targets(table, price, precision, targets)
    one_by_one = precision
    for row, target in zip(table, targets, strict=True):
        if left(row, one_by_one) > target:
            one_by_one = fill_to_target(row, price, one_by_one, target, np.zeros(len(price)))
    assert cost(price, precision, together) <= cost(price, precision, one_by_one) * 1.01


@law(60)
def test_a_batch_of_one_is_a_question(seed):
    energies, price, precision, target = random_case(np.random.default_rng(seed))
    precision[np.isinf(precision)] = 1.0
    target = min(target, 0.9 * left(energies, precision))
    alone = fill_to_target(energies, price, precision, target, np.zeros(len(price)))
    joint = fill_to_targets(energies[None, :], price, precision, [target])
    assert cost(price, precision, joint) == pytest.approx(cost(price, precision, alone), rel=1e-2, abs=1e-9)


def test_power_equal_shares_are_not_optimal():
    """The optimiser tells a plausible wrong rule from the right one: precision in proportion to energy."""
    energies, price, nothing = np.array([1.0, 16.0]), np.ones(2), np.zeros(2)
    right = fill_to_target(energies, price, nothing, 1.0, nothing)
    wrong = energies * left(energies, energies)
    assert left(energies, wrong) == pytest.approx(1.0)
    best = optimum(energies[None, :], price, nothing, [1.0], wrong)
    assert cost(price, nothing, right) == pytest.approx(best, rel=1e-5)
    assert cost(price, nothing, wrong) > 1.3 * best


@law(100)
def test_a_budget_is_spent_and_nothing_is_lowered(seed):
    rng = np.random.default_rng(seed)
    shares, price, precision, _ = random_case(rng)
    most = precision + rng.uniform(0.1, 5, len(price)) if rng.random() < 0.5 else np.inf
    budget = float(rng.uniform(0.01, 20))
    result = fill_to_budget(shares, price, precision, budget, most=most)
    with np.errstate(invalid="ignore"):
        level = water_level(shares, price, precision, budget, most=np.maximum(most - precision, 0.0))
    assert np.all(result >= precision)
    assert np.all(result <= np.maximum(precision, most) * (1 + 1e-12))
    raised = (shares > 0) & (precision < np.inf)
    if level < np.inf:
        assert cost(price, precision, result) == pytest.approx(budget, rel=1e-9)
        assert result[raised] == pytest.approx(np.clip(level * shares, precision, np.maximum(precision, most))[raised])
    else:
        assert cost(price, precision, result) <= budget * (1 + 1e-9)
        assert np.array_equal(result[raised], np.broadcast_to(most, raised.shape)[raised])


@law(100)
def test_a_budget_for_a_question_buys_what_its_variance_costs(seed):
    """The two problems are dual: what the cheapest way to a target costs, spent by the same shares, reaches it."""
    energies, price, precision, target = random_case(np.random.default_rng(seed))
    cheapest = fill_to_target(energies, price, precision, target, np.zeros(len(price)))
    budget = cost(price, precision, cheapest)
    if budget > 1e-9:
        found = fill_to_budget(np.sqrt(energies / price), price, precision, budget)
        assert found == pytest.approx(cheapest, rel=1e-7)


def test_an_amount_for_each_buys_nothing_that_hardly_gains():
    price, precision = np.array([1.0, 2.0, 1.0, 0.0]), np.array([0.0, 0.0, 9.5, 1.0])
    assert fill_each(price, precision, 10.0, least_gain=1.1).tolist() == [10.0, 5.0, 9.5, 1.0]
    assert fill_each(price, precision, 10.0).tolist() == [10.0, 5.0, 10.0, 1.0]
