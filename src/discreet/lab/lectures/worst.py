"""The true loss of a mechanism over given pairs of neighbours, independent of its claim."""

from collections.abc import Iterable, Sequence
from typing import Any

from discreet.lab.lectures.laws import largest, loss
from discreet.mechanism.protocol import Interactive, Mechanism
from discreet.verify import Interval

Pairs = Iterable[tuple[Sequence[int], Sequence[int]]]


def worst_loss(mechanism: Mechanism[Any] | Interactive[Any, Any], pairs: Pairs) -> Interval:
    """The smallest epsilon for all of these pairs, from the exact laws, both ways.

    >>> from discreet.mechanism import laplace
    >>> found = worst_loss(laplace(epsilon=2, sensitivity=1), [([0], [1]), ([0], [2])])
    >>> round(found.lower, 9), round(found.upper, 9)
    (4.0, 4.0)
    """
    return largest(loss(mechanism.law(a, beside=[b]), mechanism.law(b, beside=[a])) for a, b in pairs)


def shown(found: Interval) -> str:
    """An exact number in a few digits.

    >>> shown(Interval(0.9999999999999999, 1.0000000000000002))
    '1'
    """
    return f"{found.upper:.6g}"
