"""k counts with Laplace noise of scale k/(εn): private, and all within k ln(k/β)/(εn), by the exact law."""

from collections.abc import Callable
from fractions import Fraction
from math import log

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import laplace
from discreet.mechanism.laplace import union_half_width
from discreet.noise.law import laplace_tail
from discreet.numeric import precision
from discreet.report.plot import Line, plot
from discreet.verify import Interval

EPSILON, BETA, ROWS, BITS = Fraction(1), 0.05, 1000, 128
QUERIES = (1, 2, 10, 100, 1000)
Bound = Callable[[int], float]


def theorem(queries: int) -> float:
    """n times the theorem's error, k ln(k/β)/ε, rounded up to whole rows."""
    return union_half_width(queries / EPSILON, 1 - BETA, joint=queries)


def failure(queries: int, bound: float, scale: Fraction) -> float:
    """The exact probability that one of k answers is off by more than t rows: 1 − (1 − Pr[|X| > t])^k."""
    with precision(BITS):
        each = 2 * laplace_tail(int(bound) + 1, scale)
        found: arb = 1 - (1 - each) ** queries
        return float(found.upper())


def loss(queries: int, scale: Fraction) -> Interval:
    """The exact loss if one row can move all k counts."""
    return worst_loss(laplace(epsilon=queries / scale, sensitivity=queries), [([0] * queries, [1] * queries)])


def judge_loss(queries: int, found: Interval) -> Finding:
    """(ε, 0)-DP, and tight."""
    holds = equals(found, float(EPSILON))
    return Finding(f"loss of {queries} answers", f"{EPSILON}", f"{shown(found)}, exactly", holds)


def judge_failure(queries: int, found: float) -> Finding:
    """The theorem's failure probability."""
    return Finding(
        f"k = {queries:,}, n = {ROWS:,}: an answer is off by more than {theorem(queries) / ROWS:.3g}",
        f"with probability at most {BETA:g}",
        f"{found:.4f}, exactly",
        found <= BETA,
    )


def judge_tight(found: float) -> Finding:
    """The bound cannot be much smaller: at nine tenths of it the failure is more than β."""
    return Finding(
        "the same for k = 1,000 at nine tenths of the bound", f"more than {BETA:g}", f"{found:.4f}", found > BETA
    )


def run() -> Outcome:
    """Losses of few answers, failures of many."""
    findings = [judge_loss(queries, loss(queries, queries / EPSILON)) for queries in (1, 2, 6)]
    findings += [judge_failure(k, failure(k, theorem(k), k / EPSILON)) for k in QUERIES]
    findings.append(judge_tight(failure(1000, 0.9 * theorem(1000), 1000 / EPSILON)))
    ks = [round(10 ** (step / 4)) for step in range(17)]
    exact = [(k, laplace(epsilon=EPSILON, sensitivity=k).error(1 - BETA, joint=k) / ROWS) for k in ks]
    figure = plot(
        "The largest error of k answers, n = 1,000",
        [
            Line("the theorem", [(k, k * log(k / BETA) / float(EPSILON) / ROWS) for k in ks], "second"),
            Line("exact, 95 %", exact, "ours"),
            Line("all rows", [(ks[0], 1.0), (ks[-1], 1.0)], "cap"),
        ],
        x="number of queries k",
        y="error",
        log_x=True,
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="many-laplace-answers",
    source="003 Thm. 2",
    title="k counts with Laplace noise",
    statement="Answering k counting queries with Lap(k/εn) each is (ε, 0)-DP, and with probability 1 − β all answers "
    "are within k ln(k/β)/(εn).",
    run=run,
)
