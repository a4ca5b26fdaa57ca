"""SmallDB: the exponential mechanism over all small tables, drawn exactly."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import noise
from discreet.errors import BadParameter, TooLarge
from discreet.mechanism.calibration import opened, read_integers, read_sensitivity, require_size
from discreet.mechanism.exponential import exponential, selection_rate
from discreet.mechanism.independent import require_few
from discreet.mechanism.multisets import AnswerLevels, multisets
from discreet.mechanism.protocol import Law, Mechanism
from discreet.parameter import Number, positive, whole
from discreet.privacy.event import Selection
from discreet.privacy.sensitivity import Sensitivity
from discreet.source.exact import Exact
from discreet.types import Ints

if TYPE_CHECKING:
    from flint import arb


# Imbalances beyond this are cut off there, so that none is the one integer that has no absolute value.
FARTHEST_IMBALANCE = 2**62
MOST_IMBALANCES, MOST_ROWS = 2**24, 2**20


def small_table(
    effects: "Sequence[Sequence[int]] | Ints", *, epsilon: Number, sensitivity: Sensitivity | Number, rows: int
) -> Mechanism[tuple[int, ...]]:
    """Choose a table of a few rows that answers every query nearly as the true one does.

    Releases a multiset y of m cells with Pr[y] ∝ exp(e s(y)/2Δ), where s(y) = −max_i |m q_i(D) − n q_i(y)|: minus mn
    times the largest error of an average over the rows. It is e-DP and of bounded range e. All C(N + m − 1, m)
    multisets can come out, each with exactly its probability; none is ever stored.

    where e is `epsilon`, m is `rows`, D has n rows in N cells, and q_i(D) adds up w_i(x) = `effects[i][x]` over its
    rows. The exact vector holds, query by query, the imbalances m q_i(D) − a n for every a that q_i(y) can be, from
    m·min w_i to m·max w_i (`imbalance_effects`); Δ is the largest move of one (linf), m·(max w_i − min w_i) for each
    row of a person. The number of rows need not be public.

    `error(confidence)` is in rows: how far n times the largest error is above that of the best table of m rows.

    >>> choose = small_table([[1, 0], [0, 1]], epsilon=1, sensitivity=2, rows=2)
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law(imbalance_effects([[1, 0], [0, 1]], rows=2) @ [6, 4])
    Law((0, 0): 0.170953, (0, 1): 0.766157, (1, 1): 0.06289)

    [MT07; 001 Alg. 5; 003 Sec. 2]; proof, how it is drawn, and where it ends: smalldb.md
    """
    loss = positive("epsilon", epsilon)
    moves = read_sensitivity(sensitivity, "linf")
    # No direction: an absolute value turns round.
    calibrated = Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=0)
    weights, few = _weights(effects), whole("rows", rows, least=1, most=MOST_ROWS)
    starts = _starts(weights, few)
    every = multisets(weights, few)
    scores = exponential(epsilon=loss, sensitivity=calibrated)
    rate = selection_rate(loss, calibrated)

    def release(exact: Exact) -> tuple[int, ...]:
        require_size(exact, starts[-1], starts[-1], what="imbalances")
        look, distances = levels(opened(exact, calibrated, "linf"), weights, few)
        counts, _, _ = every.walk(look)
        level = draw_level(counts, distances, rate)
        _, kinds, which = every.walk(look, level, noise.uniform_below(int(counts[level])))
        return every.cells_of(kinds, which)

    def error(confidence: Number) -> float:
        return scores.error(confidence, candidates=every.count) / few

    def law(imbalances: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        require_few(every.count)
        true = read_integers(imbalances, "imbalances")
        if len(true) != starts[-1]:
            raise BadParameter(f"there are {len(true)} imbalances; this mechanism takes {starts[-1]}. Give them all.")
        tables = list(combinations_with_replacement(range(weights.shape[1]), few))
        lowest = few * weights.min(axis=1)
        worst = []
        for table in tables:
            places = starts[:-1] + weights[:, list(table)].sum(axis=1) - lowest
            worst.append(-max(abs(true[place]) for place in places))
        plain = scores.law(worst)
        return Law({tables[place]: mass for place, mass in plain.probabilities.items()}, plain.rest)

    return Mechanism(Selection(loss), release, error, law)


def imbalance_effects(effects: "Sequence[Sequence[int]] | Ints", *, rows: int) -> Ints:
    """What a row in cell x adds to each imbalance m q_i(D) − a n: m w_i(x) − a, for every a that m rows can add up to.

    >>> imbalance_effects([[1, 0]], rows=2).tolist()
    [[2, 0], [1, -1], [0, -2]]
    """
    weights = _weights(effects)
    return np.concatenate([rows * row - np.array(answers(row, rows))[:, None] for row in weights])


def answers(weights: "Ints | tuple[int, int]", rows: int) -> range:
    """What so many rows, each with one of these weights, may add up to, and what lies between."""
    return range(rows * int(min(weights)), rows * int(max(weights)) + 1)


def levels(imbalances: Ints, effects: Ints, rows: int) -> tuple[AnswerLevels, list[int]]:
    """Every distance that a query can have from its true value, numbered from the nearest: the levels of the scores."""
    clamped = np.clip(imbalances, -FARTHEST_IMBALANCE, FARTHEST_IMBALANCE)
    distances, ranks = np.unique(np.abs(clamped), return_inverse=True)
    starts = np.array(_starts(effects, rows)[:-1]) - rows * effects.min(axis=1)
    return AnswerLevels(ranks.ravel().astype(np.int32), starts.astype(np.int32), distances.size), distances.tolist()


def draw_level(counts: Ints, distances: Sequence[int], rate: Fraction) -> int:
    """Level l with probability ∝ counts_l · exp(−rate·distance_l), exactly: halve the levels by an exact coin.

    >>> draw_level(np.array([0, 3, 0]), [1, 5, 9], Fraction(1))
    1
    """
    there = np.flatnonzero(counts).tolist()
    weigh = _weigher([int(counts[level]) for level in there], [distances[level] for level in there], rate)
    low, high = 0, len(there)
    while high - low > 1:
        middle = (low + high) // 2
        if noise.coin(partial(_share, weigh, low, middle, high)):
            high = middle
        else:
            low = middle
    return int(there[low])


def _share(weigh: "Callable[[], list[arb]]", low: int, middle: int, high: int) -> "arb":
    """The weight of the first part over that of both. Sums of parts, not differences of sums: no digits cancel."""
    masses = weigh()
    first, second = sum(masses[low + 1 : middle], masses[low]), sum(masses[middle + 1 : high], masses[middle])
    return first / (first + second)


def _weigher(counts: list[int], distances: list[int], rate: Fraction) -> "Callable[[], list[arb]]":
    """The weights at the working precision, relative to that of the nearest level; computed once for each precision."""
    from flint import arb, ctx, fmpz

    from discreet.noise.law import exp_minus

    nearest, known = min(distances), dict[int, "list[arb]"]()

    def masses() -> "list[arb]":
        if ctx.prec not in known:
            known[ctx.prec] = [
                arb(fmpz(count)) * exp_minus(rate * (distance - nearest))
                for count, distance in zip(counts, distances, strict=True)
            ]
        return known[ctx.prec]

    return masses


def _weights(effects: Any) -> Ints:
    """What a row of each cell adds to each query: a matrix of whole numbers."""
    exact = np.asarray(effects)
    if exact.ndim != 2 or not exact.size or exact.dtype.kind not in "iu":
        raise BadParameter(
            f"effects has shape {exact.shape} and type {exact.dtype}; it must be a matrix of whole numbers, a row for "
            "each query and a column for each cell. Give a list of lists of ints."
        )
    return exact.astype(np.int64)


def _starts(effects: Ints, rows: int) -> Ints:
    """Where the imbalances of each query begin, and where the last one ends."""
    widths = [len(answers(row, rows)) for row in effects]
    if sum(widths) > MOST_IMBALANCES or rows * max(int(effects.max()), -int(effects.min())) >= 2**30:
        raise TooLarge(
            f"{rows} rows can give {sum(widths)} different answers to {len(effects)} queries; the limit is "
            f"{MOST_IMBALANCES}. Ask for counts, or take fewer rows."
        )
    return np.cumsum([0, *widths])
