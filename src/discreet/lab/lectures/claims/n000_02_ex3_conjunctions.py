"""k-way conjunctions, as they are defined: 000 Example 3."""

from itertools import combinations
from math import comb

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers
from discreet.model import Rows
from discreet.query.workload import monotone_conjunctions
from discreet.schema import Boolean, Domain

COLUMNS, PEOPLE = 8, 500


def run() -> Outcome:
    """Ask all conjunctions of every width of a random table, and count by the definition."""
    domain = Domain({f"x{place}": Boolean() for place in range(COLUMNS)})
    table = integers(2, COLUMNS * PEOPLE).reshape(COLUMNS, PEOPLE)
    rows = Rows(domain, dict(zip(domain, table, strict=True)))
    answers = {
        k: sorted(rows.answer(query) for query in monotone_conjunctions(domain, k)) for k in range(1, COLUMNS + 1)
    }
    return Outcome(findings(answers, table))


def findings(
    answers: dict[int, list[float]], table: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"
) -> tuple[Finding, ...]:
    """For some widths, the answers beside the definition."""
    found = []
    for k in (1, 2, 3, COLUMNS):
        defined = sorted(float(table[list(chosen)].all(axis=0).sum()) for chosen in combinations(range(COLUMNS), k))
        alike = sum(one == other for one, other in zip(answers[k], defined, strict=False))
        found.append(
            Finding(
                f"conjunctions of {k} of {COLUMNS} columns",
                f"{comb(COLUMNS, k)}, each the count of rows with all of them 1",
                f"{len(answers[k])}, of them {alike} equal",
                alike == comb(COLUMNS, k) == len(answers[k]),
            )
        )
    return tuple(found)


CLAIM = Claim(
    name="conjunctions",
    source="000 Ex. 3",
    title="k-way conjunctions count rows with all of k bits set",
    statement="For S ⊆ [d] let q_S(x) = ∧_{j∈S} x_j. There are C(d, k) conjunctions of exactly k columns.",
    run=run,
)
