"""The gates: never below the exact sum, never past the cap, whatever is asked in whatever order."""

from dataclasses import replace
from fractions import Fraction
from math import cosh, exp, log
from operator import le

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ORDERS,
    TICK,
    Approximate,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
    gaussian_gate,
    pure_gate,
    renyi_gate,
)
from discreet.accounting.concentrated_dp import divergence_delta, divergence_limit
from discreet.accounting.event import total_loss
from discreet.accounting.filter import CLOSED, FULL_TICKS, accounting_for, best_order, delta_shares, raised_gate
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.errors import BadParameter, BudgetExceeded

GATES = [pure_gate(1), gaussian_gate(1, 1e-6), renyi_gate(1, 1e-6)]
each_gate = pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.kind)

priced_everywhere = st.one_of(
    st.builds(Laplace, st.fractions(1, 10**6, max_denominator=10**6), st.integers(1, 10)),
    st.builds(Pure, st.fractions(Fraction(1, 10**15), 10, max_denominator=10**15)),
    st.builds(Selection, st.fractions(Fraction(1, 10**6), 10, max_denominator=10**9)),
)


def exact_loss(gate, event):
    loss = total_loss(event, accounting_for(gate.kind))
    return loss if isinstance(loss, tuple) else (loss,)


def undercharged(gate, charge, events):
    """The events for which a charging function asks less than the exact loss."""
    return [
        event
        for event in events
        if any(amount * TICK < true for amount, true in zip(charge(event), exact_loss(gate, event), strict=True))
    ]


@each_gate
@settings(max_examples=60, deadline=None)
@given(event=priced_everywhere)
def test_a_charge_is_never_below_the_loss_and_less_than_a_tick_above(gate, event):
    charged = gate.charge(event)
    assert not undercharged(gate, gate.charge, [event])
    for amount, true in zip(charged, exact_loss(gate, event), strict=True):
        assert amount == FULL_TICKS or amount * TICK < true + TICK


