"""The Gaussian mechanism on pieces of a lattice: each piece with its own noise, all with one price."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import BadParameter
from discreet.mechanism.calibration import read_scale, read_sensitivity
from discreet.mechanism.gaussian import gaussian, half_width
from discreet.mechanism.independent import require_few
from discreet.mechanism.protocol import BITS, Law, Mechanism
from discreet.parameter import Number, whole
from discreet.privacy import event
from discreet.privacy.sensitivity import Sensitivity
from discreet.source.exact import Exact, unseal


def gaussian_pieces(
    *, sensitivity: Sensitivity, stretches: Sequence[tuple[Number, int]]
) -> Mechanism[NDArray[np.int64]]:
    """Add rounded Gaussian noise to a vector of integers, with a standard deviation for each stretch of it.

    Releases v_i + round(Y_i), with Y_i ~ N(0, sigma_i²) independent. It costs what Gaussian noise of standard deviation
    1 costs on the vector with entries v_i/sigma_i: mu² = s², where s is the L2 sensitivity of that vector.

    where `stretches` has pairs (sigma, how many values), and `sensitivity` is that of a `Measurement`.

    `error(confidence)` is for the stretch with the most noise.

    >>> move = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1, 50), linf=Fraction(1))
    >>> gaussian_pieces(sensitivity=move, stretches=[(10, 3), (20, 1)]).event
    Gaussian(sigma=Fraction(1, 1), squared_sensitivity=Fraction(1, 50))

    [BW18; Xiao et al. 2023]; proof: pieces.md
    """
    calibrated = read_sensitivity(sensitivity, "l2_squared")
    if not stretches:
        raise BadParameter("stretches is empty; it must have a pair (sigma, size) for each piece. Give at least one.")
    sized = tuple((read_scale("sigma", sigma), whole("size", size, least=1)) for sigma, size in stretches)

    def release(exact: Exact) -> NDArray[np.int64]:
        values = unseal(exact, _as_declared(exact, calibrated), stretches=sized)
        draws: NDArray[np.int64] = np.concatenate([noise.rounded_gaussian(sigma, size=size) for sigma, size in sized])
        return values + draws

    def error(confidence: Number, *, joint: int = 1) -> float:
        return half_width(max(sigma for sigma, _ in sized), confidence, joint=joint)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return _law(values, beside, sized)

    return Mechanism(event.Gaussian(Fraction(1), calibrated.l2_squared), release, error, law)


def _as_declared(exact: Exact, calibrated: Sensitivity) -> Sensitivity:
    """Only the L2 sensitivity matters to Gaussian noise."""
    if not isinstance(exact, Exact):
        return calibrated
    return Sensitivity(exact.sensitivity.l1, calibrated.l2_squared, exact.sensitivity.linf)


def _law(values: Sequence[int], beside: Sequence[Sequence[int]], sized: Sequence[tuple[Fraction, int]]) -> Law:
    """The product of the laws of the stretches."""
    from flint import arb

    from discreet.interval import precision

    ends = [0, *accumulate(size for _, size in sized)]
    if ends[-1] != len(values):
        raise BadParameter(f"there are {len(values)} values and the stretches hold {ends[-1]}; give one for each.")
    with precision(BITS):
        joint: dict[Any, arb] = {(): arb(1)}
        rest = arb(0)
        for (sigma, _), (begin, end) in zip(sized, pairwise(ends), strict=True):
            part = gaussian(sigma=sigma, sensitivity=1).law(values[begin:end], [other[begin:end] for other in beside])
            require_few(len(joint) * len(part.probabilities))
            joint = {a + b: p * q for a, p in joint.items() for b, q in part.probabilities.items()}
            rest += part.rest
        return Law(joint, rest)
