"""All 2^d conjunctions: Laplace noise needs some 2^d people, BLR some d²; where the two cross."""

from fractions import Fraction
from math import log

import numpy as np

from discreet import noise
from discreet.mechanism import imbalance_effects, small_table
from discreet.privacy.sensitivity import Sensitivity
from discreet.release.smalldb import promised_error
from discreet.reproduce.claim import Claim, Finding, Outcome
from discreet.reproduce.conjunctions import answers_to_conjunctions, conjunction_effects, histogram_of_classes
from discreet.reproduce.curves import Curve, chart_of
from discreet.source.exact import Exact

EPSILON, BETA, ALPHA = Fraction(1), 0.05, 0.5
COLUMNS = range(2, 41)
SMALL, ROWS, FEW, TRIALS = 2, 500, 24, 5


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


def measured(scale: Fraction) -> tuple[float, float]:
    """The largest error of all four conjunctions of two columns, for a few hundred people: Laplace noise and BLR."""
    counts = histogram_of_classes(SMALL, ROWS)
    true = answers_to_conjunctions(counts)
    effects = conjunction_effects(SMALL)
    choose = small_table(effects, epsilon=EPSILON, sensitivity=FEW, rows=FEW)
    moves = Sensitivity(l1=Fraction(FEW), l2_squared=Fraction(FEW), linf=Fraction(FEW))
    exact = Exact(imbalance_effects(effects, rows=FEW) @ counts, moves)
    noisy, small = [], []
    for _ in range(TRIALS):
        drawn = np.asarray(noise.discrete_laplace(scale, size=true.size))
        noisy.append(float(np.abs(drawn).max()) / ROWS)
        chosen = np.bincount(choose.release(exact), minlength=counts.size) / FEW
        small.append(float(np.abs(answers_to_conjunctions(chosen) - true / ROWS).max()))
    return float(np.median(noisy)), float(np.median(small))


def judge_small(noisy: float, small: float) -> Finding:
    """Where BLR can be run, both are better than their bounds say, which ask for far more people."""
    return Finding(
        f"median error on all 4 conjunctions of {SMALL} columns, n = {ROWS}",
        f"below {ALPHA:g}, with fewer people than either bound asks for from d = 8 on",
        f"Laplace {noisy:.3f}, BLR (tables of {FEW} rows) {small:.3f}",
        noisy < ALPHA and small < ALPHA,
    )


def run() -> Outcome:
    """Both bounds for 2 to 40 columns, and two columns in fact."""
    laplace = {d: laplace_needs(d) for d in COLUMNS}
    blr = {d: blr_needs(d) for d in COLUMNS}
    scale = 2**SMALL / EPSILON
    findings = [*judge(laplace, blr), judge_small(*measured(scale))]
    shown = range(2, 25)
    figure = chart_of(
        "People needed to answer all 2^d conjunctions within a half",
        [
            Curve("Laplace, Thm. 2", [(d, laplace[d]) for d in shown], "third"),
            Curve("BLR, Thm. 5", [(d, blr[d]) for d in shown], "ours"),
        ],
        across="columns d",
        up="people n",
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
