"""Fixed questions generalize; an adaptive analyst overfits after about n of them: 000 §6."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.lab.lectures.chance import FALSE_ALARM
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers, normals
from discreet.report.plot import Line, plot

ROWS = 1000
COUNTS = (30, 100, 300, 1000, 3000)
# The scale of the noise of the answers, as a fraction of the rows: much more than 1/√n.
SIGMA = 0.1


def run() -> Outcome:
    """An analyst asks k counts, and then the one question that they make look best."""
    exact = [(float(k), adaptive_gap(k)) for k in COUNTS]
    hidden = [(float(k), adaptive_gap(k, sigma=SIGMA)) for k in COUNTS]
    lines = [
        Line("exact answers", exact, "third", dots=True),
        Line("answers with noise", hidden, "ours", dots=True),
        Line("fixed questions: bound", [(float(k), fixed_bound(k)) for k in COUNTS], "cap"),
    ]
    title = "The error of the last question against the population, over the number of questions before it"
    figure = plot(title, lines, x="questions k (n = 1,000 rows)", y="sample − population", log_x=True, floor=0.0)
    return Outcome(findings(), figure, NOTE)


NOTE = """Every row has k random bits and a random label. The analyst asks how often each bit agrees with the label, and
then how often the majority of all bits does, each turned the way its answer was above or below one half. In the
population every one of these fractions is exactly one half."""


def findings(sigma: float = 0.0) -> tuple[Finding, ...]:
    """Fixed questions beside an adaptive one; `sigma`, for a test, is noise that should not be there."""
    bits, labels = _sample(1000)
    fixed = float(np.abs((bits == labels[:, None]).mean(axis=0) - 0.5).max())
    limit = fixed_bound(1000)
    found = [
        Finding(
            f"largest error of 1,000 fixed questions, n = {ROWS:,}",
            f"at most √(ln(2k/β)/2n) = {limit:.3f}, β = 10⁻⁷",
            f"{fixed:.3f}",
            fixed <= limit,
        )
    ]
    for k in (1000, 3000):
        gap = adaptive_gap(k, sigma=sigma)
        found.append(
            Finding(
                f"error of the question after k = {k:,} adaptive ones, exact answers",
                f"far more than any fixed question: above {limit:.3f}",
                f"{gap:.3f}: the sample says {0.5 + gap:.1%}, the truth is 50 %",
                gap > limit,
            )
        )
    return tuple(found)


def adaptive_gap(k: int, *, sigma: float = 0.0) -> float:
    """By how much the sample flatters the analyst's last question."""
    bits, labels = _sample(k)
    answers = (bits == labels[:, None]).mean(axis=0)
    if sigma:
        answers = answers + sigma * normals(k)
    signs = np.where(answers >= 0.5, 1, -1)
    votes = (2 * bits.astype(np.int64) - 1) @ signs
    ties = np.asarray(noise.uniform_below(2, size=ROWS), dtype=np.int64)
    guess = np.where(votes == 0, ties, votes > 0)
    return float((guess == labels).mean()) - 0.5


def fixed_bound(k: int) -> float:
    """What no error of k fixed questions exceeds, but for the false alarm."""
    return sqrt(log(2 * k / FALSE_ALARM) / (2 * ROWS))


def _sample(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return integers(2, ROWS * k).reshape(ROWS, k), integers(2, ROWS)


CLAIM = Claim(
    name="false-discovery",
    source="000 §6",
    title="An adaptive analyst overfits after about n questions",
    statement="k questions fixed in advance are all within α of the population if n ≥ O(log k/α²). If each may depend "
    "on the answers before, about n exact answers are enough to find a question that fails to generalize.",
    run=run,
)
