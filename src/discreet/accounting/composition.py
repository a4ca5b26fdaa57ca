"""The lectures' composition theorems as accountings: pure sums, basic (epsilon, delta) sums, advanced composition."""

from collections import Counter
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from discreet.accounting.concentrated_dp import concentrated_epsilon
from discreet.accounting.event import (
    Accounting,
    Amount,
    Approximate,
    Coin,
    DiscreteGaussian,
    Gaussian,
    Single,
    add_amounts,
    multiply_amount,
    pure_epsilon,
)
from discreet.accounting.gaussian_dp import gaussian_epsilon
from discreet.numeric import least, upper_bound

if TYPE_CHECKING:
    from flint import arb


class BasicLoss(NamedTuple):
    """Sums of epsilons and deltas, and the measurements that still wait for their share of delta.

    `waiting` counts them by what they are: ("gaussian", μ²) or ("concentrated", rho).
    """

    epsilon: Fraction
    delta: Fraction
    waiting: tuple[tuple[tuple[str, Fraction], int], ...]


def basic_loss(event: Single) -> BasicLoss:
    """An event as (epsilon, delta), or as waiting for its share of delta."""
    match event:
        case Approximate(epsilon, delta):
            return BasicLoss(epsilon, delta, ())
        case Gaussian(sigma, squared_sensitivity) if squared_sensitivity:
            return BasicLoss(Fraction(0), Fraction(0), ((("gaussian", squared_sensitivity / sigma**2), 1),))
        case DiscreteGaussian(sigma, squared_sensitivity) if squared_sensitivity:
            return BasicLoss(Fraction(0), Fraction(0), ((("concentrated", squared_sensitivity / (2 * sigma**2)), 1),))
        case Coin():
            # No price: whatever delta there is, this is more.
            return BasicLoss(Fraction(0), Fraction(2), ())
        case _:
            return BasicLoss(Fraction(pure_epsilon(event)), Fraction(0), ())


def basic_epsilon(loss: BasicLoss, delta: Fraction) -> Amount:
    """The sum of the epsilons, where what is left of delta is shared equally by the Gaussians; rounded up."""
    left, sharers = delta - loss.delta, sum(count for _, count in loss.waiting)
    if left < 0 or (sharers and left == 0):
        return inf
    epsilon: Amount = loss.epsilon
    for (kind, amount), count in loss.waiting:
        convert = gaussian_epsilon if kind == "gaussian" else concentrated_epsilon
        epsilon = add_amounts(epsilon, multiply_amount(convert(amount, left / sharers), count))
    return epsilon


def basic_delta(loss: BasicLoss, epsilon: Fraction) -> Amount:
    """The smallest delta at which the sum of the epsilons is within `epsilon`, rounded up; 1 if there is none."""
    if loss.epsilon > epsilon:
        return Fraction(1)
    if not loss.waiting:
        return min(loss.delta, Fraction(1))
    spare = least(lambda share: share >= 1 or basic_epsilon(loss, loss.delta + share) <= epsilon)
    return min(add_amounts(loss.delta, spare), Fraction(1))


def advanced_epsilon(squares: Amount, delta: Fraction) -> Amount:
    """The lectures' advanced composition, also for unequal parts: S/2 + √(2 S ln(1/delta)), rounded up.

    where S is the sum of the squared epsilons; k equal parts give kε²/2 + ε√(2k ln(1/delta)).

    >>> round(float(advanced_epsilon(1000 * Fraction(1, 100) ** 2, Fraction(1, 10**6))), 4)
    1.7123

    [000 Prop. 13; BS16, Prop. 1.3 and 1.4]
    """
    if squares == 0:
        return Fraction(0)
    if squares == inf or delta == 0:
        return inf
    total = Fraction(squares)

    def formula() -> "arb":
        from discreet.numeric import ball

        return ball(total) / 2 + (-2 * ball(total) * ball(delta).log()).sqrt()

    return upper_bound(formula)


def advanced_delta(squares: Amount, epsilon: Fraction) -> Amount:
    """The delta at which advanced composition gives `epsilon`: exp(−(ε − S/2)²/2S), rounded up."""
    if squares == 0:
        return Fraction(0)
    if squares == inf or squares >= 2 * epsilon:
        return Fraction(1)
    exponent = (epsilon - Fraction(squares) / 2) ** 2 / (2 * Fraction(squares))

    def formula() -> "arb":
        from discreet.numeric import ball

        return (-ball(exponent)).exp()

    return min(upper_bound(formula), Fraction(1))


def _square(event: Single) -> Amount:
    epsilon = pure_epsilon(event)
    return inf if epsilon == inf else epsilon**2


def _merge(one: BasicLoss, other: BasicLoss) -> BasicLoss:
    waiting = Counter(dict(one.waiting)) + Counter(dict(other.waiting))
    return BasicLoss(one.epsilon + other.epsilon, one.delta + other.delta, tuple(sorted(waiting.items())))


PURE = Accounting[Amount](
    name="pure",
    single=pure_epsilon,
    zero=Fraction(0),
    add=add_amounts,
    times=multiply_amount,
    epsilon=lambda loss, delta: loss,
    delta=lambda loss, epsilon: Fraction(0) if loss <= epsilon else Fraction(1),
)

BASIC = Accounting[BasicLoss](
    name="basic",
    single=basic_loss,
    zero=BasicLoss(Fraction(0), Fraction(0), ()),
    add=_merge,
    times=lambda loss, times: BasicLoss(
        loss.epsilon * times, loss.delta * times, tuple((kind, count * times) for kind, count in loss.waiting)
    ),
    epsilon=basic_epsilon,
    delta=basic_delta,
)

ADVANCED = Accounting[Amount](
    name="advanced",
    single=_square,
    zero=Fraction(0),
    add=add_amounts,
    times=multiply_amount,
    epsilon=advanced_epsilon,
    delta=advanced_delta,
)
