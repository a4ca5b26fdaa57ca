"""`discreet ledger …`, run as people run it."""

import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import pytest
from typer.testing import CliRunner

from cli.shell import run
from discreet.accounting import Gaussian, Laplace, Repeat
from discreet.cli import app
from discreet.cli.output import printable
from discreet.errors import BadParameter, LedgerDamaged
from discreet.ledger import Budget, Head, Ledger
from support.ledger_places import PLACES, needs_postgres, new_database
from support.needs import needs

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
READ = ["verify", "export", "budget", "history"]
# A name and a reason that clear the screen, set its title, ring, change the direction and the colour.
HOSTILE = "eve\x1b[2J\x1b]0;root\x07\u202e\r\n\x9b31m[red]\\"


def call(*arguments, answer=None, width=80):
    """What a command prints, run in this process; an error is raised."""
    result = CliRunner().invoke(
        app, ["ledger", *map(str, arguments)], input=answer, env={"COLUMNS": str(width)}, catch_exceptions=False
    )
    return result.stdout


@pytest.fixture
def file(tmp_path):
    """A ledger with three caps and three spends, one of them without an answer; and a session."""
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1, delta=1e-9), table="people")
        ledger.cap(Budget(epsilon=0.2, delta=1e-9), table="people", analyst="*")
        ledger.cap(Budget(epsilon=3, delta=1e-9), tables=("people", "visits"))
        for analyst, table, answered in (("ana", "people", True), ("bob", "people", False), ("ana", "visits", True)):
            why = f"SELECT COUNT(*) FROM {table} WHERE age >= 65"
            receipt = ledger.spend(Gaussian(200, 1), why, table=table, analyst=analyst)
            if answered:
                ledger.record(receipt, b"4711-4711")
        ledger.reserve(Repeat(Gaussian(900, 1), 20), "a session", table="people", analyst="ana")
    return tmp_path / "budget.sqlite"


def damage(file, statement):
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("DROP TRIGGER discreet_ledger_update")
        database.execute(statement)


# verify


def test_verify_says_what_it_found_and_ends_with_the_head(file):
    said = call("verify", file, "--prices")
    for piece in (
        "This ledger holds: 10 entries",
        "Spends: 3, 2 of them answered, 1 without an answer",
        "people",
        "And 2 accounts of single",
    ):
        assert piece in said
    with Ledger(file) as ledger:
        assert Head.parse(said.splitlines()[-1]) == ledger.head


def test_a_quiet_verify_prints_the_head_alone_and_takes_it_back_as_a_line_or_a_file(file, tmp_path):
    head = call("verify", file, "--quiet")
    assert str(Head.parse(head)) + "\n" == head
    (tmp_path / "head.txt").write_text(head)
    for kept in (head.strip(), tmp_path / "head.txt"):
        assert "The head that was kept, of entry 10, is among them." in call("verify", file, "--head", kept)


def test_a_damaged_ledger_is_one_sentence_and_exit_code_one(file):
    damage(file, "UPDATE discreet_ledger SET body = replace(body, 'bob', 'ana') WHERE sequence = 7")
    result = run("ledger", "verify", file)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("LedgerDamaged: entry 7 of the ledger or the one before it was changed")
    assert result.stderr.count("\n") == 1


def test_an_old_copy_is_noticed_by_the_head_beside_it_and_by_one_that_was_kept(file, tmp_path):
    with closing(sqlite3.connect(file)) as database:
        database.execute("VACUUM INTO ?", (str(tmp_path / "old.sqlite"),))
    assert run("ledger", "raise", file, "--epsilon", 2, "--table", "people", "--yes").returncode == 0
    head = call("verify", file, "--quiet")
    for newer in tmp_path.glob("budget.sqlite*"):
        if newer.suffix != ".head":
            newer.unlink()
    (tmp_path / "old.sqlite").rename(file)
    with pytest.raises(LedgerDamaged, match="is not in this ledger"):
        call("verify", file)
    (tmp_path / "budget.sqlite.head").unlink()
    assert call("verify", file, "--quiet") != head
    with pytest.raises(LedgerDamaged, match="is not in this ledger"):
        call("verify", file, "--head", head)


@pytest.mark.parametrize("bad", ["nowhere.txt", "discreet-head 1 2 3", ""])
def test_a_head_that_is_none_is_refused(file, bad):
    with pytest.raises(BadParameter, match="head"):
        call("verify", file, "--head", bad)


def test_a_pipe_gets_no_progress_bar(file):
    assert run("ledger", "verify", file, "--quiet").stderr == ""


