"""The tree against the joint table, listed cell by cell: fit, marginals, answers, rows."""

import hashlib
import os
import subprocess
import sys
from itertools import combinations, pairwise
from math import log, prod, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.model.interface import Model, NoisyMarginal
from discreet.model.tree import elimination, products
from discreet.model.tree.junction_tree import predicted_cells
from discreet.model.tree.tree_model import Tree, fit_tree
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.query.residual import axis_of
from discreet.schema.column import Boolean, Categories, Integers
from discreet.schema.domain import Domain

ROWS = 1000.0
# Names do not come in the order of the domain; sizes are mixed; "late" and "even" are ordered; "alone" is in no scope.
DOMAIN = Domain(
    {
        "sex": Boolean(),
        "late": Integers(0, 4, missing="drop"),
        "job": Categories(list("xyz"), outside="drop"),
        "even": Integers(0, 3, missing="drop"),
        "alone": Boolean(),
    }
)
NAMES = tuple(sorted(DOMAIN))
GRAPHS = {
    "chain": [("job", "late"), ("even", "late"), ("even", "sex")],
    "loop": [("job", "late"), ("even", "late"), ("even", "sex"), ("job", "sex")],
    "apart": [("job", "late"), ("even",), ("sex",)],
    "nested": [("job",), ("job", "sex"), ("job", "late", "sex"), ("even",), ("even", "sex")],
    "one clique": [("even", "job", "late", "sex"), ("even", "job")],
}


def joint(tree):
    """The expected count of every cell, the columns sorted."""
    return tree.marginal(tuple(sorted(tree.domain)))


def sum_out(table, columns, names=NAMES):
    """The marginal of some columns, in the order given."""
    kept = [name for name in names if name in columns]
    summed = table.sum(axis=tuple(at for at, name in enumerate(names) if name not in columns))
    return summed.transpose([kept.index(name) for name in columns])


def people(seed, domain=DOMAIN, evenness=0.5):
    names = tuple(sorted(domain))
    shape = [domain[name].size for name in names]
    return ROWS * np.random.default_rng(seed).dirichlet(np.full(prod(shape), evenness)).reshape(shape)


def look_at(table, scope, sigma, generator, parts=None, domain=DOMAIN):
    """A noisy look; `parts` may be None (all cells) or one for each column."""
    values = sum_out(table, scope, tuple(sorted(domain)))
    if parts is not None:
        for place, (name, part) in enumerate(zip(scope, parts, strict=True)):
            values = axis_of(domain[name]).apply(part, values, axis=place)
    return NoisyMarginal(scope, parts, values + generator.normal(0, sigma, values.shape), 1 / sigma**2)


def all_parts(scope, domain=DOMAIN):
    return [tuple(each) for each in np.ndindex(*(axis_of(domain[name]).parts for name in scope)) if all(each)]


def noisy_marginals(kind, scopes, seed=0, sigma=10.0):
    """Looks at every scope: all cells, or every part of it and of its single columns."""
    generator, table = np.random.default_rng(seed + 1000), people(seed)
    if kind == "cells":
        return [look_at(table, scope, sigma, generator) for scope in scopes]
    below = sorted(
        {chosen for scope in scopes for size in range(1, len(scope) + 1) for chosen in combinations(scope, size)}
    )
    return [look_at(table, scope, sigma, generator, parts) for scope in below for parts in all_parts(scope)]


def measuring_matrix(looks):
    """Every measured number as a weight on the cells of the joint table, in units of its noise, and the numbers."""
    shape = [DOMAIN[name].size for name in NAMES]
    rows, wanted = [], []
    for look in looks:
        matrix = np.eye(prod(DOMAIN[name].size for name in look.columns))
        if look.parts is not None:
            matrix = np.ones((1, 1))
            for name, part in zip(look.columns, look.parts, strict=True):
                matrix = np.kron(matrix, axis_of(DOMAIN[name]).measure(part))
        cells = np.arange(matrix.shape[1]).reshape([DOMAIN[name].size if name in look.columns else 1 for name in NAMES])
        rows.append(sqrt(look.weight) * matrix[:, np.broadcast_to(cells, shape).reshape(-1)])
        wanted.append(sqrt(look.weight) * np.asarray(look.values).reshape(-1))
    return np.concatenate(rows), np.concatenate(wanted)


