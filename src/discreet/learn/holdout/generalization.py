"""Generalization from held rows to the population: bounds on the error of answers to adaptive questions.

An analyst who sees answers computed from n held rows, drawn independently from a population, and then chooses the next
question, can find one on which those rows are not like the population. Each bound here limits the error against the
population nevertheless, for all answers together. They are functions of public values, so the smallest is chosen before
a row is read, and comparing several costs nothing. Proofs: transfer.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import erfc, exp, expm1, floor, inf, lgamma, log, log1p, sqrt
from typing import Literal

from discreet.cache import memoize
from discreet.learn.holdout.comparison_design import ComparisonDesign
from discreet.learn.holdout.scores import GRID

# The number of values of a free parameter that are tried. The bound holds for every value, so a coarse search is safe.
_TRIED = 24

AccuracyAt = Callable[[float], float]


def log_choose(many: int, few: int) -> float:
    """ln of the binomial coefficient: the number of ways to choose `few` of `many`.

    >>> round(exp(log_choose(5, 2)))
    10
    """
    return lgamma(many + 1) - lgamma(few + 1) - lgamma(many - few + 1) if 0 <= few <= many else -inf


def log_transcripts(asked: int, hits: int, values: int, *, rising: bool = False) -> float:
    """ln of the number of transcripts of `asked` answers with `hits` hits; each hit has one of `values` values.

    On a leaderboard the values are `rising`: each is at least the one before.

    >>> round(exp(log_transcripts(3, 1, 10))), round(exp(log_transcripts(2, 2, 3, rising=True)))
    (30, 6)
    """
    return log_choose(asked, hits) + (log_choose(values + hits - 1, hits) if rising else hits * log(values))


def log_all_transcripts(queries: int, checks: int, values: int, *, rising: bool = False) -> float:
    """ln of an upper bound of the number of all transcripts of a session, which may end after any answer.

    >>> round(exp(log_all_transcripts(2, 1, 10)))  # none or one hit in two answers, left after none, one or both
    63
    """
    logs = [log_transcripts(queries, hits, values, rising=rising) for hits in range(min(checks, queries) + 1)]
    most = max(logs)
    return most + log(sum(exp(one - most) for one in logs)) + log(queries + 1)


def description_nats(
    *,
    asked: int,
    hits: int,
    queries: int,
    checks: int,
    values: int,
    failure: float,
    carried: float = 0.0,
    rising: bool = False,
) -> float:
    """ln(2N/β) for the union bound over all N questions that can come after `asked` answers with `hits` hits.

    Each pair of numbers (asked, hits) has an equal part of the failure, β = failure/(queries · checks); within a pair
    the question is a function of which answers were hits and of their values, so N = C(asked, hits) · values^hits
    (C(values + hits − 1, hits) if they are `rising`).

    where `carried` is ln of the number of transcripts of earlier sessions on the same rows.

    >>> early = description_nats(asked=0, hits=0, queries=1000, checks=10, values=32, failure=0.05)
    >>> late = description_nats(asked=999, hits=9, queries=1000, checks=10, values=32, failure=0.05)
    >>> round(early, 1), round(late, 1)
    (12.9, 93.4)

    [DFHPRR15b, §4]; proof: transfer.md, Theorem 2
    """
    return carried + log_transcripts(asked, hits, values, rising=rising) + log(2 * queries * checks / failure)


def deviation(rows: int, nats: float) -> float:
    """The error of a mean of `rows` numbers from [0, 1], except with probability 2e^−nats [Hoe63, Thm. 2].

    >>> round(deviation(10_000, 93.4), 4)
    0.0683
    """
    return sqrt(nats / (2 * rows))


def chernoff_interval(low: float, high: float, *, rows: int, nats: float) -> tuple[float, float]:
    """The means p of a population that a sample mean between `low` and `high` allows: rows · kl(mean, p) ≤ nats.

    It lies within `deviation` of both ends, and is much narrower close to 0 and 1.

    >>> wide, narrow = (chernoff_interval(m, m, rows=10_000, nats=90.0) for m in (0.5, 0.98))
    >>> [round(end, 3) for end in (*wide, *narrow)]
    [0.433, 0.567, 0.955, 0.993]

    [Hoe63, Thm. 1]; proof: transfer.md, Lemma 1
    """
    return _furthest(low, rows, nats, down=True), _furthest(high, rows, nats, down=False)


def jung(accuracy: AccuracyAt, *, epsilon: float, delta: float, failure: float) -> float:
    """The transfer theorem: private answers that are accurate on the held rows are accurate on the population.

    If with probability 1 − b all answers are within a = accuracy(b) of the held rows, and the whole conversation is
    (e, δ)-DP, then with probability 1 − b/c − δ/d all are within a + (exp(e) − 1) + c + 2d of the population, for all
    c, d > 0. The best c and d are searched for.

    >>> round(jung(lambda b: 0.01 * log(1 / b), epsilon=0.01, delta=0.0, failure=0.05), 3)
    0.096

    [JLNRSS20, Thm. 3.5]; proof: transfer.md, Theorem 3
    """
    shift = expm1(epsilon) if epsilon < 50 else inf
    if delta == 0:
        return shift + min(c + accuracy(failure * c) for c in _grid(1e-6, 1.0))
    parts = [0.25, 0.5, 0.75]
    return shift + min(
        c + accuracy(failure * (1 - part) * c) + 2 * delta / (failure * part) for part in parts for c in _grid(1e-6, 1)
    )


def bassily(accuracy: AccuracyAt, *, epsilon: float, delta: float, failure: float) -> float:
    """The earlier transfer theorem, for comparison only: it follows from that of `jung` (transfer.md, §2).

    The smallest a such that all answers are within a/8 of the held rows except with probability a·failure/16, and the
    conversation is (a/64)-DP with delta at most a·failure/32; at most 1.

    >>> round(bassily(lambda b: 0.01 * log(1 / b), epsilon=0.01, delta=0.0, failure=0.05), 3)
    0.64

    [BNSSSU16, Thm. 1.3]
    """
    low, high = max(64 * epsilon, 32 * delta / failure), 1.0
    if low >= 1 or accuracy(failure / 16) > 1 / 8:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if accuracy(middle * failure / 16) <= middle / 8 else (middle, high)
    return high


def gaussian_answers(*, rows: int, queries: int, failure: float) -> float:
    """The bound by `jung` if every question is answered from the held rows with Gaussian noise, without checks.

    The noise has mu = √queries/(rows · sigma) in all; epsilon is free, and delta follows exactly.

    >>> round(gaussian_answers(rows=10**6, queries=1000, failure=0.05), 3)
    0.045

    [JLNRSS20, §4; DRS22]
    """
    best = inf
    for mu in _grid(1e-4, 1.0, 40):
        sigma = sqrt(queries) / (rows * mu)

        def accuracy(b: float, sigma: float = sigma) -> float:
            return sigma * sqrt(2 * log(queries / b))

        for epsilon in _grid(mu / 4, 8 * mu, 24):
            delta = gaussian_mechanism_delta(epsilon, mu)
            if 2 * delta < failure:
                coarse = min(c + accuracy(failure / 2 * c) for c in _grid(1e-5, 0.3, 12))
                best = min(best, expm1(epsilon) + 4 * delta / failure + coarse)
    return min(best, 1.0)


def gaussian_mechanism_delta(epsilon: float, mu: float) -> float:
    """The delta at which mu-Gaussian DP is (epsilon, delta)-DP.

    >>> round(gaussian_mechanism_delta(1.0, 1.0), 4)
    0.1269

    [BW18, Thm. 8]
    """

    def below(x: float) -> float:
        return erfc(-x / sqrt(2)) / 2

    return max(0.0, below(mu / 2 - epsilon / mu) - exp(epsilon) * below(-mu / 2 - epsilon / mu))


def splitting(*, rows: int, queries: int, failure: float) -> float:
    """The baseline: each question has rows of its own, and exact answers.

    >>> round(splitting(rows=10_000, queries=1000, failure=0.05), 3)
    0.728
    """
    return min(1.0, deviation(max(rows // queries, 1), log(2 * queries / failure)))


def _grid(low: float, high: float, tried: int = _TRIED) -> list[float]:
    return [low * (high / low) ** (place / (tried - 1)) for place in range(tried)]


def _divergence(mean: float, p: float) -> float:
    """kl(mean, p) of two coins."""
    one = mean * log(mean / p) if mean > 0 else 0.0
    return one + ((1 - mean) * (log1p(-mean) - log1p(-p)) if mean < 1 else 0.0)


def _furthest(mean: float, rows: int, nats: float, *, down: bool) -> float:
    """The end of the interval on one side, rounded outwards."""
    mean = min(max(mean, 0.0), 1.0)
    if mean == (0.0 if down else 1.0):
        return mean
    inside, outside = mean, 0.0 if down else 1.0
    for _ in range(60):
        middle = (inside + outside) / 2
        # No double is left between the two.
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if rows * _divergence(mean, middle) <= nats else (inside, middle)
    return outside


PopulationBound = Literal["description length [DFHPRR15b]", "transfer theorem [JLNRSS20]"]

# Released values are multiples of one of these fractions. The finest is taken whose worst error is at most this factor
# above the least one.
_FINER = 1.03
_VALUES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
# The statistic as given and as rounded to the grid have means that differ by at most half a step.
_ROUNDING = 0.5 / GRID


@dataclass(frozen=True, slots=True)
class Population:
    """Intervals for the population, for all answers together.

    `values` is the number of steps from 0 to 1 on the grid of released values. By description length the interval grows
    with the number of answers so far, `asked`, and of hits among them, `hits`.
    """

    bound: PopulationBound
    rows: int
    queries: int
    checks: int
    values: int
    failure: float
    carried: float
    transfer: float
    rising: bool = False

    def released_value(self, steps: int) -> float:
        """The released value of a noisy sum: on the grid, from 0 to 1."""
        return min(max(floor(steps * self.values / (self.rows * GRID) + 0.5), 0), self.values) / self.values

    def interval(self, value: float, off: tuple[float, float], *, asked: int, hits: int) -> tuple[float, float]:
        """An interval for the population's mean, if that of the held rows is from value − off[0] to value + off[1]."""
        if self.bound == "transfer theorem [JLNRSS20]":
            low, high = value - self.transfer, value + self.transfer
        else:
            low, high = chernoff_interval(
                value - off[0], value + off[1], rows=self.rows, nats=self._nats(asked=asked, hits=hits)
            )
        return max(low - _ROUNDING, 0.0), min(high + _ROUNDING, 1.0)

    def half_width(self, off: float, *, asked: int, hits: int) -> float:
        """The largest error that an answer can have, for any value."""
        if self.bound == "transfer theorem [JLNRSS20]":
            return self.transfer
        return min(off + deviation(self.rows, self._nats(asked=asked, hits=hits)) + _ROUNDING, 1.0)

    @property
    def nats(self) -> float:
        """ln of the number of all transcripts, for sessions on the same rows that come after this one."""
        return self.carried + log_all_transcripts(self.queries, self.checks, self.values + 1, rising=self.rising)

    def _nats(self, *, asked: int, hits: int) -> float:
        return description_nats(
            asked=asked,
            hits=hits,
            queries=self.queries,
            checks=self.checks,
            values=self.values + 1,
            failure=self.failure,
            carried=self.carried,
            rising=self.rising,
        )


