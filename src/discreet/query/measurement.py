"""Several residuals measured together as one vector; each residual has its own noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery
from discreet.parameter import positive
from discreet.query.axis import Axis, axis_of
from discreet.query.normal import NormalForm
from discreet.query.residual import Residual
from discreet.schema.domain import Domain


@dataclass(frozen=True, slots=True)
class Measurement(NormalForm):
    """Residuals, each with the standard deviation of the noise that its numbers will get.

    Together they are one vector; divided by its noise, one person can move it by less than the pieces one by one would
    suggest, because the exchange of a row that moves one piece most does not move all of them most.

    >>> sex, both = Residual((("sex", 1),)), Residual((("city", 1), ("sex", 1)))
    >>> Measurement(((sex, Fraction(10)), (both, Fraction(20)))).columns
    ('city', 'sex')
    """

    pieces: tuple[tuple[Residual, Fraction], ...]

    def __post_init__(self) -> None:
        listed = tuple(self.pieces) if isinstance(self.pieces, Iterable) else ()
        given = [tuple(piece) if isinstance(piece, (tuple, list)) else () for piece in listed]
        if not given or not all(len(piece) == 2 and isinstance(piece[0], Residual) for piece in given):
            raise BadQuery("a measurement has no pieces, or one that is not a Residual. Give pairs (Residual, sigma).")
        if len({residual for residual, _ in given}) < len(given):
            raise BadQuery("a measurement has the same residual twice; each is measured once, with less noise.")
        object.__setattr__(self, "pieces", tuple((residual, positive("sigma", sigma)) for residual, sigma in given))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the pieces, sorted."""
        return tuple(sorted({name for residual, _ in self.pieces for name in residual.columns}))

    def measure(self, counts: NDArray[np.int64], domain: Domain) -> NDArray[Any]:
        """The pieces of a marginal on all its columns, one after the other: exact integers."""
        columns, axes = self.columns, tuple(axis_of(domain[name]) for name in self.columns)
        values = measure_all(counts, axes)
        return np.concatenate([values[piece_slices(columns, axes, residual)].ravel() for residual, _ in self.pieces])

    def stretches(self, domain: Domain) -> tuple[tuple[Fraction, int], ...]:
        """The noise of each piece and how many numbers it has, in order."""
        return tuple((sigma, residual.size(domain)) for residual, sigma in self.pieces)


def measure_all(counts: NDArray[np.int64], axes: Sequence[Axis]) -> NDArray[Any]:
    """All parts of every axis of a marginal, the constants first: exact integers."""
    # No number on the way is larger than this; beyond 64 bits Python's integers are used.
    largest = float(np.abs(counts.astype(np.float64)).sum()) * prod(axis.cells for axis in axes)
    values: NDArray[Any] = counts if largest < 2**62 else counts.astype(object)
    for place, axis in enumerate(axes):
        values = axis.apply_all(values, place)
    return values


def piece_slices(columns: tuple[str, ...], axes: tuple[Axis, ...], residual: Residual) -> tuple[slice, ...]:
    """Where the numbers of a piece lie when all parts of every axis are measured, the constants first."""
    parts = dict(residual.parts)
    ends = [(axis, parts.get(name, 0)) for name, axis in zip(columns, axes, strict=True)]
    return tuple(
        slice(0, 1) if not part else slice(1 + axis.starts[part - 1], 1 + axis.starts[part]) for axis, part in ends
    )
