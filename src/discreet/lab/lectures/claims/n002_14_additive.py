"""Additive secrecy resembles privacy: it composes, it is closed, and δ must exceed 1/n. 002 §3.1."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import ROUNDING, mapped, then
from discreet.lab.random import integers
from discreet.mechanism import laplace, name_and_shame
from discreet.mechanism.protocol import Law, Mechanism
from discreet.verify.divergence import divergence

DELTA = Fraction(1, 50)


def run() -> Outcome:
    """Total variation distances of exact laws."""
    return Outcome(findings())


def findings(make: Callable[..., Mechanism[Any]] = name_and_shame) -> tuple[Finding, ...]:
    """Composition, post-processing and groups; then what a useful count needs."""
    shame = make(delta=DELTA)
    one, other = shame.law([0, 1, 1]), shame.law([1, 1, 1])
    twice = secrecy(then(one, lambda _: one), then(other, lambda _: other))
    outcomes = list(dict.fromkeys([*one.probabilities, *other.probabilities]))
    after = 0.0
    for images in integers(3, 200 * len(outcomes)).reshape(200, -1).tolist():
        image = dict(zip(outcomes, images, strict=True)).__getitem__
        after = max(after, secrecy(mapped(one, image), mapped(other, image)))
    groups = [secrecy(shame.law([0] * 3), shame.law([1] * k + [0] * (3 - k))) for k in (1, 2, 3)]
    found = [
        Finding("two runs", f"at most 2δ = {2 * float(DELTA):g}", f"{twice:.6f}, exactly", 0 < twice <= 2 * DELTA),
        Finding(
            "200 random functions of it",
            f"at most δ = {float(DELTA):g}",
            f"{after:.6f}, exactly",
            after <= DELTA * (1 + ROUNDING),
        ),
        Finding(
            "groups of 1, 2 and 3",
            f"at most kδ = {', '.join(f'{k * float(DELTA):g}' for k in (1, 2, 3))}",
            ", ".join(f"{each:.6f}" for each in groups),
            all(each <= k * DELTA * (1 + ROUNDING) for k, each in enumerate(groups, 1)),
        ),
    ]
    return (*found, *(useful(n) for n in (10, 100)))


def useful(people: int) -> Finding:
    """A count that distinguishes 0ⁿ from 1ⁿ nine times in ten needs δ above 1/n."""
    count = laplace(epsilon=Fraction(5, people), sensitivity=1)
    steps = [count.law([k], beside=[[0], [people]]) for k in (0, 1, people)]
    delta, advantage = secrecy(steps[0], steps[1]), secrecy(steps[0], steps[2])
    return Finding(
        f"n = {people}: δ of a count that distinguishes 0ⁿ from 1ⁿ with advantage {advantage:.2f}",
        f"at least {advantage:.2f}/n = {advantage / people:.4f}, since nδ ≥ {advantage:.2f}",
        f"{delta:.4f}, exactly",
        people * delta >= advantage * (1 - ROUNDING),
    )


def secrecy(one: Law, other: Law) -> float:
    """The total variation distance."""
    return max(divergence(one, other, 0).upper, divergence(other, one, 0).upper)


CLAIM = Claim(
    name="additive-secrecy",
    source="002 §3.1",
    title="Additive secrecy composes like privacy, and needs δ > 1/n",
    statement="δ-additive secrecy, Pr[A(x) ∈ E] ≤ Pr[A(x′) ∈ E] + δ, adds up under composition, survives "
    "post-processing and gives kδ to groups; so useful algorithms need δ of at least about 1/n.",
    run=run,
)
