"""Many small mixtures, each fitted from another start until it is off by the noise alone; their mean is the model.

One mixture that fits what was measured is one guess among many: they agree on the pairs and differ on three columns.
Their mean is a mixture too, so it is consistent and never negative, and it is much nearer to the table than any of
them: on a census table with all pairs measured, a mean of thirty is a third nearer than one.

How many components a member has, and when it stops, is decided without looking at the table: what was measured is split
in two that are independent, one to learn from and one to check with. A look y at x with variance v becomes y + z·r and
y − z/r, with z of variance v: both are looks at x, and the products of their errors average to zero.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.model.features import Features, features_of
from discreet.model.mixture import Mixture, fit_mixture
from discreet.model.protocol import Look, Numbers
from discreet.model.scattered import normal
from discreet.parameter import positive, whole
from discreet.schema.domain import Domain

Singles = NDArray[np.float32]

# How far from the product of the single columns the components start, in logarithms.
SPREAD = 1.0
# A cell starts with at least this part of an equal share: from nothing nothing can grow.
LEAST = 0.01
# The part of what was measured that is kept back to check with.
CHECKED = 0.1
# Members that are checked together, every how many steps, and after how many checks without a better one they stop.
CHECKS, EVERY, PATIENCE = 4, 3, 6
# Numbers of components that are tried, as long as more are better.
COMPONENTS = (4, 16, 64, 256)
# How quickly the means of slopes and of their squares forget. The second is far below the usual 0.999: slopes shrink
# by orders of magnitude within a few dozen steps.
FORGET = 0.9
FAR = 3.0
STRIDE = 1
# A step is never less than this part of the first.
SLOWEST = 0.03

Tell = Callable[[float], None]


class Member:
    """A mixture on its way downhill, in single precision: many steps are cheap, and noise is larger than rounding."""

    def __init__(self, start: Singles, shape: tuple[int, ...], total: float, *, rate: float, steps: int) -> None:
        self.logs, self.weigh = start, np.zeros(start.shape[1], dtype=np.float32)
        self.total, self.rate, self.steps, self.taken = total, rate, steps, 0
        self.stride = STRIDE
        self.recent: list[float] = []
        self._bounds = list(zip(np.cumsum([0, *shape[:-1]]).tolist(), np.cumsum(shape).tolist(), strict=True))
        self._mean = [np.zeros_like(self.logs), np.zeros_like(self.weigh)]
        self._square = [np.zeros_like(self.logs), np.zeros_like(self.weigh)]
        self._settle()

    def _settle(self) -> None:
        tables = np.empty_like(self.logs)
        for start, end in self._bounds:
            part = self.logs[start:end]
            np.subtract(part, part.max(axis=0), out=tables[start:end])
        np.exp(tables, out=tables)
        for start, end in self._bounds:
            tables[start:end] /= tables[start:end].sum(axis=0)
        weights = np.exp(self.weigh - self.weigh.max())
        self.tables, self.weights = tables, weights / weights.sum()

    def loss(self, features: Features) -> tuple[float, Singles, Singles]:
        """Σ weight/2 · (measured − value)², and its slopes along the logarithms."""
        loss, along_tables, along_weights = features.loss(
            self.tables, self.weights, self.total, self.taken, self.stride
        )
        slope = self.tables * along_tables
        for start, end in self._bounds:
            slope[start:end] -= self.tables[start:end] * slope[start:end].sum(axis=0)
        return loss, slope, self.weights * (along_weights - self.weights @ along_weights)

    def step(self, slopes: Sequence[Singles]) -> None:
        """A step against the slopes, each number by as much as its slope is large for it (Adam)."""
        self.taken += 1
        fresh = 1 - FORGET**self.taken
        rate = self.rate * max(SLOWEST, 1 - self.taken / self.steps)
        for logs, slope, mean, square in zip((self.logs, self.weigh), slopes, self._mean, self._square, strict=True):
            mean *= FORGET
            mean += (1 - FORGET) * slope
            square *= FORGET
            square += (1 - FORGET) * slope * slope
            logs -= (rate / fresh) * mean / (np.sqrt(square / fresh) + np.float32(1e-12))
        self._settle()


def fit_ensemble(
    domain: Domain,
    looks: Iterable[Look],
    *,
    total: float,
    members: int = 24,
    components: int = 64,
    steps: int = 300,
    rate: float = 0.1,
    tell: Tell | None = None,
) -> Mixture:
    """The mean of so many mixtures, each fitted to all looks, weights 1/variance, until it is off by the noise.

    Each minimises Σ weight/2 ‖M m − values‖² over all looks and stops when that is `misfit`/2 for each number, or after
    so many steps. Without `components` and `misfit` both are found by checking with a tenth of what was measured. If
    the product of the single columns is off by no more than the noise, it is the model: nothing else can be learned.
    Nothing is drawn at random: the same looks give the same mixture, up to rounding.

    where M is the measuring matrix of a look and m the marginal of its columns. `tell` hears how far it is, up to 1.
    """
    positive("total", total, next_step="Estimate the number of rows, and give 1 if that is less.")
    listed, number = list(looks), whole("members", members, least=1)
    features = features_of(listed, domain).single()
    product = _product(domain, listed, total)
    centre = _centre(product, domain)
    if features.loss(product, np.ones(1, dtype=np.float32), total)[0] <= features.numbers / 2:
        return Mixture(domain, float(total), np.ones(1), product.astype(np.float64))
    misfit = noise_level(features, product, total)
    found = []
    for each in range(number):
        member = Member(_start(centre, components, each), domain.shape, total, rate=rate, steps=steps)
        for _ in range(steps):
            loss, *slopes = member.loss(features)
            member.recent = [*member.recent[1 - member.stride :], loss] if member.stride > 1 else [loss]
            if sum(member.recent) / len(member.recent) <= misfit * features.numbers / 2:
                break
            member.step(slopes)
        found.append(member)
        if tell is not None:
            tell((each + 1) / number)
    tables, weights = _mean(found)
    loss = features.loss(tables, weights, total)[0]
    exact = tables.astype(np.float64), weights.astype(np.float64)
    return Mixture(domain, float(total), exact[1] / exact[1].sum(), exact[0], 2 * loss / max(features.numbers, 1))


def noise_level(features: Features, product: Singles, total: float) -> float:
    """The misfit of a good model: 1 if all is noise, less the more numbers there are to be learned.

    A model that learns p of N numbers is off by N − p of them. About half of those that the product of the single
    columns misses by three standard deviations are learned, the others are told by them.
    """
    missed = features.missed(product, total, FAR)
    return 1.0 - missed / 2


def _mean(members: Sequence[Member]) -> tuple[Any, Any]:
    tables = np.concatenate([member.tables for member in members], axis=1)
    return tables, np.concatenate([member.weights for member in members]) / np.float32(len(members))


def _product(domain: Domain, looks: Sequence[Look], total: float) -> Singles:
    """One component, fitted to everything: the product of the single columns."""
    return fit_mixture(domain, looks, total=total, components=1, fits=1, steps=60, misfit=0.0).tables.astype(np.float32)


def _centre(product: Singles, domain: Domain) -> Numbers:
    equal = np.repeat(1.0 / np.array(domain.shape), domain.shape)[:, None]
    return np.asarray(np.log((product + LEAST * equal) / (1 + LEAST)))


def _start(centre: Numbers, components: int, seed: int) -> Singles:
    """Components around the product of the single columns."""
    return (centre + SPREAD * normal((len(centre), components), seed=seed)).astype(np.float32)
