"""A sample of 8 ln k/α² rows answers all k queries within α; the proof's constants hold, but for k = 1."""

from dataclasses import dataclass
from math import exp, log

import numpy as np

from discreet.lab.lectures.chance import seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.conjunctions import answers_to_conjunctions, histogram_of_classes
from discreet.lab.textbook.small_db import sample_size, sampled_rows

COLUMNS, ROWS, ALPHA, TRIALS = 8, 5_000, 0.1, 400


@dataclass(frozen=True, slots=True)
class Sampled:
    """The number of samples off by more than α on some query, the number of all, and the largest error seen."""

    off: int
    of: int
    largest: float


def measure(rows: int) -> Sampled:
    """Samples of this number of rows, and their errors on all 256 monotone conjunctions of eight columns."""
    counts = histogram_of_classes(COLUMNS, ROWS)
    true = answers_to_conjunctions(counts / ROWS)
    errors = []
    for _ in range(TRIALS):
        drawn = np.bincount(sampled_rows(counts, rows), minlength=counts.size) / rows
        errors.append(float(np.abs(answers_to_conjunctions(drawn) - true).max()))
    return Sampled(sum(error > ALPHA for error in errors), TRIALS, max(errors))


def judge(rows: int, found: Sampled) -> Finding:
    """Pr[some query is off by more than α] ≤ 1/k."""
    queries = 2**COLUMNS
    return Finding(
        f"a sample of {rows:,} rows is off by more than {ALPHA:g} on one of {queries} queries",
        f"with probability at most 1/k = {1 / queries:.4f}",
        f"{found.off} of {found.of} samples; the largest error was {found.largest:.3f}",
        seldom_enough(found.off, found.of, 1 / queries),
    )


def judge_proof(factor: float) -> Finding:
    """The proof bounds 2e^(−2mα²), by Chernoff, by e^(−mα²/4): true from k = 2 on, where m = factor·ln k/α²."""
    worst = max(2 * exp(-2 * factor * log(k)) / exp(-factor * log(k) / 4) for k in range(2, 1000))
    total = max(k * exp(-factor * log(k) / 4) for k in range(2, 1000))
    return Finding(
        "k·exp(−mα²/4) for k = 2 … 999, which is above the Chernoff bound",
        "below 1, being 1/k",
        f"at most {total:.3f}; Chernoff is at most {worst:.2g} of each term",
        worst <= 1 and total < 1,
    )


def dimension(queries: int) -> float:
    """ln|X^m|, the dimension of a synthetic table: 8 ln k ln|X|/α², for the domain of eight columns."""
    return sample_size(queries, ALPHA, notes="003") * log(2**COLUMNS)


def judge_dimension(found: dict[int, float]) -> Finding:
    """Much smaller than k when the number of queries is large."""
    few, many = min(found), max(found)
    return Finding(
        f"the dimension ln|X^m| = 8 ln k ln|X|/α² over k, k = 10³ and 10⁹, |X| = {2**COLUMNS}",
        "much smaller than 1 for many queries",
        f"{found[few] / few:.1f} and {found[many] / many:.1e}",
        found[many] / many < 0.001 < found[few] / few,
    )


def run() -> Outcome:
    """The lemma on made-up people, and the constants of its proof."""
    rows = sample_size(2**COLUMNS, ALPHA, notes="003")
    note = (
        "For k = 1 the formula gives m = 0, a table without rows: the lemma needs k ≥ 2. 001 has ln k/α² instead, "
        "eight times fewer, by the sharper Chernoff bound: discreet reproduce sampling-bound."
    )
    sizes = {queries: dimension(queries) for queries in (10**3, 10**9)}
    return Outcome((judge(rows, measure(rows)), judge_proof(8), judge_dimension(sizes)), note=note)


CLAIM = Claim(
    name="small-sample",
    source="003 Lemma 3",
    title="A small synthetic database exists",
    statement="For every D and every set of k counting queries there is a table of m = 8 ln(k)/α² rows that answers "
    "each within α: a random sample is one with probability at least 1 − 1/k.",
    run=run,
)
