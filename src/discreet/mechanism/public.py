"""A value of sensitivity 0, which no person can move, is released as it is."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Nothing
from discreet.accounting.sensitivity import Sensitivity
from discreet.mechanism.independent import independent_law
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, read_failure, whole
from discreet.source.source import Exact, unseal

if TYPE_CHECKING:
    from flint import arb

UNMOVED = Sensitivity(l1=Fraction(0), l2_squared=Fraction(0), linf=Fraction(0))


def public() -> Mechanism[NDArray[np.int64]]:
    """Release a vector of integers that is the same in every two neighbouring tables.

    Releases v. It is 0-DP, because the seal opens only if the sensitivity of v is 0 in every norm: the number of rows
    where rows are persons who are replaced and none can be dropped, or a sum in which every row weighs the same there.

    where v is the exact vector. `error(confidence)` is 0.

    >>> public().event, public().error(0.95), public().law([7])
    (Nothing(), 0.0, Law((7,): 1))

    Proof: public.md
    """

    def release(exact: Exact) -> NDArray[np.int64]:
        return unseal(exact, UNMOVED).copy()

    def error(confidence: Number, *, joint: int = 1) -> float:
        read_failure(confidence)
        whole("joint", joint, least=1)
        return 0.0

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        def axis(value: int, low: int, high: int) -> "tuple[Mapping[Any, arb], arb]":
            from flint import arb

            return {value: arb(1)}, arb(0)

        return independent_law(values, beside, axis)

    return Mechanism(Nothing(), release, error, law)
