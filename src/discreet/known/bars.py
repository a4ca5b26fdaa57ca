"""Numbers with error bars, from what is known.

Where the noise is Gaussian so are the errors. Where it is discrete Laplace, the bars come from the tails of the very
sums of noises that an answer is made of.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.cache import LruCache
from discreet.known.chernoff import chernoff_half_width
from discreet.known.known import Estimate, Known, Told, quantile
from discreet.known.steps import Question
from discreet.known.tail import MOST_FACTORS, half_width
from discreet.known.whole import are_few, noises
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product
from discreet.types import Numbers

# The bars of so many cells of a GROUP BY are computed one by one from everything that is known. Beyond, the answer
# comes from the one best marginal, in which all cells look alike.
MOST_APART = 64


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A value and the half-width of its error for each cell of the groups; nan where there is no value."""

    values: Numbers
    errors: Numbers


def number_bars(question: Question, known: Known, confidence: float, joint: int = 1, *, among: int = 1) -> Bars:
    """The answer to one question, as good as it is known: infinite errors where it is not."""
    found, told = estimate(question, known), known.told.get(question)
    if known.pure:
        values, errors = laplace_bars(question, known, found, confidence, joint, among)
        return _better(Bars(values, errors), told, confidence, joint)
    return _gaussian_bars(question, known, found, told, confidence, joint)


def largest_error(question: Question, known: Known, confidence: float, among: int = 1) -> float:
    """The largest error of the cells of a GROUP BY. Where noise is Gaussian, the cells themselves are not computed.

    Of so many questions `among` which it is one, all together take the work of one; beyond that, bars are wider.
    """
    family = None if known.pure or weighs_nothing(question) else known.family(question)
    if family is None:
        return float(number_bars(question, known, confidence, among=among).errors.max())
    told = known.told.get(question)
    first = None if told is None else replace(told, values=told.values[:1])
    found = Estimate(np.zeros(1), np.array([known.variance(family)]))
    return float(_gaussian_bars(question, known, found, first, confidence, 1).errors[0])


def _gaussian_bars(
    question: Question, known: Known, found: Estimate, told: Told | None, confidence: float, joint: int
) -> Bars:
    z = quantile(confidence, joint)
    if told is None:
        return Bars(found.values, _bar(question, found.variances, z))
    if known.is_joined(question):
        if float(found.variances.max()) < 0.9 * told.variance:
            return Bars(found.values, _bar(question, found.variances, z))
        return _better(Bars(found.values, np.full(found.values.shape, inf)), told, confidence, joint)
    both = _together(found, told)
    return _better(Bars(both.values, _bar(question, both.variances, z)), told, confidence, joint)


def _bar(question: Question, variances: Numbers, z: float) -> Numbers:
    """The half-widths of Gaussian errors. The total may have one whole noise: |round(Y)| ≤ t + 1/2 if |Y| ≤ t."""
    bars = z * np.sqrt(variances)
    return bars if question.scope else np.where(variances > 0, bars + 0.5, 0.0)


def with_told(question: Question, found: Estimate, known: Known) -> tuple[Estimate, Numbers]:
    """An estimate together with a direct answer that it has not learnt from, and the weight that the estimate keeps."""
    told = known.told.get(question)
    if told is None or known.is_joined(question):
        return found, np.ones(found.values.shape)
    with np.errstate(invalid="ignore"):
        kept = np.where(np.isinf(found.variances), 0.0, told.variance / (found.variances + told.variance))
    return _together(found, told), kept


def _together(found: Estimate, told: Told) -> Estimate:
    """An estimate and a direct answer whose noises have nothing to do with each other."""
    with np.errstate(invalid="ignore"):
        weights = np.where(np.isinf(found.variances), 1.0, found.variances / (found.variances + told.variance))
    return Estimate(found.values + weights * (told.values - found.values), weights * told.variance)


def _better(bars: Bars, told: Told | None, confidence: float, joint: int) -> Bars:
    """These, or what a direct measurement told by the exact law of its noise, if that is better by itself."""
    if told is None:
        return bars
    error = told.error(confidence, joint=joint)
    # A sum of a whole noise and hardly anything else is better described by the law of the whole noise.
    return bars if float(bars.errors.max()) < 0.95 * error else Bars(told.values, np.full(told.values.shape, error))


def estimate(question: Question, known: Known) -> Estimate:
    """Values and variances, in the order in which a marginal is laid out."""
    return known.remembered(question) or known.remember(question, _estimate(question, known))


def weighs_nothing(question: Question) -> bool:
    """Whether no row can count: then the answer is 0, and everybody knows."""
    weight = question.weight if isinstance(question, Marginal) else question
    return weight is not None and not weight.products


def _estimate(question: Question, known: Known) -> Estimate:
    size = question.size(known.domain) if isinstance(question, Marginal) else 1
    if weighs_nothing(question):
        return Estimate(np.zeros(size), np.zeros(size))
    family = known.family(question)
    if family is None:
        return Estimate(np.zeros(size), np.full(size, inf))
    found = known.estimate(family)
    if not isinstance(question, Marginal):
        return Estimate(found.values.reshape(1), found.variances.reshape(1))
    order = [family.columns.index(name) for name in question.columns]
    others = [axis for axis in range(len(family.columns)) if axis not in order]

    def laid_out(numbers: Numbers) -> Numbers:
        return numbers.reshape(family.cells).transpose([*order, *others]).ravel()

    return Estimate(laid_out(found.values), laid_out(found.variances))


