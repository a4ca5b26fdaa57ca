"""The coin: what a hit costs, exactly, and that it is no less; that passes are free only at some orders."""

from fractions import Fraction
from itertools import product
from math import exp, inf, log

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Coin, Gaussian, Repeat, loss
from discreet.accounting.filter import FULL_TICKS, TICK, renyi_gate
from discreet.accounting.renyi_dp import ORDERS, hit_divergence
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism import model_coin
from discreet.numeric import ball, precision
from discreet.source.source import Exact
from discreet.verify import tables
from support.statistics import verdict

ONE = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1), direction=1)
STEEP = [Fraction(1, 50), Fraction(1, 10), Fraction(3, 10), Fraction(1)]


def valid_orders(log_odds):
    return [order for order in ORDERS if hit_divergence(log_odds, order) != inf]


def heads(coin, off):
    return coin.law([off], [0]).probabilities[True,]


def moment(here, there, order, charge):
    """E_Q[(P/Q)^a e^{−(a−1)·charge·hits}] of one toss, rigorously: P is `here`."""
    a, w = ball(order), (-(ball(order) - 1) * ball(charge)).exp()
    return (1 - here) ** a * (1 - there) ** (1 - a) + w * here**a * there ** (1 - a)


# The charge of a hit, over adaptive trees of questions.


@pytest.mark.parametrize("steepness", STEEP)
def test_no_tree_of_questions_on_small_tables_loses_more_than_its_hits_were_charged(steepness):
    """The largest moment over all adaptive trees is a product of the largest of single tosses: all must be ≤ 1.

    Every pair of neighbouring tables of three cells, every subset as a question, every integer that a model may say.
    """
    coin = model_coin(steepness=steepness, sensitivity=1, error=6, confidence=Fraction(9, 10))
    questions = [cells for cells in product((0, 1), repeat=3) if any(cells)]
    near = {(value(table, q), value(other, q)) for table, other in neighbours(3, 3) for q in questions}
    orders = valid_orders(steepness)
    assert orders
    with precision(256):
        for one, other in near:
            for expected in range(-3, 12):
                here, there = heads(coin, abs(one - expected)), heads(coin, abs(other - expected))
                for order in orders:
                    charge = hit_divergence(steepness, order)
                    assert moment(here, there, order, charge) <= 1
                    assert moment(there, here, order, charge) <= 1


def neighbours(cells, rows):
    for table in tables(cells, rows):
        for cell in range(cells):
            yield table, tuple(count + (place == cell) for place, count in enumerate(table))


def value(table, question):
    return sum(count * inside for count, inside in zip(table, question, strict=True))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_law_of_an_adaptive_tree_obeys_the_charge(data):
    """The same once more without the product: leaves of a whole tree, with another model after each hit."""
    steepness = data.draw(st.sampled_from(STEEP))
    coin = model_coin(steepness=steepness, sensitivity=1, error=4, confidence=Fraction(3, 4))
    order = data.draw(st.sampled_from(valid_orders(steepness)))
    charge = hit_divergence(steepness, order)
    depth = 7

    with precision(256):

        def descend(level, here, there, hits):
            if level == depth:
                a = ball(order)
                return here**a * there ** (1 - a) * (-(a - 1) * ball(charge) * hits).exp()
            # The next question, what is true of it in the two tables, and what the model says, by the path so far.
            off = data.draw(st.integers(0, 8))
            other = max(0, off + data.draw(st.sampled_from([-1, 0, 1])))
            mine, theirs = heads(coin, off), heads(coin, other)
            passed = descend(level + 1, here * (1 - mine), there * (1 - theirs), hits)
            return passed + descend(level + 1, here * mine, there * theirs, hits + 1)

        assert descend(0, arb(1), arb(1), 0) <= 1 + arb(2) ** -200


def geometric_divergence(odds, ratio, order):
    """The exact divergence of tossing until the first hit, with these odds in one table and ratio times in another."""
    q, p, a = odds / (1 + odds), ratio * odds / (1 + ratio * odds), ball(order)
    moments = p**a * q ** (1 - a) / (1 - (1 - p) ** a * (1 - q) ** (1 - a))
    return moments.log() / (a - 1)


@pytest.mark.parametrize("steepness", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)])
def test_the_charge_is_met_to_three_digits_by_tossing_until_the_first_hit(steepness):
    with precision(256):
        for order in valid_orders(steepness)[::5]:
            exact = geometric_divergence(arb(10) ** -7, (-ball(steepness)).exp(), order)
            charge = ball(hit_divergence(steepness, order))
            assert exact <= charge
            assert exact >= charge * (1 - ball(Fraction(1, 1000)))


@pytest.mark.parametrize("steepness", STEEP)
def test_half_the_charge_is_refuted(steepness):
    """Power: the tests above would see a wrong charge."""
    with precision(256):
        for order in valid_orders(steepness)[::7]:
            half = hit_divergence(steepness, order) / 2
            assert geometric_divergence(arb(10) ** -4, (-ball(steepness)).exp(), order) > ball(half)
            here, there = ((-ball(steepness)).exp() * ball(Fraction(1, 1000)), ball(Fraction(1, 1000)))
            here, there = here / (1 + here), there / (1 + there)
            assert moment(here, there, order, half) > 1


