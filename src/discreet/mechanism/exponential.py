"""The exponential mechanism: choose one of many candidates, better ones with a higher probability."""

from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import Any

from discreet import noise
from discreet.accounting.event import Selection
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.mechanism.calibration import opened, read_values, require_size
from discreet.mechanism.protocol import LAW_BITS, Law, Mechanism
from discreet.numeric import Number, positive, read_failure, whole
from discreet.source.source import Exact


def exponential(*, epsilon: Number, sensitivity: Sensitivity | Number) -> Mechanism[int]:
    """Choose the place of a high score.

    Releases y with Pr[y] ∝ exp(e s(y)/2Δ), or exp(e s(y)/Δ) if neighbours move all scores the same way.
    It is e-DP and of bounded range e.

    where e is `epsilon`, s(y) the exact integer score of candidate y and Δ the largest move of one score (linf);
    `sensitivity.monotone` says that they move the same way.

    `error(confidence, candidates=d)` bounds the best score minus the chosen one: the smallest g that holds for
    all scores, ln((d − 1)c/(1 − c)) divided by the rate.

    >>> choose = exponential(epsilon=1, sensitivity=1)
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law([0, 0, 2])
    Law(0: 0.211942, 1: 0.211942, 2: 0.576117)
    >>> round(choose.error(0.95, candidates=100), 2)
    15.08

    [MT07; 003 Thm. 4; 004 Thm. 4, 6], range: [DDR20]; proof: exponential.md
    """
    loss = positive("epsilon", epsilon)
    calibrated = read_sensitivity(sensitivity, "linf")
    rate = selection_rate(loss, calibrated)

    def release(exact: Exact) -> int:
        require_size(exact, 1, what="scores")
        return noise.gumbel_race(opened(exact, calibrated, "linf"), rate)

    def error(confidence: Number, *, candidates: int) -> float:
        failure = read_failure(confidence)
        others = whole("candidates", candidates, least=1) - 1
        return max(0.0, log(others * (1 - failure) / failure) / float(rate)) if others else 0.0

    def law(scores: Sequence[Any], beside: Sequence[Sequence[Any]] = ()) -> Law:
        return exponential_law(scores, rate)

    return Mechanism(Selection(loss), release, error, law)


def selection_rate(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
    """The factor of a score in the exponent: epsilon over the most that the difference of two scores can move."""
    apart = sensitivity.linf if sensitivity.monotone else 2 * sensitivity.linf
    return positive("rate", epsilon / apart, next_step="The rate is epsilon over sensitivity: give them closer values.")


def exponential_law(scores: Sequence[Any], rate: Fraction) -> Law:
    """Pr[y] = exp(rate·s(y))/Σ exp(rate·s(z)), taken relative to the best score."""
    from flint import arb

    from discreet.noise.law import exp_minus
    from discreet.numeric import precision

    exact = read_values(scores, "scores")
    best = max(exact)
    with precision(LAW_BITS):
        weights = [exp_minus(rate * (best - score)) for score in exact]
        total = sum(weights, arb(0))
        return Law({place: weight / total for place, weight in enumerate(weights)}, arb(0))
