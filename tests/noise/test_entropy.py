"""Where the words come from: never shared, never repeated, never replaced by something else."""

import os
import threading

import numpy as np
import pytest

from discreet.errors import NoEntropy
from discreet.noise import discrete_laplace, gumbel_race, rounded_gaussian, sample, uniform_below

MANY = 2_000


def forked(work):
    """Run `work` in a forked child and return what it wrote."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, work())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data


def draw_bytes():
    return uniform_below(2**62, MANY).tobytes()


def test_two_forked_children_and_their_parent_never_share_draws():
    draw_bytes()  # whatever state there could be to inherit, now exists
    draws = [np.frombuffer(data, dtype=np.int64) for data in (forked(draw_bytes), forked(draw_bytes), draw_bytes())]
    assert len(set(np.concatenate(draws).tolist())) == 3 * MANY


def test_two_threads_never_share_draws():
    found = []
    threads = [threading.Thread(target=lambda: found.append(uniform_below(2**62, 20_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(np.concatenate(found).tolist())) == 80_000


def test_threads_settle_slow_draws_right():
    """The exact path changes the working precision of all threads; balls stay right whatever it is."""
    found = []
    work = lambda: found.append(rounded_gaussian(10**14, 300))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draws = np.concatenate(found)
    assert draws.size == 1200
    assert abs(float(np.std(draws)) / 1e14 - 1) < 0.2


def test_two_calls_use_two_keys():
    first, second = np.empty(4_096, dtype=np.int64), np.empty(4_096, dtype=np.int64)
    sample.filler(4_096)(first)
    sample.filler(4_096)(second)
    assert not np.intersect1d(first, second).size


def test_a_stream_does_not_repeat_between_pieces():
    words = np.empty(1 << 16, dtype=np.int64)
    sample.filler(words.size)(words)
    assert np.unique(words).size == words.size


@pytest.mark.parametrize("failure", [OSError("no device"), NotImplementedError()])
@pytest.mark.parametrize(
    "draw", [lambda: discrete_laplace(1), lambda: rounded_gaussian(1, 10_000), lambda: gumbel_race([1, 2], 1)]
)
def test_without_entropy_nothing_is_drawn(monkeypatch, failure, draw):
    def refuse(count):
        raise failure

    monkeypatch.setattr(os, "urandom", refuse)
    with pytest.raises(NoEntropy, match="nothing was released"):
        draw()


def test_the_noise_ignores_every_seed():
    import random

    draws = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        draws.append(uniform_below(2**62, 50).tolist())
    assert draws[0] != draws[1]
