"""`make test` draws the same noise every time; a forked child does not draw its parent's."""

import os

import pytest

from discreet.noise.entropy import word

STEADY = pytest.mark.skipif("not hasattr(os.urandom, 'under')", reason="drawn anew, as `make test-long` asks for")


@pytest.fixture(scope="module")
def shared():
    return word()


@STEADY
def test_a_test_draws_what_it_drew_before():
    assert [word(), word()] == [10136866172381088501, 18056370016076379255]


@STEADY
def test_a_fixture_that_tests_share_draws_the_same_whichever_comes_first(shared):
    assert shared == 1813381828057748249


def test_a_child_draws_its_own():
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, word().to_bytes(8, "little"))
        os._exit(0)
    os.waitpid(child, 0)
    assert int.from_bytes(os.read(reader, 8), "little") != word()
    os.close(reader)
    os.close(writer)
