"""Fixed pseudo-random numbers (splitmix64 of a counter), for starting points and for thinning: the same every time."""

import numpy as np
from numpy.typing import NDArray

from discreet.types import Numbers

# The multipliers of splitmix64, a bijection of 64-bit words whose outputs pass for random [SLF14].
_GOLDEN, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def scattered(count: int, seed: int = 0) -> Numbers:
    """`count` numbers in (0, 1).

    >>> scattered(3).round(3).tolist()
    [0.883, 0.432, 0.026]
    """
    words: NDArray[np.uint64] = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * _GOLDEN
    words = (words ^ words >> np.uint64(30)) * _FIRST
    words = (words ^ words >> np.uint64(27)) * _SECOND
    words ^= words >> np.uint64(31)
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def normal(shape: tuple[int, ...], seed: int = 0) -> Numbers:
    """Numbers from N(0, 1) in this shape."""
    from scipy.special import ndtri

    return np.asarray(ndtri(scattered(int(np.prod(shape)), seed))).reshape(shape)