def is_optimal(tree, looks, tolerance):
    """Whether moving all rows to the cell where the loss falls fastest gains nothing: then none has less loss."""
    matrix, wanted = measuring_matrix(looks)
    cells = joint(tree).reshape(-1)
    gradient = matrix.T @ (matrix @ cells - wanted)
    return float(gradient @ cells - tree.total * gradient.min()) <= tolerance


@pytest.mark.parametrize("kind", ["cells", "parts"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_no_distribution_has_less_loss(graph, kind):
    looks = noisy_marginals(kind, GRAPHS[graph])
    tree = fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-6, steps=1000)
    assert tree.converged
    # The gap bounds how far the loss is above its least; half a unit is one noise deviation of one number.
    assert is_optimal(tree, looks, 1e-2)
    matrix, wanted = measuring_matrix(looks)
    assert tree.loss == pytest.approx(0.5 * np.sum((matrix @ joint(tree).reshape(-1) - wanted) ** 2), rel=1e-6)


def test_weights_of_one_over_sigma_are_told_apart():
    """Power: a fit that takes 1/σ for 1/σ² is not optimal, and the check says so."""
    table, generator = people(3), np.random.default_rng(3)
    scopes = [("job", "late"), ("even", "job"), ("job", "sex")]
    looks = [look_at(table, scope, sigma, generator) for scope, sigma in zip(scopes, (3.0, 30.0, 10.0), strict=True)]
    wrong = [NoisyMarginal(each.columns, each.parts, each.values, sqrt(each.weight)) for each in looks]
    right = fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-6)
    assert is_optimal(right, looks, 1e-2)
    assert not is_optimal(fit_tree(DOMAIN, wrong, total=ROWS, tolerance=1e-6), looks, 1.0)


