"""The pytest plugin behind `make test`, `make test-all` and `make test-long` (docs/testing.md).

A test without a marker runs in `make test`. A marker says why a test does not: pyproject.toml registers them, and a run
says at its end how many tests it left out for which of them. An unmarked test may take a few CPU seconds; with
DISCREET_CPU_SECONDS=4, as in CI, one that takes more fails. `--part` chooses a part of the long run.
"""

import os
from collections import Counter

import pytest

from support.needs import NEEDED, everything_is_required, missing

# A test that has several markers is counted under the first of these.
COMMANDS = {"long": "make test-long"} | dict.fromkeys(
    ("browser", "spark", "postgres", "server", "process", "slow"), "make test-all"
)

# The parts of `make test-long`, each at most 20 minutes on two processors; `rest` is what is in none of these folders.
PARTS = {
    "attack": ("tests/lab/attack",),
    "curator": ("tests/curator",),
    "learn": ("tests/learn", "tests/lab/textbook"),
    "ledger": ("tests/ledger",),
    "noise": ("tests/noise", "tests/mechanism"),
    "query": ("tests/query", "tests/estimate", "tests/plan"),
    "release": ("tests/release", "tests/model"),
    "reproduce": ("tests/lab/lectures", "tests/lab/demo"),
    "serve": ("tests/serve", "tests/cli"),
    "source": ("tests/source", "tests/schema"),
    "mutants-1": (),
    "mutants-2": (),
    "mutants-3": (),
    "rest": (),
}
MUTANTS, MUTANT_PARTS = "tests/test_mutants.py", 3


def part_of(nodeid: str, place: int = 0) -> str:
    """The part of the long run that a test belongs to; `place` is its number among those of its file."""
    path = nodeid.split("::", 1)[0]
    if path == MUTANTS:
        return f"mutants-{place % MUTANT_PARTS + 1}"
    return next((part for part, roots in PARTS.items() if any(path.startswith(f"{r}/") for r in roots)), "rest")


def pytest_addoption(parser):
    """`--part`, for the long run."""
    parser.addoption("--part", choices=sorted(PARTS), help="only this part of all tests, as `make test-long` runs them")


def pytest_configure(config):
    """Count what is left out, of which the workers tell the one that reports."""
    config.pluginmanager.register(LeftOut(config), "discreet-left-out")
    if limit := os.environ.get("DISCREET_CPU_SECONDS"):
        from support.cpu_limit import CpuLimit

        config.pluginmanager.register(CpuLimit(float(limit)), "discreet-cpu-limit")


def pytest_collection_modifyitems(config, items):
    """Keep the tests of the part that was asked for."""
    wanted = config.getoption("--part")
    if wanted is None:
        return
    seen = Counter()
    chosen, others = [], []
    for item in items:
        path = item.nodeid.split("::", 1)[0]
        part = part_of(item.nodeid, seen[path])
        seen[path] += 1
        (chosen if part == wanted else others).append(item)
    items[:] = chosen
    config.pluginmanager.get_plugin("discreet-left-out").quiet = True
    config.hook.pytest_deselected(items=others)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A marked test needs what its marker stands for."""
    for name, needed in NEEDED.items():
        if item.get_closest_marker(name) and (absent := missing(*needed)):
            if everything_is_required():
                pytest.fail(f"DISCREET_REQUIRE_ALL=1 and not installed: {', '.join(absent)}", pytrace=False)
            pytest.skip(f"not installed: {', '.join(absent)}")


class LeftOut:
    """How many tests a choice of markers (-m) leaves out, and which command runs them."""

    def __init__(self, config):
        self.config, self.count, self.quiet = config, Counter(), False

    def pytest_deselected(self, items):
        """Count them under their first marker."""
        for item in items:
            self.count[next((name for name in COMMANDS if item.get_closest_marker(name)), "")] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        """A worker has ended: all of them have collected the same."""
        self.count = Counter(getattr(node, "workeroutput", {}).get("left_out", self.count))

    def pytest_sessionfinish(self):
        """A worker tells."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left_out"] = {} if self.quiet else dict(self.count)

    def pytest_terminal_summary(self, terminalreporter):
        """One line for each command."""
        if self.quiet or not self.config.getoption("-m"):
            return
        for command in dict.fromkeys(COMMANDS.values()):
            found = {name: self.count[name] for name in COMMANDS if COMMANDS[name] == command and self.count[name]}
            if found:
                kinds = ", ".join(f"{number:,} {name}" for name, number in found.items())
                terminalreporter.write_line(f"left out: {sum(found.values()):,} tests ({kinds}); {command} runs them")
