"""ln|Q|/α² rows are enough: with positive probability such a sample answers all queries within α, if |Q| > 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np

from discreet.lab.lectures.chance import seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import answers_to_conjunctions, histogram_of_classes
from discreet.lab.textbook.small_db import sample_size, sampled_rows
from discreet.report.plot import Line, plot
from discreet.types import Ints

COLUMNS, ROWS, ALPHA, TRIALS = 8, 5_000, 0.1, 400
QUERIES = 2**COLUMNS
# Five rows, by what a query weighs each, in tenths.
FIVE = (0, 3, 3, 7, 10)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The number of samples off by more than α on some query, and the number of all."""

    off: int
    of: int


def bound(queries: int, rows: float, alpha: float = ALPHA) -> float:
    """Chernoff and union: 2|Q|e^(−2mα²)."""
    return 2 * queries * exp(-2 * rows * alpha**2)


def measure(counts: Ints, rows: int) -> Sampled:
    """Samples of this number of rows, and their errors on all 256 conjunctions of eight columns."""
    true = answers_to_conjunctions(counts / ROWS)
    off = 0
    for _ in range(TRIALS):
        drawn = np.bincount(sampled_rows(counts, rows), minlength=counts.size) / rows
        off += bool(np.abs(answers_to_conjunctions(drawn) - true).max() > ALPHA)
    return Sampled(off, TRIALS)


def judge(rows: int, found: Sampled) -> Finding:
    """The bound of the lemma, which is 2/|Q| at m = ln|Q|/α²."""
    return Finding(
        f"a sample of m = {rows} rows is off by more than {ALPHA:g} on one of {QUERIES} queries",
        f"with probability at most 2|Q|e^(−2mα²) = {bound(QUERIES, rows):.4f}",
        f"{found.off} of {found.of} samples",
        seldom_enough(found.off, found.of, min(1.0, bound(QUERIES, rows))),
    )


def mean_of_samples(rows: Sequence[int], number: int) -> Fraction:
    """The exact mean of q(D′) over all samples of this number of rows; q is the weight of a row itself, in tenths."""
    samples = list(product(rows, repeat=number))
    return sum((Fraction(sum(sample), 10 * number) for sample in samples), Fraction(0)) / len(samples)


def judge_mean(rows: Sequence[int], found: Fraction) -> Finding:
    """E[q(D′)] = q(D)."""
    true = Fraction(sum(rows), 10 * len(rows))
    return Finding(f"E[q(D′)] over all {len(rows)}³ samples of three rows", f"q(D) = {true}", f"{found}", found == true)


def judge_condition(bounds: dict[int, float]) -> Finding:
    """2|Q|·|Q|^−2 = 2/|Q|: below 1 from |Q| = 3 on, and not for 1 and 2."""
    # At 2 it is 1, and no less, but for rounding.
    holds = all((value < 1 - 1e-12) == (queries > 2) for queries, value in bounds.items())
    shown = ", ".join(f"{value:.3g}" for value in bounds.values())
    return Finding(
        f"the bound at m = ln|Q|/α², |Q| = {', '.join(map(str, bounds))}", "below 1 if |Q| > 2", shown, holds
    )


def run() -> Outcome:
    """The lemma on made-up people; its condition; and failures against the size of a sample."""
    counts = histogram_of_classes(COLUMNS, ROWS)
    lemma = sample_size(QUERIES, ALPHA)
    less = 3 * lemma // 4
    sizes = [lemma // 16, lemma // 8, lemma // 4, lemma // 2, less, lemma]
    found = {rows: measure(counts, rows) for rows in sizes}
    bounds = {queries: bound(queries, log(queries) / ALPHA**2) for queries in (1, 2, 3, 10, 1000)}
    findings = (
        judge_mean(FIVE, mean_of_samples(FIVE, 3)),
        judge(lemma, found[lemma]),
        judge(less, found[less]),
        judge_condition(bounds),
    )
    figure = plot(
        "Samples that are off by more than α = 0.1 on one of 256 queries",
        [
            Line("Chernoff and union", [(m, min(1.0, bound(QUERIES, m))) for m in range(20, 2 * lemma, 8)], "second"),
            Line("drawn", [(m, each.off / each.of) for m, each in found.items()], "ours", dots=True, joined=False),
            Line("m = ln|Q|/α²", [(lemma, 0.0), (lemma, 1.0)], "cap"),
        ],
        x="rows in the sample m",
        y="share of the samples",
    )
    note = "For one query the formula gives m = 0 rows, and for two the bound is 1: hence |Q| > 2."
    return Outcome(findings, figure, note)


CLAIM = Claim(
    name="sampling-bound",
    source="001 Sampling bound",
    title="A few rows represent all",
    statement="For every D and linear queries Q, |Q| > 2, some table of m = ln|Q|/α² rows answers all within α: m rows "
    "of D drawn at random fail with probability at most 2|Q|e^(−2mα²) = 2/|Q| < 1.",
    run=run,
)
