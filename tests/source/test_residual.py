"""Residuals of every source: exact integers from its marginals, that move no further than declared."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.errors import BadQuery, TooLarge
from discreet.query import Residual
from discreet.query.residual import axis_of
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from discreet.source import Frame
from discreet.source.query_sensitivity import _residual, sensitivity_of
from discreet.source.source import Source
from source.tables import DOMAIN, TYPED, rows
from source.test_laws import coded, law, opened

LARGEST = 2**63 - 1


@st.composite
def residuals(draw, domain=DOMAIN, most=4):
    names = draw(st.lists(st.sampled_from(list(domain)), unique=True, max_size=most))
    return Residual(tuple((name, draw(st.integers(1, axis_of(domain[name]).parts - 1))) for name in names))


def dense(residual, domain=DOMAIN):
    return reduce(np.kron, [axis_of(domain[name]).measure(part) for name, part in residual.parts], np.array([[1]]))


def counting(table, unit):
    """The reference: the cells of the rows that count."""
    if unit.key is None:
        return coded(table)
    own = [coded([row for row in table if row["who"] == who]) for who in range(3)]
    order = lambda row: [row[name] for name in DOMAIN]
    return [row for person in own for row in sorted(person, key=order)[: unit.contributions]]


@law(table=rows(TYPED, most=12), unit=st.sampled_from([Unit(), Unit(key="who", contributions=2)]), residual=residuals())
def test_a_residual_is_its_matrix_times_the_counts_of_the_rows_that_count(source_of, table, unit, residual):
    counts = np.zeros([DOMAIN[name].size for name in residual.columns], dtype=int)
    for row in counting(table, unit):
        counts[tuple(row[name] for name in residual.columns)] += 1
    source = source_of(table, unit)
    assert opened(source, residual).tolist() == (dense(residual) @ counts.ravel()).tolist()
    assert source.evaluate(residual).size == residual.size(DOMAIN)


class Counted(Source):
    """A source that only says how many rows are in each cell of its one column."""

    def __init__(self, domain, counts, unit=None):
        super().__init__(domain, unit or Unit())
        self.counts = np.array(counts, dtype=np.int64)

    def cells(self, columns):
        """One batch with every cell."""
        yield ([np.arange(len(self.counts))], self.counts) if columns else ([], np.array([self.counts.sum()]))


# Five cells, with that of the others.
FIVE = Domain({"a": Categories(["a", "b", "c", "d"])})
BIG = st.sampled_from([0, 1, 2**31, 2**53 + 1, 2**59, 2**60 - 1, 2**60]) | st.integers(0, 2**60)
# Four of the above and one of these add up to less than 2^63, and four times one of these does not.
BIGGER = st.sampled_from([2**61 - 1, 2**61 + 1, 2**62 - 1]) | st.integers(0, 2**62 - 1)


@example([2**62 - 1, 0, 0, 0, 0])
@given(st.tuples(BIGGER, BIG, BIG, BIG, BIG))
def test_large_counts_are_exact_and_what_does_not_fit_is_the_largest_that_does(counts):
    exact = [5 * count - sum(counts) for count in counts]
    told = opened(Counted(FIVE, counts), Residual((("a", 1),)))
    assert told.dtype == np.int64
    assert told.tolist() == [min(max(value, -LARGEST), LARGEST) for value in exact]
    assert opened(Counted(FIVE, counts), Residual(())).tolist() == [sum(counts)]


UNITS = [
    Unit(neighbors=neighbors, **who)
    for neighbors in ("add_remove", "replace_one")
    for who in ({}, {"key": "who", "contributions": 2})
]
SMALL = Domain({"a": Categories(["x", "y"]), "b": Boolean(), "c": Integers(0, 2, missing="drop")})
DROPS = {False: Domain({"a": SMALL["a"], "b": SMALL["b"], "c": Integers(0, 1)}), True: SMALL}


@pytest.mark.parametrize("droppable", [False, True])
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@settings(max_examples=15)
@given(data=st.data())
def test_the_worst_neighbours_move_a_residual_exactly_as_far_as_declared(unit, droppable, data):
    domain = DROPS[droppable]
    residual = data.draw(residuals(domain, most=2))
    shape = [domain[name].size for name in residual.columns]
    declared = sensitivity_of(residual, domain, unit)
    worst = 0
    for pair in verify.neighboring_tables(int(np.prod(shape)), unit.contributions, unit, droppable=droppable):
        one, other = (residual.measure(np.array(table).reshape(shape), domain) for table in pair)
        worst = max(worst, int(((one - other) ** 2).sum()))
    assert worst == declared.l2_squared


@given(residuals(SMALL), st.sampled_from(UNITS), st.booleans())
def test_what_is_declared_is_the_sensitivity_of_the_dense_matrix(residual, unit, drops):
    domain = DROPS[drops]
    assert domain.drops == drops
    true = matrix_sensitivity(dense(residual, domain), unit, droppable=drops)
    declared = sensitivity_of(residual, domain, unit)
    assert declared.l2_squared == true.l2_squared
    assert declared.covers(true)


def test_what_a_residual_costs_is_remembered_for_each_domain_and_unit():
    residual, again = Residual((("b", 1), ("c", 1))), Residual((("b", 1), ("c", 1)))
    wide = Domain({"b": Categories(["x", "y", "z"]), "c": SMALL["c"]})
    first = sensitivity_of(residual, SMALL, Unit())
    hits = _residual.cache_info().hits
    assert sensitivity_of(again, SMALL, Unit()) is first
    assert _residual.cache_info().hits == hits + 1
    assert sensitivity_of(residual, wide, Unit()).l2_squared == 12 != first.l2_squared
    assert sensitivity_of(residual, SMALL, Unit(neighbors="replace_one")).l2_squared == 4 != first.l2_squared


@pytest.mark.parametrize(
    ("parts", "error"),
    [([("z", 1)], BadQuery), ([("b", 2)], BadQuery), ([("c", 1), ("wide", 1)], TooLarge)],
)
@pytest.mark.parametrize("values", [[], [1, 0, 1]])
def test_whether_a_residual_is_refused_depends_on_the_schema_alone(parts, error, values):
    domain = Domain({"b": Boolean(), "c": Boolean(), "wide": Integers(1, 2**20)})
    source = Frame(dict.fromkeys(domain, values), domain=domain)
    with pytest.raises(error):
        source.evaluate(Residual(parts))
