from math import prod

import pytest

from discreet.errors import BadParameter, BadQuery, BadSchema
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Unit

PEOPLE = Domain({"age": Bins([17, 65], upper=90), "sex": Categories(["Female", "Male"]), "smoker": Boolean()})


def test_the_size_is_the_exact_product_of_the_shape_however_large():
    wide = Domain({f"c{place}": Integers(0, 10**9) for place in range(100)})
    assert wide.size == prod(wide.shape) == (10**9 + 2) ** 100


def test_a_domain_is_made_from_a_mapping_or_from_pairs():
    assert Domain(PEOPLE.columns) == PEOPLE == Domain(dict(PEOPLE.columns))
    assert hash(Domain(PEOPLE.columns)) == hash(PEOPLE)
    assert list(PEOPLE) == ["age", "sex", "smoker"]
    assert PEOPLE.shape == (3, 3, 2)


def test_the_order_of_the_columns_is_part_of_a_domain():
    assert PEOPLE.project(["sex", "age"]) != PEOPLE.project(["age", "sex"])
    assert PEOPLE.project(["sex", "age"]).shape == (3, 3)


def test_a_column_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(BadQuery, match='did you mean "smoker"'):
        PEOPLE["smokr"]
    with pytest.raises(BadQuery, match='no column "height"'):
        PEOPLE.project(["height"])
    assert "age" in PEOPLE
    assert "aeg" not in PEOPLE
    assert 3 not in PEOPLE


def test_merging_keeps_what_agrees_and_refuses_what_does_not():
    assert PEOPLE.project(["age", "sex"]).merge(PEOPLE.project(["sex", "smoker"])) == PEOPLE
    with pytest.raises(BadSchema, match='"smoker" is declared in two ways'):
        PEOPLE.merge(Domain({"smoker": Categories([0, 1], outside=0)}))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, "no columns"),
        ([("a", Boolean()), ("a", Boolean())], '"a" is there twice'),
        ({"a": "text"}, '"a"'),
        ({"": Boolean()}, "''"),
        ({1: Boolean()}, "named 1"),
        ([("a", Boolean(), 3)], "pairs"),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(columns, said):
    with pytest.raises(BadSchema, match=said):
        Domain(columns)


def test_a_domain_drops_rows_only_if_a_column_says_so():
    assert not PEOPLE.drops
    assert Domain({"a": Categories(["x"], missing="drop")}).drops


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"contributions": 2}, BadSchema),
        ({"key": "id", "contributions": 0}, BadParameter),
        ({"key": ""}, BadSchema),
        ({"neighbors": "bounded"}, BadSchema),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(arguments, error):
    with pytest.raises(error):
        Unit(**arguments)
