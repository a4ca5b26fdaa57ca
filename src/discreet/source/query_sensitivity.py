"""The sensitivity of a query: by how much one person can move its answer, from the schema alone, before a row is read.

Why it holds for every source: contribution.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import (
    Sensitivity,
    bounded_sensitivity,
    clusters_sensitivity,
    histogram_sensitivity,
    matrix_sensitivity,
    pieces_sensitivity,
    residual_sensitivity,
    scalar_sensitivity,
)
from discreet.cache import ById, memoize
from discreet.errors import BadQuery, SealBroken, TooLarge
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.points import Boxes, Clusters, coordinates_of
from discreet.query.product import Product
from discreet.query.residual import Measurement, Residual, axis_of
from discreet.query.workload import Workload
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit

# What is evaluated: immutable values. And what may be given: also lists, which are read once first.
EvaluatedQuery = Linear | Marginal | Ratio | Residual | Measurement | Boxes | Clusters | tuple[Linear, ...]
AnyQuery = EvaluatedQuery | Sequence[Linear] | Workload[Linear]


# A row weighs at most this. Were the limit on the sum itself, then the rows would decide whether a question fails.
LARGEST_ROW_WEIGHT = 2**32

# The most weights of one question, as many as a dense table has: each weight is written to the ledger.
MOST_HELD = 2**22

# Entries of the answer to one question, and entries of the matrix for which the sensitivity is computed exactly.
MOST_ANSWERS, MOST_EFFECTS = 2**24, 2**20
# The most products of a query whose heaviest and lightest cells are weighed before the answer is sealed.
MOST_WITNESSED = 16


def linear_queries(question: AnyQuery) -> tuple[Linear, ...]:
    """The linear queries of a question that is not a marginal, a residual or about points."""
    match question:
        case Linear():
            return (question,)
        case Ratio(numerator, denominator):
            return (numerator, denominator)
        case Workload() if question.size > MOST_ANSWERS:
            raise TooLarge(f"{question!r} is too large to evaluate; the limit is {MOST_ANSWERS}. Take a slice of it.")
    if isinstance(question, Iterable) and not isinstance(question, (str, bytes)):
        queries = tuple(question)
        if queries and all(isinstance(query, Linear) for query in queries):
            return queries
    raise BadQuery(
        f"a source cannot evaluate a {type(question).__name__}. Give a Linear (say count(domain, where)), a Ratio, a "
        "Marginal, or a list of Linear."
    )


def settled_query(question: AnyQuery) -> EvaluatedQuery:
    """The question as one value that stays as it is: a list or a workload is read once, and never asked again."""
    if isinstance(question, (Linear, Marginal, Ratio, Residual, Measurement, Boxes, Clusters)):
        return question
    return linear_queries(question)


def require_within_range(question: EvaluatedQuery, domain: Domain) -> None:
    """Refuse to seal if a row could weigh more than was declared, checked on some cells.

    The declared range and the evaluated weight are two programs that read one form. Here the second one weighs a few
    cells that matter to it; if one of them lies outside what the first one declared, then one of the two is wrong. It
    depends on the question and the schema alone.
    """
    match question:
        case Marginal(_, weight):
            queries: tuple[Linear, ...] = () if weight is None else (weight,)
        case Linear() | Ratio() | tuple():
            queries = linear_queries(question)
        case _:
            return
    for query in queries:
        # The range of one product is that of its factors, which is what weighing multiplies.
        if len(query.products) > 1:
            lowest, highest = query.range(domain)
            weights = query.weigh(_witnesses(query))
            if weights.min() < lowest or weights.max() > highest:
                raise SealBroken(
                    f"a row may weigh {weights.min()} to {weights.max()} in {query!r}, and {lowest} to {highest} was "
                    "declared. This is a mistake in discreet: nothing was released. Please report it."
                )


def _witnesses(query: Linear) -> dict[str, NDArray[np.intp]]:
    """Cells in which some of the products are at an end of their range, the other columns at their first cell."""
    ends = [end for each in query.products[:MOST_WITNESSED] for end in _ends(each)]
    return {name: np.array([cell.get(name, 0) for cell in ends], dtype=np.intp) for name in query.scope}


def _ends(each: Product) -> Iterator[dict[str, int]]:
    for find in (np.argmin, np.argmax):
        cell: dict[str, int] = {}
        for factor in each.factors:
            place = np.unravel_index(int(find(factor.weights)), factor.weights.shape)
            cell |= zip(factor.columns, map(int, place), strict=True)
        yield cell


def sensitivity_of(question: AnyQuery, domain: Domain, unit: Unit) -> Sensitivity:
    """The largest change of the answer between neighbouring tables.

    Exact for one query and for a marginal, and in L2 for a residual; for a vector too, if its matrix is small, and a
    bound from the range of each query otherwise. Raises if the question does not fit the schema or is too large.

    >>> from discreet.schema.column import Boolean
    >>> sensitivity_of(Marginal(("a",)), Domain({"a": Boolean()}), Unit(neighbors="replace_one")).l1
    Fraction(2, 1)
    """
    if isinstance(question, Residual):
        return _residual(question, ById(domain), unit)
    if isinstance(question, Measurement):
        return _measurement(ById(question), ById(domain), unit)
    if isinstance(question, (Boxes, Clusters)):
        coordinates = coordinates_of(domain, question.columns)
        if question.body.norm != "linf" or question.body.reach != tuple(each.reach for each in coordinates):
            raise BadQuery(f"the points of {', '.join(question.columns)} lie in another box. Build it with body_of.")
        # A row without a number in one of the columns is no point, and counts nowhere.
        partial = any(domain[name].size > domain[name].inside for name in question.columns)
        return points_sensitivity(question, unit, droppable=domain.drops or partial)
    droppable = domain.drops
    if isinstance(question, Marginal):
        cells = question.size(domain)
        if cells > MOST_ANSWERS:
            raise TooLarge(
                f"the marginal of {', '.join(question.columns)} has {cells} cells; the limit is {MOST_ANSWERS}. "
                "Ask for fewer columns."
            )
        weights = (1, 1) if question.weight is None else require_light_rows([question.weight], domain)[0]
        return histogram_sensitivity(cells, unit, weights=weights, droppable=droppable)
    queries = linear_queries(question)
    ranges = require_light_rows(queries, domain)
    if len(queries) == 1:
        return scalar_sensitivity(*ranges[0], unit, droppable=droppable)
    return _joint(queries, domain, unit) or bounded_sensitivity(ranges, unit, droppable=droppable)


def points_sensitivity(question: Boxes | Clusters, unit: Unit, *, droppable: bool = False) -> Sensitivity:
    """Of a question about points, wherever they come from.

    >>> from discreet.query.points import Body
    >>> points_sensitivity(Clusters(Body((4, 4)), ((0, 0),), weight=3), Unit()).l1
    Fraction(11, 1)
    """
    if question.size > MOST_ANSWERS:
        raise TooLarge(f"the answer has {question.size} numbers; the limit is {MOST_ANSWERS}. Ask for fewer.")
    if isinstance(question, Boxes):
        return histogram_sensitivity(question.size, unit, droppable=droppable)
    moves = question.effect
    return clusters_sensitivity(
        len(question.centers),
        unit,
        weight=question.weight,
        l1=moves.l1,
        l2_squared=moves.l2_squared,
        linf=moves.linf,
        droppable=droppable,
    )


@memoize(2**14)
def _residual(question: Residual, itself: ById[Domain], unit: Unit) -> Sensitivity:
    """A paid question tops up some thirty residuals, mostly the same ones as before."""
    return residual_sensitivity(question.axes(itself.value), unit, droppable=itself.value.drops)


@memoize(16)
def _measurement(measurement: ById[Measurement], itself: ById[Domain], unit: Unit) -> Sensitivity:
    """Of residuals divided by their noise. The total is the residual in which every column is constant.

    It is cached, because it is needed when a measurement is priced, paid, read and released. A measurement may have
    thousands of residuals, so few results are kept.
    """
    question, domain = measurement.value, itself.value
    columns = question.columns
    weights = {}
    for residual, sigma in question.pieces:
        residual.axes(domain)
        parts = dict(residual.parts)
        weights[tuple(parts.get(name, 0) for name in columns)] = 1 / sigma**2
    axes = tuple(axis_of(domain[name]) for name in columns)
    return pieces_sensitivity(axes, weights, unit, droppable=domain.drops)


def require_light_rows(queries: Sequence[Linear], domain: Domain) -> list[tuple[int, int]]:
    """The lowest and the highest weight of a row in each query; refused if a row may weigh too much to be measured."""
    held = sum(factor.weights.size for query in queries for each in query.products for factor in each.factors)
    if held > MOST_HELD:
        raise TooLarge(f"the query has {held:,} weights; the limit is {MOST_HELD:,}. Ask in several questions.")
    ranges = [query.range(domain) for query in queries]
    heaviest = max(abs(end) for ends in ranges for end in ends)
    if heaviest > LARGEST_ROW_WEIGHT:
        raise TooLarge(
            f"a row may weigh up to {heaviest} in this query; the limit is {LARGEST_ROW_WEIGHT}. "
            "Ask for a smaller multiple; the owner can declare a smaller range or a coarser unit."
        )
    return ranges


def _joint(queries: Sequence[Linear], domain: Domain, unit: Unit) -> Sensitivity | None:
    """The exact sensitivity of a vector, or None if its matrix of effects is too large."""
    scope = sorted({name for query in queries for name in query.scope})
    shape = tuple(domain[name].size for name in scope)
    if prod(shape) * len(queries) > MOST_EFFECTS:
        return None
    effects = np.empty((len(queries), prod(shape)), dtype=np.int64)
    for row, query in enumerate(queries):
        own = [domain[name].size if name in query.scope else 1 for name in scope]
        effects[row] = np.broadcast_to(query.table(domain).reshape(own), shape).ravel()
    effects = np.unique(effects, axis=1)
    # Exchanging compares every two columns.
    if unit.neighbors == "replace_one" and effects.shape[1] * effects.size > 2**6 * MOST_EFFECTS:
        return None
    return matrix_sensitivity(effects, unit, droppable=domain.drops)
