"""How far a weighted sum of discrete Laplace noises strays: computed from its transform, and never too small.

The moment generating function of a sum is a product of closed forms. Its tail is an integral of that product along a
vertical line in the complex plane, and the trapezoidal rule on that line gives the tail *plus* positive terms. So what
is computed is a bound; tail.md says why, and how near it is.
"""

from fractions import Fraction
from math import ceil, exp, gcd, inf, log, log1p, log10, nextafter, pi, sinh, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.parameter import LARGEST, SMALLEST, Number, probability, rational

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# What the next period, and all nodes that are left out, may add, relative to the result: on the integers, where the
# answer is exact, and elsewhere.
_EXACT, _NEAR = 1e-9, 1e-5
# Errors of rounding: of an exponent, of a sum relative to its largest term, and of a phase relative to itself.
_ROUNDING = 1e-11, 1e-14, 4e-16
# A sum that lives on no lattice is smoothed over ± this part of its half-width, with a window of this shape.
_SMOOTHING, _SHAPE = 0.0045, 14.0
# The largest weight on the integers, the most factors computed at every node, and the most ranges of nodes looked at.
_LARGEST_WEIGHT, _FEW, _MOST = 2.0**20, 16_384, 1_024
# How many of the widest terms choose the line; and the blocks of terms between which small nodes are dropped.
_LEADING, _BLOCKS = 16, (0, 4, 32, 64, 128, 256, 512, 1024, 2048)


class Terms(NamedTuple):
    """Independent noises c · X, X discrete Laplace of scale b, each so many times; the widest come first."""

    coefficients: Floats
    scales: Floats
    counts: Floats

    def part(self, start: int, stop: int | None) -> "Terms":
        """Some of them."""
        return Terms(self.coefficients[start:stop], self.scales[start:stop], self.counts[start:stop])

    def variance(self) -> float:
        """Σ n c² 2a/(1 − a)²."""
        spread = np.exp(-1 / self.scales) / np.expm1(-1 / self.scales) ** 2
        return 2 * float(self.counts @ (self.coefficients**2 * spread))

    def moved(self) -> float:
        """A bound on the probability that any X is not 0: Σ n 2a/(1 + a)."""
        return 2 * float(self.counts @ (1 / (1 + np.exp(np.minimum(1 / self.scales, 700.0)))))


class Line(NamedTuple):
    """Where to integrate: along s + iu, in steps of 2π/period, for the tail at about `near`."""

    shift: float
    period: float
    near: float


class Inversion(NamedTuple):
    """e^(exponent − s y) (first + 2 Re Σ w_j e^(−i u_j y)): a bound on the upper tail at every y."""

    shift: float
    exponent: float
    first: float
    nodes: Floats
    weights: Complexes
    slack: float

    def log_tail(self, y: float) -> float:
        """The logarithm of the bound at y."""
        angle = self.nodes * y
        waves = float(self.weights.real @ np.cos(angle) + self.weights.imag @ np.sin(angle))
        total = self.first + 2 * waves + self.slack * y
        return self.exponent - self.shift * y + (log(total) if total > 0 else inf)


