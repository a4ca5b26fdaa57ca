"""Smoking and cancer: what an insurer learns about Alice from a study, with her row in it and without.

Alice smokes. The insurer does not know whether smoking makes people ill, nor whether Alice is ill. A study counts the
ill among its smokers and releases the count with Laplace noise. Beliefs before and after are computed by Bayes' rule,
exactly but for the rounding of doubles; in the world without her, her row always says "well".
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.cache import memoize
from discreet.mechanism.laplace import laplace
from discreet.numeric import Number, positive, probability, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.types import Floats

_ONE = scalar_sensitivity(0, 1, Unit(neighbors="replace_one"))


@dataclass(frozen=True, slots=True)
class Study:
    """A study: its number of smokers, Alice among them, the share that falls ill if smoking is harmless or harmful.

    `suspicion` is the insurer's probability, before the study, that smoking is harmful.

    >>> Study(epsilon=1).belief_before
    0.2
    """

    epsilon: Number
    smokers: int = 1000
    harmless: float = 0.1
    harmful: float = 0.3
    suspicion: float = 0.5

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("smokers", self.smokers, least=2, most=10_000)
        for name in ("harmless", "harmful", "suspicion"):
            probability(name, getattr(self, name))

    @property
    def belief_before(self) -> float:
        """The insurer's prior probability that Alice falls ill."""
        return (1 - self.suspicion) * self.harmless + self.suspicion * self.harmful


@dataclass(frozen=True, slots=True)
class Learned:
    """The insurer's beliefs after a study: that smoking is harmful, and that Alice falls ill."""

    harmful: float
    ill: float


def learned(study: Study, release: int, *, with_alice: bool) -> Learned:
    """The insurer's beliefs after this noisy count, from a study that used Alice's row or one that did not.

    >>> study = Study(epsilon=1)
    >>> one, other = learned(study, 310, with_alice=True), learned(study, 310, with_alice=False)
    >>> round(one.harmful, 6), round(one.ill, 4), round(other.ill, 4)
    (1.0, 0.3099, 0.3)
    """
    logs = _joint(study) + _release_logs(study, np.array([release]), with_alice)[:, :, 0]
    beliefs = np.exp(logs - _log_sum(logs.reshape(4, 1)))
    return Learned(harmful=float(beliefs[1].sum()), ill=float(beliefs[:, 1].sum()))


def largest_difference(study: Study) -> float:
    """The largest |ln| of any ratio between the insurer's beliefs with Alice's row and without, over all releases.

    Of every event: whether smoking is harmful, whether Alice is ill, both or neither. It is at most 2·epsilon.

    >>> 0.1 < largest_difference(Study(epsilon=0.5)) <= 1
    True
    """
    # Beyond the possible counts the likelihood ratios are constant.
    releases = np.arange(-1, study.smokers + 2)
    one, other = (_posterior_logs(study, releases, with_alice) for with_alice in (True, False))
    return float(np.abs(one - other).max())


def typical_beliefs(study: Study, *, harmful: bool, with_alice: bool) -> Learned:
    """The insurer's mean beliefs over all possible studies in a world where smoking is, or is not, harmful.

    >>> study = Study(epsilon=1)
    >>> round(typical_beliefs(study, harmful=True, with_alice=False).ill, 3)
    0.3
    """
    releases, chances = _typical_releases(study, harmful, with_alice)
    mean = np.exp(_posterior_logs(study, releases, with_alice)) @ chances
    return Learned(harmful=float(mean[1].sum()), ill=float(mean[:, 1].sum()))


def typical_difference(study: Study, *, harmful: bool) -> float:
    """The mean difference of the beliefs that Alice falls ill, with her row and without it, over such studies.

    >>> typical_difference(Study(epsilon=1), harmful=True) < 0.02
    True
    """
    releases, chances = _typical_releases(study, harmful, True)
    one, other = (np.exp(_posterior_logs(study, releases, used))[:, 1].sum(axis=0) for used in (True, False))
    return float(np.abs(one - other) @ chances)


def run_study(study: Study, *, harmful: bool, alice_is_ill: bool, with_alice: bool = True) -> int:
    """Draw the other smokers, count the ill, and release the count with noise: epsilon-DP.

    >>> 200 < run_study(Study(epsilon=1), harmful=True, alice_is_ill=False) < 400
    True
    """
    rate = study.harmful if harmful else study.harmless
    others = np.asarray(noise.uniform_below(2**40, size=study.smokers - 1)) < rate * 2**40
    count = int(others.sum()) + int(alice_is_ill and with_alice)
    released = laplace(epsilon=study.epsilon, sensitivity=_ONE).release(Exact(np.array([count]), _ONE))
    return int(released[0])


def _typical_releases(study: Study, harmful: bool, with_alice: bool) -> tuple[NDArray[np.int64], Floats]:
    """All results of more than negligible probability, with their probabilities."""
    releases = np.arange(-_reach(study), study.smokers + _reach(study) + 1)
    rate = study.harmful if harmful else study.harmless
    given = _release_logs(study, releases, with_alice)[int(harmful)]
    chances = (1 - rate) * np.exp(given[0]) + rate * np.exp(given[1])
    return releases, chances / chances.sum()


def _posterior_logs(study: Study, releases: NDArray[np.int64], with_alice: bool) -> Floats:
    """ln of the belief in (harmful, ill) after each release: the axes are harmful, ill, release."""
    logs = _joint(study)[:, :, None] + _release_logs(study, releases, with_alice)
    result: Floats = logs - _log_sum(logs.reshape(4, -1))
    return result


def _joint(study: Study) -> Floats:
    """ln of the belief in (harmful, ill) before: the same whether her row is used or not."""
    worlds = (1 - study.suspicion, study.harmless), (study.suspicion, study.harmful)
    return np.array([[log(share) + log1p(-rate), log(share) + log(rate)] for share, rate in worlds])


def _release_logs(study: Study, releases: NDArray[np.int64], with_alice: bool) -> Floats:
    """ln of the probability of each release, given (harmful, ill)."""
    rates = study.harmless, study.harmful
    plain = [_noisy_count_logs(study, rate, releases) for rate in rates]
    moved = [_noisy_count_logs(study, rate, releases - 1) for rate in rates] if with_alice else plain
    return np.array([[plain[world], moved[world]] for world in (0, 1)])


def _noisy_count_logs(study: Study, rate: float, releases: NDArray[np.int64]) -> Floats:
    """ln Pr[Binomial + noise = release], for the smokers other than Alice."""
    counts, binomial = _binomial_logs(study.smokers - 1, rate)
    decay = float(positive("epsilon", study.epsilon))
    noise = log(-np.expm1(-decay)) - log1p(exp(-decay)) - decay * np.abs(releases[None, :] - counts[:, None])
    return _log_sum(binomial[:, None] + noise)


def _log_sum(logs: Floats) -> Floats:
    """ln Σ exp along the first axis; the largest is factored out, so that nothing underflows."""
    largest = logs.max(axis=0)
    result: Floats = largest + np.log(np.exp(logs - largest).sum(axis=0))
    return result


@memoize(8)
def _binomial_logs(people: int, rate: float) -> tuple[NDArray[np.int64], Floats]:
    counts = np.arange(people + 1)
    factorials = np.array([lgamma(count + 1) for count in range(people + 1)])
    choose = factorials[-1] - factorials - factorials[::-1]
    return counts, choose + counts * log(rate) + (people - counts) * log1p(-rate)


def _reach(study: Study) -> int:
    """Noise beyond this has a probability below 10⁻¹²."""
    return int(28 / float(positive("epsilon", study.epsilon))) + 1
