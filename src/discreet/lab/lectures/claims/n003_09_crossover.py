"""All 2^d conjunctions: Laplace noise needs some 2^d people, BLR some d²; where the two cross."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import log

import numpy as np

from discreet import noise
from discreet.accounting.sensitivity import Sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import answers_to_conjunctions, conjunction_effects, histogram_of_classes
from discreet.lab.textbook.small_db import promised_error
from discreet.mechanism import imbalance_effects, small_table
from discreet.mechanism.laplace import laplace_half_width
from discreet.report.plot import Line, plot
from discreet.source.source import Exact

EPSILON, BETA, ALPHA = Fraction(1), 0.05, 0.5
COLUMNS = range(2, 41)
SMALL, ROWS, FEW, TRIALS, SURE = 2, 500, 24, 5, 1 - 1e-8


@dataclass(frozen=True, slots=True)
class Small:
    """The largest error of some runs, and what it is within but for 10⁻⁸."""

    error: float
    promised: float


def laplace_needs(columns: int) -> float:
    """The n at which 2^d ln(2^d/β)/(εn), the error of Theorem 2, is α."""
    return 2.0**columns * (columns * log(2) + log(1 / BETA)) / (float(EPSILON) * ALPHA)


def blr_needs(columns: int) -> float:
    """The n at which the error of Theorem 5 is α, by bisection of the product's formula."""
    low, high = 1, 2**60
    while high - low > 1:
        middle = (low + high) // 2
        cells = 2**columns
        enough = promised_error(queries=cells, cells=cells, rows=middle, epsilon=EPSILON, beta=BETA) <= ALPHA
        low, high = (low, middle) if enough else (middle, high)
    return float(high)


def crossing(laplace: dict[int, float], blr: dict[int, float]) -> int | None:
    """The first d from which on BLR needs fewer people."""
    wins = [d for d in laplace if all(blr[e] < laplace[e] for e in laplace if e >= d)]
    return min(wins, default=None)


def judge(laplace: dict[int, float], blr: dict[int, float]) -> list[Finding]:
    """Laplace doubles with each column; BLR grows with the square of their number; they cross once."""
    last = max(laplace)
    doubling = laplace[last] / laplace[last - 1]
    square = log(blr[last] / blr[last // 2]) / log(2)
    cross = crossing(laplace, blr)
    return [
        Finding(
            f"Laplace: people needed for {last} columns over {last - 1}",
            "2, and a little for the logarithm",
            f"{doubling:.3f}",
            2 <= doubling <= 2 * last / (last - 1),
        ),
        Finding(
            f"BLR: the power of d with which they grow from {last // 2} to {last} columns",
            "2, or a little less for the term with β",
            f"{square:.3f}",
            1.9 <= square <= 2.001,
        ),
        Finding(
            f"BLR needs fewer people for an error of {ALPHA:g}",
            "from some d on",
            "never" if cross is None else f"from d = {cross} on: {blr[cross]:,.0f} against {laplace[cross]:,.0f}",
            cross is not None and cross < last,
        ),
    ]


def measured(epsilon: Fraction) -> tuple[Small, Small]:
    """The largest errors on all four conjunctions of two columns, for a few hundred people: Laplace noise and BLR.

    Each beside what it promises with probability 1 − 10⁻⁸ for ε = 1: the exact quantile of the noise, and what the
    exponential mechanism may lose against the best table.
    """
    counts, effects = histogram_of_classes(SMALL, ROWS), conjunction_effects(SMALL)
    true = answers_to_conjunctions(counts) / ROWS
    scale = 2**SMALL / epsilon
    noisy = np.abs(np.asarray(noise.discrete_laplace(scale, size=(TRIALS * true.size)))).max() / ROWS
    choose, promise = (small_table(effects, epsilon=e, sensitivity=FEW, rows=FEW) for e in (epsilon, EPSILON))
    moves = Sensitivity(l1=Fraction(FEW), l2_squared=Fraction(FEW), linf=Fraction(FEW))
    exact = Exact(imbalance_effects(effects, rows=FEW) @ counts, moves)
    chosen = [np.bincount(choose.release(exact), minlength=counts.size) for _ in range(TRIALS)]
    every = [np.bincount(cells, minlength=4) for cells in combinations_with_replacement(range(counts.size), FEW)]
    worst, best = (
        [float(np.abs(answers_to_conjunctions(table) / FEW - true).max()) for table in tables]
        for tables in (chosen, every)
    )
    return (
        Small(float(noisy), laplace_half_width(2**SMALL / EPSILON, SURE, joint=TRIALS * true.size) / ROWS),
        Small(max(worst), min(best) + promise.error(1 - (1 - SURE) / TRIALS) / ROWS),
    )


def judge_small(way: str, found: Small) -> Finding:
    """Where BLR can be run, both keep what their exact laws promise, far below what their theorems do."""
    return Finding(
        f"largest error in {TRIALS} runs on all {2**SMALL} conjunctions of {SMALL} columns, n = {ROWS}: {way}",
        f"at most {found.promised:.3f}",
        f"{found.error:.3f}",
        found.error <= found.promised,
    )


def run() -> Outcome:
    """Both bounds for 2 to 40 columns, and two columns in fact."""
    laplace = {d: laplace_needs(d) for d in COLUMNS}
    blr = {d: blr_needs(d) for d in COLUMNS}
    noisy, small = measured(EPSILON)
    ways = {"Laplace noise": noisy, f"BLR, tables of {FEW} rows": small}
    findings = [*judge(laplace, blr), *(judge_small(way, found) for way, found in ways.items())]
    shown = range(2, 25)
    figure = plot(
        "People needed to answer all 2^d conjunctions within a half",
        [
            Line("Laplace, Thm. 2", [(d, laplace[d]) for d in shown], "third"),
            Line("BLR, Thm. 5", [(d, blr[d]) for d in shown], "ours"),
        ],
        x="columns d",
        y="people n",
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="laplace-against-blr",
    source="003 §2.2",
    title="Laplace noise against BLR",
    statement="For all 2^d monotone conjunctions the Laplace mechanism has error O(2^d·d/(εn)), non-trivial only if "
    "n ≫ 2^d; BLR has O((d²/(εn))^⅓), non-trivial if n ≫ d².",
    run=run,
)
