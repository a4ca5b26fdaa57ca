"""Markers are registered and documented, every test is in one part of the long run, a run says what it left out."""

import re
from pathlib import Path

import pytest

from support.needs import NEEDED
from support.selection import COMMANDS, MUTANT_PARTS, PARTS, part_of

ROOT = Path(__file__).parents[2]
# What our tests do without loads quickly.
QUIET = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest")


def test_every_marker_is_registered_and_documented():
    listed = re.search(r"^markers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), flags=re.M | re.S)
    page = (ROOT / "docs" / "testing.md").read_text()
    assert set(re.findall(r'"(\w+):', listed[1])) == set(COMMANDS)
    assert not [name for name in COMMANDS if f"| `{name}` |" not in page]
    assert set(NEEDED) <= set(COMMANDS)


def test_the_makefile_runs_every_part_and_leaves_out_every_marker():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^PARTS *:= (.*)$", makefile, flags=re.M)[1].split() == list(PARTS)
    assert re.search(r"^QUICK *:= not \((.*)\)$", makefile, flags=re.M)[1].split(" or ") == list(COMMANDS)


def test_every_test_is_in_one_part():
    folders = [folder for part in PARTS.values() for folder in part]
    assert len(set(folders)) == len(folders)
    assert not [folder for folder in folders if not (ROOT / folder).is_dir()]
    assert part_of("tests/ledger/test_kill.py::test_a") == "ledger"
    assert part_of("tests/test_public.py::test_a") == part_of("src/discreet/answer.py::discreet.answer") == "rest"
    assert {part_of("tests/test_mutants.py::test_a", place) for place in range(9)} == {
        f"mutants-{number + 1}" for number in range(MUTANT_PARTS)
    }


@pytest.fixture
def project(pytester):
    """A small project with our plugin."""
    pytester.makeconftest('pytest_plugins = ["support.selection"]')
    pytester.makeini(
        f"[pytest]\npythonpath = {ROOT / 'tests'}\nmarkers =\n" + "".join(f"  {name}: a marker\n" for name in COMMANDS)
    )
    return pytester


def test_a_run_says_what_it_left_out(project):
    project.makepyfile(
        """
        import pytest

        def test_quick(): pass

        @pytest.mark.slow
        def test_slow(): pass

        @pytest.mark.parametrize("place", range(3))
        @pytest.mark.postgres
        @pytest.mark.long
        def test_long(place): pass
        """
    )
    for workers in ("0", "1"):
        found = project.runpytest_subprocess("-m", "not (long or slow)", "-n", workers, *QUIET)
        found.assert_outcomes(passed=1, deselected=4 if workers == "0" else 0)
        found.stdout.fnmatch_lines(
            ["left out: 3 tests (3 long); make test-long runs them", "left out: 1 tests (1 slow); make test-all runs*"]
        )
    project.runpytest_subprocess(*QUIET).stdout.no_fnmatch_line("left out*")


BUSY = """
import time
import pytest

def work(seconds):
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass

@pytest.fixture(scope="module")
def shared():
    work(0.4)

@pytest.fixture
def own():
    work(0.4)

def test_what_many_share_is_free(shared): pass

def test_its_own_fixture_counts(own): pass

def test_its_call_counts(): work(0.4)

@pytest.mark.slow
def test_a_marker_permits_it(): work(0.4)
"""


@pytest.mark.slow
def test_an_unmarked_test_that_takes_long_fails_where_it_is_asked_for(project, monkeypatch):
    project.makepyfile(BUSY)
    project.runpytest_subprocess(*QUIET).assert_outcomes(passed=4)
    monkeypatch.setenv("DISCREET_CPU_SECONDS", "0.3")
    found = project.runpytest_subprocess(*QUIET)
    found.assert_outcomes(passed=2, failed=2)
    found.stdout.fnmatch_lines(["*0.4 CPU seconds, and a test without a marker may take 0.3*"])


def test_what_a_marker_stands_for_is_skipped_or_required(project, monkeypatch):
    project.makepyfile("import pytest\n\n@pytest.mark.spark\ndef test_a(): pass\n")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("DISCREET_REQUIRE_ALL", raising=False)
    project.runpytest_subprocess(*QUIET).assert_outcomes(skipped=1)
    monkeypatch.setenv("DISCREET_REQUIRE_ALL", "1")
    project.runpytest_subprocess(*QUIET).assert_outcomes(errors=1)
