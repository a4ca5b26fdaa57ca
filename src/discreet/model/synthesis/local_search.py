"""Local search for rows whose counts are close to the expected ones: values are exchanged between rows, or moved.

The counts that matter are those of some scopes of two or three columns, laid one after the other in a flat list of
cells. `state` has a `CELL` for each: how many rows there are too many, and how much the square of that weighs. `terms`
has a `TERM` for each column and each scope with it; a scope of two columns has the other column twice, once with the
stride 0. The terms of column j are those from begins[j] to begins[j + 1].
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.jit import compiled, inline
from discreet.types import Ints, Ints32, Singles, Words

TERM = np.dtype(
    [
        # The two other columns, where the scope begins, the strides of these two, and of the column itself.
        *(("first", np.int32), ("second", np.int32), ("begin", np.int32)),
        *(("first_stride", np.int32), ("second_stride", np.int32), ("stride", np.int32)),
    ]
)
CELL = np.dtype([("excess", np.float32), ("weight", np.float32)])
TermArray = NDArray[np.void]
CellArray = NDArray[np.void]

# The multipliers of splitmix64, a bijection of 64-bit words whose outputs pass for random [SLF14].
GOLDEN, FIRST_FACTOR, SECOND_FACTOR = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
HALF_WORD, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
# A value that is in excess is offered to this many other rows.
CANDIDATES = 8
# After this part of the scopes, an exchange is given up if its cost so far, times the optimism, exceeds its gain.
EARLY_SHARE, OPTIMISM = 5, np.float32(2)
# The rate of the running mean of what taking a value away gains.
LEARNING_RATE = np.float32(0.02)
# Rows that are counted at a time.
ROWS_PER_BATCH = 4096
# The best of this many random moves is made.
TRIALS = 32


def drawn(counter: Words) -> np.uint64:
    """The next word: post-processing, so a mixed counter that began at random will do."""
    counter[0] += GOLDEN
    word: np.uint64 = counter[0]
    word = (word ^ (word >> _30)) * FIRST_FACTOR
    word = (word ^ (word >> _27)) * SECOND_FACTOR
    word ^= word >> _31
    return word


def below(half: np.uint64, number: int) -> int:
    """A random integer below `number`, from half a word."""
    return np.int64((half * np.uint64(number)) >> HALF_WORD)  # type: ignore[return-value]


def offset(cells: Ints32, row: int, term: Any) -> int:
    """Where the cells of a row lie in a scope, before the value of the term's own column is known."""
    return term.begin + cells[row, term.first] * term.first_stride + cells[row, term.second] * term.second_stride  # type: ignore[no-any-return]


def change_without(cell: Any) -> float:
    """How weight · excess² changes when a row leaves a cell."""
    return cell.weight * (1 - 2 * cell.excess)  # type: ignore[no-any-return]


def change_with(cell: Any) -> float:
    """How weight · excess² changes when a row comes into a cell."""
    return cell.weight * (1 + 2 * cell.excess)  # type: ignore[no-any-return]


def count_rows(cells: Ints32, owners: Ints, terms: TermArray, state: CellArray) -> None:
    """Count the rows in every cell of every scope; there is one line for each, that of the column `owners` names."""
    for start in range(0, cells.shape[0], ROWS_PER_BATCH):
        # A few rows and one scope at a time, so that both stay in the processor's cache.
        stop = min(start + ROWS_PER_BATCH, cells.shape[0])
        for at in range(len(owners)):
            column, term = owners[at], terms[at]
            for row in range(start, stop):
                state[offset(cells, row, term) + cells[row, column] * term.stride].excess += 1


