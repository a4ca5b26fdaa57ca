"""Exact coins: heads with any probability that can be computed, and fair dice."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.noise.sample import Digits, filler, word
from discreet.numeric import rational, whole
from discreet.types import Bools

if TYPE_CHECKING:
    from flint import arb


@overload
def coin(probability: "Callable[[], arb]", size: None = None) -> bool: ...
@overload
def coin(probability: "Callable[[], arb]", size: int) -> Bools: ...
def coin(probability: "Callable[[], arb]", size: int | None = None) -> bool | Bools:
    """Heads with exactly this probability, given as a function that encloses it at the working precision.

    A uniform is compared with it digit by digit; 64 digits decide all but one flip in 2^64, and those draw more.

    >>> from flint import arb
    >>> coin(lambda: arb(1)), coin(lambda: arb(0), size=2).tolist()
    (True, [False, False])
    """
    if size is None:
        return Digits(word(), 64).below(probability)
    count = whole("size", size, least=0, next_step="Give the number of flips, or leave it out for one bool.")
    first = np.empty(count, dtype=np.int64)
    filler(count)(first)
    lowest, highest = _threshold(probability)
    uniforms = first.view(np.uint64)
    heads = uniforms < np.uint64(lowest) if lowest < 2**64 else np.ones(count, dtype=np.bool_)
    for i in np.flatnonzero(~heads & (uniforms <= np.uint64(min(highest, 2**64 - 1)))):
        heads[i] = Digits(int(uniforms[i]), 64).below(probability)
    return heads


def _threshold(probability: "Callable[[], arb]") -> tuple[int, int]:
    """2^64 times the probability, between two integers: below the first is heads, above the second tails."""
    from discreet.numeric import precision

    with precision(128):
        scaled = probability() * 2**64
        lowest, highest = scaled.lower().floor().unique_fmpz(), scaled.upper().ceil().unique_fmpz()
    # Both are integers without radius, so never None; if they were, int() would raise and nothing be released.
    return max(int(cast(int, lowest)), 0), int(cast(int, highest))


@overload
def bernoulli(probability: Any, size: None = None) -> bool: ...
@overload
def bernoulli(probability: Any, size: int) -> Bools: ...
def bernoulli(probability: Any, size: int | None = None) -> bool | Bools:
    """Heads with a rational probability.

    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    exact = rational("probability", probability)
    if not 0 <= exact <= 1:
        raise BadParameter(f"probability is {probability!r}; it must be from 0 to 1. Give one, say Fraction(1, 3).")
    from discreet.numeric import ball

    return coin(partial(ball, exact), size)


@overload
def bernoulli_exp(gamma: Any, size: None = None) -> bool: ...
@overload
def bernoulli_exp(gamma: Any, size: int) -> Bools: ...
def bernoulli_exp(gamma: Any, size: int | None = None) -> bool | Bools:
    """Heads with probability e^−gamma, for a rational gamma ≥ 0.

    >>> bernoulli_exp(0)
    True
    """
    exact = rational("gamma", gamma)
    if exact < 0:
        raise BadParameter(f"gamma is {gamma!r}; it must be at least 0, or e^−gamma is no probability. Give say 0.5.")
    from discreet.noise.law import exp_minus

    return coin(partial(exp_minus, exact), size)


@overload
def uniform_below(limit: int, size: None = None) -> int: ...
@overload
def uniform_below(limit: int, size: int) -> NDArray[np.int64]: ...
def uniform_below(limit: int, size: int | None = None) -> int | NDArray[np.int64]:
    """A fair die: 0, 1, …, limit − 1 with equal probability, by rejection of the words that would favour some.

    >>> uniform_below(1), set(uniform_below(2, size=99).tolist()) <= {0, 1}
    (0, True)
    """
    exact = whole("limit", limit, least=1, most=2**62)
    count = 1 if size is None else whole("size", size, least=0)
    mask = (1 << (exact - 1).bit_length()) - 1
    out, filled = np.empty(count, dtype=np.int64), 0
    while filled < count:
        fresh = np.empty(2 * (count - filled) + 8, dtype=np.int64)
        filler(fresh.size)(fresh)
        fresh &= mask
        kept = fresh[fresh < exact][: count - filled]
        out[filled : filled + kept.size] = kept
        filled += kept.size
    return int(out[0]) if size is None else out
