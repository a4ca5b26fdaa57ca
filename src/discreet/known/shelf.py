"""What is kept to be quick: bounded by its size, the oldest goes first. Losing any of it loses nothing but time."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")


class Shelf(Generic[Key, Thing]):
    """Things by their keys, of which each takes some room.

    >>> shelf = Shelf(10)
    >>> shelf.put("a", "first", room=6), shelf.put("b", "second", room=6)
    (None, None)
    >>> shelf.get("a"), shelf.get("b")
    (None, 'second')
    """

    __slots__ = ("_most", "_room", "_things")

    def __init__(self, most: int) -> None:
        self._most, self._room = most, 0
        self._things: OrderedDict[Key, tuple[Thing, int]] = OrderedDict()

    def get(self, key: Key) -> Thing | None:
        """The thing, if it is still there."""
        found = self._things.get(key)
        if found is None:
            return None
        self._things.move_to_end(key)
        return found[0]

    def put(self, key: Key, thing: Thing, *, room: int) -> None:
        """Keep a thing, in place of the one with the same key; let go of those not asked for since longest."""
        before = self._things.pop(key, None)
        self._room += room - (before[1] if before else 0)
        self._things[key] = thing, room
        while self._room > self._most:
            _, (_, freed) = self._things.popitem(last=False)
            self._room -= freed

    def __len__(self) -> int:
        return len(self._things)
