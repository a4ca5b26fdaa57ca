"""Zero-concentrated differential privacy: losses are rho, they add up, and the best order turns them into epsilon.

A mechanism is rho-zCDP if its Rényi divergence of every order a > 1 is at most a·rho [BS16]. Every order gives a true
bound, so the order is looked for in floating point and only the bound at the order found is computed rigorously.
"""

from collections.abc import Callable
from fractions import Fraction
from math import exp, inf, log, log1p, sqrt
from typing import TYPE_CHECKING

from discreet.accounting.event import (
    Accounting,
    Amount,
    DiscreteGaussian,
    Gaussian,
    Selection,
    Single,
    add_amounts,
    multiply_amount,
    pure_epsilon,
)
from discreet.numeric import lower_bound, upper_bound

if TYPE_CHECKING:
    from flint import arb


def divergence_epsilon(excess: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """The epsilon that a Rényi divergence of order 1 + s gives at this delta, rounded up.

    epsilon = r + ln(s/(1+s)) + (ln(1/delta) − ln(1+s))/s

    where s is `excess` and r is `divergence`.

    [CKS20, Prop. 12]
    """
    return max(Fraction(0), upper_bound(lambda: _ball(divergence) + _overhead(excess, delta)))


def divergence_delta(excess: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    """The delta that a Rényi divergence of order 1 + s gives at this epsilon, rounded up.

    ln delta = s(r − epsilon) + s ln s − (1+s) ln(1+s)

    where s is `excess` and r is `divergence`.

    [CKS20, Prop. 12]
    """

    def formula() -> "arb":
        s = _ball(excess)
        return (s * (_ball(divergence) - _ball(epsilon) + s.log()) - (1 + s) * (1 + s).log()).exp()

    # A huge exponent says nothing beyond delta ≤ 1, and would be an enormous rational.
    if excess * (divergence - epsilon) > 2 * (1 + excess) * (1 + abs(Fraction(log(excess)))):
        return Fraction(1)
    return min(upper_bound(formula), Fraction(1))


def divergence_limit(excess: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest Rényi divergence of order 1 + s that (epsilon, delta) allows, rounded down; negative if none is."""
    return lower_bound(lambda: _ball(epsilon) - _overhead(excess, delta))


def concentrated_epsilon(rho: Amount, delta: Fraction) -> Amount:
    """The epsilon of rho-zCDP at this delta, by the best order, rounded up; infinite for delta = 0.

    >>> round(float(concentrated_epsilon(Fraction(1, 2), Fraction(1, 10**6))), 4)
    5.2215

    [BS16, Prop. 1.3; CKS20, Prop. 12]
    """
    if rho == 0:
        return Fraction(0)
    if rho == inf or delta == 0:
        return inf
    exact, surprise = Fraction(rho), _log_inverse(delta)
    s = _best(lambda x: (1 + x) * float(exact) + log(x) - log1p(x) + (surprise - log1p(x)) / x)
    return divergence_epsilon(s, (1 + s) * exact, delta)


def concentrated_delta(rho: Amount, epsilon: Fraction) -> Amount:
    """The delta of rho-zCDP at this epsilon, by the best order, rounded up."""
    if rho == 0:
        return Fraction(0)
    if rho == inf:
        return Fraction(1)
    exact = Fraction(rho)
    # The exponent is convex in the order; its slope is (1+2s)·rho − epsilon + ln(s/(1+s)).
    s = _root(lambda x: (1 + 2 * x) * float(exact) - float(epsilon) + log(x) - log1p(x))
    return divergence_delta(s, (1 + s) * exact, epsilon)


def concentrated_limit(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho that a budget of (epsilon, delta) allows, by the best order, rounded down; 0 if none.

    >>> round(float(concentrated_limit(Fraction(1), Fraction(1, 10**6))), 5)
    0.02436
    """
    if delta == 0:
        return Fraction(0)
    budget, surprise = float(epsilon), _log_inverse(delta)
    s = _best(lambda x: -(budget - log(x) + log1p(x) - (surprise - log1p(x)) / x) / (1 + x))
    return max(Fraction(0), lower_bound(lambda: (_ball(epsilon) - _overhead(s, delta)) / (1 + _ball(s))))


def rho(event: Single) -> Amount:
    """The zCDP loss of a single event.

    Gaussians, rounded or discrete: Δ²/2sigma². Bounded range: epsilon²/8. Anything epsilon-DP: epsilon²/2.

    [BS16, Prop. 1.4, 1.6; CKS20, Thm. 4; CR21]; proof: gates.md §5
    """
    match event:
        case Gaussian(sigma, squared_sensitivity) | DiscreteGaussian(sigma, squared_sensitivity):
            return squared_sensitivity / (2 * sigma**2)
        case Selection(epsilon):
            return epsilon**2 / 8
        case _:
            epsilon_pure = pure_epsilon(event)
            return inf if epsilon_pure == inf else epsilon_pure**2 / 2


CONCENTRATED = Accounting[Amount](
    name="concentrated",
    single=rho,
    zero=Fraction(0),
    add=add_amounts,
    times=multiply_amount,
    epsilon=concentrated_epsilon,
    delta=concentrated_delta,
)


def _ball(value: Fraction) -> "arb":
    from discreet.numeric import ball

    return ball(value)


def _overhead(excess: Fraction, delta: Fraction) -> "arb":
    """What is added to a divergence of order 1 + s: ln(s/(1+s)) + (ln(1/delta) − ln(1+s))/s."""
    s = _ball(excess)
    return (s / (1 + s)).log() - (_ball(delta).log() + (1 + s).log()) / s


def _log_inverse(delta: Fraction) -> float:
    # From numerator and denominator, because delta may be below the smallest double.
    return log(delta.denominator) - log(delta.numerator)


def _best(value: Callable[[float], float]) -> Fraction:
    """Where a function of one hump is least, over s from e^-45 to e^50: golden section on ln s."""
    shrink = (sqrt(5) - 1) / 2
    low, high = -45.0, 50.0
    for _ in range(90):
        one, other = high - shrink * (high - low), low + shrink * (high - low)
        low, high = (low, other) if value(exp(one)) <= value(exp(other)) else (one, high)
    return Fraction(exp((low + high) / 2))


def _root(slope: Callable[[float], float]) -> Fraction:
    """Where an increasing function changes its sign, by bisection on ln s."""
    low, high = -45.0, 50.0
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(exp(middle)) > 0 else (middle, high)
    return Fraction(exp(low))
