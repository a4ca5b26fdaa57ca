"""Plans where delta is 0: whole marginals with Laplace noise, or one number by itself.

Prices add up, so a large number of small marginals is expensive; but one marginal answers everything about its columns.
A marginal of more columns is bought as soon as it costs no more than a small multiple of what was spent on its parts
(ski rental).
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from discreet.cache import memoize
from discreet.estimate.estimator import Estimator
from discreet.estimate.laplace_estimator import by_group
from discreet.estimate.laplace_sum import laplace_sum_half_width
from discreet.estimate.measurements import LaplaceMarginal, LaplaceQuery, Question
from discreet.estimate.residual_lattice import is_viewed
from discreet.mechanism.laplace import laplace_half_width
from discreet.numeric import SMALLEST_PARAMETER
from discreet.plan.steps import Target
from discreet.query.linear import Linear, Marginal
from discreet.query.residual import axes_of
from discreet.source.query_sensitivity import sensitivity_of
from discreet.types import Columns, Numbers

LaplaceStep = LaplaceMarginal | LaplaceQuery

# A marginal is bought if it costs no more than this factor times what was spent on its columns plus the direct answer.
RENTAL_FACTOR = 2.0
# Marginals of more cells than this are not bought ahead of need.
MOST_AHEAD = 2**14
# The most cells of a question whose weights are read one by one.
MOST_PLANNED_CELLS = 2**20
# Marginals of more residuals than the first are not bought: each is learnt by itself. Where a question has more
# different weights than the second, the tail of their noises is not computed.
MOST_LEARNT, MOST_TERMS = 2**11, 2**9


def laplace_steps(
    asked: Sequence[tuple[Question, Target]], known: Estimator, *, ahead: bool
) -> tuple[LaplaceStep, ...]:
    """One step for each question that is not known; questions that the same marginal serves share it."""
    steps: dict[object, LaplaceStep] = {}
    for question, target in asked:
        if known.intervals(question, target.confidence, target.joint).errors.max() <= target.error:
            continue
        step = laplace_step(question, target, known, ahead=ahead)
        if step is None:
            continue
        key = step.columns if isinstance(step, LaplaceMarginal) else step.question
        before = steps.get(key)
        if before is None or before.price < step.price:
            steps[key] = step
    return tuple(steps.values())


def laplace_step(question: Question, target: Target, known: Estimator, *, ahead: bool = True) -> LaplaceStep | None:
    """The cheapest way in the long run to answer a question that is not known well enough, or now if not `ahead`."""
    moves = sensitivity_of(question, known.domain, known.lattice.unit).l1
    if moves == 0:
        return None
    scale = _single_scale(target)
    alone = LaplaceQuery(question, scale, float(moves / scale))
    weights = _worst_weights(question, known)
    if weights is None:
        return alone
    found: LaplaceMarginal | None = None
    now = [question.scope] if can_learn(question.scope, known) else []
    for columns in _candidates(question.scope, known) if ahead else now:
        spent = sum(paid for scope, paid in known.paid.items() if set(scope) <= set(columns))
        most = RENTAL_FACTOR * (alone.price + spent) if ahead else alone.price
        found = _whole(columns, question, weights, target, known, most, ahead=ahead) or found
    return found or alone


def _candidates(scope: Columns, known: Estimator) -> list[Columns]:
    """The question's own columns, and those together with columns that were paid for before, fewer cells first."""
    unions = {scope}
    for other in known.paid:
        unions |= {tuple(sorted({*one, *other})) for one in list(unions)}
        if len(unions) > 64:
            break
    sizes = {columns: prod(known.domain[name].size for name in columns) for columns in unions}
    kept = [columns for columns in unions if columns == scope or sizes[columns] <= MOST_AHEAD]
    kept = [columns for columns in kept if can_learn(columns, known)]
    return sorted(kept, key=lambda columns: (sizes[columns], columns))


def can_learn(columns: Columns, known: Estimator) -> bool:
    """Whether a marginal of these columns can be bought: it has few enough residuals and numbers."""
    axes = axes_of(known.domain, columns)
    return is_viewed(axes) and prod(axis.parts for axis in axes) <= MOST_LEARNT


