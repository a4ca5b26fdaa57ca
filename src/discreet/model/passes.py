"""The kernels: walks over the flattened tree (`layout`), compiled when first called.

A table in *directed* form holds, for each state of the separator, the distribution of the other columns. One walk from
the leaves to the root makes it from log-potentials with one exponential for each cell, and never overflows; the way
back multiplies. Derivatives walk the same way with products alone. Sums are taken as they are written, so that the same
tables have the same bits in every process and on every machine.
"""

from collections.abc import Callable
from math import exp, log
from typing import NamedTuple

from discreet import jit
from discreet.cache import memoize
from discreet.model.layout import Walk
from discreet.types import Floats


class Passes(NamedTuple):
    """The walks, compiled."""

    direct: Callable[..., None]
    spread: Callable[..., None]
    differentiate: Callable[..., None]


def hand_up(walk: Walk, node: int, messages: Floats, cells: Floats) -> None:
    """Add what a node says of each state of its separator to the cells of its parent; a root has none."""
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
    """Add the cells of a node's parent up to the states of its separator; a root has none."""
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


def direct(walk: Walk, logs: Floats, directed: Floats, messages: Floats) -> None:
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


def spread(walk: Walk, directed: Floats, beliefs: Floats, shares: Floats) -> None:
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
    """All of them as machine code."""
    for shared in (hand_up, hand_down):
        jit.inline(shared)
    return Passes(jit.compiled(direct), jit.compiled(spread), jit.compiled(differentiate))
