"""BLR is accurate: the exact probability of a large error, over all tables that it may choose, beside the theorem."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, inf, log10

import numpy as np
from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.small_db import promised_error, sample_size
from discreet.mechanism import imbalance_effects, small_table
from discreet.numeric import precision
from discreet.report.plot import Line, plot
from discreet.types import Numbers

EPSILON, BETA, BITS = Fraction(1), 0.05, 192


@dataclass(frozen=True, slots=True)
class Case:
    """A histogram and the counts that are asked of it: `effects[i][x]` says whether query i counts cell x."""

    counts: Sequence[int]
    effects: Sequence[Sequence[int]]

    @property
    def rows(self) -> int:
        """The number of people."""
        return sum(self.counts)

    @property
    def alpha(self) -> float:
        """The error of the theorem."""
        return promised_error(
            queries=len(self.effects), cells=len(self.counts), rows=self.rows, epsilon=EPSILON, beta=BETA
        )

    @property
    def few(self) -> int:
        """The rows of the theorem's tables, 32 ln k/α²."""
        return sample_size(len(self.effects), self.alpha / 2, notes="003")


TWO = [[1, 0], [0, 1]]
CASES = (
    Case((3_000, 7_000), TWO),
    Case((99_990, 10), TWO),
    Case((1_230, 1_110, 660), [[1, 0, 0], [0, 1, 0], [1, 1, 0]]),
)


def errors(case: Case, epsilon: Fraction = EPSILON) -> tuple[Numbers, list[arb]]:
    """The largest error of each table of m rows, and the exact probability with which it is chosen."""
    weights, counts = np.array(case.effects), np.array(case.counts)
    choose = small_table(weights, epsilon=epsilon, sensitivity=case.few, rows=case.few)
    law = choose.law((imbalance_effects(weights, rows=case.few) @ counts).tolist())
    tables = np.array(list(law.probabilities))
    chosen = np.stack([(tables == cell).sum(axis=1) for cell in range(counts.size)])
    off = np.abs(weights @ chosen / case.few - (weights @ counts / case.rows)[:, None]).max(axis=0)
    return off, list(law.probabilities.values())


def power_of_ten(chances: Iterable[arb]) -> float:
    """log10 of the sum, rounded up: most of these chances are smaller than any double."""
    with precision(BITS):
        total = sum(chances, arb(0))
        return float((total.log() / arb(10).log()).upper()) if total > 0 else -inf


def judge(case: Case, off: Numbers, chances: Sequence[arb]) -> Finding:
    """The probability of an error above α is at most β."""
    failure = power_of_ten(chance for chance, bad in zip(chances, off > case.alpha, strict=True) if bad)
    mean = float(off @ np.array([float(chance.mid()) for chance in chances]))
    many = comb(len(case.counts) + case.few - 1, case.few)
    return Finding(
        f"n = {case.rows:,}, N = {len(case.counts)}, k = {len(case.effects)}: {many:,} tables of m = {case.few} rows; "
        f"the error is above {case.alpha:.3f}",
        f"with probability at most {BETA:g}",
        f"10^{failure:.1f}; the mean error is {mean:.4f}",
        failure <= log10(BETA),
    )


def judge_exists(case: Case, off: Numbers) -> Finding:
    """Lemma 3 at α/2: one of the tables is good."""
    best = float(off.min())
    return Finding(
        f"the best table of m = {case.few} rows",
        f"within α/2 = {case.alpha / 2:.3f}",
        f"{best:.5f}",
        best <= case.alpha / 2,
    )


def run() -> Outcome:
    """Exact laws over all tables, for domains where they can be listed."""
    found = [(case, *errors(case)) for case in CASES]
    findings = [judge(*each) for each in found] + [judge_exists(case, off) for case, off, _ in found[-1:]]
    case, off, chances = found[0]
    order = np.argsort(off)
    doubles = np.array([float(chance.mid()) for chance in chances])
    tail = np.minimum(1.0, np.cumsum(doubles[order][::-1])[::-1])
    shown = [(float(x), float(y)) for x, y in zip(off[order], tail, strict=True) if y > 1e-30]
    figure = plot(
        "Pr[error ≥ x] of BLR, exactly, n = 10,000 and two cells",
        [
            Line("exact", shown, "ours"),
            Line(f"the theorem: {BETA:g} at α", [(case.alpha, 1e-30), (case.alpha, 1.0)], "cap"),
        ],
        x="largest error of the answers",
        y="probability",
        log_y=True,
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="blr-accuracy",
    source="003 Thm. 5",
    title="BLR is accurate",
    statement="With probability 1 − β the table that BLR chooses, of m = 32 ln k/α² rows, answers all k queries within "
    "α = (256 ln k ln |X|/(εn))^⅓ + 8 ln(1/β)/(εn).",
    run=run,
)
