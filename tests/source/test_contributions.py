"""Who has one row or ten thousand moves every answer by at most what the schema declares, on every source.

Record and replay: the same questions on two neighbouring tables make the same calls and the same statements, declare
the same sensitivities, and give vectors at most so far apart.
"""

import re
from datetime import datetime
from functools import cache
from math import inf, nan
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from ibis.backends.sql.compilers.base import SQLGlotCompiler

from discreet.errors import BadData, BadSchema
from discreet.query import Marginal, col, count, fraction, point_histogram, prefixes, ranges, total
from discreet.schema import Domain, Integers, Schema, Unit
from discreet.source import Frame, Source, frame, sensitivity_of, source
from discreet.source import open as open_table
from discreet.source.engines.engine import Engine
from discreet.source.source import unseal
from source.tables import DOMAIN, arrow
from support.engines import ENGINES, postgres, postgres_address
from support.needs import needs_postgres, needs_spark

MARKS = {"Postgres": [needs_postgres], "Spark": [needs_spark]}
SOURCES = {"frame": lambda table, domain, unit: Frame(table, domain=domain, unit=unit), **ENGINES}


def each_source(*slow):
    """Every source; those of which the test takes more than 2 CPU seconds are marked."""
    return [pytest.param(name, marks=MARKS.get(name, [pytest.mark.slow] * (name in slow))) for name in SOURCES]


# How many of the 200 pairs each source has time for, and how many in `make test-long`.
PAIRS = 200
SHORT = {"frame": PAIRS, "DuckDB": 8, "Parquet": 5, "CSV": 5, "Postgres": 4, "Spark": 1}
LONG = {"DuckDB": PAIRS, "Parquet": PAIRS, "CSV": PAIRS, "Postgres": 50, "Spark": 4}

AGE, SMOKES, TOWN = col("age") >= 25, col("smoker") == True, col("city") == "a"  # noqa: E712
HOURS = total(DOMAIN, "hours")
QUESTIONS = [
    count(DOMAIN),
    count(DOMAIN, AGE & ~SMOKES),
    HOURS,
    total(DOMAIN, "hours", TOWN),
    3 * count(DOMAIN, SMOKES) - 2 * count(DOMAIN, AGE),
    fraction(DOMAIN, AGE),
    Marginal(()),
    Marginal(("city", "age")),
    Marginal(("rate", "smoker"), HOURS),
    Marginal(("since",), 2 * HOURS - 5 * count(DOMAIN, SMOKES)),
    [count(DOMAIN, TOWN), HOURS, count(DOMAIN), HOURS - 9 * count(DOMAIN, AGE)],
    prefixes(DOMAIN, "hours"),
    ranges(DOMAIN, "hours"),
    point_histogram(DOMAIN.project(["city", "smoker"])),
    Marginal(tuple(DOMAIN)),
]

VALUES = {
    "age": [None, 3, 17, 24, 25, 64, 65, 90, 91, 2**63 - 1],
    "city": [None, "", "Zürich", "a", "A", "\U0001f600"],
    "hours": [None, 0, 1, 2, 3, 4, 5],
    "rate": [None, 0.1, 0.3, 0.5, 1.0, nan, inf, -inf],
    "smoker": [None, True, False],
    "since": [None, datetime(1969, 12, 31, 23, 59), datetime(2024, 2, 28), datetime(2024, 2, 29), datetime(2031, 1, 1)],
}
TYPES = arrow([]).schema
ME = 1_000


class Pair(NamedTuple):
    """Two neighbouring tables; what the person who differs has in the first; and the unit for which they are so."""

    first: pa.Table
    second: pa.Table
    mine: pa.Table
    unit: Unit


def rows_of(generator, people):
    """Random rows, one for each entry of `people`. Some people have only few different rows, some all kinds."""
    choice = {
        name: generator.integers(0, generator.integers(1, len(own) + 1), len(people)) for name, own in VALUES.items()
    }
    columns = {name: [VALUES[name][place] for place in places] for name, places in choice.items()}
    return pa.table({**columns, "who": np.asarray(people, dtype=np.int64)}, schema=TYPES)


