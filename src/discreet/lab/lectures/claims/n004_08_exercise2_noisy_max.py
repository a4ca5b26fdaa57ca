"""Report-noisy-max with exponential noise is not the exponential mechanism. It is permute-and-flip, and better."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
from flint import arb

from discreet.lab.lectures.chance import often_enough, seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import exponential, noisy_max
from discreet.mechanism.protocol import Law, Mechanism
from discreet.noise import gumbel_race
from discreet.noise.law import exp_minus
from discreet.numeric import precision
from discreet.report.plot import Line, plot
from discreet.verify import divergence

EPSILON, BITS, DRAWS = Fraction(1), 256, 8_000
SCORES = (0, 1, 3)
RATE = EPSILON / 2


def permute_and_flip(scores: Sequence[int], rate: Fraction) -> Law:
    """In a random order, take an output with probability exp(−rate·(best − score)), or else go on."""
    best = max(scores)
    with precision(BITS):
        takes = [exp_minus(rate * (best - score)) for score in scores]
        found = {place: arb(0) for place in range(len(scores))}
        orders = list(permutations(range(len(scores))))
        for order in orders:
            left = arb(1) / len(orders)
            for place in order:
                found[place] += left * takes[place]
                left *= 1 - takes[place]
        return Law(found, arb(0))


def distance(one: Law, other: Law) -> tuple[float, float]:
    """The total variation distance, between two bounds."""
    return divergence(one, other, 0)


def expected(scores: Sequence[int], law: Law) -> arb:
    """The mean score."""
    with precision(BITS):
        return sum((chance * scores[place] for place, chance in law.probabilities.items()), arb(0))


def never_worse(noisy: Mechanism[int], sampled: Mechanism[int], scores: Sequence[Sequence[int]]) -> bool:
    """Whether the first chooses at least as well in expectation as the second, for all of these scores."""
    return not any(expected(each, noisy.law(each)) < expected(each, sampled.law(each)) for each in scores)


def judge(noisy: Law, flipped: Law, sampled: Law, better: bool) -> tuple[Finding, ...]:
    """Equal to the one, different from the other, and at least as good."""
    different, same = distance(noisy, sampled), distance(noisy, flipped)
    shown = ", ".join(f"{float(noisy.probabilities[place].mid()):.4f}" for place in range(len(SCORES)))
    other = ", ".join(f"{float(sampled.probabilities[place].mid()):.4f}" for place in range(len(SCORES)))
    return (
        Finding(
            f"exponential noise against the exponential mechanism, scores {SCORES}",
            "distance 0 (the notes); above 0 (the correction)",
            f"distance {different[0]:.4f}: {shown} against {other}",
            different[0] > 0,
        ),
        Finding("exponential noise against permute-and-flip", "distance 0", f"at most {same[1]:.1e}", same[1] < 1e-30),
        Finding(
            "its expected score, 3 and 4 outputs, 206 lists of scores",
            "never below that of the exponential mechanism",
            "never below" if better else "below somewhere",
            better,
        ),
    )


def gumbel(rate: Fraction) -> int:
    """How often Gumbel noise on the scores chooses the best one."""
    scores = np.array(SCORES, dtype=np.int64)
    return sum(gumbel_race(scores, rate) == len(SCORES) - 1 for _ in range(DRAWS))


def judge_gumbel(hits: int, sampled: Law) -> Finding:
    """The exact chance of the best under the exponential mechanism, beside how often Gumbel noise chose it."""
    chance = float(sampled.probabilities[len(SCORES) - 1].mid())
    fits = often_enough(hits, DRAWS, chance) and seldom_enough(hits, DRAWS, chance)
    return Finding(
        "Gumbel noise chooses the best as the exponential mechanism does",
        f"{chance:.4f}",
        f"{hits / DRAWS:.4f} of {DRAWS:,} draws",
        fits,
    )


def run() -> Outcome:
    """Exact laws of both, and the expected loss as the second score falls."""
    noisy, sampled = noisy_max(epsilon=EPSILON, sensitivity=1), exponential(epsilon=EPSILON, sensitivity=1)
    every = [*product(range(5), repeat=3), *product(range(0, 6, 2), repeat=4)]
    law = sampled.law(SCORES)
    findings = judge(noisy.law(SCORES), permute_and_flip(SCORES, RATE), law, never_worse(noisy, sampled, every))
    behind = range(0, 21)
    curves = [
        Line(name, [(g, float((g - expected([0] * 4 + [g], way.law([0] * 4 + [g]))).mid())) for g in behind], style)
        for name, way, style in (("exponential", sampled, "second"), ("permute-and-flip", noisy, "ours"))
    ]
    figure = plot(
        "Expected gap to the best score, four others behind it",
        curves,
        x="how far the four others are behind",
        y="expected gap",
    )
    return Outcome((*findings, judge_gumbel(gumbel(RATE), law)), figure, NOTE)


NOTE = (
    "Exercise 2's hint compares Pr[a]/Pr[b] for two outputs. With exponential noise that ratio is not "
    "e^(ε(q(a) − q(b))/2Δ): of two outputs, g apart, the worse one has e^−x/2 with x = εg/2Δ, not e^−x/(1 + e^−x)."
)

CLAIM = Claim(
    name="noisy-max",
    source="004 Exercise 2",
    title="Report-noisy-max is permute-and-flip",
    statement="The notes: argmax q(y) + Exp(2Δ/ε) is equivalent to the exponential mechanism. It is not: it is "
    "permute-and-flip, never worse in expectation. With Gumbel noise it is the exponential mechanism.",
    run=run,
    correction=True,
)
