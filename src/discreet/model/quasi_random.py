"""Random uniforms for drawing rows, and the square roots of primes that generate a quasi-random sequence."""

from math import log

import numpy as np

from discreet.noise.sample import filler
from discreet.types import Numbers


def uniform(count: int) -> Numbers:
    """`count` random numbers in (0, 1). Rows are post-processing, so doubles will do."""
    words = np.empty(count, dtype=np.int64)
    filler(count)(words)
    # 53 random bits are exact in a double.
    return np.asarray(((words >> 11 & (2**53 - 1)) + 0.5) * 2.0**-53)


def roots_of_primes(count: int) -> Numbers:
    """The square roots of the first `count` primes: their multiples modulo 1 are a Kronecker sequence.

    >>> (roots_of_primes(5) ** 2).round().tolist()
    [2.0, 3.0, 5.0, 7.0, 11.0]
    """
    # The n-th prime is less than n (ln n + ln ln n) for n ≥ 6 [Rosser].
    most = 15 if count < 6 else int(count * (log(count) + log(log(count)))) + 1
    prime = np.ones(most + 1, dtype=np.bool_)
    prime[:2] = False
    for number in range(2, int(most**0.5) + 1):
        prime[number * number :: number] = False
    return np.sqrt(np.flatnonzero(prime)[:count])