def population_of(
    design: ComparisonDesign, *, rows: int, failure: float, carried: float = 0.0, rising: bool = False
) -> Population:
    """The bound with the smallest worst error, and the grid of values for which it is smallest.

    `failure` is the probability of any failure: by description length half of it, the other half being that of the
    noise.
    """
    terms, whole = design.terms, rows * GRID
    pass_error, value_error = design.pass_error / whole, design.value_error / whole

    def described(values: int) -> Population:
        return Population(
            "description length [DFHPRR15b]",
            rows,
            terms.queries,
            terms.checks,
            values,
            failure / 2,
            carried,
            0.0,
            rising,
        )

    def worst(values: int) -> float:
        off = max(pass_error, value_error + 0.5 / values)
        return described(values).half_width(off, asked=terms.queries - 1, hits=min(terms.checks, terms.queries) - 1)

    least = min(map(worst, _VALUES))
    best = max(values for values in _VALUES if worst(values) <= _FINER * least)
    found = described(best)
    # The epsilon of this session does not cover earlier sessions.
    if carried == 0 and (shift := _transfer(design, whole, failure, less_than=worst(best))) < worst(best):
        bound: PopulationBound = "transfer theorem [JLNRSS20]"
        return Population(bound, rows, terms.queries, terms.checks, _VALUES[-1], failure, 0.0, shift, rising)
    return found


def _transfer(design: ComparisonDesign, whole: int, failure: float, *, less_than: float) -> float:
    """The bound of `jung`, or 1 if it cannot be smaller than `less_than`."""

    @memoize(2**12)
    def accuracy(chance: float) -> float:
        pass_error, value_error = design.errors(chance)
        return max(pass_error / whole, value_error / whole + 0.5 / _VALUES[-1])

    epsilon, delta = float(design.terms.gate.epsilon), float(design.terms.gate.delta)
    # The theorem gives at least this for all free parameters; their search would take seconds.
    if epsilon + accuracy(failure) >= less_than:
        return 1.0
    return min(jung(accuracy, epsilon=epsilon, delta=delta, failure=failure), 1.0)
