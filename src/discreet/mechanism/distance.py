"""Noisy distances between true counts and a model's expectation: how wrong a model is, and where it is most wrong.

A surprise is the absolute difference of a true and an expected integer; the distance of a marginal is the sum of its
surprises. Either all distances of some marginals are released with noise, or the place of a large one is chosen. The
sealed values of several marginals are opened one after the other, each with its own sensitivity.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from discreet import noise
from discreet.accounting.event import Selection
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter, SealBroken
from discreet.mechanism.calibration import opened, read_integers, require_size
from discreet.mechanism.exponential import exponential
from discreet.mechanism.gaussian import gaussian, gaussian_half_width
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, positive, whole
from discreet.source.source import Exact
from discreet.types import Ints

# Within these no difference of a value, an expected one and a handicap leaves 64 bits.
FARTHEST = 2**60


class Parts(Exact):
    """Sealed values, say the marginals that a source evaluated one by one, as one argument of a mechanism.

    It holds the sealed values themselves and no integer of its own. So there is nothing to declare: the sensitivity of
    each part is that of its own seal, and a mechanism that is not made for parts finds nothing to open.

    >>> one = Sensitivity(Fraction(1), Fraction(1), Fraction(1))
    >>> Parts([Exact(np.array([3, 4]), one), Exact(np.array([7]), one)])
    <Exact, sealed: 3 integers>
    """

    __slots__ = ("parts",)
    parts: tuple[Exact, ...]

    def __init__(self, parts: Sequence[Exact]) -> None:
        held = tuple(parts)
        for part in held:
            if not isinstance(part, Exact) or isinstance(part, Parts):
                raise SealBroken(f"a part is a {type(part).__name__}; it must be an Exact from a source.")
        if not held:
            raise BadParameter("there are no parts; there must be at least one. Give the sealed values of marginals.")
        moves = Sensitivity(
            l1=sum((part.sensitivity.l1 for part in held), Fraction(0)),
            l2_squared=sum((part.sensitivity.l2_squared for part in held), Fraction(0)),
            linf=max(part.sensitivity.linf for part in held),
        )
        super().__init__(np.zeros(0, dtype=np.int64), moves, tuple((Fraction(1), part.size) for part in held))
        object.__setattr__(self, "parts", held)

    @property
    def size(self) -> int:
        """How many integers there are in all parts."""
        return sum(part.size for part in self.parts)


def opened_parts(exact: Exact, calibrated: Sequence[Sensitivity], sizes: Sequence[int]) -> Ints:
    """The true integers of all parts, if their numbers agree and no part has a larger L1 sensitivity than declared."""
    # What is no Exact at all is refused when it is opened.
    parts = exact.parts if isinstance(exact, Parts) else (exact,)
    found = [part.size if isinstance(part, Exact) else 0 for part in parts]
    if isinstance(exact, Exact) and found != list(sizes):
        raise BadParameter(
            f"there are {len(found)} parts with together {sum(found)} values; this mechanism takes {len(sizes)} with "
            f"together {sum(sizes)}, and as many in each as are expected. Check the measurement."
        )
    return np.concatenate([opened(part, one, "l1") for part, one in zip(parts, calibrated, strict=True)])


def read_moves(sensitivity: Sequence[Sensitivity | Number], parts: int) -> tuple[Sensitivity, ...]:
    """By how much one person moves each part. Some may not move at all, as a column with one cell; but not all."""
    given = tuple(sensitivity) if isinstance(sensitivity, Sequence) else ()
    if len(given) != parts:
        raise BadParameter(
            f"sensitivity has {len(given)} parts and {parts} are expected; there must be one for each. "
            "Give [part.sensitivity for part in parts]."
        )
    moves = tuple(
        each if isinstance(each, Sensitivity) and not each.l1 else read_sensitivity(each, "l1") for each in given
    )
    if not any(each.l1 for each in moves):
        raise BadParameter(
            "the l1 sensitivity of every part is 0; noise needs one above 0. "
            "A value that no person can move is public: answer it without a mechanism."
        )
    return moves


def read_parts(expected: "Sequence[Sequence[int] | Ints]") -> tuple[Ints, tuple[int, ...]]:
    """Public integers for every cell of every part, one part after the other; and how many each has."""
    if isinstance(expected, str) or not isinstance(expected, Sequence) or not expected:
        raise BadParameter(
            "expected holds no part; it must be a list with the integers of each. Give one array for each marginal."
        )
    parts = [read_public(part, f"expected[{place}]") for place, part in enumerate(expected)]
    return np.concatenate(parts), tuple(part.size for part in parts)


def read_public(values: "Sequence[int] | Ints", name: str) -> Ints:
    """Public integers within 2^60, at least one.

    >>> read_public([1, 2**61], "handicaps")
    Traceback (most recent call last):
    discreet.errors.BadParameter: handicaps has a value beyond 2^60; it must hold smaller integers. Give counts of rows.
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.size and values.dtype == np.int64:
        exact = values
    elif isinstance(values, Sequence | np.ndarray) and not isinstance(values, str):
        listed = read_integers(values, name)
        exact = np.array([max(-FARTHEST - 1, min(FARTHEST + 1, value)) for value in listed], dtype=np.int64)
    else:
        raise BadParameter(f"{name} is a {type(values).__name__}; it must be a list of integers. Give counts of rows.")
    if exact.max() > FARTHEST or exact.min() < -FARTHEST:
        raise BadParameter(f"{name} has a value beyond 2^60; it must hold smaller integers. Give counts of rows.")
    return exact


