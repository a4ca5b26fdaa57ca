"""What a statement asks and what it shows, beside DuckDB's own answer to the same text on the same rows."""

import re
from datetime import date
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import BadQuery
from discreet.query import (
    Aggregate,
    Group,
    Linear,
    Marginal,
    Order,
    Ratio,
    Select,
    col,
    count,
    describe,
    everyone,
    mean,
    parse,
    parse_predicate,
    total,
)
from discreet.schema import Bins, Boolean, Categories, Domain, Integers
from discreet.source import Frame
from discreet.source.source import unseal
from support.strategies import examples

DAY = date(2024, 2, 29)
DOMAIN = Domain(
    {
        "age": Bins([17, 25, 65], upper=90),
        "hours": Integers(1, 4),
        "city": Categories(["a", "b", "c"], ordered=True, outside="drop", missing="missing"),
        "rate": Bins([0, Decimal("0.3"), Decimal("0.5")], upper=1),
        "since": Bins([date(2024, 1, 1), DAY, date(2024, 3, 1)], upper=date(2024, 12, 31)),
        "smoker": Boolean(missing="missing"),
    }
)

SQL_TYPES = "age INT, hours INT, city TEXT, rate DOUBLE, since DATE, smoker BOOLEAN"
VALUES = {
    "age": st.sampled_from([17, 24, 25, 64, 65, 90]),
    "hours": st.integers(1, 4),
    "city": st.sampled_from(["a", "b", "c"]),
    "rate": st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]),
    "since": st.sampled_from([date(2024, 1, 1), DAY, date(2024, 3, 1), date(2024, 12, 31)]),
    "smoker": st.booleans(),
}
tables = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=12)


def opened(source, question):
    exact = source.evaluate(question)
    return unseal(exact, exact.sensitivity)


DATABASE = duckdb.connect()


def duck(table, statement):
    """DuckDB's answer, as rows."""
    DATABASE.execute(f"CREATE OR REPLACE TABLE people ({SQL_TYPES})")
    if table:
        DATABASE.executemany(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", [[row[name] for name in DOMAIN] for row in table]
        )
    return DATABASE.execute(statement).fetchall()


# Comparisons that the cells can answer, as SQL: a column with values on whose both sides a cell may begin.
WHOLE = {"hours": st.integers(1, 4).map(str), "city": st.sampled_from(["'a'", "'b'", "'c'"])}
CUTS = {
    "age": st.sampled_from([17, 25, 65]).map(str),
    "hours": st.sampled_from(["-1", "0", "1", "2", "2.5", "4", "9"]),
    "city": WHOLE["city"],
    "rate": st.sampled_from(["0", "0.3", "0.50"]),
    "since": st.sampled_from(["DATE '2024-02-29'", "'2024-03-01'"]),
}
FLIPPED = {"<": ">", ">=": "<=", "=": "=", "<>": "<>", ">": "<", "<=": ">="}


@st.composite
def atoms(draw):
    """A condition on one column, in one of its many spellings."""
    negation = draw(st.sampled_from(["", "NOT "]))
    name = draw(st.sampled_from(list(VALUES)))
    whole = WHOLE.get(name)
    kinds = ["null"] + ["cut"] * (name in CUTS) + ["whole", "in", "between"] * (whole is not None)
    match draw(st.sampled_from(["truth"] if name == "smoker" else kinds)):
        case "truth":
            endings = [
                "",
                " = TRUE",
                " <> FALSE",
                " IS TRUE",
                " IS NOT TRUE",
                " IS FALSE",
                " IS NOT FALSE",
                " IN (TRUE)",
            ]
            return "smoker" + draw(st.sampled_from([*endings, " IS NULL", " IS NOT NULL"]))
        case "null":
            return f"{name} IS {negation}NULL"
        case "cut":
            return _comparison(draw, name, ["<", ">="], CUTS[name])
        case "whole":
            return _comparison(draw, name, ["=", "<>", "<=", ">"], whole)
        case "in":
            return f"{name} {negation}IN ({', '.join(draw(st.lists(whole, min_size=1, max_size=3)))})"
        case "between":
            return f"{name} {negation}BETWEEN {draw(whole)} AND {draw(whole)}"


def _comparison(draw, name, operators, values):
    operator, value = draw(st.sampled_from(operators)), draw(values)
    return draw(st.sampled_from([f"{name} {operator} {value}", f"{value} {FLIPPED[operator]} {name}"]))


