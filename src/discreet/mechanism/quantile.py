"""Medians and other quantiles: the cell of an ordered column whose rank is nearest to the wanted one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import Sensitivity, scalar_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened, read_integers, require_size
from discreet.mechanism.noisy_max import SelectionNoise, noisy_max, race_of
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, probability, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact

LARGEST_DENOMINATOR = 10**6


def quantile(
    *, epsilon: Number, cells: int, unit: Unit, at: Number = 0.5, noise: SelectionNoise = "exponential"
) -> Mechanism[int]:
    """Choose a cell in which a quantile lies, or nearly.

    Releases noisy_max over the cells y of s(y) = −max(0, a n − b #{x ≤ y}, b #{x < y} − a n): 0 where the a/b-quantile
    is, and minus b times the number of rows by which its rank is missed elsewhere. It is e-DP.

    where e is `epsilon`, a/b is `at` (½ is the median), and there are n rows. The exact vector holds the imbalances
    W_j = b #{x among the first j cells} − a n for j = 0 … `cells` (`quantile_effects`); a row moves each by b − a or
    −a. Scores are maxima of these, so they move by no more, but not all the same way.

    `error(confidence)` is in rows: the distance of the rank of the chosen cell from the wanted one.

    >>> median = quantile(epsilon=1, cells=10, unit=Unit())
    >>> median.event, round(median.error(0.95), 2)
    (Pure(epsilon=Fraction(1, 1)), 4.5)

    [004 Thm. 4; Smith 2011, Alg. 2 for the score]; proof: quantile.md
    """
    count = whole("cells", cells, least=1)
    above, below = _ratio(at)
    moves = scalar_sensitivity(-above, below - above, unit)
    calibrated = Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=0)
    choose = noisy_max(epsilon=epsilon, sensitivity=calibrated, noise=noise)
    race = race_of(noise, epsilon=epsilon, sensitivity=calibrated)

    def release(exact: Exact) -> int:
        require_size(exact, count + 1, count + 1, what="imbalances")
        return race(rank_scores(opened(exact, calibrated, "linf")))

    def error(confidence: Number) -> float:
        return choose.error(confidence, candidates=count) / below

    def law(imbalances: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return choose.law(rank_scores(np.array(read_integers(imbalances))))

    return Mechanism(choose.event, release, error, law)


def quantile_effects(cells: int, *, at: Number = 0.5) -> NDArray[np.int64]:
    """What a row in cell x adds to the imbalance W_j: b − a if x is among the first j cells, else −a.

    >>> quantile_effects(3).tolist()
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1]]
    """
    count = whole("cells", cells, least=1)
    above, below = _ratio(at)
    return below * np.tri(count + 1, count, -1, dtype=np.int64) - above


def rank_scores(imbalances: NDArray[np.int64]) -> NDArray[np.int64]:
    """The score of each cell between two imbalances: 0 if they have zero between them, else minus the nearer.

    >>> rank_scores(np.array([-3, -1, 1, 3])).tolist()
    [-1, 0, -1]
    """
    return -np.maximum(0, np.maximum(-imbalances[1:], imbalances[:-1]))


def _ratio(at: Any) -> tuple[int, int]:
    exact = probability("at", at, next_step="Give one, say 0.5 for the median.")
    if exact.denominator > LARGEST_DENOMINATOR:
        raise BadParameter(
            f"at is {at!r}; as a fraction it must have a denominator of at most {LARGEST_DENOMINATOR}. "
            "Round it, or give a Fraction."
        )
    return exact.numerator, exact.denominator
