"""Numbers with error bars, from what is known.

Where the noise is Gaussian so are the errors. Where it is discrete Laplace, the bars come from the tails of the very
sums of noises that an answer is made of.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod

import numpy as np

from discreet.known.known import Estimate, Known, Question, Told, quantile
from discreet.known.reading import Numbers
from discreet.known.tail import half_width
from discreet.known.whole import noises
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product

# The bars of so many cells of a GROUP BY are computed one by one from everything that is known. Beyond, the answer
# comes from the one best marginal, in which all cells look alike.
MOST_APART = 64


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """A value and the half-width of its error for each cell of the groups; nan where there is no value."""

    values: Numbers
    errors: Numbers


def number_bars(question: Question, known: Known, confidence: float, joint: int = 1) -> Bars:
    """The answer to one question, as good as it is known: infinite errors where it is not."""
    found = estimate(question, known)
    if known.pure:
        values, errors = laplace_bars(question, known, found, confidence, joint)
        return _better(Bars(values, errors), known.told.get(question), confidence, joint)
    z, told = quantile(confidence, joint), known.told.get(question)
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
    question: Question, known: Known, found: Estimate, confidence: float, joint: int
) -> tuple[Numbers, Numbers]:
    """Values and half-widths. Together they hold by adding up the probabilities that each fails."""
    values, variances = found.values, found.variances
    chance = 1 - (1 - confidence) / joint
    if not known.wholes or not np.isfinite(variances).all():
        return values, np.where(variances == 0, 0.0, inf)
    if isinstance(question, Linear):
        return values, np.array([_one_bar(question, known, chance)])
    if question.size(known.domain) <= MOST_APART:
        cells = [_cell(question, known, place) for place in range(question.size(known.domain))]
        return values, np.array([_one_bar(cell, known, chance) for cell in cells])
    return _from_best(question, known, chance)


def _one_bar(query: Linear, known: Known, confidence: float) -> float:
    family = known.family(query) if query.products else None
    if family is None:
        return 0.0
    return _half_width(*(numbers.tobytes() for numbers in noises(family, known)), confidence)


@lru_cache(maxsize=4096)
def _half_width(weights: bytes, scales: bytes, counts: bytes, confidence: float) -> float:
    """Many questions are the same sum of noises."""
    numbers = np.frombuffer(weights), np.frombuffer(scales), np.frombuffer(counts, dtype=np.int64)
    return half_width(*numbers, confidence=confidence) if weights else 0.0


def _cell(question: Marginal, known: Known, place: int) -> Linear:
    """One cell of a GROUP BY, as a question of its own."""
    sizes = question.shape(known.domain)
    codes = np.unravel_index(place, sizes) if sizes else ()
    products = (Product(()),) if question.weight is None else question.weight.products
    for name, size, code in zip(question.columns, sizes, codes, strict=True):
        here = (np.arange(size) == code).astype(np.int64)
        products = tuple(each.times(name, here) for each in products)
    return Linear(products)


def _from_best(question: Marginal, known: Known, confidence: float) -> tuple[Numbers, Numbers]:
    """Every cell from the one marginal that has all columns and the least noise in their cells."""
    scope = question.scope
    able = [whole for whole in known.wholes if set(scope) <= set(whole.columns)]
    size = question.size(known.domain)
    if not able:
        return np.zeros(size), np.full(size, inf)
    best = max(able, key=lambda whole: whole.precision(scope))
    others = prod(best.shape) // prod(known.domain[name].size for name in scope)
    table = _table(question, known)
    values = np.zeros(size)
    if best.values is not None:
        dropped = tuple(axis for axis, name in enumerate(best.columns) if name not in scope)
        counts = best.values.reshape(best.shape).sum(axis=dropped).astype(np.float64)
        values = (by_group(counts, question, known) * table).sum(axis=1)
    scale = float(best.scale)
    errors: dict[bytes, float] = {}
    for row in table:
        if row.tobytes() not in errors:
            weights, often = np.unique(np.abs(row[row != 0]), return_counts=True)
            scales = np.full(len(weights), scale)
            times = (often * others).astype(np.int64)
            errors[row.tobytes()] = _half_width(weights.tobytes(), scales.tobytes(), times.tobytes(), confidence)
    return values, np.array([errors[row.tobytes()] for row in table])


def _table(question: Marginal, known: Known) -> Numbers:
    """The weights of the rest of the columns in each cell of the groups."""
    scope = question.scope
    if question.weight is None:
        return np.ones((question.size(known.domain), 1))
    return by_group(question.weight.table(known.domain, scope).astype(np.float64), question, known)


def by_group(full: Numbers, question: Marginal, known: Known) -> Numbers:
    """A table over all columns of a GROUP BY, with a row for each cell of the groups."""
    scope = question.scope
    grouped = [scope.index(name) for name in question.columns]
    rest = [axis for axis in range(len(scope)) if axis not in grouped]
    return full.transpose([*grouped, *rest]).reshape(question.size(known.domain), -1)
