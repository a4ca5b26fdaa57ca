"""The tables behind `kernel.quantile`: in each cell the Taylor polynomial of degree 6 about the cell's centre.

Cell c of octave o holds T = (64 + c + 1/2 + x)·2^−(8+o) for x in [−1/2, 1/2); the coefficients are in x.
Nothing here needs to be trusted: tests/noise/test_table.py checks every coefficient against rigorous intervals.
"""

from array import array
from collections.abc import Iterable, Iterator
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.noise.kernel import CELLS, OCTAVE, OCTAVES, TERMS

if TYPE_CHECKING:
    from flint import arb


class Table(NamedTuple):
    """The coefficients, seven for each cell, after 128 empty rows: for Python and for machine code."""

    # Packed: a tuple of float objects is spread over memory, and the rarer cells, of larger noise, would be slower.
    plain: "array[float]"
    array: NDArray[np.float64]


@memoize(1)
def exponential_table() -> Table:
    """−ln T."""
    from discreet.interval import precision

    with precision(96):
        return _table(c for width, centre in _cells() for c in exponential_coefficients(width, centre))


@memoize(1)
def normal_table() -> Table:
    """The z with erfc(z/√2)/2 = T."""
    from flint import arb

    from discreet.interval import precision

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


def _table(coefficients: "Iterable[arb]") -> Table:
    plain = array("d", [0.0] * (2 * OCTAVE) + [float(c) for c in coefficients])
    return Table(plain, np.array(plain))


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
