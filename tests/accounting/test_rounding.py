"""Rounding goes to the safe side, always, and a version that does not is caught."""

from fractions import Fraction
from math import inf, ulp

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import Fault
from discreet.numeric import (
    ball,
    float_above,
    float_below,
    greatest,
    least,
    lower_bound,
    precision,
    round_up,
    surely_at_most,
    upper_bound,
)

fractions = st.fractions(max_denominator=10**30) | st.builds(
    lambda top, power: Fraction(top) * Fraction(10) ** power, st.integers(-(10**40), 10**40), st.integers(-400, 200)
)


@settings(deadline=None)
@given(fractions)
def test_rounding_up_goes_up_and_not_far(value):
    rounded = round_up(value)
    assert value <= rounded <= value + abs(value) / 2**62
    assert round_up(rounded) == rounded


@settings(deadline=None)
@given(fractions)
def test_doubles_enclose_a_rational(value):
    assert float_below(value) <= value <= float_above(value)
    if abs(value) < 10**300:
        assert float_above(value) - float_below(value) <= ulp(float(value)) * 2


def test_doubles_enclose_what_no_double_can_hold():
    assert float_above(Fraction(10) ** 400) == inf
    assert 0 < float_below(Fraction(10) ** 400) < inf
    assert float_above(Fraction(1, 10**400)) > 0 == float_below(Fraction(1, 10**400))


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**20), 10**20, max_denominator=10**20))
def test_bounds_of_a_root_lie_on_both_sides_of_it(value):
    root = lambda: ball(value).sqrt()
    assert lower_bound(root) ** 2 <= value <= upper_bound(root) ** 2
    assert upper_bound(root) <= lower_bound(root) * (1 + Fraction(1, 2**60))


def test_a_ball_that_stays_wide_is_bounded_by_its_ends_not_its_middle():
    wide = lambda: arb(1, 0.5)
    assert lower_bound(wide) <= Fraction(1, 2) < Fraction(3, 2) <= upper_bound(wide)
    assert not surely_at_most(wide, Fraction(1))
    assert surely_at_most(wide, Fraction(8, 5))


def test_rounding_to_nearest_instead_of_up_is_caught():
    def nearest(formula):
        with precision(300):
            return Fraction(float(formula()))

    values = [Fraction(k, 7) for k in range(1, 60) if k % 7]
    wrong = [value for value in values if nearest(lambda value=value: ball(value).sqrt()) ** 2 < value]
    assert len(wrong) > 10
    assert not [value for value in values if upper_bound(lambda value=value: ball(value).sqrt()) ** 2 < value]


def test_numbers_too_small_to_write_out_keep_their_safe_neighbour():
    tiny = lambda: (-(arb(10) ** 9)).exp()
    assert 0 == lower_bound(tiny) < upper_bound(tiny) <= Fraction(1, 2**4096)


def test_a_formula_without_a_finite_value_is_a_fault_not_a_number():
    with pytest.raises(Fault, match="finite"):
        upper_bound(lambda: arb(0).log())


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**40), 10**40, max_denominator=10**40))
def test_a_search_ends_on_the_safe_side_of_the_edge(edge):
    found = least(lambda value: value >= edge)
    assert edge <= found <= edge * (1 + Fraction(1, 2**43))
    found = greatest(lambda value: value <= edge)
    assert edge * (1 - Fraction(1, 2**43)) <= found <= edge


def test_a_search_says_when_nothing_or_everything_is_safe():
    assert least(lambda value: False) == inf
    assert least(lambda value: True) == 0
    assert greatest(lambda value: False) == 0
    assert greatest(lambda value: True) == inf
