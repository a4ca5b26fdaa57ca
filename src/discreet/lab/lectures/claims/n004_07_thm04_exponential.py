"""The exponential mechanism is ε-DP for every score of sensitivity Δ; with twice the rate it is not."""

from fractions import Fraction
from itertools import product

from discreet.accounting.sensitivity import Sensitivity
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import exponential
from discreet.verify import Interval

EPSILON, APART = Fraction(1), 60
ONE_WAY = Sensitivity(l1=Fraction(3), l2_squared=Fraction(3), linf=Fraction(1), direction=1)


def measure_all(epsilon: Fraction) -> Interval:
    """The exact loss over all scores of three outputs from 0 to 3 and all moves by at most 1."""
    pairs = [
        (scores, [s + m for s, m in zip(scores, move, strict=True)])
        for scores in product(range(4), repeat=3)
        for move in product((-1, 0, 1), repeat=3)
    ]
    return worst_loss(exponential(epsilon=epsilon, sensitivity=1), pairs)


def measure_far(epsilon: Fraction) -> Interval:
    """The loss for two outputs, one far below the other, that move apart: e^ε/2 from the score, e^ε/2 from the sum."""
    return worst_loss(exponential(epsilon=epsilon, sensitivity=1), [([0, APART], [1, APART - 1])])


def measure_one_way(epsilon: Fraction) -> Interval:
    """The same for scores that all move the same way, at the double rate that the product then takes."""
    pairs = [
        (scores, [s + m for s, m in zip(scores, move, strict=True)])
        for scores in product(range(4), repeat=3)
        for move in product((0, 1), repeat=3)
    ]
    return worst_loss(exponential(epsilon=epsilon, sensitivity=ONE_WAY), pairs)


def judge(everywhere: Interval, far: Interval, one_way: Interval) -> tuple[Finding, ...]:
    """At most ε everywhere, and arbitrarily close to it."""
    claimed = float(EPSILON)
    return (
        Finding(
            "the largest loss, 3 outputs, all scores to 3",
            f"at most {EPSILON}",
            f"{shown(everywhere)}, exactly",
            at_most(everywhere, claimed),
        ),
        Finding(
            f"two outputs, one {APART} below the other, moving apart",
            f"nearly {EPSILON}: the theorem is tight",
            f"{far.lower:.12f}",
            at_most(far, claimed) and far.lower > claimed - 1e-9,
        ),
        Finding(
            "scores that all move one way: exp(ε q/Δ) instead of exp(ε q/2Δ)",
            f"at most {EPSILON}",
            f"{shown(one_way)}, exactly",
            at_most(one_way, claimed),
        ),
    )


def run() -> Outcome:
    """All small cases, and one that is tight."""
    note = "The third line is not in the notes: if neighbours move all scores the same way, half the noise is enough."
    return Outcome(judge(measure_all(EPSILON), measure_far(EPSILON), measure_one_way(EPSILON)), note=note)


CLAIM = Claim(
    name="exponential-mechanism",
    source="004 Thm. 4",
    title="Sampling by score is private",
    statement="If each score moves by at most Δ between neighbours, choosing y with Pr[y] ∝ exp(ε q(y; s)/2Δ) is ε-DP.",
    run=run,
)