conditions = st.recursive(
    atoms(),
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT {}".format, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)
slow_is_fine = settings(max_examples=examples(150, 300), suppress_health_check=list(HealthCheck))


@slow_is_fine
@given(tables, conditions)
def test_a_condition_counts_the_rows_that_duckdb_counts(table, condition):
    """SQL's logic of three values: NULLs are everywhere in these tables."""
    (expected,) = duck(table, f"SELECT COUNT(*) FROM people WHERE {condition}")[0]
    frame = Frame(table, domain=DOMAIN)
    assert opened(frame, count(DOMAIN, parse_predicate(condition, DOMAIN))).tolist() == [expected]


@pytest.mark.parametrize("condition", ["NOT hours >= 3", "NOT city IN ('a')", "NOT (smoker AND hours = 1)"])
def test_logic_of_two_values_would_count_other_rows(condition):
    """The power of the law: with the plain complement in place of F, missing values would be counted."""
    table = [dict.fromkeys(VALUES)]
    complement = ~parse_predicate(condition.removeprefix("NOT "), DOMAIN)
    assert duck(table, f"SELECT COUNT(*) FROM people WHERE {condition}") == [(0,)]
    assert opened(Frame(table, domain=DOMAIN), count(DOMAIN, complement)).tolist() == [1]


def answer(table, select):
    """The table of a statement whose numbers are released without noise."""
    frame = Frame(table, domain=DOMAIN)
    numbers = []
    for question in select.questions(DOMAIN):
        match question:
            case Ratio():
                numbers.append([total / many if many else None for total, many in [opened(frame, question)]])
            case (sums, counts):
                pairs = zip(opened(frame, sums), opened(frame, counts), strict=True)
                numbers.append([total / many if many else None for total, many in pairs])
            case _:
                numbers.append(opened(frame, question))
    return select.tabulate(DOMAIN, numbers)


AGGREGATES = "COUNT(*) AS n, COUNT(hours) AS present, COALESCE(SUM(hours), 0) AS s, AVG(hours) AS mean"


@slow_is_fine
@given(
    tables,
    conditions,
    st.lists(st.sampled_from(["city", "smoker", "hours"]), unique=True, max_size=2),
    st.sampled_from(["n > 0", "n > 0 AND NOT mean > 2", "n BETWEEN 1 AND 2 OR present >= 3", "n > 0 AND s <> 4"]),
    st.sampled_from(["n DESC", "mean", "s DESC, present", "mean DESC, n"]),
    st.integers(0, 5),
)
def test_a_table_is_the_one_that_duckdb_shows(table, condition, groups, having, order, limit):
    names = ", ".join(groups)
    head = f"SELECT {names + ',' if groups else ''} {AGGREGATES} FROM people WHERE {condition}"
    grouped = f"GROUP BY {names}" if groups else ""
    order = ", ".join([order, *groups])
    tail = f"{grouped} HAVING {having} ORDER BY {order} LIMIT {limit}"
    ours = answer(table, parse(f"{head} {tail}".replace("COALESCE(SUM(hours), 0)", "SUM(hours)"), DOMAIN))
    # Labels are texts where a column has them; DuckDB's NULL is our "missing".
    expected = [
        tuple(
            "missing" if value is None and place < len(groups) and groups[place] == "city" else value
            for place, value in enumerate(row)
        )
        for row in duck(table, f"{head} {tail}")
    ]
    assert list(zip(*ours.values(), strict=True)) == expected


def test_every_declared_cell_is_in_the_table_in_the_order_of_the_domain():
    domain = Domain({"sex": Categories(["Female", "Male"]), "smoker": Boolean(missing="missing")})
    select = parse("SELECT smoker, sex, COUNT(*) AS n FROM people GROUP BY sex, smoker", domain)
    table = select.tabulate(domain, [np.arange(9)])
    assert list(table) == ["smoker", "sex", "n"]
    assert table["sex"] == ["Female"] * 3 + ["Male"] * 3 + ["other"] * 3
    assert table["smoker"] == [False, True, None] * 3
    assert table["n"] == list(range(9))


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Integers(1, 3), [1, 2, 3, None]),
        (Integers(1, 2, missing="drop"), [1, 2]),
        (Integers(1, 2, outside="other"), ["1", "2", "other", "missing"]),
        (Boolean(), [False, True]),
        (Categories([10, 20], outside="drop"), [10, 20]),
        (Categories([10, 20]), ["10", "20", "other"]),
        (Categories(["a", 1], outside="drop"), ["'a'", "1"]),
        (Categories([DAY], outside="drop"), ["2024-02-29"]),
        (Bins([17, 25], upper=90), ["17 to 24", "25 to 90", "missing"]),
    ],
)
def test_a_table_shows_numbers_and_truths_as_they_are_and_labels_otherwise(column, shown):
    domain = Domain({"x": column})
    table = parse("SELECT x, COUNT(*) FROM t GROUP BY x", domain).tabulate(domain, [np.zeros(column.size)])
    assert table["x"] == shown


