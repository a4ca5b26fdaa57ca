"""The truth of the demonstration is what DuckDB says to the same SQL."""

from math import prod

import duckdb
import pytest

from discreet.data import ADULT, load_adult
from discreet.lab.demo.questions import KINDS, Condition, Question, questions
from discreet.query.sql import parse


@pytest.fixture(scope="module")
def rows():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE adult AS FROM '{ADULT.with_suffix('.parquet')}'")
        yield lambda sql: connection.execute(sql).fetchall()


def of_each_kind(number):
    found = {kind: [] for kind in KINDS}
    for question in dict.fromkeys(questions(2_000)):
        found[question.kind].append(question)
    return [question for each in found.values() for question in each[:number]]


@pytest.mark.parametrize("question", of_each_kind(25), ids=lambda question: question.sql)
def test_it_is_what_duckdb_says(question, truth, rows):
    said = {tuple("missing" if each is None else each for each in row[:-1]): row[-1] for row in rows(question.sql)}
    if "capital_gain" in question.groups:
        # The only column that is kept in bins.
        assert sum(truth.of(question).values()) == sum(said.values())
    else:
        assert truth.of(question) == said


def test_every_row_of_a_table_finds_its_truth(truth):
    """What an answer shows in a row is what the truth is kept by: nothing is looked up in vain."""
    adult = load_adult()
    for question in dict.fromkeys(question for question in questions(10_000) if question.groups):
        select = parse(question.sql, adult.domain, table="adult")
        cells = prod(adult.domain[name].size for name in question.groups)
        columns = select.tabulate(adult.domain, [[0] * cells])
        assert set(truth.of(question)) <= set(zip(*(columns[name] for name in question.groups), strict=True))


def test_nobody_is_nobody(truth):
    nobody = (Condition("age", "=", (17,)), Condition("education", "=", ("Doctorate",)))
    assert truth.of(Question(nobody, (), 1)) == {(): 0}
    assert truth.of(Question(nobody, ("sex",), 1)) == {}


def test_the_rows_are_counted(truth):
    assert truth.rows == 48_842
