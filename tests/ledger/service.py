"""A service under load, made to be killed: it pays, reveals and records, and keeps a diary that outlives it.

The right service and wrong ones differ in how they answer one request; what is checked after a kill is the same.
"""

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import uniform
from time import sleep

from discreet.accounting.event import Laplace
from discreet.errors import AnswerLost
from discreet.ledger import Budget, Ledger, verify
from support.processes import FORK, PATIENCE, apart, child, in_threads

THREADS = 4
# A million requests fit.
BUDGET, EVENT = Budget(epsilon=1000), Laplace(scale=1000, sensitivity=1)


class Diary:
    """What a service did with which key. A line that was written is there after kill -9, and whole."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.touch()

    @contextmanager
    def writing(self):
        """A function that writes a line; nothing of it waits in this process."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            yield lambda did, key: os.write(file, f"{did} {key}\n".encode())
        finally:
            os.close(file)

    def read(self):
        """The keys of all that was asked, revealed and recorded."""
        keys = defaultdict(set)
        for line in self.path.read_text().splitlines():
            did, key = line.split()
            keys[did].add(key)
        return keys


def spend(ledger, key):
    return ledger.spend(EVENT, "load", table="people", key=key)


def answer_of(key):
    """What is released for a request."""
    return f"the answer to {key}".encode()


def pay_reveal_record(ledger, write, key):
    """What a service should do with a request."""
    write("asked", key)
    receipt = spend(ledger, key)
    write("revealed", key)
    if receipt.released is None:
        ledger.record(receipt, answer_of(key))
    write("recorded", key)


def reveal_then_pay(ledger, write, key):
    """Wrong: a crash between the two hides a loss."""
    write("asked", key)
    write("revealed", key)
    ledger.record(spend(ledger, key), answer_of(key))
    write("recorded", key)


# In each forked process a new one: a pool has no thread before its first task.
_writer = ThreadPoolExecutor(1)


def pay_behind(ledger, write, key):
    """Wrong: the spend is on its way to the disk when the answer is revealed."""
    write("asked", key)
    paid = _writer.submit(spend, ledger, key)
    write("revealed", key)
    ledger.record(paid.result(), answer_of(key))
    write("recorded", key)


def pay_ahead(ledger, write, key):
    """Wrong: a crash loses the price of many requests, not of one."""
    keys = [f"{key}-{number}" for number in range(20)]
    receipts = [spend(ledger, one) for one in keys]
    for one, receipt in zip(keys, receipts, strict=True):
        write("revealed", one)
        ledger.record(receipt, answer_of(one))


def serve(address, diary, life, answer, ready):
    """Open the ledger and answer requests until somebody kills us."""
    with Ledger(address) as ledger, diary.writing() as write:
        ledger.cap(BUDGET, table="people")
        ready.send_bytes(b"serving")

        def client(thread):
            for number in count():
                answer(ledger, write, f"{life}-{thread}-{number}")

        in_threads(THREADS, client)


def killed_while_it_serves(address, diary, life, answer=pay_reveal_record):
    """A life of the service that ends soon after it has begun to serve."""
    hears, says = FORK.Pipe(duplex=False)
    with child(serve, address, diary, life, answer, says) as service:
        says.close()
        assert hears.poll(PATIENCE), "the service does not start"
        sleep(uniform(0.001, 0.060))
        assert service.process.is_alive(), service.result()


def killed_while_it_opens(address, diary, life, answer=pay_reveal_record):
    """A life of the service that most often ends before it has begun to serve."""
    _hears, says = FORK.Pipe(duplex=False)
    with child(serve, address, diary, life, answer, says):
        sleep(uniform(0, 0.120))


def broken_promises(address, diary, kills):
    """What is wrong with a ledger after so many kills, as sentences. It must open by itself.

    It is opened in a process of its own, so that the processes to come are forked from one that never had it open.
    """
    return apart(_broken_promises, address, diary, kills)


def _broken_promises(address, diary, kills):
    did = diary.read()
    with Ledger(address) as ledger:
        ledger.cap(BUDGET, table="people")
        before = {spend.key: spend for spend in ledger.history()}
        again = {key: repeated(ledger, key) for key in did["asked"] - did["recorded"]}
        after = ledger.history()
    verify(address)
    charged = {spend.key for spend in after}
    answers = {spend.key: spend.released for spend in after}
    broken = {
        "revealed and not paid": did["revealed"] - before.keys(),
        "recorded and forgotten": {key for key in did["recorded"] if answers.get(key) != answer_of(key)},
        "more lost than in flight": sum(answer is None for answer in answers.values()) > THREADS * kills,
        "charged twice": len(after) != len(charged) or {key for key, new in again.items() if new and key in before},
        "forgotten": before.keys() - charged,
    }
    return [promise for promise, keys in broken.items() if keys]


def repeated(ledger, key):
    """Ask again with the same key and answer if it was not charged before: whether that was so."""
    try:
        receipt = spend(ledger, key)
    except AnswerLost:
        return False
    if receipt.released is None:
        ledger.record(receipt, answer_of(key))
        return True
    assert receipt.released == answer_of(key)
    return False
