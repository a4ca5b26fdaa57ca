"""Whole marginals with discrete Laplace noise: what is known where delta is 0.

A marginal of the columns S with independent noise of variance v in every cell tells each piece V of S with the
precision 1/(v · cells of the other columns). So it joins the same lattice, and there is one estimate for everything.
Only the tails differ: the error of an answer is a weighted sum of Laplace noises, of which we know every weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, expm1, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.known.family import Family, axes_of
from discreet.known.reading import Numbers, Reading
from discreet.query.residual import Residual
from discreet.schema.domain import Domain

if TYPE_CHECKING:
    from discreet.known.known import Known


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A marginal that was measured: its columns (sorted), the scale of the noise, and its noisy counts."""

    columns: tuple[str, ...]
    scale: Fraction
    values: NDArray[np.int64] | None
    shape: tuple[int, ...]

    def pieces(self, domain: Domain) -> Iterator[tuple[Residual, float, NDArray[np.int64] | None]]:
        """Every piece of the marginal: the residual, the variance of its noise, and its numbers.

        A residual is measured on sums of as many noises as there are cells in the other columns.
        """
        axes = axes_of(domain, self.columns)
        variance = laplace_variance(self.scale)
        for place in product(*(range(axis.parts) for axis in axes)):
            residual = Residual(tuple((name, part) for name, part in zip(self.columns, place, strict=True) if part))
            others = tuple(axis for axis, part in enumerate(place) if not part)
            # The measuring matrix multiplies the noise of each orthogonal direction by its gain.
            gain = prod(axis.gain(part) for axis, part in zip(axes, place, strict=True) if part)
            spread = variance * gain * prod(self.shape[axis] for axis in others)
            if self.values is None:
                yield residual, spread, None
                continue
            counts = self.values.reshape(self.shape).sum(axis=others)
            yield residual, spread, np.asarray(residual.measure(counts, domain)).ravel().astype(np.int64)

    def precision(self, chosen: Sequence[str]) -> float:
        """What it adds to the precision of each piece of some of its columns."""
        others = prod(size for name, size in zip(self.columns, self.shape, strict=True) if name not in chosen)
        return 1 / (laplace_variance(self.scale) * others)


def laplace_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise: 2a/(1 − a)² with a = e^(−1/scale).

    >>> round(laplace_variance(Fraction(10)), 2)
    199.83
    """
    return 2 * exp(-1 / float(scale)) / expm1(-1 / float(scale)) ** 2


def noises(family: Family, known: "Known") -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """The error of one question as a sum of noises: the weight and the scale of each, and how often it occurs."""
    weights, scales, counts = [], [], []
    for whole in known.wholes:
        table = _weights(family, whole, known)
        others = prod(size for name, size in zip(whole.columns, whole.shape, strict=True) if name not in family.columns)
        # Rounding in the last places must not make a thousand weights of one.
        largest = float(np.abs(table).max(initial=0.0))
        kept, often = np.unique(
            np.abs(np.round(table, 12 - int(np.ceil(np.log10(largest or 1.0))))), return_counts=True
        )
        weights.append(kept[kept > 0])
        counts.append(others * often[kept > 0])
        scales.append(np.full(int((kept > 0).sum()), float(whole.scale)))
    return np.concatenate(weights), np.concatenate(scales), np.concatenate(counts).astype(np.int64)


def _weights(family: Family, whole: Whole, known: "Known") -> Numbers:
    """What the noise of each cell of a marginal weighs in the estimate of a question.

    It is the sum over the pieces of the question, each times the share of this marginal in what is known of the piece:
    a table over the columns that both have, the same for all cells of the others.
    """
    shared = tuple(name for name in family.columns if name in whole.columns)
    view = known.lattice.view(shared)
    assert view is not None, "fewer columns than a question that has a view"
    shares = np.zeros(view.precision.shape)
    for place in np.ndindex(*view.precision.shape):
        chosen = [name for name, part in zip(shared, place, strict=True) if part]
        shares[place] = whole.precision(chosen) / view.precision[place]
    total = np.zeros(tuple(known.domain[name].size for name in shared))
    for number, coefficient in enumerate(family.coefficients):
        table = shares * coefficient
        for name, reading in zip(family.columns, family.readings, strict=True):
            if name in shared:
                table = np.tensordot(table, _functions(reading, number), axes=(0, 0))
            else:
                table = table * reading.vectors[number, 0]
        total += table
    return total


def _functions(reading: Reading, row: int) -> Numbers:
    """The parts of a weight as functions on the cells: (part, cell)."""
    axis = reading.axis
    functions = np.empty((axis.parts, axis.cells))
    functions[0] = reading.vectors[row, 0]
    for part in range(1, axis.parts):
        begin, end = axis.starts[part - 1 : part + 1]
        functions[part] = reading.vectors[row, 1 + begin : 1 + end] @ axis.measure(part)
    return functions
