"""Thresholds, noise and price of the comparisons of a holdout or leaderboard: public numbers. Proofs: holdout.md"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, log, sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.calibrate import largest_epsilon
from discreet.accounting.event import AboveThreshold, Coin, Compose, Event, Gaussian, Repeat
from discreet.accounting.filter import FilterKind, Gate, charge_of
from discreet.accounting.sensitivity import Sensitivity
from discreet.cache import memoize
from discreet.errors import BadParameter, BudgetExceeded
from discreet.mechanism import gaussian as gaussian_noise
from discreet.mechanism.gaussian import gaussian_half_width
from discreet.mechanism.laplace import laplace_half_width
from discreet.mechanism.model_coin import ModelCoin, model_coin
from discreet.mechanism.protocol import Interactive, Mechanism
from discreet.mechanism.sparse_vector import Run, StreamAnswer, sparse_vector
from discreet.mechanism.sparse_vector_error import alarm_chance, least_whole, pass_chance

ComparisonMethod = Literal["best", "thresholdout", "gaussian", "coin"]
# The currencies in which each has a price.
_OFFERED: dict[ComparisonMethod, tuple[FilterKind, ...]] = {
    "best": ("pure", "gaussian", "renyi"),
    "thresholdout": ("pure", "gaussian", "renyi"),
    "gaussian": ("gaussian", "renyi"),
    "coin": ("renyi",),
}

# Larger numbers are taken for a mistake.
MOST_CHECKS, MOST_QUERIES = 10**4, 10**9


@dataclass(frozen=True, slots=True)
class ComparisonTerms:
    """The price, the numbers of questions and checks, the failure probability, and the distance that is no overfit.

    That distance, `tolerance`, is in steps of the grid, as all values are; one row moves a value by at most `moves`.
    `failure` is the probability that some answer is further from the held rows than its stated error.
    """

    gate: Gate
    queries: int
    checks: int
    failure: float
    tolerance: int
    moves: Sensitivity


@dataclass(frozen=True, slots=True)
class ComparisonDesign:
    """How values are compared with public guesses and released; all of it is paid at the start.

    A comparison decides, with noise, whether a value is above a guess by more than `threshold`. A value that passes is
    less than `pass_error` above its guess, and a released value is within `value_error` of the true one: all of them
    together, except with the probability of failure.

    Either there are `runs` sparse vectors of `hits` each, one after the other. Each costs `epsilon`: `first` for its
    threshold, `third` for Laplace noise on the values, the rest for comparisons. Or, if `log_odds` are given, there is
    one coin for each question, whose log-odds one row moves by that. With a `sigma` the values have Gaussian noise,
    drawn after the comparison.
    """

    terms: ComparisonTerms
    runs: int
    hits: int
    epsilon: Fraction
    first: Fraction
    third: Fraction
    sigma: Fraction | None
    threshold: int = 0
    pass_error: int = 0
    value_error: int = 0
    log_odds: Fraction | None = None

    @property
    def checks(self) -> int:
        """The number of hits in all."""
        return self.runs * self.hits

    @property
    def method(self) -> ComparisonMethod:
        """The method by which values are compared and released."""
        if self.log_odds is not None:
            return "coin"
        return "thresholdout" if self.sigma is None else "gaussian"

    @property
    def event(self) -> Event:
        """The event of a whole session, for any number of questions."""
        if self.log_odds is not None:
            return Compose((Coin(self.log_odds, self.checks), Repeat(self._value_event, self.checks)))
        run: Event = AboveThreshold(self.epsilon)
        if self.sigma is not None:
            run = Compose((run, self._value_event))
        return run if self.runs == 1 else Repeat(run, self.runs)

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """The scales of the noise of a threshold and of a comparison of a sparse vector."""
        second = self.epsilon - self.first - self.third
        return self.terms.moves.linf / self.first, 2 * self.hits * self.terms.moves.linf / second

    def comparison(self) -> Interactive[Run, StreamAnswer]:
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

    def coin(self, *, shift: int = 0) -> ModelCoin:
        """The coin: likely heads if the distance of a value from its guess exceeds the threshold.

        With a `shift` as large as any value, and a guess smaller by that, a value can only be above its guess.
        """
        assert self.log_odds is not None, "there is a coin"
        return model_coin(
            steepness=self.log_odds / self.terms.moves.linf,
            sensitivity=self.terms.moves,
            error=self.pass_error + shift,
            confidence=1 - self._each(self.terms.failure),
        )

    def value(self) -> Mechanism[NDArray[np.int64]] | None:
        """The mechanism that releases a value after a hit; None if the sparse vector does."""
        return None if self.sigma is None else gaussian_noise(sigma=self.sigma, sensitivity=self.terms.moves)

    def errors(self, failure: float) -> tuple[int, int]:
        """`pass_error` and `value_error` for another probability of failure, half for each."""
        sure = 1 - Fraction(failure) / 2
        if self.sigma is None:
            value_error = laplace_half_width(self.hits * self.terms.moves.linf / self.third, sure, joint=self.checks)
        else:
            value_error = gaussian_half_width(self.sigma, sure, joint=self.checks)
        if self.log_odds is not None:
            return ceil(self.threshold + self._steps(log(1 / float(self._each(failure))))), int(value_error)
        passing = partial(
            pass_chance,
            scales=(float(self.scales[0]), float(self.scales[1])),
            threshold=self.threshold,
            queries=self.terms.queries,
            runs=self.runs,
        )
        return self._least(lambda bar: passing(error=bar) <= failure / 2, self.threshold), int(value_error)

    def lowest_threshold(self) -> int:
        """The lowest threshold at which, except with the probability of failure, no value within tolerance is a hit."""
        if self.log_odds is not None:
            return ceil(self.terms.tolerance + self._steps(log(self.terms.queries / self.terms.failure))) + 1
        alarm = partial(
            alarm_chance,
            scales=(float(self.scales[0]), float(self.scales[1])),
            off=self.terms.tolerance,
            queries=self.terms.queries,
            runs=self.runs,
        )
        return self._least(lambda level: alarm(threshold=level) <= self.terms.failure, 0)

    def _least(self, holds: Callable[[int], bool], least: int) -> int:
        """The smallest number from `least` on that satisfies a condition, to a sixteenth of a row."""
        unit = max(1, int(self.terms.moves.linf) // 16)
        return least + unit * least_whole(lambda parts: holds(least + parts * unit))

    @property
    def _value_event(self) -> Event:
        assert self.sigma is not None, "values have Gaussian noise"
        return Gaussian(self.sigma, self.terms.moves.l2_squared)

    def _each(self, failure: float) -> Fraction:
        """The probability with which each question may pass wrongly: half of the failure is for all of them."""
        return Fraction(failure) / (2 * self.terms.queries)

    def _steps(self, odds: float) -> float:
        """The change of a value that changes its log-odds by this; rounded up slightly."""
        assert self.log_odds is not None, "there is a coin"
        return odds * float(self.terms.moves.linf / self.log_odds) * (1 + 1e-12)


def choose_design(
    gates: Sequence[Gate],
    terms_of: Callable[[Gate], ComparisonTerms],
    *,
    method: ComparisonMethod = "best",
    threshold: int | None = None,
) -> ComparisonDesign:
    """The design with the smallest error, over the offered currencies and the methods that have a price in them."""
    if method not in _OFFERED:
        raise BadParameter(f"method is {method!r}; it must be one of {', '.join(_OFFERED)}.")
    offered = [gate for gate in gates if gate.kind in _OFFERED[method]]
    if not offered:
        where = " under a Rényi gate" if method == "coin" else ""
        raise BadParameter(
            f'method is "{method}"; it has a price only{where} with a delta. Give delta=1e-6, say, or a ledger whose '
            'budget has a delta and gate="renyi"; or method="thresholdout".'
        )
    return min((best_design(terms_of(gate), method=method, threshold=threshold) for gate in offered), key=_largest)


@memoize(256)
def best_design(
    terms: ComparisonTerms, *, method: ComparisonMethod = "best", threshold: int | None = None
) -> ComparisonDesign:
    """The design with the smallest error for these terms; by default with the lowest sensible threshold.

    >>> from discreet.accounting.filter import renyi_gate
    >>> one = Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))
    >>> terms = ComparisonTerms(renyi_gate(1, 1e-6), queries=1000, checks=50, failure=0.025, tolerance=336, moves=one)
    >>> {method: best_design(terms, method=method).pass_error for method in ("gaussian", "coin")}
    {'gaussian': 3416, 'coin': 1297}
    """
    deltas = terms.gate.kind != "pure"
    found = []
    if method in ("best", "thresholdout"):
        shapes = {(1, terms.checks), *([(terms.checks, 1)] if deltas else [])}
        found += [_sparse_vector_design(terms, runs, hits, gaussian=False) for runs, hits in sorted(shapes)]
    if method in ("best", "gaussian") and deltas:
        found.append(_sparse_vector_design(terms, terms.checks, 1, gaussian=True))
    if method in ("best", "coin") and terms.gate.kind == "renyi":
        found.append(_coin_design(terms))
    return min((_with_threshold(design, threshold) for design in found), key=_largest)


def _largest(design: ComparisonDesign) -> int:
    return max(design.pass_error, design.value_error)


def _sparse_vector_design(terms: ComparisonTerms, runs: int, hits: int, gaussian: bool) -> ComparisonDesign:
    """Sparse vectors, each with as much epsilon as the price allows."""
    first, third = _shares(terms, runs, hits, gaussian)

    def design_of(epsilon: Fraction) -> ComparisonDesign:
        # The standard deviation of the noise of a value is the scale of the noise of a comparison.
        sigma = 2 * terms.moves.linf / (epsilon * (1 - first)) if gaussian else None
        return ComparisonDesign(terms, runs, hits, epsilon, epsilon * first, epsilon * third, sigma)

    def fits(epsilon: Fraction) -> bool:
        return terms.gate.fits(terms.gate.nothing, charge_of(terms.gate.kind, design_of(epsilon).event))

    return design_of(largest_epsilon(fits, terms.gate.epsilon))


def _coin_design(terms: ComparisonTerms) -> ComparisonDesign:
    """A coin with log-odds as steep as the price allows; the noise of a value costs about a fifth of the price."""

    def design_of(log_odds: Fraction) -> ComparisonDesign:
        sigma, zero = 2 * terms.moves.linf / log_odds, Fraction(0)
        return ComparisonDesign(terms, 1, terms.checks, zero, zero, zero, sigma, log_odds=log_odds)

    def fits(log_odds: Fraction) -> bool:
        try:
            charge = charge_of(terms.gate.kind, design_of(log_odds).event)
        # Log-odds that one row moves too much have no finite Rényi divergence at any order.
        except BudgetExceeded:
            return False
        return terms.gate.fits(terms.gate.nothing, charge)

    return design_of(largest_epsilon(fits, terms.gate.epsilon))


def _with_threshold(design: ComparisonDesign, threshold: int | None) -> ComparisonDesign:
    placed = replace(design, threshold=design.lowest_threshold() if threshold is None else threshold)
    pass_error, value_error = placed.errors(design.terms.failure)
    return replace(placed, pass_error=pass_error, value_error=value_error)


def _shares(terms: ComparisonTerms, runs: int, hits: int, gaussian: bool) -> tuple[Fraction, Fraction]:
    """The shares of a run's epsilon for its threshold and its values, which nearly minimise the error.

    The error of a passing value is about twice the noise of threshold and comparison. Every division is private, so it
    may be rounded.
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
