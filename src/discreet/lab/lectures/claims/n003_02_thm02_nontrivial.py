"""Laplace noise says something about k counts only while k is below n."""

from fractions import Fraction
from math import log

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.noise.law import laplace_tail
from discreet.numeric import precision
from discreet.report.plot import Line, plot

EPSILON, BETA, BITS = Fraction(1), 0.05, 128
ROWS = (100, 10**4, 10**6)


def most_queries(rows: int, epsilon: Fraction = EPSILON) -> int:
    """The largest k whose bound k ln(k/β)/(εn) is below 1."""
    low, high = 0, 2 * rows * max(1, round(float(epsilon)))
    while high - low > 1:
        middle = (low + high) // 2
        below = middle * log(middle / BETA) < float(epsilon) * rows
        low, high = (middle, high) if below else (low, middle)
    return low


def useless(queries: int, rows: int, scale: Fraction) -> float:
    """The exact probability that an answer is off by as much as all rows: no better than a guess of 0 or 1."""
    with precision(BITS):
        found: arb = 1 - (1 - 2 * laplace_tail(rows, scale)) ** queries
        return float(found.mid())


def judge_bound(rows: int, found: int) -> Finding:
    """k < n is needed, and by a logarithm more is enough: k < εn/ln(n/β)."""
    enough = int(float(EPSILON) * rows / log(rows / BETA))
    return Finding(
        f"the bound is below 1 for n = {rows:,}",
        f"only if k < {rows:,}; surely if k ≤ {enough:,}",
        f"up to k = {found:,}",
        enough <= found < rows,
    )


def judge_noise(rows: int, at_n: float, few: float) -> Finding:
    """With k = n the noise itself is as large as the range of the answers; with a twentieth of that it is not."""
    return Finding(
        f"an answer is off by all rows, n = {rows:,}",
        "nearly always if k = n, seldom if k = n/(2 ln(n/β))",
        f"{at_n:.4f} and {few:.1e}, exactly",
        at_n > 1 - BETA and few < BETA,
    )


def run() -> Outcome:
    """Where the bound reaches 1, and what the noise does there."""
    findings = [judge_bound(rows, most_queries(rows)) for rows in ROWS]
    for rows in ROWS:
        few = int(rows / (2 * log(rows / BETA)))
        findings.append(judge_noise(rows, useless(rows, rows, rows / EPSILON), useless(few, rows, few / EPSILON)))
    rows = ROWS[1]
    ks = [round(10 ** (step / 20)) for step in range(40, 81)]
    figure = plot(
        "The chance that an answer is off by all rows, n = 10,000",
        [Line("exact", [(k, useless(k, rows, k / EPSILON)) for k in ks], "ours")],
        x="number of queries k",
        y="probability",
        log_x=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="laplace-needs-few-queries",
    source="003 Thm. 2, remark",
    title="Non-trivial only if k < n",
    statement="Answers lie in [0, 1], so the Laplace mechanism's error k ln(k/β)/(εn) is non-trivial only if k < n.",
    run=run,
)
