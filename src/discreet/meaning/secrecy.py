"""Why a small additive difference is not privacy: name and shame keeps it, and publishes somebody's row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, log1p
from typing import Any

from discreet.mechanism.protocol import Mechanism
from discreet.numeric import Number, probability, whole
from discreet.verify.divergence import Interval, divergence


@dataclass(frozen=True, slots=True)
class Exposure:
    """How many people name and shame exposes: the probability of at least one, and the mean number."""

    somebody: float
    people: float


def additive_secrecy(mechanism: Mechanism[Any], pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Interval:
    """The smallest δ with Pr[A(x) ∈ E] ≤ Pr[A(y) ∈ E] + δ for these pairs: the total variation distance.

    >>> from discreet.mechanism import name_and_shame
    >>> additive_secrecy(name_and_shame(delta=0.01), [([0, 1], [0, 0])]).upper
    0.01

    [002, (8)]
    """
    found = [
        divergence(mechanism.law(a, beside=[b]), mechanism.law(b, beside=[a]), 0)
        for one, other in pairs
        for a, b in ((one, other), (other, one))
    ]
    return Interval(max(each.lower for each in found), max(each.upper for each in found))


def name_and_shame_exposure(*, delta: Number, rows: int) -> Exposure:
    """Each of n rows is published with probability delta: 1 − (1 − δ)^n, and δn.

    >>> exposed = name_and_shame_exposure(delta=0.001, rows=5000)
    >>> round(exposed.somebody, 4), exposed.people
    (0.9933, 5.0)

    [002 Ex. 3.3]
    """
    chance, people = float(probability("delta", delta)), whole("rows", rows, least=1)
    return Exposure(-expm1(people * log1p(-chance)), people * chance)
