"""The sensitivity of a residual: the closed form is that of the dense matrix."""

from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.sensitivity import matrix_sensitivity, residual_sensitivity, scalar_sensitivity
from discreet.query.residual import axis_of_size
from discreet.schema import Unit

UNITS = [
    Unit(neighbors=neighbors, **who)
    for neighbors in ("add_remove", "replace_one")
    for who in ({}, {"key": "who"}, {"key": "who", "contributions": 3})
]
MOST = 120


@st.composite
def residuals(draw):
    """One to four parts, with together few cells."""
    axes, room = [], MOST
    while room >= 2 and len(axes) < 4 and (not axes or draw(st.booleans())):
        axis = axis_of_size(draw(st.integers(2, min(room, 21))), ordered=draw(st.booleans()))
        axes.append((axis, draw(st.integers(1, axis.parts - 1))))
        room //= axis.cells
    return tuple(axes)


def dense(axes):
    return reduce(np.kron, [axis.measure(part) for axis, part in axes])


@pytest.mark.parametrize("droppable", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@settings(max_examples=60)
@given(axes=residuals())
def test_the_closed_form_is_the_sensitivity_of_the_matrix(unit, droppable, axes):
    found = residual_sensitivity(axes, unit, droppable=droppable)
    true = matrix_sensitivity(dense(axes), unit, droppable=droppable)
    assert found.l2_squared == true.l2_squared
    assert found.linf == true.linf
    assert found.direction == true.direction == 0
    assert true.l1 <= found.l1 < 2 * true.l1 or true.l1 == found.l1
    if unit.neighbors == "add_remove" or len(axes) == 1 or any(axis.levels for axis, _ in axes):
        assert found.l1 == true.l1
    assert all(isinstance(norm, Fraction) for norm in (found.l1, found.l2_squared, found.linf))


SIZES = [(cells, ordered) for cells in (2, 3, 4, 5) for ordered in (False, True)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_in_every_small_case_it_is_exact(count):
    choices = {(axis, part) for axis in (axis_of_size(n, ordered=o) for n, o in SIZES) for part in range(1, axis.parts)}
    unit = Unit(neighbors="replace_one")
    for axes in product(sorted(choices, key=repr), repeat=count):
        # The order of the columns changes nothing; of the products of three, those with few cells.
        if list(axes) == sorted(axes, key=repr) and prod(axis.cells for axis, _ in axes) <= 48:
            true = matrix_sensitivity(dense(axes), unit)
            found = residual_sensitivity(axes, unit)
            assert (found.l2_squared, found.linf) == (true.l2_squared, true.linf)


def test_formulas_that_look_right_are_not():
    """The power test: to take all columns at their most negative cosine, or the average one, is too little noise."""
    one, other = (axis_of_size(3, ordered=False), 1), (axis_of_size(3, ordered=False), 1)
    true = matrix_sensitivity(dense((one, other)), Unit(neighbors="replace_one")).l2_squared
    norms = 36
    assert residual_sensitivity((one, other), Unit(neighbors="replace_one")).l2_squared == true == norms * 3
    assert 2 * norms * (1 - Fraction(-1, 2) ** 2) < true, "both columns at once: the signs cancel"
    assert 2 * norms < true, "as if the columns were orthogonal"


@pytest.mark.parametrize("droppable", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_of_no_column_it_is_that_of_the_number_of_rows(unit, droppable):
    found = residual_sensitivity((), unit, droppable=droppable)
    assert found == scalar_sensitivity(1, 1, unit, droppable=droppable)
    still = unit.neighbors == "replace_one" and unit.key is None and not droppable
    assert found.l2_squared == (0 if still else unit.contributions**2)


def test_the_largest_residuals_have_their_sensitivity_at_once():
    axes = tuple((axis_of_size(n, ordered=False), 1) for n in (1024, 1024))
    found = residual_sensitivity(axes, Unit(neighbors="replace_one"))
    assert found.l2_squared == 2 * (1024 * 1023) ** 2 * Fraction(1024, 1023)
    assert found.linf == 1023 * 1024
