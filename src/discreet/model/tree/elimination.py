"""Variable elimination on a junction tree: marginals of columns that no clique holds together, and means of products.

A message from a clique to its parent is a table over their separator and over the wanted columns of the cliques below
it. The columns that are not wanted sum to 1 below every clique and are not visited. `marginal_by_elimination` knows the
size of every table before it makes one. `contract` is a kernel for products of weights of single columns: it starts at
the lowest cliques that hold a column of the query, sends upward the mean of the weights given the separator, and ends
at the first clique that holds the rest together, with its marginal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from discreet import jit
from discreet.cache import memoize
from discreet.errors import TooLarge
from discreet.model.tree.message_passing import Layout, Walk
from discreet.types import Columns, Floats, Ints, Numbers

# No table on the way has more cells than this: 128 MB.
MOST_MARGINAL_CELLS = 2**24


@dataclass(frozen=True, slots=True)
class _Stop:
    """A clique on the way: its table, the cliques whose messages it takes, and the columns that it sends on."""

    clique: int
    top: bool
    takes: tuple[int, ...]
    sends: Columns


def marginal_by_elimination(
    layout: Layout, directed: Numbers, beliefs: Numbers, wanted: Columns, sizes: dict[str, int]
) -> Numbers:
    """The probability of each cell of some columns, in their order; columns in no clique are uniform."""
    if prod(sizes[name] for name in wanted) > MOST_MARGINAL_CELLS:
        raise marginal_too_large(wanted, prod(sizes[name] for name in wanted))
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


def marginal_too_large(wanted: Sequence[str], cells: int) -> TooLarge:
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
                raise marginal_too_large(wanted, cells)
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
    """The columns of a table that are sent on or occur in a later message; the others are summed now."""
    return tuple(name for name in columns if name in stop.sends or any(name in each for each in messages))


def _summed(columns: Columns, table: Numbers, kept: Columns) -> tuple[Columns, Numbers]:
    gone = tuple(at for at, name in enumerate(columns) if name not in kept)
    return kept, table.sum(axis=gone) if gone else table


class Web(NamedTuple):
    """What the kernel needs besides the walk: axes and children of each clique, and the columns by number.

    Columns and sizes of the axes of clique c are axis_column, axis_size [axes[c] : axes[c+1]], the first
    own[c] − axes[c] of them the separator; home is the clique in which a column is not in the separator, −1 for
    none; root is the last clique of the tree in which a clique is.
    """

    axes: Ints
    own: Ints
    axis_column: Ints
    axis_size: Ints
    home: Ints
    root: Ints
    sizes: Ints


def weave(layout: Layout, names: tuple[str, ...], sizes: tuple[int, ...]) -> Web:
    """The web of a layout of cliques, for the columns of a domain in order."""
    number = {name: at for at, name in enumerate(names)}
    walk = layout.walk
    axes = np.cumsum([0, *(len(each) for each in layout.columns)]).astype(np.int64)
    home = np.full(len(names), -1, dtype=np.int64)
    root, own = np.arange(len(layout.columns)), axes[:-1].copy()
    for node in range(len(layout.columns) - 1, -1, -1):
        parent = int(walk.parent[node])
        if parent >= 0:
            root[node] = root[parent]
            own[node] += sum(name in layout.columns[parent] for name in layout.columns[node])
        for name in layout.columns[node][int(own[node] - axes[node]) :]:
            home[number[name]] = node
    flat = [number[name] for each in layout.columns for name in each]
    return Web(
        axes,
        own,
        np.array(flat, dtype=np.int64),
        np.array([sizes[column] for column in flat], dtype=np.int64),
        home,
        root.astype(np.int64),
        np.array(sizes, dtype=np.int64),
    )


def contract(
    walk: Walk,
    web: Web,
    directed: Floats,
    beliefs: Floats,
    begins: Ints,
    columns: Ints,
    places: Ints,
    weights: Floats,
) -> Floats:
    """The mean, for each product, of its weights: factor f of product q is on columns[f], from weights[places[f]] on.

    begins[q] to begins[q+1] are the factors of product q.
    """
    count = walk.parent.size
    table, messages = np.empty(largest_table(walk)), np.empty(walk.shared[count])
    # How many factors each clique has below it, and where the weights of each column are.
    below, where = np.zeros(count, dtype=np.int64), np.full(web.home.size, -1)
    out = np.empty(begins.size - 1)
    for product in range(out.size):
        first, last = begins[product], begins[product + 1]
        value = place_factors(walk, web, columns, places, first, last, weights, below, where)
        for clique in range(count):
            if below[clique] == 0 or below[web.root[clique]] < 0:
                continue
            top = below[clique] == below[web.root[clique]] or can_end(walk, web, clique, below, where)
            start, stop = walk.start[clique], walk.start[clique + 1]
            table[: stop - start] = beliefs[start:stop] if top else directed[start:stop]
            for child in range(clique):
                if walk.parent[child] == clique and below[child] > 0:
                    take_message(walk, child, messages, table[: stop - start])
            kept = web.axes[clique] if top else web.own[clique]
            states = sum_out(walk, web, clique, kept, where, weights, table)
            if top:
                value *= table[0]
                # This tree is done; nothing above is visited.
                below[web.root[clique]] = -1
            else:
                for state in range(states):
                    messages[walk.shared[clique] + state] = table[state]
        for factor in range(first, last):
            where[columns[factor]] = -1
        out[product] = value
    return out


def largest_table(walk: Walk) -> int:
    """The number of cells of the largest clique."""
    largest = 1
    for clique in range(walk.parent.size):
        largest = max(largest, walk.start[clique + 1] - walk.start[clique])
    return largest


def place_factors(
    walk: Walk, web: Web, columns: Ints, places: Ints, first: int, last: int, weights: Floats, below: Ints, where: Ints
) -> float:
    """Set `below` and `where` for the factors of one product; the mean of the weights on columns in no clique."""
    below[:] = 0
    value = 1.0
    for factor in range(first, last):
        column = columns[factor]
        home = web.home[column]
        if home < 0:
            # A column that was never measured is uniform.
            mean = 0.0
            for cell in range(web.sizes[column]):
                mean += weights[places[factor] + cell]
            value *= mean / web.sizes[column]
        else:
            where[column] = places[factor]
            below[home] += 1
    for clique in range(below.size):
        if below[clique] > 0 and walk.parent[clique] >= 0:
            below[walk.parent[clique]] += below[clique]
    return value


def can_end(walk: Walk, web: Web, clique: int, below: Ints, where: Ints) -> bool:
    """Whether all factors of this tree that are not below a clique are on columns of its separator."""
    for other in range(below.size):
        if below[other] <= 0 or web.root[other] != web.root[clique] or is_below(walk.parent, other, clique):
            continue
        for axis in range(web.own[other], web.axes[other + 1]):
            if (
                where[web.axis_column[axis]] >= 0
                and web.axis_column[axis] not in web.axis_column[web.axes[clique] : web.own[clique]]
            ):
                return False
    return True


def is_below(parent: Ints, other: int, clique: int) -> bool:
    """Whether a clique is another one or a descendant of it."""
    while other >= 0 and other != clique:
        other = parent[other]
    return other == clique


def take_message(walk: Walk, child: int, messages: Floats, table: Floats) -> None:
    """Multiply the table of a clique by the message of a child."""
    run = walk.runs[child]
    for step in range(table.size // run):
        state = walk.shared[child] + walk.state[walk.maps[child] + step]
        if walk.keeps[child]:
            for at in range(run):
                table[step * run + at] *= messages[state + at]
        else:
            for at in range(run):
                table[step * run + at] *= messages[state]


def sum_out(walk: Walk, web: Web, clique: int, first: int, where: Ints, weights: Floats, table: Floats) -> int:
    """Sum a table over its axes from `first` on, weighted where a factor is; how many cells are left."""
    length: int = walk.start[clique + 1] - walk.start[clique]
    for axis in range(web.axes[clique + 1] - 1, first - 1, -1):
        size, at = web.axis_size[axis], where[web.axis_column[axis]]
        length //= size
        if at >= 0:
            for cell in range(length):
                total = 0.0
                for inner in range(size):
                    total += table[cell * size + inner] * weights[at + inner]
                table[cell] = total
        else:
            for cell in range(length):
                total = 0.0
                for inner in range(size):
                    total += table[cell * size + inner]
                table[cell] = total
    return length


@memoize(1)
def contraction() -> Callable[..., Floats]:
    """The kernel `contract`, compiled."""
    for step in (largest_table, place_factors, can_end, is_below, take_message, sum_out):
        jit.inline(step)
    return jit.compiled(contract)
