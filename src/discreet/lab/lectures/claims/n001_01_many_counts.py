"""n counts with Laplace noise: an error of the order 1/ε by basic composition, of 1/(ε√n) by advanced composition."""

from collections.abc import Callable
from fractions import Fraction
from math import log, sqrt

from discreet.accounting import Laplace, Repeat, calibrate
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism.laplace import laplace_half_width
from discreet.report.plot import Line, plot

EPSILON, DELTA, CONFIDENCE = Fraction(1), Fraction(1, 10**6), 0.95
ROWS = (100, 10**3, 10**4, 10**5, 10**6)
Scale = Callable[[int], Fraction]


def basic(queries: int) -> Fraction:
    """The noise of each of `queries` counts that are ε-DP together, by basic composition."""
    return calibrate(lambda scale: Repeat(Laplace(scale, Fraction(1)), queries), epsilon=EPSILON, by="pure")


def advanced(queries: int) -> Fraction:
    """The same for (ε, δ), by the lectures' advanced composition."""
    return calibrate(
        lambda scale: Repeat(Laplace(scale, Fraction(1)), queries), epsilon=EPSILON, delta=DELTA, by="advanced"
    )


def errors(scale: Scale) -> dict[int, float]:
    """With n rows and n counts: what an answer is within, with 95 %, as a fraction of the rows. By the exact law."""
    return {rows: laplace_half_width(scale(rows), CONFIDENCE) / rows for rows in ROWS}


def judge_basic(found: dict[int, float]) -> Finding:
    """ln(1/β)/ε for every n: the scale is n/ε rows. A row more or less is the grid."""
    claimed = log(1 / (1 - CONFIDENCE)) / float(EPSILON)
    holds = all(abs(error - claimed) <= 1 / rows + 1e-6 for rows, error in found.items())
    shown = ", ".join(f"{error:.3f}" for error in found.values())
    return Finding("n counts, basic: error, n = 10² … 10⁶", f"ln(20)/ε = {claimed:.3f}, for every n", shown, holds)


def judge_advanced(found: dict[int, float]) -> Finding:
    """ln(1/β)/(ε₀ n), where n ε₀²/2 + ε₀√(2n ln(1/δ)) = ε: solved, 1/ε₀ = √n·(√(2L + 2ε) + √(2L))/(2ε)."""
    logs = log(1 / DELTA)
    constant = (sqrt(2 * logs + 2 * float(EPSILON)) + sqrt(2 * logs)) / (2 * float(EPSILON))
    claimed = log(1 / (1 - CONFIDENCE)) * constant
    holds = all(abs(error - claimed / sqrt(rows)) <= 1 / rows + 1e-6 for rows, error in found.items())
    shown = ", ".join(f"{error * sqrt(rows):.1f}" for rows, error in found.items())
    return Finding("n counts, advanced: error·√n", f"{claimed:.1f}, for every n", shown, holds)


def run() -> Outcome:
    """Errors of n answers from n rows, both ways, beside the sampling error."""
    added, composed = errors(basic), errors(advanced)
    sample = [(rows, 1.96 / (2 * sqrt(rows))) for rows in ROWS]
    figure = plot(
        "n counts of n people: error of an answer, with 95 %",
        [
            Line("basic composition", list(added.items()), "third"),
            Line("advanced composition", list(composed.items()), "ours"),
            Line("sampling error", sample, "cap"),
        ],
        x="people and questions n",
        y="error of a fraction",
        log_x=True,
        log_y=True,
    )
    note = "Not renormalized (as counts): n/ε, larger than the sampling error √n, and √n/ε, comparable to it."
    return Outcome((judge_basic(added), judge_advanced(composed)), figure, note)


CLAIM = Claim(
    name="n-counts",
    source="001 Composition",
    title="How much noise for n counts",
    statement="Answering n counting queries on n rows with Laplace noise has error O(1/ε) under ε-DP (each gets ε/n), "
    "and O(1/(ε√n)) under (ε, δ)-DP by advanced composition.",
    run=run,
)
