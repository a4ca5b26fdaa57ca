"""Unmarked tests are quick: with DISCREET_CPU_SECONDS=4 one that takes more processor time fails."""

import resource
from time import process_time

import pytest
from numba.core.event import Listener, register

from support.selection import COMMANDS


class CpuLimit:
    """An unmarked test that takes more processor time than this fails.

    Counted are its fixtures and its call, in this process and in children that have ended; not what many tests share,
    nor what numba compiles, which happens once for each clone.
    """

    def __init__(self, seconds):
        self.seconds, self.begun, self.shared, self.depth = seconds, 0.0, 0.0, 0
        self.compiling = Compiling()

    def used(self):
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return process_time() + children.ru_utime + children.ru_stime

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        """The clock starts."""
        self.begun, self.shared, self.compiling.seconds = self.used(), 0.0, 0.0
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef):
        """What many tests share is nobody's."""
        if fixturedef.scope == "function" or self.depth:
            return (yield)
        self.depth += 1
        begun, compiled = self.used(), self.compiling.seconds
        try:
            return (yield)
        finally:
            self.depth -= 1
            self.shared += self.used() - begun - (self.compiling.seconds - compiled)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item):
        """A test that passes must also have been quick."""
        result = yield
        took = self.used() - self.begun - self.shared - self.compiling.seconds
        if took > self.seconds and not any(item.get_closest_marker(name) for name in COMMANDS):
            pytest.fail(
                f"{took:.1f} CPU seconds, and a test without a marker may take {self.seconds:g}: "
                "make it quicker, or mark it `slow` (docs/testing.md).",
                pytrace=False,
            )
        return result


class Compiling(Listener):
    """How long numba has compiled, as it tells its listeners; what is compiled within a compilation counts once."""

    def __init__(self):
        self.seconds, self.depth, self.begun = 0.0, 0, 0.0
        register("numba:compile", self)

    def on_start(self, event):
        """A compilation begins."""
        self.depth += 1
        if self.depth == 1:
            self.begun = process_time()

    def on_end(self, event):
        """It has ended."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += process_time() - self.begun
