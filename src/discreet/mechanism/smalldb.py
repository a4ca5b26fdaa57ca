"""SmallDB: the exponential mechanism over all small tables, drawn exactly.

A small table is a multiset of m cells. Cells that no query distinguishes are of one kind, so the walk goes through the
multisets of kinds, which are fewer and are never stored, and counts how many multisets of cells each represents. Its
running time depends on these numbers alone, never on a table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement
from math import comb, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import jit, noise
from discreet.accounting.event import Selection
from discreet.accounting.sensitivity import Sensitivity, read_sensitivity
from discreet.errors import BadParameter, TooLarge
from discreet.mechanism.calibration import opened, read_integers, require_size
from discreet.mechanism.exponential import exponential, selection_rate
from discreet.mechanism.independent import require_few_outcomes
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, positive, whole
from discreet.source.source import Exact
from discreet.types import Ints, Ints32

if TYPE_CHECKING:
    from flint import arb


# The most multisets: one is drawn by a fair die with this many sides at most.
MOST_MULTISETS = 2**62
# Multisets of kinds times queries: the most that a walk may take, and the nanoseconds for one number.
MOST_WORK, NANOSECONDS_EACH = 2**37, 1.0
# Below this a walk in plain Python is done before the compiler is loaded.
_FEW = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Multisets:
    """The multisets of `rows` cells, for queries that give cell x the weights `effects[:, x]`."""

    rows: int
    cells: int
    # The cells of each kind; what a row of each kind adds to each query; in how many ways each kind can be had c times.
    kinds: tuple[tuple[int, ...], ...]
    effects: Ints32
    ways: Ints

    @property
    def count(self) -> int:
        """How many there are: C(cells + rows − 1, rows)."""
        return comb(self.cells + self.rows - 1, self.rows)

    def walk(self, lookup: "AnswerLevels", level: int = -1, index: int = 0) -> "tuple[Ints, list[int], int]":
        """How many multisets are on each level; or, given one, the kinds of the index-th on it, and which it is there.

        The last number says which of the multisets of cells that these kinds represent is meant.
        """
        work = comb(len(self.kinds) + self.rows - 1, self.rows) * self.effects.shape[1]
        loop = _loop if work < _FEW else jit.compiled(_loop)
        counts, path = np.zeros(lookup.levels, dtype=np.int64), np.zeros(self.rows, dtype=np.int64)
        left = index
        for first in range(len(self.kinds)):
            found, left = loop(first, self.effects, lookup.ranks, lookup.start, self.ways, counts, level, left, path)
            if found:
                return counts, path.tolist(), int(left)
        return counts, [], int(left)

    def cells_of(self, path: list[int], which: int) -> tuple[int, ...]:
        """The multiset of cells that is number `which` among those of these kinds, sorted."""
        chosen: list[int] = []
        for kind in sorted(set(path)):
            times = path.count(kind)
            which, here = divmod(which, int(self.ways[kind, times]))
            chosen += [self.kinds[kind][place] for place in unrank(here, len(self.kinds[kind]), times)]
        return tuple(sorted(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class AnswerLevels:
    """Where the walk reads the level of an answer: of query i, at start_i plus the sum of the weights of all rows."""

    ranks: Ints32
    start: Ints32
    levels: int


def multisets(effects: Ints, rows: int) -> Multisets:
    """All multisets of `rows` rows, or a refusal with their number.

    >>> every = multisets(np.array([[1, 1, 0]]), 2)
    >>> every.count, every.kinds
    (6, ((2,), (0, 1)))
    """
    cells = effects.shape[1]
    distinct, kind_of = np.unique(effects.T, axis=0, return_inverse=True)
    kinds = tuple(tuple(np.flatnonzero(kind_of.ravel() == kind).tolist()) for kind in range(len(distinct)))
    _require_feasible(cells, len(kinds), rows, effects.shape[0])
    ways = [[comb(len(kind) + times - 1, times) for times in range(rows + 1)] for kind in kinds]
    return Multisets(rows, cells, kinds, distinct.astype(np.int32), np.array(ways, dtype=np.int64))


def _require_feasible(cells: int, kinds: int, rows: int, queries: int) -> None:
    every, walked = comb(cells + rows - 1, rows), comb(kinds + rows - 1, rows)
    if walked * queries <= MOST_WORK and every < MOST_MULTISETS:
        return
    # The second walk stops half-way on average.
    seconds = min(walked * queries, 10**300) * NANOSECONDS_EACH * 1.5e-9
    raise TooLarge(
        f"there are {_short(every)} multisets of {rows} rows from {cells} cells; each is scored on {queries} queries, "
        f"which would take about {_duration(seconds)}. The limit is {_duration(MOST_WORK * NANOSECONDS_EACH * 1.5e-9)} "
        "and 2^62 multisets. Take fewer rows, a smaller domain, or another method: the number grows exponentially."
    )


def unrank(index: int, cells: int, rows: int) -> list[int]:
    """The index-th multiset of `rows` rows in the order of its largest cells, as cells in rising order.

    Multisets y_1 ≤ … ≤ y_m are sets of y_j + j − 1, which the combinatorial number system numbers.

    >>> [unrank(index, 2, 2) for index in range(3)]
    [[0, 0], [0, 1], [1, 1]]
    """
    places, top = [], cells + rows - 2
    for size in range(rows, 0, -1):
        while comb(top, size) > index:
            top -= 1
        index -= comb(top, size)
        places.append(top - size + 1)
    return places[::-1]


def _loop(
    first: int,
    effects: Any,
    ranks: Any,
    start: Any,
    ways: Any,
    counts: Any,
    level: int,
    left: int,
    path: Any,
) -> tuple[bool, int]:
    """All multisets whose lowest kind is `first`, lowest kinds first; stop at the one on `level` that holds `left`."""
    kinds, queries, rows = effects.shape[0], effects.shape[1], path.size
    sums = np.zeros((rows + 1, queries), dtype=np.int32)
    run, before = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=np.int64)
    path[0], run[0], depth = first, 1, 0
    sums[0, :] = start
    sums[1, :] = sums[0, :] + effects[first, :]
    while True:
        if depth < rows - 2:
            depth += 1
            path[depth] = path[depth - 1]
        else:
            # All rows but the last are chosen (or, of one row, none is).
            lowest, highest = (path[depth], kinds) if rows > 1 else (first, first + 1)
            for last in range(lowest, highest):
                worst = 0
                for i in range(queries):
                    worst = max(worst, ranks[sums[rows - 1, i] + effects[last, i]])
                if rows == 1:
                    many = ways[last, 1]
                elif last == path[depth]:
                    many = before[depth] * ways[last, run[depth] + 1]
                else:
                    many = before[depth] * ways[path[depth], run[depth]] * ways[last, 1]
                counts[worst] += many
                if worst == level:
                    if left < many:
                        path[rows - 1] = last
                        return True, left
                    left -= many
            while depth > 0 and path[depth] == kinds - 1:
                depth -= 1
            if depth == 0:
                return False, left
            path[depth] += 1
        if path[depth] == path[depth - 1]:
            run[depth], before[depth] = run[depth - 1] + 1, before[depth - 1]
        else:
            run[depth], before[depth] = 1, before[depth - 1] * ways[path[depth - 1], run[depth - 1]]
        for i in range(queries):
            sums[depth + 1, i] = sums[depth, i] + effects[path[depth], i]


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"about 10^{log10(number):.1f}"


def _duration(seconds: float) -> str:
    for unit, size in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"


# Imbalances beyond this are cut off there, so that none is the one integer that has no absolute value.
FARTHEST_IMBALANCE = 2**62
MOST_TABULATED, MOST_SMALL_ROWS = 2**24, 2**20


def small_table(
    effects: "Sequence[Sequence[int]] | Ints", *, epsilon: Number, sensitivity: Sensitivity | Number, rows: int
) -> Mechanism[tuple[int, ...]]:
    """Choose a table of a few rows whose answers to all queries are close to the true ones.

    Releases a multiset y of m cells with Pr[y] ∝ exp(e s(y)/2Δ), where s(y) = −max_i |m q_i(D) − n q_i(y)|: minus mn
    times the largest error of an average over the rows. It is e-DP and of bounded range e. All C(N + m − 1, m)
    multisets can come out, each with exactly its probability; none is ever stored.

    where e is `epsilon`, m is `rows`, D has n rows in N cells, and q_i(D) adds up w_i(x) = `effects[i][x]` over its
    rows. The exact vector holds, query by query, the imbalances m q_i(D) − a n for every a that q_i(y) can be, from
    m·min w_i to m·max w_i (`imbalance_effects`); Δ is the largest move of one (linf), m·(max w_i − min w_i) for each
    row of a person. The number of rows need not be public.

    `error(confidence)` is in rows: a bound on n times (the largest error minus that of the best table of m rows).

    >>> choose = small_table([[1, 0], [0, 1]], epsilon=1, sensitivity=2, rows=2)
    >>> choose.event
    Selection(epsilon=Fraction(1, 1))
    >>> choose.law(imbalance_effects([[1, 0], [0, 1]], rows=2) @ [6, 4])
    Law((0, 0): 0.170953, (0, 1): 0.766157, (1, 1): 0.06289)

    [MT07; 001 Alg. 5; 003 Sec. 2]; proof, how it is drawn, and where it ends: smalldb.md
    """
    loss = positive("epsilon", epsilon)
    moves = read_sensitivity(sensitivity, "linf")
    # No direction: an absolute value can move either way.
    calibrated = Sensitivity(moves.l1, moves.l2_squared, moves.linf, direction=0)
    weights, few = _weights(effects), whole("rows", rows, least=1, most=MOST_SMALL_ROWS)
    starts = _starts(weights, few)
    every = multisets(weights, few)
    scores = exponential(epsilon=loss, sensitivity=calibrated)
    rate = selection_rate(loss, calibrated)

    def release(exact: Exact) -> tuple[int, ...]:
        require_size(exact, starts[-1], starts[-1], what="imbalances")
        lookup, distances = levels(opened(exact, calibrated, "linf"), weights, few)
        counts, _, _ = every.walk(lookup)
        level = draw_level(counts, distances, rate)
        _, kinds, which = every.walk(lookup, level, noise.uniform_below(int(counts[level])))
        return every.cells_of(kinds, which)

    def error(confidence: Number) -> float:
        return scores.error(confidence, candidates=every.count) / few

    def law(imbalances: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        require_few_outcomes(every.count)
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
    """The range of the sum of this many rows, each with one of these weights."""
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
    if sum(widths) > MOST_TABULATED or rows * max(int(effects.max()), -int(effects.min())) >= 2**30:
        raise TooLarge(
            f"{rows} rows can give {sum(widths)} different answers to {len(effects)} queries; the limit is "
            f"{MOST_TABULATED}. Ask for counts, or take fewer rows."
        )
    return np.cumsum([0, *widths])
