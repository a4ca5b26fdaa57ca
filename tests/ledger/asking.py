"""A program to be recorded: does with a real ledger what each line read says, and prints how it went.

asking.py LEDGER

    hurry     do not wait long for others, in a ledger that is opened from now on
    open      the ledger, after closing it if it is open
    spend     and reveal
    record    the answer to the last spend
    tidy      after every entry, from now on
    believe   that an entry is durable though the disk has failed, from now on
"""

import gc
import os
import sys

from discreet.errors import DiscreetError, LedgerFailed
from discreet.ledger import connection, store
from ledger.spending import begin, marks_beside, record, spend

ANSWER = bytes(9000)
# What an error must not repeat.
WHY = "who-is-ill"


class Asked:
    """A ledger and the last receipt that it gave."""

    def __init__(self, ledger_file, mark):
        self._file, self._mark = ledger_file, mark
        self._ledger = self._receipt = None
        self._asked = 0

    def open(self):
        if self._ledger:
            self._ledger.close()
        self._ledger = None
        self._ledger = begin(self._file, self._mark)
        # A program that runs for long has no connections left from its beginning.
        gc.collect()

    def spend(self):
        self._asked += 1
        self._receipt = spend(self._ledger, self._mark, f"{WHY}-{os.getpid()}-{self._asked}")

    def record(self):
        record(self._ledger, self._mark, self._receipt, ANSWER)

    def hurry(self):
        connection.LOCK_TIMEOUT = 0.2

    def tidy(self):
        store.CHECKPOINT_BYTES = 1

    def believe(self):
        store.Store.append = believing(store.Store.append)


def believing(append):
    """Wrong: a sync that failed is not asked about again."""

    def believe(*arguments):
        try:
            return append(*arguments)
        except LedgerFailed:
            return True

    return believe


def outcome(act):
    try:
        act()
    except DiscreetError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def main(ledger_file):
    with marks_beside(ledger_file) as mark:
        asked = Asked(ledger_file, mark)
        for line in sys.stdin:
            print(outcome(getattr(asked, line.strip())), flush=True)
        # No goodbye: closing would copy the log back and remove it, and no power cut asks for leave.
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
