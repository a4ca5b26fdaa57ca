"""What is kept to be quick: bounded by its size, the oldest goes first. Losing any of it loses nothing but time."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


class Shelf(Generic[Key, Thing]):
    """Things by their keys, of which each takes some room. Threads may share it.

    What would take more room than there is, is not kept.

    >>> shelf = Shelf(10)
    >>> shelf.put("a", "first", room=6), shelf.put("b", "second", room=6)
    (None, None)
    >>> shelf.get("a"), shelf.get("b")
    (None, 'second')
    """

    __slots__ = ("_lock", "_most", "_room", "_things")

    def __init__(self, most: int) -> None:
        self._most, self._room = most, 0
        self._things: OrderedDict[Key, tuple[Thing, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Thing | None:
        """The thing, if it is still there."""
        with self._lock:
            found = self._things.get(key)
            if found is None:
                return None
            self._things.move_to_end(key)
            return found[0]

    def put(self, key: Key, thing: Thing, *, room: int) -> None:
        """Keep a thing, in place of the one with the same key; let go of those not asked for since longest."""
        with self._lock:
            before = self._things.pop(key, None)
            self._room -= before[1] if before else 0
            if room > self._most:
                return
            self._room += room
            self._things[key] = thing, room
            while self._room > self._most:
                _, (_, freed) = self._things.popitem(last=False)
                self._room -= freed

    def __len__(self) -> int:
        return len(self._things)

    def __getstate__(self) -> int:
        return self._most

    def __setstate__(self, most: int) -> None:
        self.__init__(most)  # type: ignore[misc]
