"""Residuals: the Kronecker product of the parts, times a marginal, exactly."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadQuery, TooLarge
from discreet.query import Residual
from discreet.query.residual import MOST_RESIDUAL_CELLS, axis_of
from discreet.schema import Bins, Boolean, Categories, Domain, Integers

DOMAIN = Domain(
    {
        "sex": Boolean(),
        "age": Integers(0, 4, missing="drop"),
        "city": Categories(["a", "b", "c"]),
        "size": Bins([0, 1, 2], upper=3, missing="drop"),
        "one": Categories(["a"], outside="drop"),
        "wide": Integers(1, 2**20, missing="drop"),
        "wider": Integers(0, 2**20, missing="drop"),
    }
)
SMALL = DOMAIN.project(["age", "city", "sex", "size"])
# Columns with padded cells are orthogonal only with their padding; these have none.
EVEN = Domain({"age": Integers(0, 7, missing="drop"), "city": DOMAIN["city"], "sex": Boolean(), "size": Boolean()})
FEW, MANY = st.integers(0, 1000), st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63), 2**56])


@st.composite
def residuals(draw, domain):
    names = draw(st.lists(st.sampled_from(list(domain)), unique=True))
    return Residual(tuple((name, draw(st.integers(1, axis_of(domain[name]).parts - 1))) for name in names))


def matrix(residual, domain, columns):
    parts = dict(residual.parts)
    return reduce(np.kron, [axis_of(domain[name]).measure(parts.get(name, 0)) for name in columns], np.array([[1]]))


@st.composite
def measurements(draw, counts):
    residual = draw(residuals(SMALL))
    shape = [DOMAIN[name].size for name in residual.columns]
    cells = int(np.prod(shape))
    return residual, draw(st.lists(counts, min_size=cells, max_size=cells)), shape


@given(measurements(FEW))
def test_it_is_the_kronecker_product_of_its_parts_times_the_marginal(measurement):
    residual, counts, shape = measurement
    measured = residual.measure(np.array(counts).reshape(shape), DOMAIN)
    assert measured.dtype == np.int64
    assert measured.shape == residual.shape(DOMAIN)
    assert measured.size == residual.size(DOMAIN)
    assert measured.ravel().tolist() == (matrix(residual, DOMAIN, residual.columns) @ counts).tolist()


@given(measurements(MANY))
def test_it_is_exact_where_64_bits_are_too_few(measurement):
    residual, counts, shape = measurement
    dense = matrix(residual, DOMAIN, residual.columns).astype(object)
    expected = (dense @ np.array(counts, dtype=object)).tolist()
    for values in (np.array(counts, dtype=np.int64), np.array(counts, dtype=object)):
        assert residual.measure(values.reshape(shape), DOMAIN).ravel().tolist() == expected


def test_one_bit_below_and_above_the_limit_of_64_bits_it_is_exact():
    contrast = Residual((("city", 1),))
    for bits in range(55, 63):
        for count in (2**bits - 1, 2**bits + 1):
            assert contrast.measure([count, 0, 0, 1], DOMAIN).tolist() == [
                3 * count - 1, -count - 1, -count - 1, 3 - count
            ]  # fmt: skip


@given(residuals(EVEN), residuals(EVEN))
def test_two_residuals_measure_orthogonal_things(one, other):
    columns = sorted({*one.columns, *other.columns})
    assert one == other or not (matrix(one, EVEN, columns) @ matrix(other, EVEN, columns).T).any()


def test_the_residual_of_no_column_is_the_total():
    total = Residual(())
    assert total.columns == total.scope == ()
    assert total.shape(DOMAIN) == ()
    assert total.size(DOMAIN) == 1
    assert total.measure(np.array(7), DOMAIN).tolist() == 7


def test_the_order_in_which_parts_are_named_does_not_matter():
    one, other = Residual((("sex", 1), ("age", 2))), Residual([("age", np.int64(2)), ("sex", 1)])
    assert one == other
    assert hash(one) == hash(other)
    assert one.parts == (("age", 2), ("sex", 1))
    assert one.columns == one.scope == ("age", "sex")


@pytest.mark.parametrize(
    "parts",
    [
        *("age", 5, None, {"age": 1}, iter([("age", 1)])),
        *(["age"], [None], [("age", 0)], [("age", -1)], [("age", True)], [("age", 1.0)], [(1, 1)], [("age", 1, 2)]),
    ],
    ids=lambda parts: repr(parts).split(" at ")[0],
)
def test_what_is_no_list_of_parts_is_refused(parts):
    with pytest.raises(BadQuery, match=r"parts is .*; it must be pairs .*\. Write "):
        Residual(parts)


def test_a_column_named_twice_is_refused():
    with pytest.raises(BadQuery, match=r"each column is named once\. Remove one"):
        Residual((("age", 1), ("age", 2)))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([("aeg", 1)], 'no column "aeg" in the domain; did you mean "age"?'),
        ([("age", 4)], 'column "age" has no part 4; its parts besides the constants are 1 to 3. Name one of them.'),
        ([("age", 1), ("city", 2)], 'column "city" has no part 2; its parts besides the constants are 1 to 1.'),
        ([("one", 1)], 'column "one" has one cell, so it has no part 1'),
    ],
)
def test_a_part_that_the_domain_does_not_have_is_refused(parts, said):
    for ask in (Residual(parts).shape, Residual(parts).size, Residual(parts).axes):
        with pytest.raises(BadQuery) as caught:
            ask(DOMAIN)
        assert str(caught.value).startswith(said)


@pytest.mark.parametrize("parts", [[("wider", 1)], [("wide", 1), ("sex", 1)]])
def test_more_cells_than_are_counted_are_refused(parts):
    with pytest.raises(TooLarge, match=rf"cells; .* at most {MOST_RESIDUAL_CELLS}\. Ask for fewer columns"):
        Residual(parts).size(DOMAIN)


def test_as_many_cells_as_are_counted_are_measured():
    counts = np.zeros(2**20, dtype=np.int64)
    counts[-1] = 3
    assert Residual([("wide", 1)]).measure(counts, DOMAIN).tolist() == [-3]
    assert Residual([("wide", 20)]).measure(counts, DOMAIN)[-1] == -3


@pytest.mark.parametrize("counts", [[1, 2, 3], [[1, 2, 3, 4]], [1.0, 2.0, 3.0, 4.0], 5])
def test_counts_of_another_shape_or_kind_are_refused(counts):
    with pytest.raises(BadQuery, match="it needs integer counts with an axis for each of its columns"):
        Residual([("city", 1)]).measure(np.array(counts), DOMAIN)
