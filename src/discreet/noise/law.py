"""The exact distributions, as rigorous intervals: what every sampler must agree with, and what its slow path asks.

All functions return an `arb`: a ball that provably contains the true value, as narrow as the working precision allows
(`with precision(bits): …`; more bits, narrower ball). No float approximation enters anywhere.
"""

from fractions import Fraction
from math import ceil, isqrt

from flint import arb, ctx

from discreet.numeric import ball


def exp_minus(gamma: Fraction) -> arb:
    """e^−gamma."""
    return (-ball(gamma)).exp()


def laplace_mass(k: int, scale: Fraction) -> arb:
    """Pr[X = k] = (1 − a)/(1 + a) · a^|k| with a = e^(−1/scale)."""
    rate = 1 / scale
    return (ball(rate) / 2).tanh() * exp_minus(abs(k) * rate)


def laplace_tail(k: int, scale: Fraction) -> arb:
    """Pr[X ≥ k] = a^k/(1 + a) for k ≥ 1; by symmetry for the rest."""
    if k <= 0:
        return 1 - laplace_tail(1 - k, scale)
    rate = 1 / scale
    return exp_minus(k * rate) / (1 + exp_minus(rate))


def gaussian_tail(k: int, sigma: Fraction) -> arb:
    """Pr[round(sigma Z) ≥ k] = erfc((k − 1/2)/(sigma √2))/2."""
    return (ball((k - Fraction(1, 2)) / sigma) / arb(2).sqrt()).erfc() / 2


def gaussian_mass(k: int, sigma: Fraction) -> arb:
    """Pr[round(sigma Z) = k], taken on the positive side, where no digits cancel."""
    k = abs(k)
    return gaussian_tail(k, sigma) - gaussian_tail(k + 1, sigma)


def discrete_gaussian_total(sigma: Fraction) -> arb:
    """The sum over all integers of e^(−k²/2sigma²): a finite sum plus a geometric bound on its two tails."""
    digits = ctx.prec
    reach = isqrt(ceil(2 * sigma**2 * digits)) + ceil(sigma) + 2
    twice = 2 * sigma**2
    half = sum((exp_minus(k * k / twice) for k in range(1, reach)), arb(0))
    # Beyond reach, consecutive terms shrink at least by the factor e^(−reach/sigma²): a geometric series.
    first, factor = exp_minus(reach * reach / twice), exp_minus(reach / sigma**2)
    beyond = first / (1 - factor)
    return 1 + 2 * (half + beyond.union(arb(0)))


def discrete_gaussian_mass(k: int, sigma: Fraction, total: arb | None = None) -> arb:
    """Pr[X = k] ∝ e^(−k²/2sigma²); pass the `total` when asking for many."""
    return exp_minus(k * k / (2 * sigma**2)) / (discrete_gaussian_total(sigma) if total is None else total)