def half_width(
    coefficients: Floats, scales: Floats, counts: NDArray[np.int64] | None = None, *, confidence: Number
) -> float:
    """The t with Pr[|Σ c_i X_i| ≤ t] ≥ confidence, the X_i independent with Pr[X_i = k] ∝ exp(−|k|/b_i).

    If all c_i are multiples of one number, as whole numbers are, it is the smallest such t. Otherwise, or for few terms
    with a t of many thousand times that number, it is above by at most 1 %, or by 1 % of a standard deviation.

    where c are the `coefficients`, b the `scales`, and `counts` says how many terms share each pair, by default one.

    >>> half_width(np.array([1.0]), np.array([10.0]), confidence=0.95)
    30.0
    >>> half_width(np.array([1.0, 2.0]), np.array([10.0, 10.0]), np.array([50, 7]), confidence=0.95)
    245.0

    proof: tail.md
    """
    failure = float(1 - probability("confidence", confidence, next_step="Give one, say 0.95."))
    terms = read_terms(coefficients, scales, counts)
    if terms.moved() <= failure:
        return 0.0
    unit, whole = on_common_unit(terms)
    if whole and whole.counts.sum() == 1:
        # Pr[|X| > t] = 2 a^(t+1)/(1 + a); a tie goes to the wider.
        scale = float(whole.scales[0])
        width = (log(2) - log1p(exp(-1 / scale)) - log(failure)) * scale
        return times(max(0, ceil(width * (1 + 1e-12)) - 1), unit)
    line = line_for(whole, _EXACT, target=log(failure / 2)) if whole else None
    if whole and line and (found := on_integers(whole, line)):
        return times(smallest(found, log(failure / 2), 1.0, line.near) - 1, unit)
    line = line_for(terms, _NEAR, target=log(failure / 2))
    width, reach = line.near, inf
    while reach > 1.05 * (nearer := reach_of(terms, width)):  # the line expected a half-width that was too wide
        reach = nearer
        steps = smallest(smoothed(terms, line, reach), log(failure / 2), reach / 8, width)
        width = (steps / 8 + 1) * reach * (1 + 1e-12)
    return times(int(width / unit * (1 + 1e-12)), unit) if whole else width


def tail(coefficients: Floats, scales: Floats, counts: NDArray[np.int64] | None = None, *, beyond: float) -> float:
    """An upper bound on Pr[|Σ c_i X_i| > beyond], the X_i independent with Pr[X_i = k] ∝ exp(−|k|/b_i).

    Where `half_width` is exact so is this, to six digits. Otherwise it lies between the value, and 1.01 times the value
    at a place that is nearer by 1 %, or by 1 % of a standard deviation. The rest is as in `half_width`.

    >>> round(tail(np.array([1.0, 1.0]), np.array([10.0, 10.0]), beyond=50), 6)
    0.022559

    proof: tail.md
    """
    place = float(rational("beyond", beyond, next_step="Give a half-width, say 10."))
    terms = read_terms(coefficients, scales, counts)
    if place < 0 or not terms.counts.size:
        return float(place < 0)
    unit, whole = on_common_unit(terms)
    # fmod is exact: a sum that stands exactly at `beyond` is not beyond it.
    step = round((place - float(np.fmod(place, unit))) / unit) + 1
    if whole and whole.counts.sum() == 1:
        rate = 1 / float(whole.scales[0])
        return 2 * exp(-step * rate) / (1 + exp(-rate))
    found, y = on_integers(whole, line_for(whole, _EXACT, y=step)) if whole else None, float(step)
    if not found:
        reach = reach_of(terms, place)
        y = max(0.0, place * (1 - 1e-12) - reach)
        found = smoothed(terms, line_for(terms, _NEAR, y=y), reach)
    return min(1.0, terms.moved(), 2 * exp(min(0.0, found.log_tail(y))))