def test_frames_of_a_table_have_good_types():
    select = parse("SELECT hours, smoker, COUNT(*) AS n, AVG(hours) AS mean FROM people GROUP BY 1, 2", DOMAIN)
    frame = pd.DataFrame(select.tabulate(DOMAIN, [np.arange(15), np.arange(15) / 2])).convert_dtypes()
    assert [str(dtype) for dtype in frame.dtypes] == ["Int64", "boolean", "Int64", "Float64"]


def test_having_order_and_limit_look_at_released_numbers():
    def shown(tail, released):
        select = parse(f"SELECT city, COUNT(*) AS n FROM people GROUP BY city {tail}", DOMAIN)
        return select.tabulate(DOMAIN, [np.array(released)])["city"]

    noisy = [3.5, -1.0, 2.0, 7.25]
    assert shown("", noisy) == ["a", "b", "c", "missing"]
    assert shown("HAVING n > 2", noisy) == ["a", "missing"]
    assert shown("HAVING NOT n > 2", noisy) == ["b", "c"]
    assert shown("HAVING n = 7.25 OR city = 'b'", noisy) == ["b", "missing"]
    assert shown("HAVING city IS NOT NULL AND n IN (2, 3.5)", noisy) == ["a", "c"]
    assert shown("HAVING city = 'missing'", noisy) == ["missing"]
    assert shown("ORDER BY n", noisy) == ["b", "c", "a", "missing"]
    assert shown("ORDER BY city DESC", noisy) == ["c", "b", "a", "missing"], "what has no value comes last"
    assert shown("ORDER BY n DESC LIMIT 2", noisy) == ["missing", "a"]
    assert shown("ORDER BY n, city DESC", [1, 1, 0, 1]) == ["c", "b", "a", "missing"]
    assert shown("LIMIT 0", noisy) == []


def test_a_number_that_is_none_satisfies_nothing_and_comes_last():
    def shown(tail):
        select = parse(f"SELECT smoker, AVG(hours) AS mean FROM people GROUP BY smoker {tail}", DOMAIN)
        return select.tabulate(DOMAIN, [[2.5, None, 3.0]])["smoker"]

    assert shown("ORDER BY mean") == [False, None, True]
    assert shown("ORDER BY mean DESC") == [None, False, True]
    assert shown("HAVING mean > 2") == shown("HAVING NOT mean <= 2") == [False, None]
    assert shown("HAVING mean <> 2.5") == [None]
    assert shown("HAVING mean NOT IN (3)") == [False]


def test_errors_stand_beside_their_numbers_and_are_sorted_with_them():
    select = parse(
        "SELECT COUNT(*) AS n, smoker, SUM(hours) AS s FROM people GROUP BY smoker ORDER BY n LIMIT 2", DOMAIN
    )
    table = select.tabulate(DOMAIN, [[3, 1, 2], [30, 10, 20]], [[0.3, 0.1, 0.2], [5, 6, 7]])
    assert table == {"n": [1, 2], "n_error": [0.1, 0.2], "smoker": [True, None], "s": [10, 20], "s_error": [6, 7]}
    assert list(table) == ["n", "n_error", "smoker", "s", "s_error"]


def test_a_statement_without_groups_is_a_table_of_one_row():
    select = parse("SELECT COUNT(*) AS n, AVG(hours) AS mean FROM people HAVING n > 5", DOMAIN)
    assert select.tabulate(DOMAIN, [[7], [2.5]]) == {"n": [7], "mean": [2.5]}
    assert select.tabulate(DOMAIN, [[3], [2.5]]) == {"n": [], "mean": []}


def test_the_wrong_number_of_released_numbers_is_refused():
    select = parse("SELECT COUNT(*), AVG(hours) FROM people GROUP BY smoker", DOMAIN)
    for released in ([np.zeros(3)], [np.zeros(3), np.zeros(6)], [np.zeros(2), np.zeros(3)]):
        with pytest.raises(BadQuery, match="2 aggregates and 3 cells"):
            select.tabulate(DOMAIN, released)


def test_a_predicate_on_no_column_of_the_output_is_refused():
    select = Select("people", (Aggregate("count", None, "n"),), having=col("hours") > 3)
    with pytest.raises(BadQuery, match="no column of the output"):
        select.tabulate(DOMAIN, [[1]])


def test_each_aggregate_is_one_question():
    where = col("age") >= 65
    without = parse("SELECT COUNT(*), SUM(hours), AVG(hours), COUNT(city) FROM people WHERE age >= 65", DOMAIN)
    counted, summed, averaged, present = without.questions(DOMAIN)
    assert (counted, summed, averaged) == (
        count(DOMAIN, where),
        total(DOMAIN, "hours", where),
        mean(DOMAIN, "hours", where),
    )
    assert isinstance(averaged, Ratio)
    assert present == count(DOMAIN, where & col("city").isin(["a", "b", "c"]))
    grouped = parse("SELECT COUNT(*), AVG(hours) FROM people WHERE age >= 65 GROUP BY city, smoker", DOMAIN)
    assert grouped.questions(DOMAIN) == (
        Marginal(("city", "smoker"), count(DOMAIN, where)),
        (Marginal(("city", "smoker"), averaged.numerator), Marginal(("city", "smoker"), averaged.denominator)),
    )
    assert parse("SELECT COUNT(*) FROM people GROUP BY city", DOMAIN).questions(DOMAIN) == (Marginal(("city",)),)


