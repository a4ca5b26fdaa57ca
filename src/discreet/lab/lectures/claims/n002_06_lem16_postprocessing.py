"""Releasing part of the output, or a function of it: 002 Lemma 1.6, with every function enumerated."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from operator import itemgetter
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import ROUNDING, loss, mapped, then
from discreet.mechanism import randomized_response
from discreet.mechanism.protocol import Law


def run() -> Outcome:
    """A two-stage algorithm with eight outcomes, and all functions from them into three letters."""
    return Outcome(findings())


def findings(second: Callable[[int, int], Law] | None = None) -> tuple[Finding, ...]:
    """The largest loss over all functions of the output, and of each part of it alone."""
    one, other = (pair_law(mine, second) for mine in (0, 1))
    before = loss(one, other)
    outcomes = list(dict.fromkeys([*one.probabilities, *other.probabilities]))
    after = []
    # Renaming the letters changes nothing, so the first outcome may be A.
    for images in product("ABC", repeat=len(outcomes) - 1):
        image = dict(zip(outcomes, ("A", *images), strict=True))
        after.append(loss(mapped(one, image.__getitem__), mapped(other, image.__getitem__)).upper)
    parts = [loss(mapped(one, itemgetter(at)), mapped(other, itemgetter(at))) for at in (0, 1)]
    most = max(after)
    return (
        Finding(
            "loss of A, which releases a₁ and a₂", "1.5", f"{before.upper:.9g}, exactly", abs(before.upper - 1.5) < 1e-9
        ),
        Finding(
            f"the largest over all {len(after):,} functions B(A(·)) into three letters",
            "at most 1.5",
            f"{most:.9g}, exactly",
            most <= before.upper * (1 + ROUNDING),
        ),
        Finding("a₁ alone", "at most 1.5", f"{parts[0].upper:.9g}, exactly", parts[0].upper <= 1.5),
        Finding("a₂ alone", "at most 1.5", f"{parts[1].upper:.9g}, exactly", parts[1].upper <= 1.5),
    )


def pair_law(mine: int, second: Callable[[int, int], Law] | None = None) -> Law:
    """A report of my bit; then, if it was 1, a better one of four answers, and otherwise one of two."""

    def chosen(first: Any) -> Law:
        if second is not None:
            return second(first[0], mine)
        return randomized_response(epsilon=Fraction(1, 2), categories=4).law([mine + 2 * first[0]])

    return then(randomized_response(epsilon=1).law([mine]), chosen)


CLAIM = Claim(
    name="closure-under-post-processing",
    source="002 Lemma 1.6",
    title="Releasing part of an output, or any function of it, is never worse",
    statement="If A is ε-DP then so is B(A(·)) for every B. (In the notes' equation (2) the last x should be x′.)",
    run=run,
)