def read_terms(coefficients: Any, scales: Any, counts: Any) -> Terms:
    """The terms that are not zero, equal ones together, the widest first."""
    weights = np.abs(read_array("coefficients", coefficients, 0.0, signed=True))
    widths = read_array("scales", scales, float(SMALLEST))
    times = np.ones(weights.size) if counts is None else read_array("counts", counts, 0.0)
    if not weights.size == widths.size == times.size:
        sizes = f"{weights.size} coefficients, {widths.size} scales and {times.size} counts"
        raise BadParameter(
            f"there are {sizes}; they must be as many. Give one scale and one count to each coefficient."
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
    wrong = ~((size >= least) & (size <= float(LARGEST)))
    if wrong.any():
        rule = f"between {-float(LARGEST) if signed else least:g} and {float(LARGEST):g}"
        raise BadParameter(f"{name} has {array[wrong][0]}; it must hold numbers {rule}. Check how it was computed.")
    return array


def merged(weights: Floats, widths: Floats, times: Floats) -> Terms:
    """Exactly equal terms together, the widest first; after the very widest, the rest well mixed."""
    if not weights.size or (np.all(weights == weights[0]) and np.all(widths == widths[0])):
        return Terms(weights[:1], widths[:1], np.array([times.sum()])[: weights.size])
    product = weights * widths
    order = np.argsort(-product, kind="stable")
    if np.any((np.diff(product[order]) == 0) & (np.diff(weights[order]) != 0)):
        order = np.lexsort((weights, -product))
    weights, widths, times = weights[order], widths[order], times[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(weights) != 0) | (np.diff(widths) != 0)])
    counts = np.add.reduceat(times, starts)
    if starts.size > 2 * _LEADING:
        # The widest terms are often of nearly one weight. A few of the others say more about where φ is small.
        rest = starts[_LEADING:]
        stride = next(step for step in range(int(0.618 * rest.size), 0, -1) if gcd(step, rest.size) == 1)
        order = np.r_[:_LEADING, _LEADING + np.arange(rest.size) * stride % rest.size]
        starts, counts = starts[order], counts[order]
    return Terms(weights[starts], widths[starts], counts)


def on_common_unit(terms: Terms) -> tuple[float, Terms | None]:
    """The largest number of which all weights are exact multiples, and the terms as these multiples; or 1 and None."""
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


def reach_of(terms: Terms, near: float) -> float:
    """How far the smoothing may move a sum: twice this is the price in half-width."""
    return max(_SMOOTHING * near, sqrt(terms.variance()) / 250, 1e-6 * float(terms.coefficients.max()))


def tilted(terms: Terms, shift: Any) -> tuple[Floats, Floats, Floats]:
    """log φ(s) of each term, φ(z) = E e^(z c X), and E, F with φ(s)/φ(s + iu) = 1 + E(1 − cos cu) − iF sin cu.

    For s below 1/(b c), and written so that nothing overflows.
    """
    part = terms.coefficients * shift
    lead = np.exp(part - 1 / terms.scales) / np.expm1(-1 / terms.scales) ** 2
    gone, growth = np.exp(-2 * part), lead * np.expm1(-part) ** 2
    below = lead / (1 - growth)
    return -np.log1p(-growth), below * (1 + gone), below * (1 - gone)


