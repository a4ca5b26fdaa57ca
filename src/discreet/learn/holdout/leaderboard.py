"""A leaderboard that cannot be climbed by learning its answers. Proofs: holdout.md §4 and transfer.md"""

import os
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discreet.accounting.filter import Gate
from discreet.errors import BadData, Refusal
from discreet.learn.holdout.comparison_design import (
    MOST_CHECKS,
    MOST_QUERIES,
    ComparisonDesign,
    ComparisonMethod,
    ComparisonTerms,
    choose_design,
)
from discreet.learn.holdout.comparisons import Comparisons
from discreet.learn.holdout.generalization import Population, PopulationBound, population_of
from discreet.learn.holdout.held_session import Account, HeldSession, read_rows_per_call
from discreet.learn.holdout.scores import RowParts, agreement, read_rows, sum_sensitivity
from discreet.ledger import Ledger
from discreet.ledger.ledger import ANYONE
from discreet.numeric import Number, positive, probability, text, whole

# Steps that are tried if none is given, until smaller ones are worse.
_PARTS = (3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512, 640, 800, 1000)
_STEPS = tuple(Fraction(1, parts) for parts in _PARTS)


@dataclass(frozen=True, slots=True)
class Standing:
    """A leaderboard after a submission: the best score so far, and whether this submission set it.

    With probability `confidence`, after every submission, the best of those so far has a score in the population from
    `low` to `high`; before the first improvement `low` is 0. `error` is the larger distance from `best` to the two.
    """

    number: int
    name: str
    best: float
    improved: bool
    error: float
    low: float
    high: float
    confidence: float
    bound: PopulationBound
    improvements_left: int

    def __str__(self) -> str:
        now = "a new best" if self.improved else "no improvement"
        span = (
            f"best {self.best:.4g}, in the population {self.low:.3f} to {self.high:.3f} ({100 * self.confidence:g} %)"
        )
        return f"{self.number}. {self.name}: {now}; {span}"


