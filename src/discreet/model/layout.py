"""Where everything lies: tables of cliques and of parts of them in one array, so that one kernel walks the whole tree.

A node is a table over some columns: those it shares with its parent first (its separator), then the others. So all
cells with one state of the separator lie together. Besides the cliques there is a node for each measured scope, below
the smallest table that holds it, and tables in between where several scopes can be summed from one smaller table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.model.cliques import Shape, children_first
from discreet.types import Columns, Ints


class Walk(NamedTuple):
    """The tree as the kernels see it: for each node, children before parents.

    start, shared: where its table and its messages begin, and at the end how long all are; states, rest: how many
    cells the separator has, and how many lie together for each; maps: where `state` says, for each run of cells of
    the parent, in which state of the separator it begins; runs, keeps: how long these are, and whether the states run
    along.
    """

    parent: Ints
    start: Ints
    states: Ints
    rest: Ints
    shared: Ints
    maps: Ints
    runs: Ints
    keeps: NDArray[np.bool_]
    state: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Layout:
    """Nodes with their columns, in the order of the axes of their tables, and what the kernels need of them."""

    columns: tuple[Columns, ...]
    shapes: tuple[tuple[int, ...], ...]
    places: dict[Columns, int]
    walk: Walk

    @property
    def cells(self) -> int:
        """How many cells all tables have together."""
        return int(self.walk.start[-1])

    def slice(self, node: int) -> slice:
        """Where the table of a node lies."""
        return slice(int(self.walk.start[node]), int(self.walk.start[node + 1]))

    def table(self, values: NDArray[np.float64], node: int) -> NDArray[np.float64]:
        """The table of a node, with an axis for each of its columns."""
        return values[self.slice(node)].reshape(self.shapes[node])


def lay_out(shape: Shape, scopes: Iterable[Columns] = ()) -> Layout:
    """The nodes for a tree of cliques and for the scopes that are measured in it, each a sorted tuple of columns."""
    columns: list[Columns] = list(shape.cliques)
    parents: list[int] = list(shape.parents)
    wanted: dict[int, list[Columns]] = {}
    for scope in sorted(set(scopes)):
        wanted.setdefault(shape.place(scope), []).append(scope)
    separators = [shape.separator(clique) for clique in range(len(shape.cliques))]
    if wanted:
        for clique, separator in enumerate(separators):
            if separator:
                wanted.setdefault(shape.parents[clique], []).append(separator)
        for clique in sorted(wanted):
            _hang_below(clique, wanted[clique], columns, parents, shape.size_of)
        held = {
            at: [node for node in range(len(columns)) if _root(node, parents, len(separators)) == at] for at in wanted
        }
        for clique, separator in enumerate(separators):
            if separator:
                inside = [at for at in held[shape.parents[clique]] if set(separator) <= set(columns[at])]
                parents[clique] = min(inside, key=lambda at: (_cells(columns[at], shape.size_of), at))
    return _flatten(columns, parents, shape.size_of)


def _root(node: int, parents: Sequence[int], cliques: int) -> int:
    """The clique below which a node hangs; a clique itself."""
    while node >= cliques:
        node = parents[node]
    return node


def _cells(columns: Iterable[str], sizes: dict[str, int]) -> int:
    return prod(sizes[name] for name in columns)


def _hang_below(
    clique: int, wanted: list[Columns], columns: list[Columns], parents: list[int], sizes: dict[str, int]
) -> None:
    """Add nodes for subsets of a clique, each below the smallest that holds it, with tables in between that pay."""
    names = columns[clique]
    whole = (1 << len(names)) - 1
    tables = {sum(1 << names.index(name) for name in scope) for scope in wanted} - {whole}
    nodes = {whole: clique}
    above = _between(whole, sorted(tables), [sizes[name] for name in names])
    # Larger tables first, so that a parent is there before its children.
    for table in sorted(above, key=lambda mask: (-mask.bit_count(), mask)):
        parents.append(nodes[above[table]])
        columns.append(tuple(name for at, name in enumerate(names) if table >> at & 1))
        nodes[table] = len(columns) - 1


def _between(whole: int, tables: list[int], sizes: list[int]) -> dict[int, int]:
    """For each table, as bits for its columns, the smallest table that holds it; with new tables in between.

    Walking an edge takes as many steps as its upper table has cells. So a table in between takes the steps of the one
    above it once more, and saves steps for all that go below it.
    """

    @memoize(2**12)
    def cells(table: int) -> int:
        return prod(size for at, size in enumerate(sizes) if table >> at & 1)

    def smallest(table: int) -> int:
        holding = [other for other in (whole, *above) if other & table == table and other != table]
        return min(holding, key=lambda other: (cells(other), other))

    above = dict.fromkeys(tables, whole)
    above = {table: smallest(table) for table in tables}
    while len(above) > 2:
        tries = {
            table ^ 1 << at
            for table in (whole, *above)
            for at in range(len(sizes))
            if table >> at & 1 and table.bit_count() > 2
        }
        saved = []
        for new in tries.difference(above):
            below = [cells(up) for table, up in above.items() if table & new == table]
            if len(below) > 1:
                gain = sum(max(0, steps - cells(new)) for steps in below) - cells(smallest(new))
                saved.append((-gain, new))
        if not saved or min(saved)[0] >= 0:
            break
        new = min(saved)[1]
        above = {**above, new: smallest(new)}
        for table, up in above.items():
            if table & new == table != new and (cells(new), new) < (cells(up), up):
                above[table] = new
    return above


def _flatten(columns: Sequence[Columns], parents: Sequence[int], sizes: dict[str, int]) -> Layout:
    order = children_first(parents)
    place = {node: at for at, node in enumerate(order)}
    parent = np.array([-1 if parents[node] < 0 else place[parents[node]] for node in order], dtype=np.int64)
    axes: list[Columns] = [()] * len(order)
    states, rest = np.ones(len(order), dtype=np.int64), np.ones(len(order), dtype=np.int64)
    for at in reversed(range(len(order))):
        upper = axes[parent[at]] if parent[at] >= 0 else ()
        # The separator in the order of the parent's axes, so that cells which lie together there do so here.
        separator = tuple(name for name in upper if name in columns[order[at]])
        others = tuple(name for name in columns[order[at]] if name not in upper)
        axes[at] = separator + others
        states[at], rest[at] = _cells(separator, sizes), _cells(others, sizes)
    shapes = tuple(tuple(sizes[name] for name in each) for each in axes)
    maps, runs = np.zeros(len(order), dtype=np.int64), np.ones(len(order), dtype=np.int64)
    keeps, pieces = np.zeros(len(order), dtype=np.bool_), [np.zeros(0, dtype=np.int32)]
    for at in range(len(order)):
        if parent[at] >= 0:
            separator = tuple(name for name in axes[parent[at]] if name in axes[at])
            maps[at] = sum(piece.size for piece in pieces)
            runs[at], keeps[at], piece = _runs(axes[parent[at]], shapes[parent[at]], separator)
            pieces.append(piece)
    walk = Walk(
        parent,
        np.concatenate([[0], np.cumsum(states * rest)]).astype(np.int64),
        states,
        rest,
        np.concatenate([[0], np.cumsum(states)]).astype(np.int64),
        maps,
        runs,
        keeps,
        np.concatenate(pieces),
    )
    return Layout(tuple(axes), shapes, {tuple(sorted(each)): at for at, each in enumerate(axes)}, walk)


def _runs(axes: Columns, shape: tuple[int, ...], kept: Columns) -> tuple[int, bool, NDArray[np.int32]]:
    """How the cells of a table fall into those of some of its columns, run by run.

    A run is a stretch of cells whose last columns are all kept (then they lie together there too) or all summed out
    (then they are one cell there); the array says, for each run, the cell in which it begins.
    """
    keeps = bool(axes) and axes[-1] in kept
    last = len(axes)
    while last and (axes[last - 1] in kept) == keeps:
        last -= 1
    run = prod(shape[last:])
    first = np.zeros(shape[:last], dtype=np.int32)
    stride = run if keeps else 1
    for at in reversed(range(last)):
        if axes[at] in kept:
            codes = np.arange(shape[at], dtype=np.int32) * stride
            first += codes.reshape([-1 if other == at else 1 for other in range(last)])
            stride *= shape[at]
    return run, keeps, first.reshape(-1)
