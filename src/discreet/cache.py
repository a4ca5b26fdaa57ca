"""LRU caches: bounded by the total size of the values, or, for the results of a function, by their number."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from threading import Lock
from typing import Generic, ParamSpec, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
P = ParamSpec("P")
R = TypeVar("R")


class LruCache(Generic[Key, Value]):
    """Values by key, each with a size. When the sizes exceed `most`, the least recently used value goes first.

    A value larger than `most` is not kept. Threads may share a cache. A copy that was pickled is empty.

    >>> cache = LruCache(10)
    >>> cache.put("a", "first", size=6), cache.put("b", "second", size=6)
    (None, None)
    >>> cache.get("a"), cache.get("b"), cache.sizes()
    (None, 'second', {'b': 6})
    """

    __slots__ = ("_lock", "_most", "_total", "_values")

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """The value, if it is there; it counts as used now."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Key, value: Value, *, size: int) -> None:
        """Keep a value, in place of the one with the same key."""
        with self._lock:
            before = self._values.pop(key, None)
            self._total -= before[1] if before else 0
            if size > self._most:
                return
            self._total += size
            self._values[key] = value, size
            while self._total > self._most:
                _, (_, freed) = self._values.popitem(last=False)
                self._total -= freed

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
            self._total = 0

    def sizes(self) -> dict[Key, int]:
        """The size of each value that is there, least recently used first."""
        with self._lock:
            return {key: size for key, (_, size) in self._values.items()}

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __getstate__(self) -> int:
        return self._most

    def __setstate__(self, most: int) -> None:
        self.__init__(most)  # type: ignore[misc]


class ById(Generic[Value]):
    """A key that is equal only for the same object: comparing the values would take longer than what is cached.

    >>> one, same = [1], [1]
    >>> ById(one) == ById(one), ById(one) == ById(same)
    (True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value


def memoize(entries: int, *, typed: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the results of a function for the last `entries` arguments, all of them hashable.

    There is no default: a cache that is keyed by what analysts send must have a bound. `typed` keeps 1 and 1.0 apart.

    >>> squares = memoize(2)(lambda x: x * x)
    >>> squares(3), squares(3)
    (9, 9)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], lru_cache(maxsize=entries, typed=typed)(function))

    return decorate
