"""The product of the single columns: what is known if nothing is known of how columns go together."""

from collections.abc import Iterable

import numpy as np

from discreet.model.mixture import Mixture
from discreet.model.protocol import Look, Numbers
from discreet.query.axis import Axis, axis_of
from discreet.schema.domain import Domain


def product_of(domain: Domain, looks: Iterable[Look], *, total: float) -> Mixture:
    """A mixture of one component: each column as the looks at it say, on its own; uniform if none does.

    Each column is the nearest distribution to what was measured, by least squares. A look at a whole marginal of
    several columns says something about each of them; one at parts of several says nothing about any.

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
    tables = [nearest(_estimate(seen[name], domain[name].size, total) / total) for name in domain]
    return Mixture(domain, float(total), np.ones(1), np.concatenate(tables)[:, None])


def nearest(shares: Numbers) -> Numbers:
    """The nearest shares that are not negative and add up to 1.

    >>> nearest(np.array([0.7, 0.5, -0.1])).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0))


def _join(seen: dict[int | None, tuple[Numbers, float]], part: int | None, values: Numbers, weight: float) -> None:
    before, precision = seen.get(part, (values, 0.0))
    together = precision + weight
    seen[part] = before + (weight / together) * (values - before), together


def _centred(axis: Axis, values: Numbers) -> Numbers:
    """Without what padding leaves of a part that looks at cells that are not there."""
    return values if axis.cells == axis.padded else values - values.mean()


def _estimate(seen: dict[int | None, tuple[Numbers, float]], cells: int, total: float) -> Numbers:
    """The counts of a column: the whole looks and the sum of the parts, by their precisions."""
    parts = [pair for part, pair in seen.items() if part is not None]
    apart = total / cells + sum((values for values, _ in parts), np.zeros(cells))
    if None not in seen:
        return np.asarray(apart)
    whole, precision = seen[None]
    whole = np.asarray(whole + (total - whole.sum()) / cells)
    if not parts:
        return whole
    share = precision / (precision + min(weight for _, weight in parts))
    return np.asarray(share * whole + (1 - share) * apart)
