"""Where a model is most wrong, and how wrong: surprises, the distances between true integers and expected ones."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet import noise
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened, read_sensitivity, require_size
from discreet.mechanism.exponential import exponential
from discreet.mechanism.gaussian import gaussian, half_width
from discreet.mechanism.parts import FARTHEST, read_public, true_integers
from discreet.mechanism.protocol import Law, Mechanism
from discreet.parameter import Number, positive, whole
from discreet.privacy.event import Selection
from discreet.privacy.sensitivity import Sensitivity
from discreet.source.exact import Exact
from discreet.types import Ints


def largest_surprise(
    *,
    epsilon: Number,
    sensitivity: Sensitivity | Number,
    expected: "Sequence[int] | Ints",
    handicaps: "Sequence[int] | Ints | None" = None,
) -> Mechanism[int]:
    """Choose a place where the true value is far from the expected one.

    Releases i with Pr[i] ∝ exp(e (|v_i − m_i| − h_i)/2Δ): the exponential mechanism. It is e-DP and of bounded range e.
    The 2 stays even where all v_i move one way, for an absolute value turns round.

    where e is `epsilon`, v the exact vector, m the public `expected`, h the public `handicaps` (none: zeros) and Δ the
    largest move of one value (linf), which is the largest move of one surprise.

    `error(confidence)` bounds how far the chosen |v_i − m_i| − h_i is below the largest.

    >>> choose = largest_surprise(epsilon=1, sensitivity=1, expected=[10, 10, 10])
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law([10, 12, 6])
    Law(0: 0.0900306, 1: 0.244728, 2: 0.665241)
    >>> round(choose.error(0.95), 2)
    7.28

    [MT07; Hardt, Ligett, McSherry 2012, Fig. 1]; proof, and why a surprise is never monotone: surprise.md
    """
    loss = positive("epsilon", epsilon)
    calibrated = _both_ways(read_sensitivity(sensitivity, "linf"))
    middle = _frozen(expected, "expected")
    behind = np.zeros_like(middle) if handicaps is None else _frozen(handicaps, "handicaps")
    if behind.size != middle.size:
        raise BadParameter(
            f"there are {behind.size} handicaps and {middle.size} expected values; there must be one for each. "
            "Give as many, or leave handicaps out."
        )
    choose = exponential(epsilon=loss, sensitivity=calibrated)
    rate = loss / (2 * calibrated.linf)

    def release(exact: Exact) -> int:
        require_size(exact, middle.size, middle.size)
        return noise.gumbel_race(surprises(opened(exact, calibrated, "linf"), middle) - behind, rate)

    def error(confidence: Number) -> float:
        return choose.error(confidence, candidates=middle.size)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return choose.law(surprises(true_integers(values, middle), middle) - behind)

    return Mechanism(Selection(loss), release, error, law)


def surprise_quantile(
    *, sigma: Number, sensitivity: Sensitivity | Number, expected: "Sequence[int] | Ints", rank: int = -1
) -> Mechanism[int]:
    """Say how far from the expected values the true ones are: the rank-th smallest distance, with Gaussian noise.

    Releases a + round(Y), with Y ~ N(0, sigma²) and a the rank-th smallest of |v_1 − m_1|, …, |v_d − m_d|. It costs one
    Gaussian of sensitivity Δ, however many values there are.

    where v is the exact vector, m the public `expected`, Δ the largest move of one value (linf), and `rank` is 1 for
    the smallest distance, d or −1 for the largest, d − 1 or −2 for the one below it.

    `error(confidence)` is the smallest t with Pr[|round(Y)| ≤ t] ≥ confidence.

    >>> largest = surprise_quantile(sigma=10, sensitivity=1, expected=[0] * 20_000)
    >>> largest.event, largest.error(0.95)
    (Gaussian(sigma=Fraction(10, 1), squared_sensitivity=Fraction(1, 1)), 20.0)

    proof: surprise.md
    """
    calibrated = _both_ways(read_sensitivity(sensitivity, "linf"))
    middle = _frozen(expected, "expected")
    place = _place(rank, middle.size)
    one = calibrated.linf
    add = gaussian(sigma=sigma, sensitivity=Sensitivity(l1=one, l2_squared=one**2, linf=one))
    spread: Fraction = positive("sigma", sigma)

    def release(exact: Exact) -> int:
        require_size(exact, middle.size, middle.size)
        return _smallest(opened(exact, calibrated, "linf"), middle, place) + noise.rounded_gaussian(spread)

    def error(confidence: Number) -> float:
        return half_width(spread, confidence)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        here, *others = [[_smallest(true_integers(table, middle), middle, place)] for table in (values, *beside)]
        vector = add.law(here, beside=others)
        return Law({outcome[0]: mass for outcome, mass in vector.probabilities.items()}, vector.rest)

    return Mechanism(add.event, release, error, law)


def surprises(values: Ints, expected: Ints) -> Ints:
    """The distance of each value from the expected one; values are clamped first, which moves none of them further.

    >>> surprises(np.array([3, -5]), np.array([1, 1])).tolist()
    [2, 6]
    """
    distances: Ints = np.abs(np.clip(values, -FARTHEST, FARTHEST) - expected)
    return distances


def _smallest(values: Ints, expected: Ints, place: int) -> int:
    return int(np.partition(surprises(values, expected), place)[place])


def _both_ways(moves: Sensitivity) -> Sensitivity:
    """The same moves with no direction: |v − m| goes up with v on one side of m and down on the other."""
    return Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=0)


def _place(rank: int, count: int) -> int:
    """Where the rank-th smallest of so many stands, counted from 0."""
    step = f"Give 1 for the smallest, {count} or -1 for the largest."
    signed = whole("rank", rank, least=-count, most=count, next_step=step)
    if signed == 0:
        raise BadParameter(f"rank is 0; it must be a whole number from 1 to {count}, or from -{count} to -1. {step}")
    return signed - 1 if signed > 0 else count + signed


def _frozen(values: "Sequence[int] | Ints", name: str) -> Ints:
    """Public integers, one for each true value, that nobody can change any more."""
    exact = read_public(values, name).copy()
    exact.setflags(write=False)
    return exact