def test_a_terminal_sees_how_far_it_is(file, monkeypatch, capsys):
    from discreet.cli import ledger_tables

    monkeypatch.setenv("FORCE_COLOR", "1")
    with ledger_tables.entry_progress("entries checked", 1000) as seen:
        seen(500)
    assert "500 entries checked" in capsys.readouterr().err


# budget


def test_budget_says_of_each_account_what_is_spent_and_left(file):
    said = call("budget", file, width=120)
    rows = [re.split(r"\s{2,}", line.strip()) for line in said.splitlines()]
    with Ledger(file) as ledger:
        known = {one.scope: one for one in ledger.balances()}
    for scope, one in known.items():
        who = {None: "all", "*": "each new"}.get(scope.analyst, scope.analyst)
        (row,) = (row for row in rows if row[:2] == [", ".join(scope.tables), who])
        numbers = [one.cap, one.spent, one.held, one.remaining]
        assert [float(row[place]) for place in (2, 4, 5, 6)] == [float(f"{float(b.epsilon):.3g}") for b in numbers]
        assert row[-1] == f"≈ {one.counts_left(error=200):,}"
    assert ["people", "each new", "0.2"] in [row[:3] for row in rows]
    assert "need not add up to it" in " ".join(said.split())


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", [["budget"], ["history"], ["verify", "--prices"]])
def test_nothing_is_wider_than_the_terminal(file, command, width):
    said = call(*command, file, width=width).replace("discreet-head", "\n").splitlines()
    assert max(len(line) for line in said if not re.match(r" [0-9a-f]{32} ", line)) <= width


def test_budget_can_be_about_one_table_one_analyst_or_both(file):
    def rows(*options):
        return call("budget", file, *options, width=120).count("≈")

    assert rows() == 5
    assert rows("--table", "visits") == 1
    # The caps over all analysts bind her too.
    assert rows("--analyst", "ana") == 3
    assert rows("--table", "people", "--analyst", "zoe") == 3
    assert call("budget", file, "--table", "none") == "No cap is set for that. To set one: discreet ledger cap\n"


def test_more_error_means_more_counts(file):
    few, many = (
        int(re.search(r"≈ ([\d,]+)", call("budget", file, "--error", error))[1].replace(",", "")) for error in (50, 500)
    )
    assert many > 50 * few


# history


def test_history_says_who_asked_what_and_why_and_what_is_unanswered(file):
    said = call("history", file)
    assert said.count("SELECT COUNT(*) FROM people WHERE age >= 65") == 2
    assert re.search(r"UTC +bob on people, epsilon 0\.0238, no answer kept", said)
    assert said.count("no answer kept") == 1
    assert "4711-4711" not in said


def test_history_can_be_short_filtered_and_json(file):
    spends = [json.loads(line) for line in call("history", file, "--json").splitlines()]
    assert [(spend["analyst"], spend["table"], spend["answered"]) for spend in spends] == [
        ("ana", "people", True),
        ("bob", "people", False),
        ("ana", "visits", True),
    ]
    assert [json.loads(line) for line in call("history", file, "--json", "--last", 1).splitlines()] == spends[-1:]
    assert call("history", file, "--analyst", "ana", "--json").count("\n") == 2
    assert call("history", file, "--table", "visits", "--json").count("\n") == 1
    assert call("history", file, "--table", "none") == "Nothing was spent on that.\n"


def test_a_price_is_that_of_the_tables_own_cap(tmp_path):
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=3, delta=1e-9))
        ledger.cap(Budget(epsilon=1), table="visits")
        ledger.spend(Laplace(10, 1), "why", table="visits")
    assert "epsilon 0.1" in call("history", tmp_path / "budget.sqlite")


# What analysts write is shown, not obeyed.


