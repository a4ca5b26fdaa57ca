"""Laws of every accounting over every kind of event."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import (
    ACCOUNTINGS,
    AboveThreshold,
    Approximate,
    Coin,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
    delta,
    epsilon,
    loss,
)
from discreet.accounting.event import total_loss
from discreet.accounting.filter import gaussian_gate, pure_gate, renyi_gate

SINGLES = [
    Nothing(),
    Laplace(7, 2),
    Gaussian(Fraction(31, 3), 2),
    DiscreteGaussian(5, 1),
    Selection(Fraction(1, 10)),
    AboveThreshold(Fraction(1, 3)),
    Pure(Fraction(1, 7)),
    Coin(Fraction(1, 1000), 2),
    Coin(Fraction(1, 20), 0),
    Approximate(Fraction(1, 9), Fraction(1, 10**8)),
]
EXACT = [name for name in ACCOUNTINGS if name != "pld"]

events = st.recursive(
    st.sampled_from(SINGLES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Compose(tuple(parts))),
        st.builds(Repeat, inner, st.integers(0, 4)),
    ),
    max_leaves=6,
)


def written_out(event):
    """The same event with no `Repeat` in it."""
    match event:
        case Repeat(part, times):
            return Compose((written_out(part),) * times)
        case Compose(parts):
            return Compose(tuple(written_out(part) for part in parts))
    return event


@pytest.mark.parametrize("by", ACCOUNTINGS)
@pytest.mark.parametrize("event", SINGLES, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("times", [0, 1, 2, 7, 100])
def test_repeating_costs_exactly_what_composing_costs(by, event, times):
    assert loss(Repeat(event, times), by=by) == loss(Compose((event,) * times), by=by)


@pytest.mark.parametrize("by", ACCOUNTINGS)
@settings(max_examples=60, deadline=None)
@given(event=events)
def test_repeating_costs_exactly_what_composing_costs_however_nested(by, event):
    assert loss(event, by=by) == loss(written_out(event), by=by)


@pytest.mark.parametrize("by", ACCOUNTINGS)
@settings(max_examples=30, deadline=None)
@given(one=events, other=events)
def test_order_does_not_change_a_loss(by, one, other):
    assert loss(Compose((one, other)), by=by) == loss(Compose((other, one)), by=by)


@pytest.mark.parametrize("by", EXACT)
@settings(max_examples=15, deadline=None)
@given(one=events, other=events)
def test_doing_more_never_costs_less(by, one, other):
    both = epsilon(Compose((one, other)), delta=1e-6, by=by)
    assert both >= epsilon(one, delta=1e-6, by=by) * (1 - 1e-9)


def test_an_accounting_that_forgets_the_count_breaks_the_law():
    forgetful = ACCOUNTINGS["gaussian"]._replace(times=lambda amount, times: amount)
    event = Gaussian(10, 1)
    assert total_loss(Repeat(event, 5), forgetful) != total_loss(Compose((event,) * 5), forgetful)


@pytest.mark.parametrize("by", ACCOUNTINGS)
def test_nothing_costs_nothing(by):
    for event in (Nothing(), Compose(()), Repeat(Pure(1), 0), Repeat(Gaussian(1, 1), 0), Laplace(3, 0), Gaussian(3, 0)):
        if by != "pld":
            assert epsilon(event, delta=0, by=by) == 0
            assert delta(event, epsilon=1e-3, by=by) == 0


UNPRICED = {
    "pure": {Coin, Gaussian, DiscreteGaussian, Approximate},
    "basic": {Coin},
    "advanced": {Coin, Gaussian, DiscreteGaussian, Approximate},
    "concentrated": {Coin, Approximate},
    "gaussian": {Coin, DiscreteGaussian, Approximate},
    "renyi": {Approximate},
}


@pytest.mark.parametrize("by", EXACT)
@pytest.mark.parametrize("event", SINGLES, ids=lambda event: type(event).__name__)
def test_what_cannot_be_priced_is_infinite_and_the_rest_is_finite(by, event):
    unpriced = type(event) in UNPRICED[by]
    assert (epsilon(event, delta=1e-6, by=by) == inf) == unpriced
    assert (delta(event, epsilon=100, by=by) == 1) == unpriced


@pytest.mark.parametrize("by", EXACT)
@pytest.mark.parametrize("event", SINGLES[1:], ids=lambda event: type(event).__name__)
def test_epsilon_and_delta_undo_each_other(by, event):
    at = epsilon(event, delta=1e-6, by=by)
    if 0 < at < inf:
        assert delta(event, epsilon=at, by=by) <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize(
    "gate", [pure_gate(1), gaussian_gate(1, 1e-6), renyi_gate(1, 1e-6)], ids=lambda gate: gate.kind
)
@pytest.mark.parametrize("times", [1, 3, 50])
def test_a_gate_charges_repeats_like_compositions_and_never_more_than_one_by_one(gate, times):
    event = Laplace(7, 2)
    assert gate.charge(Repeat(event, times)) == gate.charge(Compose((event,) * times))
    one_by_one = gate.nothing
    for _ in range(times):
        one_by_one = gate.add(one_by_one, gate.charge(event))
    assert all(at_once <= apart for at_once, apart in zip(gate.charge(Repeat(event, times)), one_by_one, strict=True))
