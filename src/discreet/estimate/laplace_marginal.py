"""Whole marginals with discrete Laplace noise: what is measured under pure DP (delta = 0).

A marginal of the columns S with independent noise of variance v in every cell gives each residual V of S the precision
1/(v · cells of the other columns). So it joins the same lattice, and there is one estimate for everything. Only the
tails differ: the error of an answer is a weighted sum of Laplace noises with known weights.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.estimate.measurements import laplace_variance
from discreet.estimate.separable import Family
from discreet.estimate.transform import Listed
from discreet.query.residual import Residual, axes_of, measure_all, residual_slices
from discreet.schema.domain import Domain
from discreet.types import Numbers

if TYPE_CHECKING:
    from discreet.estimate.estimator import Estimator


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """A marginal that was measured: its columns (sorted), the scale of the noise, and its noisy counts.

    `noises` is the number of independent noises in each count: more than one if further columns were added up.
    """

    columns: tuple[str, ...]
    scale: Fraction
    values: NDArray[np.int64] | None
    shape: tuple[int, ...]
    noises: int = 1

    def within(self, names: Set[str]) -> "MeasuredMarginal":
        """The marginal of some of its columns: the cells of the others added up, and their noises with them."""
        others = tuple(axis for axis, name in enumerate(self.columns) if name not in names)
        kept = [axis for axis in range(len(self.columns)) if axis not in others]
        values = None if self.values is None else self.values.reshape(self.shape).sum(axis=others).ravel()
        noises = self.noises * prod(self.shape[axis] for axis in others)
        shape = tuple(self.shape[axis] for axis in kept)
        return MeasuredMarginal(tuple(self.columns[axis] for axis in kept), self.scale, values, shape, noises)

    def pieces(self, domain: Domain) -> Iterator[tuple[Residual, float, NDArray[np.int64] | None]]:
        """Every residual of the marginal: the residual, the variance of its noise, and its numbers.

        A residual is measured on sums of as many noises as there are cells in the other columns.
        """
        axes = axes_of(domain, self.columns)
        variance = laplace_variance(self.scale) * self.noises
        measured = None if self.values is None else measure_all(self.values.reshape(self.shape), axes)
        for place in product(*(range(axis.parts) for axis in axes)):
            residual = Residual(tuple((name, part) for name, part in zip(self.columns, place, strict=True) if part))
            others = tuple(axis for axis, part in enumerate(place) if not part)
            # The measuring matrix multiplies the noise of each orthogonal direction by its gain.
            gain = prod(axis.gain(part) for axis, part in zip(axes, place, strict=True) if part)
            spread = variance * gain * prod(self.shape[axis] for axis in others)
            if measured is None:
                yield residual, spread, None
                continue
            yield residual, spread, measured[residual_slices(self.columns, axes, residual)].ravel().astype(np.int64)

    def precision(self, chosen: Sequence[str]) -> float:
        """What it adds to the precision of each residual of some of its columns."""
        others = prod(size for name, size in zip(self.columns, self.shape, strict=True) if name not in chosen)
        return 1 / (laplace_variance(self.scale) * self.noises * others)


# The most multiplications for the noises of one question; and the multiplications that one step of numpy counts as.
MOST_WEIGHED, LATTICE_STEP = 2**27, 2**15


def are_few(family: Family, known: "Estimator", questions: int = 1) -> bool:
    """Whether the noises of this number of questions of one form can be listed in a fraction of a second."""
    sizes = {name: known.domain[name].size for name in family.columns}
    shared = {_shared(family, whole) for whole in known.marginals}
    cells = sum(LATTICE_STEP + prod(sizes[name] for name in each) for each in shared)
    every = len(known.marginals) * max(
        (LATTICE_STEP + prod(sizes[name] for name in each) for each in shared), default=0
    )
    return questions * (family.products * (1 + len(family.columns)) * cells + every) <= MOST_WEIGHED


def _shared(family: Family, whole: MeasuredMarginal) -> tuple[str, ...]:
    return tuple(name for name in family.columns if name in whole.columns)


def noises(family: Family, known: "Estimator") -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """The error of one question as a sum of noises: the weight and the scale of each, and how often it occurs."""
    weights, scales, counts = [], [], []
    tables: dict[tuple[str, ...], Numbers] = {}
    for whole in known.marginals:
        shared = _shared(family, whole)
        if shared not in tables:
            tables[shared] = _weights(family, shared, known)
        others = whole.noises * prod(
            size for name, size in zip(whole.columns, whole.shape, strict=True) if name not in family.columns
        )
        table = tables[shared] / (laplace_variance(whole.scale) * others)
        # Weights that differ by rounding alone count as one.
        largest = float(np.abs(table).max(initial=0.0))
        kept, often = np.unique(
            np.abs(np.round(table, 12 - int(np.ceil(np.log10(largest or 1.0))))), return_counts=True
        )
        weights.append(kept[kept > 0])
        counts.append(others * often[kept > 0])
        scales.append(np.full(int((kept > 0).sum()), float(whole.scale)))
    return np.concatenate(weights), np.concatenate(scales), np.concatenate(counts).astype(np.int64)


def _weights(family: Family, shared: tuple[str, ...], known: "Estimator") -> Numbers:
    """The weight of the noise of each cell of a marginal in the estimate of a question, for a precision of 1.

    It is the sum over the residuals of the question, each times the share of the marginal in its precision: a table
    over the columns that both have, the same for all cells of the others. So it is the same for all marginals that
    share these columns with the question, but for their precision.
    """
    view = known.lattice.view(shared)
    assert view is not None, "fewer columns than a question that has a view"
    # What the marginal adds to the precision of each residual, by the cells of the columns that are constant there.
    others = np.ones(())
    for axis in axes_of(known.domain, shared):
        others = np.multiply.outer(others, np.array([float(axis.cells), *([1.0] * (axis.parts - 1))]))
    shares = 1 / others / view.precision
    total = np.zeros(tuple(known.domain[name].size for name in shared))
    for number, coefficient in enumerate(family.coefficients):
        table = shares * coefficient
        for place, name in enumerate(family.columns):
            reading = family.listed(place)
            if name in shared:
                table = np.tensordot(table, _functions(reading, number), axes=(0, 0))
            else:
                table = table * reading.vectors[number, 0]
        total += table
    return total


def _functions(reading: Listed, row: int) -> Numbers:
    """The parts of a weight as functions on the cells: (part, cell)."""
    axis = reading.axis
    functions = np.empty((axis.parts, axis.cells))
    functions[0] = reading.vectors[row, 0]
    for part in range(1, axis.parts):
        begin, end = axis.starts[part - 1 : part + 1]
        functions[part] = axis.adjoint(part, reading.vectors[row, 1 + begin : 1 + end])
    return functions
