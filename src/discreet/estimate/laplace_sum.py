"""Confidence intervals for weighted sums of discrete Laplace noises: half-widths that are never too small.

The moment generating function of a sum is a product of closed forms. Its tail is an integral of that product along a
vertical line in the complex plane (`contour.py`); the trapezoidal rule on that line gives the tail *plus* positive
terms, so the result is a bound. For a very large number of noises Chernoff's bound is used, which is quick and
coarser. Proofs, and how tight the bounds are: tail.md
"""

from fractions import Fraction
from math import ceil, exp, gcd, inf, log, log1p, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.estimate.contour import (
    EXACT,
    LEADING,
    NEAR_ENOUGH,
    Inversion,
    LaplaceTerms,
    line_for,
    on_integers,
    reach_of,
    smoothed,
)
from discreet.numeric import LARGEST_PARAMETER, SMALLEST_PARAMETER, Number, probability, rational
from discreet.types import Floats

# The number of places at which the bound is tried; fewer where there are many terms, so that the work is constant.
_PLACES, _FEWEST, _WORK = 200, 20, 2**22


def chernoff_half_width(weights: Floats, scales: Floats, counts: NDArray[np.generic], *, failure: float) -> float:
    """A half-width of every sum of noises with weights up to these: (log E e^(sX) + log 2/failure)/s.

    It holds for each s for which the moment exists, so for the best of a fixed list.

    >>> round(chernoff_half_width(np.ones(1), np.full(1, 10.0), np.array([100]), failure=0.05))  # exactly: 277
    387

    proof: tail.md, Many weights at once
    """
    some = weights > 0
    if not some.any():
        return 0.0
    weights, scales, counts = weights[some], scales[some], counts[some]
    spread = 2 * np.exp(-1 / scales) / np.expm1(-1 / scales) ** 2
    found = inf
    for share in np.geomspace(1e-6, 0.999, max(_FEWEST, min(_PLACES, _WORK // weights.size))).tolist():
        s = share / float((scales * weights).max())
        # cosh x − 1, without losing what is small.
        moments = -np.log1p(-spread * 2 * np.sinh(weights * s / 2) ** 2)
        found = min(found, (float(counts @ moments) + log(2 / failure)) / s)
    return found


# The largest weight on the integers.
_LARGEST_WEIGHT = 2.0**20
# Noises that are not 0 with at most this part of the allowed failure probability, all together, are left out.
_RARE = 1e-3
# The most factors computed for a half-width, in a quarter of a second; sums that need more get a coarser bound.
MOST_FACTORS = 2**22


def laplace_sum_half_width(
    coefficients: Floats,
    scales: Floats,
    counts: NDArray[np.int64] | None = None,
    *,
    confidence: Number,
    most: int = MOST_FACTORS,
) -> float:
    """The t with Pr[|Σ c_i X_i| ≤ t] ≥ confidence, the X_i independent with Pr[X_i = k] ∝ exp(−|k|/b_i).

    If all c_i are multiples of one number, as whole numbers are, it is the smallest such t. Otherwise, or for few terms
    with a t of many thousand times that number, it is above by at most 1 %, or by 1 % of a standard deviation; unless
    that takes more than `most` factors, which happens where large noises are rare: then it is wider.

    where c are the `coefficients`, b the `scales`, and `counts` says how many terms share each pair, by default one.

    >>> laplace_sum_half_width(np.array([1.0]), np.array([10.0]), confidence=0.95)
    30.0
    >>> laplace_sum_half_width(np.array([1.0, 2.0]), np.array([10.0, 10.0]), np.array([50, 7]), confidence=0.95)
    245.0

    proof: tail.md
    """
    failure = float(1 - probability("confidence", confidence, next_step="Give one, say 0.95."))
    terms = read_terms(coefficients, scales, counts)
    if float(terms.moving().sum()) <= failure:
        return 0.0
    unit, whole = on_common_unit(terms)
    if whole and whole.counts.sum() == 1:
        # Pr[|X| > t] = 2 a^(t+1)/(1 + a); a tie goes to the wider.
        scale = float(whole.scales[0])
        width = (log(2) - log1p(exp(-1 / scale)) - log(failure)) * scale
        return times(max(0, ceil(width * (1 + 1e-12)) - 1), unit)
    line = line_for(whole, EXACT, target=log(failure / 2)) if whole else None
    if whole and line and (found := on_integers(whole, line, most)):
        return times(smallest(found, log(failure / 2), 1.0, line.place) - 1, unit)
    width = near_half_width(terms, failure, most)
    return times(int(width / unit * (1 + 1e-12)), unit) if whole else width


def near_half_width(terms: LaplaceTerms, failure: float, most: int) -> float:
    """A half-width of any sum, with at most `most` factors computed; if these do not suffice, by a coarser bound."""
    width, done = smoothed_half_width(*without_rare(terms, failure, _RARE), most)
    if done:
        return width
    # Rare large steps beside frequent small ones: no line is close to the saddlepoints of both.
    apart, _ = smoothed_half_width(*without_rare(terms, failure, 0.5), most)
    return min(width, apart, chernoff_half_width(*terms, failure=failure))


def without_rare(terms: LaplaceTerms, failure: float, share: float) -> tuple[LaplaceTerms, float]:
    """The terms without those that are hardly ever not 0, and the failure probability left for the others."""
    moving = terms.moving()
    order = np.argsort(moving, kind="stable")
    rare = np.cumsum(moving[order]) <= share * failure
    kept = np.sort(order[~rare])
    return LaplaceTerms(*(each[kept] for each in terms)), failure - float(moving[order][rare].sum()) * (1 + 1e-9)


def smoothed_half_width(terms: LaplaceTerms, failure: float, most: int) -> tuple[float, bool]:
    """The best half-width by smoothing with at most `most` factors, and whether it is as tight as it should be."""
    line = line_for(terms, NEAR_ENOUGH, target=log(failure / 2))
    best, width, reach = inf, line.place, inf
    while reach > 1.05 * (nearer := reach_of(terms, width)):  # the line expected a half-width that was too wide
        reach = nearer
        found = smoothed(terms, line, reach, most)
        if found is None:
            return best, False
        steps = smallest(found, log(failure / 2), reach / 8, width)
        best = width = (steps / 8 + 1) * reach * (1 + 1e-12)
    return best, True


def tail(coefficients: Floats, scales: Floats, counts: NDArray[np.int64] | None = None, *, beyond: float) -> float:
    """An upper bound on Pr[|Σ c_i X_i| > beyond], the X_i independent with Pr[X_i = k] ∝ exp(−|k|/b_i).

    Where `laplace_sum_half_width` is exact so is this, to six digits. Otherwise it lies between the probability and
    1.01 times the probability at a `beyond` that is smaller by 1 %, or by 1 % of a standard deviation.

    >>> round(tail(np.array([1.0, 1.0]), np.array([10.0, 10.0]), beyond=50), 6)
    0.022559

    proof: tail.md
    """
    place = float(rational("beyond", beyond, next_step="Give a half-width, say 10."))
    terms = read_terms(coefficients, scales, counts)
    if place < 0 or not terms.counts.size:
        return float(place < 0)
    unit, whole = on_common_unit(terms)
    # fmod is exact: a sum that equals `beyond` is not beyond it.
    step = round((place - float(np.fmod(place, unit))) / unit) + 1
    if whole and whole.counts.sum() == 1:
        rate = 1 / float(whole.scales[0])
        return 2 * exp(-step * rate) / (1 + exp(-rate))
    found, y = on_integers(whole, line_for(whole, EXACT, y=step)) if whole else None, float(step)
    if not found:
        reach = reach_of(terms, place)
        y = max(0.0, place * (1 - 1e-12) - reach)
        found = smoothed(terms, line_for(terms, NEAR_ENOUGH, y=y), reach)
    assert found is not None, "as many factors as it takes"
    return min(1.0, float(terms.moving().sum()), 2 * exp(min(0.0, found.log_tail(y))))


def read_terms(coefficients: Any, scales: Any, counts: Any) -> LaplaceTerms:
    """The terms that are not zero, equal ones together, the widest first."""
    weights = np.abs(read_array("coefficients", coefficients, 0.0, signed=True))
    widths = read_array("scales", scales, float(SMALLEST_PARAMETER))
    times = np.ones(weights.size) if counts is None else read_array("counts", counts, 0.0)
    if not weights.size == widths.size == times.size:
        sizes = f"{weights.size} coefficients, {widths.size} scales and {times.size} counts"
        raise BadParameter(
            f"there are {sizes}; the three must have one length. Give one scale and one count to each coefficient."
        )
    if np.any(times != np.rint(times)):
        raise BadParameter(f"counts has {times[times != np.rint(times)][0]}; it must hold whole numbers. Give ints.")
    kept = (weights > 0) & (times > 0)
    return merged(weights[kept], widths[kept], times[kept])


def read_array(name: str, values: Any, least: float, *, signed: bool = False) -> Floats:
    """A list of at least one number, all of them in range."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise BadParameter(f"{name} has shape {array.shape}; it must be a list of at least one number. Give one each.")
    size = np.abs(array) if signed else array
    wrong = ~((size >= least) & (size <= float(LARGEST_PARAMETER)))
    if wrong.any():
        rule = f"between {-float(LARGEST_PARAMETER) if signed else least:g} and {float(LARGEST_PARAMETER):g}"
        raise BadParameter(f"{name} has {array[wrong][0]}; it must hold numbers {rule}. Check how it was computed.")
    return array


def merged(weights: Floats, widths: Floats, times: Floats) -> LaplaceTerms:
    """Exactly equal terms together, the widest first; after the very widest, the rest well mixed."""
    if not weights.size or (np.all(weights == weights[0]) and np.all(widths == widths[0])):
        return LaplaceTerms(weights[:1], widths[:1], np.array([times.sum()])[: weights.size])
    product = weights * widths
    order = np.argsort(-product, kind="stable")
    if np.any((np.diff(product[order]) == 0) & (np.diff(weights[order]) != 0)):
        order = np.lexsort((weights, -product))
    weights, widths, times = weights[order], widths[order], times[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(weights) != 0) | (np.diff(widths) != 0)])
    counts = np.add.reduceat(times, starts)
    if starts.size > 2 * LEADING:
        # The widest terms are often of nearly one weight. A few of the others say more about where φ is small.
        rest = starts[LEADING:]
        stride = next(step for step in range(int(0.618 * rest.size), 0, -1) if gcd(step, rest.size) == 1)
        order = np.r_[:LEADING, LEADING + np.arange(rest.size) * stride % rest.size]
        starts, counts = starts[order], counts[order]
    return LaplaceTerms(weights[starts], widths[starts], counts)


def on_common_unit(terms: LaplaceTerms) -> tuple[float, LaplaceTerms | None]:
    """The largest common divisor of all weights, and the terms divided by it; 1 and None if there is none."""
    unit, largest = float(terms.coefficients[0]), float(terms.coefficients.max())
    for rest in (terms.coefficients[:8], terms.coefficients):  # a few mostly show that there is none
        while rest.size:
            rest = np.fmod(rest, unit)  # Euclid's algorithm, and fmod is exact
            rest = np.append(rest[rest > 0], unit) if rest.any() else rest[:0]
            unit = float(rest.min(initial=unit))
            if unit * _LARGEST_WEIGHT < largest:
                return 1.0, None
    return unit, terms._replace(coefficients=np.rint(terms.coefficients / unit))


def times(steps: int, unit: float) -> float:
    """steps · unit, rounded up if at all."""
    product = steps * unit
    return product if Fraction(product) >= steps * Fraction(unit) else nextafter(product, inf)


def smallest(found: Inversion, target: float, pitch: float, guess: float) -> int:
    """The smallest k ≥ 1 with the tail at k · pitch of at most e^target, by secants from both sides."""
    low, over, high, under, at = 0, 0.0, 0, 0.0, max(1, round(guess / pitch))
    for attempt in range(10_000):
        excess = found.log_tail(at * pitch) - target
        low, over, high, under = (at, excess, high, under) if excess > 0 else (low, over, at, excess)
        if high and high - low == 1:
            return high
        if high and attempt > 8:
            at = (low + high) // 2
        else:
            slope = (over - under) / (high - low) if low and high else found.shift * pitch
            at = max(low + 1, at + ceil(min(excess / slope, 2.0**40)))
            at = min(at, high - 1) if high else at
    raise BadParameter(
        "the tail does not fall below 1 − confidence: there are too many terms. Ask with less confidence."
    )
