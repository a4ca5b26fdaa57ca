"""The kernel that answers products of weights of single columns, visiting only the cliques between their columns.

Below every clique, all that is not asked about adds up to 1. So the walk starts at the lowest cliques that bring a
column of the query, sends upward the mean of the weights given the separator, and ends at the first clique that holds
the rest together, with its marginal.
"""

from typing import Any, NamedTuple

import numpy as np

from discreet.model.layout import Layout, Walk
from discreet.types import Ints

Numbers = np.ndarray[Any, np.dtype[np.float64]]


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
    directed: Numbers,
    beliefs: Numbers,
    begins: Ints,
    columns: Ints,
    places: Ints,
    weights: Numbers,
) -> Numbers:
    """The mean, for each product, of its weights: factor f of product q is on columns[f], from weights[places[f]] on.

    begins[q] to begins[q+1] are the factors of product q.
    """
    count = walk.parent.size
    largest = 1
    for clique in range(count):
        largest = max(largest, walk.start[clique + 1] - walk.start[clique])
    table, messages = np.empty(largest), np.empty(walk.shared[count])
    # How many factors each clique has below it, and where the weights of each column are.
    below, where = np.zeros(count, dtype=np.int64), np.full(web.home.size, -1)
    out = np.empty(begins.size - 1)
    for product in range(out.size):
        below[:] = 0
        value = 1.0
        for factor in range(begins[product], begins[product + 1]):
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
        for clique in range(count):
            if below[clique] > 0 and walk.parent[clique] >= 0:
                below[walk.parent[clique]] += below[clique]
        for clique in range(count):
            if below[clique] == 0 or below[web.root[clique]] < 0:
                continue
            top = below[clique] == below[web.root[clique]]
            if not top:
                # If all that is left above lies in this separator too, the walk can end here.
                top = True
                for other in range(count):
                    if other == clique or below[other] <= 0 or web.root[other] != web.root[clique]:
                        continue
                    inside = other
                    while inside >= 0 and inside != clique:
                        inside = walk.parent[inside]
                    if inside == clique:
                        continue
                    for axis in range(web.own[other], web.axes[other + 1]):
                        if where[web.axis_column[axis]] >= 0:
                            shared = False
                            for mine in range(web.axes[clique], web.own[clique]):
                                if web.axis_column[mine] == web.axis_column[axis]:
                                    shared = True
                            if not shared:
                                top = False
                    if not top:
                        break
            start = walk.start[clique]
            length = walk.start[clique + 1] - start
            source = beliefs if top else directed
            for cell in range(length):
                table[cell] = source[start + cell]
            for child in range(clique):
                if walk.parent[child] == clique and below[child] > 0:
                    run = walk.runs[child]
                    for step in range(length // run):
                        state = walk.shared[child] + walk.state[walk.maps[child] + step]
                        if walk.keeps[child]:
                            for at in range(run):
                                table[step * run + at] *= messages[state + at]
                        else:
                            for at in range(run):
                                table[step * run + at] *= messages[state]
            last = web.axes[clique] if top else web.own[clique]
            for axis in range(web.axes[clique + 1] - 1, last - 1, -1):
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
            if top:
                value *= table[0]
                # This tree is done; nothing above is visited.
                below[web.root[clique]] = -1
            else:
                for state in range(length):
                    messages[walk.shared[clique] + state] = table[state]
        for factor in range(begins[product], begins[product + 1]):
            where[columns[factor]] = -1
        out[product] = value
    return out
