"""Exact chances of what a sparse vector says of a stream, for the published variants, right and wrong.

Given the noise of the threshold, the answers are independent, so that a chance is one sum over that noise. The sum runs
over a window, and what lies beyond it widens the interval.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

from flint import arb

from discreet.mechanism.protocol import LAW_BITS, Law
from discreet.noise.law import laplace_mass, laplace_tail
from discreet.numeric import precision

# Below, above, or the very number that was compared.
Said = bool | int


@dataclass(frozen=True, slots=True)
class Variant:
    """How much noise, for an epsilon of 1 and values that move by 1; `query` is None where values have no noise.

    `hits` is the number of answers “above” after which it stops. `refresh` draws the threshold anew after each of them.
    """

    name: str
    threshold: Fraction
    query: Fraction | None
    hits: float = inf
    refresh: bool = False


def chance(variant: Variant, values: Sequence[int], said: Sequence[Said]) -> arb:
    """The probability of these answers to this stream, the threshold being 0: an interval.

    >>> even = Variant("one coin", Fraction(1), Fraction(1))
    >>> float((chance(even, [0], [True]) + chance(even, [0], [False])).mid())
    1.0
    """
    reach = ceil(40 * variant.threshold) + max(map(abs, values)) + 1
    shifts = range(-reach, reach + 1)
    with precision(LAW_BITS):
        fresh = [laplace_mass(shift, variant.threshold) for shift in shifts]
        weights, hits = fresh, 0
        for value, answer in zip(values, said, strict=True):
            each = [_answers(variant, value, answer, shift) for shift in shifts]
            weights = [weight * factor for weight, factor in zip(weights, each, strict=True)]
            if answer is not False:
                hits += 1
                if variant.refresh:
                    total = sum(weights, arb(0))
                    weights = [total * mass for mass in fresh]
        beyond = 2 * (1 + hits) * laplace_tail(reach + 1, variant.threshold)
        return sum(weights, arb(0)) + beyond.union(arb(0))


def _answers(variant: Variant, value: int, answer: Said, shift: int) -> arb:
    if variant.query is None:
        return arb(int((value >= shift) is answer))
    if answer is True:
        return laplace_tail(shift - value, variant.query)
    if answer is False:
        return laplace_tail(value - shift + 1, variant.query)
    # The noisy value itself, which must have been at least the noisy threshold.
    return laplace_mass(answer - value, variant.query) if answer >= shift else arb(0)


def law(variant: Variant, values: Sequence[int]) -> Law:
    """The law of all answers to a stream.

    >>> len(law(Variant("one hit", Fraction(1), Fraction(1), hits=1), [0, 0]).probabilities)
    3
    """
    return Law({said: chance(variant, values[: len(said)], said) for said in _transcripts(variant, values)}, arb(0))


def _transcripts(variant: Variant, values: Sequence[int], so_far: tuple[bool, ...] = ()) -> Iterator[tuple[bool, ...]]:
    if len(so_far) == len(values) or sum(so_far) == variant.hits:
        yield so_far
        return
    for answer in (False, True):
        yield from _transcripts(variant, values, (*so_far, answer))


def loss_of(variant: Variant, one: Sequence[int], other: Sequence[int], said: Sequence[Said]) -> float:
    """A lower bound of |ln Pr[said | one]/Pr[said | other]|; infinite where only one of them can say it."""
    with precision(LAW_BITS):
        here, there = chance(variant, one, said), chance(variant, other, said)
        if variant.query is None and (here > 1e-30) != (there > 1e-30):
            return inf
        return max(float((here.lower() / there.upper()).log().lower()), 0.0)