def exchange(
    cells: Ints32,
    column: int,
    begins: Ints,
    terms: TermArray,
    state: CellArray,
    usual: Singles,
    counter: Words,
    proposals: int,
    window: int,
) -> float:
    """Exchange the values of one column between two rows wherever that lowers Σ weight · excess²; by how much in all.

    A row that would gain more than usual by giving its value away is compared with a few of the `window` rows after it.
    """
    rows, lowered, made = cells.shape[0], 0.0, 0
    places = np.empty(terms.shape[0], dtype=np.int32)
    while made < proposals:
        row = below(drawn(counter) & LOW, rows)
        mine, leave = cells[row, column], np.float32(0)
        made += 1
        for at in range(begins[column], begins[column + 1]):
            places[at] = offset(cells, row, terms[at])
            leave += change_without(state[places[at] + mine * terms[at].stride])
        usual[column] += LEARNING_RATE * (leave - usual[column])
        if leave > usual[column]:
            continue
        for _ in range(CANDIDATES):
            other = (row + 1 + below(drawn(counter) & LOW, window)) % rows
            theirs = cells[other, column]
            if mine == theirs:
                continue
            made += 1
            change = change_by_exchange(cells, row, other, column, begins, terms, state, places, leave)
            if change < 0:
                for at in range(begins[column], begins[column + 1]):
                    place = places[at]
                    there = offset(cells, other, terms[at])
                    out, into = mine * terms[at].stride, theirs * terms[at].stride
                    state[place + out].excess -= 1
                    state[place + into].excess += 1
                    state[there + into].excess -= 1
                    state[there + out].excess += 1
                cells[row, column], cells[other, column] = theirs, mine
                lowered -= float(change)
                break
    return lowered


def change_by_exchange(
    cells: Ints32,
    row: int,
    other: int,
    column: int,
    begins: Ints,
    terms: TermArray,
    state: CellArray,
    places: Ints32,
    leave: np.float32,
) -> np.float32:
    """The change of Σ weight · excess² if two rows exchange their values of a column; infinite if given up early.

    `leave` is the change if the first row only gives its value away, and `places` are its offsets.
    """
    mine, theirs, change = cells[row, column], cells[other, column], leave
    early = begins[column] + 1 + (begins[column + 1] - begins[column]) // EARLY_SHARE
    for at in range(begins[column], begins[column + 1]):
        if at == early and leave + OPTIMISM * (change - leave) > 0:
            return np.float32(np.inf)
        place = places[at]
        there = offset(cells, other, terms[at])
        out, into = mine * terms[at].stride, theirs * terms[at].stride
        if place == there:
            # The two rows have the same values in this scope, so its counts do not change.
            change -= change_without(state[place + out])
        else:
            change += change_with(state[place + into])
            change += change_without(state[there + into])
            change += change_with(state[there + out])
    return change


def move(
    cells: Ints32,
    column: int,
    begins: Ints,
    terms: TermArray,
    state: CellArray,
    counter: Words,
    excess: Ints,
    holders: Ints,
    starts: Ints,
) -> None:
    """Give rows another value of one column until no value has rows in `excess`, each time by the best of some moves.

    The rows with value v are `holders` from starts[v] to starts[v + 1].
    """
    ends, values = starts[1:].copy(), np.arange(len(excess))
    many, few = np.repeat(values, np.maximum(excess, 0)), np.repeat(values, np.maximum(-excess, 0))
    left = len(many)
    while left > 0:
        best, chosen, source, target = np.float32(np.inf), 0, 0, 0
        for _ in range(TRIALS):
            word = drawn(counter)
            giver, taker = below(word & LOW, left), below(word >> HALF_WORD, left)
            old, new = many[giver], few[taker]
            at_holder = starts[old] + below(drawn(counter) & LOW, ends[old] - starts[old])
            row, change = holders[at_holder], np.float32(0)
            for at in range(begins[column], begins[column + 1]):
                place, stride = offset(cells, row, terms[at]), terms[at].stride
                change += change_without(state[place + old * stride]) + change_with(state[place + new * stride])
            if change < best:
                best, chosen, source, target = change, at_holder, giver, taker
        old, new, row = many[source], few[target], holders[chosen]
        for at in range(begins[column], begins[column + 1]):
            place, stride = offset(cells, row, terms[at]), terms[at].stride
            state[place + old * stride].excess -= 1
            state[place + new * stride].excess += 1
        cells[row, column] = new
        ends[old] -= 1
        holders[chosen] = holders[ends[old]]
        left -= 1
        many[source], few[target] = many[left], few[left]


def machine_code(loop: Callable[..., Any]) -> Callable[..., Any]:
    """One of these loops, compiled."""
    for part in (drawn, below, offset, change_without, change_with, change_by_exchange):
        inline(part)
    return compiled(loop)
