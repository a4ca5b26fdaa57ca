"""Running the command as people run it."""

import subprocess
import sys

from typer.testing import CliRunner

from discreet.cli import app

SCHEMA = """
table: people
source: people.csv
privacy_unit: row
columns:
  age:   {type: integer, lower: 18, upper: 97, bins: [18, 30, 45, 65]}
  sex:   {values: [Female, Male], outside: drop, missing: drop}
  hours: {type: integer, lower: 0, upper: 60}
"""


def run(*arguments, **options):
    """What `discreet …` prints, and its exit code."""
    command = [sys.executable, "-m", "discreet", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def call(*arguments, text=None, width=80):
    """What a command prints, run in this process; an error is raised."""
    words, env = list(map(str, arguments)), {"COLUMNS": str(width)}
    return CliRunner().invoke(app, words, input=text, env=env, catch_exceptions=False).stdout
