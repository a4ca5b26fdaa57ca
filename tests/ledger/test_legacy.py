"""What version 1 hashed is written as it was then, to the letter, whatever classes are called by now."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest

from discreet.accounting.event import (
    AboveThreshold,
    Approximate,
    Coin,
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeat,
    Selection,
)
from discreet.estimate.measurements import GaussianQuery, GaussianResiduals, LaplaceMarginal, LaplaceQuery
from discreet.ledger import Budget, legacy
from discreet.plan.plan import Steps
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.points import Body
from discreet.query.predicate import col, everyone
from discreet.query.product import Product
from discreet.query.residual import Measurement, Residual
from discreet.query.statement import Aggregate, Group, Order, Select
from discreet.schema.column import Bins, Boolean, Categories, Integers
from discreet.schema.domain import Domain, column_print
from discreet.schema.unit import Unit
from discreet.source.array_points import Grid

TOTAL = Linear([Product(())])
PIECES = Measurement(((Residual((("sex", 1),)), Fraction(10)), (Residual((("age", 2), ("sex", 1))), Fraction(1, 3))))

# Values, and their representation at 988c215, the last commit of version 1.
WRITTEN = [
    (Nothing(), "Nothing()"),
    (Laplace(10, 1), "Laplace(scale=Fraction(10, 1), sensitivity=Fraction(1, 1))"),
    (Gaussian(Fraction(1, 3), 4), "Gaussian(sigma=Fraction(1, 3), squared_sensitivity=Fraction(4, 1))"),
    (DiscreteGaussian(2, 4), "DiscreteGaussian(sigma=Fraction(2, 1), squared_sensitivity=Fraction(4, 1))"),
    (Selection(1), "Selection(epsilon=Fraction(1, 1))"),
    (AboveThreshold(1), "AboveThreshold(epsilon=Fraction(1, 1))"),
    (Coin(Fraction(1, 2), 3), "Coin(log_odds=Fraction(1, 2), hits=3)"),
    (Approximate(1, Fraction(1, 8)), "Approximate(epsilon=Fraction(1, 1), delta=Fraction(1, 8))"),
    (Compose((Pure(1), Repeat(Nothing(), 2))), "Compose(events=(Pure(epsilon=Fraction(1, 1)), "
     "Repeat(event=Nothing(), times=2)))"),
    (Compose((Nothing(),)), "Compose(events=(Nothing(),))"),
    (Unit(key="id", contributions=3), "Unit(key='id', contributions=3, neighbors='add_remove')"),
    (Categories(["a", True, 1.5, Decimal("0.1"), date(2024, 2, 29)], ordered=True),
     "Categories(values=('a', True, 1.5, Decimal('0.1'), datetime.date(2024, 2, 29)), ordered=True, outside='other', "
     "missing='outside')"),
    (Boolean(), "Categories(values=(False, True), ordered=False, outside=False, missing='outside')"),
    (Integers(0, 9, outside="drop"), "Integers(lower=0, upper=9, outside='drop', missing='missing')"),
    (Bins([0, 5.5], upper=9), "Bins(starts=(0, 5.5), upper=9, outside='clip', missing='missing')"),
    (Domain({"a": Integers(0, 1), "it's": Boolean()}),
     "Domain({'a': Integers(lower=0, upper=1, outside='clip', missing='missing'), \"it's\": "
     "Categories(values=(False, True), ordered=False, outside=False, missing='outside')})"),
    (Grid((0.5,), (0.25,), Body((4, 4), "l1")),
     "Grid(middle=(0.5,), units=(0.25,), body=Body(reach=(4, 4), norm='l1'))"),
    (Steps((GaussianResiduals(PIECES, 0.5), LaplaceMarginal(("age",), Fraction(2), 1.0))),
     "Steps(steps=(Lattice(measurement=Measurement(pieces=((Residual(parts=(('sex', 1),)), Fraction(10, 1)), "
     "(Residual(parts=(('age', 2), ('sex', 1))), Fraction(1, 3)))), price=0.5), "
     "Whole(columns=('age',), scale=Fraction(2, 1), price=1.0)))"),
    (GaussianQuery(TOTAL, Fraction(3), 0.25),
     "Directly(question=<Linear: 1 product on no column>, sigma=Fraction(3, 1), price=0.25)"),
    (LaplaceQuery(Marginal(("sex", "age"), TOTAL), Fraction(3), 0.25),
     "Alone(question=Marginal(columns=('sex', 'age'), weight=<Linear: 1 product on no column>), scale=Fraction(3, 1), "
     "price=0.25)"),
    (Ratio(TOTAL, TOTAL), "Ratio(numerator=<Linear: 1 product on no column>, "
     "denominator=<Linear: 1 product on no column>)"),
    (Budget(epsilon=1, delta=1e-9, gate="renyi"), "Budget(epsilon=1, delta=1e-09, gate='renyi')"),
    (Budget(epsilon=Fraction(1, 3)), "Budget(epsilon=0.333333)"),
    ((col("age") >= 65) & ~(col("sex").isin(["F", 1]) | col("age").is_missing()),
     "(col('age') >= 65) & (~((col('sex').isin(['F', 1])) | (col('age').is_missing())))"),
    (Select("t", (Group("sex", "s"), Aggregate("count", None, "n")), everyone, ("sex",), col("n") > 5,
            (Order("n", True),), 3),
     "Select(table='t', items=(Group(column='sex', name='s'), Aggregate(kind='count', column=None, name='n')), "
     "where=everyone, group=('sex',), having=col('n') > 5, order=(Order(name='n', descending=True),), limit=3)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "written"), WRITTEN, ids=[written[:20] for _, written in WRITTEN])
def test_a_value_is_written_as_it_was(value, written):
    assert legacy.version_1_text(value) == written


def test_the_print_of_a_column_and_of_a_domain_are_what_they_were():
    assert column_print(Integers(0, 9)) == "a78571285c75e987"
    assert legacy.domain_print(Domain({"age": Integers(0, 9)})) == "9db856cafbf04b77"


def test_a_class_that_version_1_did_not_write_is_refused():
    with pytest.raises(AssertionError):
        legacy.version_1_text(Product(()))
