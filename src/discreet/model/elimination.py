"""Marginals of columns that lie in no clique together: sums along the tree, with their size known beforehand.

A message from a clique to its parent is a table over the separator and over the asked columns found so far. All that
is not asked about adds up to 1 and is not visited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from discreet.errors import TooLarge
from discreet.model.layout import Layout
from discreet.types import Columns, Ints, Numbers

# No table on the way has more cells than this: 128 MB.
MOST_MARGINAL_CELLS = 2**24


@dataclass(frozen=True, slots=True)
class _Stop:
    """A clique on the way: its table, the cliques whose messages it takes, and the columns that it sends on."""

    clique: int
    top: bool
    takes: tuple[int, ...]
    sends: Columns


def marginal(layout: Layout, directed: Numbers, beliefs: Numbers, wanted: Columns, sizes: dict[str, int]) -> Numbers:
    """The probability of each cell of some columns, in their order; columns in no clique are uniform."""
    if prod(sizes[name] for name in wanted) > MOST_MARGINAL_CELLS:
        raise too_large(wanted, prod(sizes[name] for name in wanted))
    routes = _routes(layout, wanted)
    for route in routes:
        _check(route, layout, wanted, sizes)
    known: list[tuple[Columns, Numbers]] = [_walk(route, layout, directed, beliefs) for route in routes]
    alone = {name for name in wanted if not any(name in columns for columns in layout.columns)}
    known += [((name,), np.full(sizes[name], 1.0 / sizes[name])) for name in wanted if name in alone]
    found = np.ones((1,) * len(wanted))
    for columns, table in known:
        found = found * _spread(table, columns, wanted)
    return found


def too_large(wanted: Sequence[str], cells: int) -> TooLarge:
    """The refusal of a table, before it is made."""
    return TooLarge(
        f"the marginal of {', '.join(wanted)} needs a table of {cells} cells; the limit is {MOST_MARGINAL_CELLS}. "
        "Ask for fewer columns, or for single numbers."
    )


def _spread(table: Numbers, columns: Columns, onto: Sequence[str]) -> Numbers:
    """A table with an axis for each column of `onto`, of length 1 where it has none."""
    order = sorted(range(len(columns)), key=lambda at: list(onto).index(columns[at]))
    shape = [table.shape[columns.index(name)] if name in columns else 1 for name in onto]
    return table.transpose(order).reshape(shape)


def _routes(layout: Layout, wanted: Columns) -> list[list[_Stop]]:
    """For each tree with asked columns, the cliques to visit, children first; the last holds the rest together."""
    parent = layout.walk.parent
    homes: dict[int, set[str]] = {}
    for node, columns in enumerate(layout.columns):
        upper = layout.columns[parent[node]] if parent[node] >= 0 else ()
        brought = {name for name in columns if name in wanted and name not in upper}
        if brought:
            homes[node] = brought
    within: dict[int, set[str]] = {}
    roots: dict[int, list[int]] = {}
    for node in range(len(layout.columns)):
        within.setdefault(node, set()).update(homes.get(node, ()))
        if parent[node] >= 0:
            within.setdefault(int(parent[node]), set()).update(within[node])
        at = node
        while parent[at] >= 0:
            at = int(parent[at])
        roots.setdefault(at, []).append(node)
    routes = []
    for root, nodes in sorted(roots.items()):
        if not within[root]:
            continue
        # The first clique, children first, below or in which everything asked of this tree lies.
        top = next(node for node in nodes if within[node] | (set(layout.columns[node]) & within[root]) == within[root])
        route = []
        for node in nodes:
            if not (within[node] or node == top) or not _under(node, top, parent):
                continue
            takes = tuple(child for child in nodes if parent[child] == node and within[child])
            shared = () if node == top else tuple(n for n in layout.columns[node] if n in layout.columns[parent[node]])
            kept = within[root] & set(layout.columns[node]) if node == top else set()
            below = within[node] | kept
            route.append(_Stop(node, node == top, takes, shared + tuple(sorted(below - set(shared)))))
        routes.append(route)
    return routes


def _under(node: int, top: int, parent: Ints) -> bool:
    while node >= 0 and node != top:
        node = int(parent[node])
    return node == top


def _check(route: list[_Stop], layout: Layout, wanted: Columns, sizes: dict[str, int]) -> None:
    sent: dict[int, Columns] = {}
    for stop in route:
        below = [sent[child] for child in stop.takes]
        columns = set(_needed(layout.columns[stop.clique], stop, below))
        for place, message in enumerate(below):
            columns |= set(message)
            cells = prod(sizes[name] for name in columns)
            if cells > MOST_MARGINAL_CELLS:
                raise too_large(wanted, cells)
            columns = set(_needed(tuple(columns), stop, below[place + 1 :]))
        sent[stop.clique] = stop.sends


def _walk(route: list[_Stop], layout: Layout, directed: Numbers, beliefs: Numbers) -> tuple[Columns, Numbers]:
    sent: dict[int, tuple[Columns, Numbers]] = {}
    for stop in route:
        below = [sent.pop(child) for child in stop.takes]
        messages = [columns for columns, _ in below]
        columns = layout.columns[stop.clique]
        table = layout.table(beliefs if stop.top else directed, stop.clique)
        columns, table = _summed(columns, table, _needed(columns, stop, messages))
        for place, (names, message) in enumerate(below):
            both = columns + tuple(name for name in names if name not in columns)
            table = _spread(table, columns, both) * _spread(message, names, both)
            columns, table = _summed(both, table, _needed(both, stop, messages[place + 1 :]))
        sent[stop.clique] = columns, table
    return sent[route[-1].clique]


def _needed(columns: Columns, stop: _Stop, messages: Sequence[Columns]) -> Columns:
    """The columns of a table that are sent on, or that a message still to come is about; the others add up now."""
    return tuple(name for name in columns if name in stop.sends or any(name in each for each in messages))


def _summed(columns: Columns, table: Numbers, kept: Columns) -> tuple[Columns, Numbers]:
    gone = tuple(at for at, name in enumerate(columns) if name not in kept)
    return kept, table.sum(axis=gone) if gone else table
