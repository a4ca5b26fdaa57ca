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

from discreet.model.cliques import Columns, Shape, children_first

Integers = NDArray[np.int64]


class Walk(NamedTuple):
    """The tree as the kernels see it: for each node, children before parents.

    start, shared: where its table and its messages begin, and at the end how long all are; states, rest: how many cells
    the separator has, and how many lie together for each; maps: where `state` says, for each cell of the parent,
    which state of the separator it has.
    """

    parent: Integers
    start: Integers
    states: Integers
    rest: Integers
    shared: Integers
    maps: Integers
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
    """Add nodes for subsets of a clique, each below the smallest that holds it, with tables in between that pay.

    Walking an edge takes as many steps as its upper table has cells.
    """
    tables = {columns[clique], *wanted}
    leaves = sorted(tables - {columns[clique]})

    def above(scope: Columns, among: Iterable[Columns]) -> Columns:
        found = [table for table in among if table != scope and set(scope) < set(table)]
        return min(found, key=lambda table: (_cells(table, sizes), table))

    def steps(among: set[Columns]) -> int:
        return sum(_cells(above(table, among), sizes) for table in among if table != columns[clique])

    best = steps(tables)
    while len(leaves) > 2:
        tries = sorted(
            {tuple(n for n in table if n != name) for table in tables for name in table if len(table) > 2} - tables
        )
        if not tries:
            break
        counted = [(steps(tables | {each}), each) for each in tries]
        least, chosen = min(counted)
        if least >= best:
            break
        best, tables = least, tables | {chosen}
    # Larger tables first, so that a parent is there before its children.
    first = {columns[clique]: clique}
    for table in sorted(tables - {columns[clique]}, key=lambda each: (-len(each), each)):
        parents.append(first[above(table, tables)])
        columns.append(table)
        first[table] = len(columns) - 1


def _flatten(columns: Sequence[Columns], parents: Sequence[int], sizes: dict[str, int]) -> Layout:
    order = children_first(parents)
    place = {node: at for at, node in enumerate(order)}
    axes: list[Columns] = []
    parent = np.array([-1 if parents[node] < 0 else place[parents[node]] for node in order], dtype=np.int64)
    states, rest = np.ones(len(order), dtype=np.int64), np.ones(len(order), dtype=np.int64)
    for at, node in enumerate(order):
        upper = () if parents[node] < 0 else columns[parents[node]]
        separator = tuple(name for name in columns[node] if name in upper)
        others = tuple(name for name in columns[node] if name not in upper)
        axes.append(separator + others)
        states[at], rest[at] = _cells(separator, sizes), _cells(others, sizes)
    shapes = tuple(tuple(sizes[name] for name in each) for each in axes)
    maps, pieces = np.zeros(len(order), dtype=np.int64), []
    end = 0
    for at in range(len(order)):
        if parent[at] >= 0:
            maps[at] = end
            separator = axes[at][: sum(name in axes[parent[at]] for name in axes[at])]
            pieces.append(_index(axes[parent[at]], shapes[parent[at]], separator))
            end += pieces[-1].size
    walk = Walk(
        parent,
        np.concatenate([[0], np.cumsum(states * rest)]).astype(np.int64),
        states,
        rest,
        np.concatenate([[0], np.cumsum(states)]).astype(np.int64),
        maps,
        np.concatenate([np.zeros(0, dtype=np.int32), *pieces]),
    )
    return Layout(tuple(axes), shapes, {tuple(sorted(each)): at for at, each in enumerate(axes)}, walk)


def _index(axes: Columns, shape: tuple[int, ...], chosen: Columns) -> NDArray[np.int32]:
    """For each cell of a table, which cell of some of its columns it belongs to."""
    index = np.zeros(shape, dtype=np.int32)
    stride = 1
    for name in reversed(chosen):
        place = axes.index(name)
        codes = np.arange(shape[place], dtype=np.int32) * stride
        index += codes.reshape([-1 if at == place else 1 for at in range(len(axes))])
        stride *= shape[place]
    return index.reshape(-1)
