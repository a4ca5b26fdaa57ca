"""Caches are bounded, and nothing else memoises."""

import pickle
from threading import Thread

from discreet.cache import LruCache, memoize


def test_the_sizes_of_the_values_never_exceed_the_bound():
    cache = LruCache(100)
    for key in range(50):
        cache.put(key, key, size=30)
        assert len(cache) <= 3
    cache.put("huge", 0, size=101)
    assert cache.get("huge") is None
    assert len(cache) == 3
    cache.put(49, "again", size=100)
    assert cache.sizes() == {49: 100}


def test_the_least_recently_used_value_goes_first():
    cache = LruCache(3)
    for key in "abc":
        cache.put(key, key, size=1)
    cache.get("a")
    cache.put("d", "d", size=1)
    assert list(cache.sizes()) == ["c", "a", "d"]
    assert "b" not in cache


def test_a_value_that_is_put_again_is_counted_once_and_nothing_is_left_after_clear():
    cache = LruCache(10)
    for size in (9, 1, 5):
        cache.put("a", size, size=size)
    cache.put("b", 0, size=5)
    assert cache.sizes() == {"a": 5, "b": 5}
    cache.clear()
    cache.put("c", 0, size=10)
    assert cache.sizes() == {"c": 10}


def test_a_pickled_cache_is_empty_and_has_the_same_bound():
    cache = LruCache(1)
    cache.put("a", 1, size=1)
    copy = pickle.loads(pickle.dumps(cache))
    assert len(copy) == 0
    copy.put("b", 2, size=2)
    assert len(copy) == 0


def test_threads_may_share_a_cache():
    cache = LruCache(20)

    def use(first):
        for key in range(first, first + 2000):
            cache.put(key % 37, key, size=key % 7)
            cache.get((key * 5) % 37)

    threads = [Thread(target=use, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(cache.sizes().values()) == cache._total <= 20


def test_a_function_keeps_its_last_results_only():
    calls = []
    twice = memoize(2)(lambda x: calls.append(x) or 2 * x)
    assert [twice(x) for x in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert calls == [1, 2, 3, 2]


def test_one_and_one_point_zero_are_kept_apart_only_when_typed():
    for typed, expected in ((False, "1"), (True, "1.0")):
        same = memoize(9, typed=typed)(lambda x, _: x)
        same(1, 0)
        assert str(same(1.0, 0)) == expected
