"""All multisets of m cells, walked through in order without ever being stored.

Cells that no query tells apart are of one kind. A walk goes through the multisets of kinds, which are fewer, and knows
of each how many multisets of cells it stands for. How long it takes depends on these numbers alone, never on a table.
"""

from dataclasses import dataclass
from math import comb, log10
from typing import Any

import numpy as np

from discreet import jit
from discreet.errors import TooLarge
from discreet.types import Ints, Ints32

# A multiset is drawn by a fair die with so many sides at most.
MOST_MULTISETS = 2**62
# Multisets of kinds times queries: what a walk may cost, and what it takes to look at one number, in nanoseconds.
MOST_WORK, EACH = 2**37, 1.0
# Below this a walk in plain Python is done before the compiler is loaded.
_FEW = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Multisets:
    """The multisets of `rows` cells, for queries that give cell x the weights `effects[:, x]`."""

    rows: int
    cells: int
    # The cells of each kind; what a row of each kind adds to each query; in how many ways each kind can be had c times.
    kinds: tuple[tuple[int, ...], ...]
    effects: Ints32
    ways: Ints

    @property
    def count(self) -> int:
        """How many there are: C(cells + rows − 1, rows)."""
        return comb(self.cells + self.rows - 1, self.rows)

    def walk(self, look: "AnswerLevels", level: int = -1, index: int = 0) -> "tuple[Ints, list[int], int]":
        """How many multisets are on each level; or, given one, the kinds of the index-th on it, and which it is there.

        The last number says which of the multisets of cells that these kinds stand for is meant.
        """
        work = comb(len(self.kinds) + self.rows - 1, self.rows) * self.effects.shape[1]
        loop = _loop if work < _FEW else jit.compiled(_loop)
        counts, path = np.zeros(look.levels, dtype=np.int64), np.zeros(self.rows, dtype=np.int64)
        left = index
        for first in range(len(self.kinds)):
            found, left = loop(first, self.effects, look.ranks, look.start, self.ways, counts, level, left, path)
            if found:
                return counts, path.tolist(), int(left)
        return counts, [], int(left)

    def cells_of(self, path: list[int], which: int) -> tuple[int, ...]:
        """The multiset of cells that is number `which` among those of these kinds, sorted."""
        chosen: list[int] = []
        for kind in sorted(set(path)):
            times = path.count(kind)
            which, here = divmod(which, int(self.ways[kind, times]))
            chosen += [self.kinds[kind][place] for place in unranked(here, len(self.kinds[kind]), times)]
        return tuple(sorted(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class AnswerLevels:
    """Where the walk reads the level of an answer: of query i, at start_i plus the sum of the weights of all rows."""

    ranks: Ints32
    start: Ints32
    levels: int


def multisets(effects: Ints, rows: int) -> Multisets:
    """All multisets of so many rows, or a refusal with their number.

    >>> every = multisets(np.array([[1, 1, 0]]), 2)
    >>> every.count, every.kinds
    (6, ((2,), (0, 1)))
    """
    cells = effects.shape[1]
    distinct, kind_of = np.unique(effects.T, axis=0, return_inverse=True)
    kinds = tuple(tuple(np.flatnonzero(kind_of.ravel() == kind).tolist()) for kind in range(len(distinct)))
    _require_feasible(cells, len(kinds), rows, effects.shape[0])
    ways = [[comb(len(kind) + times - 1, times) for times in range(rows + 1)] for kind in kinds]
    return Multisets(rows, cells, kinds, distinct.astype(np.int32), np.array(ways, dtype=np.int64))


def _require_feasible(cells: int, kinds: int, rows: int, queries: int) -> None:
    every, walked = comb(cells + rows - 1, rows), comb(kinds + rows - 1, rows)
    if walked * queries <= MOST_WORK and every < MOST_MULTISETS:
        return
    # The second walk stops half-way on average.
    seconds = min(walked * queries, 10**300) * EACH * 1.5e-9
    raise TooLarge(
        f"there are {_short(every)} multisets of {rows} rows from {cells} cells; each is scored on {queries} queries, "
        f"which would take about {_duration(seconds)}. The limit is {_duration(MOST_WORK * EACH * 1.5e-9)} and "
        "2^62 multisets. Take fewer rows, a smaller domain, or another method: the number grows exponentially."
    )


def unranked(index: int, cells: int, rows: int) -> list[int]:
    """The index-th multiset of so many rows in the order of its largest cells, as cells in rising order.

    Multisets y_1 ≤ … ≤ y_m are sets of y_j + j − 1, which the combinatorial number system numbers.

    >>> [unranked(index, 2, 2) for index in range(3)]
    [[0, 0], [0, 1], [1, 1]]
    """
    places, top = [], cells + rows - 2
    for size in range(rows, 0, -1):
        while comb(top, size) > index:
            top -= 1
        index -= comb(top, size)
        places.append(top - size + 1)
    return places[::-1]


def _loop(
    first: int,
    effects: Any,
    ranks: Any,
    start: Any,
    ways: Any,
    counts: Any,
    level: int,
    left: int,
    path: Any,
) -> tuple[bool, int]:
    """All multisets whose lowest kind is `first`, lowest kinds first; stop at the one on `level` that holds `left`."""
    kinds, queries, rows = effects.shape[0], effects.shape[1], path.size
    sums = np.zeros((rows + 1, queries), dtype=np.int32)
    run, before = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.int64)
    sums[0, :] = start
    path[0], run[0], depth = first, 1, 0
    for i in range(queries):
        sums[1, i] = sums[0, i] + effects[first, i]
    while True:
        if depth < rows - 2:
            depth += 1
            path[depth] = path[depth - 1]
        else:
            # All rows but the last are chosen (or, of one row, none is).
            lowest, highest = (path[depth], kinds) if rows > 1 else (first, first + 1)
            for last in range(lowest, highest):
                worst = 0
                for i in range(queries):
                    worst = max(worst, ranks[sums[rows - 1, i] + effects[last, i]])
                if rows == 1:
                    many = ways[last, 1]
                elif last == path[depth]:
                    many = before[depth] * ways[last, run[depth] + 1]
                else:
                    many = before[depth] * ways[path[depth], run[depth]] * ways[last, 1]
                counts[worst] += many
                if worst == level:
                    if left < many:
                        path[rows - 1] = last
                        return True, left
                    left -= many
            while depth > 0 and path[depth] == kinds - 1:
                depth -= 1
            if depth == 0:
                return False, left
            path[depth] += 1
        if path[depth] == path[depth - 1]:
            run[depth], before[depth] = run[depth - 1] + 1, before[depth - 1]
        else:
            run[depth], before[depth] = 1, before[depth - 1] * ways[path[depth - 1], run[depth - 1]]
        for i in range(queries):
            sums[depth + 1, i] = sums[depth, i] + effects[path[depth], i]


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"about 10^{log10(number):.1f}"


def _duration(seconds: float) -> str:
    for unit, size in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