@pytest.fixture
def hostile(tmp_path):
    with Ledger(tmp_path / "budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=1), table=HOSTILE)
        ledger.cap(Budget(epsilon=1), table=HOSTILE, analyst="*")
        ledger.spend(Laplace(10, 1), HOSTILE, table=HOSTILE, analyst=HOSTILE)
    return tmp_path / "budget.sqlite"


@pytest.mark.parametrize("command", [*READ, "history --json", "export --as=dp-accounting"])
def test_no_text_of_an_analyst_steers_the_terminal(hostile, command):
    if "dp-accounting" in command:
        pytest.importorskip("dp_accounting")
    said = call(*command.split(), hostile, width=200)
    assert "eve" in said
    assert all(line.isprintable() for line in said.split("\n"))


def test_an_error_that_names_an_analyst_does_not_either(hostile):
    result = run("ledger", "cap", hostile, "--epsilon", "0.01", "--analyst", HOSTILE)
    assert result.returncode == 2
    assert 'was spent already (analyst "eve\\x1b[2J' in result.stderr
    assert result.stderr.removesuffix("\n").isprintable()


def test_markup_is_shown_as_it_was_written(hostile):
    assert "[red]" in call("history", hostile, width=200)


def test_a_long_reason_is_cut(tmp_path):
    assert printable("x" * 100_000, longest=500) == "x" * 499 + "…"


# cap and raise


def test_a_ledger_is_begun_by_its_first_cap_and_is_its_owners_alone(tmp_path):
    file = tmp_path / "new.sqlite"
    said = call("cap", file, "--epsilon", 1, "--delta", 1e-9, "--table", "people")
    assert said.startswith("Began a new ledger in ")
    assert said.endswith('Set: table "people", all analysts together, may spend epsilon 1 (delta 1e-09).\n')
    assert file.stat().st_mode & 0o777 == 0o600
    again = call("cap", file, "--epsilon", 1, "--delta", 1e-9, "--table", "people")
    assert again.startswith("It was so before: ")
    assert call("cap", file, "--epsilon", 2, "--table", "b", "--table", "a").startswith('Set: tables "a", "b"')
    assert call("cap", file, "--epsilon", 0.2, "--analyst", "*").startswith("Set: each analyst may spend epsilon 0.2")
    with Ledger(file) as ledger:
        assert {str(one.scope): one.cap for one in ledger.balances()} == {
            'table "people"': Budget(1, 1e-9),
            "each analyst": Budget(0.2),
            'tables "a", "b"': Budget(2),
        }


def owners(file):
    lines = map(json.loads, call("export", file).splitlines())
    return [(line["is"], line["owner"]) for line in lines if line["is"] != "spend"]


def test_raising_asks_first_and_says_what_it_changes(file):
    command = ["raise", file, "--epsilon", 2, "--table", "people"]
    before = call("verify", file, "--quiet")
    asked = CliRunner().invoke(app, ["ledger", *map(str, command)], input="n\n")
    assert asked.exit_code == 1
    assert "from epsilon 1 (delta 1e-09) to epsilon 2 (delta 1e-09)?" in asked.output
    assert call("verify", file, "--quiet") == before
    assert "it was epsilon 1 (delta 1e-09)" in call(*command, answer="y\n")
    with Ledger(file) as ledger:
        assert ledger.balances(table="people")[0].cap == Budget(2, 1e-9)


def test_raising_keeps_delta_and_gate_and_logs_the_user_of_the_system(file, monkeypatch):
    import pwd

    monkeypatch.setenv("LOGNAME", "somebody else")
    call("raise", file, "--epsilon", 0.5, "--table", "people", "--analyst", "*", "--yes")
    assert owners(file)[-1] == ("raise", pwd.getpwuid(os.getuid()).pw_name)
    with Ledger(file) as ledger:
        assert ledger.balances(table="people", analyst="zoe")[1].cap == Budget(0.5, 1e-9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--epsilon", "0.5", "--table", "people"], "would lower it"),
        (["--epsilon", "2", "--table", "peple"], r"no cap to raise \(table \"peple\"\)"),
        (["--epsilon", "2", "--table", "people", "--gate", "gausian"], 'did you mean "gaussian"'),
    ],
)
def test_what_cannot_be_raised_is_refused_and_changes_nothing(file, options, sentence):
    before = call("verify", file, "--quiet")
    with pytest.raises(BadParameter, match=sentence):
        call("raise", file, "--yes", *options)
    assert call("verify", file, "--quiet") == before


def test_raising_what_is_not_there_begins_no_ledger(tmp_path):
    with pytest.raises(BadParameter, match="there is no ledger"):
        call("raise", tmp_path / "none.sqlite", "--epsilon", 2, "--yes")
    assert list(tmp_path.iterdir()) == []


# sessions


def test_a_session_that_was_left_behind_can_be_closed(file):
    assert call("sessions", file) == "    10  ana on people\n"
    with pytest.raises(BadParameter, match="session 7 is not open"):
        call("sessions", file, "--close", 7)
    assert call("sessions", file, "--close", 10).startswith("Closed session 10")
    assert call("sessions", file) == "No session has set anything aside.\n"
    assert "set aside" not in call("budget", file)


# export


def test_an_export_is_json_lines_on_the_standard_output_or_in_a_new_file(file, tmp_path):
    printed = call("export", file)
    assert [json.loads(line)["is"] for line in printed.splitlines()] == ["cap"] * 3 + ["spend"] * 3
    assert call("export", file, "--output", tmp_path / "events.jsonl") == ""
    assert (tmp_path / "events.jsonl").read_text() == printed
    with pytest.raises(BadParameter, match="exists and is not overwritten"):
        call("export", file, "--output", tmp_path / "events.jsonl")
    call("export", file, "--output", tmp_path / "events.jsonl", "--force")


