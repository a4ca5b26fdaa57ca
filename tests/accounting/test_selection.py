"""What a selection is charged, against real exponential mechanisms on real neighbouring scores, outcome by outcome."""

from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import ORDERS
from discreet.accounting.gaussian_dp import squared_mu_of_bounded_range, squared_mu_of_pure
from discreet.accounting.renyi_dp import bounded_range_divergence
from discreet.numeric import ball, precision

scores = st.lists(st.tuples(st.integers(-20, 20), st.integers(-1, 1)), min_size=2, max_size=6)
sizes = st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(3), Fraction(8)])


def exponential_mechanism(values, epsilon):
    weights = [(ball(epsilon) * value / 2).exp() for value in values]
    return [weight / sum(weights, arb(0)) for weight in weights]


def corners(one, other):
    """The corners (false alarm, miss) of the trade-off curve: accuse on the largest likelihood ratios first."""
    order = sorted(range(len(one)), key=lambda k: -float(one[k] / other[k]))
    return [
        (sum((other[k] for k in order[:n]), arb(0)), sum((one[k] for k in order[n:]), arb(0)))
        for n in range(1, len(one))
    ]


def lies_above(corner, squared_mu):
    alarm, miss = corner
    quantile = lambda p: -arb(2).sqrt() * (2 * p).erfcinv()
    return quantile(1 - alarm) + quantile(1 - miss) <= ball(squared_mu).sqrt()


@settings(max_examples=150, deadline=None)
@given(scores=scores, epsilon=sizes)
def test_no_exponential_mechanism_is_less_private_than_the_gaussian_it_is_charged_for(scores, epsilon):
    with precision(300):
        here = exponential_mechanism([score for score, _ in scores], epsilon)
        there = exponential_mechanism([score + move for score, move in scores], epsilon)
        for corner in corners(here, there):
            assert lies_above(corner, squared_mu_of_bounded_range(epsilon) * (1 + Fraction(1, 2**60)))


@settings(max_examples=60, deadline=None)
@given(scores=scores, epsilon=sizes, order=st.sampled_from(ORDERS[:24]))
def test_no_exponential_mechanism_diverges_more_than_it_is_charged_for(scores, epsilon, order):
    with precision(600):
        here = exponential_mechanism([score for score, _ in scores], epsilon)
        there = exponential_mechanism([score + move for score, move in scores], epsilon)
        a = ball(order)
        moment = sum((p**a * q ** (1 - a) for p, q in zip(here, there, strict=True)), arb(0))
        assert not moment.log() / (a - 1) > ball(bounded_range_divergence(epsilon, order))


def test_two_candidates_that_cross_attain_the_price():
    """Scores (0, 1) against (1, 0): randomized response with epsilon/2, the symmetric offset."""
    epsilon = Fraction(2)
    with precision(300):
        here, there = (exponential_mechanism(values, epsilon) for values in ([0, 1], [1, 0]))
        (corner,) = corners(here, there)
        price = squared_mu_of_bounded_range(epsilon)
        assert not lies_above(corner, price * (1 - Fraction(1, 10**12)))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)])
def test_permute_and_flip_is_not_of_bounded_range_and_must_be_charged_as_pure(epsilon):
    """Noisy max with exponential noise on two candidates with scores (0, 0) and (1, −1): outside the cheaper curve."""
    with precision(300):
        tie = ball(Fraction(1, 2))
        # Both candidates flip a coin of probability e^(−epsilon·gap/2); the better one always wins its turn.
        upset = (-ball(epsilon)).exp() / 2
        corner = (tie, upset)
        assert lies_above(corner, squared_mu_of_pure(epsilon))
        assert not lies_above(corner, squared_mu_of_bounded_range(epsilon))
