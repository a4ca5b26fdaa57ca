"""Gaussian differential privacy: losses are μ², they add up, and (epsilon, delta) follows by the exact condition.

A mechanism is μ-GDP if telling two neighbours apart from its output is at least as hard as telling N(0, 1) from
N(μ, 1) [DRS22]. The currency is the square, because squares add and because μ² = Δ²/sigma² is rational.
"""

from fractions import Fraction
from math import erfc, exp, inf
from typing import TYPE_CHECKING, Any

from discreet.accounting.event import (
    Accounting,
    Amount,
    Gaussian,
    Selection,
    Single,
    add_amounts,
    multiply_amount,
    pure_epsilon,
)
from discreet.numeric import (
    float_above,
    float_below,
    greatest,
    least,
    positive,
    probability,
    surely_at_most,
    upper_bound,
)

if TYPE_CHECKING:
    from flint import arb

# Beyond this the closed bound μ² ≤ 8 epsilon is used: it is within a few per cent, and no budget reaches there.
LARGE_EPSILON = 1000


def gaussian_delta(squared_mu: Amount, epsilon: Fraction) -> Amount:
    """The smallest delta for which μ-GDP gives (epsilon, delta)-DP, rounded up.

    delta = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), and no smaller delta will do.

    where μ² is `squared_mu`, ε is `epsilon` and Φ the distribution function of N(0, 1).

    >>> float(gaussian_delta(Fraction(1), Fraction(1)))
    0.12693673750664394

    [BW18, Thm. 8; DRS22, Cor. 2.13]
    """
    if squared_mu == 0:
        return Fraction(0)
    if squared_mu == inf:
        return Fraction(1)
    exact = Fraction(squared_mu)
    return min(upper_bound(lambda: _delta_ball(exact, epsilon)), Fraction(1))


def gaussian_epsilon(squared_mu: Amount, delta: Fraction) -> Amount:
    """The smallest epsilon for which μ-GDP gives (epsilon, delta)-DP, rounded up; infinite for delta = 0.

    >>> round(float(gaussian_epsilon(Fraction(1), Fraction(1, 10**6))), 4)
    4.8866
    """
    if squared_mu == 0:
        return Fraction(0)
    if squared_mu == inf or delta == 0:
        return inf
    exact = Fraction(squared_mu)
    if surely_at_most(lambda: _delta_ball(exact, Fraction(0)), delta):
        return Fraction(0)
    return least(lambda epsilon: surely_at_most(lambda: _delta_ball(exact, epsilon), delta))


def about_epsilon(squared_mu: Fraction, delta: Fraction) -> Fraction:
    """The same, faster, and at most one part in 10^7 above it: to show to people, not to decide a spend.

    >>> round(float(about_epsilon(Fraction(1), Fraction(1, 10**6))), 4)
    4.8866
    """
    mu, most = float(squared_mu) ** 0.5, float(delta)
    low, high = 0.0, 1.0
    while high < LARGE_EPSILON and _about_delta(mu, high) > most:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _about_delta(mu, middle) > most else (low, middle)
    above = Fraction(high * (1 + 1e-8)).limit_denominator(10**15)
    if above > 0 and surely_at_most(lambda: _delta_ball(squared_mu, above), delta):
        return above
    return Fraction(gaussian_epsilon(squared_mu, delta))


def _about_delta(mu: float, epsilon: float) -> float:
    lower, upper = (epsilon / mu - mu / 2) / 2**0.5, (epsilon / mu + mu / 2) / 2**0.5
    return (erfc(lower) - (exp(epsilon) * erfc(upper) if epsilon < 700 else 0.0)) / 2


def gaussian_limit(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest μ² that a budget of (epsilon, delta) allows, rounded down; 0 for delta = 0.

    >>> round(float(gaussian_limit(Fraction(1), Fraction(1, 10**6))) ** 0.5, 4)
    0.2367
    """
    if delta == 0:
        return Fraction(0)
    return Fraction(greatest(lambda squared_mu: surely_at_most(lambda: _delta_ball(squared_mu, epsilon), delta)))


def mu_of(*, epsilon: Any, delta: Any) -> float:
    """The μ of a budget: every μ-GDP release is (epsilon, delta)-DP. Rounded down.

    >>> round(mu_of(epsilon=1, delta=1e-6), 4)
    0.2367
    """
    limit = gaussian_limit(positive("epsilon", epsilon), probability("delta", delta))
    return float_below(Fraction(greatest(lambda mu: mu * mu <= limit)))


def epsilon_of(*, mu: Any, delta: Any) -> float:
    """The epsilon of a μ-GDP release at this delta. Rounded up.

    >>> round(epsilon_of(mu=1, delta=1e-6), 4)
    4.8866
    """
    return float_above(gaussian_epsilon(positive("mu", mu) ** 2, probability("delta", delta)))


def squared_mu_of_pure(epsilon: Fraction) -> Fraction:
    """The smallest μ² such that every epsilon-DP mechanism is μ-GDP, rounded up.

    μ = 2 Φ⁻¹(e^ε/(1 + e^ε)): the two trade-off curves meet on the diagonal.

    >>> round(float(squared_mu_of_pure(Fraction(1))) ** 0.5, 4)
    1.232

    proof: gates.md §2
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > LARGE_EPSILON:
        return 8 * epsilon
    return upper_bound(lambda: _squared_mu_ball(epsilon))


def squared_mu_of_bounded_range(epsilon: Fraction) -> Fraction:
    """The smallest μ² such that every mechanism of bounded range epsilon is μ-GDP, rounded up.

    μ = 2 Φ⁻¹(e^{ε/2}/(1 + e^{ε/2})): as much as an epsilon/2-DP mechanism.

    >>> squared_mu_of_bounded_range(Fraction(1)) == squared_mu_of_pure(Fraction(1, 2))
    True

    proof: gates.md §3
    """
    return squared_mu_of_pure(epsilon / 2)


def squared_mu(event: Single) -> Amount:
    """The Gaussian-DP loss of a single event."""
    match event:
        case Gaussian(sigma, squared_sensitivity):
            return squared_sensitivity / sigma**2
        case Selection(epsilon):
            return squared_mu_of_bounded_range(epsilon)
        case _:
            pure = pure_epsilon(event)
            return inf if pure == inf else squared_mu_of_pure(Fraction(pure))


GAUSSIAN = Accounting[Amount](
    name="gaussian",
    single=squared_mu,
    zero=Fraction(0),
    add=add_amounts,
    times=multiply_amount,
    epsilon=gaussian_epsilon,
    delta=gaussian_delta,
)


def _delta_ball(squared_mu: Fraction, epsilon: Fraction) -> "arb":
    from flint import arb

    from discreet.numeric import ball

    mu, e = ball(squared_mu).sqrt(), ball(epsilon)
    root = arb(2).sqrt()
    # Φ(x) = erfc(−x/√2)/2 keeps its relative precision in the far left tail, where both terms live.
    return (((e / mu - mu / 2) / root).erfc() - e.exp() * ((e / mu + mu / 2) / root).erfc()) / 2


def _squared_mu_ball(epsilon: Fraction) -> "arb":
    from flint import arb

    from discreet.numeric import ball

    # Φ⁻¹(p) = √2 erfc⁻¹(2(1 − p)) = √2 erf⁻¹(2p − 1): the first keeps its digits for large epsilon, the other for
    # small.
    e = ball(epsilon)
    quantile = (2 / (1 + e.exp())).erfcinv() if epsilon > 1 else (e / 2).tanh().erfinv()
    result: arb = 8 * quantile * quantile
    return result
