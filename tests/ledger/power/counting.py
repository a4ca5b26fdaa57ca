"""A program to be recorded: counts in an SQLite table, and reveals each number after it was committed.

counting.py DATABASE JOURNAL_MODE SYNCHRONOUS HOW_MANY    counts so far, then ends without closing anything
counting.py DATABASE JOURNAL_MODE SYNCHRONOUS ask         tries a number at each line read, and prints how it went
"""

import os
import sqlite3
import sys
from collections.abc import Iterator

# A row fills a third of a page, and few pages make a checkpoint: a short run sees everything happen.
PAYLOAD = bytes(range(256)) * 5
CHECKPOINT_EVERY = 20


def connect(database: str, journal_mode: str, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={journal_mode}")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_EVERY}")
    connection.execute("CREATE TABLE IF NOT EXISTS number (i INTEGER PRIMARY KEY, payload BLOB)")
    return connection


def insert(connection: sqlite3.Connection, i: int, marks: int) -> None:
    connection.execute("INSERT INTO number VALUES (?, ?)", (i, PAYLOAD))
    os.write(marks, b"%d\n" % i)


def attempts(connection: sqlite3.Connection, marks: int) -> Iterator[str]:
    for i, _ in enumerate(sys.stdin):
        try:
            insert(connection, i, marks)
            yield "committed"
        except sqlite3.OperationalError as error:
            yield f"OperationalError: {error}"


def main(database: str, journal_mode: str, synchronous: str, how_many: str) -> None:
    connection = connect(database, journal_mode, synchronous)
    marks = os.open(f"{database}.revealed", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    if how_many == "ask":
        for outcome in attempts(connection, marks):
            print(outcome, flush=True)
    else:
        for i in range(int(how_many)):
            insert(connection, i, marks)
    # No goodbye: closing would checkpoint and remove the log, and no power cut asks for leave.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
