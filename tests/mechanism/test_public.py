"""A value that no person can move is told as it is, and no other value is."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from discreet import verify
from discreet.accounting.event import Nothing
from discreet.accounting.sensitivity import Sensitivity
from discreet.errors import SealBroken
from discreet.mechanism import public
from discreet.mechanism.public import UNMOVED
from discreet.query import Residual, count
from discreet.schema import Boolean, Domain, Integers, Unit
from discreet.source import Frame
from support.mechanism_values import ADD, ADD_PERSON, ONE, ONE_WAY, REPLACE, REPLACE_PERSON, UNITS, sealed, total

TOTAL, COUNT = [[1, 1, 1]], [[1, 0, 0]]


def test_it_tells_the_value_and_costs_nothing():
    values = public().release(sealed([10**12, -3], UNMOVED))
    assert values.tolist() == [10**12, -3]
    assert public().event == Nothing()
    assert public().error(0.999, joint=100) == 0


def test_what_it_tells_is_a_copy():
    exact = sealed([5], UNMOVED)
    public().release(exact)[0] = 6
    assert public().release(exact).tolist() == [5]


def test_its_law_is_a_point():
    law = public().law([4, 0], beside=[[4, 1]])
    assert {outcome: float(mass) for outcome, mass in law.probabilities.items()} == {(4, 0): 1.0}
    assert law.rest == 0
    assert total(law) == 1


def test_the_number_of_rows_is_public_where_rows_are_exchanged():
    verdict = verify.check(lambda moves: public(), TOTAL, REPLACE, rows=3)
    assert verdict.holds
    assert verdict.claimed == 0
    assert verdict.exact == (0.0, 0.0)


@pytest.mark.parametrize(
    ("query", "unit", "droppable"),
    [
        (TOTAL, ADD, False),
        (TOTAL, ADD_PERSON, False),
        (TOTAL, REPLACE, True),
        (TOTAL, REPLACE_PERSON, False),
        *((COUNT, unit, False) for unit in UNITS),
    ],
)
def test_to_tell_what_somebody_can_move_would_be_refuted(query, unit, droppable):
    """The power test: were the seal open, the exact loss would be infinite. And the seal is closed."""
    moves = []
    verdict = verify.check(lambda given: moves.append(given) or public(), query, unit, droppable=droppable)
    assert verdict.refuted
    assert verdict.exact.lower == inf
    with pytest.raises(SealBroken):
        public().release(sealed([3], moves[0]))


HAIR = Fraction(1, 10**9)


@pytest.mark.parametrize(
    "moves",
    [
        ONE,
        ONE_WAY,
        Sensitivity(HAIR, Fraction(0), Fraction(0)),
        Sensitivity(Fraction(0), HAIR, Fraction(0)),
        Sensitivity(Fraction(0), Fraction(0), HAIR),
    ],
)
def test_the_seal_opens_only_at_zero_in_every_norm(moves):
    with pytest.raises(SealBroken) as caught:
        public().release(sealed([87_654_321], moves))
    assert "87654321" not in str(caught.value)


@pytest.mark.parametrize("values", [[1], np.array([1])])
def test_only_a_sealed_value_is_told(values):
    with pytest.raises(SealBroken, match="takes an Exact"):
        public().release(values)


@pytest.mark.parametrize("question", [Residual(()), None], ids=["residual", "count"])
def test_a_table_tells_its_total_exactly_where_it_is_public(question):
    keeps = Domain({"a": Boolean(), "b": Integers(0, 5)})
    drops = Domain({"a": Boolean(), "b": Integers(0, 5, missing="drop")})
    rows = {"a": [True, False, None], "b": [1, 2, 3], "who": [1, 2, 3]}

    def told(domain, **unit):
        source = Frame(rows, domain=domain, unit=Unit(**unit))
        return public().release(source.evaluate(question or count(domain))).tolist()

    assert told(keeps, neighbors="replace_one") == [3]
    for unit in ({}, {"key": "who"}, {"key": "who", "neighbors": "replace_one"}):
        with pytest.raises(SealBroken):
            told(keeps, **unit)
    with pytest.raises(SealBroken):
        told(drops, neighbors="replace_one")
