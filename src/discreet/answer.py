"""What an analyst gets: a number with an error bar that holds, and what it cost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.event import Event


@dataclass(frozen=True, slots=True)
class Answer:
    """A private answer: the true value is within `error` of `value` with probability `confidence`, each cell by itself.

    `cost` is what was done to the table, from which its price in any currency follows; `neighbors` says whom it
    protects.
    """

    value: int | NDArray[np.int64]
    error: float
    confidence: float
    cost: Event
    neighbors: str

    def __str__(self) -> str:
        shown = f"{self.value:,}" if isinstance(self.value, int) else np.array2string(self.value, threshold=12)
        return f"{shown} ± {self.error:,.0f} ({100 * self.confidence:g} %)"
