"""The Laplace mechanism on integers, and the histogram: all cells in one joint release."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, exp, expm1, log, log1p
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.accounting import event
from discreet.accounting.sensitivity import Sensitivity, histogram_sensitivity, read_sensitivity, scalar_sensitivity
from discreet.mechanism.calibration import opened
from discreet.mechanism.independent import independent_law, require_few_outcomes
from discreet.mechanism.protocol import Law, Mechanism
from discreet.noise.sample import read_scale
from discreet.numeric import Number, positive, read_failure, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb


def laplace(*, epsilon: Number, sensitivity: Sensitivity | Number) -> Mechanism[NDArray[np.int64]]:
    """Add discrete Laplace noise to each of a vector of integers.

    Releases v + (X_1, …, X_d), with X_i independent and Pr[X_i = k] = (1 − a)/(1 + a) · a^|k|, a = exp(−e/s).
    It is e-DP, and for no smaller e if two neighbours are at distance s.

    where e is `epsilon`, s the L1 sensitivity and v the exact vector.

    `error(confidence)` is the smallest t with Pr[|X_i| ≤ t] ≥ confidence; `error(confidence, joint=d)` holds for d
    values at once.

    >>> counts = laplace(epsilon=0.1, sensitivity=1)
    >>> counts.event
    Laplace(scale=Fraction(10, 1), sensitivity=Fraction(1, 1))
    >>> counts.error(0.95), counts.error(0.95, joint=100)
    (30.0, 76.0)

    [DMNS06; 000 Prop. 8; 003 Thm. 2; 004 Alg. 1], discrete: [GRS12]; proof: laplace.md
    """
    loss = positive("epsilon", epsilon)
    calibrated = read_sensitivity(sensitivity, "l1")
    scale = read_scale("scale", calibrated.l1 / loss)

    def release(exact: Exact) -> NDArray[np.int64]:
        values = opened(exact, calibrated, "l1")
        return values + noise.discrete_laplace(scale, size=values.size)

    def error(confidence: Number, *, joint: int = 1) -> float:
        return laplace_half_width(scale, confidence, joint=joint)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return laplace_law(values, beside, scale)

    return Mechanism(event.Laplace(scale, calibrated.l1), release, error, law)


def laplace_half_width(scale: Fraction, confidence: Number, *, joint: int = 1) -> float:
    """The smallest t that holds all of `joint` independent discrete Laplace draws with this probability.

    >>> laplace_half_width(Fraction(10), 0.95)
    30.0
    """
    failure = read_failure(confidence)
    each = -expm1(log1p(-failure) / whole("joint", joint, least=1))
    rate = float(1 / scale)
    # Pr[|X| > t] = 2 a^(t+1)/(1 + a) ≤ each. Rounded so that a tie goes to the wider error.
    steps = (log(2) - log1p(exp(-rate)) - log(each)) / rate
    return float(max(0, ceil(steps * (1 + 1e-12)) - 1))


def union_half_width(scale: Fraction, confidence: Number, *, joint: int = 1) -> float:
    """The lectures' bound for k values at once, s·ln(k/β) (003 Thm. 2), rounded up to the grid of the integers.

    >>> union_half_width(Fraction(10), 0.95, joint=100)
    77.0
    """
    failure = read_failure(confidence)
    return float(ceil(float(scale) * log(whole("joint", joint, least=1) / failure)))


def laplace_law(values: Sequence[Any], beside: Sequence[Sequence[Any]], scale: Fraction) -> Law:
    """The law of integers plus discrete Laplace noise, clamped where clamping loses nothing.

    Beside other tables, each coordinate is clamped between the lowest and the highest true value: beyond them the
    likelihood ratio is constant, so clamping changes no divergence (laplace.md, Lemma 2). Alone,
    it is clamped where less than 2^−64 lies beyond.
    """

    def axis(value: int, low: int, high: int) -> "tuple[Mapping[Any, arb], arb]":
        reach = 0 if beside else ceil(45 * scale) + 1
        return clamped(value, low - reach, high + reach, scale)

    return independent_law(values, beside, axis)


def clamped(value: int, low: int, high: int, scale: Fraction) -> "tuple[dict[Any, arb], arb]":
    """Pr[clamp(value + X, low, high) = y] for each y: complete, so nothing is left over."""
    from flint import arb

    from discreet.noise.law import laplace_mass, laplace_tail

    if low == high:
        return {low: arb(1)}, arb(0)
    require_few_outcomes(high - low + 1)
    masses = {y: laplace_mass(y - value, scale) for y in range(low + 1, high)}
    return {low: laplace_tail(value - low, scale), **masses, high: laplace_tail(high - value, scale)}, arb(0)


def histogram(*, epsilon: Number, cells: int, unit: Unit) -> Mechanism[NDArray[np.int64]]:
    """Count the rows of every cell, with noise that does not grow with the number of cells.

    Releases (n_1 + X_1, …, n_d + X_d), with X_i ~ Lap(s/e) independent and discrete. It is e-DP.

    where e is `epsilon`, d is `cells`, n_i the rows in cell i, and s is 1 for `add_remove` and 2 for `replace_one`,
    times the rows of a person: each row is in one cell, so it cannot move more than that.

    >>> histogram(epsilon=1, cells=1000, unit=Unit()).event
    Laplace(scale=Fraction(1, 1), sensitivity=Fraction(1, 1))
    >>> histogram(epsilon=1, cells=1000, unit=Unit(neighbors="replace_one")).event
    Laplace(scale=Fraction(2, 1), sensitivity=Fraction(2, 1))

    [DMNS06; 002 Ex. 1.5]; proof: histogram.md
    """
    return laplace(epsilon=epsilon, sensitivity=histogram_sensitivity(whole("cells", cells, least=1), unit))


def split_scale(*, epsilon: Number, cells: int, unit: Unit) -> Fraction:
    """The noise that the same histogram would need as d separate counts, each with a d-th of the budget: d s₁/e.

    Against the joint release this loses a factor d/2 for `replace_one` (002 Ex. 1.5) and d for `add_remove`.

    >>> unit = Unit(neighbors="replace_one")
    >>> split_scale(epsilon=1, cells=1000, unit=unit) / histogram(epsilon=1, cells=1000, unit=unit).event.scale
    Fraction(500, 1)
    """
    return whole("cells", cells, least=1) * scalar_sensitivity(0, 1, unit).l1 / positive("epsilon", epsilon)
