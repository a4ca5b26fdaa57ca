"""The cells of a box in a flat array: where they lie, and compiled loops that sum or scale them.

A box is a list of blocks of one form, each beginning at one of `offsets`. Within a block the cells are long runs,
single cells, or the places of a mask; `runs_of` chooses. Each kernel returns the sum of the box as it was before.
Sums within a piece are taken in whatever order is fastest; the sums of the pieces are added up with compensation, so
that the error does not grow with the number of cells. numba compiles the loops when they are first called.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import jit
from discreet.cache import memoize
from discreet.types import Floats, Ints, Words

# A long run is summed in pieces of this many cells, and the pieces with compensation.
PIECE = 4096
# |sum − true sum| ≤ SLIP · sum for sums of weights: a piece is added up in at most PIECE additions, each of relative
# error 2^−53, and the compensated sum of the pieces adds less than that again.
SLIP = 2.0**-40


class Kernels(NamedTuple):
    """The loops, compiled: to scale the cells of a box by a factor, and to add them up."""

    scale_runs: Callable[..., float]
    scale_cells: Callable[..., float]
    scale_mask: Callable[..., float]
    sum_runs: Callable[..., float]
    sum_cells: Callable[..., float]
    sum_mask: Callable[..., float]


# A slice is counted from its own beginning, and places in it are unsigned: with negative places
# possible, the compiler would not use the vector units.


def piece_scaled(weights: Floats, start: int, stop: int, factor: float) -> float:
    """Scale a run; return its sum before."""
    run = weights[start:stop]
    total = 0.0
    for i in range(len(run)):
        value = run[i]
        total += value
        run[i] = value * factor
    return total


def piece_summed(weights: Floats, start: int, stop: int) -> float:
    """The sum of a run."""
    run = weights[start:stop]
    total = 0.0
    for i in range(len(run)):
        total += run[i]
    return total


def cells_scaled(weights: Floats, offset: int, cells: Words, factor: float) -> float:
    """Scale single cells; return their sum before."""
    block = weights[offset:]
    total = 0.0
    for i in cells:
        value = block[i]
        total += value
        block[i] = value * factor
    return total


def cells_summed(weights: Floats, offset: int, cells: Words) -> float:
    """The sum of single cells."""
    block = weights[offset:]
    total = 0.0
    for i in cells:
        total += block[i]
    return total


def mask_scaled(weights: Floats, offset: int, mask: Floats, factors: Floats) -> float:
    """Scale a stretch by a factor for each place; return the sum before of the places in the mask."""
    stretch = weights[offset : offset + len(mask)]
    total = 0.0
    for i in range(len(stretch)):
        value = stretch[i]
        total += value * mask[i]
        stretch[i] = value * factors[i]
    return total


def mask_summed(weights: Floats, offset: int, mask: Floats) -> float:
    """The sum of the places in the mask."""
    stretch = weights[offset : offset + len(mask)]
    total = 0.0
    for i in range(len(stretch)):
        total += stretch[i] * mask[i]
    return total


def added(total: float, lost: float, part: float) -> tuple[float, float]:
    """Kahan summation: a sum and its lost roundings, with one more part."""
    part -= lost
    grown = total + part
    return grown, (grown - total) - part


def scale_runs(weights: Floats, offsets: Ints, starts: Ints, stops: Ints, factor: float) -> float:
    """Scale the runs of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        for r in range(len(starts)):
            stop = offsets[b] + stops[r]
            for start in range(offsets[b] + starts[r], stop, PIECE):
                total, lost = added(total, lost, piece_scaled(weights, start, min(start + PIECE, stop), factor))
    return total


def sum_runs(weights: Floats, offsets: Ints, starts: Ints, stops: Ints) -> float:
    """Add up the runs of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        for r in range(len(starts)):
            stop = offsets[b] + stops[r]
            for start in range(offsets[b] + starts[r], stop, PIECE):
                total, lost = added(total, lost, piece_summed(weights, start, min(start + PIECE, stop)))
    return total


def scale_cells(weights: Floats, offsets: Ints, cells: Words, factor: float) -> float:
    """Scale the single cells of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        total, lost = added(total, lost, cells_scaled(weights, offsets[b], cells, factor))
    return total


def sum_cells(weights: Floats, offsets: Ints, cells: Words) -> float:
    """Add up the single cells of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        total, lost = added(total, lost, cells_summed(weights, offsets[b], cells))
    return total


def scale_mask(weights: Floats, offsets: Ints, mask: Floats, factors: Floats) -> float:
    """Scale the masked stretch of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        total, lost = added(total, lost, mask_scaled(weights, offsets[b], mask, factors))
    return total


def sum_mask(weights: Floats, offsets: Ints, mask: Floats) -> float:
    """Add up the masked stretch of every block."""
    total, lost = 0.0, 0.0
    for b in range(len(offsets)):
        total, lost = added(total, lost, mask_summed(weights, offsets[b], mask))
    return total


