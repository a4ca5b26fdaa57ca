"""Fits keep to one processor, and leave the others as they were."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from discreet.jit import on_one_processor


def threads():
    """How many threads the products of matrices take."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two():
    """As on a machine with two processors."""
    with threadpool_limits(limits=2, user_api="blas"):
        assert threads() == {2}
        yield


def test_while_it_runs_one_thread_is_taken_and_then_as_many_as_before():
    seen = on_one_processor(threads)
    assert (threads(), seen(), threads()) == ({2}, {1}, {2})


def test_one_within_another_changes_nothing():
    @on_one_processor
    def outer():
        return on_one_processor(threads)(), threads()

    assert outer() == ({1}, {1})
    assert threads() == {2}


def test_after_an_error_it_is_as_before():
    @on_one_processor
    def wrong():
        raise KeyError

    with pytest.raises(KeyError):
        wrong()
    assert threads() == {2}


def test_a_function_keeps_its_name_and_its_arguments():
    @on_one_processor
    def added(one, *, other):
        """Adds."""
        return one + other

    assert (added.__name__, added.__doc__, added(1, other=2)) == ("added", "Adds.", 3)
