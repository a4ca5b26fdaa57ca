"""The notes' Gaussian noise is enough for moderate ε, more than is needed, and too little for very large ε."""

from collections.abc import Callable
from fractions import Fraction
from math import log, sqrt

from discreet.accounting import gaussian_delta, gaussian_sigma, lecture_sigma
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.report.plot import Line, plot

DELTAS = (Fraction(1, 100), Fraction(1, 10**6))
MODERATE = (Fraction(1, 10), Fraction(1), Fraction(10))
Sigma = Callable[[Fraction, Fraction], Fraction]


def notes(epsilon: Fraction, delta: Fraction) -> Fraction:
    """2c√ln(1/δ)/ε, with c = 1."""
    return lecture_sigma(epsilon=epsilon, delta=delta)


def true_delta(sigma: Fraction, epsilon: Fraction) -> Fraction:
    """The smallest δ that this noise has at this ε: the exact condition of [BW18]."""
    return Fraction(gaussian_delta(1 / sigma**2, epsilon))


def edge(delta: Fraction, sigma: Sigma = notes) -> Fraction | None:
    """The ε from which on the noise is too small, or none below 64 ln(1/δ)."""
    low, high = Fraction(1), Fraction(round(64 * log(1 / delta)))
    if true_delta(sigma(high, delta), high) <= delta:
        return None
    for _ in range(16):
        middle = ((low + high) / 2).limit_denominator(10**6)
        low, high = (low, middle) if true_delta(sigma(middle, delta), middle) > delta else (middle, high)
    return high


def judge_moderate(epsilon: Fraction, delta: Fraction, sigma: Fraction) -> Finding:
    """Whether this noise is (ε, δ)-DP, and how much more it is than the least."""
    found = true_delta(sigma, epsilon)
    more = float(sigma / gaussian_sigma(epsilon=epsilon, delta=delta))
    return Finding(
        f"the true δ of the notes' σ = {float(sigma):.4g} at ε = {float(epsilon):g}",
        f"at most {float(delta):g}",
        f"{float(found):.2g}; σ is {more:.2f} times what is needed",
        found <= delta and more >= 1,
    )


def judge_large(delta: Fraction, found: Fraction | None) -> Finding:
    """Where the exercise begins to be false.

    With μ = 1/σ and L = ln(1/δ), δ(ε) ≤ Φ(μ/2 − ε/μ), where μ/2 − ε/μ = ε/(4√L) − 2√L. Up to ε = 4(2 − √2)L that is at
    most −√(2L), so that δ(ε) ≤ e^−L; at ε = 8L it is 0, and δ(ε) is nearly 1/2. The edge lies between.
    """
    first, last = 4 * (2 - sqrt(2)) * log(1 / delta), 8 * log(1 / delta)
    holds = found is not None and first <= found <= last
    measured = "none found" if found is None else f"from ε = {float(found):.1f} on"
    return Finding(
        f"the notes' σ is too small, δ = {float(delta):g}",
        f"for no ε, say the notes; from an ε between {first:.1f} and {last:.1f} on, by a computation",
        measured,
        holds,
    )


def run() -> Outcome:
    """Moderate ε, then the edge, then the ratio of the two σ as a curve."""
    findings = [judge_moderate(e, d, notes(e, d)) for d in DELTAS for e in MODERATE]
    findings += [judge_large(delta, edge(delta)) for delta in DELTAS]
    epsilons = [Fraction(round(1000 * 10 ** (step / 2)), 10**5) for step in range(9)]
    curves = [
        Line(
            f"δ = {float(delta):g}",
            [(float(e), float(notes(e, delta) / gaussian_sigma(epsilon=e, delta=delta))) for e in epsilons],
            style,
        )
        for delta, style in zip(DELTAS, ("second", "ours"), strict=True)
    ]
    level = Line("exactly enough", [(float(epsilons[0]), 1.0), (float(epsilons[-1]), 1.0)], "cap")
    figure = plot(
        "The notes' sigma over the least sigma", [*curves, level], x="ε", y="σ of the notes ÷ least σ", log_x=True
    )
    return Outcome(
        tuple(findings), figure, "The product calibrates by the exact condition, which is right for every ε."
    )


CLAIM = Claim(
    name="gaussian-noise",
    source="004 Exercise 1",
    title="The Gaussian mechanism, and where the exercise is false",
    statement="Noise of σ = 2c√ln(1/δ)/ε is (ε, δ)-DP for moderate ε, where it is more than is needed. The exercise "
    "asks to prove it for every ε: from some ε below 8 ln(1/δ) on it is false.",
    run=run,
    correction=True,
)
