"""`discreet attack` and `discreet audit`, as people run them."""

import pytest
import typer
from typer.testing import CliRunner

from discreet.errors import BadParameter, BadQuery
from discreet.lab.commands import attack_commands

app = typer.Typer()
app.command()(attack_commands.attack)
app.command()(attack_commands.audit)

SMALL = ("--people", "20", "--questions", "60")
SCHEMA = """
table: people
source: people.csv
privacy_unit: row
columns:
  age: {type: integer, lower: 0, upper: 99}
  smokes: {values: ["no", "yes"]}
"""


def run(*arguments):
    """What it prints and its exit code; our own errors come through, as `main` catches them."""
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "160"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.yaml").write_text(SCHEMA)
    rows = [f"{age},{'yes' if age % 3 else 'no'}" for age in range(20, 44)]
    (tmp_path / "people.csv").write_text("\n".join(["age,smokes", *rows]))
    return tmp_path / "people.yaml"


def test_an_attack_prints_what_is_learnt_from_whom_and_writes_a_page(tmp_path):
    page = tmp_path / "deep" / "attack.html"
    done = run("attack", "posterior", "--epsilon", 0.5, "--report", page)
    assert done.exit_code == 0
    assert "the exact count" in done.stdout
    assert "100.0%" in done.stdout
    assert "62.2%" in done.stdout
    assert "Nothing was learnt that is not permitted" in done.stdout
    assert page.read_text().count("<svg") == 1


def test_the_bundled_table_is_attacked(tmp_path):
    done = run("attack", "reconstruction", *SMALL, "--no-report")
    assert done.exit_code == 0
    assert "income = >50K" in done.stdout
    assert "curator, all cells at once" in done.stdout
    assert not (tmp_path / "out").exists()


def test_a_table_of_ones_own_is_attacked(people):
    own = ("--schema", people, "--public", "age", "--secret", "smokes=yes")
    done = run("attack", "reconstruction", *own, "--people", 16, "--questions", 80, "--no-report")
    assert done.exit_code == 0
    assert "smokes = yes" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (("--schema", "{}"), BadParameter, "--public"),
        (("--schema", "{}", "--public", "age"), BadParameter, "--secret"),
        (("--schema", "{}", "--public", "age", "--secret", "smokes=yess"), BadParameter, "did you mean"),
        (("--schema", "{}", "--public", "age", "--secret", "smoks=yes"), BadQuery, "smokes"),
        (("--server", "http://127.0.0.1:1"), BadParameter, "--token"),
    ],
)
def test_what_is_missing_is_said(people, wrong, error, said):
    with pytest.raises(error, match=said):
        run("attack", "differencing", "--no-report", *[each.format(people) for each in wrong])


def test_a_server_cannot_be_traced():
    with pytest.raises(BadParameter, match="tracing needs people"):
        run("attack", "tracing", "--server", "http://127.0.0.1:1", "--no-report")


def test_a_page_that_cannot_be_written_is_a_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadParameter, match="Choose another"):
        run("attack", "posterior", "--report", tmp_path / "file" / "page.html")


def test_a_mechanism_is_audited_by_name():
    done = run("audit", "laplace", "--samples", 20_000)
    assert done.exit_code == 0
    assert "not refuted" in done.stdout


def test_a_mistake_is_refuted_and_that_is_as_it_should_be():
    done = run("audit", "half-the-noise", "--samples", 20_000)
    assert done.exit_code == 0
    assert "refuted" in done.stdout
    assert "not refuted" not in done.stdout


def test_a_function_of_ones_own_is_audited_and_fails_if_it_is_refuted(tmp_path, monkeypatch):
    (tmp_path / "somebody.py").write_text(
        "import numpy\n\ndef plain(value, size):\n    return numpy.full(size, value)\n"
    )
    monkeypatch.chdir(tmp_path)
    done = run("audit", "somebody:plain", "--samples", 2000)
    assert done.exit_code == 1
    assert "refuted" in done.stdout


@pytest.mark.parametrize("target", ["somebody:else", "laplac", "discreet:__version__"])
def test_what_cannot_be_audited_is_refused(target):
    with pytest.raises(BadParameter):
        run("audit", target, "--samples", 100)


def test_the_list_names_mechanisms_and_mistakes():
    said = run("audit", "--list").stdout
    assert "laplace" in said
    assert "sparse-vector-5" in said
    assert "a mistake, to be caught" in said


def test_an_attack_that_succeeds_is_exit_code_one(monkeypatch):
    from dataclasses import replace

    from discreet.lab.attack import Learnt, experiments

    worse = replace(experiments.attack_by_posterior(), learnt=(Learnt("a broken curator", "ours", 0.99),))
    monkeypatch.setattr(experiments, "attack_by_posterior", lambda **_: worse)
    done = run("attack", "posterior", "--no-report")
    assert done.exit_code == 1
    assert "More was learnt than is permitted" in done.stdout
