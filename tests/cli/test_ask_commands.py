"""`discreet ask`, `plan`, `known`, `budget` and `history`, run as people run them."""

import csv
import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.shell import SCHEMA, call, run
from discreet.cli import app, output
from discreet.errors import BadParameter, BadQuery, BudgetExceeded, KeyReused
from discreet.ledger import Budget, Ledger

ROOT = Path(__file__).parents[2]
COUNT = "SELECT COUNT(*) FROM people WHERE sex = 'Female'"
BUDGET = ("--budget", 1, "--delta", 1e-9)


@pytest.fixture
def people(tmp_path):
    """A schema file beside its rows: 4,000 people, half of them women."""
    rows = [f"{18 + n % 80},{('Female', 'Male')[n % 2]},{n * n % 61}" for n in range(4_000)]
    (tmp_path / "people.csv").write_text("\n".join(["age,sex,hours", *rows, ""]))
    (tmp_path / "people.yaml").write_text(SCHEMA)
    return tmp_path / "people.yaml"


def spends(people):
    return call("history", people, "--json").count('"is": "spend"')


# Budgets.


@pytest.mark.parametrize("command", [["ask", COUNT], ["plan", COUNT], ["known"], ["budget"], ["history"]])
def test_without_a_budget_every_command_says_how_to_set_one_and_begins_no_ledger(people, command):
    with pytest.raises(BadParameter, match=r"--budget 1 --delta 1e-9 once, or: discreet ledger cap .* --table people"):
        call(command[0], people, *command[1:])
    assert sorted(path.name for path in people.parent.iterdir()) == ["people.csv", "people.yaml"]


def test_a_cap_that_was_set_with_the_ledger_will_do(people):
    address = people.with_name("people.ledger.sqlite")
    call("ledger", "cap", address, "--epsilon", 1, "--delta", 1e-9, "--table", "visits")
    with pytest.raises(BadParameter, match='nothing may be spent on table "people" yet'):
        call("ask", people, COUNT, "--error", 100)
    call("ledger", "cap", address, "--epsilon", 1, "--delta", 1e-9, "--table", "people", "--table", "visits")
    assert "measured" in call("ask", people, COUNT, "--error", 100)


def test_a_budget_is_said_once_and_may_be_repeated_and_another_is_refused(people):
    call("ask", people, COUNT, "--error", 100, *BUDGET)
    assert "known: free" in call("ask", people, COUNT, "--error", 100, *BUDGET)
    with pytest.raises(BadParameter, match="discreet ledger raise"):
        call("ask", people, COUNT, "--error", 100, "--budget", 2, "--delta", 1e-9)
    with Ledger(people.with_name("people.ledger.sqlite"), create=False) as ledger:
        assert list(ledger.caps.values()) == [Budget(epsilon=1, delta=1e-9)]


def test_a_delta_needs_its_budget(people):
    with pytest.raises(BadParameter, match="no --budget that it belongs to"):
        call("ask", people, COUNT, "--error", 100, "--delta", 1e-9)


def test_the_ledger_may_be_elsewhere(people, tmp_path):
    other = tmp_path / "other.sqlite"
    call("ask", people, COUNT, "--error", 100, "--ledger", other, *BUDGET)
    assert other.exists()
    assert not people.with_name("people.ledger.sqlite").exists()
    for command in ("known", "budget", "history"):
        assert call(command, people, "--ledger", other)


# Asking.


def test_ask_pays_once_and_then_it_is_free(people):
    first = call("ask", people, COUNT, "--error", 100, *BUDGET)
    assert re.fullmatch(r"[\d,]+ ± 100 \(95 %\), measured( directly)?; epsilon 0\.\d+ left\n", first)
    again = call("ask", people, "sex = 'Female'", "--error", 100)
    assert again == re.sub(r", measured.*", ", known: free", first)
    assert call("ask", people, COUNT) == again
    assert spends(people) == 1


def test_a_question_may_come_from_the_standard_input(people):
    assert "± 100" in call("ask", people, "-", "--error", 100, *BUDGET, text=COUNT)


def test_a_group_by_is_a_table_with_bars(people):
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    said = call("ask", people, sql, "--error", 100, *BUDGET).splitlines()
    assert said[0].split() == ["sex", "n"]
    assert re.fullmatch(r"Female +█+[▒┼─┤▏]+ +[12],\d\d\d ± 100", said[1])
    assert len(said) == 4


def test_joint_errors_cost_more(people):
    sql = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
    single, joint = (
        json.loads(call("plan", people, sql, "--error", 100, *BUDGET, *more, "--format", "json"))["price"]["epsilon"]
        for more in ([], ["--joint"])
    )
    assert joint > 1.1 * single


