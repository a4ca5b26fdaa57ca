"""A release: a model that answers every query, synthetic rows, and a card that describes both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from os import PathLike

import numpy as np

from discreet.accounting.event import Nothing
from discreet.accounting.filter import Ticks
from discreet.answer import Answer
from discreet.curator.accuracy import separate_mean_intervals
from discreet.curator.question import Askable, Part, lay_out_answer, read_accuracy, read_question
from discreet.curator.release_basis import Fitted
from discreet.errors import BadQuery, TooLarge
from discreet.estimate.estimator import Estimator, normal_quantile
from discreet.estimate.measurements import Intervals, Question
from discreet.ledger import Budget
from discreet.model.interface import Model, total_of
from discreet.model.rows import Rows
from discreet.model.synthesis.synthetic_rows import synthesize
from discreet.numeric import Number, whole
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product, column_of
from discreet.release.error.estimated_error import estimated_error_of, estimated_errors
from discreet.release.method_choice import METHODS
from discreet.release.report.card import Card, MarginalError, card_columns
from discreet.release.synthetic_table import Inside, SyntheticRows
from discreet.release.task import Forecast, Goal, goal_of
from discreet.schema.domain import Domain
from discreet.schema.schema import Schema
from discreet.types import Columns, Numbers

# The most cells of a GROUP BY with weights, which are asked one by one.
MOST_ONE_BY_ONE = 4096
# The mean absolute value of a standard normal number.
_MEAN_ABSOLUTE = (2 / np.pi) ** 0.5


@dataclass(frozen=True, slots=True)
class Bill:
    """What a release cost: the `budget` that was given, what was `spent` of it, and what the table has spent in all.

    `cap` limits everything that is ever released of the table. `earlier` is 1 if something was released before it, and
    `entries` are the numbers of its own in the ledger.
    """

    budget: Budget
    spent: Budget
    grains: Ticks
    cap: Budget
    table_spent: Budget
    earlier: int
    entries: tuple[int, ...]
    made: str


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What `Curator.release` makes. All of it is public: looking at it costs nothing, however often.

    `model` is the estimated table, `forecast` what was expected of the method, and `bill` what was paid.
    `known` follows from what it was `fitted` to: numbers of its own columns, merged, without what anybody asked.
    """

    schema: Schema
    goal: Goal
    forecast: Forecast
    model: Model
    known: Estimator
    fitted: Fitted
    bill: Bill
    _card: Card | None = None

    @property
    def method(self) -> str:
        """The name of the method that made it."""
        return self.forecast.method

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return self.model.total

    @cached_property
    def domain(self) -> Domain:
        """The columns that it is for: those of its goal."""
        named = {name for scope in self.goal.scopes for name in scope}
        return Domain({name: column for name, column in self.schema.domain.columns if name in named})

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The estimated count of each cell of some columns: an array with an axis for each, in the order given."""
        self._require(columns)
        try:
            return self.model.marginal(columns)
        except TooLarge:
            # A tree may have no room for these columns together; its rows always have.
            return self._sample.marginal(columns)

    def answer(self, question: Askable, *, confidence: Number = 0.95) -> Answer:
        """What the model says of a question: SQL, a condition as after WHERE, a predicate, or a query object.

        The error is guaranteed (`origin` is "bounded") where the question follows from what was measured: the
        true answer is within it of the model's with this probability. Elsewhere it is an estimate ("estimated").
        `Curator.ask` answers what was measured with a smaller error, which does not fit the rows.
        Each error holds by itself; where HAVING or LIMIT choose rows, all of them together.
        """
        accuracy = read_accuracy(error=None, confidence=confidence, epsilon=None, joint=False)
        parsed = read_question(question, self.schema.domain, self.schema.table)
        self._require([name for part in parsed.parts for each in part.questions for name in each.scope])
        joint = accuracy.joint_of(parsed, self.schema.domain)
        parts = [self._part(part, accuracy.confidence, joint) for part in parsed.parts]
        value, error, columns = lay_out_answer(parsed, [bars for bars, _ in parts], self.schema.domain)
        origin = "bounded" if all(sure for _, sure in parts) else "estimated"
        return Answer(value, error, accuracy.confidence, Nothing(), self.schema.unit.describe, columns, origin)

    def rows(self, number: int | None = None, *, inside: Inside = "anywhere") -> SyntheticRows:
        """Synthetic rows of the goal's columns, by default as many as the table has; `inside` is for bins.

        They are not drawn one by one: the counts of their columns, pairs and small triples are close to the
        model's. Each call gives other rows.
        """
        count = round(self.total) if number is None else whole("number", number)
        return SyntheticRows(self.domain, synthesize(self.model, count, domain=self.domain), inside)

    @cached_property
    def errors(self) -> Mapping[Columns, float]:
        """The estimated error of each marginal of the goal: Σ |model − truth| over its cells, over the rows."""
        if self._card is not None:
            return {each.columns: each.error for each in self._card.errors}
        return estimated_errors(self.model, self.known, self.goal)

    @cached_property
    def error(self) -> float:
        """The mean of the errors of the goal's marginals, by their weights."""
        return sum(weight * self.errors[columns] for columns, weight in self.goal.weights)

    @cached_property
    def card(self) -> Card:
        """The privacy statement: what it is, whom it protects, what it cost, how good it is. `save` writes its page."""
        if self._card is not None:
            return self._card
        schema, bill = self.schema, self.bill
        total, private = self.known.intervals(Marginal(()), 0.95), total_of(self.known.lattice)[1] > 0
        return Card(
            table=schema.table,
            columns=card_columns(self.domain),
            unit=schema.unit,
            budget=bill.budget,
            spent=bill.spent,
            grains=bill.grains,
            cap=bill.cap,
            table_spent=bill.table_spent,
            earlier=bill.earlier,
            method=self.method,
            describe=METHODS[self.method].describe,
            forecast=self.forecast.error,
            goal=self.goal.describe,
            rows=self.total,
            rows_error=float(total.errors[0] + abs(total.values[0] - self.total)) if private else 0.0,
            errors=tuple(MarginalError(columns, self.errors[columns], weight) for columns, weight in self.goal.weights),
            entries=bill.entries,
            version=version("discreet"),
            made=bill.made,
        )

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write it into a folder: the card as JSON and as a page, the model, and what it was made from; no rows.

        A folder that has a release already is refused, unless `force` says to write over it.
        """
        from discreet.curator.release_folder import save

        save(self, folder, force=force)

    @staticmethod
    def load(folder: str | PathLike[str]) -> "Release":
        """The release that `save` has written."""
        from discreet.curator.release_folder import load

        return load(folder)

    def __repr__(self) -> str:
        return f"<Release: {self.schema.table}; {self.goal.describe}, by {self.method} for {self.bill.spent}>"

    # How a question is answered is below.

    def _require(self, columns: Iterable[str]) -> None:
        for name in columns:
            column_of(self.schema.domain, name)
            if name not in self.domain:
                raise BadQuery(
                    f'column "{name}" is not in this release, which is for {self.goal.describe}. Make a release of a '
                    "workload that names it, or ask the curator."
                )

    def _part(self, part: Part, confidence: float, joint: int) -> tuple[Intervals, bool]:
        """The numbers of a part, and whether their errors are guaranteed."""
        if part.values is None:
            return self._numbers(part.total, confidence, joint)
        both = 1 - (1 - confidence) / 2
        (totals, one), (values, other) = (self._numbers(each, both, joint) for each in (part.total, part.values))
        return separate_mean_intervals(part, totals, values), one and other

    def _numbers(self, question: Question, confidence: float, joint: int) -> tuple[Intervals, bool]:
        values, known = self._values(question), self.known.intervals(question, confidence, joint)
        if np.isfinite(known.errors).all():
            return Intervals(values, np.abs(values - known.values) + known.errors), True
        # As if errors were independent: each holds with a confidence whose product is the joint one.
        return Intervals(values, self._estimates(question, values, confidence ** (1 / joint))), False

    def _values(self, question: Question) -> Numbers:
        if isinstance(question, Marginal) and question.weight is None:
            return self.marginal(question.columns).ravel()
        return np.array([self.model.answer(each) for each in _cells(question, self.schema.domain)])

    def _estimates(self, question: Question, values: Numbers, confidence: float) -> Numbers:
        if isinstance(question, Marginal) and question.weight is None:
            # The error of a marginal, spread over its cells as the noise of counts is.
            goal = goal_of([question], self.schema.domain)
            (share,) = estimated_errors(self.model, self.known, goal).values()
            each = np.sqrt(np.maximum(values, 0.0) + 1.0)
            return np.asarray(normal_quantile(confidence) / _MEAN_ABSOLUTE * share * self.total * each / each.sum())
        cells = _cells(question, self.schema.domain)
        return np.array([estimated_error_of(each, self.model, self.known, confidence) for each in cells])

    @cached_property
    def _sample(self) -> Rows:
        number = max(1, round(self.total))
        return Rows(self.domain, synthesize(self.model, number, domain=self.domain), scale=self.total / number)


def _cells(question: Question, domain: Domain) -> list[Linear]:
    """A question as one query for each number."""
    if isinstance(question, Linear):
        return [question]
    if question.size(domain) > MOST_ONE_BY_ONE:
        raise TooLarge(
            f"there are {question.size(domain)} groups of {', '.join(question.columns)}; sums by groups are asked of "
            f"up to {MOST_ONE_BY_ONE}. Group by fewer columns, or take the rows."
        )
    found = []
    for cell in np.ndindex(question.shape(domain)):
        products = [Product(())] if question.weight is None else list(question.weight.products)
        for name, code in zip(question.columns, cell, strict=True):
            here = np.arange(domain[name].size) == code
            products = [each.times(name, here.astype(np.int64)) for each in products]
        found.append(Linear(products))
    return found
