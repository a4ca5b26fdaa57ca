"""What is known of a question takes as much work as the question has cells; the slow ways are kept here to compare."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.estimate.measurements import GaussianQuery
from discreet.estimate.residual_lattice import Lattice, among, precision_prices, subsets
from discreet.estimate.separable import energies_of, family_of
from discreet.estimate.transform import EachCell, read
from discreet.plan.plan import plan_steps
from discreet.plan.steps import Target, can_buy, step_for
from discreet.query import Marginal, col, count
from discreet.query.residual import Residual, axis_of_size
from discreet.schema.column import Boolean, Categories, Integers
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of

FLAGS = Domain({f"f{i:02d}": Boolean() for i in range(60)})
UNITS = (
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(key="id", contributions=3),
    Unit(key="id", contributions=3, neighbors="replace_one"),
)


def listed(axis, weights):
    """The cells of a group as rows, one for each cell and product: what `Cells` never writes down."""
    return read(axis, (np.eye(axis.cells)[:, None, :] * weights[None]).reshape(-1, axis.cells))


@given(cells=st.integers(2, 70), ordered=st.booleans(), products=st.integers(0, 3), seed=st.integers(0, 1000))
def test_the_cells_of_a_group_say_what_their_rows_would(cells, ordered, products, seed):
    rng, axis = np.random.default_rng(seed), axis_of_size(cells, ordered=ordered)
    weights = rng.integers(-3, 4, (products, cells)).astype(float) if products else np.ones((1, cells))
    count_ = max(products, 1)
    quick, slow = EachCell(axis, weights if products else None), listed(axis, weights)
    np.testing.assert_allclose(quick.energies, slow.energies, atol=1e-13)
    np.testing.assert_array_equal(quick.energies > 0, slow.energies > 0)
    np.testing.assert_allclose(quick.means(count_), slow.means(count_), atol=1e-14)
    np.testing.assert_allclose(quick.gram(count_), slow.gram(count_), atol=1e-12)
    other = read(axis, rng.normal(size=(5, cells)))
    np.testing.assert_allclose(quick.meet(other, count_), slow.meet(other, count_), atol=1e-12)
    estimate = rng.normal(size=(1 + axis.starts[-1], 3, 2))
    for place in range(count_):
        np.testing.assert_allclose(
            quick.values(estimate, place, count_), slow.values(estimate, place, count_), atol=1e-12
        )
    if count_ == 1:
        pieces = estimate[: axis.parts]
        np.testing.assert_allclose(quick.weighed(pieces), slow.weighed(pieces), atol=1e-12)
    kinds = [np.unique(np.round(each, 9), axis=0) for each in (quick.kinds, slow.energies)]
    np.testing.assert_allclose(*kinds, atol=1e-8)


@pytest.mark.parametrize("unit", UNITS)
@given(
    columns=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4), drops=st.booleans(), seed=st.integers()
)
def test_a_piece_is_priced_by_its_sensitivity(unit, columns, drops, seed):
    made = {}
    for i, (cells, ordered) in enumerate(columns):
        missing = "drop" if drops else 0
        made[f"c{i}"] = (
            Integers(0, cells - 1, missing=missing, outside="clip")
            if ordered
            else Categories(list(range(cells)), outside=missing, missing=missing)
        )
    made["rest"] = Boolean()
    domain = Domain(made)
    lattice = Lattice(domain, unit)
    names = tuple(sorted(name for name in domain if name != "rest"))
    block = lattice.block(names)
    for place in product(*(range(1, axis.parts) for axis in block.axes)):
        residual = Residual(tuple(zip(names, place, strict=True)))
        moves = float(sensitivity_of(residual, domain, unit).l2_squared)
        gain = prod(axis.gain(part) for axis, part in zip(block.axes, place, strict=True))
        assert block.price[tuple(part - 1 for part in place)] == moves / gain
    assert precision_prices(block.axes, unit, droppable=domain.drops).shape == tuple(axis.parts for axis in block.axes)


@given(
    st.sets(st.frozensets(st.sampled_from("abcdefgh"), max_size=5), max_size=300),
    st.frozensets(st.sampled_from("abcdefgh")),
)
def test_what_lies_inside_some_columns_is_found_either_way(sets, inside):
    known = {tuple(sorted(each)): 1 for each in sets}
    columns = tuple(sorted(inside))
    assert among(known, columns) == [chosen for chosen in subsets(columns) if chosen in known]


def test_of_sixty_columns_only_what_is_known_is_looked_at():
    known = GaussianLattice.nothing(FLAGS, Unit())
    where = col("f00") == True  # noqa: E712
    for name in list(FLAGS)[1:]:
        where = where & (col(name) == True)  # noqa: E712
    question = count(FLAGS, where)
    steps = plan_steps([(question, Target(50.0))], known)
    assert isinstance(steps.steps[0], GaussianQuery)
    known.learn(GaussianQuery(question, steps.steps[0].sigma, 0.0), np.array([5]))
    assert step_for(question, Target(50.0), known) is None


def test_a_look_leaves_nothing_behind():
    """A plan is free, so whatever it keeps could be asked for without end."""
    known = GaussianLattice.nothing(FLAGS, Unit())
    question = count(FLAGS, (col("f00") == True) & (col("f01") == True) & (col("f02") == True))  # noqa: E712
    plan_steps([(question, Target(50.0)), (Marginal(("f03", "f04")), Target(50.0))], known)
    known.lattice.block(("f07", "f08"))
    assert not known.lattice.blocks
    assert not known.lattice.used


def test_the_lattice_is_not_bought_in_too_many_pieces_or_numbers():
    known = GaussianLattice.nothing(FLAGS, Unit())

    def family(k):
        where = col("f00") == True  # noqa: E712
        for name in list(FLAGS)[1:k]:
            where = where & (col(name) == True)  # noqa: E712
        return known.family(count(FLAGS, where))

    assert can_buy(family(10))
    assert not can_buy(family(11))
    assert family(14) is None
    threes = Domain({f"t{i}": Categories(list("abc"), outside="drop", missing="drop") for i in range(10)})
    where = col("t0") == "a"
    for name in list(threes)[1:]:
        where = where & (col(name) == "a")
    assert not can_buy(family_of(count(threes, where), threes))


def test_the_questions_that_were_paid_for_are_counted_for_each_piece():
    lattice = Lattice(Domain({"a": Integers(0, 4, missing="drop"), "b": Boolean(), "c": Boolean()}), Unit())
    for scope in [("a", "b"), ("a", "b"), ("b", "c"), ("c",), ()]:
        lattice.use(scope)
    uses = lattice.uses_of(("a", "b"))
    assert uses.shape == (4, 2)
    assert uses[0].tolist() == [5, 3]
    assert uses[1:].tolist() == [[2, 2]] * 3


def test_the_energies_of_a_sum_are_those_of_its_table():
    domain = Domain({"a": Categories(list("xyz"), outside="drop", missing="drop"), "b": Boolean(), "c": Boolean()})
    where = ((col("a") == "x") & (col("b") == True)) | ((col("a") == "y") & (col("c") == True))  # noqa: E712
    question = count(domain, where)
    family = family_of(question, domain)
    assert family.products > 1
    table = question.table(domain).astype(float)
    # Each piece by averaging: what is constant in a column is the mean over it.
    for place in product((0, 1), repeat=3):
        piece = table
        for axis, part in enumerate(place):
            mean = piece.mean(axis=axis, keepdims=True)
            piece = piece - mean if part else np.broadcast_to(mean, piece.shape)
        cells = prod(size for size, part in zip(table.shape, place, strict=True) if not part)
        assert energies_of(family)[(0, 0, 0, *place)] == pytest.approx((piece**2).sum() / cells, abs=1e-12)
