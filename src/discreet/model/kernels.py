"""What runs once for each cell of a box: plain loops, compiled by numba when they are first wanted.

Each kernel goes over the cells of a box in a flat array of weights and returns their sum as it was before. A box is a
list of blocks, each of the same form and beginning at one of `offsets`; within a block its cells are long runs, single
cells, or the places of a mask (`runs.py` chooses). Sums within a piece are taken in whatever order is fastest; the sums
of the pieces are added up with compensation, so that the error does not grow with the number of cells.
"""

from collections.abc import Callable
from typing import NamedTuple

from discreet import jit
from discreet.cache import memoize
from discreet.types import Floats, Ints, Words

# A long run is taken in pieces of so many cells, to be added up with compensation.
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


# A slice is counted from its own beginning, and places in it are unsigned: a compiler that had to think of negative
# places would not use the vector units.


def piece_scaled(weights: Floats, start: int, stop: int, factor: float) -> float:
    """Scale a run; its sum before."""
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
    """Scale single cells; their sum before."""
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
    """Scale a stretch by a factor for each place; the sum before of those in the mask."""
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
    """A sum and what its roundings lost, with one part more (Kahan)."""
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
    """All of them as machine code; kept on disk between runs where that is possible."""
    # Only within a piece may sums be taken in another order: compensation must be done as it is written.
    for piece in (piece_scaled, piece_summed, cells_scaled, cells_summed, mask_scaled, mask_summed):
        jit.inline(piece, any_order=True)
    jit.inline(added)
    loops: tuple[Callable[..., float], ...] = (scale_runs, scale_cells, scale_mask, sum_runs, sum_cells, sum_mask)
    return Kernels(*(jit.compiled(loop) for loop in loops))