@cache
def pair(seed):
    """A random pair: rows or persons, both relations, 1 to 50 contributions, one to ten thousand rows of one person."""
    generator = np.random.default_rng(seed)
    keyed, replacing = seed % 5 != 0, seed % 2 == 1
    unit = Unit(
        key="who" if keyed else None,
        contributions=int(50 ** generator.random()) if keyed else 1,
        neighbors="replace_one" if replacing else "add_remove",
    )
    people = np.repeat(np.arange(20), generator.integers(0, 8, 20))
    others, order = rows_of(generator, people), generator.permutation(len(people))
    others = others.take(order)
    # Most have a few rows, some a thousand; every tenth has ten thousand.
    many = (10_000 if seed % 10 == 3 else int(1_000 ** generator.random())) if keyed else 1
    mine = rows_of(generator, np.full(many, ME))
    first = pa.concat_tables([others, mine]).take(generator.permutation(len(others) + many))
    if not replacing:
        return Pair(first, others, mine, unit)
    another = rows_of(generator, np.full(int(100 ** generator.random()) if keyed else 1, ME + 1))
    return Pair(first, pa.concat_tables([another, others]), mine, unit)


class Recorder:
    """What is asked of a source: which cells, and by which statements."""

    def __init__(self, monkeypatch):
        self.calls = []
        for kind in (Frame, Engine):
            monkeypatch.setattr(kind, "cells", self._recording(kind.cells, lambda _, columns: columns))
        monkeypatch.setattr(SQLGlotCompiler, "to_sqlglot", self._statements(SQLGlotCompiler.to_sqlglot))

    def _recording(self, method, shown):
        def recorded(*arguments):
            self.calls.append(shown(*arguments))
            return method(*arguments)

        return recorded

    def _statements(self, method):
        def recorded(*arguments, **options):
            statement = method(*arguments, **options)
            # Engines give passing names to tables, which are numbers or random.
            self.calls.append(re.sub(r"(laws|discreet|ibis)_\w+", "TABLE", statement.sql()))
            return statement

        return recorded

    def taken(self):
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def answers(make, table, unit, *, once=False):
    """The true integers of every question, and the declared sensitivities.

    `once`: ask for the widest marginal first, from which all else follows, so that the rows are read once.
    """
    held = make(table, DOMAIN, unit)
    if once:
        held.evaluate(QUESTIONS[-1])
    exacts = [held.evaluate(question) for question in QUESTIONS]
    return [unseal(exact, exact.sensitivity).astype(object) for exact in exacts], [each.sensitivity for each in exacts]


def violations(make, pair, recorder, *, once=False):
    """What is wrong with a source on a pair of neighbours; an empty list if nothing is."""
    wrong = []
    first, declared = answers(make, pair.first, pair.unit, once=once)
    calls = recorder.taken()
    second, again = answers(make, pair.second, pair.unit, once=once)
    if calls != recorder.taken():
        wrong.append("the calls depend on the rows")
    if declared != again or declared != [sensitivity_of(question, DOMAIN, pair.unit) for question in QUESTIONS]:
        wrong.append("the sensitivity depends on the rows")
    for question, one, other, sensitivity in zip(QUESTIONS, first, second, declared, strict=True):
        if one.shape != other.shape:
            wrong.append(f"{question}: the shape depends on the rows")
            continue
        change = one - other
        moved = (abs(change).sum(), (change**2).sum(), abs(change).max())
        allowed = (sensitivity.l1, sensitivity.l2_squared, sensitivity.linf)
        if any(far > most for far, most in zip(moved, allowed, strict=True)):
            wrong.append(f"{question}: moved by {moved}, declared {allowed}")
        if sensitivity.monotone and (change > 0).any() and (change < 0).any():
            wrong.append(f"{question}: not monotone")
    return wrong


def check(name, seeds, recorder, monkeypatch):
    for turn, seed in enumerate(seeds):
        # At times cells are weighed while they stream by, instead of counted first; and at times all follows from one.
        monkeypatch.setattr(source, "_COUNTED_CELLS", 8 if turn % 4 == 3 else 2**20)
        assert violations(SOURCES[name], pair(seed), recorder, once=turn % 4 == 0) == [], seed


