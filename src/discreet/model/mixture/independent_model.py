"""The independent model, the product of the distributions of single columns, and fixed pseudo-random numbers.

The numbers are splitmix64 of a counter. Starting points and data thinning use them, so that a fit is the same every
time.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from discreet.model.interface import NoisyMarginal
from discreet.model.mixture.mixture_model import Mixture
from discreet.query.residual import Axis, axis_of
from discreet.schema.domain import Domain
from discreet.types import Numbers

# The multipliers of splitmix64, a bijection of 64-bit words whose outputs pass for random [SLF14].
_GOLDEN, _FIRST, _SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def pseudo_uniforms(count: int, seed: int = 0) -> Numbers:
    """`count` numbers in (0, 1).

    >>> pseudo_uniforms(3).round(3).tolist()
    [0.883, 0.432, 0.026]
    """
    words: NDArray[np.uint64] = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * _GOLDEN
    words = (words ^ words >> np.uint64(30)) * _FIRST
    words = (words ^ words >> np.uint64(27)) * _SECOND
    words ^= words >> np.uint64(31)
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)


def normal(shape: tuple[int, ...], seed: int = 0) -> Numbers:
    """Numbers from N(0, 1) in this shape."""
    from scipy.special import ndtri

    return np.asarray(ndtri(pseudo_uniforms(int(np.prod(shape)), seed))).reshape(shape)


# The number of times that noise is added, and as often subtracted; no member of an ensemble has its seed.
RESAMPLES, _SEED = 64, 2**21


def product_of(domain: Domain, measurements: Iterable[NoisyMarginal], *, total: float, soft: bool = False) -> Mixture:
    """A mixture of one component: each column as it was measured by itself; uniform if it was not.

    Each column is the least-squares projection of what was measured onto the distributions; with `soft`, it is averaged
    over more noise (`soften`). A measurement of a whole marginal of several columns is summed for each of them;
    one of parts of several columns says nothing about single ones.

    >>> from discreet.schema.column import Boolean
    >>> measurement = NoisyMarginal(("old",), None, np.array([70.0, 50.0]), weight=1.0)
    >>> product_of(Domain({"old": Boolean(), "ill": Boolean()}), [measurement], total=100.0).tables.ravel().tolist()
    [0.6, 0.4, 0.5, 0.5]
    """
    # For each column and part, the measured part of the counts and its precision.
    seen: dict[str, dict[int | None, tuple[Numbers, float]]] = {name: {} for name in domain}
    for measurement in measurements:
        if measurement.parts is None:
            values = np.asarray(measurement.values).reshape([domain[name].size for name in measurement.columns])
            for place, name in enumerate(measurement.columns):
                others = tuple(at for at in range(values.ndim) if at != place)
                precision = measurement.weight * values.shape[place] / values.size
                _join(seen[name], None, values.sum(axis=others), precision)
        elif len(measurement.columns) == 1:
            (name,), (part,) = measurement.columns, measurement.parts
            axis = axis_of(domain[name])
            back = axis.measure(part).T @ np.ravel(measurement.values) / axis.gain(part)
            _join(seen[name], part, _centred(axis, back), measurement.weight * axis.gain(part))
    tables = []
    for name in domain:
        counts, deviation = _estimate(seen[name], domain[name].size, total)
        tables.append(soften(counts / total, deviation / total) if soft else nearest(counts / total))
    return Mixture(domain, float(total), np.ones(1), np.concatenate(tables)[:, None])


def nearest(shares: Numbers) -> Numbers:
    """The nearest shares that are not negative and add up to 1.

    >>> nearest(np.array([0.7, 0.5, -0.1])).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    return np.asarray(_nearest(shares[None, :])[0])


def soften(shares: Numbers, deviation: float) -> Numbers:
    """Projections of the shares with as much noise added again: half-way between their mean and their medians.

    Where shares are mostly noise, their projection has all mass in a few cells, which that noise chose. The mean over
    added noise is closer to the truth (bagging [Bre96]) if the mass is spread over many cells, and the medians are if
    it is in few; half-way between them is better nearly always. Where noise is small nothing changes. The added noise
    is fixed.

    >>> soften(np.array([2.0, -1.0]), 0.0).tolist(), soften(np.array([2.0, -1.0]), 4.0).round(1).tolist()
    ([1.0, 0.0], [0.8, 0.2])
    """
    if not deviation:
        return nearest(shares)
    noise = normal((RESAMPLES, len(shares)), seed=_SEED)
    found = _nearest(shares + deviation * np.concatenate([noise, -noise]))
    mean, middle = found.mean(axis=0), np.median(found, axis=0)
    return np.asarray((mean + middle / middle.sum()) / 2 if middle.any() else mean)


def _nearest(shares: Numbers) -> Numbers:
    """The nearest shares to those in each row."""
    falling = -np.sort(-shares, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = shares.shape[1] - 1 - np.argmax((falling > excess)[:, ::-1], axis=1)
    return np.asarray(np.maximum(shares - np.take_along_axis(excess, last[:, None], axis=1), 0.0))


def _join(seen: dict[int | None, tuple[Numbers, float]], part: int | None, values: Numbers, weight: float) -> None:
    before, precision = seen.get(part, (values, 0.0))
    together = precision + weight
    seen[part] = before + (weight / together) * (values - before), together


def _centred(axis: Axis, values: Numbers) -> Numbers:
    """The values of a part without the contribution of padded cells, in which no row is."""
    return values if axis.cells == axis.padded else values - values.mean()


def _estimate(seen: dict[int | None, tuple[Numbers, float]], cells: int, total: float) -> tuple[Numbers, float]:
    """The counts of a column, and the deviation of each: whole marginals and sums of parts, by their precisions."""
    parts = [pair for part, pair in seen.items() if part is not None]
    apart = np.asarray(total / cells + sum((values for values, _ in parts), np.zeros(cells)))
    least = min((weight for _, weight in parts), default=0.0)
    if None not in seen:
        return apart, least**-0.5 if least else 0.0
    whole, precision = seen[None]
    whole = np.asarray(whole + (total - whole.sum()) / cells)
    share = precision / (precision + least)
    return np.asarray(share * whole + (1 - share) * apart), (precision + least) ** -0.5
