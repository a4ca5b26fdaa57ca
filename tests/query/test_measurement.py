"""Measurements: pieces of a lattice and their noise, checked when they are made."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadParameter, BadQuery
from discreet.query import Residual
from discreet.query.residual import Measurement
from discreet.schema import Boolean, Categories, Domain, Integers

DOMAIN = Domain({"age": Integers(0, 4, missing="drop"), "city": Categories(["a", "b", "c"]), "sex": Boolean()})
TOTAL, SEX, AGE, BOTH = (Residual(parts) for parts in ((), [("sex", 1)], [("age", 3)], [("age", 2), ("city", 1)]))


def test_its_columns_are_those_of_all_pieces_sorted():
    assert Measurement(((SEX, Fraction(1)), (BOTH, Fraction(2)), (TOTAL, Fraction(3)))).columns == (
        "age",
        "city",
        "sex",
    )
    assert Measurement(((TOTAL, Fraction(3)),)).columns == ()


def test_its_stretches_are_the_noise_and_the_numbers_of_each_piece_in_order():
    measurement = Measurement(((BOTH, Fraction(2)), (TOTAL, Fraction(3)), (AGE, Fraction(1, 2))))
    # Two blocks of ages times four cells of the city, one of which is for other cities; one total; four pairs of ages.
    assert measurement.stretches(DOMAIN) == ((Fraction(2), 8), (Fraction(3), 1), (Fraction(1, 2), 4))


def test_noise_is_kept_exactly_and_equal_measurements_are_equal():
    one = Measurement(((SEX, 0.1), (TOTAL, 3)))
    assert one.pieces == ((SEX, Fraction(1, 10)), (TOTAL, Fraction(3)))
    assert all(isinstance(sigma, Fraction) for _, sigma in one.pieces)
    assert one == Measurement(((SEX, 0.1), (TOTAL, Fraction(3))))
    assert hash(one) == hash(Measurement(((SEX, 0.1), (TOTAL, np.int64(3)))))
    assert one != Measurement(((SEX, 0.1), (TOTAL, Fraction(2))))


@pytest.mark.parametrize("pieces", [(), ((("sex", 1), Fraction(1)),), ((SEX, Fraction(1)), ("sex", Fraction(1)))])
def test_what_has_no_pieces_or_something_else_is_refused(pieces):
    with pytest.raises(BadQuery, match=r"no Residual, or something else among them\. Give pairs"):
        Measurement(pieces)


def test_a_piece_named_twice_is_refused_in_whatever_order_its_parts_are():
    again = Residual([("city", 1), ("age", 2)])
    with pytest.raises(BadQuery, match="the same residual twice; each is measured once"):
        Measurement(((BOTH, Fraction(1)), (again, Fraction(2))))


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf"), "1", True, None], ids=repr)
def test_bad_noise_is_refused(sigma):
    with pytest.raises(BadParameter, match=r"sigma is .*; it must be"):
        Measurement(((SEX, sigma),))


@pytest.mark.parametrize(
    ("piece", "said"),
    [([("aeg", 1)], 'did you mean "age"'), ([("age", 4)], "its parts besides the constants are 1 to 3")],
)
def test_a_piece_that_the_domain_does_not_have_is_refused(piece, said):
    with pytest.raises(BadQuery, match=said):
        Measurement(((Residual(piece), Fraction(1)),)).stretches(DOMAIN)