def test_a_plan_says_in_which_form_a_question_is_computed():
    def plan(statement, domain=DOMAIN):
        return describe(parse(statement, domain).questions(domain)[0], domain)

    assert plan("SELECT COUNT(*) FROM people") == "1 product, the same for every row"
    assert plan("SELECT COUNT(*) FROM people WHERE age >= 65 AND hours > 2") == "1 product on age, hours"
    assert plan("SELECT COUNT(*) FROM people WHERE age >= 65 OR hours > 2") == "2 disjoint products on age, hours"
    assert plan("SELECT COUNT(*) FROM people GROUP BY age, city") == "the 16 cells of age, city"
    assert plan("SELECT SUM(hours) FROM people GROUP BY age") == "the 4 cells of age, each with 1 product on hours"
    assert plan("SELECT AVG(hours) FROM people") == "1 product on hours; divided by 1 product on hours"
    assert "; divided by the 4 cells of age" in plan("SELECT AVG(hours) FROM people GROUP BY age")
    bits = Domain({f"b{place}": Boolean() for place in range(20)})
    pairs = " OR ".join(f"b{place} AND b{place + 1}" for place in range(0, 20, 2))
    dense = plan(f"SELECT COUNT(*) FROM people WHERE {pairs}", bits)
    assert dense.startswith("one dense table of 1,048,576 cells on b0, b1")
    assert dense.endswith("because more than 256 disjoint products would be needed")
    with pytest.raises(BadQuery, match="not a question"):
        describe("SELECT", DOMAIN)


# Back and forth: statements built as trees, written as SQL, and read again.
def written(select):
    groups = ", ".join(f'"{name}"' for name in select.group)
    return " ".join(
        [
            f"SELECT {', '.join(map(_item, select.items))} FROM {select.table}",
            f"WHERE {_predicate(select.where)}" if select.where != everyone else "",
            f"GROUP BY {groups}" if groups else "",
            f"HAVING {_predicate(select.having)}" if select.having != everyone else "",
            "ORDER BY " + ", ".join(f'"{o.name}" {"DESC" * o.descending}' for o in select.order)
            if select.order
            else "",
            f"LIMIT {select.limit}" if select.limit is not None else "",
        ]
    )


def _item(item):
    if isinstance(item, Group):
        return f'{item.column} AS "{item.name}"'
    return f'{item.kind.upper()}({item.column or "*"}) AS "{item.name}"'


def _predicate(predicate):
    """SQL of a predicate without ~, whose repr is near enough to SQL."""
    text = repr(predicate).replace("==", "=").replace("!=", "<>").replace("&", "AND").replace("|", "OR")
    text = text.replace(".isin([", " IN (").replace("])", ")").replace(".is_missing()", " IS NULL")
    return re.sub(r"col\('(\w+)'\)", r'"\1"', text)


trees = st.builds(
    lambda keys, aggregates, where, having, order, limit: Select(
        "people",
        (*(Group(key, f"the {key}") for key in keys), *aggregates),
        where,
        tuple(keys),
        having,
        tuple(Order(each.name, descending) for each, descending in zip(aggregates, order, strict=False)),
        limit,
    ),
    st.lists(st.sampled_from(["city", "smoker", "age"]), unique=True),
    st.lists(
        st.sampled_from(
            [
                Aggregate("avg", "hours", "mean"),
                Aggregate("sum", "hours", "sum_hours"),
                Aggregate("count", "city", "Cities"),
            ]
        ),
        unique=True,
    ).map(lambda others: [Aggregate("count", None, "n"), *others]),
    st.sampled_from([everyone, col("hours") >= 2, (col("city") == "a") & ((col("age") < 65) | (col("hours") != 3))]),
    st.sampled_from([everyone, col("n") > 3, (col("n") >= 2) | (col("n") < -4)]),
    st.lists(st.booleans(), max_size=2),
    st.none() | st.integers(0, 10),
)


@given(trees)
def test_a_tree_written_as_sql_is_read_as_the_same_tree(select):
    assert parse(written(select), DOMAIN) == select


def test_questions_are_linear_whatever_the_condition():
    select = parse("SELECT COUNT(*) FROM people WHERE NOT (age >= 65 AND city IN ('a') OR smoker)", DOMAIN)
    assert all(isinstance(question, Linear) for question in select.questions(DOMAIN))
