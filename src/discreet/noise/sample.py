"""Integer noise by filtered inversion (discrete Laplace, rounded Gaussian, discrete Gaussian), and its randomness.

Scales are exact rationals. One fixed map takes an infinite stream of digits to an integer. A sign bit and the digits of
a uniform T in (0, 1/2) decide the draw: ±k for the largest k ≥ 0 whose tail Pr[X ≥ k] exceeds T. That map gives each
integer exactly its probability. A float kernel decides almost every draw, with a proved margin; for the rest, exact
intervals go on with *the same* digits and append more until the comparison is certain. Redrawing instead would bias the
noise. Proof: inversion.md

Random words come from the operating system, and from nowhere else. A few come straight from `os.urandom`. Many come
from an AES-256-CTR keystream under a fresh key from `os.urandom`, dropped when the call is done: no generator outlives
a call, so nothing can be seeded, shared by two threads, or copied into a forked child. If the system gives no
randomness, the call fails and nothing is released.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import floor, isfinite
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.errors import NoEntropy
from discreet.noise import kernel
from discreet.noise.kernel import QuantileTable, exponential_table, normal_table, runner
from discreet.numeric import Number, positive, whole
from discreet.types import Ints

if TYPE_CHECKING:
    from flint import arb


# Below this, one system call is cheaper than setting up a cipher.
_FEW = 512
_ZEROS = bytes(1 << 16)


def _urandom(count: int) -> bytes:
    try:
        return os.urandom(count)
    except (OSError, NotImplementedError) as cause:
        raise NoEntropy(
            "the operating system gave no randomness; nothing was released. Try again when it does."
        ) from cause


def word() -> int:
    """One uniform 64-bit word."""
    return int.from_bytes(_urandom(8), "little")


def secret(count: int) -> bytes:
    """`count` random bytes, for a token."""
    return _urandom(count)


def filler(count: int) -> Callable[[Ints], None]:
    """A function that fills arrays with independent uniform words, some `count` in all.

    It holds the cipher's key: use it within one call, then drop it.
    """
    return _from_system if count <= _FEW else _keystream()


def _from_system(out: Ints) -> None:
    out[:] = np.frombuffer(_urandom(out.nbytes), dtype=np.int64)


def _keystream() -> Callable[[Ints], None]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    stream = Cipher(algorithms.AES(_urandom(32)), modes.CTR(bytes(16))).encryptor()

    def fill(out: Ints) -> None:
        view = memoryview(out.view(np.uint8))  # type: ignore[arg-type]
        for start in range(0, len(view), len(_ZEROS)):
            piece = view[start : start + len(_ZEROS)]
            stream.update_into(_ZEROS[: len(piece)], piece)

    return fill


# The number of draws at a time: their words and results stay in the cache.
_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class Shape:
    """A distribution on the integers: floor(scale·quantile + offset) with a random sign, and its exact tail."""

    table: Callable[[], QuantileTable]
    tail: Callable[[int], "arb"]
    scale: Fraction
    offset: float

    @property
    def margin(self) -> float:
        """The least distance from an integer at which the float value decides."""
        return (float(self.scale) + abs(self.offset) + 1.0) * 2.0**-45


@dataclass(slots=True)
class Digits:
    """The binary digits of a uniform in (0, 1), as many as were needed; `more` draws the next ones."""

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

        from discreet.numeric import precision

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
    """`count` independent integers."""
    out = np.empty(count, dtype=np.int64)
    words = np.empty(2 * min(count, _CHUNK), dtype=np.int64)
    fill, run, table = filler(2 * count), runner(kernel.integers, count), shape.table()
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        used = words[: 2 * part.size]
        fill(used)
        run(used, table, float(shape.scale), shape.offset, shape.margin, part)
        for i in np.flatnonzero(part == kernel.UNDECIDED):
            part[i] = decide_exactly(shape, int(used[2 * i]), int(used[2 * i + 1]))
    return out


def digits_of(first: int, second: int, next_word: Callable[[], int] = word) -> Digits:
    """The digits of 2T that two words carry; a kernel has used them already."""
    prefix = ((first >> 1) & kernel.MASK) << kernel.DIGITS | (second & kernel.MASK)
    return Digits(prefix, 2 * kernel.DIGITS, next_word)


def decide_exactly(shape: Shape, first: int, second: int, next_word: Callable[[], int] = word) -> int:
    """The draw that these words (and those after them) decide, by exact comparisons alone."""
    about = kernel.tail_quantile((first >> 1) & kernel.MASK, second & kernel.MASK, shape.table().plain)
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
    from discreet.noise.law import exp_minus, laplace_tail
    from discreet.numeric import ball, precision

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


def read_scale(name: str, value: Number) -> Fraction:
    """A scale that the samplers can draw. Checked when the mechanism is built: after paying it would be too late."""
    step = "The scale is sensitivity over epsilon: give them closer values."
    return positive(name, value, at_most=LARGEST_SCALE, next_step=step)
