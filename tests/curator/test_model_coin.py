"""A session's coin: what its tosses tell of one row, exactly, and that the gate keeps its cap."""

from fractions import Fraction
from itertools import product
from math import comb, inf

import numpy as np
import pytest
from flint import arb

import discreet.curator.records
from discreet.accounting.event import Coin
from discreet.accounting.filter import renyi_gate
from discreet.accounting.renyi_dp import ORDERS, hit_divergence
from discreet.curator.records import Session, session_from_plain, session_to_plain
from discreet.numeric import ball, precision
from discreet.plan.build_model import Built
from discreet.verify import tables

BUILT = Built("tree", ("a", "b"), (("a", "b"),))
# Two columns of two values: every set of cells but none and all is a question.
CELLS = 4
QUESTIONS = [cells for cells in product((0, 1), repeat=CELLS) if 0 < sum(cells) < CELLS]


def session(*, error=4, confidence=Fraction(3, 4), hits=2, rows=1):
    return Session(Fraction(error), confidence, rows, hits, BUILT)


@pytest.fixture
def flat(monkeypatch):
    """A coin whose log-odds one row of a tiny table moves by a quarter."""
    monkeypatch.setattr(discreet.curator.records, "STEEPNESS", 1)


def neighbours(rows):
    """All tables with at most so many rows, each beside those with one row more, and the other way round."""
    for table in tables(CELLS, rows):
        for cell in range(CELLS):
            more = tuple(count + (place == cell) for place, count in enumerate(table))
            yield table, more
            yield more, table


def strategies(seed):
    """The next question and what the model says, by all tosses so far: any function of them."""
    rng, chosen = np.random.default_rng(seed), {}

    def ask(bits):
        if bits not in chosen:
            chosen[bits] = QUESTIONS[rng.integers(len(QUESTIONS))], int(rng.integers(0, 7))
        return chosen[bits]

    return ask


def worst(bits):
    """Always the same question, with a model that is off by about what makes hits likely."""
    return (1, 0, 0, 0), 3


class Heads:
    """The chance of a hit, by how far off the model is."""

    def __init__(self, coin):
        self.coin, self.seen = coin, {}

    def __call__(self, table, question, expected):
        off = abs(sum(count * inside for count, inside in zip(table, question, strict=True)) - expected)
        if off not in self.seen:
            self.seen[off] = self.coin.law([off], [0]).probabilities[True,]
        return self.seen[off]


def transcripts(coin, one, other, ask, *, goes_on, most=6):
    """All courses of a session: the tosses, and how likely they are on one table and on the other."""
    heads = Heads(coin)

    def descend(bits, here, there):
        if len(bits) == most or not goes_on(sum(bits)):
            yield bits, here, there
            return
        question, expected = ask(bits)
        mine, theirs = heads(one, question, expected), heads(other, question, expected)
        yield from descend((*bits, False), here * (1 - mine), there * (1 - theirs))
        yield from descend((*bits, True), here * mine, there * theirs)

    with precision(256):
        yield from descend((), arb(1), arb(1))


def moment(courses, order, charge):
    """E_Q[(P/Q)^a e^{−(a−1)·charge·hits}], rigorously."""
    with precision(256):
        a, each = ball(order), (-(ball(order) - 1) * ball(charge)).exp()
        total = arb(0)
        for bits, here, there in courses:
            total += here**a * there ** (1 - a) * each ** sum(bits)
        return total


def open_orders(coin):
    return [order for order in ORDERS if hit_divergence(coin.hit.log_odds, order) != inf]


# --- The theorem, for whole sessions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [strategies(1), strategies(2), worst], ids=["one", "another", "worst"])
def test_no_session_on_a_tiny_table_loses_more_than_its_hits_were_charged(ask, flat):
    one = session(hits=2)
    orders = open_orders(one.coin)
    assert len(orders) > 5
    charges = {order: hit_divergence(one.coin.hit.log_odds, order) for order in orders}
    for here, there in neighbours(2):
        courses = list(transcripts(one.coin, here, there, ask, goes_on=lambda hits: hits < one.hits_left))
        for order, charge in charges.items():
            assert moment(courses, order, charge) <= 1 + arb(2) ** -200


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_no_session_on_any_small_table_loses_more_at_any_order(seed, flat):
    one = session(hits=1 + seed % 4)
    for here, there in neighbours(3):
        courses = list(transcripts(one.coin, here, there, strategies(seed), goes_on=lambda hits: hits < one.hits_left))
        for order in open_orders(one.coin):
            charge = hit_divergence(one.coin.hit.log_odds, order)
            assert moment(courses, order, charge) <= 1 + arb(2) ** -200


def test_the_probabilities_of_all_courses_add_up(flat):
    one = session(hits=2)
    courses = list(transcripts(one.coin, (1, 0, 0, 0), (2, 0, 0, 0), strategies(3), goes_on=lambda hits: hits < 2))
    with precision(256):
        for side in (1, 2):
            total = arb(0)
            for course in courses:
                total += course[side]
            assert abs(total - 1) < arb(2) ** -150
    assert max(sum(bits) for bits, _, _ in courses) == 2


