from datetime import date
from decimal import Decimal

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import BadData, BadSchema
from discreet.schema import Unit
from discreet.schema.yaml.partial_column import PartialColumn
from discreet.source.inspect import MOST_VALUES, inspect_file

SOME = {"age": [31, 64], "sex": ["F", "M"], "rate": [0.5, 2.0], "since": [date(2020, 1, 1)] * 2, "ok": [True, False]}
OTHERS = {
    "age": [1, 99],
    "sex": ["X", None],
    "rate": [-1.0, None],
    "since": [date(1970, 5, 5), None],
    "ok": [None, True],
}
KINDS = {
    "age": PartialColumn("integer"),
    "sex": PartialColumn("text"),
    "rate": PartialColumn("number"),
    "since": PartialColumn("date"),
    "ok": PartialColumn("boolean"),
}
SEEN = {
    "age": PartialColumn("integer", lower=31, upper=64),
    "sex": PartialColumn("text", values=("F", "M")),
    "rate": PartialColumn("number", lower=Decimal("0.5"), upper=Decimal("2.0")),
    "since": PartialColumn("date", lower=date(2020, 1, 1), upper=date(2020, 1, 1)),
    "ok": PartialColumn("boolean"),
}


def parquet(path, rows):
    types = [
        ("age", pa.int32()),
        ("sex", pa.string()),
        ("rate", pa.float64()),
        ("since", pa.date32()),
        ("ok", pa.bool_()),
    ]
    pq.write_table(pa.table(rows, schema=pa.schema(types)), path / "people.parquet")
    return path / "people.parquet"


def csv(path, rows):
    pd.DataFrame(rows).to_csv(path / "people.csv", index=False)
    return path / "people.csv"


