"""The exponential mechanism is seldom far below the best score: the exact worst case beside the theorem."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, exp, log

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import exponential
from discreet.numeric import precision
from discreet.report.plot import Line, plot

EPSILON, BITS = Fraction(1, 2), 128
OUTPUTS = (2, 10, 100)
TIMES = (0.5, 1.0, 2.0, 5.0)
Bound = Callable[[int, float], float]


def theorem(outputs: int, t: float) -> float:
    """4Δ(ln d + t)/ε, with Δ = 1."""
    return 4 * (log(outputs) + t) / float(EPSILON)


def half(outputs: int, t: float) -> float:
    """2Δ(ln d + t)/ε: the same with the constant that the exponential mechanism itself allows."""
    return theorem(outputs, t) / 2


def worst_tail(outputs: int, gap: int, epsilon: Fraction = EPSILON) -> float:
    """The largest exact probability of a score that is `gap` below the best: all the others are exactly that below it.

    Raising one of the others above that line, or lowering it, only makes it less likely that one below is chosen.
    """
    law = exponential(epsilon=epsilon, sensitivity=1).law([gap] + [0] * (outputs - 1))
    with precision(BITS):
        return float((1 - law.probabilities[0]).upper()) if gap else 1.0


def worst_expectation(outputs: int) -> float:
    """The largest expected gap, over all gaps between the best score and the others."""
    return max(gap * worst_tail(outputs, gap) for gap in range(1, ceil(8 * log(2 * outputs) / float(EPSILON))))


def judge_tail(outputs: int, t: float, gap: float, found: float) -> Finding:
    """A gap of at least this has probability at most e^−t."""
    return Finding(
        f"Pr[gap ≥ {gap:.1f}], d = {outputs}, t = {t:g}", f"at most {exp(-t):.4g}", f"{found:.4g}", found <= exp(-t)
    )


def judge_constant(bound: Bound, name: str) -> Finding:
    """Whether a bound holds for all t and d, at the first whole gap that reaches it."""
    tails = [(worst_tail(d, ceil(bound(d, t))), exp(-t)) for d in OUTPUTS for t in TIMES]
    worst = max(found / allowed for found, allowed in tails)
    return Finding(f"Pr[gap ≥ {name}] over e^−t, largest", "at most 1", f"{worst:.3g}", worst <= 1)


def judge_expectation(ratios: dict[int, float]) -> Finding:
    """E[gap] is of the order of Δ ln(d)/ε: at most 4(ln d + 1)/ε by integrating the tail, and not of a smaller order.

    With d − 1 others 2 ln(d)/ε behind, one of them is chosen with probability (1 − 1/d)/(2 − 1/d) ≥ 1/3, so that the
    expected gap is at least (2/3) ln(d)/ε, but for the rounding of that gap to a whole number.
    """
    holds = all(0.5 <= ratio <= 4 * (log(d) + 1) / log(d) for d, ratio in ratios.items())
    found = ", ".join(f"{ratio:.2f}" for ratio in ratios.values())
    return Finding(f"worst E[gap] over Δ ln(d)/ε, d = {', '.join(map(str, ratios))}", "a constant", found, holds)


def run() -> Outcome:
    """Exact tails of the worst scores, the same with half the bound, and the expectation."""
    findings = [judge_tail(d, t, theorem(d, t), worst_tail(d, ceil(theorem(d, t)))) for d, t in ((2, 1.0), (100, 2.0))]
    findings += [judge_constant(theorem, "4Δ(ln d + t)/ε"), judge_constant(half, "2Δ(ln d + t)/ε")]
    findings.append(judge_expectation({d: worst_expectation(d) * float(EPSILON) / log(d) for d in OUTPUTS}))
    steps = [step / 4 for step in range(25)]
    figure = plot(
        "How far below the best: the exact worst case and two bounds, d = 100",
        [
            Line("e⁻ᵗ at 4Δ(ln d + t)/ε", [(theorem(100, t), exp(-t)) for t in steps], "third"),
            Line("e⁻ᵗ at 2Δ(ln d + t)/ε", [(half(100, t), exp(-t)) for t in steps], "second"),
            Line("exact, worst scores", [(gap, worst_tail(100, gap)) for gap in range(0, 45)], "ours"),
        ],
        x="gap to the best score",
        y="probability of at least that",
        log_y=True,
    )
    return Outcome(tuple(findings), figure, NOTE)


NOTE = (
    "The 4 can be 2: by Lemma 5, since exponential noise is never negative and only the winner's can mislead; and by "
    "the exact law of the exponential mechanism, whose worst case lies just below that bound."
)

CLAIM = Claim(
    name="exponential-accuracy",
    source="004 Thm. 6",
    title="A private choice is nearly the best",
    statement="Pr[q_max − q(Y) ≥ 4Δ(ln d + t)/ε] ≤ e^−t for every t > 0, and E[q_max − q(Y)] = O(Δ ln(d)/ε).",
    run=run,
)
