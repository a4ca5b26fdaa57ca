"""Published mistakes that an audit must catch: mechanisms that claim to be epsilon-DP and are not.

They work on plain integers only: no `Exact` can be given to them. Each is a function `draw(values, size)`
for an audit, on discrete noise of the same scale as in the paper.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet import noise
from discreet.lab.attack.events import Draw
from discreet.numeric import Number, positive, whole
from discreet.types import Ints

# The outcomes "below", and after the end of a run.
BELOW, ENDED = -(2**40), -(2**41)


def half_the_noise(*, epsilon: Number) -> Draw:
    """Laplace noise of half the scale: 2e-DP and no better."""
    scale = 1 / (2 * positive("epsilon", epsilon))
    return lambda values, size: _column(values, size) + _noise(scale, size, len(values))


def sensitivity_forgotten(*, epsilon: Number) -> Draw:
    """A histogram of replaced rows with noise for sensitivity 1, where two cells move: 2e-DP and no better."""
    scale = 1 / positive("epsilon", epsilon)
    return lambda values, size: _column(values, size) + _noise(scale, size, len(values))


def noisy_threshold_once(
    values: Sequence[int],
    size: int,
    *,
    threshold_scale: Fraction,
    query_scale: Fraction | None,
    hits: int | None = None,
    release_compared: bool = False,
) -> Ints:
    """Many runs of a sparse vector at threshold 0: 1 for above and `BELOW` for below, `ENDED` after the last hit.

    Without a `query_scale` the values are compared as they are; with `release_compared` the very number that was
    compared is released.
    """
    level = _noise(threshold_scale, size, 1)
    noisy = _column(values, size)
    if query_scale is not None:
        noisy = noisy + _noise(query_scale, size, len(values))
    above = noisy >= level
    found = np.where(above, noisy if release_compared else 1, BELOW)
    if hits is not None:
        before: Ints = np.cumsum(above, axis=1, dtype=np.int64) - above
        found = np.where(before >= hits, ENDED, found)
    return np.asarray(found, dtype=np.int64)


def algorithm_3(*, epsilon: Number, hits: int = 1) -> Draw:
    """[LSL17, Alg. 3] (Roth 2011): the noisy value that was compared is released. It is e-DP for no e."""
    half, most = positive("epsilon", epsilon) / 2, whole("hits", hits, least=1)
    return lambda values, size: noisy_threshold_once(
        values, size, threshold_scale=1 / half, query_scale=most / half, hits=most, release_compared=True
    )


def algorithm_4(*, epsilon: Number, hits: int = 3) -> Draw:
    """[LSL17, Alg. 4] (Lee and Clifton 2014): query noise that forgets the number of hits c: (1 + 6c)/4·e."""
    quarter, most = positive("epsilon", epsilon) / 4, whole("hits", hits, least=1)
    return lambda values, size: noisy_threshold_once(
        values, size, threshold_scale=1 / quarter, query_scale=1 / (3 * quarter), hits=most
    )


def algorithm_5(*, epsilon: Number) -> Draw:
    """[LSL17, Alg. 5] (Stoddard et al. 2014): no query noise and no limit. It is e-DP for no e."""
    scale = 2 / positive("epsilon", epsilon)
    return lambda values, size: noisy_threshold_once(values, size, threshold_scale=scale, query_scale=None)


def algorithm_6(*, epsilon: Number) -> Draw:
    """[LSL17, Alg. 6] (Chen et al. 2015): query noise for one hit, and no limit of hits. It is e-DP for no e."""
    scale = 2 / positive("epsilon", epsilon)
    return lambda values, size: noisy_threshold_once(values, size, threshold_scale=scale, query_scale=scale)


def _column(values: Sequence[int], size: int) -> Ints:
    return np.broadcast_to(np.asarray(values, dtype=np.int64), (size, len(values)))


def _noise(scale: Fraction, *shape: int) -> Ints:
    return np.asarray(noise.discrete_laplace(scale, size=int(np.prod(shape)))).reshape(shape)
