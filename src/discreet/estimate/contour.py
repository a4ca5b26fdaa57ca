"""Tails of weighted sums of discrete Laplace noises, by integrating their transform along a vertical line.

The trapezoidal rule on that line gives the tail *plus* positive terms, and a bound on the omitted nodes is
added, so the result is an upper bound. Proofs: tail.md.
"""

from math import ceil, inf, log, log10, pi, sinh, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.types import Complexes, Floats

# What the next period, and all omitted nodes, may add, relative to the result: on the integers, where the result is
# exact, and elsewhere.
EXACT, NEAR_ENOUGH = 1e-9, 1e-5
# Errors of rounding: of an exponent, of a sum relative to its largest term, and of a phase relative to itself.
_ROUNDING = 1e-11, 1e-14, 4e-16
# A sum whose weights are not multiples of one number is smoothed over ± this part of its half-width, with a window of
# this shape.
_SMOOTHING, _SHAPE = 0.0045, 14.0
# The most factors computed at every node, and the most ranges of nodes examined.
_FEW, _MOST = 16_384, 1_024
# How many of the widest terms choose the line; and the blocks of terms between which small nodes are dropped.
LEADING, _BLOCKS = 16, (0, 4, 32, 64, 128, 256, 512, 1024, 2048)
# The number of factors computed at a time: about 30 MB.
_AT_ONCE = 2**19


class LaplaceTerms(NamedTuple):
    """Independent noises c · X, X discrete Laplace of scale b, each with its count; the widest come first."""

    coefficients: Floats
    scales: Floats
    counts: Floats

    def part(self, start: int, stop: int | None) -> "LaplaceTerms":
        """Some of them."""
        return LaplaceTerms(self.coefficients[start:stop], self.scales[start:stop], self.counts[start:stop])

    def variance(self) -> float:
        """Σ n c² 2a/(1 − a)²."""
        spread = np.exp(-1 / self.scales) / np.expm1(-1 / self.scales) ** 2
        return 2 * float(self.counts @ (self.coefficients**2 * spread))

    def moving(self) -> Floats:
        """Bounds on the probability that an X of each kind is not 0: n 2a/(1 + a)."""
        return np.asarray(2 * self.counts / (1 + np.exp(np.minimum(1 / self.scales, 700.0))))


class ContourLine(NamedTuple):
    """Where to integrate: along s + iu, in steps of 2π/period, for the tail at about `place`."""

    shift: float
    period: float
    place: float


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


def reach_of(terms: LaplaceTerms, place: float) -> float:
    """The largest distance by which smoothing may move a sum; it widens the half-width by twice as much."""
    return max(_SMOOTHING * place, sqrt(terms.variance()) / 250, 1e-6 * float(terms.coefficients.max()))


def tilted(terms: LaplaceTerms, shift: Any) -> tuple[Floats, Floats, Floats]:
    """log φ(s) of each term, φ(z) = E e^(z c X), and E, F with φ(s)/φ(s + iu) = 1 + E(1 − cos cu) − iF sin cu.

    For s below 1/(b c), and written so that nothing overflows.
    """
    part = terms.coefficients * shift
    lead = np.exp(part - 1 / terms.scales) / np.expm1(-1 / terms.scales) ** 2
    gone, growth = np.exp(-2 * part), lead * np.expm1(-part) ** 2
    below = lead / (1 - growth)
    return -np.log1p(-growth), below * (1 + gone), below * (1 - gone)


def line_for(terms: LaplaceTerms, alias: float, *, target: float = inf, y: float = 0.0) -> ContourLine:
    """A line close to the saddlepoint for the place where the tail is about e^target, or, without a target, for y.

    By Chernoff's bound, the tails one period away add at most `alias`. It is chosen by a few of the terms.
    """
    variance, some = max(terms.variance(), 1e-300), terms.part(0, 2 * LEADING)
    counts, sample = some.counts.copy(), terms.part(LEADING, 2 * LEADING).variance()
    counts[LEADING:] *= 1 + (variance - some.variance()) / max(sample, 1e-300)
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
    return ContourLine(float(shifts[first + periods.argmin()]), float(periods.min()), y)


