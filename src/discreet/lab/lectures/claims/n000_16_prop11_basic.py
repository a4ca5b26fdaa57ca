"""k mechanisms together have kε: 000 Proposition 11, on exact product laws."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, loss, then
from discreet.mechanism import laplace, noisy_max, randomized_response
from discreet.mechanism.protocol import Law, Mechanism

EPSILON = Fraction(1, 5)


def run() -> Outcome:
    """The joint law of several mechanisms on the same two neighbours."""
    return Outcome(findings())


def findings(count: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The exact loss of k counts, of k reports, and of a mixture of three kinds."""
    counted, response = count(epsilon=EPSILON, sensitivity=1), randomized_response(epsilon=EPSILON)
    chosen = noisy_max(epsilon=EPSILON, sensitivity=1)
    counts = (counted.law([3], beside=[[4]]), counted.law([4], beside=[[3]]))
    reports = (response.law([0]), response.law([1]))
    choices = (chosen.law([3, 2, 2]), chosen.law([2, 3, 2]))
    cases = {
        "2 counts": [counts] * 2,
        "8 counts": [counts] * 8,
        "8 reports": [reports] * 8,
        "a count, a report and a choice": [counts, reports, choices],
    }
    found = []
    for name, each in cases.items():
        joint = _joint([one for one, _ in each]), _joint([other for _, other in each])
        measured, claimed = loss(*joint), len(each) * float(EPSILON)
        found.append(
            Finding(
                f"loss of {name}, ε = {float(EPSILON):g} each",
                f"at most kε = {claimed:g}",
                f"{measured.upper:.9g}, exactly, over {len(joint[0].probabilities):,} transcripts",
                at_most(measured, claimed) and measured.lower > 0.5 * claimed,
            )
        )
    return tuple(found)


def _joint(laws: list[Law]) -> Law:
    first, *rest = laws
    for law in rest:
        first = then(first, lambda _, law=law: law)  # type: ignore[misc]
    return first


CLAIM = Claim(
    name="basic-composition",
    source="000 Prop. 11",
    title="k mechanisms together cost kε at most",
    statement="If M₁, …, M_k are ε-DP, then (M₁(D), …, M_k(D)) with independent coins is kε-DP.",
    run=run,
)
