"""Nothing computed from a release costs more: 000 Proposition 9."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import ROUNDING, loss, mapped, randomly_mapped
from discreet.lab.random import integers
from discreet.mechanism import laplace, randomized_response
from discreet.mechanism.protocol import Law

MAPS = 300


def laws() -> tuple[Law, Law]:
    """Two reports and a count about neighbouring tables: 20 outcomes."""
    response, count = randomized_response(epsilon=Fraction(1, 2)), laplace(epsilon=Fraction(1, 2), sensitivity=1)
    sides = []
    for mine in (0, 1):
        reports, counts = response.law([mine, 1]), count.law([mine + 2], beside=[[0], [4]])
        pairs = product(reports.probabilities.items(), counts.probabilities.items())
        sides.append(Law({(a, b): one * other for (a, one), (b, other) in pairs}, arb(0)))
    return sides[0], sides[1]


def run() -> Outcome:
    """Hundreds of random maps of the outcomes, deterministic and randomized, on exact laws."""
    return Outcome(findings())


def findings(extra: Callable[[Law, Any], Law] | None = None) -> tuple[Finding, ...]:
    """The loss before and after; `extra`, for a test, may do something that is no map of the outcome."""
    one, other = laws()
    before = loss(one, other)
    outcomes = list(one.probabilities)
    plain, mixed = [], []
    for images in integers(4, MAPS * len(outcomes)).reshape(MAPS, -1).tolist():
        image = dict(zip(outcomes, images, strict=True))
        plain.append(loss(mapped(one, image.__getitem__), mapped(other, image.__getitem__)).upper)
        kernel = {outcome: _random_law(place) for outcome, place in image.items()}
        mixed.append(loss(randomly_mapped(one, kernel.__getitem__), randomly_mapped(other, kernel.__getitem__)).upper)
    if extra is not None:
        plain.append(loss(extra(one, 0), extra(other, 1)).upper)
    return (
        Finding("loss of the mechanism", "1", f"{before.upper:.9g}, exactly", abs(before.upper - 1) < ROUNDING),
        Finding(
            f"largest loss after {MAPS} random functions of the outcome",
            "at most 1",
            f"{max(plain):.6g}, exactly",
            max(plain) <= 1 + ROUNDING,
        ),
        Finding(
            f"largest loss after {MAPS} randomized functions of the outcome",
            "at most 1",
            f"{max(mixed):.6g}, exactly",
            max(mixed) <= 1 + ROUNDING,
        ),
        Finding("and maps that lose something", "below 1", f"least {min(plain):.6g}", min(plain) < 1),
    )


def _random_law(place: int) -> Law:
    """A law on three outcomes, in whole 64ths."""
    cut, other = sorted(integers(63, 2).tolist())
    weights = cut + 1, other - cut, 64 - other - 1
    return Law({(place + shift) % 5: arb(weight) / 64 for shift, weight in enumerate(weights)}, arb(0))


CLAIM = Claim(
    name="post-processing",
    source="000 Prop. 9",
    title="Anything computed from a release is free",
    statement="If M is ε-DP and A is any randomized algorithm, then A(M(D)) is ε-DP.",
    run=run,
)
