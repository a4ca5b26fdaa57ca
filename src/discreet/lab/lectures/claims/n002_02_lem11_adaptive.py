"""The second question depends on the first answer: 002 scenario 2 and Lemma 1.1."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, equals, largest, loss, then
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Law, Mechanism
from discreet.schema.unit import Unit
from discreet.verify import are_neighbors, tables

FIRST, SECOND = Fraction(1, 2), Fraction(1, 3)
# Rows in four cells: diabetes and high blood pressure, each yes or no; a fifth cell is heart disease alone.
EVERY = [table for table in tables(5, 3) if sum(table) == 3]


def run() -> Outcome:
    """Scenario 2 in full on all tables of three patients."""
    return Outcome(findings(), note=NOTE)


NOTE = """A₁ releases the numbers of diabetics and of people with high blood pressure. If both noisy counts are at least
2, A₂ releases how many have both; otherwise, how many have heart disease. Which question was asked is itself public."""


def findings(second: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The largest loss over all pairs of neighbours, of each stage and of both together."""
    unit = Unit(neighbors="replace_one")
    pairs = [pair for pair in combinations(EVERY, 2) if are_neighbors(*pair, unit)]
    first = {table: first_law(table) for table in EVERY}
    whole = {table: then(first[table], lambda outcome, t=table: second_law(second, outcome, t)) for table in EVERY}  # type: ignore[misc]
    alone = largest(loss(first[one], first[other]) for one, other in pairs)
    both = largest(loss(whole[one], whole[other]) for one, other in pairs)
    fixed = largest(
        loss(second_law(second, outcome, one), second_law(second, outcome, other))
        for one, other in pairs
        for outcome in ((0, 0), (2, 2))
    )
    return (
        Finding(f"loss of A₁ over {len(pairs)} pairs", "ε₁ = 1/2", f"{alone.upper:.9g}, exactly", equals(alone, 0.5)),
        Finding("loss of A₂, for each answer of A₁", "ε₂ = 1/3", f"{fixed.upper:.9g}, exactly", at_most(fixed, 1 / 3)),
        Finding(
            "loss of (a₁, a₂), the second question chosen by the first answer",
            "at most ε₁ + ε₂ = 0.833333333",
            f"{both.upper:.9g}, exactly, over {len(whole[EVERY[0]].probabilities)} transcripts",
            at_most(both, 5 / 6) and both.lower > alone.upper,
        ),
    )


def counts(table: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Diabetics, people with high blood pressure, with both, and with heart disease."""
    _, diabetic, pressure, both, heart = table
    return diabetic + both, pressure + both, both, heart


def first_law(table: tuple[int, ...]) -> Law:
    """Two counts; a patient may change both."""
    mechanism = laplace(epsilon=FIRST, sensitivity=2)
    return mechanism.law(counts(table)[:2], beside=[(0, 0), (3, 3)])


def second_law(make: Callable[..., Mechanism[Any]], outcome: tuple[int, ...], table: tuple[int, ...]) -> Law:
    """The count that the first answer makes interesting."""
    value = counts(table)[2 if min(outcome) >= 2 else 3]
    return make(epsilon=SECOND, sensitivity=1).law([value], beside=[[0], [3]])


CLAIM = Claim(
    name="adaptive-composition",
    source="002 Lemma 1.1",
    title="Questions may depend on earlier answers",
    statement="If A₁ is ε₁-DP and A₂(a₁, ·) is ε₂-DP for every a₁, then (a₁, a₂) with a₁ = A₁(x), a₂ = A₂(a₁, x) is "
    "(ε₁ + ε₂)-DP.",
    run=run,
)
