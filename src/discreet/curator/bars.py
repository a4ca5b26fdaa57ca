"""Means with error bars, from what is known of their parts."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from discreet.answer import means_of
from discreet.curator.asked import Part
from discreet.known.bars import Bars
from discreet.known.known import Known, quantile
from discreet.known.steps import Question
from discreet.query.linear import Linear, Marginal


def bars_of(part: Part, known: Known, confidence: float, joint: int) -> Bars:
    """The answer to a part, as good as it is known: infinite errors where it is not."""
    if part.values is None:
        return known.intervals(part.total, confidence, joint)
    return _mean_bars(part, part.values, known, confidence, joint)


def all_bars(parts: Sequence[Part], known: Known, confidence: float, joint: int) -> list[Bars]:
    """The same of several parts. What is asked under two names is computed once."""
    different = {replace(part, name=""): part for part in parts}
    found = {key: bars_of(part, known, confidence, joint) for key, part in different.items()}
    return [found[replace(part, name="")] for part in parts]


def _mean_bars(part: Part, counted: Question, known: Known, confidence: float, joint: int) -> Bars:
    """A mean by what is known of both its parts together, or by each of them alone, whichever is better."""
    if not known.jointly_gaussian:
        return _apart(part, counted, known, confidence, joint)
    fieller = _joint_mean_bars(part, counted, known, confidence, joint)
    if part.total not in known.direct_answers and counted not in known.direct_answers:
        return fieller
    apart = _apart(part, counted, known, confidence, joint)
    return apart if float(apart.errors.max()) < float(fieller.errors.max()) else fieller


def _apart(part: Part, counted: Question, known: Known, confidence: float, joint: int) -> Bars:
    both = 1 - (1 - confidence) / 2
    totals, values = (known.intervals(each, both, joint) for each in (part.total, counted))
    return separate_mean_bars(part, totals, values)


def separate_mean_bars(part: Part, totals: Bars, values: Bars) -> Bars:
    """A mean from a total and a number of values of which each has its own bar; the bars of both hold at once."""
    ends = part.ends[0] - part.centre, part.ends[1] - part.centre
    means, errors = means_of(np.stack([totals.values, totals.errors, values.values, values.errors]), *ends)
    return Bars(part.centre + means, np.where(np.isinf(totals.errors), inf, errors))


def _joint_mean_bars(part: Part, counted: Question, known: Known, confidence: float, joint: int) -> Bars:
    """All means that the total and the number of values allow together, by Fieller's theorem.

    The true mean R has total − R · values = 0, and the error of that is Gaussian for each R; so R is within the bar if
    (total − R · values)² ≤ z² · variance(total − R · values).
    """
    total, count = known.estimate(part.total), known.estimate(counted)
    sum_variances = known.estimate(_sum(part.total, counted)).variances
    total, kept_total = known.with_direct(part.total)
    count, kept_count = known.with_direct(counted)
    totals, total_variances = total.values, total.variances
    values, value_variances = count.values, count.variances
    with np.errstate(invalid="ignore"):
        before = known.estimate(part.total).variances + known.estimate(counted).variances
        # What was told has noise of its own, so only what both still have of the lattice is shared.
        shared = np.where(kept_total * kept_count > 0, kept_total * kept_count * (sum_variances - before) / 2, 0.0)
    z = quantile(confidence, joint)
    low, high = part.ends[0] - part.centre, part.ends[1] - part.centre
    means, errors = np.full(totals.shape, np.nan), np.full(totals.shape, high - low)
    with np.errstate(invalid="ignore", divide="ignore"):
        # (N² − z² v_N) R² − 2 (S N − z² c) R + (S² − z² v_S) ≤ 0.
        a = values**2 - z**2 * value_variances
        b = totals * values - z**2 * shared
        c = totals**2 - z**2 * total_variances
        centre = totals / values
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        lows, highs = (b - root) / a, (b + root) / a
        bounded = (a > 0) & (values > 0) & np.isfinite(total_variances)
        inside = np.clip(centre, low, high)
        reach = np.maximum(np.clip(highs, low, high) - inside, inside - np.clip(lows, low, high))
        anywhere = np.maximum(high - inside, inside - low)
    some = values > 0
    means[some] = part.centre + inside[some]
    # Any mean at all is possible where the number of values may be zero.
    errors[some] = anywhere[some]
    # An interval that misses the range of the column altogether says only that something unlikely has happened.
    bounded &= (lows <= high) & (highs >= low)
    errors[bounded] = np.maximum(reach, 0.0)[bounded]
    unknown = ~np.isfinite(total_variances) | ~np.isfinite(value_variances)
    errors[unknown] = inf
    return Bars(means, errors)


def _sum(total: Question, counted: Question) -> Question:
    if isinstance(total, Linear) and isinstance(counted, Linear):
        return total + counted
    match total, counted:
        case Marginal(columns, Linear() as added), Marginal(_, Linear() as present):
            return Marginal(columns, added + present)
    raise AssertionError("both parts of a mean have one form")
