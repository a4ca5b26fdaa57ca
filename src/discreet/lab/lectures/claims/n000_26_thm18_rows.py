"""How many rows k adaptive questions need: 000 Theorem 18, computed from the bounds."""

from fractions import Fraction
from math import expm1, log, sqrt

from discreet.accounting.filter import gaussian_gate
from discreet.cache import memoize
from discreet.errors import BadParameter
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.pmw_design import Terms
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.report.plot import Line, plot

FAILURE = 0.05


def run() -> Outcome:
    """The rows that the textbook session and the transfer theorem ask for together."""
    alphas = (0.2, 0.1, 0.05)
    needed = [(alpha, rows_needed(alpha, 1000, 2**8)) for alpha in alphas]
    shape = [(alpha, needed[-1][1] * (alphas[-1] / alpha) ** 3) for alpha in alphas]
    lines = [Line("rows needed", sorted(needed), "ours", dots=True), Line("α⁻³", sorted(shape), "cap")]
    title = "Rows that 1,000 adaptive questions need, over the error on the population"
    return Outcome(findings(), plot(title, lines, x="error α", y="rows n", log_x=True, log_y=True), NOTE)


NOTE = """Half of the error goes to the session (ε = α/4, with the notes' constants written out), the rest to the
transfer theorem, with δ far below the failure. Logarithms of δ and of the failure are in the constants, so the powers
are met nearly, not exactly."""


def findings() -> tuple[Finding, ...]:
    """The power of each quantity, from the rows needed at two values of it."""
    start, order = rows_needed(0.1, 1000, 2**8), log(1000) * sqrt(log(2**8)) / 0.1**3
    alpha = log(rows_needed(0.05, 1000, 2**8) / start) / log(2)
    steps = [rows_needed(0.1, 10**power, 2**8) for power in (6, 9, 12)]
    straight = (steps[2] - steps[1]) / (steps[1] - steps[0])
    cells = log(rows_needed(0.1, 1000, 2**32) / start) / log(4)
    return (
        Finding(
            "rows for α = 0.1, k = 1,000, N = 256",
            f"ln k·√(ln N)/α³ = {order:,.0f}, times a constant",
            f"{start:.3g}: the constant of the textbook is {start / order:,.0f}",
            start > order,
        ),
        Finding("power of 1/α", "3", f"{alpha:.2f}", 2.7 < alpha < 3.3),
        Finding(
            "more rows from k = 10⁹ to 10¹², beside from 10⁶ to 10⁹",
            "as many: they grow with ln k",
            f"{straight:.2f} times as many",
            0.9 < straight < 1.1,
        ),
        Finding("power of ln N", "1/2", f"{cells:.2f}", 0.4 < cells < 0.65),
    )


@memoize(64)
def rows_needed(alpha: float, queries: int, cells: int) -> float:
    """The fewest rows at which error and transfer together are below α, to 4 in 1,000."""
    low, high = 6.0, 11.0
    while high - low > 0.0015:
        middle = (low + high) / 2
        low, high = (low, middle) if _enough(int(10**middle), alpha, queries, cells) else (middle, high)
    return float(10.0**high)


def _enough(rows: int, alpha: float, queries: int, cells: int) -> bool:
    """Whether all answers are within α of the population: [JLNRSS20, Thm. 3.5], c = α/8 and d = α/16."""
    c, d = alpha / 8, alpha / 16
    delta = Fraction(str(float(f"{d * FAILURE / 2:.3g}")))
    price = Fraction(str(alpha)) / 4
    terms = Terms(gaussian_gate(price, delta), queries, c * FAILURE / 2, 1, tells_rows=False)
    try:
        error = textbook("bun", terms, cells=cells, rows=rows).error / rows
    except BadParameter:
        return False
    return error + expm1(float(price)) + c + 2 * d <= alpha


CLAIM = Claim(
    name="rows-for-adaptive-questions",
    source="000 Thm. 18",
    title="k adaptive questions need log k · √(log |X|)/α³ rows",
    statement="Private multiplicative weights answers k adaptive queries α-accurately on the population as soon as "
    "n ≳ log k · √(log |X|)/α³.",
    run=run,
)
