"""Rows from a tree: clique by clique from the root, each row's new cells given those it shares with the clique above.

The rows that share a state are spread over the cells in proportion, by one random start for all (systematic sampling),
and the starts of different states are spread over [0, 1) too. Each row has exactly the model's distribution; the counts
vary much less than those of independent rows.
"""

import numpy as np

from discreet.model.layout import Layout
from discreet.model.protocol import Coded
from discreet.noise.entropy import filler
from discreet.types import Ints, Numbers


def draw(layout: Layout, directed: Numbers, alone: dict[str, int], number: int) -> Coded:
    """So many rows; `alone` are the columns in no clique, with their sizes, which are uniform."""
    uniforms = _Uniforms(number * (2 * len(layout.columns) + 2 * len(alone)) + 1)
    rows: Coded = {}
    for node in range(len(layout.columns) - 1, -1, -1):
        states, rest = int(layout.walk.states[node]), int(layout.walk.rest[node])
        columns, shape = layout.columns[node], layout.shapes[node]
        shared = [name for name in columns if name in rows]
        new = columns[len(shared) :]
        state = np.zeros(number, dtype=np.int64)
        if shared:
            state = np.ravel_multi_index([rows[name] for name in shared], shape[: len(shared)]).astype(np.int64)
        cells = _spread(state, layout.table(directed, node).reshape(states, rest), uniforms)
        rows |= zip(new, np.unravel_index(cells, shape[len(shared) :]), strict=True)
    for name, size in alone.items():
        rows[name] = _spread(np.zeros(number, dtype=np.int64), np.full((1, size), 1.0 / size), uniforms)
    return {name: np.asarray(codes, dtype=np.int64) for name, codes in rows.items()}


class _Uniforms:
    """Uniform numbers in [0, 1) of 53 random bits."""

    def __init__(self, about: int) -> None:
        self._fill = filler(about)

    def __call__(self, count: int) -> Numbers:
        words = np.empty(count, dtype=np.int64)
        self._fill(words)
        return (words.view(np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _spread(state: Ints, chances: Numbers, uniforms: _Uniforms) -> Ints:
    """A cell for each row, given its state: the rows of a state in random order on an even grid with a random start."""
    order = np.lexsort((uniforms(state.size), state))
    ranked = state[order]
    seen, first, counts = np.unique(ranked, return_index=True, return_counts=True)
    places = np.arange(state.size) - np.repeat(first, counts)
    # One start in each interval of an even grid, at random places of it.
    shuffled = np.argsort(uniforms(seen.size), kind="stable")
    starts = (shuffled + uniforms(seen.size)) / max(seen.size, 1)
    height = (places + np.repeat(starts, counts)) / np.repeat(counts, counts)
    ends = np.cumsum(chances[seen], axis=1)
    ends /= ends[:, -1:]
    # All states at once: those of state s lie between s and s + 1.
    at = np.repeat(np.arange(seen.size), counts)
    stacked = (ends + np.arange(seen.size)[:, None]).reshape(-1)
    cells = np.searchsorted(stacked, at + height, side="right") - at * chances.shape[1]
    chosen = np.empty(state.size, dtype=np.int64)
    # Rounding at the end of a state must not reach the next.
    chosen[order] = np.clip(cells, 0, chances.shape[1] - 1)
    return chosen
