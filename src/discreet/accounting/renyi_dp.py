"""Rényi differential privacy: losses are divergences at some sixty fixed orders, added order by order.

A mechanism has loss r at order a if its outputs on neighbours have Rényi divergence of order a at most r [Mir17]. The
orders are 1 + s for s = 2^(k/3), rounded to rationals: a Gaussian is within 0.7 per cent of the best order of all.
"""

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

from discreet.accounting.concentrated_dp import divergence_delta, divergence_epsilon
from discreet.accounting.event import (
    Accounting,
    Amount,
    Coin,
    DiscreteGaussian,
    Gaussian,
    Selection,
    Single,
    add_amounts,
    multiply_amount,
    pure_epsilon,
)
from discreet.cache import memoize
from discreet.numeric import surely_at_most, upper_bound

if TYPE_CHECKING:
    from flint import arb

ORDERS: tuple[Fraction, ...] = tuple(1 + Fraction(round(2 ** (k / 3 + 6)), 64) for k in range(-3, 57))

Divergences = tuple[Amount, ...]

# A coin closes the orders at which its formula has less room than this; beyond it the price would be absurd anyway.
SMALLEST_ROOM = Fraction(1, 2**20)


def pure_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """The largest Rényi divergence that an epsilon-DP mechanism can have, rounded up.

    r = ln(cosh((a − ½)ε)/cosh(ε/2))/(a − 1), the divergence of randomized response.

    where a is `order` and ε is `epsilon`.

    >>> pure_divergence(Fraction(1), Fraction(2)) < min(1, Fraction(2, 2))
    True

    proof: gates.md §5
    """
    if epsilon == 0:
        return Fraction(0)

    def formula() -> "arb":
        from discreet.numeric import ball

        e, a = ball(epsilon), ball(order)
        return (((a - ball(Fraction(1, 2))) * e).cosh() / (e / 2).cosh()).log() / (a - 1)

    # Mironov's simple bound: it cannot be beaten here by more than the rounding, and cosh would need a huge exponent.
    return epsilon if epsilon * order > 10**6 else min(epsilon, upper_bound(formula))


def bounded_range_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """The largest Rényi divergence that a mechanism of bounded range epsilon can have, rounded up.

    r = t + ln(c/a)/(a − 1), with e^t = (a − 1)c/(a(c − 1)) and c = (e^{aε} − 1)/(e^ε − 1); never above aε²/8.

    where a is `order`, ε is `epsilon` and t is the worst offset of the range.

    >>> bounded_range_divergence(Fraction(1), Fraction(2)) < Fraction(2, 8)
    True

    proof: gates.md §5
    """
    if epsilon == 0:
        return Fraction(0)

    def formula() -> "arb":
        from discreet.numeric import ball

        e, a = ball(epsilon), ball(order)
        c = (a * e).expm1() / e.expm1()
        return ((a - 1) * c / (a * (c - 1))).log() + (c / a).log() / (a - 1)

    simple = min(epsilon, order * epsilon**2 / 8)
    return simple if epsilon * order > 10**6 else min(simple, upper_bound(formula))


def hit_divergence(log_odds: Fraction, order: Fraction) -> Amount:
    """What each hit of a coin costs, however many tails lie between, rounded up; infinite at orders that it closes.

    r = (−aκ − ln(1 − a(1 − e^−κ)))/(a − 1), about aκ²/2, where a(1 − e^−κ) < 1.

    where a is `order` and κ is `log_odds`, the most that one person moves the log-odds of a hit.

    >>> hit_divergence(Fraction(1, 100), Fraction(10)) / (10 * Fraction(1, 100) ** 2 / 2) < Fraction(108, 100)
    True
    >>> hit_divergence(Fraction(1, 10), Fraction(11))
    inf

    proof: mechanism/model_coin.md
    """

    def room() -> "arb":
        from discreet.numeric import ball

        return 1 + ball(order) * (-ball(log_odds)).expm1()

    def formula() -> "arb":
        from discreet.numeric import ball

        return -(ball(order) * ball(log_odds) + room().log()) / (ball(order) - 1)

    # An order is closed where the room cannot be distinguished from 0.
    return inf if surely_at_most(room, SMALLEST_ROOM) else upper_bound(formula)


@memoize(1024)
def divergences(event: Single) -> Divergences:
    """The Rényi loss of a single event, at every order."""
    match event:
        case Gaussian(sigma, squared_sensitivity) | DiscreteGaussian(sigma, squared_sensitivity):
            return tuple(order * squared_sensitivity / (2 * sigma**2) for order in ORDERS)
        case Coin(log_odds, hits):
            return tuple(_hits_divergence(log_odds, order, hits) for order in ORDERS)
        case Selection(epsilon):
            return tuple(bounded_range_divergence(epsilon, order) for order in ORDERS)
        case _:
            epsilon_pure = pure_epsilon(event)
            if epsilon_pure == inf:
                return (inf,) * len(ORDERS)
            return tuple(pure_divergence(Fraction(epsilon_pure), order) for order in ORDERS)


def _hits_divergence(log_odds: Fraction, order: Fraction, hits: int) -> Amount:
    each = hit_divergence(log_odds, order)
    return inf if each == inf else hits * Fraction(each)


def renyi_epsilon(losses: Divergences, delta: Fraction) -> Amount:
    """The epsilon of the best order at this delta, rounded up. For totals fixed in advance: see `renyi_gate`."""
    if not any(losses):
        return Fraction(0)
    priced = [(order - 1, Fraction(r)) for order, r in zip(ORDERS, losses, strict=True) if r != inf]
    if delta == 0 or not priced:
        return inf
    return min(divergence_epsilon(excess, r, delta) for excess, r in priced)


def renyi_delta(losses: Divergences, epsilon: Fraction) -> Amount:
    """The delta of the best order at this epsilon, rounded up."""
    if not any(losses):
        return Fraction(0)
    priced = [(order - 1, Fraction(r)) for order, r in zip(ORDERS, losses, strict=True) if r != inf]
    return min((divergence_delta(excess, r, epsilon) for excess, r in priced), default=Fraction(1))


RENYI = Accounting[Divergences](
    name="renyi",
    single=divergences,
    zero=(Fraction(0),) * len(ORDERS),
    add=lambda one, other: tuple(map(add_amounts, one, other)),
    times=lambda losses, times: tuple(multiply_amount(r, times) for r in losses),
    epsilon=renyi_epsilon,
    delta=renyi_delta,
)
