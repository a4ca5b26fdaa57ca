"""Numbers at the door: exactly, or not at all."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter, Mistake
from discreet.numeric import positive, probability, rational, whole

NOT_NUMBERS = ["1", True, False, None, 1j, [1], np.bool_(True), np.array([1.0])]
NOT_FINITE = [
    float("nan"),
    float("inf"),
    -float("inf"),
    np.float64("nan"),
    Decimal("nan"),
    Decimal("snan"),
    Decimal("inf"),
]


@pytest.mark.parametrize("value", NOT_NUMBERS + NOT_FINITE)
@pytest.mark.parametrize("read", [rational, positive, probability])
def test_what_is_no_finite_number_is_refused_by_name(read, value):
    with pytest.raises(BadParameter, match=r"epsilon is .*it must be"):
        read("epsilon", value)


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.0, 1e-320, 1e-16, 1e16, Fraction(-1, 3)])
def test_a_positive_number_is_above_zero_and_of_a_sane_size(value):
    with pytest.raises(BadParameter, match="epsilon is"):
        positive("epsilon", value)


@pytest.mark.parametrize("value", [1, 1.0, 2, -1e-9, Fraction(-1, 10**30), np.float64(1)])
@pytest.mark.parametrize("zero", [True, False])
def test_a_delta_is_below_one_and_not_negative(value, zero):
    with pytest.raises(BadParameter, match="delta is"):
        probability("delta", value, zero=zero)


def test_zero_is_a_probability_only_where_it_is_allowed():
    assert probability("delta", 0, zero=True) == 0
    with pytest.raises(BadParameter, match="above 0"):
        probability("delta", 0)


@settings(deadline=None)
@given(st.decimals(min_value=Decimal("1e-15"), max_value=Decimal("1e15"), places=10).filter(bool))
def test_a_float_means_the_decimal_that_it_prints_as(value):
    assert rational("epsilon", float(value)) == Fraction(repr(float(value)))
    assert rational("epsilon", value) == Fraction(value)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_every_kind_of_number_is_read_exactly(value, exact):
    assert rational("epsilon", value) == exact
    assert type(rational("epsilon", value)) is Fraction


def test_a_tiny_delta_is_a_delta():
    assert probability("delta", 1e-300) == Fraction(1, 10**300)


@pytest.mark.parametrize("value", [1.0, "1", True, None, -1, 11, float("nan"), Fraction(1)])
def test_a_whole_number_is_an_int_in_its_range(value):
    with pytest.raises(BadParameter, match=r"people is .*whole number"):
        whole("people", value, most=10)


def test_a_message_gives_the_value_the_rule_and_the_next_step():
    with pytest.raises(Mistake) as caught:
        positive("epsilon", -1)
    assert str(caught.value) == "epsilon is -1; it must be a number above 0. Give a positive number, say 0.1."