def test_what_is_below_zero_can_be_lifted(people):
    sql = "SELECT hours, COUNT(*) AS n FROM people GROUP BY hours"
    told = json.loads(call("ask", people, sql, "--error", 400, *BUDGET, "--format", "json"))
    lifted = json.loads(call("ask", people, sql, "--error", 400, "--nonnegative", "--format", "json"))
    assert min(told["value"]) < 0 == min(lifted["value"])


def test_an_average_says_that_small_groups_are_wider(people):
    rows = people.with_name("people.csv")
    rows.write_text(rows.read_text() + "20,Female,30\n" * 10_000)
    sql = "SELECT sex, AVG(hours) AS h FROM people GROUP BY sex"
    words = ["ask", str(people), sql, "--error", "2", "--budget", "1", "--delta", "1e-9"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "smaller than the average have wider errors than 2" in result.stderr
    assert result.stdout.count("±") == 2


def test_json_has_the_fields_of_an_answer(people):
    fields = json.loads(call("ask", people, COUNT, "--epsilon", 0.1, *BUDGET, "--format", "json"))
    assert list(fields) == ["value", "error", "confidence", "origin", "columns", "remaining"]
    assert fields["columns"] == {"count": [fields["value"]], "count_error": [fields["error"]]}
    assert fields["remaining"].keys() == {"epsilon", "delta"}
    assert fields["remaining"]["delta"] == 1e-9
    assert fields["remaining"]["epsilon"] < 1


def test_json_of_a_group_by_has_lists_and_csv_has_a_line_for_each_row(people):
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex DESC"
    fields = json.loads(call("ask", people, sql, "--error", 100, *BUDGET, "--format", "json"))
    rows = list(csv.DictReader(io.StringIO(call("ask", people, sql, "--error", 100, "--format", "csv"))))
    assert fields["value"] == fields["columns"]["n"] == [float(row["n"]) for row in rows]
    assert [row["sex"] for row in rows] == fields["columns"]["sex"] == ["Male", "Female"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (float("inf"), None),
        ([1.5, float("nan")], [1.5, None]),
        (Budget(epsilon=1), {"epsilon": 1.0, "delta": 0.0}),
        (None, None),
        (True, True),
        ((1, ("a",)), [1, ["a"]]),
    ],
)
def test_what_json_does_not_know_is_null(value, plain):
    assert output._plain(value) == plain


def test_analysts_and_keys_are_handed_on(people):
    asked = ["ask", people, COUNT, "--error", 100, "--analyst", "ana", "--key", "17"]
    call(*asked, *BUDGET)
    (spend,) = map(json.loads, call("history", people, "--json").splitlines())
    assert (spend["analyst"], spend["why"]) == ("ana", COUNT)
    with pytest.raises(KeyReused):
        call("ask", people, "age >= 65", "--error", 50, "--analyst", "ana", "--key", "17")


def test_a_refusal_says_what_is_free_and_spends_nothing(people):
    call("ask", people, COUNT, "--error", 100, *BUDGET)
    with pytest.raises(BudgetExceeded, match="What is known answers it for free with error 100"):
        call("ask", people, COUNT, "--error", 2)
    assert spends(people) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([COUNT, "--error", 1], 1, "BudgetExceeded: this needs epsilon"),
        (["aeg >= 65", "--error", 1], 2, 'BadQuery: no column "aeg"'),
    ],
    ids=["budget", "column"],
)
def test_an_error_is_one_sentence_with_an_exit_code(people, words, code, said):
    result = run("ask", people, *words, "--budget", 0.1, "--delta", 1e-9)
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.startswith(said)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "bad", [["--error", 1, "--epsilon", 1], ["--error", -1], ["--confidence", 95], ["--epsilon", 0]]
)
def test_a_number_that_makes_no_sense_is_refused(people, bad):
    with pytest.raises(BadParameter, match=r"error|confidence|epsilon"):
        call("ask", people, COUNT, *bad, *BUDGET)


def test_a_schema_that_is_not_there_is_a_mistake_in_the_command(tmp_path):
    assert run("budget", tmp_path / "none.yaml").returncode == 2


# Planning.


def test_a_plan_pays_nothing_and_without_a_budget_it_begins_no_ledger(people):
    said = call("plan", people, COUNT, "--error", 100, *BUDGET)
    assert re.search(
        r"± 100 \(95 %\).*\nPrice: epsilon 0\.\d+ \(delta 1e-09\).*\nLeft: epsilon 1 \(delta 1e-09\)", said
    )
    assert not people.with_name("people.ledger.sqlite").exists()


