"""How many counts can be answered before the noise passes the sampling error: √n of them, or n."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, expm1, log, sqrt

import numpy as np

from discreet import noise
from discreet.lab.lectures.chance import often_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.claims.n001_01_many_counts import EPSILON, advanced, basic
from discreet.lab.random import normals
from discreet.report.plot import Line, plot

ROWS = (10**4, 10**6, 10**8)
PEOPLE, TRIALS = 10_000, 20_000
Scale = Callable[[int], Fraction]


def deviation(scale: Fraction) -> float:
    """The standard deviation of discrete Laplace noise, √(2a)/(1 − a) with a = e^(−1/scale)."""
    rate = float(1 / scale)
    return sqrt(2 * exp(-rate)) / -expm1(-rate)


def most(rows: int, scale: Scale) -> int:
    """The most counts whose noise has at most the standard deviation of a sample of n rows, √n/2."""
    low, high = 0, 4 * rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if deviation(scale(middle)) <= sqrt(rows) / 2 else (low, middle)
    return low


def judge(way: str, power: float, found: dict[int, int]) -> Finding:
    """k grows as n^power; the last step is the finest, and one question more or less is the grid."""
    first, last = list(found)[-2:]
    grown = log(found[last] / found[first]) / log(last / first)
    return Finding(
        f"counts before the noise passes the sampling error, {way}, n = 10⁴, 10⁶, 10⁸",
        f"of the order n^{power:g}",
        f"{', '.join(f'{k:,}' for k in found.values())}: n^{grown:.3f}",
        abs(grown - power) < 0.01,
    )


def compare(queries: int) -> int:
    """How often the noise of one of `queries` basic answers exceeds the sampling error of ten thousand people."""
    noisy = np.abs(np.asarray(noise.discrete_laplace(basic(queries), size=TRIALS)))
    # The number of heads of ten thousand coins, by the normal law to within a coin.
    sampled = np.abs(normals(TRIALS)) * sqrt(PEOPLE) / 2
    return int((noisy > sampled).sum())


def judge_drawn(at: int, larger: int, twice: int) -> Finding:
    """With four times as many questions the noise is the larger of the two far more often, with a quarter seldom."""
    seldom, often = TRIALS - larger, twice
    return Finding(
        f"noise larger than the sampling error, {at // 4} and {4 * at} counts of {PEOPLE:,} people, drawn",
        "less than a third of the time; more than two thirds",
        f"{larger / TRIALS:.1%}; {twice / TRIALS:.1%}",
        often_enough(seldom, TRIALS, 2 / 3) and often_enough(often, TRIALS, 2 / 3),
    )


def run() -> Outcome:
    """Where the two errors cross, for both compositions, and a draw on both sides of the crossing."""
    added = {rows: most(rows, basic) for rows in ROWS}
    composed = {rows: most(rows, advanced) for rows in ROWS}
    at = added[PEOPLE]
    drawn = judge_drawn(at, compare(at // 4), compare(4 * at))
    figure = plot(
        "Counts that can be asked before the noise passes the sampling error",
        [
            Line("basic: √n", list(added.items()), "third"),
            Line("advanced: n", list(composed.items()), "ours"),
        ],
        x="people n",
        y="counts",
        log_x=True,
        log_y=True,
    )
    note = f"ε = {EPSILON}, δ = 10⁻⁶. The constants: ε/√8 for basic composition, about ε²/(16 ln(1/δ)) for advanced."
    return Outcome((judge("basic", 0.5, added), judge("advanced", 1.0, composed), drawn), figure, note)


CLAIM = Claim(
    name="noise-and-sampling-error",
    source="001 Multiple queries",
    title="√n counts, or n",
    statement="With small error, no more than that of sampling, standard composition answers √n queries and advanced "
    "composition answers n.",
    run=run,
)
