"""The command as a whole, and its small commands, run as people run them."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli.shell import run
from discreet.cli import LAB, app


def test_explain_says_the_odds_the_test_and_the_families():
    result = CliRunner().invoke(app, ["explain", "--epsilon", "1"])
    assert result.exit_code == 0
    flat = " ".join(result.output.split())
    for piece in ("The promise at epsilon 1", "factor of 2.72", "13.6 %", "10 people, epsilon 10"):
        assert piece in flat


def test_explain_knows_delta_and_warns_of_too_few_rows():
    result = CliRunner().invoke(app, ["explain", "--epsilon", "0.01", "--delta", "1e-9", "--rows", "100"])
    flat = " ".join(result.output.split())
    assert "delta 1e-09" in flat
    assert "Warning epsilon 0.01 is too small for 100 rows" in flat


@pytest.mark.parametrize("bad", ["0", "-1", "nan", "inf", "1e-320"])
def test_a_bad_epsilon_is_one_sentence_and_exit_code_two(bad):
    result = run("explain", f"--epsilon={bad}")
    assert result.returncode == 2
    assert result.stderr.startswith("BadParameter: epsilon is ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("bad", ["one", "True"])
def test_an_epsilon_that_is_no_number_is_refused_too(bad):
    result = run("explain", f"--epsilon={bad}")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_help_lists_the_commands():
    result = run("--help")
    assert result.returncode == 0
    assert "explain" in result.stdout
    assert "demo" in result.stdout
    assert "schema" in result.stdout
    assert "ledger" in result.stdout


def test_a_command_of_the_product_does_not_load_the_lab():
    code = """
import sys
from discreet.cli import LAB, app
try:
    app(["explain", "--epsilon", "1"])
except SystemExit:
    pass
assert not {where.split(":")[0] for where in LAB.values()} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("name", LAB)
def test_the_lab_gives_its_commands_by_name(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert name in result.output


def test_a_command_of_the_lab_is_suggested_too():
    assert "Did you mean 'attack'?" in run("atack").stderr


HEAVY = ["numpy", "scipy", "numba", "dp_accounting", "flint", "sqlalchemy"]


@pytest.mark.parametrize("module", ["discreet.cli", "discreet.accounting", "discreet.meaning"])
def test_importing_is_light(module):
    code = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
