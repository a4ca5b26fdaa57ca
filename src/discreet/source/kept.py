"""An LRU cache of true marginals, in memory on the trusted side, so that the rows are read once for each."""

from discreet.cache import LruCache
from discreet.types import Columns, Ints

# A quarter of a gigabyte, and no single marginal may push out more than a quarter of that.
MOST_KEPT_BYTES = 2**28


class MarginalCache:
    """Marginals by their sorted columns. What is kept depends on the questions so far, never on the rows.

    >>> import numpy as np
    >>> kept = MarginalCache()
    >>> kept.keep(("age", "sex"), np.array([[1, 2], [3, 4]]))
    >>> kept.find(("sex",)).tolist(), kept.find(("city",))
    ([4, 6], None)
    """

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._marginals: LruCache[Columns, Ints] = LruCache(most_bytes)

    def find(self, columns: Columns) -> Ints | None:
        """The marginal of these sorted columns, if it is kept or follows from one that is."""
        counts = self._marginals.get(columns)
        if counts is not None:
            return counts
        sizes = self._marginals.sizes()
        larger = [names for names in sizes if len(names) > len(columns) and set(columns) <= set(names)]
        held = min(larger, key=sizes.__getitem__, default=None)
        counts = None if held is None else self._marginals.get(held)
        if held is None or counts is None:
            return None
        summed: Ints = counts.sum(axis=tuple(axis for axis, name in enumerate(held) if name not in columns))
        self.keep(columns, summed)
        return summed

    def clear(self) -> None:
        """Drop everything: the rows may have changed."""
        self._marginals.clear()

    def keep(self, columns: Columns, counts: Ints) -> None:
        """Keep a marginal, unless it is larger than a quarter of the cache."""
        if 4 * counts.nbytes <= self._most_bytes and columns not in self._marginals:
            self._marginals.put(columns, counts, size=counts.nbytes)