@pytest.mark.parametrize("kind", ["cells", "parts"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_its_logarithm_is_a_sum_of_what_was_measured(graph, kind):
    """So its entropy is the largest: the relative entropy to any other with the same fits is not negative."""
    looks = noisy_marginals(kind, GRAPHS[graph])
    tree = fit_tree(DOMAIN, looks, total=ROWS, steps=20)
    matrix, _ = measuring_matrix(looks)
    basis = np.concatenate([matrix, np.ones((1, matrix.shape[1]))]).T
    logs = np.log(joint(tree).reshape(-1))
    fitted = basis @ np.linalg.lstsq(basis, logs, rcond=None)[0]
    assert np.abs(fitted - logs).max() < 1e-6 * max(1.0, np.abs(logs).max())


@pytest.mark.parametrize("graph", ["chain", "loop", "nested"])
def test_others_with_the_same_marginals_have_less_entropy(graph):
    looks = noisy_marginals("cells", GRAPHS[graph])
    tree = fit_tree(DOMAIN, looks, total=ROWS)
    matrix, _ = measuring_matrix(looks)
    cells = joint(tree).reshape(-1) / ROWS
    entropy = -float(np.sum(cells * np.log(cells)))
    assert entropy == pytest.approx(tree.entropy, abs=1e-9)
    generator = np.random.default_rng(7)
    kept = np.concatenate([matrix, np.ones((1, cells.size))])
    for _ in range(20):
        move = cells * generator.normal(size=cells.size)
        move -= np.linalg.pinv(kept) @ (kept @ move)
        other = cells + 0.2 * move / max(1e-12, float(np.max(-move / cells)))
        assert np.abs(matrix @ (other - cells)).max() < 1e-9
        assert -float(np.sum(other * np.log(other))) < entropy


def test_it_is_what_a_general_solver_finds():
    """The largest entropy under the fitted constraints, 24 unknowns, by sequential quadratic programming."""
    domain = Domain({"a": Boolean(), "b": Categories(list("xyz"), outside="drop"), "c": Integers(0, 3, missing="drop")})
    table = people(5, domain, evenness=3.0)
    generator = np.random.default_rng(5)
    looks = [look_at(table, ("a", "b"), 1.0, generator, (1, 1), domain)]
    looks += [look_at(table, ("b", "c"), 1.0, generator, (1, 2), domain)]
    looks += [look_at(table, ("a", "c"), 1.0, generator, None, domain)]
    tree = fit_tree(domain, looks, total=ROWS, tolerance=1e-7, steps=500)
    found = joint(tree).reshape(-1) / ROWS

    def measured(cells):
        shaped = cells.reshape(table.shape)
        values = []
        for look in looks:
            part = sum_out(shaped, look.columns, ("a", "b", "c"))
            if look.parts is not None:
                for place, (name, which) in enumerate(zip(look.columns, look.parts, strict=True)):
                    part = axis_of(domain[name]).apply(which, part, axis=place)
            values.append(part.reshape(-1))
        return np.concatenate(values)

    matrix = np.stack([measured(row) for row in np.eye(found.size)], axis=1)
    _, lengths, directions = np.linalg.svd(np.concatenate([matrix, np.ones((1, found.size))]))
    rank = int(np.sum(lengths > 1e-9))
    rows, free = directions[:rank], directions[rank:]
    # From another distribution with the same measurements, to the one of largest entropy.
    move = free.T @ generator.normal(size=len(free))
    begin = found + 0.7 * move / float(np.max(-move / found))
    assert np.abs(begin - found).max() > 0.005
    solved = minimize(
        lambda cells: float(np.sum(cells * np.log(cells))),
        begin,
        jac=lambda cells: np.log(cells) + 1,
        constraints=[{"type": "eq", "fun": lambda cells: rows @ (cells - found), "jac": lambda cells: rows}],
        bounds=[(1e-9, 1)] * found.size,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solved.success
    np.testing.assert_allclose(found, solved.x, atol=2e-5)


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_marginal_is_that_of_the_joint_table(graph):
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS[graph]), total=ROWS)
    table = joint(tree)
    assert table.sum() == pytest.approx(ROWS)
    for size in range(len(NAMES) + 1):
        for columns in combinations(reversed(NAMES), size):
            np.testing.assert_allclose(tree.marginal(columns), sum_out(table, columns), rtol=1e-9, atol=1e-9)
            part = columns[1:]
            np.testing.assert_allclose(tree.marginal(columns).sum(axis=0) if columns else ROWS, tree.marginal(part))


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("few_cells", [False, True], ids=["summed", "taken apart"])
def test_answers_are_sums_over_the_joint_table(graph, few_cells, monkeypatch):
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS[graph]), total=ROWS)
    table, generator = joint(tree), np.random.default_rng(11)
    if few_cells:
        # So few that weights on several columns are taken apart.
        monkeypatch.setattr(products, "MOST_JOINT_CELLS", 20)
    queries = []
    for columns in (columns for size in range(len(NAMES) + 1) for columns in combinations(NAMES, size)):
        single = [Factor((name,), generator.integers(-2, 4, size=DOMAIN[name].size)) for name in columns]
        queries.append(Linear([Product(single, 3)]))
    pairs = [("job", "sex"), ("even", "late"), ("alone", "even")]
    for pair in pairs:
        weights = generator.integers(0, 3, size=[DOMAIN[name].size for name in pair])
        others = [name for name in NAMES if name not in pair][:2]
        single = [Factor((name,), generator.integers(0, 3, size=DOMAIN[name].size)) for name in others]
        queries.append(Linear([Product([Factor(pair, weights), *single]), Product(tuple(single), -2)]))
    expected = [float(np.sum(table * query.table(DOMAIN, NAMES))) for query in queries]
    np.testing.assert_allclose(tree.answers(queries), expected, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose([tree.answer(query) for query in queries], expected, rtol=1e-9, atol=1e-7)


def binary_tree(extra, columns=14, seed=1):
    """Columns of two cells, singles and pairs of characters of rows with dependence, and their names."""
    generator = np.random.default_rng(seed)
    names = [f"c{at:02}" for at in range(columns)]
    signs = generator.choice([-1, 1], size=(4000, columns))
    pairs = [(int(generator.integers(max(0, at - 3), at)), at) for at in range(1, columns)]
    for before, at in pairs:
        signs[:, at] *= np.where(generator.random(4000) < 0.6, signs[:, at] * signs[:, before], 1)
    every = [pair for pair in combinations(range(columns), 2) if pair not in pairs]
    pairs += [every[at] for at in generator.choice(len(every), extra, replace=False)]
    looks = []
    for chosen in [(at,) for at in range(columns)] + sorted(pairs):
        value = signs[:, list(chosen)].prod(axis=1).sum() + generator.normal(0, 20)
        looks.append(
            NoisyMarginal(
                tuple(names[at] for at in chosen), (1,) * len(chosen), np.full((1,) * len(chosen), value), 1 / 400
            )
        )
    return fit_tree(Domain({name: Boolean() for name in names}), looks, total=4000), looks, names


@pytest.mark.parametrize("extra", [0, 6, 20])
def test_characters_are_alternating_sums_of_marginals(extra):
    tree, looks, names = binary_tree(extra)
    sets = [chosen for size in range(4) for chosen in combinations(names, size)]
    found = dict(zip(sets, tree.characters(sets), strict=True))
    table = joint(tree)
    signs = np.array([1.0, -1.0])
    for chosen in sets[:: max(1, len(sets) // 60)]:
        value = table
        for name in names:
            value = np.tensordot(value, signs if name in chosen else np.ones(2), axes=(0, 0))
        assert found[chosen] == pytest.approx(float(value), abs=1e-6)
    # Characters measured once each can all be met.
    assert tree.converged
    assert all(abs(found[look.columns] - look.values.item()) < 0.05 * 20 for look in looks)


def test_a_character_is_asked_of_two_cells():
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["chain"]), total=ROWS)
    with pytest.raises(BadQuery, match="two cells"):
        tree.characters([("sex", "job")])


def test_columns_never_measured_are_uniform_and_cost_nothing():
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["chain"]), total=ROWS)
    np.testing.assert_allclose(tree.marginal(["alone"]), [ROWS / 2] * 2)
    np.testing.assert_allclose(tree.marginal(["alone", "job"]), np.outer([0.5, 0.5], tree.marginal(["job"])))
    assert tree.cells == predicted_cells(GRAPHS["chain"], {name: DOMAIN[name].size for name in DOMAIN})
    nothing = fit_tree(DOMAIN, [], total=ROWS)
    assert (nothing.cells, nothing.converged) == (0, True)
    np.testing.assert_allclose(joint(nothing), np.full([DOMAIN[name].size for name in NAMES], ROWS / DOMAIN.size))
    assert nothing.entropy == pytest.approx(log(DOMAIN.size))
    assert nothing.answer(Linear([Product([Factor(("sex",), np.array([1, 0]))])])) == pytest.approx(ROWS / 2)
    assert {name: codes.size for name, codes in nothing.rows(10).items()} == dict.fromkeys(DOMAIN, 10)