@pytest.mark.parametrize("steepness", STEEP)
def test_at_closed_orders_even_passes_cost(steepness):
    """So an order that is charged only when there is a hit would be within its limit and unbounded."""
    with precision(512):
        closed = [order for order in ORDERS if ball(order) * (1 - (-ball(steepness)).exp()) > 1]
        assert closed
        odds = ball(Fraction(1, 10**6))
        here, there = 1 / (1 + (-ball(steepness)).exp() * odds), 1 / (1 + odds)
        for order in closed:
            assert here ** ball(order) * there ** (1 - ball(order)) > 1


def test_opening_closes_those_orders_for_good_and_costs_nothing_at_the_others():
    gate = renyi_gate(1, Fraction(1, 10**9))
    opening = gate.charge(Coin(Fraction(1, 10), 0))
    closed = [order for order, ticks in zip(ORDERS, opening, strict=True) if ticks == FULL_TICKS]
    assert closed == [order for order in ORDERS if hit_divergence(Fraction(1, 10), order) == inf]
    assert closed
    assert set(opening) == {0, FULL_TICKS}
    spent = gate.add(gate.nothing, opening)
    # What is left are orders that this budget does not reach: nothing fits any more.
    assert not gate.fits(spent, gate.charge(Coin(Fraction(1, 10), 1)))
    assert gate.fits(gate.nothing, gate.charge(Coin(Fraction(1, 10_000), 1)))


def test_a_hit_costs_about_as_much_as_a_gaussian_of_the_same_size():
    coin, gaussian = loss(Coin(Fraction(1, 1000), 1), by="renyi"), loss(Gaussian(1000, 1), by="renyi")
    for order, mine, theirs in zip(ORDERS, coin, gaussian, strict=True):
        if order < 100:
            assert 1 <= mine / theirs < 1 + Fraction(order, 1000)


def test_hits_add_up():
    assert loss(Coin(Fraction(1, 1000), 3), by="renyi") == loss(Repeat(Coin(Fraction(1, 1000), 1), 3), by="renyi")
    gate = renyi_gate(1, Fraction(1, 10**9))
    assert gate.charge(Coin(Fraction(1, 1000), 1))[20] * TICK >= hit_divergence(Fraction(1, 1000), ORDERS[20])


@pytest.mark.parametrize("by", ["pure", "basic", "advanced", "concentrated", "gaussian"])
def test_no_other_currency_has_a_price_for_it(by):
    from discreet.accounting import delta, epsilon

    assert epsilon(Coin(Fraction(1, 1000), 0), delta=Fraction(1, 10**9), by=by) == inf
    assert delta(Coin(Fraction(1, 1000), 0), epsilon=1, by=by) == 1


def test_the_worst_ratio_is_at_its_lower_end():
    """h(−k) ≥ h(x) for all |x| ≤ k, with both sides in floating point: a guard of the proof's last step."""
    for k in (0.01, 0.3, 1.0):
        for order in (1.2, 2.0, 5.0, 40.0):
            if order * (1 - exp(-k)) < 1:
                worst = -order * k - log(1 - order * (1 - exp(-k)))
                for part in range(-50, 51):
                    x = k * part / 50
                    assert order * x - log(1 + order * (exp(x) - 1)) <= worst + 1e-12


# What it promises.


@pytest.mark.parametrize("confidence", [Fraction(9, 10), Fraction(99, 100), Fraction(999, 1000)])
def test_an_answer_off_by_the_error_passes_no_more_often_than_promised(confidence):
    coin = model_coin(steepness=Fraction(22, 1000), sensitivity=1, error=1000, confidence=confidence)
    with precision(256):
        assert 1 - heads(coin, 1000) <= 1 - ball(confidence)
        assert 1 - heads(coin, 5000) <= 1 - ball(confidence)
        # And no less often than it could be allowed to.
        assert 1 - heads(coin, 999) >= (1 - ball(confidence)) * ball(Fraction(99, 100))
    assert coin.passes(0) > 1 - 1e-6


def test_tosses_come_as_often_as_the_law_says():
    coin = model_coin(steepness=Fraction(1, 3), sensitivity=1, error=10, confidence=Fraction(9, 10))
    for off in (0, 3, 5, 30):
        chance = float(heads(coin, off).mid())
        tosses = [coin.toss(Exact(100 + off, ONE), 100) for _ in range(3000)]
        assert verdict(tosses, {True: chance, False: 1 - chance}) == ""
        if 0.2 < chance < 0.8:
            assert verdict(tosses, {True: 0.7 * chance, False: 1 - 0.7 * chance})


def test_the_seal_opens_only_for_values_that_move_no_further():
    coin = model_coin(steepness=1, sensitivity=1, error=10)
    wide = Sensitivity(l1=Fraction(2), l2_squared=Fraction(4), linf=Fraction(2))
    with pytest.raises(SealBroken):
        coin.toss(Exact(5, wide), 5)
    with pytest.raises(BadParameter, match="this mechanism takes 1"):
        coin.toss(Exact([5, 6], ONE), 5)


@pytest.mark.parametrize("bad", [{"steepness": 0}, {"error": 0}, {"confidence": 1}, {"confidence": 0}])
def test_nonsense_is_refused(bad):
    with pytest.raises(BadParameter):
        model_coin(**{"steepness": 1, "sensitivity": 1, "error": 10, "confidence": Fraction(9, 10), **bad})


def test_two_rows_a_person_move_the_odds_twice():
    """At the opening too: the orders that passes cost at are closed for both rows together."""
    coin = model_coin(steepness=Fraction(1, 7), sensitivity=2, error=10)
    assert (coin.opening, coin.hit) == (Coin(Fraction(2, 7), 0), Coin(Fraction(2, 7), 1))
