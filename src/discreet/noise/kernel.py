"""What runs once for each draw: from random words to floats with a proved error, and to integers decided by them.

These are plain functions on ints and floats. For a few draws they run as they are, on lists; for many they are
compiled by numba, on arrays (compiled.py). Both give the same integers, because a draw is decided here only where the
proved error cannot matter; the rest is left `UNDECIDED` and settled exactly on the same words (inversion.py).

A draw uses two words: one bit for the sign and 2 × 62 digits of a tail probability T in (0, 1/2),

    T = (high + (low + u)/2^62)/2^63, with high and low of 62 bits and u in [0, 1] the digits not yet drawn.
"""

from collections.abc import MutableSequence, Sequence
from math import floor, frexp, inf, log, nan

import numpy as np

# The tables cut (0, 1/2) into octaves [2^−(o+2), 2^−(o+1)) and each octave into 64 cells with a polynomial each.
OCTAVES, CELLS, TERMS = 48, 64, 7
DIGITS = 62
MASK = (1 << DIGITS) - 1
# A row of coefficients for each cell; the rows of two octaves stand empty in front, so that no index is a small number.
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
    """The same for machine code, off the bits of the float: there a call of frexp costs as much as all the rest."""
    bits = np.float64(value).view(np.int64)
    return float(np.int64((bits & 0xFFFFFFFFFFFFF) | (1022 << 52)).view(np.float64)), int((bits >> 52) - 1022)


def quantile(high: int, low: int, table: Sequence[float]) -> float:
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
        value = scale * quantile((high >> 1) & MASK, words[2 * i + 1] & MASK, table) + offset
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
        chance = quantile((words[2 * i] >> 1) & MASK, words[2 * i + 1] & MASK, table) - LN2
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
        noise = quantile((words[2 * i] >> 1) & MASK, words[2 * i + 1] & MASK, table) - LN2
        slack = 4.0 * ERROR - bonus[i] * 2.0**-50
        lower[i], upper[i] = -inf, inf
        if gumbel:
            # Near zero the logarithm magnifies the error without bound: leave those to the exact comparison.
            if not noise > 2.0**-30:
                continue
            slack += 4.0 * ERROR / noise
            mantissa, exponent = split(noise)
            noise = evaluate(mantissa * 2.0**53, table) - (exponent + 1) * LN2
        value = bonus[i] + noise
        if value == value:
            lower[i], upper[i] = value - slack, value + slack