def test_less_than_the_charge_is_refuted(flat):
    """Power: rare hits lose nearly all that they are charged."""
    one = session(hits=1)
    (order,) = open_orders(one.coin)[6:7]
    charge = hit_divergence(one.coin.hit.log_odds, order)
    courses = list(transcripts(one.coin, (1, 0, 0, 0), (2, 0, 0, 0), worst, goes_on=lambda hits: hits < 1))
    others = list(transcripts(one.coin, (2, 0, 0, 0), (1, 0, 0, 0), worst, goes_on=lambda hits: hits < 1))
    assert max(moment(courses, order, 0), moment(others, order, 0)) > 1
    assert max(moment(courses, order, charge / 20), moment(others, order, charge / 20)) > 1


# --- The gate --------------------------------------------------------------------------------------------------------


def delta_of(courses, epsilon):
    """Σ max(0, P − e^ε Q), rigorously from above."""
    with precision(256):
        total = arb(0)
        for _, here, there in courses:
            gap = here - ball(epsilon).exp() * there
            if not gap <= 0:
                total += gap
        return float(total.upper())


def hits_that_fit(gate, coin):
    """How many hits can be paid: before each toss there must be room for one more."""
    spent = gate.add(gate.nothing, gate.charge(coin.opening))
    hits = 0
    while gate.fits(spent, gate.charge(coin.hit)):
        spent, hits = gate.add(spent, gate.charge(coin.hit)), hits + 1
        assert hits < 1000
    return hits


# At these one, and five hits fit.
CAPS = [(Fraction(1, 4), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 10))]


@pytest.fixture
def flatter(monkeypatch):
    """A coin whose log-odds one row moves by an eighth."""
    monkeypatch.setattr(discreet.curator.records, "STEEPNESS", Fraction(1, 2))


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
@pytest.mark.parametrize("ask", [strategies(4), strategies(5), worst], ids=["one", "another", "worst"])
def test_a_session_behind_a_gate_keeps_the_cap(ask, epsilon, delta, flatter):
    coin = session().coin
    fit = hits_that_fit(renyi_gate(epsilon, delta), coin)
    assert 1 <= fit < 8
    for here, there in neighbours(2):
        courses = transcripts(coin, here, there, ask, goes_on=lambda hits: hits < fit, most=7)
        assert delta_of(courses, epsilon) <= delta


def long_session(coin, here, there, tosses, most_hits):
    """The courses of a session that asks the same again and again, those that are as likely as each other together."""
    one, other = (coin.law([off], [0]).probabilities[True,] for off in (here, there))

    def course(passes, hits, ways):
        return (), ways * one**hits * (1 - one) ** passes, ways * other**hits * (1 - other) ** passes

    with precision(256):
        for hits in range(min(most_hits, tosses + 1)):
            yield course(tosses - hits, hits, comb(tosses, hits))
        for last in range(most_hits, tosses + 1):
            yield course(last - most_hits, most_hits, comb(last - 1, most_hits - 1))


@pytest.mark.parametrize(("epsilon", "delta"), CAPS)
def test_however_many_tosses_keep_the_cap_and_without_the_gate_they_would_not(epsilon, delta, flatter):
    """Passes are free; power: if hits were not counted, so many tosses would tell far more."""
    coin = session().coin
    fit = hits_that_fit(renyi_gate(epsilon, delta), coin)
    for off in (0, 1, 5, 20):
        for here, there in ((off, off + 1), (off + 1, off)):
            assert delta_of(long_session(coin, here, there, 400, fit), epsilon) <= delta
    assert delta_of(long_session(coin, 2, 1, 400, 401), epsilon) > 2 * delta


# --- What it promises ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10), Fraction(99, 100), Fraction(999_999, 10**6)])
def test_passes_and_measurements_fail_together_as_seldom_as_promised(confidence):
    one = session(error=1000, confidence=confidence)
    assert one.coin.passes(1000) + (1 - one.after_hit) <= float(1 - confidence) * (1 + 1e-9)
    assert one.coin.passes(1000) + (1 - one.after_hit) >= float(1 - confidence) * 0.999


def test_the_opening_and_the_hit_are_of_the_same_coin():
    one = session(error=1000, rows=3)
    moves = Fraction(3 * discreet.curator.records.STEEPNESS, 1000)
    assert (one.coin.opening, one.coin.hit) == (Coin(moves, 0), Coin(moves, 1))


@pytest.mark.parametrize("built", [None, BUILT, Built("mixture", ("a", "b", "c"), ())])
@pytest.mark.parametrize("hits", [0, 5])
def test_a_session_is_read_as_it_was_written(built, hits):
    one = Session(Fraction(1, 3), Fraction(999, 1000), 2, hits, built)
    again = session_from_plain(session_to_plain(one))
    assert again == one
    assert again.open == (built is not None and hits > 0)


def test_a_session_that_is_over_or_was_given_up_keeps_nothing():
    assert session().keeps(4, 0.75)
    assert session().keeps(5, 0.7)
    assert not session().keeps(3.9, 0.75)
    assert not session().keeps(4, 0.76)
    assert not session(hits=0).keeps(4, 0.75)
    assert not Session(Fraction(4), Fraction(3, 4), 1, 2, None).keeps(4, 0.75)
