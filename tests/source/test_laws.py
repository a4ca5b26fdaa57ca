"""The laws of every source. A source joins by adding to SOURCES a function (rows, unit) → source over tables.DOMAIN."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.query import Marginal, count, everyone, fraction, total
from discreet.query.predicate import And, Compare, IsIn, IsMissing, Not, Or
from discreet.schema import Bins, Categories, Integers
from discreet.schema.value import read
from discreet.source import Frame
from discreet.source.exact import unseal
from source.tables import DOMAIN, HOLDERS, LOOSE, PREDICATES, TYPED, rows


def _frame(hold, table, unit=None):
    return Frame(hold(table), domain=DOMAIN, unit=unit)


SOURCES = {f"frame of {name}": partial(_frame, hold) for name, hold in HOLDERS.items()}
every_source = pytest.mark.parametrize("source_of", SOURCES.values(), ids=SOURCES.keys())
slow_is_fine = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))

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
            value = read(column.values[cell])[1]
        case Integers():
            value = column.lower + cell
        case Bins():
            value = column.edges[cell]
    against = read(predicate.value)[1]
    return {
        "==": value == against,
        "!=": value != against,
        "<": predicate.operator in ("<", "<=") and value < against,
        "<=": predicate.operator in ("<", "<=") and value <= against,
        ">": predicate.operator in (">", ">=") and value > against,
        ">=": predicate.operator in (">", ">=") and value >= against,
    }[predicate.operator]


@every_source
@slow_is_fine
@given(table=rows(TYPED), columns=subsets)
def test_a_marginal_counts_the_rows_as_the_definition_of_a_column_does(source_of, table, columns):
    expected = np.zeros([DOMAIN[name].size for name in columns], dtype=int)
    for row in coded(table):
        expected[tuple(row[name] for name in columns)] += 1
    assert opened(source_of(table), Marginal(columns)).tolist() == expected.ravel().tolist()


@every_source
@slow_is_fine
@given(table=rows(TYPED), where=PREDICATES)
def test_a_count_is_the_number_of_rows_for_which_the_predicate_holds(source_of, table, where):
    expected = sum(holds(where, row) for row in coded(table))
    assert opened(source_of(table), count(DOMAIN, where)).tolist() == [expected]


@every_source
@slow_is_fine
@given(table=rows(TYPED), columns=subsets, data=st.data())
def test_the_marginal_of_a_marginal_is_the_marginal(source_of, table, columns, data):
    source = source_of(table)
    fewer = data.draw(st.lists(st.sampled_from(columns), unique=True).map(tuple)) if columns else ()
    whole = opened(source, Marginal(columns)).reshape(Marginal(columns).shape(DOMAIN))
    summed = np.einsum(whole, list(range(len(columns))), [columns.index(name) for name in fewer])
    assert summed.ravel().tolist() == opened(source, Marginal(fewer)).tolist()
    assert whole.sum() == opened(source, count(DOMAIN))[0], "every marginal has the same total"


@every_source
@slow_is_fine
@given(table=rows(TYPED), where=PREDICATES, other=PREDICATES)
def test_a_vector_is_its_queries_one_by_one_and_a_ratio_is_two(source_of, table, where, other):
    source = source_of(table)
    queries = [count(DOMAIN, where), total(DOMAIN, "hours", other), 3 * count(DOMAIN, other) - count(DOMAIN)]
    assert opened(source, queries).tolist() == [opened(source, query)[0] for query in queries]
    assert opened(source, fraction(DOMAIN, where)).tolist() == opened(source, [queries[0], count(DOMAIN)]).tolist()


@every_source
@slow_is_fine
@given(table=rows(TYPED), where=PREDICATES)
def test_the_order_of_the_rows_does_not_matter(source_of, table, where):
    question = [count(DOMAIN, where), total(DOMAIN, "hours")]
    assert opened(source_of(table), question).tolist() == opened(source_of(table[::-1]), question).tolist()


@every_source
def test_a_table_without_rows_counts_nothing(source_of):
    source = source_of([])
    assert not opened(source, Marginal(tuple(DOMAIN))).any()
    assert opened(source, [count(DOMAIN), total(DOMAIN, "hours")]).tolist() == [0, 0]


@settings(slow_is_fine, max_examples=100)
@given(table=rows(LOOSE), where=PREDICATES)
@pytest.mark.parametrize("holder", ["list of dicts", "dict of lists", "structured array", "pandas objects"])
def test_no_value_of_any_type_makes_a_source_raise(holder, table, where):
    source = SOURCES[f"frame of {holder}"](table)
    assert opened(source, count(DOMAIN, where)).tolist() == [sum(holds(where, row) for row in coded(table))]
    for name in DOMAIN:
        assert opened(source, Marginal((name,))).sum() == len(coded(table))
