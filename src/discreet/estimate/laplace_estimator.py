"""The estimator for discrete Laplace noise (pure DP, delta = 0), whose budget is counted in epsilon.

Estimates come from the same lattice as with Gaussian noise. The error of an answer is a weighted sum of Laplace noises
with known weights, and intervals come from the tail of that sum.
"""

from fractions import Fraction
from hashlib import sha256
from math import ceil, inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.event import Event, Pure
from discreet.accounting.sensitivity import Sensitivity
from discreet.cache import LruCache
from discreet.estimate.estimator import Estimator, QueryEstimate, better
from discreet.estimate.gaussian_estimator import GaussianLattice, last_bit
from discreet.estimate.laplace_marginal import are_few, noises
from discreet.estimate.laplace_sum import MOST_FACTORS, chernoff_half_width, laplace_sum_half_width
from discreet.estimate.measurements import Intervals, LaplaceMarginal, LaplaceQuery, Question
from discreet.estimate.residual_lattice import Lattice
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

# Up to this number of cells of a GROUP BY, intervals are computed one by one from everything that is known. Beyond, the
# answer comes from the one best marginal, in which all cells have noise of one law.
MOST_SEPARATE_CELLS = 64


class LaplaceMarginals(Estimator):
    """Whole marginals are measured, which answer everything about their columns; or a question by itself."""

    accounting = "pure"
    rate, least_units = 1.0, 2**-20
    measures_residuals = jointly_gaussian = averages_direct = False

    def intervals(self, question: Question, confidence: float, joint: int = 1, *, among: int = 1) -> Intervals:
        """Intervals from the tail of the sum of noises that an answer has."""
        found = self.estimate(question)
        values, errors = laplace_intervals(question, self, found, confidence, joint, among)
        return better(Intervals(values, errors), self.direct_answers.get(question), confidence, joint)

    def largest_error(self, question: Question, confidence: float, among: int = 1) -> float:
        """The largest error of the cells of a GROUP BY."""
        return float(self.intervals(question, confidence, among=among).errors.max())

    def units_for(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """Epsilon itself."""
        return epsilon

    def event_for(self, units: Fraction) -> Event:
        """Anything of this epsilon."""
        return Pure(units)

    def variance_for(self, moves: Sensitivity, units: float) -> float:
        """Twice the squared scale: L1 sensitivity over epsilon."""
        return 2 * (float(moves.l1) / units) ** 2

    def scale_for(self, units: float) -> float:
        """1/epsilon."""
        return 1 / units

    def deviation_for(self, units: float) -> float:
        """√2/epsilon."""
        return float(2**0.5 / units)

    def squared_mu_for(self, units: Fraction, marginals: int) -> float:
        """k marginals have the variance k/μ² each with Gaussian noise and 2k²/ε² with Laplace noise."""
        return float(units**2 / (2 * marginals))

    def selection_for(self, units: Fraction) -> Fraction:
        """Epsilon itself."""
        return units

    def query_step(self, question: Question, units: Fraction) -> LaplaceQuery:
        """With discrete Laplace noise."""
        moves = sensitivity_of(question, self.domain, self.lattice.unit).l1
        scale = laplace_noise(moves, units)
        return LaplaceQuery(question, scale, float(moves / scale))

    def marginal_step(self, columns: Columns, units: Fraction) -> LaplaceMarginal:
        """A whole marginal, which joins the lattice."""
        step = self.query_step(Marginal(columns), units)
        return LaplaceMarginal(columns, step.scale, step.price)

    def count_step(self, units: Fraction, variance: float) -> LaplaceMarginal | None:
        """As the marginal of no columns."""
        step = self.marginal_step((), units)
        return step if step.variance < variance else None


def estimator_for(accounting: str, domain: Domain, unit: Unit) -> Estimator:
    """The estimator for a budget: Laplace noise where it is counted in epsilon alone ("pure"), else Gaussian noise."""
    lattice = Lattice(domain, unit)
    return LaplaceMarginals(lattice) if accounting == "pure" else GaussianLattice(lattice)


def laplace_noise(moves: Fraction, units: Fraction) -> Fraction:
    """The smallest scale, in few bits, whose epsilon is at most these units.

    >>> laplace_noise(Fraction(1), Fraction(1, 8)), 1 / laplace_noise(Fraction(1), Fraction(3, 10)) <= Fraction(3, 10)
    (Fraction(8, 1), True)
    """
    unit = last_bit(float(moves / units))
    return ceil(moves / units / unit) * unit


def laplace_intervals(
    question: Question, known: Estimator, found: QueryEstimate, confidence: float, joint: int, among: int
) -> tuple[Numbers, Numbers]:
    """Values and half-widths. They hold together by the union bound."""
    values, variances = found.values, found.variances
    chance = 1 - (1 - confidence) / joint
    if not known.marginals or not np.isfinite(variances).all():
        return values, np.where(variances == 0, 0.0, inf)
    places, size = _alike(question, known)
    family = known.family(question)
    if family is not None and not are_few(family, known, len(set(places)) * among):
        return _from_best(question, known, chance)
    if isinstance(question, Linear):
        if (chance, among) not in found.widths:
            found.widths[chance, among] = _one_bar(question, known, chance, among)
        errors = np.array([found.widths[chance, among]])
        return (values, errors) if errors[0] < inf else _from_best(question, known, chance)
    if size <= MOST_SEPARATE_CELLS:
        kinds = dict.fromkeys(places)
        bars = {place: _one_bar(_cell(question, known, place), known, chance, len(kinds) * among) for place in kinds}
        errors = np.array([bars[place] for place in places])
        # One cell may be too large as a question although the GROUP BY is not.
        return (values, errors) if errors.max() < inf else _from_best(question, known, chance)
    return _from_best(question, known, chance)


def _alike(question: Question, known: Estimator) -> tuple[list[int], int]:
    """For each of few cells of a GROUP BY the first whose error has the same law; and how many cells there are.

    Whole marginals measure all parts of a column equally well, so exchanging two cells without weights changes no law.
    """
    if isinstance(question, Linear):
        return [0], 1
    shape = question.shape(known.domain)
    if prod(shape) > MOST_SEPARATE_CELLS:
        return [0], prod(shape)
    weighed = set() if question.weight is None else set(question.weight.scope)
    codes = np.indices(shape).reshape(len(shape), prod(shape))
    for place, name in enumerate(question.columns):
        if name not in weighed:
            codes[place] = 0
    places: list[int] = np.ravel_multi_index(tuple(codes), shape).tolist() if shape else [0]  # type: ignore[assignment]
    return places, prod(shape)


def _one_bar(query: Linear, known: Estimator, confidence: float, among: int = 1) -> float:
    if not query.products:
        return 0.0
    family = known.family(query)
    if family is None:
        return inf
    return _half_width(*noises(family, known), confidence, among)


# Many questions are the same sum of noises, found again by a hash of it. In numbers of eight bytes: 8 MB.
_WIDTHS: LruCache[tuple[bytes, float, int], float] = LruCache(2**20)


def _half_width(weights: Numbers, scales: Numbers, counts: NDArray[np.int64], confidence: float, among: int) -> float:
    """The half-width of one sum; `among` is the number of sums that share the work of one."""
    if not weights.size:
        return 0.0
    key = sha256(b"".join(each.tobytes() for each in (weights, scales, counts))).digest(), confidence, among
    found = _WIDTHS.get(key)
    if found is None:
        found = laplace_sum_half_width(weights, scales, counts, confidence=confidence, most=MOST_FACTORS // among)
        _WIDTHS.put(key, found, size=50)
    return found


def _cell(question: Marginal, known: Estimator, place: int) -> Linear:
    """One cell of a GROUP BY, as a question of its own."""
    sizes = question.shape(known.domain)
    codes = np.unravel_index(place, sizes) if sizes else ()
    products = (Product(()),) if question.weight is None else question.weight.products
    for name, size, code in zip(question.columns, sizes, codes, strict=True):
        here = (np.arange(size) == code).astype(np.int64)
        products = tuple(each.times(name, here) for each in products)
    return Linear(products)


def _from_best(question: Question, known: Estimator, confidence: float) -> tuple[Numbers, Numbers]:
    """Every cell from the one marginal that has all columns and the least noise in their cells."""
    scope = question.scope
    size = question.size(known.domain) if isinstance(question, Marginal) else 1
    able = [whole for whole in known.marginals if set(scope) <= set(whole.columns)]
    if not able:
        return np.zeros(size), np.full(size, inf)
    best = max(able, key=lambda whole: whole.precision(scope))
    others = best.noises * prod(best.shape) // prod(known.domain[name].size for name in scope)
    values = np.zeros(size)
    if best.values is not None:
        dropped = tuple(axis for axis, name in enumerate(best.columns) if name not in scope)
        counts = best.values.reshape(best.shape).sum(axis=dropped).astype(np.float64)
        rows = by_group(counts, question, known) if isinstance(question, Marginal) else counts.reshape(1, -1)
        values = (rows * _table(question, known)).sum(axis=1)
    kinds, scale = _kinds(question, known), float(best.scale)
    if kinds.which is None:
        # A larger weight does not always mean a larger tail, but always a larger moment: one bound for all cells.
        weights, often = kinds.weights[0]
        scales = np.full(len(weights), scale)
        return values, np.full(size, chernoff_half_width(weights, scales, often * others, failure=1 - confidence))
    errors = [
        _half_width(weights, np.full(len(weights), scale), often * others, confidence, len(kinds.weights))
        for weights, often in kinds.weights
    ]
    return values, np.array(errors)[kinds.which]


class _Kinds(NamedTuple):
    """The weights that occur in each kind of cell of a GROUP BY, how often each does, and which kind each cell is.

    Where there are very many kinds, `which` is None and there is one, of the largest weight in each place.
    """

    weights: list[tuple[Numbers, NDArray[np.int64]]]
    which: NDArray[np.intp] | None


# Finding the different rows takes longest, and one request needs it several times. In numbers of eight bytes: 8 MB.
_ROWS: LruCache[tuple[Question, tuple[int, ...]], _Kinds] = LruCache(2**20)


def _kinds(question: Question, known: Estimator) -> _Kinds:
    key = question, tuple(known.domain[name].size for name in question.scope)
    found = _ROWS.get(key)
    if found is None:
        rows, which = np.unique(np.abs(_table(question, known)), axis=0, return_inverse=True)
        few = len(rows) <= MOST_SEPARATE_CELLS
        weights = [_counted(row) for row in (rows if few else rows.max(axis=0, keepdims=True))]
        found = _Kinds(weights, which.reshape(-1) if few else None)
        _ROWS.put(key, found, size=2 * sum(each.size for each, _ in weights) + which.size * few + 50)
    return found


def _counted(row: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    weights, often = np.unique(row[row > 0], return_counts=True)
    return weights, often.astype(np.int64)


def _table(question: Question, known: Estimator) -> Numbers:
    """The weights of the rest of the columns in each cell of the groups."""
    scope = question.scope
    if isinstance(question, Linear):
        return question.table(known.domain).astype(np.float64).reshape(1, -1)
    if question.weight is None:
        return np.ones((question.size(known.domain), 1))
    return by_group(question.weight.table(known.domain, scope).astype(np.float64), question, known)


def by_group(full: Numbers, question: Marginal, known: Estimator) -> Numbers:
    """A table over all columns of a GROUP BY, with a row for each cell of the groups."""
    scope = question.scope
    grouped = [scope.index(name) for name in question.columns]
    rest = [axis for axis in range(len(scope)) if axis not in grouped]
    return full.transpose([*grouped, *rest]).reshape(question.size(known.domain), -1)
