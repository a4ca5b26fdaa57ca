"""Rigorous intervals: the two helpers that everything exact is built on.

A ball (`arb`) provably contains the true value; more bits make it narrower, never more right.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work with so many bits inside the block. A ball is right at any precision; it is only narrower with more."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction | int) -> arb:
    """A rational as a ball."""
    return arb(fmpq(value.numerator, value.denominator))
