"""The exact law of a sparse-vector transcript: a sum over the noise of the threshold, with a bound on its tails."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, comb
from operator import mul
from typing import TYPE_CHECKING, Any

from discreet.mechanism.calibration import read_integers
from discreet.mechanism.independent import require_few_outcomes
from discreet.mechanism.laplace import clamped
from discreet.mechanism.protocol import LAW_BITS, Law

if TYPE_CHECKING:
    from flint import arb

Scales = tuple[Fraction, Fraction, Fraction | None]


def transcript_law(
    values: Sequence[Any], beside: Sequence[Sequence[Any]], threshold: int, hits: int, scales: Scales
) -> Law:
    """The probability of every sequence of answers to a stream of true values.

    Given the threshold's noise z the answers are independent, so Pr[answers] = Σ_z Pr[z] Π_t Pr[answer t | z]. The sum
    runs over |z| ≤ R; what lies beyond is at most Pr[|z| > R] < 2^−120 and widens each interval. Released values are
    independent of all else given that there is one; each is clamped as in `laplace_law`.
    """
    from flint import arb

    from discreet.noise.law import laplace_mass, laplace_tail
    from discreet.numeric import precision

    true = read_integers(values)
    tables = [true, *(read_integers(other, "beside") for other in beside)]
    require_few_outcomes(sum(comb(len(true), above) for above in range(hits + 1)))
    threshold_scale, query_scale, value_scale = scales
    reach = ceil(84 * threshold_scale) + 1
    require_few_outcomes(2 * reach + 1)
    shifts = range(-reach, reach + 1)

    with precision(LAW_BITS):
        beyond = (2 * laplace_tail(reach + 1, threshold_scale)).union(arb(0))
        found: dict[tuple[bool, ...], arb] = {}

        def follow(answers: tuple[bool, ...], weights: "list[arb]") -> None:
            time = len(answers)
            if time == len(true) or sum(answers) == hits:
                found[answers] = sum(weights, arb(0)) + beyond
                return
            for hit in (False, True):
                follow((*answers, hit), list(map(mul, weights, chances[true[time], hit])))

        chances = {
            (value, hit): [
                laplace_tail(threshold + z - value if hit else value - threshold - z + 1, query_scale) for z in shifts
            ]
            for value in set(true)
            for hit in (False, True)
        }
        follow((), [laplace_mass(shift, threshold_scale) for shift in shifts])
        if value_scale is None:
            return Law(found, arb(0))
        return Law(_with_values(found, true, tables, value_scale), arb(0))


def _with_values(
    found: "dict[tuple[bool, ...], arb]", true: tuple[int, ...], tables: list[tuple[int, ...]], scale: Fraction
) -> "dict[tuple[int | None, ...], arb]":
    """Each hit becomes the value released for it."""
    reach = 0 if len(tables) > 1 else ceil(45 * scale) + 1
    released = [
        clamped(value, min(seen) - reach, max(seen) + reach, scale)[0]
        for value, seen in zip(true, zip(*tables, strict=True), strict=True)
    ]
    joint: dict[tuple[int | None, ...], arb] = {}
    for answers, chance in found.items():
        places = [place for place, hit in enumerate(answers) if hit]
        for outcomes in product(*(released[place].items() for place in places)):
            said: list[int | None] = [None] * len(answers)
            mass = chance
            for place, (outcome, factor) in zip(places, outcomes, strict=True):
                said[place] = outcome
                mass = mass * factor
            joint[tuple(said)] = mass
            require_few_outcomes(len(joint))
    return joint