def line_for(terms: Terms, alias: float, *, target: float = inf, y: float = 0.0) -> Line:
    """A line near the saddlepoint for the place where the tail is about e^target, or, without a target, for y.

    By Chernoff's bound, the tails one period away add at most `alias`. Here a few of the terms stand for most.
    """
    variance, some = max(terms.variance(), 1e-300), terms.part(0, 2 * _LEADING)
    counts, sample = some.counts.copy(), terms.part(_LEADING, 2 * _LEADING).variance()
    counts[_LEADING:] *= 1 + (variance - some.variance()) / max(sample, 1e-300)
    gaussian = sqrt(-2 * min(target, -2.3) / variance) if target < inf else max(y / variance, variance**-0.5)
    shifts = min(2.5 * gaussian, 1 / float(some.coefficients[0] * some.scales[0])) * (np.arange(64) + 0.5) / 64
    logarithms, even, odd = tilted(some, shifts[:, None])
    logarithm, mean = logarithms @ counts, odd @ (counts * some.coefficients)
    width = shifts * np.sqrt((even + odd**2) @ (counts * some.coefficients**2))
    # The saddlepoint approximation, with a bound on Mills' ratio.
    tails = logarithm - shifts * mean + np.log(4 / (3 * width + np.sqrt(width**2 + 8)) / sqrt(2 * pi))
    if target < inf:
        place, y = int(np.searchsorted(-tails, -min(target, -2.3))), float(np.interp(-target, -tails, mean))
    else:
        place, target = int(np.searchsorted(mean, max(y, sqrt(variance)))), float(np.interp(y, mean, tails))
    place = min(place, 62)
    allowed, chernoff = -log(alias) - target, logarithm - shifts * y
    first = max(place // 3, int(np.argmax(chernoff <= chernoff[place] + 2)))  # further away, terms would cancel
    outer = (chernoff + allowed)[:, None] / np.maximum(shifts[:, None] - shifts[first : place + 1], 1e-300)
    outer[shifts[:, None] <= shifts[first : place + 1]] = inf
    periods = np.maximum(allowed / shifts[first : place + 1], outer.min(axis=0))
    return Line(float(shifts[first + periods.argmin()]), float(periods.min()), y)


def on_integers(terms: Terms, line: Line) -> Inversion | None:
    """The tail Pr[X ≥ k] of a sum of integers; None where too many nodes matter.

    It is the coefficient of e^(−zk) in E e^(zX)/(1 − e^(−z)), a function of period 2πi.
    """
    period = 2 * ceil(max(line.period, 64.0) / 2) + 1  # with little noise the saddlepoint says little
    nodes = candidates(terms, line.shift, 2 * pi / period, period // 2, _EXACT)
    if nodes is None:
        return None
    places, rest = nodes
    turns = 2 * pi * places / period
    first = -1 / float(np.expm1(-line.shift))
    kernel = -1 / np.expm1(-(line.shift + 1j * turns))
    return inverted(terms, line._replace(period=period), first, Nodes(turns, kernel, rest * first), _EXACT)


def smoothed(terms: Terms, line: Line, reach: float) -> Inversion:
    """The tail Pr[X + S > y], where S is independent and |S| ≤ reach: it has a density, and a transform that ends.

    S has Kaiser's window as its density, and E e^(zS) = (A/sinh A) sinh(w)/w with w² = A² + (reach z)².
    """
    step, shift = 2 * pi / line.period, line.shift
    last = ceil(1.15 * sqrt(_SHAPE**2 + (reach * shift) ** 2) / (reach * step))
    first = float(window(shift, reach).real) / shift
    nodes = candidates(terms, shift, step, last, _NEAR)
    places, rest = nodes if nodes else (np.arange(1.0, last + 1), 0.0)
    points = shift + 1j * step * places
    rest = rest * first + beyond_last(step, last, reach, shift)
    return inverted(terms, line, first, Nodes(step * places, window(points, reach) / points, rest), _NEAR)


def window(points: Any, reach: float) -> Any:
    """E e^(zS) of the smoothing S."""
    root = np.sqrt(_SHAPE**2 + (reach * points) ** 2)
    return (_SHAPE / sinh(_SHAPE)) * np.sinh(root) / root


def beyond_last(step: float, last: int, reach: float, shift: float) -> float:
    """A bound on Σ |E e^(zS)/z| over the nodes after the last: both fall like 1/u there (tail.md, Lemma 4)."""
    left = sqrt(1 - (_SHAPE**2 + (reach * shift) ** 2) / (reach * step * last) ** 2)
    height = _SHAPE / sinh(_SHAPE) * np.cosh(reach * shift / left) / (left * reach)
    return float(height / (step**2 * last))


def candidates(terms: Terms, shift: float, step: float, last: int, allowed: float) -> tuple[Floats, float] | None:
    """The nodes among 1 … last that may matter, and a bound on all others, relative to the node 0.

    On a range |φ(s)/φ(s + iu)| ≥ 1 + E min(1 − cos cu). If that makes it small it is dropped, else cut in four.
    """
    if last * terms.counts.size <= _FEW or last > 2.0**50:
        return (np.arange(1.0, last + 1), 0.0) if last <= _FEW else None
    some = terms.part(0, 2 * _LEADING)
    even = tilted(some, shift)[1]
    low = 2.0 ** np.arange(0, int(np.log2(last)) + 1)
    high = np.minimum(2 * low - 1, last)
    kept, rest, amount = [np.empty(0)], 0.0, 0
    while low.size:
        from_, to = (np.multiply.outer(ends, some.coefficients * (step / 2)) for ends in (low, high))
        crossed = np.floor(from_ / pi) < np.floor(to / pi)
        least = np.where(crossed, 0.0, np.minimum(np.sin(from_) ** 2, np.sin(to) ** 2))
        bound = (high - low + 1) * np.exp(-(np.log1p(2 * even * least) @ some.counts))
        large = bound > allowed / 1000
        rest += float(bound[~large].sum())
        low, high, amount = low[large], high[large], amount + int(large.sum())
        if amount > _MOST:
            return None
        short = high - low < 16
        each = low[short][:, None] + np.arange(16)
        kept.append(each[each <= high[short][:, None]])
        low, high = low[~short], high[~short]
        starts = low + np.floor((high - low + 1) / 4) * np.arange(4.0)[:, None]
        low, high = starts.ravel(), np.concatenate([starts[1:].ravel() - 1, high])
    return np.concatenate(kept), rest


class Nodes(NamedTuple):
    """Places u on the line, the weight of each, and a bound on the weights of all others."""

    turns: Floats
    weights: Complexes
    rest: float

    def times(self, factors: Complexes, smallest: float) -> "Nodes":
        """With factors multiplied in, and without the nodes that are then too small."""
        weights = self.weights * factors
        size = np.abs(weights)
        large = size > smallest
        return Nodes(self.turns[large], weights[large], self.rest + float(size[~large].sum()))


def inverted(terms: Terms, line: Line, first: float, nodes: Nodes, allowed: float) -> Inversion:
    """Multiply the terms in, block after block: each factor is at most 1, so a node that is small remains so."""
    logarithms, even, odd = tilted(terms, line.shift)
    smallest = allowed * first / max(1, nodes.turns.size)
    ends = [end for end in _BLOCKS if end < terms.counts.size]
    for start, stop in zip(ends, [*ends[1:], None], strict=True):
        factors = shrinking(terms.part(start, stop), even[start:stop], odd[start:stop], nodes.turns)
        nodes = nodes.times(factors, smallest)
    size = np.abs(nodes.weights)
    exponent_error, sum_error, phase_error = _ROUNDING
    first += 2 * nodes.rest + sum_error * (first + 2 * float(size.sum()))
    exponent = float(terms.counts @ logarithms) + exponent_error - log(line.period)
    return Inversion(line.shift, exponent, first, *nodes[:2], slack=2 * phase_error * float(size @ nodes.turns))


def shrinking(terms: Terms, even: Floats, odd: Floats, turns: Floats) -> Complexes:
    """Π φ(s + iu)/φ(s) over the terms, at each u."""
    half = np.multiply.outer(turns / 2, terms.coefficients)
    sine = np.sin(half)
    square = sine * sine
    sine *= np.sqrt(1 - square) if half.max(initial=0.0) < 1.5 else np.cos(half)
    ratio = np.empty(half.shape, dtype=np.complex128)
    np.add(np.multiply(square, 2 * even, out=square), 1, out=ratio.real)
    np.multiply(sine, -2 * odd, out=ratio.imag)
    if np.all(terms.counts == 1):
        # Logarithms are slow: first as many factors together as cannot overflow.
        many = max(1, int(290 / log10(4 * float(even.max()) + 4)))
        ratio = np.multiply.reduceat(ratio, np.arange(0, terms.counts.size, many), axis=1)
    logarithm = np.log(ratio)
    total = logarithm @ terms.counts if logarithm.shape == half.shape else logarithm.sum(axis=1)
    return np.asarray(np.exp(-total), dtype=np.complex128)


def smallest(found: Inversion, target: float, pitch: float, near: float) -> int:
    """The smallest k ≥ 1 with the tail at k · pitch of at most e^target, by secants from both sides."""
    low, over, high, under, at = 0, 0.0, 0, 0.0, max(1, round(near / pitch))
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
    raise BadParameter("the tail does not fall below 1 − confidence; the terms are too many. Ask with less confidence.")
