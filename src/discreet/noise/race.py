"""Selection by a race: every candidate gets rate·score plus its own noise, and the largest wins, exactly.

With Gumbel noise candidate i wins with probability ∝ e^(rate·score_i), the exponential mechanism; with standard
exponential noise it is report-noisy-max of the lecture notes, which is permute-and-flip. Floats with proved bounds
leave, almost always, one candidate that can have won; where they leave several, exact intervals go on with the same
digits and append more until the winner is certain. Proof: race.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.noise import kernel
from discreet.noise.kernel import exponential_table, runner
from discreet.noise.sample import Digits, digits_of, filler
from discreet.numeric import positive, rational

if TYPE_CHECKING:
    from flint import arb

_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class _Runner:
    index: int
    lower: float
    upper: float
    digits: Digits


def gumbel_race(scores: "Sequence[Any] | NDArray[Any]", rate: Any) -> int:
    """The index i with probability e^(rate·score_i)/Σ_j e^(rate·score_j), exactly.

    >>> gumbel_race([0, 10**6], rate=1)
    1
    """
    return _race(scores, rate, gumbel=True)


def exponential_race(scores: "Sequence[Any] | NDArray[Any]", rate: Any) -> int:
    """The index of the largest score_i + E_i/rate, with independent standard exponentials E_i, exactly.

    >>> exponential_race([0, 10**6], rate=1)
    1
    """
    return _race(scores, rate, gumbel=False)


def _race(scores: "Sequence[Any] | NDArray[Any]", rate: Any, *, gumbel: bool) -> int:
    exact_rate = positive("rate", rate)
    behind, unit = _behind(scores)
    step = exact_rate * unit
    bonus = -float(step) * behind.astype(np.float64)
    fill, run = filler(2 * behind.size), runner(kernel.contest, behind.size)
    left: list[_Runner] = []
    for start in range(0, behind.size, _CHUNK):
        part = bonus[start : start + _CHUNK]
        words, lower, upper = np.empty(2 * part.size, dtype=np.int64), np.empty(part.size), np.empty(part.size)
        fill(words)
        run(words, exponential_table(), part, gumbel, lower, upper)
        to_beat = max([float(lower.max()), *(one.lower for one in left)])
        left = [one for one in left if one.upper >= to_beat]
        for i in np.flatnonzero(upper >= to_beat):
            digits = digits_of(int(words[2 * i]), int(words[2 * i + 1]))
            left.append(_Runner(start + int(i), float(lower[i]), float(upper[i]), digits))
    return decide([(one.index, -step * int(behind[one.index]), one.digits) for one in left], gumbel=gumbel)


def decide(left: list[tuple[int, Fraction, Digits]], *, gumbel: bool) -> int:
    """The winner among (index, bonus, digits of a uniform): intervals, narrowed until one is above all others."""
    from discreet.numeric import ball, precision

    while len(left) > 1:
        with precision(max(digits.count for _, _, digits in left) + 64):
            values = [ball(bonus) + _noise(digits, gumbel=gumbel) for _, bonus, digits in left]
            left = [one for one, value in zip(left, values, strict=True) if not any(value < other for other in values)]
        if len(left) > 1:
            for _, _, digits in left:
                digits.more()
    return left[0][0]


def _noise(digits: Digits, *, gumbel: bool) -> "arb":
    """The noise that every uniform with these digits gives: E = −ln U, or −ln E."""
    from flint import arb, fmpz

    unit = arb(2) ** -digits.count
    uniform = (arb(fmpz(digits.prefix)) * unit).union(arb(fmpz(digits.prefix + 1)) * unit)
    waiting = -uniform.log()
    return -waiting.log() if gumbel else waiting


def _behind(scores: "Sequence[Any] | NDArray[Any]") -> tuple[NDArray[np.int64], Fraction]:
    """The best score minus each score, as whole multiples of a unit."""
    if isinstance(scores, np.ndarray) and scores.dtype == np.int64 and scores.size and scores.ndim == 1:
        best = scores.max()
        if int(best) - int(scores.min()) < 2**63:
            return best - scores, Fraction(1)
    exact = [rational(f"score {i}", value) for i, value in enumerate(scores)]
    if not exact:
        raise BadParameter("scores is empty; it must hold one number for each candidate. Give at least one candidate.")
    below, most = lcm(*(value.denominator for value in exact)), max(exact)
    behind = [int((most - value) * below) for value in exact]
    if max(behind) >= 2**63:
        raise BadParameter(
            "scores span more than 2^63 units of their common denominator; they must fit 64 bits. "
            "Round them to a coarser grid."
        )
    return np.array(behind, dtype=np.int64), Fraction(1, below)