def _whole(
    columns: Columns,
    question: Question,
    weights: tuple[Numbers, NDArray[np.int64]],
    target: Target,
    known: Estimator,
    most: float,
    *,
    ahead: bool,
) -> LaplaceMarginal | None:
    """The marginal that answers this question if that costs no more than `most`.

    Of more columns than the question has, it must answer half of its cells as well as this; and looking ahead, it
    comes as close to that as `most` allows, because prices add up and a second marginal would be wasteful.
    """
    cells = prod(known.domain[name].size for name in columns)
    others = cells // prod(known.domain[name].size for name in question.scope)
    half = ((0.5,), (cells,)) if _public_total(known) else ((1.0,), (max(1, cells // 2),))
    own = scale_for(tuple(weights[0].tolist()), tuple((weights[1] * others).tolist()), target)
    every = min(own, scale_for(*half, target))
    moves = sensitivity_of(Marginal(columns), known.domain, known.lattice.unit).l1
    needed, enough = (_top_up_scale(scale, columns, known) for scale in (own, every))
    if columns != question.scope:
        needed = enough
    if not needed or moves / needed > most:
        return None
    scale = needed if not ahead else max(enough, min(needed, _short(float(moves) / most)))
    return LaplaceMarginal(columns, scale, float(moves / scale))


def _top_up_scale(scale: Fraction, columns: Columns, known: Estimator) -> Fraction:
    """The scale that, together with earlier marginals of the same columns, gives as little noise as this one."""
    if not scale:
        return scale
    have = sum(float(whole.scale) ** -2 / whole.noises for whole in known.marginals if whole.columns == columns)
    wanted = float(scale) ** -2
    # A few per cent more, because the tails of a mixture are not quite those of one noise.
    return _short(max(1.03 * wanted - have, 0.05 * wanted) ** -0.5) if have else scale


def _public_total(known: Estimator) -> bool:
    return bool(known.lattice.block(()).precision[()] == inf)


def _worst_weights(question: Question, known: Estimator) -> tuple[Numbers, NDArray[np.int64]] | None:
    """The weights that the noises of the cells have in the question, or in the cell of it with the largest sum."""
    scope = question.scope
    if prod(known.domain[name].size for name in scope) > MOST_PLANNED_CELLS or known.family(question) is None:
        return None
    if isinstance(question, Linear):
        table = question.table(known.domain).astype(np.float64).ravel()
        # Where the total is public, only the differences from the mean are noisy.
        table = table - table.mean() if _public_total(known) else table
    elif question.weight is None:
        return np.ones(1), np.ones(1, dtype=np.int64)
    else:
        full = question.weight.table(known.domain, scope).astype(np.float64)
        rows = by_group(full, question, known)
        table = rows[int((rows * rows).sum(axis=1).argmax())]
    values, counts = np.unique(np.abs(np.round(table, 12)), return_counts=True)
    if len(values) > MOST_TERMS:
        return None
    return values[values > 0], counts[values > 0].astype(np.int64)


@memoize(4096)
def scale_for(weights: tuple[float, ...], counts: tuple[int, ...], target: Target) -> Fraction:
    """The largest scale, but for half a per cent, at which noises with these weights meet the target."""
    confidence = 1 - (1 - target.confidence) / target.joint

    def fits(scale: float) -> bool:
        return _half_width(weights, counts, scale, confidence) <= target.error

    # Half-widths grow about like the scale.
    scale = 1000.0 * target.error / _half_width(weights, counts, 1000.0, confidence)
    # Below the smallest scale that can be drawn, a number is measured by itself: rounded, it then has no noise.
    for _ in range(40 if scale >= float(SMALLEST_PARAMETER) * 2 else 0):
        if fits(scale):
            break
        scale *= 0.995
    else:
        return Fraction(0)
    return _short(scale)


def _half_width(weights: Sequence[float], counts: Sequence[int], scale: float, confidence: float) -> float:
    return laplace_sum_half_width(
        np.array(weights), np.full(len(weights), scale), np.array(counts, dtype=np.int64), confidence=confidence
    )


def _single_scale(target: Target) -> Fraction:
    """The largest scale whose single draws meet the target."""
    confidence = 1 - (1 - target.confidence) / target.joint
    scale = _short(target.error / np.log(1 / (1 - confidence)) * 1.05 + 0.2)
    while laplace_half_width(scale, confidence) > target.error:
        scale = _short(float(scale) * 0.998)
    return scale


def _short(scale: float) -> Fraction:
    """A scale in few digits, not above the given one."""
    mantissa, exponent = np.frexp(scale)
    return Fraction(int(mantissa * 2**16)) * Fraction(2) ** int(exponent - 16)