@pytest.mark.parametrize("name", each_source("frame", "DuckDB"))
def test_on_neighbours_the_calls_are_the_same_and_the_answers_as_near_as_declared(name, recorder, monkeypatch):
    check(name, [(7 * turn + 3) % PAIRS for turn in range(SHORT[name])], recorder, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", each_source()[1:])
def test_on_many_neighbours_the_answers_are_as_near_as_declared(name, recorder, monkeypatch):
    check(name, range(0, PAIRS, PAIRS // LONG[name]), recorder, monkeypatch)


@pytest.mark.parametrize("name", each_source("DuckDB"))
def test_the_answer_is_the_sum_over_the_people_and_no_order_of_the_rows_changes_it(name):
    """So the rows that are kept of one person do not depend on anybody else."""
    for seed in (23, 2, 6, 13)[: {"frame": 4, "DuckDB": 4, "Spark": 1}.get(name, 2)]:
        first, _, mine, unit = pair(seed)
        without = first.filter(pa.compute.not_equal(first["who"], ME))
        shuffled = first.take(np.random.default_rng(seed).permutation(len(first)))
        found = [answers(SOURCES[name], table, unit, once=True)[0] for table in (first, without, mine, shuffled)]
        for whole, rest, own, again in zip(*found, strict=True):
            assert (whole == rest + own).all()
            assert (whole == again).all()


def test_pairs_are_of_every_kind():
    pairs = [pair(seed) for seed in range(PAIRS)]
    relations = {(each.unit.key, each.unit.neighbors) for each in pairs}
    assert relations == {(key, relation) for key in (None, "who") for relation in ("add_remove", "replace_one")}
    assert {1, 10_000} <= {len(each.mine) for each in pairs}
    assert len({each.unit.contributions for each in pairs}) > 20


# Power: rules that look right and are not, and what notices them.


WRONG_RULES = {
    "all rows": lambda people, codes, most: np.arange(len(people)),
    "one row more": lambda people, codes, most: frame_rule(people, codes, most + 1),
    "the first rows of the table": lambda people, codes, most: np.arange(min(len(people), 60)),
    "the first rows by their cells": lambda people, codes, most: np.lexsort(np.stack(codes[::-1]))[:60],
    "a sample of the table": lambda people, codes, most: np.random.default_rng(len(people)).permutation(len(people))[
        : len(people) // 2
    ],
    "those nearest to the mean of all": lambda people, codes, most: frame_rule(
        people, [abs(code - int(code.mean())) for code in codes], most
    ),
}
frame_rule = frame._first_rows


@pytest.mark.parametrize("rule", WRONG_RULES)
def test_a_wrong_rule_is_noticed(rule, recorder, monkeypatch):
    monkeypatch.setattr(frame, "_first_rows", WRONG_RULES[rule])
    seeds = [seed for seed in range(PAIRS) if pair(seed).unit.key][::3]
    assert any(violations(SOURCES["frame"], pair(seed), recorder) for seed in seeds)


def test_keeping_the_first_rows_in_the_order_of_the_table_is_noticed(monkeypatch):
    monkeypatch.setattr(frame, "_first_rows", lambda people, codes, most: frame_rule(people, [], most))
    with pytest.raises(AssertionError):
        test_the_answer_is_the_sum_over_the_people_and_no_order_of_the_rows_changes_it("frame")


@pytest.mark.parametrize("rule", ["all rows", "the first rows of the table"])
def test_a_wrong_rule_in_an_engine_is_noticed(rule, recorder, monkeypatch):
    def wrong(engine, coded):
        return coded if rule == "all rows" else coded.limit(60)

    monkeypatch.setattr(Engine, "_first_rows", wrong)
    seeds = [seed for seed in range(PAIRS) if pair(seed).unit.key and len(pair(seed).mine) > 60][:4]
    assert any(violations(SOURCES["DuckDB"], pair(seed), recorder) for seed in seeds)


@pytest.mark.parametrize("forgotten", ["contributions", "relation"])
def test_a_sensitivity_that_forgets_what_the_unit_says_is_noticed(forgotten, recorder, monkeypatch):
    def forgetting(question, domain, unit):
        unit = Unit(neighbors=unit.neighbors) if forgotten == "contributions" else Unit(unit.key, unit.contributions)
        return sensitivity_of(question, domain, unit)

    monkeypatch.setattr(source, "sensitivity_of", forgetting)
    wrong = [line for seed in range(1, 40, 2) for line in violations(SOURCES["frame"], pair(seed), recorder)]
    assert any("moved by" in line for line in wrong)


def test_a_source_that_looks_at_the_rows_before_it_decides_is_noticed(recorder, monkeypatch):
    counted = Source._counts

    def curious(self, columns):
        if columns and counted(self, ()).sum() % 2:
            counted(self, tuple(DOMAIN))
        return counted(self, columns)

    monkeypatch.setattr(Source, "_counts", curious)
    wrong = [violations(SOURCES["frame"], pair(seed), recorder) for seed in (4, 8, 12, 16)]
    assert ["the calls depend on the rows"] in wrong


# Registration: everybody's rows can be told from everybody else's, or the table is refused.

SMALL = Domain({"x": Integers(0, 9)})
BY_WHO = Unit(key="who", contributions=2)


@pytest.mark.parametrize("name", each_source())
@pytest.mark.parametrize("kind", ["text", "integer", "float"])
def test_a_missing_key_is_refused(name, kind):
    keys = {"text": (["a", None], pa.string()), "integer": ([1, None], pa.int64()), "float": ([1.5, nan], pa.float64())}
    values, dtype = keys[kind]
    if (name, kind) == ("CSV", "float"):
        # In a text file "nan" is a name like any other.
        values, dtype = ["1.5", None], pa.string()
    table = pa.table({"who": pa.array(values, dtype), "x": pa.array([1, 2], pa.int64())})
    with pytest.raises(BadData, match='column "who" says whose row it is, and is missing') as caught:
        SOURCES[name](table, SMALL, BY_WHO)
    assert "1.5" not in str(caught.value)
    assert SOURCES[name](table.slice(0, 1), SMALL, BY_WHO).evaluate(count(SMALL)).size == 1


@pytest.mark.parametrize("name", ["frame", "DuckDB", "Parquet", pytest.param("Spark", marks=needs_spark)])
def test_a_key_of_a_strange_type_is_refused(name):
    table = pa.table({"who": pa.array([[1], [2, 3]], pa.list_(pa.int64())), "x": pa.array([1, 2], pa.int64())})
    with pytest.raises(BadData, match=r'column "who" says whose row it is.* a text, a number, a date or a UUID'):
        SOURCES[name](table, SMALL, BY_WHO)


@needs_postgres
def test_a_key_of_a_strange_type_is_refused_in_postgres():
    with postgres().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS strange; CREATE TABLE strange (who integer[], x integer)")
    with pytest.raises(BadData, match='column "who" says whose row it is, and holds array'):
        open_table(f"{postgres_address()}&table=strange", schema=Schema("strange", SMALL, BY_WHO))


@pytest.mark.parametrize("name", each_source())
def test_a_key_that_is_not_there_is_refused(name):
    table = pa.table({"whom": pa.array([1, 2], pa.int64()), "x": pa.array([1, 2], pa.int64())})
    with pytest.raises(BadData, match=r'column "who" of the schema is not there; did you mean "whom"\?'):
        SOURCES[name](table, SMALL, BY_WHO)


def test_a_table_says_with_whom_it_shares_people():
    schema = Schema("people", SMALL, BY_WHO, shares_people_with=["visits"])
    table = open_table({"who": [1, 1], "x": [1, 2]}, schema=schema)
    assert table.schema.shares_people_with == ("visits",)
    assert table.unit == BY_WHO
    with pytest.raises(BadSchema, match="itself"):
        Schema("people", SMALL, BY_WHO, shares_people_with=["people"])