class Leaderboard(HeldSession):
    """Publishes the best score so far, and changes it only for a submission that is better by more than a step.

    `held` are labels, or a tuple such as (X, y). `submit` takes predictions of the labels, or a statistic that gives a
    score from 0 to 1 for each row. A sparse vector compares it with the best, and an improvement is released with noise
    and on a grid, so that the held rows have `epsilon`-DP, one row being replaced; everything is paid at the start.
    The default `step` is the one with the smallest error, and the default number of improvements is that of steps from
    `start` to 1: both follow from the numbers of rows and submissions, and need no tuning.

    >>> import numpy as np
    >>> labels = np.arange(10_000) % 2
    >>> board = Leaderboard(labels, epsilon=4, start=0.5, submissions=100)
    >>> board.submit(np.zeros(10_000), name="all zero").improved, board.submit(labels, name="perfect").improved
    (False, True)
    >>> board.best > 0.9
    True

    [BH15, Alg. 1]; proofs: holdout.md §4, transfer.md
    """

    def __init__(
        self,
        held: Any,
        *,
        epsilon: Number,
        delta: Number | None = None,
        submissions: int = 1000,
        step: Number | None = None,
        start: Number = 0,
        improvements: int | None = None,
        confidence: Number = 0.95,
        method: ComparisonMethod = "best",
        ledger: Ledger | str | os.PathLike[str] | None = None,
        table: str = "leaderboard",
        analyst: str = ANYONE,
        reopen: bool = False,
        rows_per_call: int = 1,
    ) -> None:
        self._held = read_rows("held", held)
        self.confidence = float(probability("confidence", confidence, next_step="Give one, say 0.95."))
        self._rows_per_call = read_rows_per_call(rows_per_call)
        self._failure = float(1 - Fraction(str(self.confidence)))
        self._queries = whole("submissions", submissions, least=1, most=MOST_QUERIES)
        first = probability("start", start, zero=True, next_step="Give the score of a guess, say 0.5.")
        most = None if improvements is None else whole("improvements", improvements, least=1, most=MOST_CHECKS)
        steps = _STEPS if step is None else (positive("step", step, at_most=1, next_step="Give one, say 0.02."),)
        self._account = Account(ledger, table, analyst)
        with self._account.opening():
            gates, self._carried = self._account.gates(epsilon, delta), self._account.carried(reopen)
            self.step, self.design, self.population = self._best_step(gates, steps, first, most, method)
            limits = f"{self._queries} submissions, {self.design.checks} improvements"
            why = f"leaderboard of {self._held.size} rows: {limits}"
            self._account.open(self.design, why, self.population.nats)
        self._checks = Comparisons(self.design, "leaderboard", most=self._whole)
        self.best, self._low = float(first), 0.0
        self._standings: list[Standing] = []
        self.submitted = 0
        self._highest = 0.0

    def submit(self, submission: Any, *, name: str = "") -> Standing:
        """Compare a submission with the best so far: predictions of the labels, or a function of the held rows.

        A row for which it fails counts 0: no held row can cause an error.
        """
        label = text("name", name or f"submission {self.submitted + 1}", longest=200)
        with self._checks.lock:
            self._checks.require_own_process()
            self._checks.require_not_reading()
            self._require_open()
            statistic, rows = self._scored(submission)
            # Counted before a held row is read: a submission counts even if it fails.
            asked, hits, self.submitted = self.submitted, self.design.checks - self._checks.left, self.submitted + 1
            exact, _ = self._sums(statistic, rows)
            found = self._checks.value_if_above(exact, ceil(Fraction(self.best) * self._whole))
            improved = False
            if found is not None:
                # What is recorded is what is released: the best, which never falls. A value below it is not released.
                value = max(self.population.released_value(found), self.best)
                improved = value > self.best
                run = self._checks.take()
                self._account.keep("leaderboard: an improvement, paid when it was opened", asked=asked, value=value)
                self._checks.put_back(run)
                if improved:
                    off = self._value_error
                    low, _ = self.population.interval(value, (off, off), asked=asked, hits=hits)
                    self.best, self._low = value, max(low, self._low)
            standing = self._standing(label, improved, asked, hits)
            self._standings.append(standing)
            return standing

    @property
    def standings(self) -> tuple[Standing, ...]:
        """The standings after each submission, in order."""
        return tuple(self._standings)

    @property
    def improvements_left(self) -> int:
        """The number of improvements that are left."""
        return self._checks.left

    @property
    def submissions_left(self) -> int:
        """The number of further submissions that the confidence covers."""
        return self._queries - self.submitted

    @property
    def worst_error(self) -> float:
        """The largest error that any standing can have, once there was an improvement."""
        return self._error(self.design, self.population)

    def __repr__(self) -> str:
        return f"<Leaderboard of {self._held.size:,} rows: best {self.best:.4g} after {self.submitted} submissions>"

    def __str__(self) -> str:
        rows = [f"{one.number:>6}  {one.best:.4f}  {one.name}" for one in self._standings if one.improved]
        return "\n".join(["number    best  submission", *rows, f"({self.submitted} submissions)"])

    def _best_step(
        self,
        gates: tuple[Gate, ...],
        steps: tuple[Fraction, ...],
        start: Fraction,
        improvements: int | None,
        method: ComparisonMethod,
    ) -> tuple[float, ComparisonDesign, Population]:
        """The step with the smallest error; smaller ones are tried until the error has grown by a fifth."""
        found: list[tuple[float, float, ComparisonDesign, Population]] = []
        for one in steps:
            found.append(self._designed(gates, one, improvements or ceil((1 - start) / one), method))
            if found[-1][0] > 1.2 * min(each[0] for each in found):
                break
        _, step, design, population = min(found, key=lambda each: each[0])
        return step, design, population

    def _designed(
        self, gates: tuple[Gate, ...], step: Fraction, improvements: int, method: ComparisonMethod
    ) -> tuple[float, float, ComparisonDesign, Population]:
        tolerance = ceil(step * self._whole)
        design = choose_design(
            gates,
            lambda gate: ComparisonTerms(
                gate, self._queries, improvements, self._failure / 2, tolerance, sum_sensitivity()
            ),
            method=method,
        )
        population = population_of(
            design, rows=self._held.size, failure=self._failure, carried=self._carried, rising=True
        )
        return self._error(design, population), float(step), design, population

    def _error(self, design: ComparisonDesign, population: Population) -> float:
        off = max(design.pass_error / self._whole, design.value_error / self._whole + 0.5 / population.values)
        return population.half_width(off, asked=self._queries - 1, hits=min(design.checks, self._queries) - 1)

    def _scored(self, submission: Any) -> tuple[Any, RowParts]:
        if callable(submission):
            return submission, self._held
        predicted = np.asarray(submission)
        if predicted.shape != (self._held.size,):
            raise BadData(
                f"the predictions have shape {predicted.shape}; there must be one for each of {self._held.size} rows. "
                "Predict every row, in order, or give a function of the rows."
            )
        labels = self._held.parts[-1]
        # A column of a numpy type converts as it is; of another column, one value may decide the type of all.
        if isinstance(getattr(labels, "dtype", None), np.dtype) and hasattr(labels, "to_numpy"):
            labels = labels.to_numpy()
        return agreement, RowParts((predicted, labels), self._held.size)

    def _standing(self, name: str, improved: bool, asked: int, hits: int) -> Standing:
        off = max(self.design.pass_error / self._whole, self._value_error)
        _, high = self.population.interval(self.best, (off, off), asked=asked, hits=hits)
        # Upper bounds of earlier submissions hold for the best of them too.
        self._highest = high = max(high, self._highest)
        error = max(self.best - self._low, high - self.best)
        return Standing(
            self.submitted,
            name,
            self.best,
            improved,
            error,
            self._low,
            high,
            self.confidence,
            self.bound,
            self._checks.left,
        )

    def _require_open(self) -> None:
        if not self._checks.is_open:
            raise Refusal(
                "this leaderboard was closed or interrupted. Open another on fresh rows, or with a ledger and "
                "reopen=True."
            )
        if self._checks.left == 0:
            raise Refusal(
                f"this leaderboard has had its {self.design.checks} improvements and must stop. Hold out fresh rows or "
                "open it again with a ledger and reopen=True, at the full price and with wider intervals."
            )
        if self.submissions_left <= 0:
            raise Refusal(
                f"this leaderboard has had its {self._queries} submissions; the confidence covers no more. Hold out "
                "fresh rows, or open it again with a ledger and reopen=True."
            )