@pytest.mark.parametrize("graph", GRAPHS)
def test_memory_is_what_was_predicted(graph):
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS[graph]), total=ROWS)
    sizes = {name: DOMAIN[name].size for name in DOMAIN}
    assert tree.directed.size == tree.beliefs.size == tree.cells == predicted_cells(GRAPHS[graph], sizes)


def test_a_warm_fit_is_the_cold_one():
    scopes = GRAPHS["loop"]
    looks = noisy_marginals("parts", scopes)
    without = fit_tree(DOMAIN, [look for look in looks if look.columns != scopes[-1]], total=ROWS)
    assert without.shape != fit_tree(DOMAIN, looks, total=ROWS).shape
    cold = fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-6, steps=1000)
    warm = fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-6, steps=1000, start=without)
    np.testing.assert_allclose(joint(warm), joint(cold), atol=0.02)
    again = fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-5, start=cold)
    assert again.steps <= 3 < cold.steps


def test_a_start_leaves_nothing_of_looks_that_are_gone():
    looks = noisy_marginals("parts", GRAPHS["loop"])
    fewer = [look for look in looks if len(look.columns) == 1]
    warm = fit_tree(DOMAIN, fewer, total=ROWS, tolerance=1e-6, start=fit_tree(DOMAIN, looks, total=ROWS))
    np.testing.assert_allclose(joint(warm), joint(fit_tree(DOMAIN, fewer, total=ROWS, tolerance=1e-6)), atol=0.02)
    coarse = [look for look in looks if look.parts is not None and max(look.parts) == 1]
    warm = fit_tree(DOMAIN, coarse, total=ROWS, tolerance=1e-6, start=fit_tree(DOMAIN, looks, total=ROWS))
    np.testing.assert_allclose(joint(warm), joint(fit_tree(DOMAIN, coarse, total=ROWS, tolerance=1e-6)), atol=0.02)


def test_two_looks_at_one_thing_count_as_their_mean():
    table, generator = people(2), np.random.default_rng(2)
    one, two = (look_at(table, ("job", "sex"), sigma, generator) for sigma in (2.0, 6.0))
    mean = (one.weight * one.values + two.weight * two.values) / (one.weight + two.weight)
    both = fit_tree(DOMAIN, [one, two], total=ROWS, tolerance=1e-7)
    merged = fit_tree(
        DOMAIN, [NoisyMarginal(("job", "sex"), None, mean, one.weight + two.weight)], total=ROWS, tolerance=1e-7
    )
    np.testing.assert_allclose(joint(both), joint(merged), rtol=1e-9)


