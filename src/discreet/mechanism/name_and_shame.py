"""Name and shame: the counterexample that shows why a small additive δ is not enough."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet import noise
from discreet.accounting.event import Approximate
from discreet.accounting.sensitivity import read_sensitivity
from discreet.mechanism.calibration import opened
from discreet.mechanism.independent import independent_law
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, probability
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb

# What is published of one row: its value, or nothing.
Published = int | None


def name_and_shame(*, delta: Number) -> Mechanism[tuple[Published, ...]]:
    """Publish each row in the clear with a small probability. Never use it: it is here to be caught.

    Releases for each row i its value x_i with probability δ, and nothing otherwise. It is (0, δ)-DP and e-DP for no e:
    who is published is exposed completely, and of n rows about δn are.

    where δ is `delta`; rows are replaced (`label_sensitivity`), as in `randomized_response`.

    `error(confidence)` is 0: what is published is true.

    >>> shame = name_and_shame(delta=0.01)
    >>> shame.event
    Approximate(epsilon=Fraction(0, 1), delta=Fraction(1, 100))
    >>> shame.law([7])
    Law((7,): 0.01, (None,): 0.99)

    [002 Ex. 3.3]; proof, and what it does to a prior: name_and_shame.md
    """
    chance = probability("delta", delta)
    calibrated = read_sensitivity(1, "l1")

    def release(exact: Exact) -> tuple[Published, ...]:
        values = opened(exact, calibrated, "l1").tolist()
        coins = noise.bernoulli(chance, size=len(values)).tolist()
        return tuple(value if heads else None for value, heads in zip(values, coins, strict=True))

    def error(confidence: Number) -> float:
        return 0.0

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        def axis(value: int, low: int, high: int) -> "tuple[Mapping[Any, arb], arb]":
            from flint import arb

            from discreet.numeric import ball

            return {value: ball(chance), None: ball(1 - chance)}, arb(0)

        return independent_law(values, (), axis)

    return Mechanism(Approximate(Fraction(0), chance), release, error, law)
