"""The sensitivity of several pieces of a lattice: the closed form is that of the dense matrix over its noise."""

from fractions import Fraction
from functools import reduce
from itertools import product
from math import lcm, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.sensitivity import matrix_sensitivity, pieces_sensitivity, residual_sensitivity
from discreet.query import Residual
from discreet.query.residual import Measurement, axis_of, axis_of_size
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from discreet.source.query_sensitivity import sensitivity_of

ADD, REPLACE = Unit(), Unit(neighbors="replace_one")
UNITS = [
    Unit(neighbors=neighbors, **who)
    for neighbors in ("add_remove", "replace_one")
    for who in ({}, {"key": "who"}, {"key": "who", "contributions": 3})
]
MOST = 60
# The real planner has powers of two over whole numbers; these are any rationals.
SIGMAS = st.fractions(Fraction(1, 3), 50, max_denominator=12)


@st.composite
def lattices(draw):
    """One to three axes with together few cells: categories, padded Haar levels, columns of one cell."""
    axes, room = [], MOST
    while not axes or (room >= 2 and len(axes) < 3 and draw(st.booleans())):
        axes.append(axis_of_size(draw(st.integers(1, min(room, 13))), ordered=draw(st.booleans())))
        room //= axes[-1].cells
    return tuple(axes)


@st.composite
def measured(draw):
    """Axes, and the noise of some of the pieces of their lattice, the total among them."""
    axes = draw(lattices())
    places = list(product(*(range(axis.parts) for axis in axes)))
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=12, unique=True))
    return axes, {place: draw(SIGMAS) for place in chosen}


def dense(axes, sigmas):
    """The measuring matrices of all pieces one below the other, each over its noise, times a whole number: both."""
    scale = lcm(*((1 / sigma).denominator for sigma in sigmas.values()))
    blocks = [
        int(scale / sigma)
        * reduce(np.kron, [axis.measure(part).astype(object) for axis, part in zip(axes, place, strict=True)])
        for place, sigma in sigmas.items()
    ]
    return np.vstack(blocks), scale


def weights_of(sigmas):
    return {place: 1 / sigma**2 for place, sigma in sigmas.items()}


def true_sensitivity(axes, sigmas, unit, *, droppable=False):
    matrix, scale = dense(axes, sigmas)
    return matrix_sensitivity(matrix, unit, droppable=droppable).l2_squared / scale**2


