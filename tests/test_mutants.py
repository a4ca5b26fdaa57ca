"""Wrong versions of the code, each of which some test must catch: tests/mutants/*.toml lists them.

A mutant replaces a piece of a file that occurs there exactly once. `make test` checks that the list still fits the
code; `make test-long` builds every mutant in a copy of the source and runs the tests that should fail on it.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTANTS = [
    pytest.param(mutant, id=f"{page.stem}: {mutant['name']}")
    for page in sorted((ROOT / "tests" / "mutants").glob("*.toml"))
    for mutant in tomllib.loads(page.read_text())["mutant"]
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_list_fits_the_code(mutant):
    assert set(mutant) == {"name", "file", "old", "new", "caught_by"}
    assert (ROOT / mutant["file"]).read_text().count(mutant["old"]) == 1
    assert mutant["old"] != mutant["new"]
    for test in mutant["caught_by"]:
        path, _, name = test.partition("::")
        name = name.rpartition("::")[2].partition("[")[0]
        assert not name or f"def {name}(" in (ROOT / path).read_text(), test


def run_on(mutant, folder):
    """The exit code of the tests that should catch a mutant, and what they print."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    file = folder / mutant["file"]
    file.write_text(file.read_text().replace(mutant["old"], mutant["new"]))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant["caught_by"]]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900)
    return done.returncode, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_is_caught(mutant, tmp_path):
    code, printed = run_on(mutant, tmp_path)
    assert code == 1, printed


@pytest.mark.long
@pytest.mark.parametrize("test", sorted({test for mutant in MUTANTS for test in mutant.values[0]["caught_by"]}))
def test_what_catches_a_mutant_passes_without_it(test, tmp_path):
    harmless = {"file": "src/discreet/errors.py", "old": "", "new": "", "caught_by": [test]}
    code, printed = run_on(harmless, tmp_path)
    assert code == 0, printed