def laplace_bars(
    question: Question, known: Known, found: Estimate, confidence: float, joint: int, among: int
) -> tuple[Numbers, Numbers]:
    """Values and half-widths. Together they hold by adding up the probabilities that each fails."""
    values, variances = found.values, found.variances
    chance = 1 - (1 - confidence) / joint
    if not known.wholes or not np.isfinite(variances).all():
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
    if size <= MOST_APART:
        kinds = dict.fromkeys(places)
        bars = {place: _one_bar(_cell(question, known, place), known, chance, len(kinds) * among) for place in kinds}
        errors = np.array([bars[place] for place in places])
        # A cell may be too large a question although all of them together are not.
        return (values, errors) if errors.max() < inf else _from_best(question, known, chance)
    return _from_best(question, known, chance)


def _alike(question: Question, known: Known) -> tuple[list[int], int]:
    """For each of few cells of a GROUP BY the first whose error has the same law; and how many cells there are.

    Whole marginals tell all parts of a column equally well, so exchanging two cells without weights changes no law.
    """
    if isinstance(question, Linear):
        return [0], 1
    shape = question.shape(known.domain)
    if prod(shape) > MOST_APART:
        return [0], prod(shape)
    weighed = set() if question.weight is None else set(question.weight.scope)
    codes = np.indices(shape).reshape(len(shape), prod(shape))
    for place, name in enumerate(question.columns):
        if name not in weighed:
            codes[place] = 0
    places: list[int] = np.ravel_multi_index(tuple(codes), shape).tolist() if shape else [0]  # type: ignore[assignment]
    return places, prod(shape)


def _one_bar(query: Linear, known: Known, confidence: float, among: int = 1) -> float:
    if not query.products:
        return 0.0
    family = known.family(query)
    if family is None:
        return inf
    return _half_width(*noises(family, known), confidence, among)


# Many questions are the same sum of noises, found again by a hash of it. In numbers of eight bytes: 8 MB.
_WIDTHS: LruCache[tuple[bytes, float, int], float] = LruCache(2**20)


def _half_width(weights: Numbers, scales: Numbers, counts: NDArray[np.int64], confidence: float, among: int) -> float:
    """The half-width of one of so many sums, all of which together take the work of one."""
    if not weights.size:
        return 0.0
    key = sha256(b"".join(each.tobytes() for each in (weights, scales, counts))).digest(), confidence, among
    found = _WIDTHS.get(key)
    if found is None:
        found = half_width(weights, scales, counts, confidence=confidence, most=MOST_FACTORS // among)
        _WIDTHS.put(key, found, size=50)
    return found


def _cell(question: Marginal, known: Known, place: int) -> Linear:
    """One cell of a GROUP BY, as a question of its own."""
    sizes = question.shape(known.domain)
    codes = np.unravel_index(place, sizes) if sizes else ()
    products = (Product(()),) if question.weight is None else question.weight.products
    for name, size, code in zip(question.columns, sizes, codes, strict=True):
        here = (np.arange(size) == code).astype(np.int64)
        products = tuple(each.times(name, here) for each in products)
    return Linear(products)


def _from_best(question: Question, known: Known, confidence: float) -> tuple[Numbers, Numbers]:
    """Every cell from the one marginal that has all columns and the least noise in their cells."""
    scope = question.scope
    size = question.size(known.domain) if isinstance(question, Marginal) else 1
    able = [whole for whole in known.wholes if set(scope) <= set(whole.columns)]
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


# Telling rows apart takes longer than all else, and one request needs it several times. In numbers: 8 MB.
_ROWS: LruCache[tuple[Question, tuple[int, ...]], _Kinds] = LruCache(2**20)


def _kinds(question: Question, known: Known) -> _Kinds:
    key = question, tuple(known.domain[name].size for name in question.scope)
    found = _ROWS.get(key)
    if found is None:
        rows, which = np.unique(np.abs(_table(question, known)), axis=0, return_inverse=True)
        few = len(rows) <= MOST_APART
        weights = [_counted(row) for row in (rows if few else rows.max(axis=0, keepdims=True))]
        found = _Kinds(weights, which.reshape(-1) if few else None)
        _ROWS.put(key, found, size=2 * sum(each.size for each, _ in weights) + which.size * few + 50)
    return found


def _counted(row: Numbers) -> tuple[Numbers, NDArray[np.int64]]:
    weights, often = np.unique(row[row > 0], return_counts=True)
    return weights, often.astype(np.int64)


def _table(question: Question, known: Known) -> Numbers:
    """The weights of the rest of the columns in each cell of the groups."""
    scope = question.scope
    if isinstance(question, Linear):
        return question.table(known.domain).astype(np.float64).reshape(1, -1)
    if question.weight is None:
        return np.ones((question.size(known.domain), 1))
    return by_group(question.weight.table(known.domain, scope).astype(np.float64), question, known)


def by_group(full: Numbers, question: Marginal, known: Known) -> Numbers:
    """A table over all columns of a GROUP BY, with a row for each cell of the groups."""
    scope = question.scope
    grouped = [scope.index(name) for name in question.columns]
    rest = [axis for axis in range(len(scope)) if axis not in grouped]
    return full.transpose([*grouped, *rest]).reshape(question.size(known.domain), -1)
