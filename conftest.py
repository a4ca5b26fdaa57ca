"""What `make test` says of a change is about the change; `make test-long` searches for what nobody thought of.

`make test` tries the same examples of a law every time, and each test draws the same noise every time: the words that
the operating system would give come from a stream that starts at the test's name, or at the name of the fixture that
many tests share. A child process draws its own, and so does all of `make test-long` (`--hypothesis-profile=searching`).
Laws are checked for truth, not for speed: a busy machine must not fail them.
"""

import gc
import hashlib
import os
import threading

import pytest
from hypothesis import settings

pytest_plugins = ["support.selection", "pytester"]

settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("searching", deadline=None, print_blob=True)
settings.load_profile("steady")

# A fork has its parent's garbage and none of its threads: to collect a connection to DuckDB, which waits for threads it
# had, is a segmentation fault. So a fork leaves alone what was there before it.
os.register_at_fork(after_in_child=gc.freeze)


def pytest_collection_finish():
    """Thousands of tests and all modules stay to the end: they are not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


class Words:
    """Stands in for `os.urandom`: bytes that depend on a name and on how many were drawn since it was given."""

    def __init__(self):
        self.system, self.process, self.lock = os.urandom, os.getpid(), threading.Lock()
        self.name, self.drawn = None, 0

    def __call__(self, count):
        """So many bytes."""
        # A fork has the stream of its parent: two that draw the same are what no test should see.
        if self.name is None or os.getpid() != self.process:
            return self.system(count)
        with self.lock:
            self.drawn += 1
            start = f"{self.drawn} of {self.name}"
        return hashlib.shake_128(start.encode()).digest(count)

    def under(self, name):
        """While another stream is drawn from; then the first goes on."""
        before = self.name, self.drawn
        self.name, self.drawn = name, 0
        try:
            return (yield)
        finally:
            self.name, self.drawn = before


WORDS = Words()


def pytest_configure(config):
    """Stand in from the start."""
    if config.getoption("--hypothesis-profile", None) != "searching":
        os.urandom = WORDS


def pytest_unconfigure():
    """Stand down at the end."""
    os.urandom = WORDS.system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test has a stream of its own."""
    return (yield from WORDS.under(item.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """So has what many tests share, whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"
    return (yield from WORDS.under(name))


# Files whose tests are long and share little: each test may go to another worker.
APART = ("test_contributions.py", "test_hostile_requests.py", "test_kill.py", "test_mutants.py", "test_one_meaning.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file stay together, and so do those of Spark and of the page: what they share is started once."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::", 1)[0]
            if "[Spark" in nodeid or "-Spark" in nodeid or "/test_spark.py" in nodeid:
                return "Spark"
            if file.endswith(APART):
                return nodeid
            return "the page" if "tests/serve/page/" in nodeid else file

    return Together(config, log)
