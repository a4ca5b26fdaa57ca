"""The Laplace mechanism is ε-DP, and no smaller ε is true: 000 Proposition 8."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import verify
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.schema.unit import Unit


def run() -> Outcome:
    """A counting query over all neighbouring tables of up to five rows."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The exact loss for some epsilons."""
    found = []
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        verdict = verify.check(
            lambda moves, e=epsilon: make(epsilon=e, sensitivity=moves),  # type: ignore[misc]
            [[1, 0]],
            Unit(neighbors="replace_one"),
            rows=5,
        )
        low, high = verdict.exact
        found.append(
            Finding(
                f"loss of a count with noise Lap(1/ε), ε = {float(epsilon):g}",
                f"{float(epsilon):g}",
                f"{high:.9g}, exactly, over {verdict.pairs} pairs",
                high <= epsilon * (1 + 2**-40) and low >= epsilon * (1 - 2**-40),
            )
        )
    return tuple(found)


CLAIM = Claim(
    name="laplace-privacy",
    source="000 Prop. 8",
    title="The Laplace mechanism is private",
    statement="Answering a counting query with q(D) + Lap(1/(εn)) is ε-DP.",
    run=run,
)
