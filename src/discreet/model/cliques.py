"""The graph of the measured scopes, made into a tree of cliques: small tables whose product is a distribution.

Columns that were measured together are joined by an edge. Eliminating the columns one after the other, each time
joining what the column was joined to, gives cliques in which every scope has a place; a spanning tree of them with the
largest separators keeps every column in one connected piece (running intersection), so that messages along the tree
make all tables exact marginals of one distribution. How large the tables are is known before any is made.

[Lauritzen & Spiegelhalter 1988]; greedy orders: [Koller & Friedman 2009, 9.4.3].
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from discreet.errors import BadQuery

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """A forest of cliques, children before their parents; a root has parent −1. Columns in no clique are on their own.

    >>> triangulate([("a", "b"), ("b", "c")], {"a": 2, "b": 3, "c": 4, "d": 5})
    Shape(cliques=(('a', 'b'), ('b', 'c')), parents=(1, -1), sizes=(('a', 2), ('b', 3), ('c', 4)))
    """

    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]
    sizes: tuple[tuple[str, int], ...]

    @cached_property
    def size_of(self) -> dict[str, int]:
        """How many cells each column has that is in some clique."""
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


def triangulate(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> Shape:
    """The tree of cliques for some scopes, in whatever order: the smaller of two greedy ones, ties by name."""
    graph = _graph(scopes, sizes)
    masks = _smallest(graph)
    cliques = [tuple(name for at, name in enumerate(graph.names) if mask >> at & 1) for mask in masks]
    order = sorted(range(len(cliques)), key=lambda at: cliques[at])
    return _span([cliques[at] for at in order], [masks[at] for at in order], graph)


def predicted_cells(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> int:
    """How many cells the tables of the tree will have together, exactly.

    >>> predicted_cells([("a", "b"), ("b", "c"), ("a", "c")], {"a": 2, "b": 3, "c": 4})
    24
    """
    graph = _graph(scopes, sizes)
    return sum(graph.cells(mask) for mask in _smallest(graph))


def fits(scopes: Iterable[Sequence[str]], new_scope: Sequence[str], sizes: Mapping[str, int], most_cells: int) -> bool:
    """Whether the tree keeps within so many cells when a scope is added.

    >>> fits([("a", "b"), ("b", "c")], ("a", "c"), {"a": 2, "b": 3, "c": 4}, 23)
    False
    """
    graph = _graph([*scopes, new_scope], sizes)
    return any(
        (masks := _eliminate(graph, by_fill=by_fill, most_cells=most_cells)) is not None
        and sum(map(graph.cells, masks)) <= most_cells
        for by_fill in (True, False)
    )


@dataclass(frozen=True, slots=True)
class _Graph:
    """Columns by number, sorted by name; the neighbours of each as the bits of an integer."""

    names: Columns
    sizes: tuple[int, ...]
    neighbours: tuple[int, ...]

    def cells(self, mask: int) -> int:
        """The number of cells of a set of columns."""
        cells = 1
        while mask:
            low = mask & -mask
            cells *= self.sizes[low.bit_length() - 1]
            mask ^= low
        return cells


def _graph(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> _Graph:
    listed = [tuple(scope) for scope in scopes]
    names = tuple(sorted({name for scope in listed for name in scope}))
    for name in names:
        if name not in sizes:
            raise BadQuery(f'a scope has the column "{name}", and the sizes do not. Name columns of the domain.')
    number = {name: at for at, name in enumerate(names)}
    neighbours = [0] * len(names)
    for scope in listed:
        mask = sum(1 << number[name] for name in set(scope))
        for name in scope:
            neighbours[number[name]] |= mask
    for at in range(len(names)):
        neighbours[at] &= ~(1 << at)
    return _Graph(names, tuple(sizes[name] for name in names), tuple(neighbours))


def _smallest(graph: _Graph) -> list[int]:
    found = []
    for by_fill in (True, False):
        masks = _eliminate(graph, by_fill=by_fill)
        assert masks is not None
        found.append((sum(map(graph.cells, masks)), masks))
    return min(found, key=lambda pair: pair[0])[1]


def _eliminate(graph: _Graph, *, by_fill: bool, most_cells: int | None = None) -> list[int] | None:
    """The maximal cliques of a greedy elimination, as masks; None as soon as one is above the limit.

    The next column is the one whose elimination joins the fewest cells (`by_fill`: the summed sizes of the tables of
    the edges it adds) or makes the smallest table; then the other of the two; then the first by name.
    """
    neighbours = list(graph.neighbours)
    left = set(range(len(neighbours)))
    scores = {at: _score(graph, neighbours, at, by_fill) for at in left}
    kept: list[int] = []
    while left:
        chosen = min(left, key=lambda at: (scores[at], at))
        around = neighbours[chosen]
        mask = around | 1 << chosen
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
            if most_cells is not None and graph.cells(mask) > most_cells:
                return None
        left.discard(chosen)
        del scores[chosen]
        touched = around
        for at in _bits(around):
            added = around & ~neighbours[at] & ~(1 << at)
            neighbours[at] = (neighbours[at] | around) & ~(1 << chosen) & ~(1 << at)
            if added:
                # A new edge may fill what was missing around the neighbours of both its ends.
                touched |= neighbours[at]
        for at in _bits(touched):
            scores[at] = _score(graph, neighbours, at, by_fill)
    return kept


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _score(graph: _Graph, neighbours: list[int], at: int, by_fill: bool) -> tuple[int, int]:
    around = neighbours[at]
    fill = 0
    for one in _bits(around):
        missing = around & ~neighbours[one] & ~(1 << one)
        if missing:
            fill += graph.sizes[one] * sum(graph.sizes[other] for other in _bits(missing))
    cells = graph.cells(around | 1 << at)
    return (fill, cells) if by_fill else (cells, fill)


def _span(cliques: list[Columns], masks: list[int], graph: _Graph) -> Shape:
    """A spanning forest with the largest separators (Prim), each tree hung up by its middle."""
    number = len(cliques)
    joined: list[list[int]] = [[] for _ in range(number)]
    reached = [False] * number
    for first in range(number):
        if reached[first]:
            continue
        reached[first] = True
        # For each clique not reached, the one reached with which it shares most columns.
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
    return Shape(
        tuple(cliques[at] for at in order),
        tuple(-1 if parents[at] < 0 else place[parents[at]] for at in order),
        tuple(zip(graph.names, graph.sizes, strict=True)),
    )


def _hang(joined: list[list[int]]) -> list[int]:
    """The parent of each clique when every tree hangs from the middle of its longest path, so that it is not deep."""
    parents = [-2] * len(joined)
    for first in range(len(joined)):
        if parents[first] == -2:
            far = _walk(joined, first)[-1][0]
            steps = _walk(joined, far)
            came = dict(steps)
            path = [steps[-1][0]]
            while came[path[-1]] >= 0:
                path.append(came[path[-1]])
            for at, parent in _walk(joined, path[len(path) // 2]):
                parents[at] = parent
    return parents


def _walk(joined: list[list[int]], first: int) -> list[tuple[int, int]]:
    """All that hangs together with a clique, nearest first, each with the one it was reached from."""
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