WRONG_CHARGES = {
    "rounded to nearest": lambda gate: lambda event: tuple(round(true / TICK) for true in exact_loss(gate, event)),
    "rounded down": lambda gate: lambda event: tuple(int(true // TICK) for true in exact_loss(gate, event)),
    "a trillionth too small": lambda gate: (
        lambda event: tuple(-int(-true * (1 - Fraction(1, 10**12)) // TICK) for true in exact_loss(gate, event))
    ),
    "through doubles": lambda gate: lambda event: tuple(int(float(true) * 1e15) for true in exact_loss(gate, event)),
}


@each_gate
@pytest.mark.parametrize("wrong", WRONG_CHARGES)
def test_a_wrong_charge_is_caught(gate, wrong):
    events = [Pure(Fraction(k, 1009)) for k in range(1, 40)]
    assert undercharged(gate, WRONG_CHARGES[wrong](gate), events)
    assert not undercharged(gate, gate.charge, events)


@pytest.mark.parametrize("wrong_square", [Fraction(1, 2), Fraction(1, 4)])
def test_charging_a_gaussian_by_sigma_instead_of_its_square_is_caught(wrong_square):
    gate, events = GATES[1], [Gaussian(sigma, 1) for sigma in (Fraction(1, 2), Fraction(3, 4))]
    by_ratio = lambda event: (-int(-(wrong_square / event.sigma) // TICK),)
    assert undercharged(gate, by_ratio, events)


TINY = {
    "pure": [Laplace(10**5, 1), Pure(Fraction(1, 10**6 + 3)), Selection(Fraction(1, 40_009))],
    "gaussian": [Gaussian(700, 1), Pure(Fraction(1, 10**4 + 7)), Selection(Fraction(1, 10**3 + 9))],
    "renyi": [Gaussian(700, 1), Pure(Fraction(1, 10**4 + 7)), Selection(Fraction(1, 10**3 + 9))],
}


@each_gate
def test_a_hundred_thousand_tiny_spends_never_pass_the_cap_nor_fall_below_the_exact_sum(gate):
    events, spent, counts, refused = TINY[gate.kind], gate.nothing, [0, 0, 0], 0
    charges = [gate.charge(event) for event in events]
    for step in range(100_000):
        which = step % 3
        if gate.fits(spent, charges[which]):
            spent = gate.add(spent, charges[which])
            counts[which] += 1
        else:
            refused += 1
    exact = exact_loss(gate, Compose(tuple(Repeat(event, n) for event, n in zip(events, counts, strict=True))))
    within = [most for most, amount in zip(gate.limit, spent, strict=True) if amount <= most]
    assert within
    for amount, true in zip(spent, exact, strict=True):
        assert true <= amount * TICK < true + (sum(counts) + 1) * TICK or amount == FULL_TICKS
    assert refused > 0


@each_gate
def test_what_fits_exactly_is_let_through_and_one_tick_more_is_not(gate):
    assert gate.fits(gate.nothing, tuple(max(most, 0) for most in gate.limit))
    assert not gate.fits(gate.nothing, tuple(most + 1 for most in gate.limit))
    assert not gate.fits((1,) * len(gate.limit), gate.limit)


@each_gate
def test_sums_fit_a_signed_64_bit_integer(gate):
    assert max(gate.limit) < FULL_TICKS
    assert 2 * FULL_TICKS < 2**63
    huge = gate.charge(Repeat(Pure(10**15), 10**9))
    assert not gate.fits(gate.nothing, huge)
    assert max(gate.add(huge, huge)) <= FULL_TICKS


@each_gate
def test_nothing_is_free_even_when_the_budget_is_gone(gate):
    gone = tuple(max(most, 0) for most in gate.limit)
    assert gate.fits(gone, gate.charge(Nothing()))


@pytest.mark.parametrize(
    ("gate", "event"),
    [
        (GATES[0], Gaussian(10**6, 1)),
        (GATES[0], Approximate(0, Fraction(1, 10**9))),
        (GATES[1], DiscreteGaussian(10**6, 1)),
        (GATES[1], Compose((Nothing(), Approximate(0, Fraction(1, 10**12))))),
        (GATES[2], Approximate(Fraction(1, 1000), Fraction(1, 10**12))),
    ],
)
def test_what_a_gate_cannot_price_is_refused_with_a_sentence(gate, event):
    with pytest.raises(BudgetExceeded, match=rf"a {gate.kind} gate has no price for .*nothing was spent\. \w+"):
        gate.charge(event)


def test_a_refusal_names_the_one_step_that_has_no_price():
    long = Compose((Repeat(Gaussian(100, 1), 10**6), Repeat(Compose((DiscreteGaussian(7, 1),)), 3)))
    with pytest.raises(BudgetExceeded) as caught:
        GATES[1].charge(long)
    assert "DiscreteGaussian(sigma=Fraction(7, 1)" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_limits_are_rounded_down():
    assert pure_gate(Fraction(1, 3)).limit == (10**15 // 3,)
    exact = gaussian_limit(Fraction(1), Fraction(1, 10**6))
    assert GATES[1].limit[0] * TICK <= exact < (GATES[1].limit[0] + 1) * TICK


@pytest.mark.parametrize("delta", [Fraction(1, 10**300), Fraction(1, 10**6), Fraction(1, 2), 1 - Fraction(1, 10**300)])
def test_a_limit_that_is_too_large_for_an_integer_is_cut_off_and_what_costs_as_much_is_still_refused(delta):
    for gate in (pure_gate(1000), gaussian_gate(1000, delta), renyi_gate(1000, delta)):
        assert max(gate.limit) < FULL_TICKS
        assert not gate.fits(gate.nothing, (FULL_TICKS,) * len(gate.limit))
    # Only one who accepts that the promise fails nearly always has such a limit.
    assert (gaussian_gate(1000, delta).limit == (FULL_TICKS - 1,)) == (delta > Fraction(1, 2))


@pytest.mark.parametrize("digits", range(1, 16))
def test_a_decimal_costs_exactly_what_it_says(digits):
    assert GATES[0].charge(Pure(Fraction(1, 10**digits))) == (10 ** (15 - digits),)
    assert GATES[1].charge(Gaussian(10, 1)) == (10**13,)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 1e-320, "1", True, 1001, None])
@pytest.mark.parametrize("make", [pure_gate, lambda e: gaussian_gate(e, 1e-6), lambda e: renyi_gate(e, 1e-6)])
def test_a_gate_refuses_an_impossible_epsilon(make, epsilon):
    with pytest.raises(BadParameter, match="epsilon is"):
        make(epsilon)


@pytest.mark.parametrize("delta", [0, 1, 2, -1e-9, float("nan"), "1e-6", True])
@pytest.mark.parametrize("make", [gaussian_gate, renyi_gate])
def test_a_gate_refuses_an_impossible_delta(make, delta):
    with pytest.raises(BadParameter, match="delta is"):
        make(1, delta)


def test_a_renyi_gate_that_could_let_nothing_through_is_refused_at_once():
    with pytest.raises(BadParameter, match="would let nothing through"):
        renyi_gate(1e-6, 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-9), (0.1, 1e-9), (10, 1e-9), (100, 1e-6), (1000, 1e-300)])
def test_a_renyi_gate_lets_almost_as_many_gaussians_through_as_a_gaussian_one(epsilon, delta):
    renyi, gaussian = renyi_gate(epsilon, delta), gaussian_gate(epsilon, delta)
    most = max(2 * limit * TICK / order for limit, order in zip(renyi.limit, ORDERS, strict=True))
    assert 1 < (gaussian.limit[0] * TICK / most) ** 0.5 < 1.09


# Why the orders of a Rényi gate must share delta.


def coin_with(order, divergence, target):
    """The two-outcome mechanism of this divergence whose delta at epsilon `target` is largest, or nearly."""
    worst = target + log(order / (order - 1))

    def reaches(p):
        q = p * exp(-worst)
        return log(p * exp((order - 1) * worst) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)

    low, high = -700.0, -1e-9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if reaches(exp(middle)) <= divergence else (low, middle)
    p = exp(low)
    q = p * exp(-worst)
    # Neighbours are symmetric: the divergence the other way round must not be larger.
    backwards = q * exp(-(order - 1) * worst) + (1 - q) ** order * (1 - p) ** (1 - order)
    assert log(backwards) / (order - 1) <= divergence
    return p - exp(target) * q


def delta_of_attack(limit_of, *, epsilon=1.0, first=0.02, small=ORDERS[15], large=ORDERS[26]):
    """An analyst flips one private coin, and from then on uses up the large order on heads, the small one on tails."""
    heads = 1 / (1 + exp(-first))
    paid = lambda a: log(cosh((a - 0.5) * first) / cosh(first / 2)) / (a - 1)
    a, b = float(large), float(small)
    on_heads = coin_with(a, limit_of(large) - paid(a), epsilon - first)
    on_tails = coin_with(b, limit_of(small) - paid(b), epsilon + first)
    return heads * on_heads + (1 - heads) * on_tails


def test_giving_every_order_all_of_delta_would_overspend_it_by_a_third():
    delta = Fraction(1, 10**6)
    naive = lambda order: float(divergence_limit(order - 1, Fraction(1), delta))
    assert delta_of_attack(naive) > 1.3 * float(delta)


def test_the_same_attack_on_our_gate_stays_within_delta():
    gate = dict(zip(ORDERS, renyi_gate(1, 1e-6).limit, strict=True))
    assert 0 < delta_of_attack(lambda order: float(gate[order] * TICK)) < 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(1, Fraction(1, 10**6)), (50, Fraction(1, 10**12))])
def test_the_orders_of_a_renyi_gate_share_delta_and_each_limit_is_what_its_share_allows(epsilon, delta):
    shares = delta_shares(Fraction(epsilon), delta)
    assert sum(shares) == delta
    assert min(shares) > 0
    for order, share, limit in zip(ORDERS, shares, renyi_gate(epsilon, delta).limit, strict=True):
        allowed = divergence_limit(order - 1, Fraction(epsilon), share)
        assert limit == (int(allowed // TICK) if allowed > 0 else CLOSED)


# Raising a cap because of answers.


def boundary(delta):
    """Two epsilons next to each other, the best orders of which differ."""
    low, high = Fraction(1), Fraction(2)
    while high - low > Fraction(1, 10**4):
        middle = (low + high) / 2
        low, high = (middle, high) if best_order(middle, delta) == best_order(Fraction(1), delta) else (low, middle)
    return low, high


def delta_used(gates, epsilon):
    """What an analyst could use of delta, if which of these gates holds at the end depends on the answers.

    Each order gives what the largest of its limits allows at this epsilon: gates.md §4, with A_a over all transcripts.
    """
    most = map(max, zip(*(gate.limit for gate in gates), strict=True))
    return sum(
        divergence_delta(order - 1, limit * TICK, epsilon)
        for order, limit in zip(ORDERS, most, strict=True)
        if limit > 0
    )


def test_a_raise_that_depends_on_answers_uses_no_more_than_delta():
    delta = Fraction(1, 10**6)
    low, high = boundary(delta)
    one, two = renyi_gate(low, delta), renyi_gate(high, delta)
    assert delta_used([one, raised_gate(one, two)], high) <= delta
    # Shares of its own for the larger budget: who is not raised uses the old ones, who is uses the new ones.
    assert delta_used([one, two], high) > Fraction(12, 10) * delta


BUDGETS = st.tuples(st.fractions(Fraction(1, 4), 9), st.integers(3, 12).map(lambda digits: Fraction(1, 10**digits)))


@settings(max_examples=25, deadline=None)
@given(first=BUDGETS, more=st.lists(BUDGETS, min_size=1, max_size=4))
def test_limits_only_grow_whatever_a_cap_is_raised_to_and_all_paths_share_one_delta(first, more):
    gate = now = renyi_gate(*first)
    gates = [gate]
    for epsilon, delta in more:
        before, now = now, raised_gate(now, renyi_gate(max(epsilon, now.epsilon), max(delta, now.delta)))
        assert all(map(le, before.limit, now.limit))
        # As it would be if it had been raised to that in one step.
        at_once = raised_gate(gate, renyi_gate(max(epsilon, first[0]), max(delta, first[1])))
        gates += [now, at_once]
    assert delta_used(gates, now.epsilon) <= now.delta


def test_an_analyst_whose_cap_is_raised_on_tails_stays_within_the_larger_delta():
    """The exact law of the attack above, with the old limits on heads and the raised ones on tails."""
    delta = Fraction(1, 10**6)
    low, high = boundary(delta)
    one, two = renyi_gate(low, delta), renyi_gate(high, delta)
    after = raised_gate(one, two)

    def attack(heads, tails, place, other, first):
        limits = {ORDERS[place]: heads.limit[place], ORDERS[other]: tails.limit[other]}
        return delta_of_attack(
            lambda order: float(limits[order] * TICK),
            epsilon=float(high),
            first=first,
            large=ORDERS[place],
            small=ORDERS[other],
        )

    best = best_order(low, delta)
    places = [(best, best - 1), (best - 1, best), (best + 2, best - 1)]
    found = [attack(one, after, *both, first) for both in places for first in (0.005, 0.02, 0.05)]
    assert 0 < max(found) < float(delta)
    # With all of delta for every order after the raise, it would not.
    naive = replace(after, limit=tuple(_naive_limit(order, high, delta) for order in ORDERS))
    assert attack(naive, naive, best + 10, best - 1, 0.02) > float(delta)


def _naive_limit(order, epsilon, delta):
    return int(divergence_limit(order - 1, epsilon, delta) // TICK)


def test_other_gates_are_raised_to_the_limit_of_the_larger_budget():
    assert raised_gate(pure_gate(1), pure_gate(2)) == pure_gate(2)
    assert raised_gate(gaussian_gate(1, 1e-6), gaussian_gate(2, 1e-6)) == gaussian_gate(2, 1e-6)


def test_limits_that_follow_from_no_budget_are_not_raised():
    gate = renyi_gate(1, 1e-6)
    forged = replace(gate, limit=(*gate.limit[:-1], gate.limit[-1] + 1))
    with pytest.raises(BadParameter, match="follow from no shares of delta"):
        raised_gate(forged, renyi_gate(2, 1e-6))
