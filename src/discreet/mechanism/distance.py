"""How far marginals are from what is expected of them: all distances with noise, or the place of a large one."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from discreet import noise
from discreet.errors import BadParameter
from discreet.mechanism.exponential import exponential
from discreet.mechanism.gaussian import gaussian, half_width
from discreet.mechanism.parts import FARTHEST, opened_parts, read_moves, read_parts, read_public, true_integers
from discreet.mechanism.protocol import Law, Mechanism
from discreet.mechanism.surprise import surprises
from discreet.parameter import Number, positive
from discreet.privacy.event import Selection
from discreet.privacy.sensitivity import Sensitivity
from discreet.source.exact import Exact
from discreet.types import Ints


def noisy_distances(
    *, sigma: Number, sensitivity: Sequence[Sensitivity | Number], expected: "Sequence[Sequence[int] | Ints]"
) -> Mechanism[Ints]:
    """Say how far each of several vectors is from the expected one, with Gaussian noise.

    Releases d_i + round(Y_i) for each part i, with Y_i ~ N(0, sigma²) independent and d_i = Σ |v − m| over its cells.
    It costs a Gaussian of squared sensitivity Σ_i Δ_i², however many cells there are.

    where v is the exact vector of a part, m the public `expected` one, and Δ_i the farthest that one person moves part
    i in L1, which is the farthest that its distance moves; `sensitivity` has one for each part. Release `Parts`.

    `error(confidence)` is the smallest t with Pr[|round(Y_i)| ≤ t] ≥ confidence; `joint=k` holds for k parts at once.

    >>> both = noisy_distances(sigma=10, sensitivity=[1, 1], expected=[[50, 50], [20, 30, 50]])
    >>> both.event, both.error(0.95)
    (Gaussian(sigma=Fraction(10, 1), squared_sensitivity=Fraction(2, 1)), 20.0)

    proof: distance.md
    """
    middle, sizes = read_parts(expected)
    calibrated = read_moves(sensitivity, len(sizes))
    add = gaussian(sigma=sigma, sensitivity=_distance_moves(calibrated))
    spread: Fraction = positive("sigma", sigma)

    def release(exact: Exact) -> Ints:
        far = distances(opened_parts(exact, calibrated, sizes), middle, sizes)
        return far + noise.rounded_gaussian(spread, size=far.size)

    def error(confidence: Number, *, joint: int = 1) -> float:
        return half_width(spread, confidence, joint=joint)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        here, *others = [distances(true_integers(table, middle), middle, sizes).tolist() for table in (values, *beside)]
        return add.law(here, beside=others)

    return Mechanism(add.event, release, error, law)


def farthest(
    *,
    epsilon: Number,
    sensitivity: Sequence[Sensitivity | Number],
    expected: "Sequence[Sequence[int] | Ints]",
    handicaps: "Sequence[int] | Ints | None" = None,
) -> Mechanism[int]:
    """Choose one of several vectors that is far from the expected one.

    Releases i with Pr[i] ∝ exp(e (d_i − h_i)/2Δ): the exponential mechanism. It is e-DP and of bounded range e.
    The 2 stays even where all counts move one way, for one distance grows while another shrinks.

    where e is `epsilon`, d_i = Σ |v − m| over the cells of part i, v the exact vector, m the public `expected` one, h
    the public `handicaps` (none: zeros) and Δ the largest of what one person moves a part in L1; `sensitivity` has one
    for each part. Release `Parts`.

    `error(confidence)` bounds how far the chosen d_i − h_i is below the largest.

    >>> choose = farthest(epsilon=1, sensitivity=[1, 1], expected=[[5, 5], [2, 3, 5]])
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law([5, 5, 3, 2, 5])
    Law(0: 0.268941, 1: 0.731059)

    [MT07; McKenna, Mullins, Sheldon, Miklau 2022]; proof, and why a distance is never monotone: distance.md
    """
    loss = positive("epsilon", epsilon)
    middle, sizes = read_parts(expected)
    calibrated = read_moves(sensitivity, len(sizes))
    behind = np.zeros(len(sizes), dtype=np.int64) if handicaps is None else read_public(handicaps, "handicaps").copy()
    if behind.size != len(sizes):
        raise BadParameter(
            f"there are {behind.size} handicaps and {len(sizes)} parts; there must be one for each. "
            "Give as many, or leave handicaps out."
        )
    moves = _distance_moves(calibrated)
    choose = exponential(epsilon=loss, sensitivity=moves)
    rate = loss / (2 * moves.linf)

    def release(exact: Exact) -> int:
        return noise.gumbel_race(distances(opened_parts(exact, calibrated, sizes), middle, sizes) - behind, rate)

    def error(confidence: Number) -> float:
        return choose.error(confidence, candidates=len(sizes))

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return choose.law(distances(true_integers(values, middle), middle, sizes) - behind)

    return Mechanism(Selection(loss), release, error, law)


def distances(values: Ints, expected: Ints, sizes: Sequence[int]) -> Ints:
    """The L1 distance of each part from what is expected of it.

    A cell counts for at most 2^61 over the cells of the largest part, so that no sum leaves 64 bits; that takes no two
    tables further apart.

    >>> distances(np.array([3, 1, 9]), np.array([1, 2, 9]), [2, 1]).tolist()
    [3, 0]
    """
    cells = np.minimum(surprises(values, expected), 2 * FARTHEST // max(sizes))
    starts = [0, *accumulate(sizes)][:-1]
    summed: Ints = np.add.reduceat(cells, starts)
    return summed


def _distance_moves(calibrated: Sequence[Sensitivity]) -> Sensitivity:
    """How far one person moves the vector of distances: each by at most the L1 of its part, up or down."""
    each = [moves.l1 for moves in calibrated]
    return Sensitivity(l1=sum(each, Fraction(0)), l2_squared=sum((l1**2 for l1 in each), Fraction(0)), linf=max(each))