def test_scopes_may_make_room_for_more_and_must_hold_every_look():
    looks = noisy_marginals("cells", GRAPHS["chain"])
    wide = fit_tree(DOMAIN, looks, total=ROWS, scopes=[*GRAPHS["chain"], ("job", "sex")], tolerance=1e-6)
    assert any({"job", "sex"} <= set(clique) for clique in wide.shape.cliques)
    np.testing.assert_allclose(joint(wide), joint(fit_tree(DOMAIN, looks, total=ROWS, tolerance=1e-6)), atol=0.02)
    with pytest.raises(BadQuery, match="no clique"):
        fit_tree(DOMAIN, looks, total=ROWS, scopes=GRAPHS["chain"][:1])


def test_rows_have_the_models_marginals_and_vary_less_than_independent_ones():
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["loop"]), total=ROWS)
    number = 20_000
    rows = tree.rows(number)
    assert list(rows) == list(DOMAIN)
    for pair in combinations(NAMES, 2):
        shape = [DOMAIN[name].size for name in pair]
        places = np.ravel_multi_index([rows[name] for name in pair], shape)
        counts = np.bincount(places, minlength=prod(shape))
        chances = tree.marginal(pair).reshape(-1) / ROWS
        # Seven deviations of independent draws, and one: below 1e-9 for all cells, by Bernstein.
        assert (np.abs(counts - number * chances) <= 7 * np.sqrt(number * chances) + 30).all()
    singles = [
        np.bincount(rows[name], minlength=DOMAIN[name].size) - number / ROWS * tree.marginal([name]) for name in NAMES
    ]
    spread = np.concatenate(singles)
    independent = np.concatenate([number / ROWS * tree.marginal([name]) for name in NAMES])
    assert np.sum(spread**2) < 0.2 * np.sum(independent)


def test_rows_of_a_wrong_model_are_told_apart():
    tree = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["loop"]), total=ROWS)
    rows = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["loop"], seed=9), total=ROWS).rows(20_000)
    counts = np.bincount(rows["job"], minlength=3)
    chances = tree.marginal(["job"]) / ROWS
    assert (np.abs(counts - 20_000 * chances) > 7 * np.sqrt(20_000 * chances) + 30).any()


def digest():
    """A fingerprint of all bits of a fit."""
    tree = fit_tree(DOMAIN, noisy_marginals("parts", GRAPHS["loop"]), total=ROWS)
    return hashlib.sha256(tree.beliefs.tobytes() + tree.directed.tobytes() + repr(tree.shape).encode()).hexdigest()


