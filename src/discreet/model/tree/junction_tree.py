"""Junction trees: the graph of the measured scopes, triangulated into a tree of cliques.

Columns that were measured together are joined by an edge. Greedy elimination of the columns, which joins the
neighbours of each to each other, gives cliques that hold every scope; a spanning tree with the largest separators has
the running intersection property, so that messages along the tree make all tables exact marginals of one distribution.
The sizes of the tables are known before any is made.

[Lauritzen & Spiegelhalter 1988]; greedy orders: [Koller & Friedman 2009, 9.4.3].
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.errors import BadQuery
from discreet.jit import compiled, inline
from discreet.types import Columns


@dataclass(frozen=True)
class CliqueForest:
    """A forest of cliques, children before their parents; a root has parent −1. Columns in no clique are on their own.

    >>> triangulate([("a", "b"), ("b", "c")], {"a": 2, "b": 3, "c": 4, "d": 5})
    CliqueForest(cliques=(('a', 'b'), ('b', 'c')), parents=(1, -1), sizes=(('a', 2), ('b', 3), ('c', 4)))
    """

    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    sizes: tuple[tuple[str, int], ...]

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The number of cells of each column that is in some clique."""
        return dict(self.sizes)

    @cached_property
    def cells(self) -> int:
        """How many cells all the tables have together."""
        return sum(prod(self.size_of[name] for name in clique) for clique in self.cliques)

    def separator(self, clique: int) -> Columns:
        """The columns that a clique shares with its parent."""
        parent = self.parents[clique]
        return () if parent < 0 else tuple(name for name in self.cliques[clique] if name in self.cliques[parent])

    def place(self, scope: Sequence[str]) -> int:
        """The smallest clique that holds some columns, or −1."""
        wanted, best = set(scope), -1
        smallest = 0
        for at, clique in enumerate(self.cliques):
            if wanted.issubset(clique):
                cells = prod(self.size_of[name] for name in clique)
                if best < 0 or cells < smallest:
                    best, smallest = at, cells
        return best


