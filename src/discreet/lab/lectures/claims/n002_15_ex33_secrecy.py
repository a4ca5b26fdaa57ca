"""Name and shame keeps δ-additive secrecy: 002 Exercise 3.3 (i)."""

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import Any

from discreet import verify
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.meaning import additive_secrecy
from discreet.mechanism import name_and_shame
from discreet.mechanism.protocol import Mechanism


def run() -> Outcome:
    """All neighbouring tables of one to four people with three values each."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = name_and_shame) -> tuple[Finding, ...]:
    """The exact additive difference, and that no epsilon holds."""
    found = []
    for delta in (Fraction(1, 1000), Fraction(1, 10)):
        for people in (1, 4):
            pairs = [pair for pair in verify.neighboring_rows(3, people) if sum(pair[0]) <= 3]
            measured = additive_secrecy(make(delta=delta), pairs)
            found.append(
                Finding(
                    f"largest Pr[A(x) ∈ E] − Pr[A(x′) ∈ E], δ = {float(delta):g}, {people} rows",
                    f"δ = {float(delta):g}",
                    f"{measured.upper:.9g}, exactly, over {len(pairs)} pairs",
                    abs(measured.upper / float(delta) - 1) < 1e-12,
                )
            )
    shame = make(delta=Fraction(1, 1000))
    loss = verify.epsilon(shame.law([0, 1]), shame.law([0, 0])).lower
    found.append(Finding("and its epsilon", "none is enough", f"{loss}", loss == inf))
    return tuple(found)


CLAIM = Claim(
    name="name-and-shame-secrecy",
    source="002 Ex. 3.3 (i)",
    title="Publishing rows at random keeps additive secrecy",
    statement="Name and shame publishes each row in the clear with probability δ. It satisfies δ-additive secrecy, and "
    "ε-DP for no ε.",
    run=run,
)