def true_integers(values: Sequence[int], expected: Ints) -> Ints:
    """The true integers for a law, clamped as those of a table are."""
    exact = read_integers(values)
    if len(exact) != expected.size:
        raise BadParameter(
            f"there are {len(exact)} values and {expected.size} expected ones; there must be one for each. "
            "Give the true integers of all parts, one after the other."
        )
    return np.array([max(-FARTHEST, min(FARTHEST, value)) for value in exact], dtype=np.int64)


def largest_surprise(
    *,
    epsilon: Number,
    sensitivity: Sensitivity | Number,
    expected: "Sequence[int] | Ints",
    handicaps: "Sequence[int] | Ints | None" = None,
) -> Mechanism[int]:
    """Choose a place where the distance of the true value from the expected one is large.

    Releases i with Pr[i] ∝ exp(e (|v_i − m_i| − h_i)/2Δ): the exponential mechanism. It is e-DP and of bounded range e.
    The 2 stays even where all v_i move one way, because an absolute value can move either way.

    where e is `epsilon`, v the exact vector, m the public `expected`, h the public `handicaps` (none: zeros) and Δ the
    largest move of one value (linf), which is the largest move of one surprise.

    `error(confidence)` bounds the largest |v_i − m_i| − h_i minus the chosen one.

    >>> choose = largest_surprise(epsilon=1, sensitivity=1, expected=[10, 10, 10])
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law([10, 12, 6])
    Law(0: 0.0900306, 1: 0.244728, 2: 0.665241)
    >>> round(choose.error(0.95), 2)
    7.28

    [MT07; Hardt, Ligett, McSherry 2012, Fig. 1]; proof, and why a surprise is never monotone: surprise.md
    """
    loss = positive("epsilon", epsilon)
    calibrated = _both_ways(read_sensitivity(sensitivity, "linf"))
    middle = _frozen(expected, "expected")
    behind = np.zeros_like(middle) if handicaps is None else _frozen(handicaps, "handicaps")
    if behind.size != middle.size:
        raise BadParameter(
            f"there are {behind.size} handicaps and {middle.size} expected values; there must be one for each. "
            "Give as many, or leave handicaps out."
        )
    choose = exponential(epsilon=loss, sensitivity=calibrated)
    rate = loss / (2 * calibrated.linf)

    def release(exact: Exact) -> int:
        require_size(exact, middle.size, middle.size)
        return noise.gumbel_race(surprises(opened(exact, calibrated, "linf"), middle) - behind, rate)

    def error(confidence: Number) -> float:
        return choose.error(confidence, candidates=middle.size)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        return choose.law(surprises(true_integers(values, middle), middle) - behind)

    return Mechanism(Selection(loss), release, error, law)