@needs("dp_accounting")
def test_an_export_for_dp_accounting_has_one_event_for_each_spend(file):
    for accountant in ("pld", "rdp"):
        lines = call("export", file, "--as", "dp-accounting", "--accountant", accountant).splitlines()
        assert [json.loads(line)["event"]["class_name"] for line in lines] == ["GaussianDpEvent"] * 3


def test_half_an_export_is_not_left_behind(tmp_path):
    from discreet.cli.output import write_new

    def lines():
        yield "half"
        raise LedgerDamaged("of it")

    with pytest.raises(LedgerDamaged):
        write_new(lines(), tmp_path / "events.jsonl", force=False)
    assert not (tmp_path / "events.jsonl").exists()


# Reading leaves nothing behind.


@pytest.mark.parametrize("command", READ)
def test_reading_creates_no_file(file, command, tmp_path):
    (tmp_path / "budget.sqlite.head").unlink()
    before, head = set(tmp_path.iterdir()), call("verify", file, "--quiet")
    call(command, file)
    assert set(tmp_path.iterdir()) <= before
    assert call("verify", file, "--quiet") == head


@pytest.mark.parametrize("command", READ)
@pytest.mark.parametrize("bad", ["none.sqlite", ".", "text.txt", "mysql://host/db"])
def test_what_is_no_ledger_is_a_sentence(command, bad, tmp_path, monkeypatch):
    from discreet.errors import DiscreetError

    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("not a database")
    with pytest.raises(DiscreetError, match=r"ledger|database"):
        call(command, bad)
    assert sorted(os.listdir()) == ["text.txt"]
    assert Path("text.txt").read_text() == "not a database"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
@pytest.mark.parametrize("command", READ)
def test_a_file_that_may_not_be_written_is_a_sentence(command, file):
    file.chmod(0o400)
    result = run("ledger", command, file)
    assert result.returncode == 1
    assert "it may not be written. Give this user the right" in result.stderr


SERVICE = """
import sys
from discreet.ledger import Budget, Ledger
from discreet.accounting import Laplace
with Ledger(sys.argv[1]) as ledger:
    ledger.cap(Budget(epsilon=1), table="people")
    print("ready", flush=True)
    while True:
        receipt = ledger.spend(Laplace(10**9, 1), "why", table="people", key=str(ledger.head.sequence))
        ledger.record(receipt, b"1")
"""


def entries(address):
    """How many entries verify has seen."""
    return int(call("verify", address, "--quiet").split()[2])


@pytest.mark.process
@pytest.mark.parametrize("place", PLACES)
def test_reading_works_while_a_service_spends(place, tmp_path):
    with (
        nullcontext(tmp_path / "busy.sqlite") if place == "sqlite" else new_database() as address,
        subprocess.Popen([sys.executable, "-c", SERVICE, str(address)], stdout=subprocess.PIPE) as service,
    ):
        try:
            service.stdout.readline()
            first = entries(address)
            for command in READ * 3:
                assert call(command, address)
            # However busy the machine is: it spent while others read, and goes on.
            last = entries(address)
            assert first < last
            while entries(address) == last:
                sleep(0.05)
        finally:
            service.kill()


@needs_postgres
def test_a_ledger_in_postgres_and_no_password_on_the_screen():
    with new_database() as address:
        said = call("cap", address, "--epsilon", 1, "--table", "people")
        said += call("raise", address, "--epsilon", 2, "--table", "people", "--yes")
        said += "".join(call(command, address) for command in READ)
    assert "Began a new ledger.\n" in said
    assert "://" not in said
    wrong = run("ledger", "budget", "postgresql://ana:s3cret@127.0.0.1:1/none")
    assert wrong.returncode == 1
    assert "s3cret" not in wrong.stdout + wrong.stderr


# The page.


def test_the_commands_on_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("discreet ledger")]
    assert {line.split()[2] for line in commands} == {command.name for command in ledger_commands()}
    for line in commands:
        words = shlex.split(line, comments=True)[2:]
        if "dp-accounting" not in words or find_spec("dp_accounting"):
            end = words.index(">") if ">" in words else len(words)
            printed = call(*words[:end])
            for target in words[end + 1 :]:
                Path(target).write_text(printed)


def ledger_commands():
    from discreet.cli.ledger_commands import app as group

    return group.registered_commands
