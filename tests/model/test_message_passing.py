"""The walks of a tree take their sums as they are written: as Python does, wherever their tables lie in memory."""

import numpy as np
import pytest

from discreet import jit
from discreet.model.tree import message_passing
from discreet.model.tree.junction_tree import triangulate
from discreet.model.tree.message_passing import layout_of

# Long rows of a table are where a processor would add up several numbers at once.
SIZES = [{"a": 6, "b": 5, "c": 2, "d": 3}, {"a": 20, "b": 3, "c": 2}, {"a": 40, "b": 7}]
PLAIN = message_passing.Passes(
    message_passing.to_conditionals, message_passing.to_beliefs, message_passing.differentiate
)


def chain_layout(sizes):
    scopes = [*zip(list(sizes), list(sizes)[1:], strict=False)]
    return layout_of(triangulate(scopes, sizes), scopes)


def in_one_piece_of_memory(lengths, rng):
    """Arrays one after the other, in a random order and with gaps, as an allocator may have them."""
    found = [np.zeros(0)] * len(lengths)
    gaps = rng.integers(0, 40, len(lengths))
    memory, at = np.zeros(sum(lengths) + int(gaps.sum())), 0
    for place, gap in zip(rng.permutation(len(lengths)), gaps, strict=True):
        at += gap
        found[place] = memory[at : at + lengths[place]]
        at += lengths[place]
    return found


def walked(sizes, walks, seed):
    """Conditionals, marginals and derivatives, to the bit; the seed says only where everything lies."""
    layout, rng = chain_layout(sizes), np.random.default_rng(7)
    cells, messages = layout.cells, int(layout.walk.shared[-1])
    given = rng.standard_normal((2, cells))
    logs, directed, beliefs, moved, change, means, shares = in_one_piece_of_memory(
        [cells] * 5 + [messages] * 2, np.random.default_rng(seed)
    )
    logs[:], moved[:] = given
    walks.direct(layout.walk, logs, directed, means)
    walks.spread(layout.walk, directed, beliefs, shares)
    walks.differentiate(layout.walk, directed, beliefs, moved, means, change, shares)
    return directed.tobytes(), beliefs.tobytes(), change.tobytes()


@pytest.mark.parametrize("sizes", SIZES)
def test_where_tables_lie_changes_no_bit_and_python_finds_the_same(sizes):
    as_written = walked(sizes, PLAIN, 0)
    assert {walked(sizes, message_passing.message_passes(), seed) for seed in range(100)} == {as_written}


def test_sums_in_any_order_are_seen():
    """Power: the bits of a compiler that may add up in another order are other ones."""
    from numba import njit

    for shared in (message_passing.hand_up, message_passing.hand_down):
        jit.inline(shared)
    free = message_passing.Passes(*(njit(loop, fastmath={"contract", "reassoc", "nsz"}) for loop in PLAIN))
    assert any(walked(sizes, free, 0) != walked(sizes, PLAIN, 0) for sizes in SIZES)
