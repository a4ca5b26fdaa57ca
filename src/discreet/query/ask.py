"""Aggregates as linear queries: counts, totals, fractions and means over the rows that satisfy a predicate."""

from collections.abc import Sequence

import numpy as np

from discreet.errors import BadQuery, TooLarge
from discreet.query.box import MOST_DISJOINT_BOXES, MOST_TABLE_WEIGHTS, decompose
from discreet.query.cells import column_of
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import Predicate, everyone
from discreet.query.product import Product
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.types import Ints

# What one aggregate asks: one number, two, a vector, or two vectors. An average is a sum and the number of its values.
AggregateQuery = Linear | Ratio | Marginal | tuple[Marginal, Marginal]


def count(domain: Domain, where: Predicate = everyone) -> Linear:
    """How many rows satisfy a predicate: weight 1 for those, 0 for the others.

    >>> from discreet.query.predicate import col
    >>> people = Domain({"age": Integers(0, 99), "city": Integers(0, 9)})
    >>> count(people, (col("age") >= 65) & (col("city") == 3))
    <Linear: 1 product on age, city>
    """
    return Linear(decompose(where, domain))


def count_present(domain: Domain, name: str, where: Predicate = everyone) -> Linear:
    """How many rows satisfy a predicate and have a value in the column."""
    column = column_of(domain, name)
    present = (np.arange(column.size) < column.inside).astype(np.int64)
    return Linear([each.times(name, present) for each in decompose(where, domain)])


def total(domain: Domain, column: str, where: Predicate = everyone) -> Linear:
    """The sum of a bounded integer column over the rows that satisfy a predicate.

    Rows in an extra cell ("other", "missing") have no value and add nothing, as in SQL.

    >>> total(Domain({"children": Integers(0, 3)}), "children").table(Domain({"children": Integers(0, 3)}))
    array([0, 1, 2, 3, 0])
    """
    values, _ = _values(domain, column)
    return _weighed(column, values, decompose(where, domain))


def fraction(domain: Domain, where: Predicate) -> Ratio:
    """The fraction of all rows that satisfy a predicate."""
    return Ratio(count(domain, where), count(domain))


def mean(domain: Domain, column: str, where: Predicate = everyone) -> Ratio:
    """The mean of a bounded integer column over the rows that satisfy a predicate and have a value, as in SQL."""
    values, present = _values(domain, column)
    boxes = decompose(where, domain)
    return Ratio(_weighed(column, values, boxes), _weighed(column, present, boxes))


def _weighed(column: str, weights: Ints, boxes: Sequence[Product]) -> Linear:
    """Products times the weights of a column; refused before it is made if it has too many weights to be kept."""
    if len(boxes) > 1 and len(boxes) * weights.size > MOST_TABLE_WEIGHTS:
        raise TooLarge(
            f'"{column}" has {weights.size:,} values, and the condition falls into {len(boxes)} boxes: together more '
            f"than {MOST_TABLE_WEIGHTS:,} weights. Ask a simpler condition, or several questions."
        )
    return Linear([each.times(column, weights) for each in boxes])


def _values(domain: Domain, name: str) -> tuple[Ints, Ints]:
    """The value of each cell and whether it has one."""
    column = column_of(domain, name)
    if not isinstance(column, Integers):
        raise BadQuery(
            f'column "{name}" is declared as {type(column).__name__}, whose cells have no one integer to add up. '
            "Ask for counts of it; the owner can declare it as Integers(lower, upper) to allow totals and means."
        )
    present = np.zeros(column.size, dtype=np.int64)
    present[: column.inside] = 1
    values = present.copy()
    values[: column.inside] = column.lower + np.arange(column.inside, dtype=np.int64)
    return values, present


def describe(asked: AggregateQuery, domain: Domain) -> str:
    """The form in which a question is computed, for the plan: products of small tables, or one dense table.

    >>> from discreet.query.predicate import col
    >>> people = Domain({"age": Integers(0, 99), "city": Integers(0, 9)})
    >>> describe(count(people, (col("age") >= 65) | (col("city") == 3)), people)
    '2 disjoint products on age, city'
    """
    match asked:
        case Ratio(numerator, denominator):
            return f"{describe(numerator, domain)}; divided by {describe(denominator, domain)}"
        case (numerators, denominators):
            return f"{describe(numerators, domain)}; divided by {describe(denominators, domain)}"
        case Marginal(columns, None):
            return f"the {asked.size(domain):,} cells of {', '.join(columns)}"
        case Marginal(columns, Linear() as weight):
            return f"the {asked.size(domain):,} cells of {', '.join(columns)}, each with {describe(weight, domain)}"
        case Linear(products):
            largest = max((f.weights.size for each in products for f in each.factors if len(f.columns) > 1), default=0)
            if largest:
                return (
                    f"one dense table of {largest:,} cells on {', '.join(asked.scope)}, "
                    f"because more than {MOST_DISJOINT_BOXES} disjoint products would be needed"
                )
            on = f" on {', '.join(asked.scope)}" if asked.scope else ", the same for every row"
            return "1 product" + on if len(products) == 1 else f"{len(products)} disjoint products" + on
    raise BadQuery(f"a {type(asked).__name__} is not a question of a statement. Give one of select.questions(domain).")
