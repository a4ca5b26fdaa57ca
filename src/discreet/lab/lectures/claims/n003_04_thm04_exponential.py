"""The exponential mechanism is (ε, 0)-DP for every score; a score misjudged by two costs twice as much."""

from fractions import Fraction
from itertools import product

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import exponential
from discreet.report.plot import Line, plot
from discreet.verify import Interval

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(4))


def measure(epsilon: Fraction, sensitivity: int, moves: int) -> Interval:
    """The exact loss for 3 outputs, with close and with distant scores, if neighbours move each by `moves`."""
    choose = exponential(epsilon=epsilon, sensitivity=sensitivity)
    pairs = [
        (scores, [s + m for s, m in zip(scores, move, strict=True)])
        for scores in product((0, 3), (0, 60), (0, 120))
        for move in product((-moves, 0, moves), repeat=3)
    ]
    return worst_loss(choose, pairs)


def judge(epsilon: Fraction, found: Interval) -> Finding:
    """At most ε, and nearly as much in the worst case: the output that gains is unlikely, all the others lose."""
    claimed = float(epsilon)
    holds = at_most(found, claimed) and found.lower > claimed * 0.95
    return Finding(f"largest loss, ε = {claimed:g}", f"at most {claimed:g}, and nearly so", f"{shown(found)}", holds)


def judge_misjudged(found: Interval) -> Finding:
    """Calibrated to half of what the score moves, it loses more than ε, and at most 2ε."""
    return Finding(
        "a score that moves twice as far as GS says, ε = 1",
        "more than 1, at most 2",
        shown(found),
        found.lower > 1 and at_most(found, 2.0),
    )


def run() -> Outcome:
    """Exact losses, and how they approach ε."""
    findings = [judge(epsilon, measure(epsilon, 1, 1)) for epsilon in EPSILONS]
    findings.append(judge_misjudged(measure(Fraction(1), 1, 2)))
    gaps = range(0, 21)
    choose = exponential(epsilon=1, sensitivity=1)
    figure = plot(
        "Loss of a choice of two that move apart, ε = 1",
        [
            Line("exact loss", [(gap, worst_loss(choose, [([0, gap], [1, gap - 1])]).upper) for gap in gaps], "ours"),
            Line("ε", [(0, 1.0), (20, 1.0)], "cap"),
        ],
        x="how far the first is behind the second",
        y="privacy loss",
    )
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="exponential-privacy",
    source="003 Thm. 4",
    title="The exponential mechanism is private",
    statement="Pr[M(D) = r] ∝ exp(ε s(D, r)/(2 GS)) is (ε, 0)-DP for every range and every score function s, GS being "
    "the most that a score moves between neighbours.",
    run=run,
)
