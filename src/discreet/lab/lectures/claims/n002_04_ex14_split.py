"""k answers on one budget have k times the noise: 002 Exercise 1.4."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.accounting import Repeat, epsilon
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import moments
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism


def run() -> Outcome:
    """The noise of one of k answers beside that of one alone."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """By what factor the noise grows, and what all k cost."""
    found = []
    alone = _deviation(make(epsilon=Fraction(1, 10), sensitivity=1))
    for k in (2, 5, 20):
        each = make(epsilon=Fraction(1, 10) / k, sensitivity=1)
        factor, price = _deviation(each) / alone, float(epsilon(Repeat(each.event, k), delta=0, by="pure"))
        found.append(
            Finding(
                f"noise of one of {k} answers beside one alone, ε = 0.1 in all",
                f"times {k}",
                f"times {factor:.4f}; all together cost ε = {price:g}",
                # Discrete noise is a little below √2 times its scale, the less the larger it is.
                k <= factor < k * 1.001 and abs(price - 0.1) < 1e-12,
            )
        )
    return tuple(found)


def _deviation(mechanism: Mechanism[Any]) -> float:
    return moments(mechanism.law([0]), lambda outcome: outcome[0])[1]


CLAIM = Claim(
    name="split-budget",
    source="002 Ex. 1.4",
    title="Sharing a budget among k answers multiplies their noise by k",
    statement="k executions of the Laplace mechanism with ε/k each: the noise grows by the factor k.",
    run=run,
)
