"""The noisy marginals (looks) that a lattice of residuals holds, for models to be fitted to."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

import numpy as np

from discreet.known.lattice import Block, Lattice, subsets
from discreet.model.protocol import NoisyMarginal

# A weight must be finite: an exact value counts as one rounded to a whole number, of variance 1/12.
LARGEST_WEIGHT = 12.0


def noisy_marginals(lattice: Lattice, scopes: Iterable[Sequence[str]]) -> list[NoisyMarginal]:
    """All that a lattice says about some scopes: a look for each piece of them and of their subsets, each once.

    Pieces that were never measured are left out, and the total too: see `total_of`. The looks are in the order of
    their columns and parts, whatever the order of the scopes.
    """
    wanted = {chosen for scope in scopes for chosen in subsets(tuple(sorted(scope))) if chosen}
    known = [lattice.blocks[columns] for columns in sorted(wanted) if columns in lattice.blocks]
    return [look for block in known for look in _looks(block)]


def total_of(lattice: Lattice) -> tuple[float, float]:
    """What a lattice says about the number of rows, and the variance of that; infinite if it says nothing."""
    block = lattice.blocks.get(())
    if block is None or block.values is None or not block.precision[()]:
        return 0.0, float("inf")
    return float(block.values[()]), 1.0 / float(block.precision[()])


def _looks(block: Block) -> Iterable[NoisyMarginal]:
    if block.values is None:
        return
    for parts in product(*(range(1, axis.parts) for axis in block.axes)):
        precision = float(block.precision[tuple(part - 1 for part in parts)])
        if not precision:
            continue
        places = tuple(slice(*axis.starts[part - 1 : part + 1]) for axis, part in zip(block.axes, parts, strict=True))
        gain = prod(axis.gain(part) for axis, part in zip(block.axes, parts, strict=True))
        values = np.array(block.values[places])
        yield NoisyMarginal(block.columns, parts, values, min(precision / gain, LARGEST_WEIGHT))
