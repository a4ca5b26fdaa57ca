"""The parts of a column: orthogonal, flat, and exact, also where cells are padded."""

from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.query.residual import Axis, axis_of, axis_of_size
from discreet.schema import Bins, Boolean, Categories, Integers

AXES = sorted({axis_of_size(cells, ordered=ordered) for cells in range(1, 21) for ordered in (False, True)}, key=repr)
of_every_axis = pytest.mark.parametrize("axis", AXES, ids=repr)


def whole(axis, part):
    """The measuring matrix on all cells, with those that hold no row."""
    return Axis(axis.padded, axis.levels).measure(part)


@of_every_axis
def test_the_parts_are_orthogonal_to_each_other(axis):
    for one, other in combinations(range(axis.parts), 2):
        assert not (whole(axis, one) @ whole(axis, other).T).any()


@of_every_axis
def test_the_way_back_is_the_transposed_matrix(axis):
    for part in range(axis.parts):
        measured = np.arange(2 * axis.rows(part)).reshape(2, -1) ** 2
        assert (axis.adjoint(part, measured) == measured @ axis.measure(part)).all()


@of_every_axis
def test_a_matrix_measures_the_projection_with_its_gain_and_the_projections_make_up_everything(axis):
    """With G = MᵀM and g the gain, G/g is a projection if GG = gG; all is scaled to stay whole."""
    gains = [axis.gain(part) for part in range(axis.parts)]
    squares = [whole(axis, part).T @ whole(axis, part) for part in range(axis.parts)]
    for gain, square in zip(gains, squares, strict=True):
        assert (square @ square == gain * square).all()
    together = sum(lcm(*gains) // gain * square for gain, square in zip(gains, squares, strict=True))
    assert (together == lcm(*gains) * np.eye(axis.padded, dtype=np.int64)).all()


@of_every_axis
def test_a_matrix_is_the_one_on_all_cells_without_the_columns_that_hold_no_row(axis):
    for part in range(axis.parts):
        matrix = axis.measure(part)
        assert matrix.shape == (axis.rows(part), axis.cells)
        assert (matrix == whole(axis, part)[:, : axis.cells]).all()


@of_every_axis
def test_every_column_of_a_matrix_has_the_same_length(axis):
    for part in range(axis.parts):
        assert set((axis.measure(part) ** 2).sum(axis=0).tolist()) == {axis.squared_norm(part)}


@of_every_axis
def test_the_opposite_is_the_smallest_cosine_between_cells_that_hold_rows(axis):
    for part in range(1, axis.parts):
        matrix = axis.measure(part)
        cosines = [Fraction(int(product), axis.squared_norm(part)) for product in (matrix.T @ matrix).ravel()]
        assert min(cosines) == -Fraction(*axis.opposite(part))
        assert max(abs(cosine) for cosine in cosines) == 1


@of_every_axis
def test_the_parts_lie_one_after_the_other(axis):
    assert axis.starts == tuple(np.cumsum([0, *(axis.rows(part) for part in range(1, axis.parts))]).tolist())


@given(st.sampled_from(AXES), st.integers(0, 2), st.data())
def test_to_apply_a_part_along_an_axis_is_to_multiply_by_its_matrix(axis, place, data):
    part = data.draw(st.integers(0, axis.parts - 1))
    shape = [2, 3]
    shape.insert(place, axis.cells)
    values = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=6 * axis.cells, max_size=6 * axis.cells)))
    values = values.reshape(shape)
    expected = np.moveaxis(np.tensordot(axis.measure(part), values, axes=(1, place)), 0, place)
    assert axis.apply(part, values, place).tolist() == expected.tolist()
    long = axis.apply(part, values.astype(object) * 10**30, place)
    assert long.tolist() == (expected.astype(object) * 10**30).tolist()


@pytest.mark.parametrize(
    ("column", "axis"),
    [
        (Boolean(), Axis(2, levels=1)),
        (Boolean(missing="missing"), Axis(3, levels=0)),
        (Categories(["a"], outside="drop"), Axis(1, levels=0)),
        (Categories(["a", "b", "c"], ordered=True), Axis(4, levels=2)),
        (Integers(17, 90), Axis(75, levels=7)),
        (Integers(0, 0, missing="drop"), Axis(1, levels=0)),
        (Bins([0, 1, 2], upper=3, missing="drop"), Axis(3, levels=2)),
    ],
)
def test_an_ordered_column_and_one_of_two_cells_have_levels_and_others_contrasts(column, axis):
    assert axis_of(column) == axis
    assert axis.parts == 1 + (axis.levels or axis.cells > 1)
