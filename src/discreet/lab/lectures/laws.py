"""Exact laws put together as algorithms are: one after the other, chosen by what came before, and mapped."""

from collections.abc import Callable, Iterable
from itertools import combinations
from math import inf
from typing import Any

from flint import arb

from discreet.mechanism.protocol import Law
from discreet.numeric import precision
from discreet.verify.divergence import DIVERGENCE_BITS, Interval, epsilon

# Intervals cannot prove that two numbers are equal; doubles are compared up to this.
ROUNDING = 2.0**-40


def then(first: Law, second: Callable[[Any], Law]) -> Law:
    """The law of the pair (a, b): a by the first law, b by the one that a chooses. 002, Lemma 1.1

    >>> from discreet.mechanism import randomized_response
    >>> coin = randomized_response(epsilon=1).law([0])
    >>> len(then(coin, lambda _: coin).probabilities)
    4
    """
    with precision(DIVERGENCE_BITS):
        joint = {
            (a, b): chance * other
            for a, chance in first.probabilities.items()
            for b, other in second(a).probabilities.items()
        }
        return Law(joint, first.rest + max((second(a).rest for a in first.probabilities), default=arb(0)))


def mapped(law: Law, function: Callable[[Any], Any]) -> Law:
    """The law of a function of the outcome.

    >>> from discreet.mechanism import randomized_response
    >>> mapped(randomized_response(epsilon=1).law([0, 0]), sum)
    Law(0: 0.534447, 1: 0.393224, 2: 0.0723295)
    """
    with precision(DIVERGENCE_BITS):
        found: dict[Any, arb] = {}
        for outcome, chance in law.probabilities.items():
            image = function(outcome)
            found[image] = found.get(image, arb(0)) + chance
        return Law(found, law.rest)


def randomly_mapped(law: Law, kernel: Callable[[Any], Law]) -> Law:
    """The law of a randomized function of the outcome, `kernel(outcome)` being the law of its result."""
    return mapped(then(law, kernel), lambda pair: pair[1])


def loss(one: Law, other: Law) -> Interval:
    """The smallest epsilon for two neighbours, both ways."""
    there, back = epsilon(one, other), epsilon(other, one)
    return Interval(max(there.lower, back.lower), max(there.upper, back.upper))


def largest(found: Iterable[Interval]) -> Interval:
    """The largest of some numbers that are known to within intervals."""
    every = list(found)
    return Interval(max(each.lower for each in every), max(each.upper for each in every))


def loss_over_sets(one: Law, other: Law) -> Interval:
    """The largest |ln P(S)/Q(S)| over *all* sets of outcomes, by enumeration: 000, Definition 5, word for word."""
    outcomes = list(dict.fromkeys([*one.probabilities, *other.probabilities]))
    lower, upper = 0.0, 0.0
    with precision(DIVERGENCE_BITS):
        for size in range(1, len(outcomes) + 1):
            for chosen in combinations(outcomes, size):
                p, q = (sum((law.probabilities.get(each, arb(0)) for each in chosen), arb(0)) for law in (one, other))
                if p == 0 and q == 0:
                    continue
                if p == 0 or q == 0:
                    return Interval(inf, inf)
                away = (p / q).log()
                away = max(away, -away)
                lower, upper = max(lower, float(away.lower())), max(upper, float(away.upper()))
    return Interval(lower, upper)


def at_most(found: Interval, claimed: float) -> bool:
    """Whether the true number is no larger than was claimed."""
    return found.upper <= claimed * (1 + ROUNDING)


def equals(found: Interval, claimed: float) -> bool:
    """Whether the true number is what was claimed."""
    return at_most(found, claimed) and found.lower >= claimed * (1 - ROUNDING)


def moments(law: Law, value: Callable[[Any], float]) -> tuple[float, float]:
    """Mean and standard deviation of a number that is read off the outcome.

    >>> from discreet.mechanism import randomized_response
    >>> mean, deviation = moments(randomized_response(epsilon=1).law([1]), lambda reports: reports[0])
    >>> round(mean, 4), round(deviation, 4)
    (0.7311, 0.4434)
    """
    pairs = [(float(chance.mid()), value(outcome)) for outcome, chance in law.probabilities.items()]
    mean = sum(chance * at for chance, at in pairs)
    return mean, sum(chance * (at - mean) ** 2 for chance, at in pairs) ** 0.5
