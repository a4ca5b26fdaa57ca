"""An ensemble of small mixtures, and data thinning, which separates what an ensemble learned from noise.

Each member is fitted from its own starting point until its residuals are as large as the noise; the model is their
mean. Many mixtures fit the same measurements: they agree on pairs and differ on three columns. The mean is a mixture
too, so it is consistent and never negative, and its error is much smaller than that of its members: on a census table
with all pairs measured, the mean of thirty has two thirds of the error of one.

Data thinning splits a measurement with normal noise into two that are independent given the table: noise is added to
one and subtracted from the other, so that their covariance is 0 [NDGW24]. A model that is fitted to the first is judged
by the second. This is post-processing, so it costs no budget.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.jit import on_one_processor
from discreet.model.interface import Model, NoisyMarginal
from discreet.model.mixture.features import Features, mixture_features
from discreet.model.mixture.independent_model import normal, product_of
from discreet.model.mixture.mixture_model import Mixture
from discreet.numeric import positive, whole
from discreet.schema.domain import Domain
from discreet.types import Numbers, Reals, Singles

# The noise that is added to the measurements to fit, in deviations of theirs; the held-out ones get its inverse.
ADDED = 0.5
# The seed of the noise: no start of a member of an ensemble has it.
_SEED = 2**20


def thin(measurements: Iterable[NoisyMarginal]) -> tuple[list[NoisyMarginal], list[NoisyMarginal]]:
    """Measurements to fit, with a little more noise, and held-out ones to judge by, with much more.

    With noise σ, the numbers of the first have y + c σ z and those of the second y − σ z/c, where z is from N(0, 1):
    the covariance of their noise is σ² − σ² = 0.
    """
    learn, judge = [], []
    for place, each in enumerate(measurements):
        noise = normal(np.shape(each.values), seed=_SEED + place) * each.weight**-0.5
        learn.append(replace(each, values=each.values + ADDED * noise, weight=each.weight / (1 + ADDED**2)))
        judge.append(replace(each, values=each.values - noise / ADDED, weight=each.weight / (1 + ADDED**-2)))
    return learn, judge


def confirmed_share(model: Model, simple: Model, measurements: Sequence[NoisyMarginal]) -> tuple[float, float]:
    """The part of a model's difference from a simpler one that held-out measurements confirm, and its deviation.

    The part is about 1 if the model is right, and about 0 if it has learned the noise of the measurements it was fitted
    to; above ½ the model is closer to the table. Both are infinite if the models do not differ.

    where the part is d·(y − a)/d·d for the numbers y of the measurements and a of the simple model, all over their
    deviations.
    """
    along, size = 0.0, 0.0
    for measurement in measurements:
        plain = simple.marginal(measurement.columns)
        apart = measurement.residual(plain, model.domain) - measurement.residual(
            model.marginal(measurement.columns), model.domain
        )
        along += measurement.weight * float((apart * measurement.residual(plain, model.domain)).sum())
        size += measurement.weight * float((apart**2).sum())
    return (along / size, size**-0.5) if size else (np.inf, np.inf)


# Receives the progress, from 0 to 1. It may return False to end the fit with the members so far, or raise to stop it.
Tell = Callable[[float], bool | None]


@dataclass(frozen=True, slots=True)
class EnsembleTuning:
    """Set by hand; no sweep is recorded. bench/release.py measures releases that use them.

    Two have a recorded reason: `missed_by_far` and `learned_by_far` lower the error on NLTCS at epsilon 10 from .00123
    to .00118; the shorter steps on a plateau lower that of a chain of columns at a rich budget from .0013 to .00003.
    """

    # The distance of the starting components from the product of the single columns, in logarithms.
    start_spread: float = 1.3
    # A cell starts with at least this part of an equal share: multiplicative steps never leave 0.
    start_floor: float = 0.02
    # β₁ and β₂ of Adam. The second is far below the usual 0.999: gradients shrink by orders of magnitude within a few
    # dozen steps.
    beta: float = 0.9
    # The first step moves a logarithm by the learning rate; steps get shorter in a straight line, down to this pace.
    learning_rate: float = 0.1
    slowest_pace: float = 0.03
    # If the loss of a mixture falls by less than a `plateau` (a part of it) in `patience` steps, its pace is divided by
    # the `decay`; it is at rest if its pace is the slowest already.
    plateau: float = 0.005
    patience: int = 20
    decay: float = 3.0
    # Progress is reported once in this many steps.
    report_every: int = 5
    # Components, and products of features, that are worked on at once: they stay in the processor's cache.
    batch_components: int = 2**9
    batch_products: int = 2**17
    # The product of the single columns misses a number if it is this number of standard deviations away. A number that
    # it misses by far is almost surely learned, with its noise.
    missed: float = 3.0
    missed_by_far: float = 100.0
    learned_by_far: float = 0.9
    # A product with a smaller misfit than this may be the better model. Then this number of members is fitted to a part
    # of each measurement, and the rest must confirm them by this number of standard deviations.
    doubtful_misfit: float = 1.3
    trial_members: int = 8
    trial_deviations: float = 2.0


TUNING = EnsembleTuning()


class Size(NamedTuple):
    """How many mixtures, of how many components each, after how many steps at most."""

    members: int
    components: int
    steps: int


@on_one_processor
def fit_ensemble(
    domain: Domain,
    measurements: Iterable[NoisyMarginal],
    *,
    total: float,
    members: int = 24,
    components: int = 64,
    steps: int = 300,
    supposed: Sequence[NoisyMarginal] = (),
    tell: Tell | None = None,
) -> Mixture:
    """The mean of several mixtures, each fitted to all measurements until its error is their noise.

    Each minimises Σ weight/2 ‖M m − values‖² over all measurements (weight 1/variance) and stops at the `noise_level`,
    or after the steps of `size`. If the product of the single columns fits to within the noise, it is the model:
    nothing else can be learned. If it fits almost as well, a few members are tried first, and held-out measurements
    must confirm what they learn (`thin`). Nothing is drawn at random: the same measurements give the same mixture, up
    to rounding.

    `supposed` are prior guesses in the form of measurements: they determine the mixtures where nothing was measured,
    and do not count as evidence. Without them a mixture would be arbitrary there.

    The components of a member lie together, in the order of the members, and their weights add up to 1/`members`.

    where M is the measuring matrix of a measurement and m the marginal of its columns.
    """
    positive("total", total, next_step="Estimate the number of rows, and give 1 if that is less.")
    size = Size(whole("members", members, least=1), whole("components", components, least=1), steps)
    listed = list(measurements)
    features = mixture_features(listed, domain).single()
    product = product_of(domain, listed, total=total)
    apart = features.loss(product.tables.astype(np.float32), np.ones(1, dtype=np.float32), total)[0]
    misfit = 2 * apart / max(features.numbers, 1)
    tried, learns = 0.0, size.components > 1
    if learns and misfit < TUNING.doubtful_misfit:
        few = min(size.members, TUNING.trial_members)
        tried = few / (few + size.members)
        trial = size._replace(members=few)
        learns = misfit > 1 and _learns_more_than_noise(product, listed, supposed, trial, _part(tell, 0.0, tried))
    if not learns:
        return replace(product_of(domain, listed, total=total, soft=True), misfit=misfit)
    level = noise_level(features, product) * features.numbers / 2
    drawn = mixture_features([*listed, *supposed], domain).single() if supposed else features
    found = _mean(product, drawn, level, size, _part(tell, tried, 1 - tried))
    loss = features.loss(found.tables.astype(np.float32), found.weights.astype(np.float32), total)[0]
    return replace(found, misfit=2 * loss / max(features.numbers, 1))


def _learns_more_than_noise(
    product: Mixture, measurements: Sequence[NoisyMarginal], supposed: Sequence[NoisyMarginal], size: Size, tell: Tell
) -> bool:
    """Whether an ensemble learns more than noise from the measurements."""
    learn, judge = thin(measurements)
    simple, features = product_of(product.domain, learn, total=product.total), mixture_features(learn, product.domain)
    level = noise_level(features, simple) * features.numbers / 2
    drawn = mixture_features([*learn, *supposed], product.domain) if supposed else features
    part, deviation = confirmed_share(_mean(simple, drawn.single(), level, size, tell), simple, judge)
    return part > max(0.5, TUNING.trial_deviations * deviation)


def _mean(product: Mixture, features: Features, level: float, size: Size, tell: Tell) -> Mixture:
    """The mean of mixtures, each after the steps of its `size` or at this level of its loss."""
    domain, total = product.domain, product.total
    centre = _centre(product)
    found: list[tuple[Reals, Reals]] = []
    batch = max(1, min(TUNING.batch_components // size.components, TUNING.batch_products // features.values.size))
    for first in range(0, size.members, batch):
        seeds = range(first, min(first + batch, size.members))
        starts = [centre + TUNING.start_spread * normal((len(centre), size.components), seed=each) for each in seeds]
        group = Members(np.stack(starts, axis=1).astype(np.float32), domain.shape, total, steps=size.steps)
        found += descend(group, features, level, _part(tell, first / size.members, len(seeds) / size.members))
        if group.enough:
            break
    tables = np.concatenate([tables for tables, _ in found], axis=1)
    weights = np.concatenate([weights for _, weights in found]).astype(np.float64)
    return Mixture(domain, float(total), weights / weights.sum(), tables.astype(np.float64))


def noise_level(features: Features, product: Mixture) -> float:
    """The misfit of a good model: 1 if nothing is to be learned, and smaller the more numbers are learned.

    A model that learns p of N numbers, with their noise, has the noise of N − p as its error. About half of the numbers
    that the product of the single columns misses are learned so, and most of those that it misses by far; the others
    follow.
    """
    missed, missed_by_far = (
        features.missed_share(product.tables, product.total, each) for each in (TUNING.missed, TUNING.missed_by_far)
    )
    return 1.0 - (missed + TUNING.learned_by_far * missed_by_far) / 2


class Members:
    """Mixtures that descend together by Adam, in single precision: rounding is far below the noise.

    `tables` has a row for each cell of each column, then an axis for the mixtures and one for their components.
    """

    tables: Reals
    weights: Reals

    def __init__(self, start: Singles, shape: Sequence[int], total: float, *, steps: int) -> None:
        self.total, self.steps, self.taken, self.enough = total, steps, 0, False
        self._owner = np.repeat(np.arange(len(shape)), shape)
        # Adds up the cells of each column.
        self._sum = (self._owner == np.arange(len(shape))[:, None]).astype(np.float32)
        # The logarithms of the tables and of the weights, and running means of their slopes and the squares of these.
        self._logs = (start, np.zeros(start.shape[1:], dtype=np.float32))
        self._means = tuple(map(np.zeros_like, self._logs))
        self._squares = tuple(map(np.zeros_like, self._logs))
        # How long the steps of each are, of at most 1.
        self.pace = np.ones(start.shape[1])
        self._settle()

    def losses(self, features: Features) -> tuple[Reals, tuple[Reals, Reals]]:
        """The losses, and their slopes along the logarithms."""
        losses, along_tables, along_weights = features.losses(self.tables, self.weights, self.total, turn=self.taken)
        slopes = self.tables * along_tables
        slopes -= self.tables * self._of_columns(slopes)[self._owner]
        along_weights -= (self.weights * along_weights).sum(axis=1, keepdims=True)
        return losses, (slopes, self.weights * along_weights)

    def step(self, slopes: tuple[Reals, Reals]) -> None:
        """One step of Adam with bias correction, in place."""
        self.taken += 1
        fresh = 1 - TUNING.beta**self.taken
        pace = np.minimum(self.pace, max(TUNING.slowest_pace, 1 - self.taken / self.steps))
        rate = (TUNING.learning_rate / fresh**0.5 * pace).astype(np.float32)[:, None]
        for logs, slope, mean, square in zip(self._logs, slopes, self._means, self._squares, strict=True):
            mean += (1 - TUNING.beta) * (slope - mean)
            square += (1 - TUNING.beta) * (slope * slope - square)
            logs -= rate * mean / (np.sqrt(square) + np.finfo(np.float32).tiny)
        self._settle()

    def keep(self, chosen: NDArray[np.int64]) -> None:
        """Go on with some of the mixtures."""
        self._logs, self._means, self._squares = (
            (tables[:, chosen], weights[chosen]) for tables, weights in (self._logs, self._means, self._squares)
        )
        self.tables, self.weights, self.pace = self.tables[:, chosen], self.weights[chosen], self.pace[chosen]

    def _settle(self) -> None:
        # The logarithms stay those of distributions, so their exponentials are never large.
        logs, weigh = self._logs
        tables, weights = np.exp(logs), np.exp(weigh)
        whole, all_weights = self._of_columns(tables), weights.sum(axis=1, keepdims=True)
        tables /= whole[self._owner]
        logs -= np.log(whole)[self._owner]
        weigh -= np.log(all_weights)
        self.tables, self.weights = tables, weights / all_weights

    def _of_columns(self, cells: Reals) -> Reals:
        """The sums over the cells of each column."""
        return np.asarray((self._sum @ cells.reshape(len(cells), -1)).reshape(-1, *cells.shape[1:]))


def descend(members: Members, features: Features, level: float, tell: Tell) -> list[tuple[Reals, Reals]]:
    """Adam steps until the loss of each member is at this level, on a plateau or out of steps; tables and weights."""
    found: dict[int, tuple[Reals, Reals]] = {}
    many = members.tables.shape[1]
    left = np.arange(many)
    recent = deque[Reals](maxlen=2 * TUNING.patience)
    while len(left):
        losses, slopes = members.losses(features)
        recent.append(losses)
        done = np.mean([recent[-at] for at in range(1, 1 + min(features.turns, len(recent)))], axis=0) <= level
        if members.enough or members.taken >= members.steps:
            done[:] = True
        elif members.taken % TUNING.patience == 0 and len(recent) == 2 * TUNING.patience:
            before, after = np.reshape(recent, (2, TUNING.patience, -1)).mean(axis=1)
            stuck = after > (1 - TUNING.plateau) * before
            done |= stuck & (members.pace < TUNING.slowest_pace)
            members.pace[stuck] /= TUNING.decay
        if done.any():
            for place in np.flatnonzero(done).tolist():
                found[int(left[place])] = members.tables[:, place].copy(), members.weights[place].copy()
            kept = np.flatnonzero(~done)
            left = left[kept]
            members.keep(kept)
            slopes = slopes[0][:, kept], slopes[1][kept]
            recent = deque((each[kept] for each in recent), maxlen=recent.maxlen)
        if len(left):
            members.step(slopes)
        if members.taken % TUNING.report_every == 0 or not len(left):
            members.enough |= tell(1 - len(left) / many * (1 - members.taken / (members.steps + 1))) is False
    return [found[each] for each in sorted(found)]


def _part(tell: Tell | None, begun: float, part: float) -> Tell:
    """Reports the progress of a part of the work as progress of the whole."""
    return lambda done: None if tell is None else tell(begun + part * done)


def _centre(product: Mixture) -> Numbers:
    """The logarithms of the tables of a product, none of them far below an equal share."""
    shape = product.domain.shape
    equal = np.repeat(1.0 / np.array(shape), shape)[:, None]
    return np.asarray(np.log((product.tables + TUNING.start_floor * equal) / (1 + TUNING.start_floor)))
