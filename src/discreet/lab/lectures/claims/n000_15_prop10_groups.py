"""k people together have kε, and no less: 000 Proposition 10."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals, loss
from discreet.mechanism import laplace, randomized_response
from discreet.mechanism.protocol import Mechanism


def run() -> Outcome:
    """Tables that differ in k rows, for a count and for randomized response."""
    return Outcome(findings())


def findings(count: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The exact loss between tables of six people that differ in k of them."""
    epsilon = Fraction(1, 4)
    noisy, response = count(epsilon=epsilon, sensitivity=1), randomized_response(epsilon=epsilon)
    found = []
    for people in (1, 2, 3, 6):
        one, other = [0] * 6, [1] * people + [0] * (6 - people)
        counts = loss(noisy.law([sum(one)], beside=[[sum(other)]]), noisy.law([sum(other)], beside=[[sum(one)]]))
        reports = loss(response.law(one), response.law(other))
        found.append(
            Finding(
                f"loss between tables that differ in {people} of 6 rows, ε = 0.25",
                f"kε = {people * float(epsilon):g}",
                f"Laplace {counts.upper:.9g}, randomized response {reports.upper:.9g}, exactly",
                equals(counts, people * float(epsilon)) and equals(reports, people * float(epsilon)),
            )
        )
    return tuple(found)


CLAIM = Claim(
    name="groups",
    source="000 Prop. 10",
    title="A group of k has kε",
    statement="If D and D′ differ in at most k rows and M is ε-DP, then Pr[M(D) ∈ S] ≤ e^{kε} Pr[M(D′) ∈ S]. "
    "Two mechanisms reach it.",
    run=run,
)
