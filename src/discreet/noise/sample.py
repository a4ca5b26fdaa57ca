"""Integer noise for numbers: discrete Laplace, rounded Gaussian, discrete Gaussian. Scales are exact rationals."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, overload

import numpy as np

from discreet.cache import memoize
from discreet.noise import kernel
from discreet.noise.compiled import runner
from discreet.noise.entropy import filler
from discreet.noise.inversion import Shape, digits_of, draw
from discreet.noise.table import exponential_table, normal_table
from discreet.parameter import positive, whole
from discreet.types import Ints

_PROPOSALS = 1 << 15

# At most this, so that every draw fits 64 bits with room to spare.
LARGEST_SCALE = Fraction(2**50)


@overload
def discrete_laplace(scale: Any, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Any, size: int) -> Ints: ...
def discrete_laplace(scale: Any, size: int | None = None) -> int | Ints:
    """Integers with Pr[k] ∝ exp(−|k|/scale), exactly; one, or an array of `size`.

    >>> isinstance(discrete_laplace(10), int), discrete_laplace(10, size=3).shape
    (True, (3,))
    """
    exact = _scale("scale", scale)
    return _sized(size, lambda count: draw(_laplace_shape(exact), count))


@overload
def rounded_gaussian(sigma: Any, size: None = None) -> int: ...
@overload
def rounded_gaussian(sigma: Any, size: int) -> Ints: ...
def rounded_gaussian(sigma: Any, size: int | None = None) -> int | Ints:
    """Integers distributed as a normal of standard deviation `sigma` rounded to the nearest, exactly.

    >>> isinstance(rounded_gaussian(10), int), rounded_gaussian(10, size=3).shape
    (True, (3,))
    """
    exact = _scale("sigma", sigma)
    return _sized(size, lambda count: draw(_gaussian_shape(exact), count))


@overload
def discrete_gaussian(sigma: Any, size: None = None) -> int: ...
@overload
def discrete_gaussian(sigma: Any, size: int) -> Ints: ...
def discrete_gaussian(sigma: Any, size: int | None = None) -> int | Ints:
    """Integers with Pr[k] ∝ exp(−k²/2sigma²), exactly: rejection from the discrete Laplace [CKS20, Algorithm 3].

    >>> isinstance(discrete_gaussian(10), int), discrete_gaussian(10, size=3).shape
    (True, (3,))
    """
    exact = _scale("sigma", sigma)
    return _sized(size, lambda count: _discrete_gaussian(exact, count))


def _discrete_gaussian(sigma: Fraction, count: int) -> Ints:
    parts, wanting = [], count
    while wanting > 0:
        # About three in four are accepted, so for a few draws a second round is rare.
        parts.append(_accepted(sigma, min(wanting + wanting // 2 + 4, _PROPOSALS)))
        wanting -= parts[-1].size
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])[:count]


def _accepted(sigma: Fraction, proposals: int) -> Ints:
    """The proposals y ~ discrete Laplace(t) that pass a coin with Pr = exp(−(|y| − sigma²/t)²/2sigma²)."""
    from discreet.noise.law import exp_minus

    scale = floor(sigma) + 1
    centre = sigma**2 / scale
    candidates = draw(_laplace_shape(Fraction(scale)), proposals)
    words, passed = np.empty(2 * proposals, dtype=np.int64), np.empty(proposals, dtype=np.int64)
    filler(2 * proposals)(words)
    runner(kernel.survivors, proposals)(
        words, exponential_table(), candidates, float(centre), float(2 * sigma**2), passed
    )
    for i in np.flatnonzero(passed == kernel.UNDECIDED):
        gamma = (abs(int(candidates[i])) - centre) ** 2 / (2 * sigma**2)
        passed[i] = digits_of(int(words[2 * i]), int(words[2 * i + 1])).below(partial(exp_minus, gamma))
    accepted: Ints = candidates[passed == 1]
    return accepted


@memoize(1024)
def _laplace_shape(scale: Fraction) -> Shape:
    from discreet.interval import ball, precision
    from discreet.noise.law import exp_minus, laplace_tail

    # a^k/(1 + a) > T for k < −scale·(ln T + ln(1 + a)): the exponential quantile, scaled and shifted.
    with precision(96):
        offset = float(-ball(scale) * (1 + exp_minus(1 / scale)).log())
    return Shape(exponential_table, lambda k: laplace_tail(k, scale), scale, offset)


@memoize(1024)
def _gaussian_shape(sigma: Fraction) -> Shape:
    from discreet.noise.law import gaussian_tail

    return Shape(normal_table, lambda k: gaussian_tail(k, sigma), sigma, 0.5)


def _scale(name: str, value: Any) -> Fraction:
    return positive(name, value, at_most=LARGEST_SCALE, next_step="Give a rational number, say Fraction(21, 2).")


def _sized(size: Any, draws: Callable[[int], Ints]) -> int | Ints:
    if size is None:
        return int(draws(1)[0])
    return draws(whole("size", size, least=0, next_step="Give the number of draws, or leave it out for one int."))
