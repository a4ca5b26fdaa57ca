"""Rigorous interval arithmetic: a ball (`arb`) provably contains the true value.

More bits make a ball narrower; it is right at any precision. python-flint is loaded by the first ball.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flint import arb


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with this many bits inside the block."""
    from flint import ctx

    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction | int) -> "arb":
    """A rational as a ball."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))
