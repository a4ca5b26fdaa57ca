"""The laws of every source. A source joins by adding to SOURCES a function (rows, unit) → source over tables.DOMAIN."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import inf, nan
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.query import Marginal, count, everyone, fraction, total
from discreet.query.points import Boxes, Clusters, body_of, coordinates_of
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Not, Or
from discreet.schema import Bins, Categories, Domain, Integers, Unit
from discreet.source import Frame
from discreet.source.source import unseal
from discreet.values import read_value
from source.tables import DOMAIN, HOLDERS, LOOSE, PREDICATES, TYPED, arrow, rows
from support.engines import ENGINES
from support.needs import needs_postgres, needs_spark
from support.strategies import examples

UNIT = Unit()


def _frame(hold, table, unit=UNIT):
    return Frame(hold(table), domain=DOMAIN, unit=unit)


def _engine(make, table, unit=UNIT):
    return make(arrow(table), DOMAIN, unit)


class Case(NamedTuple):
    """How to make a source of rows, and how many examples of a law it has time for."""

    source_of: Callable
    examples: int
    mark: pytest.MarkDecorator | None = None


SOURCES = {f"frame of {name}": Case(partial(_frame, hold), 25) for name, hold in HOLDERS.items()}
SOURCES |= {
    "DuckDB": Case(partial(_engine, ENGINES["DuckDB"]), examples(20, 30)),
    "Parquet": Case(partial(_engine, ENGINES["Parquet"]), examples(10, 15)),
    "CSV": Case(partial(_engine, ENGINES["CSV"]), examples(8, 12)),
    "Postgres": Case(partial(_engine, ENGINES["Postgres"]), examples(12, 18), needs_postgres),
    "Spark": Case(partial(_engine, ENGINES["Spark"]), examples(4, 6), needs_spark),
}
NAMES = [pytest.param(name, marks=[case.mark] if case.mark else []) for name, case in SOURCES.items()]
slow_is_fine = settings(deadline=None, suppress_health_check=list(HealthCheck))


def law(**strategies):
    """A law, checked for every source with as many examples as it has time for."""

    def of_every_source(check):
        @pytest.mark.parametrize("name", NAMES)
        def test(name):
            source_of, often, _ = SOURCES[name]
            checked = given(source_of=st.just(source_of), **strategies)(check)
            settings(slow_is_fine, max_examples=often)(checked)()

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return of_every_source


subsets = st.lists(st.sampled_from(list(DOMAIN)), unique=True, max_size=4).map(tuple)


def opened(source, question):
    exact = source.evaluate(question)
    return unseal(exact, exact.sensitivity)


def coded(table):
    """The reference: one value at a time, by the definition of a column."""
    cells = [{name: column.code(row[name]) for name, column in DOMAIN.columns} for row in table]
    return [row for row in cells if None not in row.values()]


def holds(predicate, row):
    """Whether a predicate is true of a coded row, from the labels and ends of its cell alone."""
    match predicate:
        case And(parts):
            return all(holds(part, row) for part in parts)
        case Or(parts):
            return any(holds(part, row) for part in parts)
        case Not(part):
            return not holds(part, row)
        case Compare() | IsIn() | IsMissing():
            column, cell = DOMAIN[predicate.column], row[predicate.column]
            if cell >= column.inside:
                return isinstance(predicate, IsMissing) and column.label(cell) == "missing"
            return not isinstance(predicate, IsMissing) and compares(predicate, column, cell)
    return predicate == everyone


def compares(predicate, column, cell):
    match column:
        case Categories():
            value = read_value(column.values[cell])[1]
        case Integers():
            value = column.lower + cell
        case Bins():
            value = column.edges[cell]
    against = read_value(predicate.value)[1]
    return {
        "==": value == against,
        "!=": value != against,
        "<": predicate.operator in ("<", "<=") and value < against,
        "<=": predicate.operator in ("<", "<=") and value <= against,
        ">": predicate.operator in (">", ">=") and value > against,
        ">=": predicate.operator in (">", ">=") and value >= against,
    }[predicate.operator]


@law(table=rows(TYPED), columns=subsets)
def test_a_marginal_counts_the_rows_as_the_definition_of_a_column_does(source_of, table, columns):
    expected = np.zeros([DOMAIN[name].size for name in columns], dtype=int)
    for row in coded(table):
        expected[tuple(row[name] for name in columns)] += 1
    assert opened(source_of(table), Marginal(columns)).tolist() == expected.ravel().tolist()


@law(table=rows(TYPED), where=PREDICATES)
def test_a_count_is_the_number_of_rows_for_which_the_predicate_holds(source_of, table, where):
    expected = sum(holds(where, row) for row in coded(table))
    assert opened(source_of(table), count(DOMAIN, where)).tolist() == [expected]


@law(table=rows(TYPED), columns=subsets, data=st.data())
def test_the_marginal_of_a_marginal_is_the_marginal(source_of, table, columns, data):
    source = source_of(table)
    fewer = data.draw(st.lists(st.sampled_from(columns), unique=True).map(tuple)) if columns else ()
    whole = opened(source, Marginal(columns)).reshape(Marginal(columns).shape(DOMAIN))
    summed = np.einsum(whole, list(range(len(columns))), [columns.index(name) for name in fewer])
    assert summed.ravel().tolist() == opened(source, Marginal(fewer)).tolist()
    assert whole.sum() == opened(source, count(DOMAIN))[0], "every marginal has the same total"


@law(table=rows(TYPED), where=PREDICATES, other=PREDICATES)
def test_a_vector_is_its_queries_one_by_one_and_a_ratio_is_two(source_of, table, where, other):
    source = source_of(table)
    queries = [count(DOMAIN, where), total(DOMAIN, "hours", other), 3 * count(DOMAIN, other) - count(DOMAIN)]
    assert opened(source, queries).tolist() == [opened(source, query)[0] for query in queries]
    assert opened(source, fraction(DOMAIN, where)).tolist() == opened(source, [queries[0], count(DOMAIN)]).tolist()


@law(table=rows(TYPED), columns=subsets, where=PREDICATES)
def test_a_grouped_sum_is_the_sum_over_the_rows_of_each_cell(source_of, table, columns, where):
    expected = np.zeros([DOMAIN[name].size for name in columns], dtype=int)
    hours = [*range(1, 5), 0]
    for row in coded(table):
        expected[tuple(row[name] for name in columns)] += holds(where, row) * hours[row["hours"]]
    question = Marginal(columns, total(DOMAIN, "hours", where))
    assert opened(source_of(table), question).tolist() == expected.ravel().tolist()


@law(table=rows(TYPED, most=12), contributions=st.integers(1, 3), columns=subsets)
def test_of_each_person_the_first_rows_by_their_cells_count(source_of, table, contributions, columns):
    expected = np.zeros([DOMAIN[name].size for name in columns], dtype=int)
    for who in range(3):
        own = sorted(coded([row for row in table if row["who"] == who]), key=lambda row: [row[name] for name in DOMAIN])
        for row in own[:contributions]:
            expected[tuple(row[name] for name in columns)] += 1
    source = source_of(table, Unit(key="who", contributions=contributions))
    assert opened(source, Marginal(columns)).tolist() == expected.ravel().tolist()


@law(table=rows(TYPED), where=PREDICATES)
def test_the_order_of_the_rows_does_not_matter(source_of, table, where):
    question = [count(DOMAIN, where), total(DOMAIN, "hours")]
    assert opened(source_of(table), question).tolist() == opened(source_of(table[::-1]), question).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_table_without_rows_counts_nothing(name):
    source = SOURCES[name].source_of([])
    assert not opened(source, Marginal(tuple(DOMAIN))).any()
    assert opened(source, [count(DOMAIN), total(DOMAIN, "hours")]).tolist() == [0, 0]


# Both columns can be missing in a row, one drops rows and the other has a cell for what is outside: no point there.
PLANE = {"hours": Integers(1, 4, outside="drop"), "rate": Bins([0, 0.25, 0.5, 0.75], upper=1, outside="other")}
HOURS, RATES = [None, 0, 1, 2, 3, 4, 4, 9], [nan, None, -0.1, 0.0, 0.3, 0.49, 0.75, 1.0, inf]


SLOW = pytest.param("Spark", marks=[*NAMES[-1].marks, pytest.mark.long])


@pytest.mark.parametrize("name", ["frame of list of dicts", *NAMES[len(HOLDERS) : -1], SLOW])
def test_boxes_and_voronoi_cells_are_those_of_the_rows_one_by_one(name):
    domain, columns = Domain(PLANE), tuple(PLANE)
    table = [
        dict.fromkeys(DOMAIN) | {"hours": HOURS[place % 8], "rate": RATES[place % 9], "who": place}
        for place in range(72)
    ]
    held = arrow(table)
    source = Frame(held, domain=domain) if name.startswith("frame") else ENGINES[name](held, domain, UNIT)
    cells = [[PLANE[each].code(row[each]) for each in columns] for row in table]
    ways = coordinates_of(domain, columns)
    points = [
        [way.step * cell + way.start for cell, way in zip(row, ways, strict=True)]
        for row in cells
        if all(cell is not None and cell < way.cells for cell, way in zip(row, ways, strict=True))
    ]
    assert 0 < len(points) < 72
    plane, centers = body_of(domain, columns), ((-9000, -5000), (-9000, -5000), (0, 7000), (16000, 100))
    questions = [Boxes(plane, (3, 2), columns), Clusters(plane, centers, 10, columns=columns)]
    questions += [Clusters(plane, centers, 7, radius, norm, columns) for radius, norm in ((3000, "l1"), (9000, "l2"))]
    for question in questions:
        expected = sum(question.measure(np.array([point], dtype=float).T) for point in points)
        assert opened(source, question).tolist() == expected.tolist()


EXTREMES = {
    "age": [2**63 - 1, -(2**63), None, 17, 90],
    "city": ["", "\U0001f600", None, "Zu\u0308rich", "Zürich"],
    "hours": [1, 4, 2, 3, 1],
    "rate": [nan, inf, -inf, -0.0, 0.3],
    "smoker": [None, True, False, True, None],
    "since": [None, datetime(1, 1, 2), datetime(9999, 12, 31), datetime(2024, 2, 28, 23, 59), datetime(2024, 2, 29)],
    "who": [2**63 - 1, -(2**63), 0, 0, 1],
}


@pytest.mark.parametrize("most", [1, 5], ids=["one row", "all rows"])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_values_are_counted_by_their_rule(name, most):
    table = [dict(zip(EXTREMES, row, strict=True)) for row in zip(*EXTREMES.values(), strict=True)][:most]
    source = SOURCES[name].source_of(table)
    for column in DOMAIN:
        expected = np.bincount([row[column] for row in coded(table)], minlength=DOMAIN[column].size)
        assert opened(source, Marginal((column,))).tolist() == expected.tolist()


@settings(slow_is_fine, max_examples=100)
@given(table=rows(LOOSE), where=PREDICATES)
@pytest.mark.parametrize("holder", ["list of dicts", "dict of lists", "structured array", "pandas objects"])
def test_no_value_of_any_type_makes_a_source_raise(holder, table, where):
    source = SOURCES[f"frame of {holder}"].source_of(table)
    assert opened(source, count(DOMAIN, where)).tolist() == [sum(holds(where, row) for row in coded(table))]
    for name in DOMAIN:
        assert opened(source, Marginal((name,))).sum() == len(coded(table))