@memoize(1)
def range_kernels() -> Kernels:
    """The kernels, compiled; the machine code is cached on disk where that is possible."""
    # Only within a piece may sums be taken in another order: compensation must be done as it is written.
    for piece in (piece_scaled, piece_summed, cells_scaled, cells_summed, mask_scaled, mask_summed):
        jit.inline(piece, any_order=True)
    jit.inline(added)
    loops: tuple[Callable[..., float], ...] = (scale_runs, scale_cells, scale_mask, sum_runs, sum_cells, sum_mask)
    return Kernels(*(jit.compiled(loop) for loop in loops))


# A block has at most this many runs, unless one axis alone has more: its lists then stay in the fastest cache.
MOST_RUNS = 1024
# Eight doubles lie in one line of the cache: shorter runs are slower than a mask, and sparser masks than single cells.
LINE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The cells of a box: in the block at each of `offsets`, those from `starts` up to `stops`."""

    offsets: Ints
    starts: Ints
    stops: Ints

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.offsets) * int((self.stops - self.starts).sum())

    def total(self, weights: Floats, kernels: Kernels) -> float:
        """The sum of the weights in the box."""
        if self._long:
            return kernels.sum_runs(weights, self.offsets, self.starts, self.stops)
        if self._crowded:
            return kernels.sum_mask(weights, self.offsets + self.starts[0], self._mask)
        return kernels.sum_cells(weights, self.offsets, self._listed.view(np.uint64))

    def scale(self, weights: Floats, factor: float, kernels: Kernels) -> float:
        """Scale the weights in the box, in place; their sum before."""
        if self._long:
            return kernels.scale_runs(weights, self.offsets, self.starts, self.stops, factor)
        if self._crowded:
            mask = self._mask
            factors = np.where(mask > 0, factor, 1.0)
            return kernels.scale_mask(weights, self.offsets + self.starts[0], mask, factors)
        return kernels.scale_cells(weights, self.offsets, self._listed.view(np.uint64), factor)

    @property
    def _long(self) -> bool:
        return bool((self.stops - self.starts).sum() >= LINE * len(self.starts))

    @property
    def _crowded(self) -> bool:
        return bool((self.stops - self.starts).sum() * LINE >= self.stops[-1] - self.starts[0])

    @property
    def _listed(self) -> Ints:
        return _ranges(self.starts, self.stops)

    @property
    def _mask(self) -> Floats:
        mask = np.zeros(int(self.stops[-1] - self.starts[0]))
        mask[self._listed - self.starts[0]] = 1.0
        return mask


def runs_of(shape: Sequence[int], chosen: Sequence[NDArray[np.bool_] | None]) -> Runs:
    """The runs of the box that allows, on each axis, the places in a mask (all of them, if None).

    >>> found = runs_of((2, 3, 4), [None, np.array([False, True, True]), None])
    >>> found.offsets.tolist(), found.starts.tolist(), found.stops.tolist()
    ([0], [4, 16], [12, 24])
    """
    starts, stops, cells, axis = np.array([0]), np.array([1]), 1, len(shape)
    while axis > 0:
        mask, size = chosen[axis - 1], shape[axis - 1]
        if len(starts) == 1 and stops[0] - starts[0] == cells:
            # Everything so far is allowed: adjacent copies form one run.
            firsts, lasts = (np.array([0]), np.array([size])) if mask is None else _stretches(mask)
            starts, stops = firsts * cells, lasts * cells
        else:
            places = np.arange(size) if mask is None else np.flatnonzero(mask)
            covered = int((stops - starts).sum())
            thinner = covered * len(places) * LINE < cells * size <= covered * size * LINE
            if len(starts) * len(places) > MOST_RUNS or (thinner and cells >= LINE**2):
                break
            starts, stops = (np.add.outer(places * cells, ends).ravel() for ends in (starts, stops))
        cells, axis = cells * size, axis - 1
    return Runs(_offsets(shape[:axis], chosen[:axis], cells), starts, stops)


def _offsets(shape: Sequence[int], chosen: Sequence[NDArray[np.bool_] | None], cells: int) -> Ints:
    offsets = np.zeros(1, dtype=np.int64)
    for axis, (size, mask) in enumerate(zip(shape, chosen, strict=True)):
        places = np.arange(size) if mask is None else np.flatnonzero(mask)
        offsets = np.add.outer(offsets, places * (prod(shape[axis + 1 :]) * cells)).ravel()
    return offsets


def _stretches(mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The starts and ends of the runs of True in a mask."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return edges[0::2], edges[1::2]


def _ranges(starts: Ints, stops: Ints) -> Ints:
    """All integers from each start up to its stop."""
    lengths = stops - starts
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    listed: Ints = np.repeat(starts, lengths) + within
    return listed