@pytest.mark.parametrize("droppable", [False, True], ids=["keeps", "drops"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@settings(max_examples=60)
@given(drawn=measured())
def test_the_closed_form_is_the_sensitivity_of_the_stacked_matrix(unit, droppable, drawn):
    axes, sigmas = drawn
    matrix, scale = dense(axes, sigmas)
    true = matrix_sensitivity(matrix, unit, droppable=droppable)
    found = pieces_sensitivity(axes, weights_of(sigmas), unit, droppable=droppable)
    assert found.l2_squared == true.l2_squared / scale**2
    assert found.l1 >= true.l1 / Fraction(scale)
    assert found.linf >= true.linf / Fraction(scale)
    assert found.direction == 0
    assert all(isinstance(norm, Fraction) for norm in (found.l1, found.l2_squared, found.linf))


SIZES = [(cells, ordered) for cells in (1, 2, 3, 4, 5) for ordered in (False, True)]


@pytest.mark.parametrize("count", [1, 2])
def test_in_every_small_lattice_with_all_pieces_it_is_exact(count):
    """All pieces, with noise that favours now one and now another kind of exchange."""
    choices = dict.fromkeys(axis_of_size(n, ordered=o) for n, o in SIZES)
    for axes in product(choices, repeat=count):
        places = list(product(*(range(axis.parts) for axis in axes)))
        for turn in range(len(places)):
            sigmas = {place: Fraction(1 + (3 * number + turn) % len(places)) for number, place in enumerate(places)}
            for droppable in (False, True):
                found = pieces_sensitivity(axes, weights_of(sigmas), REPLACE, droppable=droppable)
                assert found.l2_squared == true_sensitivity(axes, sigmas, REPLACE, droppable=droppable)


@given(drawn=measured(), unit=st.sampled_from(UNITS), droppable=st.booleans())
def test_it_is_at_most_the_sum_of_the_pieces_and_at_least_the_largest(drawn, unit, droppable):
    axes, sigmas = drawn
    found = pieces_sensitivity(axes, weights_of(sigmas), unit, droppable=droppable).l2_squared
    each = [alone(axes, place, sigma, unit, droppable) for place, sigma in sigmas.items()]
    assert max(each) <= found <= sum(each)
    if unit.neighbors == "add_remove":
        assert found == sum(each)


def alone(axes, place, sigma, unit, droppable=False):
    parts = tuple((axis, part) for axis, part in zip(axes, place, strict=True) if part)
    return residual_sensitivity(parts, unit, droppable=droppable).l2_squared / sigma**2


@given(drawn=measured(), unit=st.sampled_from(UNITS), droppable=st.booleans())
def test_of_one_piece_it_is_that_of_the_residual(drawn, unit, droppable):
    axes, sigmas = drawn
    place, sigma = next(iter(sigmas.items()))
    found = pieces_sensitivity(axes, {place: 1 / sigma**2}, unit, droppable=droppable).l2_squared
    assert found == alone(axes, place, sigma, unit, droppable)


# --- Formulas that look right ----------------------------------------------------------------------------------------

# Two columns of two cells, measured by themselves and together: no exchange moves all three pieces most.
TWO = (axis_of_size(2, ordered=False), axis_of_size(2, ordered=False))
ALL_THREE = {(0, 1): Fraction(1), (1, 0): Fraction(1), (1, 1): Fraction(1)}


def of_the_worst_piece(axes, sigmas, unit):
    """Wrong: only the piece that costs most."""
    return max(alone(axes, place, sigma, unit) for place, sigma in sigmas.items())


def piece_by_piece(axes, sigmas, unit):
    """Right and dear: each piece at its own worst exchange."""
    return sum(alone(axes, place, sigma, unit) for place, sigma in sigmas.items())


def without_the_cosines(axes, sigmas, unit):
    """Wrong: an exchange as if it were one row that comes or goes."""
    return pieces_sensitivity(axes, weights_of(sigmas), ADD).l2_squared


def as_if_orthogonal(axes, sigmas, unit):
    """Wrong: an exchange as a row that goes and one that comes, as if they moved different numbers."""
    return 2 * pieces_sensitivity(axes, weights_of(sigmas), ADD).l2_squared


def test_formulas_that_look_right_are_not():
    true = true_sensitivity(TWO, ALL_THREE, REPLACE)
    assert pieces_sensitivity(TWO, weights_of(ALL_THREE), REPLACE).l2_squared == true == 8
    assert of_the_worst_piece(TWO, ALL_THREE, REPLACE) == 4 < true
    assert without_the_cosines(TWO, ALL_THREE, REPLACE) == 3 < true
    assert as_if_orthogonal(TWO, ALL_THREE, REPLACE) == 6 < true
    assert piece_by_piece(TWO, ALL_THREE, REPLACE) == 12 > true


@pytest.mark.parametrize("wrong", [of_the_worst_piece, piece_by_piece, without_the_cosines, as_if_orthogonal])
def test_random_lattices_tell_the_wrong_formulas_from_the_right_one(wrong):
    """The power of the first test: each wrong formula differs from the matrix on many of a few lattices."""
    rng = np.random.default_rng(7)
    differ = 0
    for _ in range(60):
        axes = tuple(axis_of_size(int(rng.integers(1, 6)), ordered=bool(rng.integers(2))) for _ in range(2))
        places = list(product(*(range(axis.parts) for axis in axes)))
        chosen = [place for place in places if rng.integers(2)] or places
        sigmas = {place: Fraction(int(rng.integers(1, 9)), int(rng.integers(1, 4))) for place in chosen}
        differ += wrong(axes, sigmas, REPLACE) != true_sensitivity(axes, sigmas, REPLACE)
    assert differ >= 10


# --- A measurement of a table ----------------------------------------------------------------------------------------

COLUMNS = {"age": Integers(0, 4, missing="missing"), "city": Categories(["a", "b", "c"]), "sex": Boolean()}
KEEPS = Domain(COLUMNS)
DROPS = Domain(COLUMNS | {"age": Integers(0, 4, missing="drop")})


@st.composite
def measurements(draw, domain):
    names = draw(st.lists(st.sampled_from(list(domain)), unique=True, min_size=1, max_size=3))
    places = list(product(*(range(axis_of(domain[name]).parts) for name in names)))
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=6, unique=True))
    pieces = [Residual([(n, part) for n, part in zip(names, place, strict=True) if part]) for place in chosen]
    return Measurement(tuple((piece, draw(SIGMAS)) for piece in pieces))


@pytest.mark.parametrize("domain", [KEEPS, DROPS], ids=["keeps", "drops"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_declared_for_a_measurement_is_its_effect_on_all_cells_of_the_table(domain, unit, data):
    """The matrix is built cell by cell of the whole domain, from what a table with one row there would measure."""
    measurement = data.draw(measurements(domain))
    names, shape = tuple(sorted(domain)), tuple(domain[name].size for name in sorted(domain))
    scale = lcm(*((1 / sigma).denominator for _, sigma in measurement.pieces))
    columns = []
    for cell in range(prod(shape)):
        counts = np.zeros(shape, dtype=np.int64)
        counts.flat[cell] = 1
        effects = []
        for residual, sigma in measurement.pieces:
            others = tuple(axis for axis, name in enumerate(names) if name not in residual.columns)
            moved = residual.measure(counts.sum(axis=others), domain).ravel()
            effects += [int(scale / sigma) * int(value) for value in moved]
        columns.append(effects)
    true = matrix_sensitivity(np.array(columns, dtype=object).T, unit, droppable=domain.drops)
    assert sensitivity_of(measurement, domain, unit).l2_squared == true.l2_squared / scale**2


def test_the_sensitivity_of_thousands_of_pieces_is_there_at_once():
    axes = tuple(axis_of_size(100, ordered=True) for _ in range(4))
    places = list(product(*(range(axis.parts) for axis in axes)))
    weights = {place: Fraction(number + 1, 2**40) for number, place in enumerate(places)}
    found = pieces_sensitivity(axes, weights, REPLACE).l2_squared
    assert len(places) == 4096
    assert Fraction(2 * sum(range(1, 4097)), 2**40) < found < Fraction(4 * sum(range(1, 4097)), 2**40)
