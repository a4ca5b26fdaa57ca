"""Randomized response is ln(p/(1 − p))-differentially private, and no smaller epsilon is true."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import verify
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import randomized_response
from discreet.mechanism.protocol import Mechanism


def run() -> Outcome:
    """The exact loss over all pairs of neighbouring tables of three rows."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = randomized_response) -> tuple[Finding, ...]:
    """For some epsilons, the loss that is true beside the one that is claimed."""
    found = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        verdict = verify.check_pairs(make(epsilon=epsilon), verify.neighboring_rows(2, 3))
        found.append(
            Finding(
                f"loss at p = e^ε/(1 + e^ε), ε = {float(epsilon):g}",
                f"{float(epsilon):g}",
                f"{verdict.exact.upper:.9g}, exactly, over {verdict.pairs} pairs",
                verdict.holds and verdict.tight,
            )
        )
    return tuple(found)


CLAIM = Claim(
    name="randomized-response-privacy",
    source="000 Prop. 7",
    title="Randomized response is private",
    statement="Reporting a bit truthfully with probability p > 1/2 and flipped otherwise is ln(p/(1 − p))-DP.",
    run=run,
)