def test_a_plan_knows_what_was_told(people):
    call("ask", people, COUNT, "--error", 100, *BUDGET)
    assert "free" in call("plan", people, COUNT, "--error", 100)
    assert "Left" not in call("plan", people, COUNT, "--error", 100, *BUDGET)
    assert "That is more than is left." in call("plan", people, COUNT, "--error", 1)
    assert spends(people) == 1
    with pytest.raises(BadParameter, match="a plan sets none"):
        call("plan", people, COUNT, "--error", 100, "--budget", 2, "--delta", 1e-9)
    with pytest.raises(BadQuery):
        call("plan", people, "SELECT MEDIAN(hours) FROM people", "--error", 100)


def test_the_price_of_a_plan_is_what_is_paid(people):
    promise = json.loads(call("plan", people, COUNT, "--error", 100, *BUDGET, "--format", "json"))
    call("ask", people, COUNT, "--error", 100, *BUDGET)
    assert f"epsilon {promise['price']['epsilon']:.3g}" in call("history", people)
    table = list(csv.DictReader(io.StringIO(call("plan", people, COUNT, "--error", 50, "--format", "csv"))))
    assert float(table[0]["error"]) == 50
    assert table[0]["fits"] == "True"


# What is known, what is left, what was paid.


def test_known_lists_columns_cells_and_errors(people):
    assert "Nothing is known" in call("known", people, "--ledger", capped(people))
    call("ask", people, "SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age", "--error", 100, *BUDGET)
    assert re.search(r"age, sex +10 +± [\d.]+", call("known", people))
    (row,) = csv.DictReader(io.StringIO(call("known", people, "--format", "csv")))
    assert row["columns"] == "age, sex"
    wide = json.loads(call("known", people, "--confidence", 0.99, "--format", "json"))
    assert wide["columns"] == [["age", "sex"]]
    assert wide["error"][0] > float(row["error"])


def capped(people):
    other = people.with_name("other.sqlite")
    call("ledger", "cap", other, "--epsilon", 1, "--delta", 1e-9, "--table", "people")
    return other


def test_budget_is_about_this_table_and_counts_what_a_person_may_move(people):
    other = capped(people)
    call("ledger", "cap", other, "--epsilon", 5, "--delta", 1e-9, "--table", "visits")
    said = call("budget", people, "--ledger", other, "--error", 100)
    assert "people" in said
    assert "visits" not in said
    assert "counts at ±100" in said
    people.write_text(SCHEMA.replace("privacy_unit: row", "privacy_unit: person\ncontributions: 3"))
    fewer = call("budget", people, "--ledger", other, "--error", 100)
    one, three = (int(re.search(r"≈ ([\d,]+)", text)[1].replace(",", "")) for text in (said, fewer))
    assert one // 9 == three


def test_history_says_what_was_paid(people):
    call("ask", people, COUNT, "--error", 100, "--analyst", "ana", *BUDGET)
    call("ask", people, "age >= 65", "--error", 100, "--analyst", "bob")
    said = call("history", people)
    assert "ana on people, epsilon" in said
    assert COUNT in said
    assert "ana" not in call("history", people, "--analyst", "bob")
    assert "age >= 65" in call("history", people, "--last", 1)


# The terminal.


def test_whoever_waits_on_a_terminal_sees_that_something_happens(monkeypatch, capsys):
    monkeypatch.setattr(output, "_PATIENCE", 0)
    with output.waiting("Asking"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = ""
    with output.waiting("Asking"):
        for _ in range(200):
            shown += capsys.readouterr().err
            if "Asking" in shown:
                break
            wait()
    assert "Asking …" in shown


def wait():
    from time import sleep

    sleep(0.05)


def test_a_quick_answer_shows_nothing_on_the_way(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with output.waiting("Asking"):
        pass
    assert capsys.readouterr().err == ""


# The page.


@pytest.mark.parametrize("page", ["README.md", "docs/curator.md"])
def test_the_commands_on_a_page_run(people, page, monkeypatch):
    monkeypatch.chdir(people.parent)
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(), flags=re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("discreet")]
    # A server serves until it is stopped, and the others take long: they have tests of their own.
    others = {"serve", "attack", "audit", "reproduce"}
    commands = [line for line in commands if line.split()[1] not in others]
    assert {line.split()[1] for line in commands} == {"ask", "plan", "known", "budget", "history"}
    for line in commands:
        assert call(*shlex.split(line, comments=True)[1:])