def surprise_quantile(
    *, sigma: Number, sensitivity: Sensitivity | Number, expected: "Sequence[int] | Ints", rank: int = -1
) -> Mechanism[int]:
    """Release the rank-th smallest distance of the true values from the expected ones, with Gaussian noise.

    Releases a + round(Y), with Y ~ N(0, sigma²) and a the rank-th smallest of |v_1 − m_1|, …, |v_d − m_d|. It costs one
    Gaussian of sensitivity Δ, however many values there are.

    where v is the exact vector, m the public `expected`, Δ the largest move of one value (linf), and `rank` is 1 for
    the smallest distance, d or −1 for the largest, d − 1 or −2 for the one below it.

    `error(confidence)` is the smallest t with Pr[|round(Y)| ≤ t] ≥ confidence.

    >>> largest = surprise_quantile(sigma=10, sensitivity=1, expected=[0] * 20_000)
    >>> largest.event, largest.error(0.95)
    (Gaussian(sigma=Fraction(10, 1), squared_sensitivity=Fraction(1, 1)), 20.0)

    proof: surprise.md
    """
    calibrated = _both_ways(read_sensitivity(sensitivity, "linf"))
    middle = _frozen(expected, "expected")
    place = _place(rank, middle.size)
    one = calibrated.linf
    add = gaussian(sigma=sigma, sensitivity=Sensitivity(l1=one, l2_squared=one**2, linf=one))
    spread: Fraction = positive("sigma", sigma)

    def release(exact: Exact) -> int:
        require_size(exact, middle.size, middle.size)
        return _smallest(opened(exact, calibrated, "linf"), middle, place) + noise.rounded_gaussian(spread)

    def error(confidence: Number) -> float:
        return gaussian_half_width(spread, confidence)

    def law(values: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        here, *others = [[_smallest(true_integers(table, middle), middle, place)] for table in (values, *beside)]
        vector = add.law(here, beside=others)
        return Law({outcome[0]: mass for outcome, mass in vector.probabilities.items()}, vector.rest)

    return Mechanism(add.event, release, error, law)


def surprises(values: Ints, expected: Ints) -> Ints:
    """The distance of each value from the expected one; values are clamped first, which increases no sensitivity.

    >>> surprises(np.array([3, -5]), np.array([1, 1])).tolist()
    [2, 6]
    """
    distances: Ints = np.abs(np.clip(values, -FARTHEST, FARTHEST) - expected)
    return distances


def _smallest(values: Ints, expected: Ints, place: int) -> int:
    return int(np.partition(surprises(values, expected), place)[place])


def _both_ways(moves: Sensitivity) -> Sensitivity:
    """The same moves with no direction: |v − m| goes up with v on one side of m and down on the other."""
    return Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=0)


def _place(rank: int, count: int) -> int:
    """The place of the rank-th smallest of `count` values, counted from 0."""
    step = f"Give 1 for the smallest, {count} or -1 for the largest."
    signed = whole("rank", rank, least=-count, most=count, next_step=step)
    if signed == 0:
        raise BadParameter(f"rank is 0; it must be a whole number from 1 to {count}, or from -{count} to -1. {step}")
    return signed - 1 if signed > 0 else count + signed


def _frozen(values: "Sequence[int] | Ints", name: str) -> Ints:
    """Public integers, one for each true value, in a read-only array."""
    exact = read_public(values, name).copy()
    exact.setflags(write=False)
    return exact


def noisy_distances(
    *, sigma: Number, sensitivity: Sequence[Sensitivity | Number], expected: "Sequence[Sequence[int] | Ints]"
) -> Mechanism[Ints]:
    """Release the distance of each of several vectors from the expected one, with Gaussian noise.

    Releases d_i + round(Y_i) for each part i, with Y_i ~ N(0, sigma²) independent and d_i = Σ |v − m| over its cells.
    It costs a Gaussian of squared sensitivity Σ_i Δ_i², however many cells there are.

    where v is the exact vector of a part, m the public `expected` one, and Δ_i the L1 sensitivity of part i, which
    bounds the move of its distance; `sensitivity` has one for each part. Release `Parts`.

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
        exact_distances = distances(opened_parts(exact, calibrated, sizes), middle, sizes)
        return exact_distances + noise.rounded_gaussian(spread, size=exact_distances.size)

    def error(confidence: Number, *, joint: int = 1) -> float:
        return gaussian_half_width(spread, confidence, joint=joint)

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
    """Choose one of several vectors whose distance from the expected one is large.

    Releases i with Pr[i] ∝ exp(e (d_i − h_i)/2Δ): the exponential mechanism. It is e-DP and of bounded range e.
    The 2 stays even where all counts move one way, because one distance can grow while another shrinks.

    where e is `epsilon`, d_i = Σ |v − m| over the cells of part i, v the exact vector, m the public `expected` one, h
    the public `handicaps` (none: zeros) and Δ the largest of what one person moves a part in L1; `sensitivity` has one
    for each part. Release `Parts`.

    `error(confidence)` bounds the largest d_i − h_i minus the chosen one.

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

    A cell counts for at most 2^61 over the cells of the largest part, so that no sum leaves 64 bits; that increases no
    distance between two tables.

    >>> distances(np.array([3, 1, 9]), np.array([1, 2, 9]), [2, 1]).tolist()
    [3, 0]
    """
    cells = np.minimum(surprises(values, expected), 2 * FARTHEST // max(sizes))
    starts = [0, *accumulate(sizes)][:-1]
    summed: Ints = np.add.reduceat(cells, starts)
    return summed


def _distance_moves(calibrated: Sequence[Sensitivity]) -> Sensitivity:
    """By how much one person moves the vector of distances: each by at most the L1 of its part, up or down."""
    each = [moves.l1 for moves in calibrated]
    return Sensitivity(l1=sum(each, Fraction(0)), l2_squared=sum((l1**2 for l1 in each), Fraction(0)), linf=max(each))
