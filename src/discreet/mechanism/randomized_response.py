"""Randomized response: each person's own answer is made noisy before anyone collects it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, floor, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.accounting.event import Pure
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened
from discreet.mechanism.independent import independent_law
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, positive, read_failure, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact

if TYPE_CHECKING:
    from flint import arb


def randomized_response(
    *, epsilon: Number, categories: int = 2, sensitivity: Sensitivity | Number = 1
) -> Mechanism[NDArray[np.int64]]:
    """Report each row's category truly or as another one, at random.

    Releases one report for each row: its category x with probability p = exp(e')/(exp(e') + k − 1), and each of the
    k − 1 others with the rest in equal parts. It is e-DP for rows that are replaced, even against the collector.

    where e is `epsilon`, k is `categories` and e' = e/m, with m the number of rows that one person may change: the
    L1 `sensitivity`, counted in labels (`label_sensitivity`). The number of reports is the number of rows, and
    public, so `add_remove` is not possible. A category outside 0 … k − 1 counts as the nearest one inside.

    `error(confidence, reports=n)` is for each count of `estimate_counts`, by Hoeffding's inequality.

    >>> survey = randomized_response(epsilon=1, categories=3)
    >>> survey.event
    Pure(epsilon=Fraction(1, 1))
    >>> survey.law([0])
    Law((0,): 0.576117, (1,): 0.211942, (2,): 0.211942)

    [War65; 000 Prop. 7], k categories: [KBR16]; proof: randomized_response.md
    """
    loss = positive("epsilon", epsilon)
    values_of = whole("categories", categories, least=2, most=2**31)
    calibrated = read_sensitivity(sensitivity, "l1")
    each = loss / _labels(calibrated)

    def release(exact: Exact) -> NDArray[np.int64]:
        values = np.clip(opened(exact, calibrated, "l1"), 0, values_of - 1)
        return (values + draw_offsets(each, values_of, values.size)) % values_of

    def error(confidence: Number, *, reports: int) -> float:
        people = whole("reports", reports, least=1)
        truth, other = _chances(each, values_of)
        return sqrt(people * log(2 / read_failure(confidence)) / 2) / (truth - other)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        def axis(value: int, low: int, high: int) -> "tuple[Mapping[Any, arb], arb]":
            return _report_law(min(max(value, 0), values_of - 1), each, values_of)

        return independent_law(values, (), axis)

    return Mechanism(Pure(loss), release, error, law)


def label_sensitivity(unit: Unit) -> Sensitivity:
    """Of a vector with one category for each row: how many labels one person changes.

    Labels have no arithmetic; two different ones are one apart. Only `replace_one` keeps the number of rows.

    >>> label_sensitivity(Unit(neighbors="replace_one")).l1
    Fraction(1, 1)
    """
    if unit.neighbors != "replace_one":
        raise BadParameter(
            f"neighbors is {unit.neighbors!r}; one report for each row reveals the number of rows, so only values can "
            'be protected. Use neighbors="replace_one", or a histogram for "add_remove".'
        )
    if unit.key is not None:
        raise BadParameter(
            f"the privacy unit is {unit.describe}; a report for each row reveals how many rows a person has. "
            "Protect rows, or keep one row for each person."
        )
    return Sensitivity(l1=Fraction(1), l2_squared=Fraction(1), linf=Fraction(1))


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Unbiased counts of all categories, and an upper bound of their standard deviation (exact for two)."""

    counts: NDArray[np.float64]
    deviation: float

    @property
    def fractions(self) -> NDArray[np.float64]:
        """The counts over the number of reports."""
        fractions: NDArray[np.float64] = self.counts / self.counts.sum()
        return fractions


def estimate_counts(reports: NDArray[np.int64], *, epsilon: Number, categories: int = 2) -> Estimate:
    """Estimate the true histogram from the reports; `epsilon` is that of one report. Post-processing, so free.

    The count of category x is (r_x − n q)/(p − q), of variance (n_x p(1 − p) + (n − n_x) q(1 − q))/(p − q)², which is
    n p(1 − p)/(2p − 1)² for two categories and at most n p(1 − p)/(p − q)² for more.

    where r_x of the n reports say x, and a report is x with probability p if that is true and q if not.

    >>> estimate_counts(np.array([0] * 400 + [1] * 600), epsilon=1).counts.round(1).tolist()
    [283.6, 716.4]
    """
    values_of = whole("categories", categories, least=2)
    truth, other = _chances(positive("epsilon", epsilon), values_of)
    people = len(reports)
    seen = np.bincount(np.asarray(reports), minlength=values_of)
    deviation = sqrt(people * truth * (1 - truth)) / (truth - other)
    counts = (seen.astype(np.float64) - people * other) / (truth - other)
    return Estimate(counts, deviation)


def draw_offsets(epsilon: Fraction, categories: int, size: int) -> NDArray[np.int64]:
    """Report minus truth, modulo the categories: 0 with weight 1, every other with weight exp(−epsilon).

    A fair die proposes; a coin of probability exp(−epsilon) accepts a lie. The draw does not depend on the truth.
    """
    out, filled = np.empty(size, dtype=np.int64), 0
    while filled < size:
        wanting = size - filled
        proposed = noise.uniform_below(categories, size=2 * wanting + 8)
        passed = noise.bernoulli_exp(epsilon, size=proposed.size)
        kept = proposed[(proposed == 0) | passed][:wanting]
        out[filled : filled + kept.size] = kept
        filled += kept.size
    return out


def _labels(sensitivity: Sensitivity) -> int:
    """How many integers can change at all: each that does moves the L1 norm by at least one."""
    return max(1, floor(sensitivity.l1))


def _chances(epsilon: Fraction, categories: int) -> tuple[float, float]:
    lie = exp(-float(epsilon))
    total = 1 + (categories - 1) * lie
    return 1 / total, lie / total


def _report_law(value: int, epsilon: Fraction, categories: int) -> "tuple[dict[Any, arb], arb]":
    from flint import arb

    from discreet.noise.law import exp_minus

    lie = exp_minus(epsilon)
    total = 1 + (categories - 1) * lie
    return {report: (arb(1) if report == value else lie) / total for report in range(categories)}, arb(0)
