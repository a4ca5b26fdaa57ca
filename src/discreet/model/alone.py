"""The product of the single columns: what is known if nothing is known of how columns go together."""

from collections.abc import Iterable

import numpy as np

from discreet.model.mixture import Mixture
from discreet.model.protocol import Look
from discreet.model.scattered import normal
from discreet.query.axis import Axis, axis_of
from discreet.schema.domain import Domain
from discreet.types import Numbers

# How often noise is added, and as often taken away; its seed is that of no member of an ensemble.
RESAMPLES, _SEED = 64, 2**21


def product_of(domain: Domain, looks: Iterable[Look], *, total: float, soft: bool = False) -> Mixture:
    """A mixture of one component: each column as the looks at it say, on its own; uniform if none does.

    Each column is the nearest distribution to what was measured, by least squares; or, if it is to be `soft`, what
    is in the middle of those that are nearest to what might have been measured (`softened`). A look at a whole marginal
    of several columns says something about each of them; one at parts of several says nothing about any.

    >>> from discreet.schema.column import Boolean
    >>> look = Look(("old",), None, np.array([70.0, 50.0]), weight=1.0)
    >>> product_of(Domain({"old": Boolean(), "ill": Boolean()}), [look], total=100.0).tables.ravel().tolist()
    [0.6, 0.4, 0.5, 0.5]
    """
    # For each column and part, the measured part of the counts and its precision.
    seen: dict[str, dict[int | None, tuple[Numbers, float]]] = {name: {} for name in domain}
    for look in looks:
        if look.parts is None:
            values = np.asarray(look.values).reshape([domain[name].size for name in look.columns])
            for place, name in enumerate(look.columns):
                others = tuple(at for at in range(values.ndim) if at != place)
                precision = look.weight * values.shape[place] / values.size
                _join(seen[name], None, values.sum(axis=others), precision)
        elif len(look.columns) == 1:
            (name,), (part,) = look.columns, look.parts
            axis = axis_of(domain[name])
            back = axis.measure(part).T @ np.ravel(look.values) / axis.gain(part)
            _join(seen[name], part, _centred(axis, back), look.weight * axis.gain(part))
    tables = []
    for name in domain:
        counts, deviation = _estimate(seen[name], domain[name].size, total)
        tables.append(softened(counts / total, deviation / total) if soft else nearest(counts / total))
    return Mixture(domain, float(total), np.ones(1), np.concatenate(tables)[:, None])


def nearest(shares: Numbers) -> Numbers:
    """The nearest shares that are not negative and add up to 1.

    >>> nearest(np.array([0.7, 0.5, -0.1])).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    return np.asarray(_nearest(shares[None, :])[0])


def softened(shares: Numbers, deviation: float) -> Numbers:
    """Between the mean and the medians of the nearest distributions to shares with as much noise again as they have.

    Where shares are mostly noise, the nearest distribution has all in a few cells, chosen by that noise. Its mean over
    more noise is nearer to the truth (bagging [Bre96]) if many cells have some, and its medians are if few have most;
    what is between them is nearly always, and where noise is small it is the same. Nothing is drawn at random.

    >>> softened(np.array([2.0, -1.0]), 0.0).tolist(), softened(np.array([2.0, -1.0]), 4.0).round(1).tolist()
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
    """Without what padding leaves of a part that looks at cells that are not there."""
    return values if axis.cells == axis.padded else values - values.mean()


def _estimate(seen: dict[int | None, tuple[Numbers, float]], cells: int, total: float) -> tuple[Numbers, float]:
    """The counts of a column, and the deviation of each: whole looks and the sum of the parts, by their precisions."""
    parts = [pair for part, pair in seen.items() if part is not None]
    apart = np.asarray(total / cells + sum((values for values, _ in parts), np.zeros(cells)))
    least = min((weight for _, weight in parts), default=0.0)
    if None not in seen:
        return apart, least**-0.5 if least else 0.0
    whole, precision = seen[None]
    whole = np.asarray(whole + (total - whole.sum()) / cells)
    share = precision / (precision + least)
    return np.asarray(share * whole + (1 - share) * apart), (precision + least) ** -0.5
