"""Trees of cliques: every scope has a place, columns hang together, and their size is known beforehand."""

from itertools import combinations
from math import prod

import numpy as np
import pytest

from discreet.errors import BadQuery
from discreet.model.tree.junction_tree import fits, predicted_cells, triangulate

CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def random_scopes(seed):
    """Scopes of one to three of nine columns, some columns in none, and sizes from one to seven."""
    generator = np.random.default_rng(seed)
    names = [f"c{at}" for at in range(9)]
    scopes = [
        tuple(sorted(generator.choice(names, size=generator.integers(1, 4), replace=False).tolist()))
        for _ in range(generator.integers(1, 12))
    ]
    return scopes, {name: int(generator.integers(1, 8)) for name in names}


def is_chordal_cover(shape, scopes):
    return all(any(set(scope) <= set(clique) for clique in shape.cliques) for scope in scopes)


def hangs_together(shape):
    """Whether the cliques of each column are one connected piece: as many edges inside as cliques, less one."""
    for name, _ in shape.sizes:
        inside = [at for at, clique in enumerate(shape.cliques) if name in clique]
        edges = [at for at in inside if shape.parents[at] in inside]
        if len(edges) != len(inside) - 1:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_every_scope_has_a_clique_and_every_column_hangs_together(seed):
    scopes, sizes = random_scopes(seed)
    shape = triangulate(scopes, sizes)
    assert is_chordal_cover(shape, scopes)
    assert hangs_together(shape)
    assert all(parent == -1 or parent > at for at, parent in enumerate(shape.parents))
    assert not any(set(one) < set(other) for one in shape.cliques for other in shape.cliques)
    assert len(set(shape.cliques)) == len(shape.cliques)


def test_the_checks_see_a_wrong_tree():
    shape = triangulate(CHAIN, dict.fromkeys("abcd", 2))
    wrong = type(shape)(shape.cliques, tuple(-1 for _ in shape.parents), shape.sizes)
    assert not hangs_together(wrong)
    assert not is_chordal_cover(shape, [("a", "d")])


@pytest.mark.parametrize("seed", range(40))
def test_cells_are_predicted_exactly_and_fits_agrees(seed):
    scopes, sizes = random_scopes(seed)
    cells = predicted_cells(scopes, sizes)
    assert cells == triangulate(scopes, sizes).cells
    assert fits(scopes[:-1], scopes[-1], sizes, cells)
    assert not fits(scopes[:-1], scopes[-1], sizes, cells - 1)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_scopes_and_columns_changes_nothing(seed):
    scopes, sizes = random_scopes(seed)
    turned = [scope[::-1] for scope in reversed(scopes)]
    assert triangulate(scopes, sizes) == triangulate(turned, dict(reversed(sizes.items())))


def test_a_tree_of_pairs_is_its_own_clique_tree():
    names = [f"c{at:02}" for at in range(40)]
    pairs = [(names[at // 2], names[at]) for at in range(1, 40)]
    shape = triangulate([(name,) for name in names] + pairs, dict.fromkeys(names, 2))
    assert sorted(shape.cliques) == sorted(pairs)
    assert shape.cells == 39 * 4


def test_a_loop_of_four_becomes_two_triangles_across_the_small_columns():
    sizes = {"a": 2, "b": 50, "c": 3, "d": 50}
    shape = triangulate([*CHAIN, ("a", "d")], sizes)
    assert sorted(shape.cliques) == [("a", "b", "c"), ("a", "c", "d")]
    assert shape.cells == 2 * (2 * 3 * 50)


def test_pairs_of_all_columns_make_one_clique_of_exact_size():
    names = [f"c{at:02}" for at in range(60)]
    sizes = dict.fromkeys(names, 97)
    # Beyond 64 bits: the prediction must not overflow.
    assert predicted_cells(combinations(names, 2), sizes) == 97**60
    assert not fits(list(combinations(names, 2)), ("c00",), sizes, 2**40)


def test_columns_apart_are_trees_apart():
    shape = triangulate([("a", "b"), ("c",), ("d", "e")], dict.fromkeys("abcdef", 3))
    assert sorted(shape.cliques) == [("a", "b"), ("c",), ("d", "e")]
    assert shape.parents == (-1, -1, -1)
    assert "f" not in shape.size_of
    assert shape.place(("e",)) == shape.cliques.index(("d", "e"))
    assert shape.place(("a", "c")) == -1


def test_the_separator_is_what_is_shared_with_the_parent():
    shape = triangulate(CHAIN, dict.fromkeys("abcd", 2))
    for at, parent in enumerate(shape.parents):
        shared = set(shape.cliques[at]) & set(shape.cliques[parent]) if parent >= 0 else set()
        assert set(shape.separator(at)) == shared


def test_no_scope_is_no_tree():
    assert triangulate([], {}).cliques == ()
    assert predicted_cells([], {"a": 2}) == 0


def test_the_greedy_tree_is_near_the_best_on_small_graphs():
    """Against all orders of elimination of six columns: never more than half again the best."""
    from itertools import permutations

    for seed in range(5):
        generator = np.random.default_rng(seed)
        names = list("abcdef")
        sizes = {name: int(generator.integers(2, 9)) for name in names}
        pairs = [pair for pair in combinations(names, 2) if generator.random() < 0.5]
        best = min(_cells_of_order(order, pairs, sizes) for order in permutations({n for p in pairs for n in p}))
        assert best <= predicted_cells(pairs, sizes) <= 1.5 * best


def _cells_of_order(order, pairs, sizes):
    joined = {name: {other for pair in pairs if name in pair for other in pair} - {name} for name in order}
    cliques = []
    for name in order:
        clique = {name} | joined[name]
        cliques.append(clique)
        for other in joined[name]:
            joined[other] |= clique
            joined[other] -= {name, other}
        for other in joined:
            joined[other].discard(name)
    maximal = {frozenset(one) for one in cliques if not any(one < other for other in cliques)}
    return sum(prod(sizes[name] for name in clique) for clique in maximal)


def test_a_column_without_a_size_is_named():
    with pytest.raises(BadQuery, match='"z"'):
        triangulate([("a", "z")], {"a": 2})
