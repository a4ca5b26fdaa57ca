"""The Gaussian mechanism on integers, rounded or discrete; and on residuals of a lattice, each with its own noise, at
one joint price.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, expm1, log1p
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.accounting import event
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened
from discreet.mechanism.independent import independent_law, require_few_outcomes
from discreet.mechanism.protocol import LAW_BITS, Law, Mechanism
from discreet.noise.sample import LARGEST_SCALE, read_scale
from discreet.numeric import Number, positive, probability, read_failure, whole
from discreet.source.source import Exact, unseal

if TYPE_CHECKING:
    from flint import arb


# Beyond this many sigmas lies less than 2^-104 of a Gaussian.
REACH = 12


def gaussian(
    *,
    sensitivity: Sensitivity | Number,
    sigma: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
) -> Mechanism[NDArray[np.int64]]:
    """Add rounded Gaussian noise to each of a vector of integers.

    Releases v + (round(Y_1), …, round(Y_d)), with Y_i ~ N(0, sigma²) independent. Rounding an integer plus a real
    is the integer plus the rounded real, so this is post-processing of the Gaussian mechanism and costs what it costs:
    it is (e, δ)-DP if Φ(μ/2 − e/μ) − exp(e) Φ(−μ/2 − e/μ) ≤ δ, with μ = s/sigma.

    where s is the L2 sensitivity, e is `epsilon`, δ is `delta` and v the exact vector. Give `sigma`, or `epsilon` and
    `delta` for the smallest sigma that this condition allows (the notes' is `discreet.accounting.lecture_sigma`).

    `error(confidence)` is the smallest t with Pr[|round(Y_i)| ≤ t] ≥ confidence; `joint=d` holds for d values at once.

    >>> counts = gaussian(sigma=10, sensitivity=1)
    >>> counts.event
    Gaussian(sigma=Fraction(10, 1), squared_sensitivity=Fraction(1, 1))
    >>> counts.error(0.95), counts.error(0.95, joint=100)
    (20.0, 35.0)

    [DMNS06; BW18, Thm. 8; 004 Ex. 1]; proof, and the price of rounding first and calibrating later: gaussian.md
    """
    calibrated = read_sensitivity(sensitivity, "l2_squared")
    spread = _sigma(sigma, epsilon, delta, lambda given: event.Gaussian(given, calibrated.l2_squared), "gaussian")

    def release(exact: Exact) -> NDArray[np.int64]:
        values = opened(exact, calibrated, "l2_squared")
        return values + noise.rounded_gaussian(spread, size=values.size)

    def error(confidence: Number, *, joint: int = 1) -> float:
        return gaussian_half_width(spread, confidence, joint=joint)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return _windowed_law(values, beside, spread, _rounded_mass(spread))

    return Mechanism(event.Gaussian(spread, calibrated.l2_squared), release, error, law)


def discrete_gaussian(
    *,
    sensitivity: Sensitivity | Number,
    sigma: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
) -> Mechanism[NDArray[np.int64]]:
    """Add discrete Gaussian noise to each of a vector of integers.

    Releases v + (X_1, …, X_d), with X_i independent and Pr[X_i = k] ∝ exp(−k²/2sigma²).
    It is (s²/2sigma²)-zCDP; its Rényi divergences at whole orders meet that bound exactly.

    where s is the L2 sensitivity and v the exact vector. Give `sigma`, or `epsilon` and `delta` for the smallest sigma
    that zCDP allows (`discreet.verify` finds what this sigma gives exactly).

    `error(confidence)` comes from Pr[X ≥ m] ≤ Pr[N(0, sigma²) ≥ m − 1], so it is at most two above the smallest.

    >>> discrete_gaussian(sigma=10, sensitivity=1).event
    DiscreteGaussian(sigma=Fraction(10, 1), squared_sensitivity=Fraction(1, 1))

    [CKS20, Thm. 4]; proof, and why `gaussian` is the default: gaussian.md
    """
    calibrated = read_sensitivity(sensitivity, "l2_squared")
    spread = _sigma(
        sigma, epsilon, delta, lambda given: event.DiscreteGaussian(given, calibrated.l2_squared), "concentrated"
    )

    def release(exact: Exact) -> NDArray[np.int64]:
        values = opened(exact, calibrated, "l2_squared")
        return values + noise.discrete_gaussian(spread, size=values.size)

    def error(confidence: Number, *, joint: int = 1) -> float:
        return float(ceil(_quantile(spread, confidence, joint)))

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return _windowed_law(values, beside, spread, _discrete_mass(spread))

    return Mechanism(event.DiscreteGaussian(spread, calibrated.l2_squared), release, error, law)


def gaussian_half_width(sigma: Fraction, confidence: Number, *, joint: int = 1) -> float:
    """The smallest t that holds all of `joint` independent rounded Gaussian draws with this probability.

    >>> gaussian_half_width(Fraction(10), 0.95)
    20.0
    """
    # |round(Y)| ≤ t exactly when |Y| < t + 1/2.
    return float(max(0, ceil(_quantile(sigma, confidence, joint) - 0.5)))


def _sigma(
    sigma: Number | None,
    epsilon: Number | None,
    delta: Number | None,
    make_event: Callable[[Fraction], event.Event],
    by: Literal["gaussian", "concentrated"],
) -> Fraction:
    match sigma, epsilon, delta:
        case (given, None, None) if given is not None:
            return positive("sigma", given, at_most=LARGEST_SCALE, next_step="Give a positive number, say 10.")
        case (None, loss, chance) if loss is not None and chance is not None:
            # Only this way needs the interval arithmetic of the accountings.
            from discreet.accounting.calibrate import calibrate

            return read_scale("sigma", calibrate(make_event, epsilon=loss, delta=probability("delta", chance), by=by))
    raise BadParameter(
        f"sigma is {sigma!r}, epsilon is {epsilon!r} and delta is {delta!r}; the noise must be given in one way. "
        "Give sigma alone, or epsilon and delta."
    )


def _quantile(sigma: Fraction, confidence: Number, joint: int) -> float:
    """The t with Pr[|N(0, sigma²)| ≤ t]^joint = confidence, rounded up slightly."""
    failure = read_failure(confidence)
    each = -expm1(log1p(-failure) / whole("joint", joint, least=1))
    return -float(sigma) * NormalDist().inv_cdf(each / 2) * (1 + 1e-12)


def _rounded_mass(sigma: Fraction) -> "Callable[[int], arb]":
    def mass(k: int) -> "arb":
        from discreet.noise.law import gaussian_mass

        return gaussian_mass(k, sigma)

    return mass


def _discrete_mass(sigma: Fraction) -> "Callable[[int], arb]":
    total: list[arb] = []

    def mass(k: int) -> "arb":
        from discreet.noise.law import discrete_gaussian_mass, discrete_gaussian_total

        if not total:
            total.append(discrete_gaussian_total(sigma))
        return discrete_gaussian_mass(k, sigma, total[0])

    return mass


def _windowed_law(
    values: Sequence[Any], beside: Sequence[Sequence[Any]], sigma: Fraction, mass: "Callable[[int], arb]"
) -> Law:
    """Every outcome within `REACH` sigmas of a true value; the rest is what is missing to one."""
    known: dict[int, arb] = {}

    def axis(value: int, low: int, high: int) -> "tuple[Mapping[Any, arb], arb]":
        from flint import arb

        reach = ceil(REACH * sigma) + 1
        require_few_outcomes(high - low + 2 * reach + 1)
        masses: dict[int, arb] = {}
        for y in range(low - reach, high + reach + 1):
            away = abs(y - value)
            if away not in known:
                known[away] = mass(away)
            masses[y] = known[away]
        return masses, 1 - sum(masses.values(), arb(0))

    return independent_law(values, beside, axis)


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
        raise BadParameter("stretches is empty; it must have a pair (sigma, size) for each residual. Give one.")
    sized = tuple((read_scale("sigma", sigma), whole("size", size, least=1)) for sigma, size in stretches)

    def release(exact: Exact) -> NDArray[np.int64]:
        values = unseal(exact, _as_declared(exact, calibrated), stretches=sized)
        draws: NDArray[np.int64] = np.concatenate([noise.rounded_gaussian(sigma, size=size) for sigma, size in sized])
        return values + draws

    def error(confidence: Number, *, joint: int = 1) -> float:
        return gaussian_half_width(max(sigma for sigma, _ in sized), confidence, joint=joint)

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

    from discreet.numeric import precision

    ends = [0, *accumulate(size for _, size in sized)]
    if ends[-1] != len(values):
        raise BadParameter(f"there are {len(values)} values and the stretches hold {ends[-1]}; give one for each.")
    with precision(LAW_BITS):
        joint: dict[Any, arb] = {(): arb(1)}
        rest = arb(0)
        for (sigma, _), (begin, end) in zip(sized, pairwise(ends), strict=True):
            part = gaussian(sigma=sigma, sensitivity=1).law(values[begin:end], [other[begin:end] for other in beside])
            require_few_outcomes(len(joint) * len(part.probabilities))
            joint = {a + b: p * q for a, p in joint.items() for b, q in part.probabilities.items()}
            rest += part.rest
        return Law(joint, rest)
