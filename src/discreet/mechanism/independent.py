"""The law of a vector with independent noise on each value: the product of the laws of its coordinates."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from discreet.errors import TooLarge
from discreet.mechanism.calibration import read_integers
from discreet.mechanism.protocol import LAW_BITS, Law

if TYPE_CHECKING:
    from flint import arb

MOST_OUTCOMES = 300_000

# One coordinate: given its true value and the lowest and highest true value to compare with, the probability of each
# outcome, and a bound on what is not listed.
AxisLaw = Callable[[int, int, int], "tuple[Mapping[Any, arb], arb]"]


def independent_law(values: Sequence[Any], beside: Sequence[Sequence[Any]], axis: AxisLaw) -> Law:
    """The joint law; an outcome is the tuple of the coordinates' outcomes."""
    from flint import arb

    from discreet.numeric import precision

    true = read_integers(values)
    tables = [true, *(read_integers(other, "beside") for other in beside)]
    lows = [min(column) for column in zip(*tables, strict=True)]
    highs = [max(column) for column in zip(*tables, strict=True)]
    with precision(LAW_BITS):
        seen: dict[tuple[int, int, int], tuple[Mapping[Any, arb], arb]] = {}
        axes = []
        for place in zip(true, lows, highs, strict=True):
            if place not in seen:
                seen[place] = axis(*place)
            axes.append(seen[place])
        require_few_outcomes(prod(len(masses) for masses, _ in axes))
        joint: dict[tuple[Any, ...], arb] = {}
        for outcomes in product(*(masses.items() for masses, _ in axes)):
            mass = arb(1)
            for _, factor in outcomes:
                mass *= factor
            joint[tuple(outcome for outcome, _ in outcomes)] = mass
        return Law(joint, sum((rest for _, rest in axes), arb(0)))


def require_few_outcomes(outcomes: int) -> None:
    """Refuse to list more outcomes than a laptop should."""
    if outcomes > MOST_OUTCOMES:
        raise TooLarge(
            f"this law has {outcomes} outcomes; at most {MOST_OUTCOMES} are listed. "
            "Ask for fewer values, or pass beside=[…] to list only what distinguishes the tables."
        )
