"""Groups of people."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import Gaussian, group_budget, group_rho, group_squared_mu, loss
from discreet.errors import BadParameter
from discreet.numeric import ball, precision


@settings(deadline=None)
@given(
    size=st.fractions(Fraction(1, 1000), 20, max_denominator=1000),
    people=st.integers(1, 40),
    digits=st.integers(1, 300),
)
def test_the_delta_of_a_group_is_the_sum_over_its_members_rounded_up(size, people, digits):
    together, spill = group_budget(epsilon=size, delta=Fraction(1, 10**digits), people=people)
    assert together == people * size
    with precision(1200):
        member_by_member = sum(((j * ball(size)).exp() for j in range(people)), ball(0)) * ball(Fraction(1, 10**digits))
        if people == 1:
            assert spill == Fraction(1, 10**digits)
        else:
            assert spill == 1 or ball(spill) >= member_by_member
            assert ball(spill * (1 - Fraction(1, 10**12))) < member_by_member


def test_forgetting_the_growth_of_delta_is_caught():
    _, spill = group_budget(epsilon=1, delta=1e-9, people=5)
    assert spill > 5 * Fraction(1, 10**9)


def test_a_hopeless_group_has_delta_one():
    assert group_budget(epsilon=10**6, delta=1e-300, people=1000) == (10**9, 1)


def test_a_group_moves_a_gaussian_count_k_times_as_far():
    alone, together = Gaussian(10, 1), Gaussian(10, 7**2)
    assert group_squared_mu(loss(alone), people=7) == loss(together)
    assert group_rho(loss(alone, by="concentrated"), people=7) == loss(together, by="concentrated")


@pytest.mark.parametrize("people", [0, -1, 1.5, True, "2"])
def test_a_group_is_a_whole_number_of_people(people):
    with pytest.raises(BadParameter, match="people is"):
        group_budget(epsilon=1, people=people)
