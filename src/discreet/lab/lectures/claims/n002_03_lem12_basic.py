"""k stages, each chosen by all before: 002 Lemma 1.2 and Exercise 1.3, by induction."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most, loss, then
from discreet.mechanism import laplace, randomized_response
from discreet.mechanism.protocol import Law

EPSILONS = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 3), Fraction(1, 6))


def run() -> Outcome:
    """Five stages; each uses all earlier answers to decide what to ask and of whom."""
    return Outcome(findings())


def findings(stage: "Callable[[Fraction, Sequence[Any], Sequence[int]], Law] | None" = None) -> tuple[Finding, ...]:
    """The exact loss after each stage beside the sum of the epsilons so far."""
    ask = stage or adaptive_stage
    one, other = (1, 0, 1), (0, 0, 1)
    laws = [Law({(): _one()}, _one() - 1) for _ in range(2)]
    found = []
    for number in range(1, len(EPSILONS) + 1):
        epsilon = EPSILONS[number - 1]
        laws = [
            _flat(then(law, lambda past, r=rows, e=epsilon: ask(e, past, r)))  # type: ignore[misc]
            for law, rows in zip(laws, (one, other), strict=True)
        ]
        total, measured = float(sum(EPSILONS[:number])), loss(*laws)
        found.append(
            Finding(
                f"loss after {number} stage{'s' if number > 1 else ''}",
                f"at most {' + '.join(str(each) for each in EPSILONS[:number])} = {total:.6g}",
                f"{measured.upper:.9g}, exactly, over {len(laws[0].probabilities):,} transcripts",
                at_most(measured, total) and measured.lower > 0.3 * total,
            )
        )
    return tuple(found)


def adaptive_stage(epsilon: Fraction, past: Sequence[Any], rows: Sequence[int]) -> Law:
    """After an even transcript a count of everybody, after an odd one a report of the first two people."""
    if sum(past) % 2 == 0:
        return laplace(epsilon=epsilon, sensitivity=1).law([sum(rows)], beside=[[0], [3]])
    report = randomized_response(epsilon=epsilon, sensitivity=1).law(rows[:2])
    return Law({(a + 2 * b,): chance for (a, b), chance in report.probabilities.items()}, report.rest)


def _flat(law: Law) -> Law:
    return Law({(*past, *now): chance for (past, now), chance in law.probabilities.items()}, law.rest)


def _one() -> Any:
    from flint import arb

    return arb(1)


CLAIM = Claim(
    name="basic-composition-adaptive",
    source="002 Lemma 1.2",
    title="k adaptive stages cost ε₁ + … + ε_k at most",
    statement="If A_i(a₁, …, a_{i−1}, ·) is ε_i-DP for all earlier outputs, running A₁, …, A_k in sequence "
    "is (Σ ε_i)-DP.",
    run=run,
)
