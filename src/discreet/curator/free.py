"""What can be answered for free: sets of columns of which everything is known, and how well."""

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from discreet.known.known import Known
from discreet.query.linear import Marginal
from discreet.types import Columns


@dataclass(frozen=True, slots=True)
class Free:
    """Some columns of which every question has an answer; `error` is the half-width of one cell."""

    columns: Columns
    cells: int
    error: float
    confidence: float


def free_now(known: Known, confidence: float) -> list[Free]:
    """The largest sets of columns of which every piece was measured, those known best first."""
    whole: set[Columns] = set()
    for columns in sorted(known.lattice.blocks, key=len):
        block = known.lattice.blocks[columns]
        smaller = combinations(columns, len(columns) - 1) if columns else ()
        if np.all(block.precision > 0) and all(fewer in whole for fewer in smaller):
            whole.add(columns)
    covered = {fewer for columns in whole if columns for fewer in combinations(columns, len(columns) - 1)}
    found = []
    largest = sorted(whole - covered)
    for columns in largest:
        if known.family(Marginal(columns)) is not None:
            error = known.largest_error(Marginal(columns), confidence, among=len(largest))
            cells = prod(known.domain[name].size for name in columns)
            found.append(Free(columns, cells, error, confidence))
    return sorted(found, key=lambda one: (one.error, one.columns))
