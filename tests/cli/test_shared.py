"""Two hospitals that share patients, set up in every way: they have one budget, or a refusal says how to set it."""

import re

import pytest

from cli.shell import call
from discreet.cli.ledger_address import SHARED, ledger_of
from discreet.cli.serve_commands import _address
from discreet.errors import BadParameter, BadSchema, BudgetExceeded, TableChanged
from discreet.ledger import Budget, Ledger

COUNT = "SELECT COUNT(*) FROM {} WHERE age >= 50"
BUDGET = ("--budget", 1, "--delta", 1e-9)


def hospital(folder, name, *shares, version=None):
    """A schema file beside its rows."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / f"{name}.csv").write_text("\n".join(["age", *(str(n % 100) for n in range(3_000)), ""]))
    lines = [f"table: {name}", f"source: {name}.csv", "privacy_unit: row"]
    lines += [f"shares_people_with: [{', '.join(shares)}]"] if shares else []
    lines += [f"version: {version}"] if version else []
    (folder / f"{name}.yaml").write_text("\n".join([*lines, "columns:", "  age: {type: integer, lower: 0, upper: 99}"]))
    return folder / f"{name}.yaml"


def ask(schema, epsilon, *more):
    return call("ask", schema, COUNT.format(schema.stem), "--epsilon", epsilon, *more)


def told(ledger):
    """How often something was paid for in a ledger; none is begun."""
    return len(Ledger(ledger, create=False).history())


# Who declares that people are shared: both, the first, the second; or both with a third.
DECLARED = {
    "both": ({"a": ["b"], "b": ["a"]}, "ab"),
    "first": ({"a": ["b"], "b": []}, "ab"),
    "second": ({"a": [], "b": ["a"]}, "ab"),
    "third": ({"a": [], "b": [], "c": ["a", "b"]}, "ab"),
    "chain": ({"a": ["c"], "c": [], "b": ["c"]}, "ab"),
}


@pytest.mark.parametrize("again", [BUDGET, ()], ids=["its own budget", "no budget"])
@pytest.mark.parametrize("how", DECLARED)
def test_schemas_in_one_folder_have_one_ledger_and_one_budget(tmp_path, how, again):
    declared, (first, second) = DECLARED[how]
    files = {name: hospital(tmp_path, name, *shares) for name, shares in declared.items()}
    ask(files[first], 0.9, *BUDGET)
    with pytest.raises(BudgetExceeded):
        ask(files[second], 0.9, *again)
    assert [file.name for file in tmp_path.glob("*.sqlite")] == [SHARED]
    assert told(tmp_path / SHARED) == 1
    ask(files[second], 0.1, *again)
    with Ledger(tmp_path / SHARED, create=False) as ledger:
        assert ledger.caps == {next(iter(ledger.caps)): Budget(epsilon=1, delta=1e-9)}
        assert set(next(iter(ledger.caps)).tables) == set(declared)


def test_tables_that_share_nobody_keep_ledgers_of_their_own(tmp_path):
    for name in "ab":
        ask(hospital(tmp_path, name), 0.9, *BUDGET)
    assert sorted(file.name for file in tmp_path.glob("*.sqlite")) == ["a.ledger.sqlite", "b.ledger.sqlite"]


def test_schemas_in_different_folders_must_say_where_their_one_ledger_is(tmp_path):
    a, b = hospital(tmp_path / "one", "a", "b"), hospital(tmp_path / "two", "b", "a")
    for schema in (a, b):
        with pytest.raises(BadParameter, match="say --ledger ADDRESS, the same one for all of them"):
            ask(schema, 0.9, *BUDGET)
    assert not list(tmp_path.rglob("*.sqlite"))
    common = ("--ledger", tmp_path / "common.sqlite")
    ask(a, 0.9, *BUDGET, *common)
    with pytest.raises(BudgetExceeded):
        ask(b, 0.9, *BUDGET, *common)
    assert told(tmp_path / "common.sqlite") == 1


@pytest.mark.parametrize("silent", ["a", "b"])
def test_a_common_ledger_remembers_who_shares_people_where_only_one_schema_says_so(tmp_path, silent):
    a = hospital(tmp_path / "one", "a", *(() if silent == "a" else "b"))
    b = hospital(tmp_path / "two", "b", *(() if silent == "b" else "a"))
    common = ("--ledger", tmp_path / "common.sqlite")
    ask(a, 0.9, *BUDGET, *common)
    with pytest.raises(BudgetExceeded):
        ask(b, 0.9, *BUDGET, *common)
    assert told(tmp_path / "common.sqlite") == 1


def test_a_cap_for_each_table_by_hand_is_refused_with_the_command_that_helps(tmp_path):
    files = [hospital(tmp_path, "a", "b"), hospital(tmp_path, "b", "a")]
    common = tmp_path / "common.sqlite"
    for name in "ab":
        call("ledger", "cap", common, "--epsilon", 1, "--delta", 1e-9, "--table", name)
    for schema in files:
        with pytest.raises(BadParameter) as refused:
            ask(schema, 0.9, "--ledger", common)
    assert told(common) == 0
    command = re.search(r"discreet (ledger cap .*)\.", str(refused.value))[1]
    call(*command.replace("LEDGER", str(common)).split())
    ask(files[0], 0.9, "--ledger", common)
    with pytest.raises(BudgetExceeded):
        ask(files[1], 0.9, "--ledger", common)


def test_a_ledger_from_before_the_declaration_is_not_forgotten(tmp_path):
    a, b = hospital(tmp_path, "a"), hospital(tmp_path, "b")
    ask(a, 0.9, *BUDGET)
    b = hospital(tmp_path, "b", "a")
    for schema in (a, b):
        with pytest.raises(BadParameter, match=r"a\.ledger\.sqlite was used before") as refused:
            ask(schema, 0.9, *BUDGET)
    assert not (tmp_path / SHARED).exists()
    command = re.search(r"discreet (ledger cap .*?)\)", str(refused.value))[1]
    call(*command.split())
    with pytest.raises(BudgetExceeded):
        ask(b, 0.9, "--ledger", tmp_path / "a.ledger.sqlite")
    ask(b, 0.1, "--ledger", tmp_path / "a.ledger.sqlite")


def test_the_old_ledger_is_theirs_once_it_has_one_budget_for_all(tmp_path):
    a = hospital(tmp_path, "a")
    ask(a, 0.1, *BUDGET)
    b, old = hospital(tmp_path, "b", "a"), tmp_path / "a.ledger.sqlite"
    call("ledger", "cap", old, "--epsilon", 1, "--delta", 1e-9, "--table", "a", "--table", "b")
    assert ledger_of(a, None) == ledger_of(b, None) == str(old)
    ask(b, 0.8)
    with pytest.raises(BudgetExceeded):
        ask(a, 0.8)


@pytest.mark.parametrize("gone", ["line", "schema of the other"])
def test_what_the_old_ledger_was_told_is_remembered_too(tmp_path, gone):
    a = hospital(tmp_path, "a")
    ask(a, 0.1, *BUDGET)
    b, old = hospital(tmp_path, "b", "a"), tmp_path / "a.ledger.sqlite"
    call("ledger", "cap", old, "--epsilon", 1, "--delta", 1e-9, "--table", "a", "--table", "b")
    ask(b, 0.8)
    if gone == "line":
        b = hospital(tmp_path, "b", version=2)
    else:
        a.unlink()
        b = hospital(tmp_path, "b", version=2)
    with pytest.raises((BudgetExceeded, BadParameter)):
        ask(b, 0.9, *BUDGET)
    assert not (tmp_path / "b.ledger.sqlite").exists()


@pytest.mark.parametrize("flags", [(), ("--table", "a", "--table", "b")], ids=["of everything", "of both"])
def test_a_cap_in_one_of_two_old_ledgers_does_not_make_the_other_forgotten(tmp_path, flags):
    a, b = hospital(tmp_path, "a"), hospital(tmp_path, "b")
    ask(b, 0.9, *BUDGET)
    call("ledger", "cap", tmp_path / "a.ledger.sqlite", "--epsilon", 1, "--delta", 1e-9, *flags)
    b = hospital(tmp_path, "b", "a")
    for schema in (a, b):
        with pytest.raises(BadParameter, match="were used before"):
            ask(schema, 0.8)


def test_two_ledgers_from_before_the_declaration_are_not_forgotten(tmp_path):
    """No one of them counts both, so the same sentence on both sides says how to count all in a third."""
    a, b = hospital(tmp_path, "a"), hospital(tmp_path, "b")
    for schema in (a, b):
        ask(schema, 0.4, *BUDGET)
    b, said = hospital(tmp_path, "b", "a"), set()
    for schema in (a, b):
        with pytest.raises(BadParameter, match=r"a\.ledger\.sqlite and b\.ledger\.sqlite were used before") as refused:
            ask(schema, 0.4, *BUDGET)
        said.add(str(refused.value).replace(f'table "{schema.stem}"', "table"))
    assert len(said) == 1
    assert not (tmp_path / SHARED).exists()
    command = re.search(r"discreet (ledger cap .*?)\. From", str(refused.value))[1]
    call(*command.replace("--epsilon LEFT --delta LEFT", "--epsilon 0.2 --delta 1e-9").split())
    for schema in (a, b):
        with pytest.raises(BudgetExceeded):
            ask(schema, 0.4)
    ask(a, 0.1)
    assert [told(tmp_path / name) for name in ("a.ledger.sqlite", "b.ledger.sqlite", SHARED)] == [1, 1, 1]


@pytest.mark.parametrize("gone", ["the line", "the file"])
@pytest.mark.parametrize("declares", ["first", "other"])
def test_taking_the_declaration_back_does_not_begin_at_zero(tmp_path, gone, declares):
    """It is remembered for every table that it named, also for one that was never asked."""
    a = hospital(tmp_path, "a", *("b" if declares == "first" else ""))
    b = hospital(tmp_path, "b", *("a" if declares == "other" else ""))
    ask(a, 0.9, *BUDGET)
    if gone == "the line":
        a, b = hospital(tmp_path, "a", version=2), hospital(tmp_path, "b", version=2)
    else:
        (a if declares == "first" else b).unlink()
    for schema in (a, b):
        if schema.exists():
            with pytest.raises(BudgetExceeded):
                ask(schema, 0.9, *BUDGET)
    assert [file.name for file in tmp_path.glob("*.sqlite")] == [SHARED]
    assert told(tmp_path / SHARED) == 1


@pytest.mark.parametrize("name", [SHARED, "other.ledger.sqlite"])
def test_a_ledger_beside_that_cannot_be_read_is_not_taken_for_one_that_says_nothing(tmp_path, name):
    """It may remember that these people are shared: a new budget would begin at zero for them."""
    a = hospital(tmp_path, "a")
    (tmp_path / name).write_bytes(b"no ledger at all" * 100)
    with pytest.raises(BadParameter, match=f"{name} lies beside the schema and cannot be read"):
        ask(a, 0.9, *BUDGET)
    assert not (tmp_path / "a.ledger.sqlite").exists()
    ask(a, 0.9, *BUDGET, "--ledger", tmp_path / "own.sqlite")


def test_a_misspelt_table_is_named_with_what_was_meant(tmp_path):
    north = hospital(tmp_path, "north", "suoth")
    hospital(tmp_path, "south")
    with pytest.raises(BadParameter, match=r'declares "suoth" \(did you mean "south"\?\)'):
        ask(north, 0.9, *BUDGET)


def test_what_is_said_of_a_missing_budget_is_the_command_that_helps(tmp_path):
    """Also if only the other schema says that people are shared."""
    a = hospital(tmp_path, "a")
    hospital(tmp_path, "b", "a")
    with pytest.raises(BadParameter) as refused:
        call("budget", a)
    call(*re.search(r"discreet (ledger cap .*)", str(refused.value))[1].split())
    ask(a, 0.1)


def test_a_server_of_both_has_their_ledger(tmp_path):
    files = [hospital(tmp_path, "a", "b"), hospital(tmp_path, "b")]
    assert _address(files, None) == _address(files[:1], None) == str(tmp_path / SHARED)
    with pytest.raises(BadParameter, match="--ledger"):
        _address([files[0], hospital(tmp_path, "c")], None)


def test_a_schema_that_cannot_be_read_is_in_nobodys_way_unless_it_may_share_people(tmp_path):
    a = hospital(tmp_path, "a")
    for harmless in ("columns: {", "# shares_people_with: [a]\ncolumns: {", "see shares_people_with"):
        (tmp_path / "b.yaml").write_text(harmless)
        assert ledger_of(a, None) == str(tmp_path / "a.ledger.sqlite")
    for text in (
        "shares_people_with: [a]\ncolumns: {",
        '{table: "b#1", shares_people_with: [a], uper: 1}',
        '{"table": "b", "shares_people_with" : ["a"], "uper": 1}',
    ):
        (tmp_path / "b.yaml").write_text(text)
        with pytest.raises(BadSchema, match=r"b\.yaml beside a\.yaml says shares_people_with and cannot be read"):
            ask(a, 0.9, *BUDGET)
    assert not list(tmp_path.glob("*.sqlite"))


# A table that changed.


def test_a_file_that_grew_is_refused_and_its_owner_declares_a_version(tmp_path):
    a = hospital(tmp_path, "a")
    assert "measured" in ask(a, 0.2, *BUDGET)
    with (tmp_path / "a.csv").open("a") as rows:
        rows.writelines("75\n" for _ in range(6_000))
    for command in (("ask", "--epsilon", 0.2), ("ask",), ("plan", "--epsilon", 0.2)):
        with pytest.raises(TableChanged, match=r'no longer what was asked as version "1".*version: 2'):
            call(command[0], a, COUNT.format("a"), *command[1:])
    with pytest.raises(TableChanged):
        call("known", a)
    assert told(tmp_path / "a.ledger.sqlite") == 1
    a.write_text(a.read_text().replace("table: a", "table: a\nversion: 2"))
    assert "Nothing" in call("known", a)
    answer = ask(a, 0.2)
    assert 7_000 < int(re.match(r"([\d,]+) ±", answer)[1].replace(",", "")) < 8_000
    assert told(tmp_path / "a.ledger.sqlite") == 2
    a.write_text(a.read_text().replace("version: 2", "version: 1"))
    with pytest.raises(TableChanged, match="versions never come back"):
        ask(a, 0.2)


def test_a_file_that_was_only_touched_is_confirmed_by_its_owner(tmp_path):
    a = hospital(tmp_path, "a")
    ask(a, 0.2, *BUDGET)
    (tmp_path / "a.csv").touch()
    with pytest.raises(TableChanged, match="discreet schema confirm"):
        ask(a, 0.2)
    assert 'still is version "1"' in call("schema", "confirm", a)
    assert "known" in call("ask", a, COUNT.format("a"))
