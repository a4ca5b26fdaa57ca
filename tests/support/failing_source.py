"""A source of rows that fails when it is read."""

from contextlib import nullcontext


class Unreadable:
    """A source that can be reached, counts how often it is asked, and fails."""

    def __init__(self):
        self.asked = 0

    def touch(self):
        pass

    def fingerprint(self):
        return None

    def snapshot(self):
        return nullcontext()

    def evaluate(self, question):
        self.asked += 1
        raise RuntimeError("the disk is gone")
