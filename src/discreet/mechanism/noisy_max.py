"""Report noisy max: add noise to every score, release only which is the largest."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import noise as draws
from discreet.accounting.event import Pure
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened, read_values, require_size
from discreet.mechanism.exponential import exponential, selection_rate
from discreet.mechanism.protocol import LAW_BITS, Law, Mechanism
from discreet.numeric import Number, positive, read_failure, whole
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb

SelectionNoise = Literal["exponential", "gumbel"]


def noisy_max(
    *, epsilon: Number, sensitivity: Sensitivity | Number, noise: SelectionNoise = "exponential"
) -> Mechanism[int]:
    """Choose the place of the largest score after adding noise to each.

    Releases argmax s(y) + Z_y, with Z_y independent. With exponential noise of mean 2Δ/e (Δ/e if neighbours move all
    scores the same way) this is permute-and-flip: e-DP, and never a worse expected score than the exponential
    mechanism. With Gumbel noise of that scale it *is* the exponential mechanism.

    where e is `epsilon`, s(y) the exact integer score of candidate y and Δ the largest move of one score (linf).

    `error(confidence, candidates=d)` bounds the best score minus the chosen one, for all scores:
    ln((d − 1)/2(1 − c)) divided by the rate.

    >>> choose = noisy_max(epsilon=1, sensitivity=1)
    >>> choose.event
    Pure(epsilon=Fraction(1, 1))
    >>> choose.law([0, 0, 2])
    Law(0: 0.161384, 1: 0.161384, 2: 0.677232)
    >>> noisy_max(epsilon=1, sensitivity=1, noise="gumbel").event
    Selection(epsilon=Fraction(1, 1))

    [MS20; DKSSWXZ21; 004 Alg. 3, Lemma 5]; proof, and a correction to 004 Ex. 2: noisy_max.md
    """
    race = race_of(noise, epsilon=epsilon, sensitivity=sensitivity)
    if noise == "gumbel":
        return exponential(epsilon=epsilon, sensitivity=sensitivity)
    loss = positive("epsilon", epsilon)
    calibrated = read_sensitivity(sensitivity, "linf")
    rate = selection_rate(loss, calibrated)

    def release(exact: Exact) -> int:
        require_size(exact, 1, what="scores")
        return race(opened(exact, calibrated, "linf"))

    def error(confidence: Number, *, candidates: int) -> float:
        others = whole("candidates", candidates, least=1) - 1
        failure = read_failure(confidence)
        return max(0.0, log(others / (2 * failure)) / float(rate)) if others else 0.0

    def law(scores: Sequence[Any], beside: Sequence[Sequence[Any]] = ()) -> Law:
        return permute_and_flip_law(scores, rate)

    return Mechanism(Pure(loss), release, error, law)


def race_of(
    noise: SelectionNoise, *, epsilon: Number, sensitivity: Sensitivity | Number
) -> Callable[[NDArray[np.int64]], int]:
    """The draw itself: from exact scores to the place of the winner."""
    rate = selection_rate(positive("epsilon", epsilon), read_sensitivity(sensitivity, "linf"))
    match noise:
        case "exponential":
            return lambda scores: draws.exponential_race(scores, rate)
        case "gumbel":
            return lambda scores: draws.gumbel_race(scores, rate)
    raise BadParameter(f'noise is {noise!r}; it must be "exponential" or "gumbel". Leave it out for exponential.')


def permute_and_flip_law(scores: Sequence[Any], rate: Fraction) -> Law:
    """Pr[y] = p_y ∫₀¹ Π_{z≠y} (1 − p_z u) du, with p_y = exp(−rate·(best − s(y))): a polynomial, integrated exactly."""
    from flint import arb

    from discreet.noise.law import exp_minus
    from discreet.numeric import precision

    exact = read_values(scores, "scores")
    best = max(exact)
    # The coefficients alternate and may be as large as a binomial, so a bit for each candidate is lost.
    with precision(LAW_BITS + 2 * len(exact)):
        flips = [exp_minus(rate * (best - score)) for score in exact]
        return Law({place: _wins(flips, place) for place in range(len(flips))}, arb(0))


def _wins(flips: "list[arb]", place: int) -> "arb":
    from flint import arb

    polynomial = [arb(1)]
    for flip in (flip for other, flip in enumerate(flips) if other != place):
        shifted = [arb(0), *(-flip * coefficient for coefficient in polynomial)]
        polynomial = [a + b for a, b in zip([*polynomial, arb(0)], shifted, strict=True)]
    integral: arb = sum((coefficient / (power + 1) for power, coefficient in enumerate(polynomial)), arb(0))
    return flips[place] * integral
