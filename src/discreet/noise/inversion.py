"""Symmetric integer noise by filtered inversion: one fixed map from an infinite stream of digits to an integer.

A sign bit and the digits of a uniform T in (0, 1/2) decide the draw: ±k for the largest k ≥ 0 whose tail Pr[X ≥ k]
exceeds T. That map gives each integer exactly its probability. A float kernel decides almost every draw, with a
proved margin; for the rest, exact intervals go on with *the same* digits and append more until the comparison is
certain. Redrawing instead would bias the noise. Proof: inversion.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.noise import kernel
from discreet.noise.compiled import runner
from discreet.noise.entropy import filler, word
from discreet.noise.table import Table

if TYPE_CHECKING:
    from flint import arb

# So many draws at a time: their words and results stay in the cache.
_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class Shape:
    """A distribution on the integers: floor(scale·quantile + offset) with a random sign, and its exact tail."""

    table: Callable[[], Table]
    tail: Callable[[int], "arb"]
    scale: Fraction
    offset: float

    @property
    def margin(self) -> float:
        """How far from an integer the float value must be to decide."""
        return (float(self.scale) + abs(self.offset) + 1.0) * 2.0**-45


@dataclass(slots=True)
class Digits:
    """The binary digits of a uniform in (0, 1), as many as have been looked at; `more` draws the next ones."""

    prefix: int
    count: int
    next_word: Callable[[], int] = word
    width: int = 64

    def more(self) -> None:
        """Append one word."""
        self.prefix = (self.prefix << self.width) | self.next_word()
        self.count += self.width

    def below(self, point: "Callable[[], arb]") -> bool:
        """Whether the uniform is below the point, drawing digits until that is certain."""
        from flint import arb, fmpz

        from discreet.interval import precision

        while True:
            with precision(self.count + 32):
                unit = arb(2) ** -self.count
                target, low, high = point(), arb(fmpz(self.prefix)) * unit, arb(fmpz(self.prefix + 1)) * unit
                if high <= target:
                    return True
                if low >= target:
                    return False
            self.more()


def draw(shape: Shape, count: int) -> NDArray[np.int64]:
    """So many independent integers."""
    out = np.empty(count, dtype=np.int64)
    words = np.empty(2 * min(count, _CHUNK), dtype=np.int64)
    fill, run, table = filler(2 * count), runner(kernel.integers, count), shape.table()
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        used = words[: 2 * part.size]
        fill(used)
        run(used, table, float(shape.scale), shape.offset, shape.margin, part)
        for i in np.flatnonzero(part == kernel.UNDECIDED):
            part[i] = settle(shape, int(used[2 * i]), int(used[2 * i + 1]))
    return out


def digits_of(first: int, second: int, next_word: Callable[[], int] = word) -> Digits:
    """The digits of 2T that two words carry; a kernel has looked at them already."""
    prefix = ((first >> 1) & kernel.MASK) << kernel.DIGITS | (second & kernel.MASK)
    return Digits(prefix, 2 * kernel.DIGITS, next_word)


def settle(shape: Shape, first: int, second: int, next_word: Callable[[], int] = word) -> int:
    """The draw that these words (and those after them) decide, by exact comparisons alone."""
    about = kernel.quantile((first >> 1) & kernel.MASK, second & kernel.MASK, shape.table().plain)
    value = float(shape.scale) * about + shape.offset
    k = magnitude(shape.tail, digits_of(first, second, next_word), guess=int(value) if isfinite(value) else 0)
    return -k if first & 1 else k


def magnitude(tail: "Callable[[int], arb]", digits: Digits, guess: int = 0) -> int:
    """The largest k ≥ 0 with tail(k) > T, where 2T has these digits: galloping from the guess, then bisection."""

    def reaches(k: int) -> bool:
        # tail(0) is above a half and T below it.
        return k <= 0 or digits.below(lambda: 2 * tail(k))

    low, step = guess, 1
    if reaches(low):
        while reaches(low + step):
            low, step = low + step, 2 * step
        high = low + step
    else:
        high = low
        while not reaches(high - step):
            high, step = high - step, 2 * step
        low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return max(low, 0)