def test_the_same_looks_give_the_same_bits_in_every_process():
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import test_tree; print(test_tree.digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {digest()}


def test_the_order_of_looks_does_not_matter():
    looks = noisy_marginals("parts", GRAPHS["loop"])
    one, other = fit_tree(DOMAIN, looks, total=ROWS), fit_tree(DOMAIN, looks[::-1], total=ROWS)
    assert np.array_equal(one.beliefs, other.beliefs)


def test_too_large_is_refused_before_it_is_made(monkeypatch):
    names = [f"c{at:02}" for at in range(40)]
    domain = Domain({name: Integers(0, 9, missing="drop") for name in names})
    generator = np.random.default_rng(0)
    looks = [NoisyMarginal(pair, None, generator.uniform(0, 20, (10, 10)), 1.0) for pair in pairwise(names)]
    tree = fit_tree(domain, looks, total=ROWS, steps=3)
    with pytest.raises(TooLarge, match="limit"):
        tree.marginal(names)
    heavy = Factor(tuple(names[:5]), np.ones((10,) * 5, dtype=np.int64) + np.arange(10))
    with pytest.raises(TooLarge, match="single columns"):
        tree.answer(Linear([Product([heavy])]))
    # Four columns far apart: the marginal has 10^4 cells, a table on the way 10^5.
    monkeypatch.setattr(elimination, "MOST_MARGINAL_CELLS", 20_000)
    monkeypatch.setattr(np, "ones", None)
    with pytest.raises(TooLarge, match="limit"):
        tree.marginal([names[0], names[13], names[26], names[39]])


def test_a_tree_too_large_is_refused_before_it_is_made():
    names = [f"c{at:02}" for at in range(40)]
    domain = Domain({name: Integers(0, 9, missing="drop") for name in names})
    looks = [NoisyMarginal(pair, None, np.ones((10, 10)), 1.0) for pair in combinations(names, 2)]
    with pytest.raises(TooLarge, match=str(10**40)):
        fit_tree(domain, looks, total=ROWS)


def test_a_conjunction_on_many_columns_needs_no_marginal():
    names = [f"c{at:02}" for at in range(40)]
    domain = Domain({name: Integers(0, 9, missing="drop") for name in names})
    generator = np.random.default_rng(0)
    looks = [NoisyMarginal(pair, None, generator.uniform(0, 20, (10, 10)), 1.0) for pair in pairwise(names)]
    tree = fit_tree(domain, looks, total=ROWS, steps=3)
    masks = generator.random((40, 10)) < 0.9
    query = Linear([Product([Factor((name,), mask.astype(np.int64)) for name, mask in zip(names, masks, strict=True)])])
    state = tree.marginal(names[:1]) * masks[0]
    for at in range(39):
        pair = tree.marginal(names[at : at + 2])
        state = (state @ (pair / pair.sum(axis=1, keepdims=True))) * masks[at + 1]
    assert tree.answer(query) == pytest.approx(state.sum(), rel=1e-9)


def test_looks_with_many_parts_are_applied_axis_by_axis():
    """A pair of long ordered columns: the product of its matrices is not made, and the fit is the same."""
    domain = Domain({"a": Integers(0, 69, missing="drop"), "b": Categories(list(range(30)), outside="drop")})
    table, generator = people(1, domain), np.random.default_rng(1)
    looks = [look_at(table, ("a", "b"), 5.0, generator, (part, 1), domain) for part in range(1, 8)]
    looks += [
        look_at(table, ("a",), 5.0, generator, None, domain),
        look_at(table, ("b",), 5.0, generator, None, domain),
    ]
    from discreet.model.tree import max_entropy

    factored = fit_tree(domain, looks, total=ROWS)
    before, max_entropy.MOST_ENTRIES = max_entropy.MOST_ENTRIES, 2**40
    try:
        sparse = fit_tree(domain, looks, total=ROWS)
    finally:
        max_entropy.MOST_ENTRIES = before
    assert max_entropy.gather(domain, looks).large
    assert factored.loss == pytest.approx(sparse.loss, rel=1e-6)
    np.testing.assert_allclose(factored.marginal(["a", "b"]), sparse.marginal(["a", "b"]), atol=0.05)


def test_it_meets_the_protocol_of_a_model():
    model: Model = fit_tree(DOMAIN, noisy_marginals("cells", GRAPHS["chain"]), total=ROWS)
    assert isinstance(model, Tree)
    assert model.domain == DOMAIN
    assert model.total == ROWS


@pytest.mark.parametrize(
    "wrong",
    [
        NoisyMarginal(("sex", "job"), None, np.zeros((2, 3)), 1.0),
        NoisyMarginal(("job", "sex"), None, np.zeros((2, 2)), 1.0),
        NoisyMarginal(("job", "sex"), (1, 0), np.zeros((3, 1)), 1.0),
        NoisyMarginal(("job", "sex"), (1, 2), np.zeros((3, 1)), 1.0),
        NoisyMarginal((), None, np.zeros(()), 1.0),
    ],
)
def test_looks_that_make_no_sense_are_refused(wrong):
    with pytest.raises(BadQuery):
        fit_tree(DOMAIN, [wrong], total=ROWS)


def test_numbers_out_of_range_are_refused():
    good = look_at(people(0), ("job", "sex"), 1.0, np.random.default_rng(0))
    for weight in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(BadParameter):
            fit_tree(DOMAIN, [NoisyMarginal(good.columns, None, good.values, weight)], total=ROWS)
    with pytest.raises(BadParameter):
        fit_tree(DOMAIN, [NoisyMarginal(good.columns, None, np.full((3, 2), np.nan), 1.0)], total=ROWS)
    with pytest.raises(BadParameter):
        fit_tree(DOMAIN, [good], total=-1)
    tree = fit_tree(DOMAIN, [good], total=ROWS)
    with pytest.raises(BadParameter):
        tree.rows(-1)
    with pytest.raises(BadParameter, match="another domain"):
        fit_tree(DOMAIN.project(["job", "sex"]), [good], total=ROWS, start=tree)
    with pytest.raises(BadQuery):
        tree.marginal(["job", "job"])
    with pytest.raises(BadQuery, match="other columns"):
        tree.answer(Linear([Product([Factor(("job",), np.array([1, 0]))])]))
