"""The kernels: walks over the flattened tree (`layout`), compiled when first called.

A table in *directed* form holds, for each state of the separator, the distribution of the other columns. One walk from
the leaves to the root makes it from log-potentials with one exponential for each cell, and never overflows; the way
back multiplies. Derivatives walk the same way with products alone.
"""

from math import exp, log
from typing import Any

import numpy as np

from discreet.model.layout import Walk

Numbers = np.ndarray[Any, np.dtype[np.float64]]


def direct(walk: Walk, logs: Numbers, directed: Numbers, messages: Numbers) -> None:
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
        parent = walk.parent[node]
        if parent >= 0:
            length, cell = walk.runs[node], walk.start[parent]
            for run in range((walk.start[parent + 1] - cell) // length):
                state = sent + walk.state[walk.maps[node] + run]
                if walk.keeps[node]:
                    for at in range(length):
                        logs[cell + at] += messages[state + at]
                else:
                    message = messages[state]
                    for at in range(length):
                        logs[cell + at] += message
                cell += length


def spread(walk: Walk, directed: Numbers, beliefs: Numbers, shares: Numbers) -> None:
    """From conditionals to marginals: downward, p(separator) of every node times its conditionals."""
    shares[:] = 0.0
    for node in range(walk.parent.size - 1, -1, -1):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent, parent = walk.shared[node], walk.parent[node]
        if parent < 0:
            shares[sent] = 1.0
        else:
            length, cell = walk.runs[node], walk.start[parent]
            for run in range((walk.start[parent + 1] - cell) // length):
                state = sent + walk.state[walk.maps[node] + run]
                if walk.keeps[node]:
                    for at in range(length):
                        shares[state + at] += beliefs[cell + at]
                else:
                    share = 0.0
                    for at in range(length):
                        share += beliefs[cell + at]
                    shares[state] += share
                cell += length
        if rest == 1:
            for state in range(states):
                beliefs[start + state] = shares[sent + state]
        else:
            for state in range(states):
                share = shares[sent + state]
                for cell in range(start + state * rest, start + (state + 1) * rest):
                    beliefs[cell] = share * directed[cell]


def differentiate(
    walk: Walk, directed: Numbers, beliefs: Numbers, moved: Numbers, means: Numbers, change: Numbers, shares: Numbers
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
        parent = walk.parent[node]
        if parent >= 0:
            length, cell = walk.runs[node], walk.start[parent]
            for run in range((walk.start[parent + 1] - cell) // length):
                state = sent + walk.state[walk.maps[node] + run]
                if walk.keeps[node]:
                    for at in range(length):
                        moved[cell + at] += means[state + at]
                else:
                    mean = means[state]
                    for at in range(length):
                        moved[cell + at] += mean
                cell += length
    shares[:] = 0.0
    for node in range(walk.parent.size - 1, -1, -1):
        start, states, rest = walk.start[node], walk.states[node], walk.rest[node]
        sent, parent = walk.shared[node], walk.parent[node]
        if parent >= 0:
            length, cell = walk.runs[node], walk.start[parent]
            for run in range((walk.start[parent + 1] - cell) // length):
                state = sent + walk.state[walk.maps[node] + run]
                if walk.keeps[node]:
                    for at in range(length):
                        shares[state + at] += change[cell + at]
                else:
                    share = 0.0
                    for at in range(length):
                        share += change[cell + at]
                    shares[state] += share
                cell += length
        if rest == 1:
            for state in range(states):
                change[start + state] = shares[sent + state]
        else:
            for state in range(states):
                share, mean = shares[sent + state], means[sent + state]
                for cell in range(start + state * rest, start + (state + 1) * rest):
                    change[cell] = beliefs[cell] * (moved[cell] - mean) + share * directed[cell]
