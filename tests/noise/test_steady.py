"""`make test` draws the same noise every time; a forked child has neither its parent's noise nor its garbage."""

import gc
import os

import pytest

from discreet.noise.sample import word

STEADY = pytest.mark.skipif("not hasattr(os.urandom, 'under')", reason="drawn anew, as `make test-long` asks for")


@pytest.fixture(scope="module")
def shared():
    return getattr(os.urandom, "name", None)


def drawn(name, number=2):
    stream = os.urandom.under(name)
    next(stream)
    words = [word() for _ in range(number)]
    stream.close()
    return words


@STEADY
def test_a_name_says_what_is_drawn():
    assert drawn("one") == drawn("one")
    assert len({*drawn("one"), *drawn("other")}) == 4


@STEADY
def test_a_stream_goes_on_after_another():
    assert len({word(), word(), *drawn("another", 1), word()}) == 4
    assert os.urandom.drawn == 3


@STEADY
def test_a_test_draws_under_its_name_and_a_fixture_that_tests_share_under_its_own(request, shared):
    assert os.urandom.name == request.node.nodeid
    assert shared == f"{request.node.nodeid.partition('::')[0]}::shared[0]"


def test_a_child_draws_its_own():
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, word().to_bytes(8, "little"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(reader, 8), "little") != word()
    os.close(reader)
    os.close(writer)


class Connection:
    """In a cycle, like one to DuckDB; whoever collects it must be the process that opened it."""

    def __init__(self):
        self.process, self.cycle = os.getpid(), self

    def __del__(self):
        if os.getpid() != self.process:
            os._exit(1)


@pytest.mark.parametrize(("first", "status"), [(lambda: None, 0), (gc.unfreeze, 1)])
def test_a_child_leaves_its_parents_garbage_alone(first, status):
    gc.disable()
    try:
        Connection()
        if (child := os.fork()) == 0:
            first()
            gc.collect()
            os._exit(0)
    finally:
        gc.enable()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status
