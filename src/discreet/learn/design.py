"""How a holdout or a leaderboard compares: thresholds, noise and price, before anything is paid. Proofs: holdout.md"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter
from discreet.mechanism import gaussian as gaussian_noise
from discreet.mechanism.gaussian import half_width as gaussian_half_width
from discreet.mechanism.laplace import half_width as laplace_half_width
from discreet.mechanism.protocol import Interactive, Mechanism
from discreet.mechanism.sparse_vector import Answer, Run, sparse_vector
from discreet.privacy.event import AboveThreshold, Compose, Event, Gaussian, Repeat
from discreet.privacy.gate import Gate, charge_of
from discreet.privacy.sensitivity import Sensitivity
from discreet.session.chance import alarm_chance, least_whole, pass_chance
from discreet.session.design import largest_epsilon

Method = Literal["best", "thresholdout", "gaussian"]
METHODS: tuple[Method, ...] = ("best", "thresholdout", "gaussian")

# More checks than this are a slip of the pen.
MOST_CHECKS, MOST_QUERIES = 10**4, 10**9


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked for: a price, how many questions and checks, how sure, and what is not yet an overfit.

    `near` is in steps of the grid, as all values are; one row moves a value by at most `moves`. `failure` is the
    probability that any answer is further from the held rows than was said.
    """

    gate: Gate
    queries: int
    checks: int
    failure: float
    near: int
    moves: Sensitivity


@dataclass(frozen=True, slots=True)
class Design:
    """`runs` sparse vectors of `hits` each, one after the other; all are paid at the start.

    A comparison says whether a value is above a public guess by more than `threshold`, about. What passes is less than
    `pass_error` above it, and a value that is told is within `value_error`, all together but for the failure. The
    values have Laplace noise inside the sparse vector (`third` of its epsilon), or, if there is a `sigma`, Gaussian
    noise after it.
    """

    terms: Terms
    runs: int
    hits: int
    epsilon: Fraction
    first: Fraction
    third: Fraction
    sigma: Fraction | None
    threshold: int = 0
    pass_error: int = 0
    value_error: int = 0

    @property
    def checks(self) -> int:
        """How many hits there are in all."""
        return self.runs * self.hits

    @property
    def method(self) -> Method:
        """How values are told."""
        return "thresholdout" if self.sigma is None else "gaussian"

    @property
    def event(self) -> Event:
        """All that may be done, however many questions are asked."""
        run: Event = AboveThreshold(self.epsilon)
        if self.sigma is not None:
            run = Compose((run, Gaussian(self.sigma, self.terms.moves.l2_squared)))
        return run if self.runs == 1 else Repeat(run, self.runs)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Of the noise of a threshold and of a comparison."""
        second = self.epsilon - self.first - self.third
        return self.terms.moves.linf / self.first, 2 * self.hits * self.terms.moves.linf / second

    def comparison(self) -> Interactive[Run, Answer]:
        """One of the sparse vectors."""
        return sparse_vector(
            epsilon=self.epsilon,
            epsilon_threshold=self.first,
            epsilon_values=self.third or None,
            # A guess may be too low or too high, so values move apart.
            sensitivity=replace(self.terms.moves, direction=0),
            threshold=self.threshold,
            hits=self.hits,
        )

    def value(self) -> Mechanism[NDArray[np.int64]] | None:
        """What tells a value after a hit, where the sparse vector does not."""
        return None if self.sigma is None else gaussian_noise(sigma=self.sigma, sensitivity=self.terms.moves)

    def errors(self, failure: float) -> tuple[int, int]:
        """`pass_error` and `value_error` for another probability of failure, half for each."""
        passing = partial(
            pass_chance,
            scales=(float(self.scales[0]), float(self.scales[1])),
            threshold=self.threshold,
            queries=self.terms.queries,
            runs=self.runs,
        )
        sure = 1 - Fraction(failure) / 2
        if self.sigma is None:
            scale = self.hits * self.terms.moves.linf / self.third
            told = laplace_half_width(scale, sure, joint=self.checks)
        else:
            told = gaussian_half_width(self.sigma, sure, joint=self.checks)
        return least_whole(lambda bar: passing(error=bar) <= failure / 2, least=self.threshold), int(told)


@lru_cache(maxsize=256)
def designed(terms: Terms, *, method: Method = "best", threshold: int | None = None) -> Design:
    """The design with the smallest error for these terms.

    The threshold, if none is given, is the lowest at which, but for probability `failure`, no comparison is a hit whose
    value is within `near` of its guess.
    """
    if method not in METHODS:
        raise BadParameter(f"method is {method!r}; it must be one of {', '.join(METHODS)}.")
    if method == "gaussian" and terms.gate.kind == "pure":
        raise BadParameter(
            'method is "gaussian" and there is no delta; Gaussian noise needs one. Give a delta, say 1e-6, or a ledger '
            'with one; or method="thresholdout".'
        )
    shapes = {(1, terms.checks, False)} if method != "gaussian" else set()
    if terms.gate.kind != "pure":
        shapes |= {(terms.checks, 1, False)} if method != "gaussian" else set()
        shapes |= {(terms.checks, 1, True)} if method != "thresholdout" else set()
    found = [_placed(_priced(terms, *shape), threshold) for shape in sorted(shapes)]
    return min(found, key=lambda design: max(design.pass_error, design.value_error))


def _priced(terms: Terms, runs: int, hits: int, gaussian: bool) -> Design:
    """As much epsilon for each run as the price allows."""
    first, third = _shares(terms, runs, hits, gaussian)

    def made(epsilon: Fraction) -> Design:
        # The noise of a value has the standard deviation that a comparison has for a scale.
        sigma = 2 * terms.moves.linf / (epsilon * (1 - first)) if gaussian else None
        return Design(terms, runs, hits, epsilon, epsilon * first, epsilon * third, sigma)

    def fits(epsilon: Fraction) -> bool:
        return terms.gate.fits(terms.gate.nothing, charge_of(terms.gate.kind, made(epsilon).event))

    return made(largest_epsilon(fits, terms.gate.epsilon))


def _placed(design: Design, threshold: int | None) -> Design:
    if threshold is None:
        alarm = partial(
            alarm_chance,
            scales=(float(design.scales[0]), float(design.scales[1])),
            off=design.terms.near,
            queries=design.terms.queries,
            runs=design.runs,
        )
        threshold = least_whole(lambda level: alarm(threshold=level) <= design.terms.failure)
    placed = replace(design, threshold=threshold)
    pass_error, value_error = placed.errors(design.terms.failure)
    return replace(placed, pass_error=pass_error, value_error=value_error)


def _shares(terms: Terms, runs: int, hits: int, gaussian: bool) -> tuple[Fraction, Fraction]:
    """How a run divides its epsilon, about best: the error of what passes is about 2 A + 2 B, that of a value V.

    Any division is private, so it may be rounded.
    """
    parts = [
        sqrt(2 * log(2 * runs / terms.failure)),
        sqrt(4 * hits * log(4 * terms.queries / terms.failure)),
        0.0 if gaussian else sqrt(hits * log(2 * runs * hits / terms.failure) / 2),
    ]
    return (
        Fraction(parts[0] / sum(parts)).limit_denominator(1000),
        Fraction(parts[2] / sum(parts)).limit_denominator(1000),
    )
