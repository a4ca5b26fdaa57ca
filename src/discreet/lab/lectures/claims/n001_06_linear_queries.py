"""A linear query averages a number between 0 and 1 over the rows, so that one row moves it by at most 1/n."""

from collections.abc import Sequence
from fractions import Fraction

from discreet import verify
from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, equals
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import laplace
from discreet.schema.unit import Unit
from discreet.verify import Interval

UNIT, ROWS, EPSILON = Unit(neighbors="replace_one"), 4, Fraction(1)
# Weights in tenths: whole numbers are summed exactly.
TENTHS = 10
QUERIES = {"a count": (0, TENTHS, 0), "all weights": (0, 3, TENTHS), "a narrow one": (4, 5, 7)}


def pairs(weights: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The sums of all neighbouring tables of four rows in three cells."""
    neighbors = verify.neighboring_tables(len(weights), ROWS, UNIT)
    full = [(one, other) for one, other in neighbors if sum(one) == sum(other) == ROWS]
    return [([_sum(weights, one)], [_sum(weights, other)]) for one, other in full]


def largest_move(weights: Sequence[int]) -> Fraction:
    """The most that the average moves, over all pairs."""
    return Fraction(max(abs(a[0] - b[0]) for a, b in pairs(weights)), TENTHS * ROWS)


def judge_move(name: str, found: Fraction, product: Fraction) -> Finding:
    """At most 1/n, and exactly what the product calibrates to."""
    return Finding(
        f"{name}, n = {ROWS}: the average moves by",
        f"at most {Fraction(1, ROWS)}",
        f"{found}",
        found == product <= Fraction(1, ROWS),
    )


def judge_loss(name: str, found: Interval, full: bool) -> Finding:
    """Laplace noise of 1/(εn) makes it ε-DP, with nothing to spare for a query with weights 0 and 1."""
    holds = equals(found, float(EPSILON)) if full else at_most(found, float(EPSILON))
    return Finding(f"{name} with noise Lap(1/(εn))", f"{'' if full else 'at most '}{EPSILON}", shown(found), holds)


def run() -> Outcome:
    """Three queries, all pairs of tables."""
    noisy = laplace(epsilon=EPSILON, sensitivity=TENTHS)
    findings = []
    for name, weights in QUERIES.items():
        product = matrix_sensitivity([list(weights)], UNIT).l1 / (TENTHS * ROWS)
        findings.append(judge_move(name, largest_move(weights), product))
        full = max(weights) - min(weights) == TENTHS
        findings.append(judge_loss(name, worst_loss(noisy, pairs(weights)), full))
    return Outcome(tuple(findings))


def _sum(weights: Sequence[int], table: Sequence[int]) -> int:
    return sum(weight * rows for weight, rows in zip(weights, table, strict=True))


CLAIM = Claim(
    name="linear-queries",
    source="001 Linear queries",
    title="Linear queries",
    statement="A linear query q(D) = (1/n) Σ q(dᵢ), with q : X → [0, 1], moves by at most 1/n if one row is replaced.",
    run=run,
)