def database(path, rows):
    with duckdb.connect(str(path / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM read_parquet('{parquet(path, rows)}')")
    return path / "people.duckdb"


@pytest.mark.parametrize("write", [parquet, csv, database])
def test_no_row_has_a_part_in_what_is_known(write, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = inspect_file(write(tmp_path / "a", SOME)), inspect_file(write(tmp_path / "b", OTHERS))
    assert one.columns == other.columns == ({name: PartialColumn() for name in KINDS} if write is csv else KINDS)
    assert (one.table, one.origin) == (other.table, other.origin) == ("people", "names" if write is csv else "types")


@pytest.mark.parametrize("write", [parquet, csv, database])
def test_public_rows_give_bounds_and_values(write, tmp_path):
    found = inspect_file(write(tmp_path, SOME), public=True)
    assert (found.columns, found.origin) == (SEEN, "values")


@pytest.mark.parametrize("write", [parquet, csv, database])
def test_public_rows_of_no_use_leave_blanks(write, tmp_path):
    rows = {
        "rate": [float("inf"), None],
        "sex": [None, None],
        "age": [None, None],
        "since": [None] * 2,
        "ok": [None] * 2,
    }
    found = inspect_file(write(tmp_path, rows), public=True)
    assert all(part.lower is None and part.values is None for part in found.columns.values())


def test_a_text_with_too_many_values_is_left_blank_even_if_public(tmp_path):
    many = [str(place) + "x" for place in range(MOST_VALUES + 1)]
    assert inspect_file(csv(tmp_path, {"name": many}), public=True).columns["name"].values is None
    assert len(inspect_file(csv(tmp_path, {"name": many[1:]}), public=True).columns["name"].values) == MOST_VALUES


def test_the_values_of_an_enumeration_and_of_a_dictionary_are_not_taken_from_the_type(tmp_path):
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t (mood ENUM('secret', 'hidden'), list INTEGER[], moods ENUM('x')[], time TIME)"
        )
    found = inspect_file(tmp_path / "a.duckdb")
    assert found.columns == {"mood": PartialColumn("text")}
    assert found.skipped == {"list": "list", "moods": "list", "time": "time"}
    pd.DataFrame({"mood": pd.Categorical(["secret"])}).to_parquet(tmp_path / "a.parquet")
    assert inspect_file(tmp_path / "a.parquet").columns == {"mood": PartialColumn("text")}


def test_every_usual_type_is_known(tmp_path):
    fields = {
        "a": pa.uint8(),
        "b": pa.decimal128(10, 2),
        "c": pa.large_string(),
        "d": pa.timestamp("us", "UTC"),
        "e": pa.list_(pa.int8()),
        "f": pa.binary(),
        "g": pa.float16(),
    }
    pq.write_table(pa.table({name: pa.array([], kind) for name, kind in fields.items()}), tmp_path / "a.parquet")
    found = inspect_file(tmp_path / "a.parquet")
    assert [part.kind for part in found.columns.values()] == ["integer", "number", "text", "date", "number"]
    assert found.skipped == {"e": "list", "f": "binary"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_of_a_csv_file_says_its_delimiter(delimiter, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\ufeff" + delimiter.join(["age", '"sex, or gender"', "a b"]) + "\r\n1,2;3\n")
    assert list(inspect_file(path).columns) == ["age", "sex, or gender", "a b"]


@pytest.mark.parametrize("first", ["31,Alice,F", "Alice,2024-01-01", "Alice,,F", "1.5", ""])
def test_a_csv_file_that_begins_with_a_row_is_refused_without_repeating_it(first, tmp_path):
    (tmp_path / "people.csv").write_text(f"{first}\n32,Bob,M\n")
    with pytest.raises(BadData, match="is not a header") as caught:
        inspect_file(tmp_path / "people.csv")
    assert "Alice" not in str(caught.value)


def test_one_of_several_tables_is_chosen_by_name(tmp_path):
    with duckdb.connect(str(tmp_path / "two.duckdb")) as connection:
        connection.execute('CREATE TABLE "two" (a INTEGER)')
        connection.execute('CREATE TABLE "the ""visits""" (b VARCHAR)')
    assert list(inspect_file(tmp_path / "two.duckdb", table='the "visits"').columns) == ["b"]
    assert list(inspect_file(tmp_path / "two.duckdb", table="main.two").columns) == ["a"]
    with pytest.raises(BadData, match=r'has these tables: .*"two".* Choose one with --table'):
        inspect_file(tmp_path / "two.duckdb")


def test_metadata_of_another_tool_is_converted(tmp_path):
    (tmp_path / "people.yaml").write_text("max_ids: 2\ncolumns: {id: {type: int, private_id: true}, a: {type: float}}")
    found = inspect_file(tmp_path / "people.yaml")
    assert (found.columns, found.unit, found.origin) == ({"a": PartialColumn("number")}, Unit("id", 2), "metadata")
    (tmp_path / "ours.yaml").write_text("privacy_unit: row\ncolumns: {a: {type: boolean}}")
    with pytest.raises(BadSchema, match=r"discreet schema check ours\.yaml"):
        inspect_file(tmp_path / "ours.yaml")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"PAR1 and no more", "truncated or damaged"),
        ("a.parquet", b"", "truncated or damaged"),
        ("a.duckdb", b"12345678DUCK and no more", "it is damaged"),
        ("a.csv", b"\xff\xfea,b\n", "is not CSV in UTF-8"),
        ("a.csv", b'"a,b\n', "is not CSV in UTF-8"),
        ("a.csv", b"a,b,a\n", "two columns of one name"),
        ("a.xlsx", b"PK", "is no CSV"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadData, match=said):
        inspect_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a.parquet", "a.duckdb"])
def test_a_damaged_file_of_public_rows_is_refused_too(name, tmp_path):
    (tmp_path / name).write_bytes(b"PAR1 and no more")
    with pytest.raises(BadData, match="damaged"):
        inspect_file(tmp_path / name, public=True)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadData, match="there is no file"):
        inspect_file(tmp_path / "people.parquet")
    with pytest.raises(BadData, match="is a directory"):
        inspect_file(tmp_path)
