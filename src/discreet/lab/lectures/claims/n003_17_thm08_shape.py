"""The errors of private multiplicative weights fall as n^−⅓ and n^−½, and a session keeps its promise."""

from math import log10
from tempfile import TemporaryDirectory

import numpy as np

from discreet.accounting import gaussian_gate
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers
from discreet.lab.textbook.pmw import PMW
from discreet.lab.textbook.pmw_design import Setting, Terms
from discreet.lab.textbook.pmw_lectures import textbook
from discreet.ledger import Budget, Ledger
from discreet.report.plot import Line, plot
from discreet.schema import Domain, Integers, Unit
from discreet.source.table import open as open_table

EPSILON, DELTA, QUESTIONS, CELLS = 1, 1e-9, 1000, 256
ROWS = (10**6, 10**7, 10**8, 10**9)
PEOPLE, VALUES, SURE = 500_000, 16, 1 - 1e-7


def promised(setting: Setting, rows: int) -> float:
    """The error that a theorem promises for this number of rows, as a fraction."""
    terms = Terms(gaussian_gate(EPSILON, DELTA), QUESTIONS, 0.05, 1, tells_rows=False)
    return textbook(setting, terms, cells=CELLS, rows=rows).error / rows


def powers(errors: dict[int, float]) -> list[float]:
    """The p of error ∝ n^−p, from each power of ten to the next."""
    return [log10(errors[rows] / errors[10 * rows]) for rows in errors if 10 * rows in errors]


def judge_power(theorem: str, claimed: float, name: str, errors: dict[int, float]) -> Finding:
    """Closer with each power of ten, and in the end within a twentieth.

    Thm. 8 adds the error of the noise, which falls faster, to a threshold that falls as n^−⅓; Thm. 9 has a logarithm of
    the number of updates, which grows with n.
    """
    found = powers(errors)
    away = [abs(power - claimed) for power in found]
    return Finding(
        f"{theorem}: the power with which the error falls, n = 10⁶ to 10⁹",
        name,
        f"{', '.join(f'{power:.3f}' for power in found)}; the error is {errors[max(errors)]:.4f} at 10⁹",
        away == sorted(away, reverse=True) and away[-1] < 0.05,
    )


def session() -> tuple[int, int, int]:
    """A session of Theorem 9 on made-up people: promised error in rows, the largest one seen, and its updates."""
    ages = np.minimum(integers(VALUES, PEOPLE), integers(VALUES, PEOPLE)) // 4
    domain = Domain({"age": Integers(0, VALUES - 1)})
    table = open_table({"age": ages}, domain=domain, unit=Unit(neighbors="replace_one"))
    largest = 0
    with TemporaryDirectory() as folder, Ledger(f"{folder}/budget.sqlite") as ledger:
        ledger.cap(Budget(epsilon=EPSILON, delta=DELTA), table="data")
        with PMW(table, ledger=ledger, epsilon=EPSILON, setting="root", queries=100, confidence=SURE) as weights:
            for low in range(0, VALUES, 3):
                for high in range(low, VALUES, 3):
                    answer = weights.ask(f"age >= {low} AND age <= {high}")
                    true = int(((ages >= low) & (ages <= high)).sum())
                    largest = max(largest, abs(int(answer.value) - true))
            return weights.error, largest, weights.design.updates - weights.updates_left


def judge_session(error: int, largest: int, updates: int) -> Finding:
    """All answers are within the promised error, but with probability 10⁻⁷."""
    return Finding(
        f"a session of {PEOPLE:,} made-up people, {updates} updates: the largest error",
        f"at most {error:,} rows",
        f"{largest:,} rows",
        largest <= error,
    )


def run() -> Outcome:
    """The promises of both theorems over n, and one session."""
    cube, root = ({rows: promised(setting, rows) for rows in ROWS} for setting in ("cube", "root"))
    figure = plot(
        "What each theorem promises, all constants written out",
        [
            Line("Thm. 8, n^−⅓", list(cube.items()), "second"),
            Line("Thm. 9, n^−½", list(root.items()), "ours"),
        ],
        x="people n",
        y="error of all answers",
        log_x=True,
        log_y=True,
    )
    findings = (
        judge_power("Theorem 8", 1 / 3, "n^−⅓", cube),
        judge_power("Theorem 9", 1 / 2, "n^−½", root),
        judge_session(*session()),
    )
    return Outcome(findings, figure, f"ε = {EPSILON}, δ = {DELTA:g}, {QUESTIONS:,} questions, {CELLS} cells.")


CLAIM = Claim(
    name="pmw-accuracy",
    source="003 Thm. 8, 9",
    title="How the error of private weights falls",
    statement="All k answers are within O((ln|X|)^⅓ ln(1/δ) ln(k/β)/(ε n^⅓)), and with better parameters within "
    "O((ln|X|)^¼ ln(1/δ) ln(k/β)/(ε n^½)).",
    run=run,
)
