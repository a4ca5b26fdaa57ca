"""Threads and processes that all begin at one moment.

Processes are forked, so that they start in milliseconds and know what the test knows. Whoever forks must not have a
ledger open, unless that is what is tested.
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from threading import Barrier
from traceback import format_exc

from discreet.errors import BudgetExceeded

FORK = get_context("fork")
# Longer than anything here takes, in seconds: a test that hangs should fail.
PATIENCE = 120


class Child:
    """A forked process that does one thing and tells what came of it."""

    def __init__(self, work, *arguments, forks=False):
        self._forks = forks
        self._mine, theirs = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=_tell, args=(theirs, work, arguments, forks), daemon=not forks)
        self.process.start()
        # Only the child may keep its end open: if it dies, we read the end of the pipe instead of waiting for ever.
        theirs.close()

    def result(self, patience=PATIENCE):
        """What it returned; what it raised is raised here."""
        assert self._mine.poll(patience), "the process hangs"
        try:
            succeeded, result = self._mine.recv()
        except EOFError:
            succeeded, result = False, "the process ended before it could say anything"
        self.process.join()
        assert succeeded, f"{result} (exit code {self.process.exitcode})"
        return result

    def kill(self):
        """kill -9, also of what it has forked, and wait until it is dead."""
        if self._forks:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()


def _tell(pipe, work, arguments, forks):
    if forks:
        os.setpgid(0, 0)
    try:
        pipe.send((True, work(*arguments)))
    except BaseException:
        pipe.send((False, format_exc()))


@contextmanager
def child(work, *arguments, forks=False):
    """A process that does not outlive the block; it says if it `forks` on its own."""
    it = Child(work, *arguments, forks=forks)
    try:
        yield it
    finally:
        it.kill()


def apart(work, *arguments):
    """What `work` gives in a process of its own: whatever it opens, this process never had it open."""
    with child(work, *arguments) as it:
        return it.result()


def in_threads(count, work):
    """What `work(number)` gives in each of so many threads."""
    start = Barrier(count, timeout=PATIENCE)

    def begin(number):
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def in_processes(count, work):
    """What `work(number, everybody_is_there)` gives in each of so many processes; each must wait for the others."""
    start = FORK.Barrier(count, timeout=PATIENCE)
    children = [Child(work, number, start.wait) for number in range(count)]
    try:
        return [one.result() for one in children]
    finally:
        for one in children:
            one.kill()


def crowd(open_ledger, ask, *, processes, threads, requests):
    """All that is granted to a crowd in which every thread of every process asks so often, all at once."""

    def granted(ledger):
        try:
            return [ask(ledger)]
        except BudgetExceeded:
            return []

    def process(_, everybody_is_there):
        with open_ledger() as ledger:
            everybody_is_there()
            found = in_threads(threads, lambda _: [grant for _ in range(requests) for grant in granted(ledger)])
            return [grant for grants in found for grant in grants]

    return [grant for grants in in_processes(processes, process) for grant in grants]


class Elsewhere:
    """A ledger that is open in another process; its methods are called there."""

    def __init__(self, open_ledger):
        self._mine, theirs = FORK.Pipe()
        self.process = FORK.Process(target=_obey, args=(open_ledger, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def __getattr__(self, name):
        def call(*arguments, **named):
            self._mine.send((name, arguments, named))
            assert self._mine.poll(PATIENCE), "the process hangs"
            result = self._mine.recv()
            if isinstance(result, Exception):
                raise result
            return result

        return call

    def kill(self):
        """kill -9, and wait until it is dead."""
        self.process.kill()
        self.process.join()


def _obey(open_ledger, pipe):
    with open_ledger() as ledger:
        while True:
            name, arguments, named = pipe.recv()
            try:
                member = getattr(ledger, name)
                pipe.send(member(*arguments, **named) if callable(member) else member)
            except Exception as error:
                pipe.send(error)
