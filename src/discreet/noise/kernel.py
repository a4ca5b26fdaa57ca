"""The float kernels of the sampler: from random words to a tail quantile with a proved error, and to an integer.

They are plain functions on ints and floats. For a few draws they run as they are, on lists; for many, numba compiles
them, on arrays: a handful of draws must not wait for a compiler. Both give the same integers, because a draw is decided
here only where the proved error cannot matter; the rest is left `UNDECIDED` and decided exactly from the same words
(`sample.py`).

A draw uses two words: one bit for the sign and 2 × 62 digits of a tail probability T in (0, 1/2),

    T = (high + (low + u)/2^62)/2^63, with high and low of 62 bits and u in [0, 1] the digits not yet drawn.

The quantile is a Taylor polynomial of degree 6 about the centre of a cell. Cell c of octave o holds
T = (64 + c + 1/2 + x)·2^−(8+o) for x in [−1/2, 1/2); the coefficients are in x. The table of coefficients need not be
trusted: tests/noise/test_table.py checks every one against rigorous intervals.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from math import floor, frexp, inf, log, nan
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import jit
from discreet.cache import memoize
from discreet.types import Ints

if TYPE_CHECKING:
    from flint import arb


# The tables cut (0, 1/2) into octaves [2^−(o+2), 2^−(o+1)) and each octave into 64 cells with a polynomial each.
OCTAVES, CELLS, TERMS = 48, 64, 7
DIGITS = 62
MASK = (1 << DIGITS) - 1
# A row of coefficients for each cell; the first rows, of two octaves, are empty, so that no index is a small number.
OCTAVE = TERMS * CELLS

# |quantile(…) − the true quantile|, for both tables and every u: proved in inversion.md, recomputed cell by cell with
# rigorous intervals in tests/noise/test_table.py.
ERROR = 2.0**-46
LN2 = log(2.0)

UNDECIDED = -(1 << 63)


def split(value: float) -> tuple[float, int]:
    """A float as mantissa·2^exponent with the mantissa in [1/2, 1)."""
    return frexp(value)


def split_by_bits(value: float) -> tuple[float, int]:
    """The same for machine code, off the bits of the float: where a call of frexp takes as long as all the rest."""
    bits = np.float64(value).view(np.int64)
    return float(np.int64((bits & 0xFFFFFFFFFFFFF) | (1022 << 52)).view(np.float64)), int((bits >> 52) - 1022)


def tail_quantile(high: int, low: int, table: Sequence[float]) -> float:
    """The point that leaves mass T above it, within `ERROR` for every u; nan beyond the table."""
    # The first 106 digits with one rounding. Shifting integers to the first one would be exact, but Python takes a
    # little longer for longer integers, and for those above 256, and so for larger noise.
    return evaluate(float(high >> 9) + float((high & 511) << 44 | low >> 18) * 2.0**-53, table)


def evaluate(digits: float, table: Sequence[float]) -> float:
    """The polynomial of the cell in which T = digits/2^54 lies; nan beyond the table."""
    mantissa, exponent = split(digits)
    octave = 53 - exponent
    if octave < 0 or octave >= OCTAVES:
        return nan
    place = mantissa * 128.0
    cell = int(place)
    x = place - cell - 0.5
    at = OCTAVE * (octave + 1) + TERMS * cell
    y = table[at + 6]
    y = y * x + table[at + 5]
    y = y * x + table[at + 4]
    y = y * x + table[at + 3]
    y = y * x + table[at + 2]
    y = y * x + table[at + 1]
    return y * x + table[at]


def integers(
    words: Sequence[int],
    table: Sequence[float],
    scale: float,
    offset: float,
    margin: float,
    out: MutableSequence[int],
) -> None:
    """±floor(scale·quantile + offset), where the fraction is at least `margin` away from 0 and 1."""
    for i in range(len(out)):
        high = words[2 * i]
        value = scale * tail_quantile((high >> 1) & MASK, words[2 * i + 1] & MASK, table) + offset
        # A nan fails this too, and so does a margin of a half or more.
        if value < 2.0**62:
            k = floor(value)
            fraction = value - k
            if margin <= fraction <= 1.0 - margin:
                sign = -(high & 1)
                out[i] = (k ^ sign) - sign
                continue
        out[i] = UNDECIDED


def survivors(
    words: Sequence[int],
    table: Sequence[float],
    candidates: Sequence[int],
    centre: float,
    twice: float,
    out: MutableSequence[int],
) -> None:
    """1 where a standard exponential −ln(2T) exceeds (|candidate| − centre)²/twice, 0 where not, or `UNDECIDED`."""
    for i in range(len(out)):
        size = float(abs(candidates[i]))
        chance = tail_quantile((words[2 * i] >> 1) & MASK, words[2 * i + 1] & MASK, table) - LN2
        gamma = (size - centre) * (size - centre) / twice
        slack = (size + centre) * (size + centre) / twice * 2.0**-49 + 4.0 * ERROR
        if chance > gamma + slack:
            out[i] = 1
        elif chance < gamma - slack:
            out[i] = 0
        else:
            out[i] = UNDECIDED


def contest(
    words: Sequence[int],
    table: Sequence[float],
    bonus: Sequence[float],
    gumbel: bool,
    lower: MutableSequence[float],
    upper: MutableSequence[float],
) -> None:
    """Bounds on bonus + noise, the noise a standard exponential E or a standard Gumbel −ln E."""
    for i in range(len(lower)):
        noise = tail_quantile((words[2 * i] >> 1) & MASK, words[2 * i + 1] & MASK, table) - LN2
        slack = 4.0 * ERROR - bonus[i] * 2.0**-50
        lower[i], upper[i] = -inf, inf
        if gumbel:
            # Close to zero the logarithm magnifies the error without bound: leave those to the exact comparison.
            if not noise > 2.0**-30:
                continue
            slack += 4.0 * ERROR / noise
            mantissa, exponent = split(noise)
            noise = evaluate(mantissa * 2.0**53, table) - (exponent + 1) * LN2
        value = bonus[i] + noise
        if value == value:
            lower[i], upper[i] = value - slack, value + slack


class QuantileTable(NamedTuple):
    """The coefficients, seven for each cell, after 128 empty rows: for Python and for machine code."""

    # Packed: a tuple of float objects is spread over memory, and the rarer cells, of larger noise, would be slower.
    plain: "array[float]"
    array: NDArray[np.float64]


@memoize(1)
def exponential_table() -> QuantileTable:
    """−ln T."""
    from discreet.numeric import precision

    with precision(96):
        return _table(c for width, centre in _cells() for c in exponential_coefficients(width, centre))


@memoize(1)
def normal_table() -> QuantileTable:
    """The z with erfc(z/√2)/2 = T."""
    from flint import arb

    from discreet.numeric import precision

    with precision(96):
        root2, root_tau = arb(2).sqrt(), (2 * arb.pi()).sqrt()
        rows: list[arb] = []
        for width, centre in _cells():
            tail = centre * width
            z = arb(-NormalDist().inv_cdf(float(tail)))
            # The guess has some 50 right bits; one step of Newton doubles them.
            z -= ((z / root2).erfc() / 2 - tail) * -root_tau * (z * z / 2).exp()
            rows.extend(normal_coefficients(width, z.mid()))
        return _table(rows)


def _table(coefficients: "Iterable[arb]") -> QuantileTable:
    plain = array("d", [0.0] * (2 * OCTAVE) + [float(c) for c in coefficients])
    return QuantileTable(plain, np.array(plain))


def exponential_coefficients(width: "arb", centre: "arb", terms: int = TERMS) -> "list[arb]":
    """Of −ln((centre + x)·width): the series of the logarithm."""
    return [-(centre * width).log(), *((-1 / centre) ** n / n for n in range(1, terms))]


def normal_coefficients(width: "arb", z: "arb", terms: int = TERMS) -> "list[arb]":
    """Of z((centre + x)·width) about z: the n-th derivative in T is P_n(z)·(dz/dT)^n with dz/dT = −√(2π) e^(z²/2)."""
    from flint import arb

    step = -(2 * arb.pi()).sqrt() * (z * z / 2).exp() * width
    power, found = arb(1), [z]
    for n, polynomial in enumerate(_derivatives(terms - 1), start=1):
        power = power * step / n
        found.append(sum((c * z**i for i, c in enumerate(polynomial)), arb(0)) * power)
    return found


def _cells() -> "Iterator[tuple[arb, arb]]":
    """The width and the centre (in widths) of every cell."""
    from flint import arb

    for octave in range(OCTAVES):
        for cell in range(CELLS):
            yield arb(2) ** -(8 + octave), CELLS + cell + arb("0.5")


@memoize(1)
def _derivatives(count: int) -> tuple[tuple[int, ...], ...]:
    """P_1 … P_count: P_1 = 1 and P_(n+1) = P_n' + n z P_n, as coefficients of z^0, z^1, …"""
    found = [[1]]
    for n in range(1, count):
        last = found[-1]
        grown = [0, *(n * c for c in last)]
        for i, c in enumerate(last[1:]):
            grown[i] += (i + 1) * c
        found.append(grown)
    return tuple(map(tuple, found))


# Loading the compiler and the machine code takes as long as this many plain draws: rent until you would have bought.
MANY = 250_000
_drawn: Counter[Callable[..., None]] = Counter()


def runner(loop: Callable[..., None], draws: int) -> Callable[..., None]:
    """One of the loops of kernel.py, ready for arrays: plain Python until `MANY` draws were wanted of it."""
    _drawn[loop] += draws
    if draws >= 64 and _drawn[loop] >= MANY:
        machine_code = compiled_kernel(loop)
        return lambda words, table, *rest: machine_code(words, table.array, *rest)
    return lambda words, table, *rest: _plain(loop, words, table, *rest)


def _plain(loop: Callable[..., None], words: Ints, table: QuantileTable, *rest: Any) -> None:
    # Python's own ints and floats are several times faster, one by one, than numpy's.
    loop(words.tolist(), table.plain, *rest)


def compiled_kernel(loop: Callable[..., None]) -> Callable[..., None]:
    """A loop of kernel.py as machine code."""
    jit.inline(tail_quantile)
    jit.inline(evaluate)
    jit.substitute(split, split_by_bits)
    # A fused multiply-add omits a rounding, so the error budget of the kernel covers it.
    return jit.compiled(loop, fused=True)
