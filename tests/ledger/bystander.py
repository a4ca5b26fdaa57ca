"""Another process that uses the file of a ledger in its own way."""

import subprocess
import sys
from contextlib import contextmanager

_PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement).fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


def _start(arguments, **options):
    return subprocess.Popen([sys.executable, *arguments], text=True, **options)


@contextmanager
def bystander(file, *statements, start=_start):
    """A process that has done this with a database and does nothing more, for as long as the block lasts.

    It is not forked: what SQLite knows of open files would be forked too, and be wrong.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with start(["-c", _PROGRAM, file, *statements], **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        yield
        process.stdin.close()
