"""The estimator of one table: from everything that was released, an estimate and a confidence interval for any query.

`Estimator` holds what has been learnt, in the same form whatever the noise was. One estimator for Gaussian noise
(`gaussian_estimator.py`) and one for discrete Laplace noise (`laplace_estimator.py`) differ in how errors are
distributed, in what a budget buys, and in how queries are planned.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from math import expm1, inf, log1p
from statistics import NormalDist
from typing import Any, ClassVar, Literal, Self

import numpy as np

from discreet.accounting.event import Event
from discreet.accounting.sensitivity import Sensitivity
from discreet.cache import LruCache, memoize
from discreet.estimate.direct_measurements import Directs
from discreet.estimate.laplace_marginal import MeasuredMarginal
from discreet.estimate.measurements import (
    GaussianQuery,
    GaussianResiduals,
    Intervals,
    LaplaceMarginal,
    LaplaceQuery,
    Question,
    Step,
    laplace_variance,
)
from discreet.estimate.residual_lattice import (
    MOST_LATTICE_NUMBERS,
    Lattice,
    largest_variance,
    variance_of,
    variances_of,
)
from discreet.estimate.separable import Family, family_of, room_of
from discreet.mechanism.gaussian import gaussian_half_width
from discreet.mechanism.laplace import laplace_half_width
from discreet.query.linear import Linear, Marginal, weighs_nothing
from discreet.query.residual import Measurement, Residual
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.types import Columns, Ints, Numbers

_CACHE = partial(LruCache[Any, Any], MOST_LATTICE_NUMBERS)


@dataclass(frozen=True, slots=True, eq=False)
class QueryEstimate:
    """The value of each question, the variance of its error (infinite if unknown), and half-widths found for it."""

    values: Numbers
    variances: Numbers
    widths: dict[tuple[float, int], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class DirectAnswer:
    """The answer of the direct measurements of one question alone.

    `sigma` is set if there was one, with rounded Gaussian noise; `scale` if it had discrete Laplace noise.
    """

    values: Numbers
    variance: float
    sigma: Fraction | None = None
    scale: Fraction | None = None

    def error(self, confidence: float, *, joint: int = 1) -> float:
        """The half-width that holds with this probability; of one measurement, by the exact law of its noise."""
        if self.sigma is not None:
            return gaussian_half_width(self.sigma, confidence, joint=joint)
        if self.scale is not None:
            return laplace_half_width(self.scale, confidence, joint=joint)
        return normal_quantile(confidence, joint) * float(self.variance**0.5)


@memoize(1024)
def normal_quantile(confidence: float, joint: int = 1) -> float:
    """The z with Pr[|N(0, 1)| ≤ z]^joint = confidence.

    Jointly Gaussian errors are all within z of their standard deviations with at least this probability: independent
    errors are the worst case [Šidák 1967].

    >>> round(normal_quantile(0.95), 3), round(normal_quantile(0.95, joint=100), 3)
    (1.96, 3.474)
    """
    each = -expm1(log1p(-(1 - confidence)) / joint)
    return -NormalDist().inv_cdf(each / 2)


@dataclass(eq=False)
class Estimator(ABC):
    """An estimator of one table: a lattice of residuals, direct measurements joined to it, and direct answers.

    `direct_answers` are kept as they were released; `marginals` are those that were measured with Laplace noise. `paid`
    is what was paid for questions on each set of columns, `cost` what was paid in all.
    """

    lattice: Lattice
    direct_answers: dict[Hashable, DirectAnswer] = field(default_factory=dict)
    marginals: list[MeasuredMarginal] = field(default_factory=list)
    paid: dict[Columns, float] = field(default_factory=dict)
    cost: float = 0.0
    version: int = 0
    directs: Directs = field(init=False)
    _estimates: LruCache[Hashable, tuple[int, QueryEstimate]] = field(default_factory=_CACHE)
    _families: LruCache[Hashable, tuple[Family | None]] = field(default_factory=_CACHE)

    # How units of the budget are counted: squared mu, or epsilon where delta is 0.
    accounting: ClassVar[Literal["gaussian", "pure"]]
    # The deviation of noise that costs some units falls like units^−rate. So a budget is best split over measurements
    # as worth^(1/(1 + rate)).
    rate: ClassVar[float]
    # Fewer units than this for a question are hardly worth a plan.
    least_units: ClassVar[float]
    # Whether residuals are measured one by one, as models and most methods of release need it.
    measures_residuals: ClassVar[bool]
    # Whether errors of answers are jointly Gaussian, as Fieller's theorem needs it.
    jointly_gaussian: ClassVar[bool]
    # Whether two direct answers to one question are averaged; otherwise the one with less noise is kept.
    averages_direct: ClassVar[bool]

    def __post_init__(self) -> None:
        self.directs = Directs(self.lattice)

    @classmethod
    def nothing(cls, domain: Domain, unit: Unit) -> Self:
        """What is known before the first question."""
        return cls(Lattice(domain, unit))

    @property
    def domain(self) -> Domain:
        """The domain of the table."""
        return self.lattice.domain

    # Learning.

    def learn(self, step: Step, values: Ints | None = None) -> None:
        """Learn what a step has measured; without values only how well it is known, to plan ahead."""
        self.version += 1
        self.cost += step.price
        match step:
            case GaussianResiduals(measurement):
                self._learn_residuals(measurement, values)
            case GaussianQuery(question, sigma, price):
                self.paid[question.scope] = self.paid.get(question.scope, 0.0) + price
                self._learn_gaussian(question, sigma, values)
            case LaplaceMarginal(columns, scale, price):
                self.paid[columns] = self.paid.get(columns, 0.0) + price
                self._learn_marginal(columns, scale, values)
            case LaplaceQuery(question, scale, price):
                self.paid[question.scope] = self.paid.get(question.scope, 0.0) + price
                self._learn_laplace(question, scale, values)

    def learn_total(self, rows: int) -> None:
        """Learn the number of rows where it is public."""
        self.version += 1
        self.lattice.add(Residual(()), variance=0.0, values=np.array([rows]))

    def _learn_residuals(self, measurement: Measurement, values: Ints | None) -> None:
        start = 0
        for residual, sigma in measurement.pieces:
            end = start + self.lattice.size(residual)
            part = None if values is None else values[start:end]
            self.lattice.add(residual, variance=variance_of(float(sigma)), values=part)
            start = end
        self.lattice.use(measurement.columns)
        if self.directs.groups:
            self.directs.drop_implied(measurement.columns, version=self.version)

    def _learn_gaussian(self, question: Question, sigma: Fraction, values: Ints | None) -> None:
        """Learn a direct answer with Gaussian noise: as it is, and joined to the lattice where that can be."""
        variance = variance_of(float(sigma))
        numbers = np.zeros(1) if values is None else values.astype(np.float64)
        before = self.direct_answers.get(question)
        if before is None:
            self.direct_answers[question] = DirectAnswer(numbers, variance, sigma)
        else:
            weight = before.variance / (before.variance + variance)
            averaged = before.values + weight * (numbers - before.values)
            self.direct_answers[question] = DirectAnswer(averaged, variance * weight)
        family = self.family(question) if isinstance(question, Linear) else None
        if family is not None:
            self.directs.join(question, family, float(numbers[0]), variance, version=self.version)

    def _learn_marginal(self, columns: Columns, scale: Fraction, values: Ints | None) -> None:
        """Learn a whole marginal with discrete Laplace noise in every cell: every residual of its columns at once."""
        whole = MeasuredMarginal(columns, scale, values, tuple(self.domain[name].size for name in columns))
        self.marginals.append(whole)
        for residual, variance, numbers in whole.pieces(self.domain):
            self.lattice.add(residual, variance=variance, values=numbers)

    def _learn_laplace(self, question: Question, scale: Fraction, values: Ints | None) -> None:
        """Learn a direct answer with discrete Laplace noise; the one with the least noise is kept."""
        before = self.direct_answers.get(question)
        if before is None or before.scale is None or scale < before.scale:
            numbers = np.zeros(1) if values is None else values.astype(np.float64)
            self.direct_answers[question] = DirectAnswer(numbers, laplace_variance(scale), scale=scale)

    # Estimates.

    def family(self, question: Question) -> Family | None:
        """The question as a family of products, or None if it has too many products, residuals or cells."""
        if self.lattice.view(question.scope) is None:
            return None
        found = self._families.get(question)
        if found is None:
            found = (family_of(question, self.domain),)
            self._families.put(question, found, size=room_of(question) + (found[0].room if found[0] else 0))
        return found[0]

    def surely_unknown(self, question: Linear) -> bool:
        """Whether a question is surely unknown, by a quick test: no residual of all its columns was ever measured.

        If this is false, it may still be unknown.
        """
        columns = question.scope
        if (
            len(question.products) != 1
            or question in self.direct_answers
            or columns in self.directs.groups
            or not columns
        ):
            return False
        block = self.lattice.blocks.get(columns)
        return block is None or not block.precision.any()

    def estimate(self, question: Question) -> QueryEstimate:
        """Values and variances, in the order in which a marginal is laid out."""
        found = self._estimates.get(question)
        if found is None or found[0] != self.version:
            found = self.version, self._estimate(question)
            self._estimates.put(question, found, size=2 * found[1].values.size + room_of(question))
        return found[1]

    def _estimate(self, question: Question) -> QueryEstimate:
        size = question.size(self.domain) if isinstance(question, Marginal) else 1
        if weighs_nothing(question):
            return QueryEstimate(np.zeros(size), np.zeros(size))
        family = self.family(question)
        if family is None:
            return QueryEstimate(np.zeros(size), np.full(size, inf))
        found = self.estimate_family(family)
        if not isinstance(question, Marginal):
            return QueryEstimate(found.values.reshape(1), found.variances.reshape(1))
        order = [family.columns.index(name) for name in question.columns]
        others = [axis for axis in range(len(family.columns)) if axis not in order]

        def laid_out(numbers: Numbers) -> Numbers:
            return numbers.reshape(family.cells).transpose([*order, *others]).ravel()

        return QueryEstimate(laid_out(found.values), laid_out(found.variances))

    def estimate_family(self, family: Family) -> QueryEstimate:
        """The value and the variance of each question of a family."""
        view = self.lattice.viewed(family.columns)
        groups = self.directs.groups_for(family) if self.directs.groups else ()
        if family.size == family.products == 1 and not groups:
            return QueryEstimate(*self.lattice.estimate_one(family, view))
        values = self.lattice.values(family, view)
        if not groups:
            return QueryEstimate(values, variances_of(family, view))
        moved, variances = self.directs.apply(family, groups)
        return QueryEstimate(values + moved.reshape(values.shape), variances)

    def largest_variance(self, family: Family) -> float:
        """The largest variance of the questions of a family."""
        groups = self.directs.groups_for(family) if self.directs.groups else ()
        if groups:
            return float(self.directs.apply(family, groups)[1].max())
        return largest_variance(family, self.lattice.viewed(family.columns))

    def with_direct(self, question: Question) -> tuple[QueryEstimate, Numbers]:
        """The estimate together with a direct answer that it has not learnt from, and the weight the estimate keeps."""
        found, direct = self.estimate(question), self.direct_answers.get(question)
        if direct is None or self.directs.has(question, question.scope):
            return found, np.ones(found.values.shape)
        with np.errstate(invalid="ignore"):
            kept = np.where(np.isinf(found.variances), 0.0, direct.variance / (found.variances + direct.variance))
        return combined(found, direct), kept

    # What differs between the two kinds.

    @abstractmethod
    def intervals(self, question: Question, confidence: float, joint: int = 1, *, among: int = 1) -> Intervals:
        """The estimate of one question with its error, which is infinite where nothing is known.

        `among` is the number of questions that share the work which may be done.
        """

    @abstractmethod
    def largest_error(self, question: Question, confidence: float, among: int = 1) -> float:
        """The largest error of the cells of a GROUP BY."""

    @abstractmethod
    def units_for(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The units that a budget of (epsilon, delta) has."""

    @abstractmethod
    def event_for(self, units: Fraction) -> Event:
        """An event that costs these units."""

    @abstractmethod
    def variance_for(self, moves: Sensitivity, units: float) -> float:
        """About the variance of noise that costs these units, for numbers of this sensitivity."""

    @abstractmethod
    def scale_for(self, units: float) -> float:
        """The scale parameter of noise that costs these units, for a number of sensitivity 1."""

    @abstractmethod
    def deviation_for(self, units: float) -> float:
        """The standard deviation of that noise."""

    @abstractmethod
    def squared_mu_for(self, units: Fraction, marginals: int) -> float:
        """The squared mu at which Gaussian noise on this number of marginals, measured alike, is as large."""

    @abstractmethod
    def selection_for(self, units: Fraction) -> Fraction:
        """The epsilon of a selection that costs these units."""

    @abstractmethod
    def query_step(self, question: Question, units: Fraction) -> GaussianQuery | LaplaceQuery:
        """A question measured by itself, for at most these units."""

    @abstractmethod
    def marginal_step(self, columns: Columns, units: Fraction) -> GaussianQuery | LaplaceMarginal:
        """All cells of some columns measured together, for at most these units."""

    @abstractmethod
    def count_step(self, units: Fraction, variance: float) -> GaussianResiduals | LaplaceMarginal | None:
        """The number of rows, measured for at most these units; None if its variance would not be below this one."""


def combined(found: QueryEstimate, direct: DirectAnswer) -> QueryEstimate:
    """An estimate and a direct answer whose noises are independent."""
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isinf(found.variances), 1.0, found.variances / (found.variances + direct.variance))
    return QueryEstimate(found.values + weights * (direct.values - found.values), weights * direct.variance)


def better(bars: Intervals, direct: DirectAnswer | None, confidence: float, joint: int) -> Intervals:
    """These intervals, or that of the direct answer by the exact law of its noise if it is narrower."""
    if direct is None:
        return bars
    error = direct.error(confidence, joint=joint)
    # If an error is one integer noise and little else, the exact law of that noise describes it better.
    return (
        bars
        if float(bars.errors.max()) < 0.95 * error
        else Intervals(direct.values, np.full(direct.values.shape, error))
    )