def triangulate(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> CliqueForest:
    """The tree of cliques for some scopes, in any order: the smaller of two greedy ones, ties broken by name."""
    graph = _graph(scopes, sizes)
    return _span(sorted(graph.smallest()), graph)


def predicted_cells(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> int:
    """How many cells the tables of the tree will have together, exactly.

    >>> predicted_cells([("a", "b"), ("b", "c"), ("a", "c")], {"a": 2, "b": 3, "c": 4})
    24
    """
    graph = _graph(scopes, sizes)
    return graph.cells(graph.smallest())


def fits(scopes: Iterable[Sequence[str]], new_scope: Sequence[str], sizes: Mapping[str, int], most_cells: int) -> bool:
    """Whether the tree has at most `most_cells` cells when a scope is added.

    >>> fits([("a", "b"), ("b", "c")], ("a", "c"), {"a": 2, "b": 3, "c": 4}, 23)
    False
    """
    graph = _graph([*scopes, new_scope], sizes)
    for by_fill in (True, False):
        cliques = graph.cliques(by_fill=by_fill, most_cells=most_cells)
        if cliques is not None and graph.cells(cliques) <= most_cells:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Graph:
    """Columns by number, sorted by name, and which were measured together."""

    names: Columns
    sizes: tuple[int, ...]
    joined: NDArray[np.bool_]

    def cliques(self, *, by_fill: bool, most_cells: float = np.inf) -> list[list[int]] | None:
        """The maximal cliques of a greedy elimination; None if one is above the limit."""
        count = len(self.names)
        found = np.zeros((count, count), dtype=np.bool_)
        sizes = np.array(self.sizes, dtype=np.float64)
        number = elimination()(self.joined.copy(), sizes, by_fill, float(most_cells), found)
        return None if number < 0 else [np.flatnonzero(row).tolist() for row in found[:number]]

    def cells(self, cliques: Iterable[Iterable[int]]) -> int:
        """How many cells the tables of some cliques have, exactly."""
        return sum(prod(self.sizes[column] for column in clique) for clique in cliques)

    def smallest(self) -> list[list[int]]:
        """The cliques of the better greedy order."""
        orders = [self.cliques(by_fill=by_fill) or [] for by_fill in (True, False)]
        return min(orders, key=self.cells)


def _graph(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> _Graph:
    listed = [tuple(scope) for scope in scopes]
    names = tuple(sorted({name for scope in listed for name in scope}))
    for name in names:
        if name not in sizes:
            raise BadQuery(f'a scope has the column "{name}", and the sizes do not. Name columns of the domain.')
    number = {name: at for at, name in enumerate(names)}
    joined = np.zeros((len(names), len(names)), dtype=np.bool_)
    pairs = [(number[one], number[other]) for scope in listed for one in scope for other in scope]
    if pairs:
        joined[tuple(zip(*pairs, strict=True))] = True
    return _Graph(names, tuple(sizes[name] for name in names), joined)


def eliminate(
    joined: NDArray[np.bool_], sizes: NDArray[np.float64], by_fill: bool, most_cells: float, found: NDArray[np.bool_]
) -> int:
    """Eliminate the columns of a graph (which is overwritten) greedily; the number of maximal cliques `found`, or −1.

    The next column is the one whose elimination adds the least edges (`by_fill`: the summed sizes of their tables) or
    makes the smallest table; then by the other of the two; then the first. −1 says that a table is above the limit.
    """
    count = sizes.size
    left, stale = np.ones(count, dtype=np.bool_), np.ones(count, dtype=np.bool_)
    first, second = np.zeros(count), np.zeros(count)
    around = np.empty(count, dtype=np.int64)
    number = 0
    for column in range(count):
        joined[column, column] = False
    for _ in range(count):
        chosen = -1
        for column in range(count):
            if not left[column]:
                continue
            if stale[column]:
                fill, cells = elimination_cost(joined, sizes, column, around)
                first[column], second[column] = (fill, cells) if by_fill else (cells, fill)
                stale[column] = False
            if (
                chosen < 0
                or first[column] < first[chosen]
                or (first[column] == first[chosen] and second[column] < second[chosen])
            ):
                chosen = column
        if (second[chosen] if by_fill else first[chosen]) > most_cells:
            return -1
        left[chosen] = False
        degree = neighbours_of(joined, chosen, around)
        number = add_clique(found, number, chosen, around, degree)
        join_neighbours(joined, stale, chosen, around, degree)
    return number


def elimination_cost(
    joined: NDArray[np.bool_], sizes: NDArray[np.float64], column: int, around: NDArray[np.int64]
) -> tuple[float, float]:
    """The summed table sizes of the edges that eliminating a column adds, and the cells of its clique."""
    fill, cells, degree = 0.0, sizes[column], 0
    for other in range(sizes.size):
        if joined[column, other]:
            cells *= sizes[other]
            for before in range(degree):
                if not joined[around[before], other]:
                    fill += sizes[around[before]] * sizes[other]
            around[degree] = other
            degree += 1
    return fill, cells


def neighbours_of(joined: NDArray[np.bool_], column: int, around: NDArray[np.int64]) -> int:
    """Write the neighbours of a column to the beginning of `around`; how many there are."""
    degree = 0
    for other in range(joined.shape[0]):
        if joined[column, other]:
            around[degree] = other
            degree += 1
    return degree


def add_clique(found: NDArray[np.bool_], number: int, chosen: int, around: NDArray[np.int64], degree: int) -> int:
    """Add a column and its neighbours to the `number` cliques found, unless one holds them all; how many there are."""
    for clique in range(number):
        held = found[clique, chosen]
        for at in range(degree):
            held = held and found[clique, around[at]]
        if held:
            return number
    found[number, chosen] = True
    for at in range(degree):
        found[number, around[at]] = True
    return number + 1


def join_neighbours(
    joined: NDArray[np.bool_], stale: NDArray[np.bool_], chosen: int, around: NDArray[np.int64], degree: int
) -> None:
    """Take a column out of the graph and join its neighbours to each other; columns whose cost may change are stale."""
    for at in range(degree):
        one = around[at]
        joined[one, chosen] = joined[chosen, one] = False
        stale[one] = True
        for before in range(at):
            other = around[before]
            if not joined[one, other]:
                joined[one, other] = joined[other, one] = True
                # The new edge may be one that was missing around a column joined to both ends.
                for third in range(joined.shape[0]):
                    if joined[one, third] and joined[other, third]:
                        stale[third] = True


@memoize(1)
def elimination() -> Callable[..., int]:
    """The kernel `eliminate`, compiled."""
    for step in (elimination_cost, neighbours_of, add_clique, join_neighbours):
        inline(step)
    return compiled(eliminate)


def _span(cliques: list[list[int]], graph: _Graph) -> CliqueForest:
    """A spanning forest with the largest separators (Prim), each tree rooted at its middle."""
    number = len(cliques)
    masks = [sum(1 << column for column in clique) for clique in cliques]
    joined: list[list[int]] = [[] for _ in range(number)]
    reached = [False] * number
    for first in range(number):
        if reached[first]:
            continue
        reached[first] = True
        # For each clique outside the tree, the clique in it with which it shares most columns.
        best = [((masks[first] & mask).bit_count(), -first) for mask in masks]
        while True:
            outside = [at for at in range(number) if not reached[at]]
            new = max(outside, key=lambda at: (best[at][0], -at), default=-1)
            if new < 0 or best[new][0] == 0:
                break
            old = -best[new][1]
            joined[new].append(old)
            joined[old].append(new)
            reached[new] = True
            for at in outside:
                best[at] = max(best[at], ((masks[new] & masks[at]).bit_count(), -new))
    parents = _hang(joined)
    order = children_first(parents)
    place = {at: new for new, at in enumerate(order)}
    return CliqueForest(
        tuple(tuple(graph.names[column] for column in cliques[at]) for at in order),
        tuple(-1 if parents[at] < 0 else place[parents[at]] for at in order),
        tuple(zip(graph.names, graph.sizes, strict=True)),
    )


def _hang(joined: list[list[int]]) -> list[int]:
    """The parent of each clique when every tree is rooted at the middle of its longest path, to keep it shallow."""
    parents = [-2] * len(joined)
    for first in range(len(joined)):
        if parents[first] == -2:
            end = _walk(joined, first)[-1][0]
            steps = _walk(joined, end)
            came = dict(steps)
            path = [steps[-1][0]]
            while came[path[-1]] >= 0:
                path.append(came[path[-1]])
            for at, parent in _walk(joined, path[len(path) // 2]):
                parents[at] = parent
    return parents


def _walk(joined: list[list[int]], first: int) -> list[tuple[int, int]]:
    """The connected component of a clique, nearest first, each clique with the one it was reached from."""
    steps = [(first, -1)]
    for at, came in steps:
        steps.extend((other, at) for other in sorted(joined[at]) if other != came)
    return steps


def children_first(parents: Sequence[int]) -> list[int]:
    """The nodes of a forest in an order in which every node comes before its parent."""
    children: list[list[int]] = [[] for _ in parents]
    for at, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(at)
    order = [at for at, parent in enumerate(parents) if parent < 0]
    for at in order:
        order.extend(children[at])
    return order[::-1]
