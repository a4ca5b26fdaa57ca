"""A holdout set that can be used again and again. Proofs: holdout.md and transfer.md"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import Any, Literal

from discreet.accounting.filter import Gate
from discreet.answer import number_text
from discreet.errors import BadParameter, Refusal
from discreet.learn.holdout.comparison_design import (
    MOST_CHECKS,
    MOST_QUERIES,
    ComparisonDesign,
    ComparisonMethod,
    ComparisonTerms,
    choose_design,
)
from discreet.learn.holdout.comparisons import Comparisons, steps_of
from discreet.learn.holdout.generalization import Population, PopulationBound, population_of
from discreet.learn.holdout.held_session import Account, HeldSession, read_rows_per_call
from discreet.learn.holdout.scores import GRID, Statistic, read_rows, sum_sensitivity, training_sum
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.numeric import Number, positive, probability, whole

Loss = Literal["wrong", "absolute", "squared"]


@dataclass(frozen=True, slots=True)
class HoldoutEstimate:
    """The mean of a statistic over the population: within `error` of `value`, and between `low` and `high`.

    All estimates of a holdout hold together, with probability `confidence`, for all questions. `origin` is "training"
    if the value is that of the training rows and the held rows agree, and "holdout" if it is that of the held rows.
    `bound` is the theorem by which it holds for the population.
    """

    value: float
    error: float
    low: float
    high: float
    confidence: float
    origin: Literal["training", "holdout"]
    bound: PopulationBound
    checks_left: int
    queries_left: int

    def __str__(self) -> str:
        sure = f"({100 * self.confidence:g} %, all answers together)"
        return f"{number_text(self.value, self.error)} {sure}, {self.origin}; {self.checks_left} checks left"

    def __float__(self) -> float:
        return self.value


class Holdout(HeldSession):
    """Estimates the mean of statistics over the population, although they are chosen by looking at earlier answers.

    `train` and `held` are arrays, frames, or tuples such as (X, y), of rows drawn independently from one population.
    `estimate(statistic)` compares the means over both: if they are close, it returns that of the training rows, which
    the analyst could have computed; otherwise that of the held rows, with noise, and uses one of `checks`. With
    probability `confidence` all of at most `queries` answers are within their stated errors. Everything is paid at the
    start: the held rows have `epsilon`-DP (with a `delta`, or a ledger that has one, (epsilon, delta)-DP), one row
    being replaced. The training rows are not protected. If you set `rows_per_call` above 1, you promise that every
    statistic, in a call with that many rows, scores a row by that row and its place alone.

    >>> import numpy as np
    >>> labels = np.arange(20_000) % 2
    >>> holdout = Holdout(labels[:10_000], labels[10_000:], epsilon=2, checks=5, queries=100)
    >>> print(holdout.estimate(lambda y: y == 1))
    0.5000 ± 0.0651 (95 %, all answers together), training; 5 checks left
    >>> holdout.queries_left, holdout.bound
    (99, 'description length [DFHPRR15b]')

    [DFHPRR15; DFHPRR15b]; proofs: holdout.md, transfer.md
    """

    def __init__(
        self,
        train: Any,
        held: Any,
        *,
        epsilon: Number,
        delta: Number | None = None,
        queries: int = 1000,
        checks: int = 10,
        confidence: Number = 0.95,
        threshold: Number | None = None,
        method: ComparisonMethod = "best",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        table: str = "holdout",
        analyst: str = ANYONE,
        reopen: bool = False,
        rows_per_call: int = 1,
    ) -> None:
        self._train, self._held = read_rows("train", train), read_rows("held", held)
        if len(self._train.parts) != len(self._held.parts):
            raise BadParameter(
                f"train has {len(self._train.parts)} parts and held {len(self._held.parts)}; they must have the same "
                "number. Give both as (X, y), say."
            )
        self.confidence = float(probability("confidence", confidence, next_step="Give one, say 0.95."))
        self._queries = whole("queries", queries, least=1, most=MOST_QUERIES)
        self._most = whole("checks", checks, least=1, most=MOST_CHECKS)
        self._rows_per_call = read_rows_per_call(rows_per_call)
        self._account = Account(ledger, table, analyst)
        with self._account.opening():
            gates, carried = self._account.gates(epsilon, delta), self._account.carried(reopen)
            self.design, self.population = self._choose_design(gates, carried, threshold, method)
            why = f"holdout of {self._held.size} rows: {self._queries} questions, {self._most} checks"
            self._account.open(self.design, why, self.population.nats)
        self._checks = Comparisons(self.design, "holdout", most=self._whole)
        self.asked = 0

    def estimate(self, statistic: Statistic) -> HoldoutEstimate:
        """The mean of a statistic over the population.

        `statistic(*rows)` gives a number from 0 to 1 for each row, and must score each row by itself. Errors report
        only what it does to training rows; a held row for which it fails counts 0. Held rows are given to it one per
        call, unless it needs no more than exact arithmetic (docs/holdout.md).
        """
        with self._checks.lock:
            self._checks.require_own_process()
            self._checks.require_not_reading()
            self._require_open()
            trained = training_sum(statistic, self._train, self._rows_per_call)
            # A statistic may have asked, or closed the session, while it scored training rows.
            self._require_open()
            guess = steps_of(trained, self._train.size, self._held.size)
            # Counted before a held row is read: a question counts even if it fails.
            asked, hits, self.asked = self.asked, self.design.checks - self._checks.left, self.asked + 1
            above, below = self._sums(statistic, self._held)
            found = self._checks.value_if_different(above, below, guess)
            if found is None:
                return self._estimate(
                    trained / (self._train.size * GRID), self.design.pass_error, "training", asked, hits
                )
            value = self.population.released_value(found)
            run = self._checks.take()
            self._account.keep("holdout: a check, paid when it was opened", asked=asked, value=value)
            self._checks.put_back(run)
            return self._estimate(value, self.design.value_error, "holdout", asked, hits)

    def scorer(self, loss: Loss = "wrong", *, most: Number | None = None) -> Callable[..., float]:
        """A function (estimator, X=None, y=None) for scikit-learn that scores on the holdout: more is better.

        For a holdout of (X, y). Of a classifier it is the fraction of right predictions. With loss "absolute" or
        "squared" it is 1 − loss/`most`, at least 0, for a regressor: `most` is a bound that does not come from the
        rows.
        The X and y that scikit-learn passes are not used. Every call is a question.
        """
        if loss not in ("wrong", "absolute", "squared"):
            raise BadParameter(f'loss is {loss!r}; it must be "wrong", "absolute" or "squared". Give one of them.')
        if len(self._held.parts) != 2:
            raise BadParameter("a scorer needs rows of two parts. Make the holdout with (X, y).")
        if loss == "wrong":
            return lambda estimator, X=None, y=None: self.estimate(lambda X, y: estimator.predict(X) == y).value
        largest = float(positive("most", most, next_step="Give the largest loss that counts, say 10."))
        power = 1 if loss == "absolute" else 2

        def score(estimator: Any, X: Any = None, y: Any = None) -> float:
            return self.estimate(lambda X, y: _bounded(estimator.predict(X), y, power, largest)).value

        return score

    @property
    def checks_left(self) -> int:
        """The number of overfits that may still be found."""
        return self._checks.left

    @property
    def queries_left(self) -> int:
        """The number of further questions that the confidence covers."""
        return self._queries - self.asked

    @property
    def error(self) -> float:
        """The largest error that the next answer can have."""
        hits = min(self.design.checks - self._checks.left, self.design.checks - 1)
        return self._error(min(self.asked, self._queries - 1), hits)

    @property
    def worst_error(self) -> float:
        """The largest error that any answer can have: of the last question, with one check left."""
        return self._error(self._queries - 1, min(self.design.checks, self._queries) - 1)

    def __repr__(self) -> str:
        left = f"{self.checks_left} of {self.design.checks} checks and {self.queries_left} questions left"
        return f"<Holdout of {self._held.size:,} rows: {left}>"

    def _choose_design(
        self, gates: tuple[Gate, ...], carried: float, threshold: Number | None, method: ComparisonMethod
    ) -> tuple[ComparisonDesign, Population]:
        """The design of comparisons and the bound for the population, from public numbers alone."""
        failure = float(1 - Fraction(str(self.confidence)))
        gap = _largest_gap(self._train.size, self._held.size, self._queries, failure / 2)
        tolerance = ceil(gap * self._whole)
        design = choose_design(
            gates,
            lambda gate: ComparisonTerms(gate, self._queries, self._most, failure / 2, tolerance, sum_sensitivity()),
            method=method,
            threshold=None if threshold is None else ceil(positive("threshold", threshold, at_most=1) * self._whole),
        )
        return design, population_of(design, rows=self._held.size, failure=failure, carried=carried)

    def _error(self, asked: int, hits: int) -> float:
        off = max(self.design.pass_error / self._whole, self._value_error)
        return self.population.half_width(off, asked=asked, hits=hits)

    def _estimate(
        self, value: float, off_steps: int, origin: Literal["training", "holdout"], asked: int, hits: int
    ) -> HoldoutEstimate:
        off = off_steps / self._whole + (0.5 / self.population.values if origin == "holdout" else 0.0)
        # The guess is the training mean rounded to a whole step.
        off += 0.5 / self._whole
        low, high = self.population.interval(value, (off, off), asked=asked, hits=hits)
        error = max(value - low, high - value)
        return HoldoutEstimate(
            value, error, low, high, self.confidence, origin, self.bound, self.checks_left, self.queries_left
        )

    def _require_open(self) -> None:
        if not self._checks.is_open:
            raise Refusal(
                "this holdout was closed or interrupted. Open another on fresh rows, or with a ledger and reopen=True."
            )
        if self._checks.left == 0:
            raise Refusal(
                f"this holdout has found its {self.design.checks} overfits and must stop. Hold out fresh rows, or open "
                "it again with a ledger and reopen=True, at the full price and with wider intervals; models that fit "
                "their training rows too well use fewer checks if train holds rows that they were not fitted to."
            )
        if self.queries_left <= 0:
            raise Refusal(
                f"this holdout has answered its {self._queries} questions; the confidence covers no more. Hold out "
                "fresh rows, or open it again with a ledger and reopen=True."
            )


def _largest_gap(train: int, held: int, queries: int, failure: float) -> float:
    """The largest difference of the two means of a statistic fixed in advance, for all questions [Hoe63, (2.7)]."""
    return sqrt(log(2 * queries / failure) / 2 * (1 / train + 1 / held))


def _bounded(predicted: Any, y: Any, power: int, most: float) -> Any:
    import numpy as np

    off = np.abs(np.asarray(predicted, dtype=np.float64) - np.asarray(y, dtype=np.float64)) ** power
    return 1.0 - np.minimum(off / most, 1.0)
