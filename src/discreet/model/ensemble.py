"""Many small mixtures, each fitted from another start until it is off by the noise alone; their mean is the model.

One mixture that fits what was measured is one guess among many: they agree on the pairs and differ on three columns.
Their mean is a mixture too, so it is consistent and never negative, and it is much nearer to the table than any of
them: on a census table of which all pairs were measured, the mean of thirty is a third nearer than one of them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discreet.model.alone import product_of
from discreet.model.features import Features, features_of
from discreet.model.mixture import Mixture
from discreet.model.protocol import Floats, Look, Numbers
from discreet.model.scattered import normal
from discreet.parameter import positive, whole
from discreet.schema.domain import Domain

Singles = NDArray[np.float32]
# Hears how much is done, from 0 to 1; it may raise to stop the work.
Tell = Callable[[float], None]

# How far from the product of the single columns the components start, in logarithms.
SPREAD = 1.3
# A cell starts with at least this part of an equal share: from nothing nothing can grow.
LEAST = 0.02
# How quickly the means of slopes and of their squares forget. The second is far below the usual 0.999: slopes shrink
# by orders of magnitude within a few dozen steps.
FORGET = 0.9
# The first step moves a logarithm by so much; steps get shorter in a straight line, down to this part of it.
RATE, SLOWEST = 0.1, 0.03
# A number is missed by the product of the single columns if it is so many standard deviations away.
FAR = 3.0


def fit_ensemble(
    domain: Domain,
    looks: Iterable[Look],
    *,
    total: float,
    members: int = 24,
    components: int = 64,
    steps: int = 300,
    tell: Tell | None = None,
) -> Mixture:
    """The mean of so many mixtures of so many components, each fitted to all looks until it is off by the noise.

    Each minimises Σ weight/2 ‖M m − values‖² over all looks (weight 1/variance) and stops at the `noise_level`, or
    after so many steps. If the product of the single columns is off by no more than the noise, it is the model:
    nothing else can be learned. Nothing is drawn at random: the same looks give the same mixture, up to rounding.

    The components of a member lie together, in the order of the members; a member's weigh 1/`members` together.

    where M is the measuring matrix of a look and m the marginal of its columns.
    """
    positive("total", total, next_step="Estimate the number of rows, and give 1 if that is less.")
    number, size = whole("members", members, least=1), whole("components", components, least=1)
    listed = list(looks)
    features = features_of(listed, domain).single()
    product = product_of(domain, listed, total=total)
    apart = features.loss(product.tables.astype(np.float32), np.ones(1, dtype=np.float32), total)[0]
    if size == 1 or apart <= features.numbers / 2:
        return replace(product, misfit=2 * apart / max(features.numbers, 1))
    level = noise_level(features, product) * features.numbers / 2
    centre = _centre(product)
    found = []
    for each in range(number):
        start = (centre + SPREAD * normal((len(centre), size), seed=each)).astype(np.float32)
        found.append(descended(Member(start, domain.shape, total, steps=steps), features, level))
        if tell is not None:
            tell((each + 1) / number)
    tables = np.concatenate([member.tables for member in found], axis=1)
    weights = np.concatenate([member.weights for member in found]).astype(np.float64)
    weights /= weights.sum()
    loss = features.loss(tables, weights.astype(np.float32), total)[0]
    return Mixture(domain, float(total), weights, tables.astype(np.float64), 2 * loss / max(features.numbers, 1))


def noise_level(features: Features, product: Mixture) -> float:
    """The misfit of a good model: 1 if nothing is to be learned, and less the more numbers tell something.

    A model that learns p of N numbers, noise and all, is off by the noise of N − p. About half of the numbers that the
    product of the single columns misses are learned so; the others follow from them.
    """
    return 1.0 - features.missed(product.tables, product.total, FAR) / 2


class Member:
    """A mixture on its way downhill, in single precision: rounding is far below the noise."""

    def __init__(self, start: Singles, shape: Sequence[int], total: float, *, steps: int) -> None:
        self.total, self.steps, self.taken = total, steps, 0
        ends = np.cumsum(shape).tolist()
        self._columns = [slice(end - size, end) for end, size in zip(ends, shape, strict=True)]
        # The logarithms of the tables and of the weights, and running means of their slopes and the squares of these.
        self._logs = (start, np.zeros(start.shape[1], dtype=np.float32))
        self._means = tuple(map(np.zeros_like, self._logs))
        self._squares = tuple(map(np.zeros_like, self._logs))
        self._settle()

    def loss(self, features: Features) -> tuple[float, tuple[Floats, Floats]]:
        """The loss, and its slopes along the logarithms."""
        loss, along_tables, along_weights = features.loss(self.tables, self.weights, self.total, turn=self.taken)
        slopes = self.tables * along_tables
        for column in self._columns:
            slopes[column] -= self.tables[column] * slopes[column].sum(axis=0)
        return loss, (slopes, self.weights * (along_weights - self.weights @ along_weights))

    def step(self, slopes: tuple[Floats, Floats]) -> None:
        """A step against the slopes, each as long as the slope is large for its number (Adam)."""
        self.taken += 1
        fresh = 1 - FORGET**self.taken
        rate = np.float32(RATE * max(SLOWEST, 1 - self.taken / self.steps) / fresh**0.5)
        for logs, slope, mean, square in zip(self._logs, slopes, self._means, self._squares, strict=True):
            mean += (1 - FORGET) * (slope - mean)
            square += (1 - FORGET) * (slope * slope - square)
            logs -= rate * mean / (np.sqrt(square) + np.finfo(np.float32).tiny)
        self._settle()

    def _settle(self) -> None:
        logs, weigh = self._logs
        tables = np.empty_like(logs)
        for column in self._columns:
            np.subtract(logs[column], logs[column].max(axis=0), out=tables[column])
        np.exp(tables, out=tables)
        for column in self._columns:
            tables[column] /= tables[column].sum(axis=0)
        weights = np.exp(weigh - weigh.max())
        self.tables, self.weights = tables, weights / weights.sum()


def descended(member: Member, features: Features, level: float) -> Member:
    """The member after as many steps as bring its loss to this level, or as it may take."""
    recent = deque[float](maxlen=features.turns)
    for _ in range(member.steps):
        loss, slopes = member.loss(features)
        recent.append(loss)
        if sum(recent) <= level * len(recent):
            break
        member.step(slopes)
    return member


def _centre(product: Mixture) -> Numbers:
    """The logarithms of the tables of a product, none of them far below an equal share."""
    shape = product.domain.shape
    equal = np.repeat(1.0 / np.array(shape), shape)[:, None]
    return np.asarray(np.log((product.tables + LEAST * equal) / (1 + LEAST)))
