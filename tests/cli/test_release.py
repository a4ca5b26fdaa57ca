"""`discreet release`, run as people run it, on a small table with a real ledger."""

import csv
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.shell import SCHEMA, call, run
from discreet.cli import app, release_command
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, TooLarge
from discreet.release.report.card import Card

ROOT = Path(__file__).parents[2]
FIRST = ("--epsilon", 0.5, "--delta", 1e-9, "--budget", 1)
FILES = ["card.html", "card.json", "known.npz", "model.npz", "release.json", "rows.parquet", "schema.yaml"]


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A schema file beside its rows: 4,000 people, half of them women; we are in their folder."""
    rows = [f"{18 + n % 80},{('Female', 'Male')[n % 2]},{n * n % 61}" for n in range(4_000)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,hours", *rows, ""]))
    (tmp_path / "people.yaml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return Path("people.yaml")


def spent(people):
    """What the ledger says was ever paid for."""
    return call("history", people, "--json").count('"is": "spend"') if Path("people.ledger.sqlite").exists() else 0


def test_a_release_is_a_folder_with_rows_a_card_and_a_page(people):
    result = CliRunner().invoke(app, ["release", "people.yaml", *map(str, FIRST)], catch_exceptions=False)
    said = result.stdout
    # No bar where nobody looks.
    assert result.stderr == ""
    folder = Path("people-release")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    card = Card.from_json((folder / "card.json").read_text())
    assert (card.table, float(card.budget.epsilon), float(card.cap.epsilon)) == ("people", 0.5, 1.0)
    assert card.goal == "all 3-way marginals of 3 columns"
    assert card.short in said
    assert re.search(r"Written to people-release: .*rows\.parquet.*; [34],\d{3} rows\.", said)
    assert "discreet known people.yaml" in said
    assert "<svg" in (folder / "card.html").read_text()
    assert "age" in call("known", people)

    import discreet as dp

    again = dp.Release.load(folder)
    assert again.card == card
    assert abs(again.answer("sex = 'Female'").value - 2000) < 400


def test_a_plan_spends_nothing_and_writes_nothing(people):
    said = call("release", people, *FIRST, "--plan", "--rows", 4000)
    assert re.search(r"mixture +[\d.]+", said)
    assert "4,000 rows" in said
    assert "Left: epsilon 1 (delta 1e-09). Nothing was spent." in said
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "people.yaml"]


def test_a_folder_with_files_is_refused_before_anything_is_paid(people):
    Path("people-release").mkdir()
    Path("people-release/mine.txt").write_text("mine")
    with pytest.raises(BadParameter, match=r'"people-release" has files already and is not overwritten. Say --force'):
        call("release", people, *FIRST)
    with pytest.raises(BadParameter, match=r'"people\.csv" is a file'):
        call("release", people, *FIRST, "--output", "people.csv")
    assert not Path("people.ledger.sqlite").exists()


def test_force_writes_over_a_release_and_leaves_no_old_rows(people):
    few = ("--marginals", 1, "--method", "direct", "--rows", 7)
    call("release", people, *FIRST, *few)
    call("release", people, "--epsilon", 0.1, *few, "--force", "--format", "csv")
    names = [path.name for path in Path("people-release").iterdir()]
    assert "rows.csv" in names
    assert "rows.parquet" not in names
    with Path("people-release/rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7
    assert {row["sex"] for row in rows} <= {"Female", "Male"}


def test_the_columns_may_be_named_and_delta_is_the_tables(people):
    call(
        "release", people, *FIRST, "--columns", "age,sex", "--columns", " sex , hours", "--output", "some", "--rows", 0
    )
    call("release", people, "--epsilon", 0.1, "--columns", "sex", "--output", "one", "--rows", 9, "--format", "csv")
    some, one = (Card.from_json(Path(folder, "card.json").read_text()) for folder in ("some", "one"))
    assert [error.columns for error in some.errors] == [("age", "sex"), ("hours", "sex")]
    assert float(one.budget.delta) == 1e-9
    assert one.earlier > 0
    assert "not all that was released" in " ".join(one.not_promised)
    assert [column.name for column in one.columns] == ["sex"]
    # Rows have what the release was made for.
    lines = Path("one/rows.csv").read_text().split()
    assert lines[0] == "sex"
    assert len(lines) == 10


def test_what_costs_more_than_is_left_is_refused_and_costs_nothing(people):
    call("release", people, *FIRST, "--marginals", 1, "--method", "direct", "--rows", 0)
    before = call("budget", people)
    with pytest.raises(BudgetExceeded, match="is left"):
        call("release", people, "--epsilon", 3, "--output", "more")
    assert call("budget", people) == before
    assert not Path("more").exists()


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["--marginals", 2, "--columns", "age"], BadParameter, "--marginals and --columns are both given"),
        (["--columns", "aeg,sex"], BadQuery, 'no column "aeg"'),
        (["--method", "magic"], BadParameter, "method is 'magic'"),
        (["--memory", "much"], BadParameter, 'memory is "much"'),
        (["--seconds", 0.001], TooLarge, "0.001 seconds"),
        (["--memory", "1KB"], TooLarge, "0.001 MB"),
    ],
)
def test_a_mistake_is_said_and_nothing_is_paid(people, words, error, said):
    with pytest.raises(error, match=re.escape(said)):
        call("release", people, *FIRST, *words)
    assert spent(people) == 0
    assert not Path("people-release").exists()


def test_without_a_budget_it_says_how_to_set_one(people):
    with pytest.raises(BadParameter, match="discreet ledger cap"):
        call("release", people, "--epsilon", 0.5)
    assert not Path("people.ledger.sqlite").exists()


def test_without_a_delta_it_says_what_would_be_better(people):
    words = ["release", "people.yaml", "--epsilon", "1", "--budget", "1", "--plan"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "errors are much smaller" in result.stderr
    assert "direct" in result.stdout


def test_under_a_key_it_is_paid_once(people):
    words = ("release", people, *FIRST, "--marginals", 1, "--method", "direct", "--rows", 0, "--key", "monday")
    call(*words)
    before = spent(people)
    call(*words, "--force")
    assert spent(people) == before


def test_a_refusal_is_one_sentence_with_an_exit_code(people):
    over = run("release", people, "--epsilon", 9, "--delta", 1e-9, "--budget", 1)
    assert (over.returncode, over.stdout) == (1, "")
    assert over.stderr.startswith("BudgetExceeded: ")
    assert "Traceback" not in over.stderr


def test_progress_is_shown_on_a_terminal_and_nowhere_else(monkeypatch, capsys):
    with release_command.release_progress("Releasing") as tell:
        assert tell is None
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    with release_command.release_progress("Releasing") as tell:
        for share in (0.0, 0.5, 1.7):
            tell(share)
    shown = capsys.readouterr().err
    assert "Releasing" in shown
    assert "100%" in shown


@pytest.mark.parametrize(
    ("size", "number"), [("2GB", 2 * 10**9), ("1.5 MiB", 1_572_864), ("512", 512), (" 3k ", 3000), ("1TiB", 2**40)]
)
def test_sizes_are_read(size, number):
    assert release_command.bytes_of(size) == number


@pytest.mark.parametrize("size", ["", "GB", "-1GB", "0", "2 XB", "1e9", "2GB2"])
def test_what_is_no_size_is_refused(size):
    with pytest.raises(BadParameter, match="Write 2GB"):
        release_command.bytes_of(size)


def test_the_commands_on_the_page_run(people):
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/release.md").read_text(), flags=re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("discreet")]
    assert len(commands) == 4
    for line in commands:
        assert call(*shlex.split(line, comments=True)[1:])
    assert json.loads(Path("ones/card.json").read_text())["method"] == "direct"
