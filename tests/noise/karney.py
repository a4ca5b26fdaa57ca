"""An independent oracle: Karney's exact normal deviates [Kar16, Algorithm N], slow and plain.

Uniforms have 192 bits from the operating system; two of them tie with probability 2^-192.
"""

import secrets
from fractions import Fraction
from math import floor

BITS = 192


def uniform() -> int:
    return secrets.randbits(BITS)


def bernoulli_root_e() -> bool:
    """Heads with probability e^(−1/2): the parity of a decreasing run that starts below a half."""
    last, length = 1 << (BITS - 1), 0
    while (fresh := uniform()) < last:
        last, length = fresh, length + 1
    return length % 2 == 0


def bernoulli_step(k: int, x: int) -> bool:
    """Heads with probability exp(−x(2k + x)/(2k + 2))."""
    last, length = x, 0
    while (fresh := uniform()) < last and uniform() * (2 * k + 2) < (2 * k << BITS) + x:
        last, length = fresh, length + 1
    return length % 2 == 0


def normal() -> Fraction:
    while True:
        k = 0
        while bernoulli_root_e():
            k += 1
        if not all(bernoulli_root_e() for _ in range(k * (k - 1))):
            continue
        x = uniform()
        if all(bernoulli_step(k, x) for _ in range(k + 1)):
            size = k + Fraction(x, 1 << BITS)
            return -size if secrets.randbits(1) else size


def rounded(sigma: Fraction) -> int:
    return floor(sigma * normal() + Fraction(1, 2))
