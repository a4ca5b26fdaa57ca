"""Randomness for experiments: made-up tables, random questions, permutations. It protects nobody and needs no proof.

It comes from the operating system as all noise does, so that nothing in this package has a seed. What is drawn is a
double, of 53 or fewer random bits; never add it to what must be private.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.types import Floats, Ints

_UNIT = 2**40


def integers(below: int, size: int) -> Ints:
    """Whole numbers from 0, all equally likely.

    >>> sorted(set(integers(3, 1000).tolist()))
    [0, 1, 2]
    """
    return np.asarray(noise.uniform_below(below, size=size), dtype=np.int64)


def uniforms(*shape: int) -> Floats:
    """Numbers between 0 and 1.

    >>> uniforms(2, 3).shape
    (2, 3)
    """
    return (integers(_UNIT, int(np.prod(shape))) / _UNIT).reshape(shape)


def normals(*shape: int) -> Floats:
    """Standard normal numbers.

    >>> bool(abs(normals(10_000).mean()) < 0.1)
    True
    """
    draws = np.asarray(noise.rounded_gaussian(Fraction(_UNIT), size=int(np.prod(shape))), dtype=np.float64)
    return (draws / _UNIT).reshape(shape)


def truths(chance: float, *shape: int) -> NDArray[np.bool_]:
    """True with this probability.

    >>> bool(truths(1.0, 10).all())
    True
    """
    return uniforms(*shape) < chance


def choices(weights: Sequence[float] | Floats, size: int) -> Ints:
    """Places, with probabilities in proportion to these weights.

    >>> choices([0.0, 1.0], 3).tolist()
    [1, 1, 1]
    """
    steps = np.cumsum(np.asarray(weights, dtype=np.float64))
    places = np.searchsorted(steps, uniforms(size) * steps[-1], side="right")
    return np.asarray(np.minimum(places, len(steps) - 1), dtype=np.int64)


def shuffled(number: int) -> Ints:
    """The numbers below this one, in random order.

    >>> sorted(shuffled(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.argsort(integers(2**62, number), kind="stable").astype(np.int64)
