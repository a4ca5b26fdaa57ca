"""Counting queries and the histogram, as they are defined: 000 Definition 1 and Example 2."""

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers
from discreet.model import Rows
from discreet.query.workload import point_histogram
from discreet.schema import Boolean, Domain

COLUMNS, PEOPLE = 4, 1000


def run() -> Outcome:
    """Ask every point query of a random table, and count by the definition."""
    domain = Domain({f"x{place}": Boolean() for place in range(COLUMNS)})
    table = integers(2, COLUMNS * PEOPLE).reshape(COLUMNS, PEOPLE)
    rows = Rows(domain, dict(zip(domain, table, strict=True)))
    return Outcome(findings([rows.answer(query) / PEOPLE for query in point_histogram(domain)], table))


def findings(answers: list[float], table: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]") -> tuple[Finding, ...]:
    """The answers beside what the definition says of these rows, one column of the array for each row."""
    cells = 2 ** np.arange(COLUMNS)[::-1] @ table
    defined = [float(np.mean(cells == cell)) for cell in range(2**COLUMNS)]
    alike = sum(answer == right for answer, right in zip(answers, defined, strict=True))
    total = sum(answers)
    return (
        Finding("queries q_y, one for each y ∈ X = {0,1}⁴", f"{2**COLUMNS}", f"{len(answers)}", len(answers) == 16),
        Finding("of them equal to (1/n) Σ q(x_i)", "all", f"{alike}, exactly", alike == len(answers)),
        Finding("sum of the histogram", "1", f"{total:g}", abs(total - 1) < 1e-12),
    )


CLAIM = Claim(
    name="histogram",
    source="000 Ex. 2",
    title="A histogram is one counting query for each cell",
    statement="A counting query is q(D) = (1/n) Σ q(x_i) for a predicate q. The queries q_y(x) = [x = y], for all "
    "y ∈ X, are the histogram of D.",
    run=run,
)
