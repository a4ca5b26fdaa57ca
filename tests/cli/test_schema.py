"""`discreet schema …`, run as people run it."""

import pytest

from cli.shell import run
from discreet.data import ADULT

PEOPLE = {"age": [31, 64], "sex": ["F", "M"], "person": [1, 2]}
OTHERS = {"age": [1, 99, 5], "sex": ["X", None, "Z"], "person": [7, 8, 9]}


@pytest.fixture
def people(tmp_path):
    write_csv(tmp_path / "people.csv", PEOPLE)
    write_parquet(tmp_path / "people.parquet", PEOPLE)
    return tmp_path


def write_csv(path, rows):
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path, rows):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(rows), path)


@pytest.mark.parametrize(("name", "write"), [("people.csv", write_csv), ("people.parquet", write_parquet)])
def test_a_draft_depends_on_names_and_types_and_on_no_row(name, write, tmp_path):
    drafts = []
    for folder, rows in (("a", PEOPLE), ("b", OTHERS)):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / name, rows)
        result = run(
            "schema", "draft", str(tmp_path / folder / name), "--output", str(tmp_path / folder / "people.yaml")
        )
        assert result.returncode == 0
        drafts.append((tmp_path / folder / "people.yaml").read_bytes())
    assert drafts[0] == drafts[1]


def test_the_same_comparison_notices_values_that_are_taken_from_public_rows(tmp_path):
    write_parquet(tmp_path / "a.parquet", PEOPLE)
    write_parquet(tmp_path / "b.parquet", OTHERS)
    one, other = (run("schema", "draft", str(tmp_path / f"{name}.parquet"), "--public-data").stdout for name in "ab")
    assert one.replace("a.parquet", "b.parquet").replace("table: a", "table: b") != other
    assert "age: {type: integer, lower: 31, upper: 64}" in one
    assert "WRITTEN FROM THE ROWS" in one


def test_a_draft_is_completed_and_checked(people):
    schema = people / "people.yaml"
    (people / "book.csv").write_text("name,value,lower,upper\nsex,F,,\nsex,M,,\nage,,0,120\n")
    drafted = run(
        *("schema", "draft", str(people / "people.csv"), "--output", str(schema)),
        *("--codebook", str(people / "book.csv"), "--table", "town"),
    )
    assert "3 columns, 1 of them with blanks" in drafted.stdout
    unfinished = run("schema", "check", str(schema))
    assert unfinished.returncode == 2
    assert 'Complete privacy_unit and the column "person"' in unfinished.stderr
    text = schema.read_text().replace("  person: ___\n", "").replace("privacy_unit: ___", "privacy_unit: person")
    schema.write_text(text.replace("# contributions: 1", "contributions: 2"))
    checked = run("schema", "check", str(schema), "--no-source")
    assert checked.returncode == 0
    for piece in (
        "Table town",
        "integers 0 to 120",
        "2 values",
        '"person" with up to 2 rows',
        "366 different rows",
        "not opened",
    ):
        assert piece in checked.stdout


def test_checking_a_schema_opens_its_source_and_shows_no_value_of_it():
    result = run("schema", "check", str(ADULT))
    assert result.returncode == 0, result.stderr
    assert "adult.parquet, opened: every column is there" in " ".join(result.stdout.split())


def test_a_schema_that_does_not_fit_its_source_is_one_sentence(tmp_path):
    text = ADULT.read_text().replace("adult.parquet", str(ADULT.with_suffix(".parquet"))).replace("  race:", "  raec:")
    (tmp_path / "adult.yaml").write_text(text)
    result = run("schema", "check", str(tmp_path / "adult.yaml"))
    assert result.returncode == 2
    assert result.stderr.startswith('BadData: column "raec" of the schema is not there; did you mean "race"?')
    assert "Traceback" not in result.stderr


def test_a_draft_never_overwrites_a_file_unless_told_to(people):
    (people / "people.yaml").write_text("mine")
    command = ["schema", "draft", str(people / "people.parquet"), "--output", str(people / "people.yaml")]
    refused = run(*command)
    assert refused.returncode == 2
    assert "exists and is not overwritten. Say --force" in refused.stderr
    assert (people / "people.yaml").read_text() == "mine"
    assert run(*command, "--force").returncode == 0
    assert "source: people.parquet" in (people / "people.yaml").read_text()


def test_the_source_of_a_draft_is_written_as_seen_from_its_file(people):
    (people / "schemas").mkdir()
    run("schema", "draft", str(people / "people.csv"), "--output", str(people / "schemas" / "people.yaml"))
    assert "\nsource: ../people.csv\n" in (people / "schemas" / "people.yaml").read_text()


@pytest.mark.parametrize("command", [["draft", "none.csv"], ["check", "none.yaml"], ["check", "."], ["draft", "."]])
def test_a_bad_file_is_one_sentence_and_exit_code_two(command):
    result = run("schema", *command)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
