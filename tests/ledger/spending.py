"""A program to be recorded: threads and processes spend from a real ledger, reveal, and record.

spending.py LEDGER HABIT ROUNDS THREADS PROCESSES    so many rounds in each thread, then ends without closing anything

What the world sees is written to LEDGER.revealed, a line each, when the ledger has promised that it lasts:

    capped
    held HOLD
    closed HOLD
    revealed WHY SEQUENCE HASH              what was paid with this entry
    recorded SEQUENCE HASH_OF_THE_ANSWER
"""

import os
import sys
from contextlib import contextmanager
from hashlib import sha256
from random import Random

from discreet.accounting.event import Laplace
from discreet.ledger import Budget, Ledger, connection, store
from support.processes import in_threads

BUDGET, EVENT = Budget(epsilon=1000), Laplace(scale=1000, sensitivity=1)
# The log is copied back after a dozen entries, or within one of the long answers.
TIDY = 2**15
# Within a page, over a few, and over so many that their writes are torn.
LENGTHS = (0, 20, 20, 20, 300, 6_000, 50_000)


def synced_now_and_then(durable):
    """Wrong: a commit is synced when the log is copied back, not before it is promised."""

    def on_connect(database, record):
        durable(database, record)
        database.execute("PRAGMA synchronous = NORMAL")

    return on_connect


@contextmanager
def marks_beside(ledger_file):
    """A function that shows a line to the world."""
    file = os.open(f"{ledger_file}.revealed", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        yield lambda *words: os.write(file, (" ".join(map(str, words)) + "\n").encode())
    finally:
        os.close(file)


def spend(ledger, mark, why, **options):
    """Pay, then reveal: the receipt."""
    receipt = ledger.spend(EVENT, why, table="people", **options)
    mark("revealed", why, receipt.sequence, receipt.head.hash.hex())
    return receipt


def reveal_then_spend(ledger, mark, why, **options):
    """Wrong: a power cut between the two hides a loss."""
    mark("revealed", why)
    return ledger.spend(EVENT, why, table="people", **options)


def record(ledger, mark, receipt, released):
    ledger.record(receipt, released)
    mark("recorded", receipt.sequence, sha256(released).hexdigest())


def session(ledger, mark, spend, why):
    """Set something aside, pay from it, give the rest back."""
    hold = ledger.reserve(EVENT, why, table="people")
    mark("held", hold)
    spend(ledger, mark, f"{why}-held", hold=hold)
    ledger.close_hold(hold)
    mark("closed", hold)


def work(ledger, mark, spend, worker, rounds):
    rng = Random(worker)
    for number in range(rounds):
        why = f"{worker}-{number}"
        receipt = spend(ledger, mark, why, key=why if number % 2 else None)
        record(ledger, mark, receipt, rng.randbytes(rng.choice(LENGTHS)))
        if number % 7 == 3:
            session(ledger, mark, spend, why)


def begin(ledger_file, mark):
    """A ledger with a budget."""
    ledger = Ledger(ledger_file)
    ledger.cap(BUDGET, table="people")
    mark("capped")
    return ledger


def others(how_many):
    """So many processes that go on as we do: their numbers, or none in each of them."""
    children = []
    for _ in range(how_many):
        children.append(os.fork())
        if children[-1] == 0:
            return []
    return children


def main(ledger_file, habit, rounds, threads, processes):
    store.CHECKPOINT_BYTES = TIDY
    if habit == "sync_now_and_then":
        connection._durable_sqlite = synced_now_and_then(connection._durable_sqlite)
    pay = reveal_then_spend if habit == "reveal_first" else spend
    children = others(int(processes) - 1)
    with marks_beside(ledger_file) as mark:
        ledger = begin(ledger_file, mark)
        in_threads(int(threads), lambda thread: work(ledger, mark, pay, f"{os.getpid()}-{thread}", int(rounds)))
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        # No goodbye: closing would copy the log back and remove it, and no power cut asks for leave.
        os._exit(max(codes, default=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
