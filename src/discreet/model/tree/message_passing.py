"""Message passing on a junction tree whose tables lie in one array: the layout, and the kernels that walk it.

A node is a table over some columns: its separator (those it shares with its parent) first, then the others. So all
cells with one state of the separator lie together. Besides the cliques there is a node for each measured scope, below
the smallest table that holds it, and tables in between where several scopes can be summed from one smaller table.

A table in *directed* form holds, for each state of the separator, the distribution of the other columns. One walk from
the leaves to the root makes it from log-potentials with one exponential for each cell, and never overflows; the walk
back multiplies. Derivatives walk the same way with products alone. Sums are taken in the order of the code, so the
same tables have the same bits in every process and on every machine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import jit
from discreet.cache import memoize
from discreet.model.tree.junction_tree import CliqueForest, children_first
from discreet.types import Columns, Floats, Ints


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
        """The number of cells of all tables."""
        return int(self.walk.start[-1])

    def slice(self, node: int) -> slice:
        """Where the table of a node lies."""
        return slice(int(self.walk.start[node]), int(self.walk.start[node + 1]))

    def table(self, values: NDArray[np.float64], node: int) -> NDArray[np.float64]:
        """The table of a node, with an axis for each of its columns."""
        return values[self.slice(node)].reshape(self.shapes[node])


def layout_of(shape: CliqueForest, scopes: Iterable[Columns] = ()) -> Layout:
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
    """The clique above a node; a clique is its own."""
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
    """The map from the cells of a table to those of some of its columns, run by run.

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


class Passes(NamedTuple):
    """The walks, compiled."""

    direct: Callable[..., None]
    spread: Callable[..., None]
    differentiate: Callable[..., None]


def hand_up(walk: Walk, node: int, messages: Floats, cells: Floats) -> None:
    """Add the message of a node, a number for each state of its separator, to its parent; a root has none."""
    parent = walk.parent[node]
    if parent >= 0:
        length, cell = walk.runs[node], walk.start[parent]
        for run in range((walk.start[parent + 1] - cell) // length):
            state = walk.shared[node] + walk.state[walk.maps[node] + run]
            if walk.keeps[node]:
                for at in range(length):
                    cells[cell + at] += messages[state + at]
            else:
                message = messages[state]
                for at in range(length):
                    cells[cell + at] += message
            cell += length


def hand_down(walk: Walk, node: int, cells: Floats, shares: Floats) -> None:
    """Sum the cells of a node's parent to the states of its separator; a root has none."""
    parent = walk.parent[node]
    if parent >= 0:
        length, cell = walk.runs[node], walk.start[parent]
        for run in range((walk.start[parent + 1] - cell) // length):
            state = walk.shared[node] + walk.state[walk.maps[node] + run]
            if walk.keeps[node]:
                for at in range(length):
                    shares[state + at] += cells[cell + at]
            else:
                share = 0.0
                for at in range(length):
                    share += cells[cell + at]
                shares[state] += share
            cell += length


def to_conditionals(walk: Walk, logs: Floats, directed: Floats, messages: Floats) -> None:
    """From log-potentials (which are overwritten) to conditionals: upward, p(rest | separator) of every node."""
    for node in range(walk.parent.size):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent = walk.shared[node]
        if rest == 1:
            for state in range(states):
                messages[sent + state] = logs[start + state]
                directed[start + state] = 1.0
        else:
            for state in range(states):
                first = start + state * rest
                largest = logs[first]
                for cell in range(first + 1, first + rest):
                    largest = max(largest, logs[cell])
                total = 0.0
                for cell in range(first, first + rest):
                    value = exp(logs[cell] - largest)
                    directed[cell] = value
                    total += value
                messages[sent + state] = largest + log(total)
                scale = 1.0 / total
                for cell in range(first, first + rest):
                    directed[cell] *= scale
        hand_up(walk, node, messages, logs)


def to_beliefs(walk: Walk, directed: Floats, beliefs: Floats, shares: Floats) -> None:
    """From conditionals to marginals: downward, p(separator) of every node times its conditionals."""
    shares[:] = 0.0
    for node in range(walk.parent.size - 1, -1, -1):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent = walk.shared[node]
        hand_down(walk, node, beliefs, shares)
        if walk.parent[node] < 0:
            shares[sent] = 1.0
        if rest == 1:
            for state in range(states):
                beliefs[start + state] = shares[sent + state]
        else:
            for state in range(states):
                share = shares[sent + state]
                for cell in range(start + state * rest, start + (state + 1) * rest):
                    beliefs[cell] = share * directed[cell]


def differentiate(
    walk: Walk, directed: Floats, beliefs: Floats, moved: Floats, means: Floats, change: Floats, shares: Floats
) -> None:
    """How the marginals change when the log-potentials move (`moved`, which is overwritten): their covariances with it.

    Upward, `means` is the mean move given the separator; downward, `change` is p · (move − mean) + conditional · change
    of the separator.
    """
    for node in range(walk.parent.size):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent = walk.shared[node]
        if rest == 1:
            for state in range(states):
                means[sent + state] = moved[start + state]
        else:
            for state in range(states):
                mean = 0.0
                for cell in range(start + state * rest, start + (state + 1) * rest):
                    mean += directed[cell] * moved[cell]
                means[sent + state] = mean
        hand_up(walk, node, means, moved)
    shares[:] = 0.0
    for node in range(walk.parent.size - 1, -1, -1):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent = walk.shared[node]
        hand_down(walk, node, change, shares)
        if rest == 1:
            for state in range(states):
                change[start + state] = shares[sent + state]
        else:
            for state in range(states):
                share, mean = shares[sent + state], means[sent + state]
                for cell in range(start + state * rest, start + (state + 1) * rest):
                    change[cell] = beliefs[cell] * (moved[cell] - mean) + share * directed[cell]


@memoize(1)
def message_passes() -> Passes:
    """The three walks, compiled."""
    for shared in (hand_up, hand_down):
        jit.inline(shared)
    return Passes(jit.compiled(to_conditionals), jit.compiled(to_beliefs), jit.compiled(differentiate))
