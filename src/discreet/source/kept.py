"""True marginals, kept in memory on the trusted side so that the rows are read once for each: bounded, oldest out."""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

Columns = tuple[str, ...]
Counts = NDArray[np.int64]

# A quarter of a gigabyte, and no single marginal may push out more than a quarter of that.
MOST_BYTES = 2**28


class Kept:
    """Marginals by their sorted columns. What is kept depends on the questions so far, never on the rows.

    >>> kept = Kept()
    >>> kept.keep(("age", "sex"), np.array([[1, 2], [3, 4]]))
    >>> kept.find(("sex",)).tolist(), kept.find(("city",))
    ([4, 6], None)
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._marginals: OrderedDict[Columns, Counts] = OrderedDict()

    def find(self, columns: Columns) -> Counts | None:
        """The marginal of these sorted columns, if it is kept or follows from one that is."""
        if columns in self._marginals:
            self._marginals.move_to_end(columns)
            return self._marginals[columns]
        held = min(
            (names for names in self._marginals if len(names) > len(columns) and set(columns) <= set(names)),
            key=lambda names: self._marginals[names].size,
            default=None,
        )
        if held is None:
            return None
        self._marginals.move_to_end(held)
        counts = self._marginals[held]
        summed: Counts = counts.sum(axis=tuple(axis for axis, name in enumerate(held) if name not in columns))
        self.keep(columns, summed)
        return summed

    def clear(self) -> None:
        """Let go of everything: the rows may have changed."""
        self._marginals.clear()
        self._bytes = 0

    def keep(self, columns: Columns, counts: Counts) -> None:
        """Keep a marginal, and let go of those that were not used for the longest time."""
        if 4 * counts.nbytes > self._most_bytes or columns in self._marginals:
            return
        self._marginals[columns] = counts
        self._bytes += counts.nbytes
        while self._bytes > self._most_bytes:
            _, oldest = self._marginals.popitem(last=False)
            self._bytes -= oldest.nbytes
