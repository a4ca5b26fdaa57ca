"""Chernoff's bound on a weighted sum of discrete Laplace noises: valid for any number of them, and cheap."""

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from discreet.types import Floats

# The bound is tried at so many places, or at fewer where there are many terms: their product is about constant.
_PLACES, _FEWEST, _WORK = 200, 20, 2**22


def chernoff_half_width(weights: Floats, scales: Floats, counts: NDArray[np.generic], *, failure: float) -> float:
    """A half-width of every sum of noises with weights up to these: (log E e^(sX) + log 2/failure)/s.

    It holds for each s for which the moment exists, so for the best of a fixed list.

    >>> round(chernoff_half_width(np.ones(1), np.full(1, 10.0), np.array([100]), failure=0.05))  # exactly: 277
    387

    proof: tail.md, Many weights at once
    """
    some = weights > 0
    if not some.any():
        return 0.0
    weights, scales, counts = weights[some], scales[some], counts[some]
    spread = 2 * np.exp(-1 / scales) / np.expm1(-1 / scales) ** 2
    found = inf
    for share in np.geomspace(1e-6, 0.999, max(_FEWEST, min(_PLACES, _WORK // weights.size))).tolist():
        s = share / float((scales * weights).max())
        # cosh x − 1, without losing what is small.
        moments = -np.log1p(-spread * 2 * np.sinh(weights * s / 2) ** 2)
        found = min(found, (float(counts @ moments) + log(2 / failure)) / s)
    return found
