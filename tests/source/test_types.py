"""Every storage type of every engine: the cell of a value is the one that the definition of a column says."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import zip_longest
from math import inf
from uuid import UUID

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadData, SourceFailed
from discreet.query import Marginal, count
from discreet.schema import Bins, Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source import Frame
from discreet.source import open as open_table
from discreet.source.engines.engine import Engine
from discreet.source.source import unseal
from support.engines import ENGINES, duckdb, folder, postgres, postgres_address, quoted, spark
from support.needs import needs_postgres, needs_spark

EVERY_ENGINE = [
    pytest.param(name, marks={"Postgres": [needs_postgres], "Spark": [needs_spark]}.get(name, [])) for name in ENGINES
]

SHORT = ["0", "0.1", "0.3", "0.5", "1", "5"]
LONG = [*SHORT, "0.3333333333333333333333333333", "0.3333333333333333333333333334"]
FLOATS = [*SHORT, str(0.1 + 0.2), "-0.0", "1e30", str(2.0**53 + 2), str(2.0**63), "NaN", "Infinity", "-Infinity"]
HUGE = 2**127 - 1


def whole(*numbers):
    return [str(number) for number in (*numbers, 0, 1, 5)]


INTEGERS = {8: whole(-128, 127), 16: whole(-(2**15)), 32: whole(-(2**31), 2**31 - 1)}
INTEGERS[64] = whole(-(2**63), 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1)
DAYS = ["1969-12-30", "1969-12-31", "2024-02-28", "2024-02-29", "2024-12-31", "2025-01-01", "2262-04-12", "1600-01-01"]
LATE = "2024-02-28 23:59:59.999999"
FOREVER = ["infinity", "-infinity"]
# The longest numbers of Postgres.
EXTREME = [f"-0.{'0' * 16382}1", f"1{'0' * 131071}", f"-1{'0' * 131071}"]

# What each engine stores: the texts are cast to the type.
DUCKDB = {
    "TINYINT": INTEGERS[8],
    "SMALLINT": INTEGERS[16],
    "INTEGER": INTEGERS[32],
    "BIGINT": INTEGERS[64],
    "UTINYINT": whole(255),
    "USMALLINT": whole(2**16 - 1),
    "UINTEGER": whole(2**32 - 1),
    "UBIGINT": whole(2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    "HUGEINT": whole(-HUGE, HUGE, 10**38, 10**37, 10**37 - 1, 2**64 - 1, 2**63),
    "DECIMAL(4,1)": [*SHORT, "999.9", "-999.9"],
    "DECIMAL(18,3)": SHORT,
    "DECIMAL(38,0)": whole(10**38 - 1, 1 - 10**38, 10**37, 2**64 - 1),
    "DECIMAL(38,30)": LONG,
    "FLOAT": FLOATS,
    "DOUBLE": FLOATS,
    "BOOLEAN": ["true", "false"],
    "DATE": [*DAYS, *FOREVER, "0044-03-15 (BC)", "12024-01-01"],
    "TIMESTAMP": [*DAYS, *FOREVER, LATE],
    "TIMESTAMP_S": DAYS,
    "TIMESTAMP_MS": DAYS,
    "TIMESTAMP_NS": [*DAYS[:6], LATE],
    "TIMESTAMPTZ": [f"{day} 00:00:00+00" for day in DAYS] + [f"{LATE}+00", *FOREVER],
    "VARCHAR": ["sad", "ok", "Ok", ""],
    "ENUM ('sad', 'ok')": ["sad", "ok"],
}
POSTGRES = {
    "smallint": INTEGERS[16],
    "integer": INTEGERS[32],
    "bigint": INTEGERS[64],
    "numeric": [*LONG, *whole(2**53 + 1, 2**64 - 1, 10**37), "NaN", "Infinity", "-Infinity", *EXTREME],
    "numeric(5,2)": [*SHORT, "NaN"],
    "numeric(38,0)": [*whole(10**38 - 1, 10**37, 2**64 - 1), "NaN"],
    "numeric(38,37)": ["0.3333333333333333333333333334", "NaN"],
    "numeric(200,50)": [*LONG, str(10**149), "NaN"],
    "real": [*SHORT, "NaN", "Infinity"],
    "double precision": FLOATS,
    "boolean": ["true", "false"],
    "date": [*DAYS, *FOREVER, "0044-03-15 BC", "12024-01-01"],
    "timestamp": [*DAYS, *FOREVER, LATE, "12024-01-01"],
    "timestamptz": [f"{day} 00:00:00+00" for day in DAYS] + [f"{LATE}+00", *FOREVER],
    "text": ["sad", "ok", "Ok", ""],
    "varchar(9)": ["sad", "ok", "Ok", ""],
    "char(3)": ["sad", "ok"],
    "mood": ["sad", "ok"],
}
SPARK = {
    "tinyint": INTEGERS[8],
    "smallint": INTEGERS[16],
    "int": INTEGERS[32],
    "bigint": INTEGERS[64],
    "decimal(5,2)": SHORT,
    "decimal(38,0)": whole(10**38 - 1, 10**37, 2**64 - 1),
    "decimal(38,30)": LONG,
    "float": FLOATS,
    "double": FLOATS,
    "boolean": ["true", "false"],
    "date": [*DAYS, "+12024-01-01"],
    "timestamp": [f"{day} 00:00:00+00:00" for day in DAYS] + [f"{LATE}+00:00"],
    "timestamp_ntz": [*DAYS, LATE],
    "string": ["sad", "ok", "Ok", ""],
}

# What an owner may declare for a number, a truth, a day and a text.
NUMBERS = {
    "integers": Integers(0, 10),
    "the largest integers": Integers(2**63 - 11, 2**63 - 1),
    "the smallest integers": Integers(-(2**63), 5 - 2**63, outside="other"),
    "bins between integers": Bins([0, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], upper=10**37, outside="other"),
    "bins between fractions": Bins([-5, 0, 0.1, Decimal("0.3"), 0.1 + 0.2, Decimal(1) / 3, Fraction(1, 3)], upper=0.5),
    "numbers as categories": Categories([5, Decimal("0.1"), 0.3, 0.1 + 0.2, Fraction(1, 3), 2**53 + 1, 2**64 - 1]),
    "floats of 32 bits": Categories([float(np.float32(0.1)), 0.5], missing="missing"),
    "booleans": Boolean(missing="missing"),
}
TRUTHS = dict.fromkeys(NUMBERS, Boolean(missing="missing"))
EARLY = Bins([date.min, date(2024, 2, 29)], upper=date.max)
PERIODS = Bins([date(1969, 12, 31), date(2024, 2, 29)], upper=date(2024, 12, 31), outside="other")
CHOSEN = Categories([date(2024, 2, 29), date(1600, 1, 1)])
DATES = dict(zip(NUMBERS, [EARLY, PERIODS, CHOSEN] * 3, strict=False))
TEXTS = dict.fromkeys(NUMBERS, Categories(["ok", "good"], missing="missing"))


def declared(storage):
    """What may be declared for a type, and how a text that was cast to it is read."""
    name = storage.lower().partition("(")[0].strip()
    if name == "boolean":
        return TRUTHS, {"true": True, "false": False}.get
    if name.startswith(("date", "timestamp")):
        return DATES, day_of
    if name in ("varchar", "enum", "text", "char", "mood", "string"):
        return TEXTS, str
    if name in ("float", "real") and storage != "double":
        return NUMBERS, lambda text: float(np.float32(text))
    return NUMBERS, float if name.startswith("double") else Decimal


def day_of(text):
    if text.startswith("-") or "BC" in text:
        return date.min
    return date.max if text.startswith(("infinity", "12", "+")) else date.fromisoformat(text[:10])


def table_of(types, cast):
    """A statement that lists the values of every type side by side, with the number of the row and a row of nulls."""
    names = ", ".join(["row", *(f"c{place}" for place in range(len(types)))])
    lines = zip_longest(*types.values(), [])
    rows = [
        ", ".join([str(row), *(cast(text, storage) for text, storage in zip(line, types, strict=False))])
        for row, line in enumerate(lines)
    ]
    rows.append(", ".join([str(len(rows)), *(cast(None, storage) for storage in types)]))
    return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in rows)}) AS listed({names})"


def sql_cast(text, storage):
    return f"CAST({'NULL' if text is None else repr(text)} AS {storage})"


def selected(statement):
    """A table of DuckDB with the rows of a statement."""
    duckdb().con.execute(f"CREATE OR REPLACE TABLE selected AS {statement}")
    return duckdb().table("selected")


def in_duckdb():
    duckdb().con.execute(f"CREATE OR REPLACE TABLE types AS {table_of(DUCKDB, sql_cast)}")
    return duckdb().table("types")


def in_postgres():
    with postgres().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS types; DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('sad', 'ok')")
        cursor.execute(f"CREATE TABLE types AS {table_of(POSTGRES, sql_cast)}")
    return f"{postgres_address()}&table=types"


def in_spark():
    return spark().sql(table_of(SPARK, sql_cast))


HOLDERS = [
    pytest.param(in_duckdb, DUCKDB, id="DuckDB"),
    pytest.param(in_postgres, POSTGRES, id="Postgres", marks=needs_postgres),
    pytest.param(in_spark, SPARK, id="Spark", marks=needs_spark),
]


def cells_of(source):
    """The cell of every row in every column, by the number of the row."""
    found = {}
    for codes, rows in source.cells(tuple(source.domain)):
        assert rows.tolist() == [1] * len(rows)
        found |= {row: dict(zip(source.domain, line, strict=True)) for row, *line in zip(codes[0], *codes, strict=True)}
    return found


@pytest.mark.parametrize(("hold", "types"), HOLDERS)
def test_the_cell_of_every_stored_value_is_the_one_that_its_column_defines(hold, types):
    rows = hold()
    longest = max(map(len, types.values()))
    for kind in NUMBERS:
        columns = {f"c{place}": declared(storage)[0][kind] for place, storage in enumerate(types)}
        table = open_table(rows, domain=Domain({"row": Integers(0, longest), **columns}))
        found = cells_of(table.source)
        assert len(found) == longest + 1
        for (name, column), (storage, texts) in zip(columns.items(), types.items(), strict=True):
            read = declared(storage)[1]
            for row in range(longest + 1):
                value = read(texts[row]) if row < len(texts) else None
                assert found[row][name] == column.code(value), (kind, storage, value)


def test_a_rounded_edge_would_be_seen():
    exact, rounded = Decimal("0.3"), float(np.float32(0.3))
    rows = selected("SELECT CAST('0.3' AS DOUBLE) AS x")
    below = Engine(rows, domain=Domain({"x": Bins([0, exact], upper=1)}), unit=Unit())
    above = Engine(rows, domain=Domain({"x": Bins([0, rounded], upper=1)}), unit=Unit())
    assert opened(below, Marginal(("x",))).tolist() == [0, 1, 0]
    assert opened(above, Marginal(("x",))).tolist() == [1, 0, 0]


def opened(source, question):
    exact = source.evaluate(question)
    return unseal(exact, exact.sensitivity)


@pytest.mark.parametrize("writer", ["Arrow", "DuckDB"])
@pytest.mark.parametrize("unit", [Unit(), Unit(key="who")], ids=["rows", "persons"])
def test_what_is_not_a_number_in_a_parquet_file_counts_whatever_is_beside_it(writer, unit):
    """DuckDB would skip a part of the file whose numbers are all dropped, though one of them is not a number."""
    not_a_number, path = float("nan"), folder() / "nan.parquet"
    rates = [2.0, not_a_number, 0.5, not_a_number, None, -1.0, not_a_number, not_a_number]
    for order in (rates, rates[::-1], sorted(rates, key=str)):
        table = pa.table({"who": range(8), "x": [1, 2] * 4, "rate": pa.array(order, pa.float64())})
        if writer == "Arrow":
            pq.write_table(table, path, row_group_size=2)
        else:
            duckdb().con.register("arrow", table)
            duckdb().con.execute(f"COPY arrow TO '{path}' (FORMAT parquet)")
        for rules in ({"outside": "drop"}, {"missing": "drop"}, {"outside": "drop", "missing": "drop"}):
            for rate in (Bins([0, 0.5], upper=1, **rules), Categories([0.5], **{"missing": "missing", **rules})):
                domain = Domain({"x": Integers(0, 2), "rate": rate})
                source, frame = open_table(path, domain=domain, unit=unit), Frame(table, domain=domain, unit=unit)
                for question in (count(domain), Marginal(("x",)), Marginal(("rate",)), Marginal(("x", "rate"))):
                    assert opened(source, question).tolist() == opened(frame, question).tolist()


@pytest.mark.parametrize("storage", ["UHUGEINT", "TIME", "INTERVAL", "BLOB", "UUID", "INTEGER[]", "STRUCT(a INTEGER)"])
def test_a_type_that_no_column_describes_is_refused_when_the_table_is_opened(storage):
    rows = selected(f"SELECT CAST(NULL AS {storage}) AS x")
    with pytest.raises(BadData, match='column "x" holds'):
        open_table(rows, domain=Domain({"x": Integers(0, 9)}))


@needs_postgres
def test_a_type_that_only_looks_like_a_number_is_refused_when_the_table_is_opened():
    with postgres().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS paid; CREATE TABLE paid (x money)")
    with pytest.raises(BadData, match="cannot compare 'x' with what the schema declares"):
        open_table(f"{postgres_address()}&table=paid", domain=Domain({"x": Integers(0, 9)}))


@pytest.mark.parametrize("storage", ["VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOACCENT"])
def test_texts_with_a_collation_are_compared_by_it_whatever_the_order_of_the_rows(storage):
    column = Categories(["a", "A", "ä", "Ä", "b"])
    answers = set()
    for texts in (["a", "A", "ä", "Ä"], ["Ä", "ä", "A", "a"], ["A", "Ä", "a", "ä"]):
        rows = ", ".join(f"('{text}')" for text in texts)
        duckdb().con.execute(f"CREATE OR REPLACE TABLE collated (x {storage}); INSERT INTO collated VALUES {rows}")
        source = Engine(duckdb().table("collated"), domain=Domain({"x": column}), unit=Unit())
        answers.add(tuple(opened(source, Marginal(("x",)))))
    assert len(answers) == 1


ODD_TEXTS = ["", " ", "a", "a ", " a", "A", "%", "_", "\\", "\\n", "\n", "\t", "\r\n", "'", "''", '"', "`", ";--", "$1"]
ODD_TEXTS += [
    "%s",
    "{x}",
    "${HOME}",
    "?",
    ":x",
    "NULL",
    "null",
    "nan",
    "1",
    "ünï",
    "u\u0308",
    "\U0001f600",
    "\u202e",
    "ß",
]


@pytest.mark.parametrize("engine", EVERY_ENGINE)
def test_texts_of_any_characters_are_told_apart(engine):
    column = Categories(ODD_TEXTS[::2], missing="missing")
    table = pa.table({"x": pa.array([*ODD_TEXTS, None] * 2, pa.string())})
    domain = Domain({"x": column})
    found = opened(ENGINES[engine](table, domain, Unit()), Marginal(("x",)))
    assert found.tolist() == opened(Frame(table, domain=domain), Marginal(("x",))).tolist()
    assert found[:-2].tolist() == [2] * column.inside


@pytest.mark.parametrize("engine", EVERY_ENGINE)
@pytest.mark.parametrize("rates", [[], [2.0], [None, -1.0], [0.5, 2.0, None, 0.7, float("nan")]])
def test_a_row_whose_float_is_dropped_counts_nowhere(engine, rates):
    table = pa.table({"x": pa.array([1] * len(rates), pa.int64()), "rate": pa.array(rates, pa.float64())})
    domain = Domain({"x": Integers(0, 2), "rate": Bins([0, 0.5], upper=1, outside="drop")})
    source, frame = ENGINES[engine](table, domain, Unit()), Frame(table, domain=domain)
    for question in (count(domain), Marginal(("x",)), Marginal(("x", "rate"))):
        assert opened(source, question).tolist() == opened(frame, question).tolist()


ODD_NAMES = ["select", "a b", 'quo"te', "ünï", "Age", "n", "c0", "c1", "person", "place", "t0", "a.b", "%", "`", "a'b"]


@pytest.mark.parametrize("engine", EVERY_ENGINE)
@pytest.mark.parametrize("key", [None, "person", 'quo"te'])
def test_columns_may_have_any_name(engine, key):
    table = pa.table({name: pa.array([place, 2, 3, 3, 3], pa.int64()) for place, name in enumerate(ODD_NAMES)})
    domain = Domain({name: Integers(0, 20) for name in ODD_NAMES if name != key})
    unit = Unit(key=key, contributions=2 if key else 1)
    source, frame = ENGINES[engine](table, domain, unit), Frame(table, domain=domain, unit=unit)
    for question in (Marginal(("n",)), Marginal(("c1", "a b")), Marginal(("t0", "`", "ünï")), count(domain)):
        assert opened(source, question).tolist() == opened(frame, question).tolist()


@pytest.mark.parametrize("engine", EVERY_ENGINE)
def test_names_that_differ_in_case_are_two_columns_or_the_table_is_refused(engine):
    table = pa.table({"Age": pa.array([1, 2], pa.int64()), "age": pa.array([3, 3], pa.int64())})
    domain = Domain({"Age": Integers(0, 9), "age": Integers(0, 9)})
    if engine == "Postgres":
        source = ENGINES[engine](table, domain, Unit())
        assert opened(source, Marginal(("age",)))[3] == 2
    else:
        with pytest.raises(BadData):
            ENGINES[engine](table, domain, Unit())


@pytest.mark.parametrize("engine", EVERY_ENGINE)
def test_a_thousand_categories_and_a_thousand_bins_are_counted_as_in_memory(engine):
    generator = np.random.default_rng(3)
    codes = generator.integers(0, 1100, 5_000)
    table = pa.table({"code": [f"zip {code}" for code in codes], "income": codes / 10})
    domain = Domain(
        {
            "code": Categories([f"zip {code}" for code in range(1000)]),
            "income": Bins([edge / 10 for edge in range(1000)], upper=100, outside="other"),
        }
    )
    source, frame = ENGINES[engine](table, domain, Unit()), Frame(table, domain=domain)
    for name in domain:
        assert opened(source, Marginal((name,))).tolist() == opened(frame, Marginal((name,))).tolist()


UUIDS = [UUID(int=number) for number in (0, 1, 1, 2**128 - 1, 2**128 - 1, 2**128 - 1)]
KEYS = {
    "UUID": UUIDS,
    "BLOB": [b"a", b"b", b"b", b"", b"", b""],
    "VARCHAR": ["a", "b", "b", "", "", ""],
    "HUGEINT": [0, 1, 1, HUGE, HUGE, HUGE],
    "DOUBLE": [0.5, inf, inf, 2.0, 2.0, 2.0],
    "DECIMAL(4,1)": [Decimal("0.5"), 1, 1, 2, 2, 2],
    "TIMESTAMP": ["2024-01-01 00:00", *["2024-01-01 00:01"] * 2, *["infinity"] * 3],
    "BOOLEAN": [True, False, False, None, None, None],
}


@pytest.mark.parametrize("storage", KEYS)
def test_a_key_of_any_type_tells_people_apart_and_a_missing_one_is_refused(storage):
    def shown(value):
        return f"'{value.decode() if isinstance(value, bytes) else value}'"

    keys = [key for key in KEYS[storage] if key is not None]
    rows = ", ".join(f"({shown(key)}::{storage}, 1)" for key in keys)
    kept = selected(f"SELECT * FROM (VALUES {rows}) AS listed(who, x)")
    domain, unit = Domain({"x": Integers(0, 9)}), Unit(key="who", contributions=2)
    people = len(set(keys))
    assert opened(Engine(kept, domain=domain, unit=unit), count(domain)).tolist() == [[0, 1, 3, 5][people]]
    gone = selected(f"SELECT * FROM (VALUES {rows}, (NULL, 2)) AS listed(who, x)")
    with pytest.raises(BadData, match='"who" says whose row it is, and is missing in some row'):
        Engine(gone, domain=domain, unit=unit)


@needs_postgres
def test_a_uuid_of_postgres_tells_people_apart():
    with postgres().cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS visits; CREATE TABLE visits (who uuid, x integer)")
        cursor.executemany("INSERT INTO visits VALUES (%s, 1)", [(each,) for each in UUIDS])
    domain = Domain({"x": Integers(0, 9)})
    address = f"{postgres_address()}&table=visits"
    for contributions, expected in [(1, 3), (2, 5), (3, 6)]:
        schema = Schema("visits", domain, Unit(key="who", contributions=contributions))
        assert opened(open_table(address, schema=schema).source, count(domain)).tolist() == [expected]


def test_a_float_that_is_not_a_number_is_no_key():
    rows = selected("SELECT CAST('nan' AS DOUBLE) AS who, 1 AS x")
    with pytest.raises(BadData, match="is missing in some row"):
        Engine(rows, domain=Domain({"x": Integers(0, 9)}), unit=Unit(key="who"))


def test_an_engine_that_fails_later_says_so_and_names_no_value():
    duckdb().con.execute(f"CREATE OR REPLACE TABLE gone AS SELECT 'SECRET-CANARY' AS {quoted('x')}")
    source = Engine(duckdb().table("gone"), domain=Domain({"x": Categories(["a"])}), unit=Unit())
    duckdb().con.execute("DROP TABLE gone")
    with pytest.raises(SourceFailed, match="nothing was released") as caught:
        source.evaluate(Marginal(("x",)))
    assert "CANARY" not in str(caught.value)


assert ibis.options.interactive is False, "an interactive Ibis prints rows"
