"""Where the cells of a box lie in a flat array: blocks of the same form, each of long runs, single cells or a mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.model.kernels import Kernels
from discreet.types import Floats, Ints

# A block has at most so many runs, unless one axis alone has more: then its lists stay in the fastest cache.
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
            # All of it so far: next to each other, its copies are one run.
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
    """Where a mask begins to be true, and where it ceases."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return edges[0::2], edges[1::2]


def _ranges(starts: Ints, stops: Ints) -> Ints:
    """All integers from each start up to its stop."""
    lengths = stops - starts
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    listed: Ints = np.repeat(starts, lengths) + within
    return listed
