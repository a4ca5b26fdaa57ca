"""SmallDB is ε-DP: its exact law over all tables of m rows, for all neighbours of a small domain."""

from fractions import Fraction
from itertools import islice

import numpy as np

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import imbalance_effects, small_table
from discreet.schema.unit import Unit
from discreet.verify import Interval

EPSILON, FEW, MOST = Fraction(1), 3, 200
DOMAINS = {
    "2 cells, 2 points": ([[1, 0], [0, 1]], 6),
    "3 cells, 3 points": ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], 3),
    "4 cells, the conjunctions of 2 columns": ([[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]], 2),
}


def measure(effects: list[list[int]], rows: int, unit: Unit, epsilon: Fraction) -> Interval:
    """The largest loss over all neighbouring tables with at most `rows` rows."""
    reads = imbalance_effects(np.array(effects), rows=FEW)
    choose = small_table(np.array(effects), epsilon=epsilon, sensitivity=matrix_sensitivity(reads, unit).linf, rows=FEW)
    neighbors = islice(verify.neighboring_tables(len(effects[0]), rows, unit), MOST)
    return worst_loss(choose, [((reads @ one).tolist(), (reads @ other).tolist()) for one, other in neighbors])


def judge(what: str, found: Interval) -> Finding:
    """At most ε."""
    return Finding(
        f"{what}: largest loss", f"at most {EPSILON}", f"{shown(found)}, exactly", at_most(found, float(EPSILON))
    )


def run() -> Outcome:
    """Three small domains, for exchanged rows; one for rows that come or go."""
    replaced, added = Unit(neighbors="replace_one"), Unit()
    findings = [judge(name, measure(*domain, replaced, EPSILON)) for name, domain in DOMAINS.items()]
    findings.append(judge("3 cells, rows added or removed", measure(*DOMAINS["3 cells, 3 points"], added, EPSILON)))
    return Outcome(tuple(findings))


CLAIM = Claim(
    name="smalldb-privacy",
    source="001 Alg. 5, privacy",
    title="SmallDB is private",
    statement="SmallDB(D, Q, ε, α), the exponential mechanism over all tables of m = ln|Q|/α² rows with the score "
    "−max_q |q(D) − q(D′)|, is ε-DP.",
    run=run,
)