def on_integers(terms: LaplaceTerms, line: ContourLine, most: float = inf) -> Inversion | None:
    """The tail Pr[X ≥ k] of a sum of integers; None where too many nodes matter, or more than `most` factors.

    It is the coefficient of e^(−zk) in E e^(zX)/(1 − e^(−z)), a function of period 2πi.
    """
    period = 2 * ceil(max(line.period, 64.0) / 2) + 1  # with little noise the saddlepoint says little
    nodes = candidates(terms, line.shift, 2 * pi / period, period // 2, EXACT)
    if nodes is None:
        return None
    places, rest = nodes
    turns = 2 * pi * places / period
    first = -1 / float(np.expm1(-line.shift))
    kernel = -1 / np.expm1(-(line.shift + 1j * turns))
    return inverted(terms, line._replace(period=period), first, Nodes(turns, kernel, rest * first), EXACT, most)


def smoothed(terms: LaplaceTerms, line: ContourLine, reach: float, most: float = inf) -> Inversion | None:
    """The tail Pr[X + S > y], where S is independent and |S| ≤ reach: it has a density, and a transform that ends.

    None if it takes more than `most` factors.

    S has Kaiser's window as its density, and E e^(zS) = (A/sinh A) sinh(w)/w with w² = A² + (reach z)².
    """
    step, shift = 2 * pi / line.period, line.shift
    last = ceil(1.15 * sqrt(_SHAPE**2 + (reach * shift) ** 2) / (reach * step))
    first = float(window(shift, reach).real) / shift
    nodes = candidates(terms, shift, step, last, NEAR_ENOUGH)
    if nodes is None and last > most:
        return None
    places, rest = nodes if nodes else (np.arange(1.0, last + 1), 0.0)
    points = shift + 1j * step * places
    rest = rest * first + beyond_last(step, last, reach, shift)
    return inverted(terms, line, first, Nodes(step * places, window(points, reach) / points, rest), NEAR_ENOUGH, most)


def window(points: Any, reach: float) -> Any:
    """E e^(zS) of the smoothing S."""
    root = np.sqrt(_SHAPE**2 + (reach * points) ** 2)
    return (_SHAPE / sinh(_SHAPE)) * np.sinh(root) / root


def beyond_last(step: float, last: int, reach: float, shift: float) -> float:
    """A bound on Σ |E e^(zS)/z| over the nodes after the last: both fall like 1/u there (tail.md, Lemma 4)."""
    left = sqrt(1 - (_SHAPE**2 + (reach * shift) ** 2) / (reach * step * last) ** 2)
    height = _SHAPE / sinh(_SHAPE) * np.cosh(reach * shift / left) / (left * reach)
    return float(height / (step**2 * last))


def candidates(
    terms: LaplaceTerms, shift: float, step: float, last: int, allowed: float
) -> tuple[Floats, float] | None:
    """The nodes among 1 … last that may matter, and a bound on all others, relative to the node 0.

    On a range |φ(s)/φ(s + iu)| ≥ 1 + E min(1 − cos cu). If that makes it small it is dropped, else cut in four.
    """
    if last * terms.counts.size <= _FEW or last > 2.0**50:
        return (np.arange(1.0, last + 1), 0.0) if last <= _FEW else None
    some = terms.part(0, 2 * LEADING)
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


def inverted(
    terms: LaplaceTerms, line: ContourLine, first: float, nodes: Nodes, allowed: float, most: float
) -> Inversion | None:
    """Multiply the terms in, block after block: each factor is at most 1, so a node that is small remains so."""
    logarithms, even, odd = tilted(terms, line.shift)
    smallest = allowed * first / max(1, nodes.turns.size)
    ends = [end for end in _BLOCKS if end < terms.counts.size]
    for start, stop in zip(ends, [*ends[1:], terms.counts.size], strict=True):
        most -= nodes.turns.size * (stop - start)
        if most < 0:
            return None
        factors = shrinking(terms.part(start, stop), even[start:stop], odd[start:stop], nodes.turns)
        nodes = nodes.times(factors, smallest)
    size = np.abs(nodes.weights)
    exponent_error, sum_error, phase_error = _ROUNDING
    first += 2 * nodes.rest + sum_error * (first + 2 * float(size.sum()))
    exponent = float(terms.counts @ logarithms) + exponent_error - log(line.period)
    return Inversion(line.shift, exponent, first, *nodes[:2], slack=2 * phase_error * float(size @ nodes.turns))


def shrinking(terms: LaplaceTerms, even: Floats, odd: Floats, turns: Floats) -> Complexes:
    """Π φ(s + iu)/φ(s) over the terms, at each u."""
    pieces = np.array_split(turns, max(1, ceil(turns.size * terms.counts.size / _AT_ONCE)))
    return np.concatenate([_shrinking(terms, even, odd, piece) for piece in pieces])


def _shrinking(terms: LaplaceTerms, even: Floats, odd: Floats, turns: Floats) -> Complexes:
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
