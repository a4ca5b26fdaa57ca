"""k rows changed at once: 002 Lemma 1.7, over all pairs of tables."""

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals, largest, loss
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.verify.divergence import Interval

PEOPLE, EPSILON = 4, Fraction(1, 3)


def run() -> Outcome:
    """All pairs of tables of four people with a bit each, by how many rows they differ in."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The largest loss for each distance."""
    count = make(epsilon=EPSILON, sensitivity=1)
    law = {total: count.law([total], beside=[[0], [PEOPLE]]) for total in range(PEOPLE + 1)}
    between = {(a, b): loss(law[a], law[b]) for a, b in product(law, repeat=2)}
    found: dict[int, list[Interval]] = defaultdict(list)
    for one, other in product(product((0, 1), repeat=PEOPLE), repeat=2):
        apart = sum(a != b for a, b in zip(one, other, strict=True))
        found[apart].append(between[sum(one), sum(other)])
    return tuple(
        Finding(
            f"largest loss over all {len(found[k]):,} pairs that differ in {k} of {PEOPLE} rows",
            f"kε = {k}/3 = {k / 3:.6f}",
            f"{largest(found[k]).upper:.6f}, exactly",
            equals(largest(found[k]), k / 3),
        )
        for k in range(1, PEOPLE + 1)
    )


CLAIM = Claim(
    name="group-privacy",
    source="002 Lemma 1.7",
    title="A family of k has kε, over all pairs of tables",
    statement="If x and x′ differ in k rows and A is ε-DP, then Pr[A(x) ∈ E] ≤ e^{kε} Pr[A(x′) ∈ E] for all events E.",
    run=run,
)
