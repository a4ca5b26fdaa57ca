"""What δ says of the privacy loss: 000 Definition 12 and the remark on it."""

from collections.abc import Callable
from fractions import Fraction
from math import expm1, inf, log
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.mechanism import gaussian
from discreet.mechanism.protocol import Law, Mechanism
from discreet.report.plot import Line, plot
from discreet.verify.divergence import divergence

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)


def run() -> Outcome:
    """The exact loss of Gaussian noise that was calibrated to (1, 10⁻⁶)."""
    here, there = laws(gaussian)
    epsilons = [0.2 + 0.1 * place for place in range(13)]
    lines = [
        Line("Pr[L > ε]", [(e, exceeded(here, there, e)) for e in epsilons], "third"),
        Line("δ(ε)", [(e, divergence(here, there, Fraction(str(round(e, 6)))).upper) for e in epsilons], "ours"),
    ]
    title = "The probability that the loss exceeds ε, and the δ of (ε, δ)-DP, of the same noise"
    return Outcome(findings(), plot(title, lines, x="ε", y="probability", log_y=True), NOTE)


NOTE = """The notes call the two "more or less equivalent". If the loss exceeds ε with probability at most δ, then the
mechanism is (ε, δ)-DP. The other way round one must give away a little of ε: the loss exceeds ε + t with probability at
most δ/(1 − e^−t), and at t = 0 there is no such bound."""


def laws(make: Callable[..., Mechanism[Any]]) -> tuple[Law, Law]:
    """Of a count, on two neighbours."""
    count = make(epsilon=EPSILON, delta=DELTA, sensitivity=1)
    return count.law([0], beside=[[1]]), count.law([1], beside=[[0]])


def findings(make: Callable[..., Mechanism[Any]] = gaussian) -> tuple[Finding, ...]:
    """δ at ε, and how often the loss is beyond ε and a little more."""
    here, there = laws(make)
    delta = divergence(here, there, EPSILON).upper
    beyond, above = exceeded(here, there, 1.0), exceeded(here, there, 1.1)
    bound = float(DELTA) / -expm1(-0.1)
    found = [
        Finding(
            "δ at ε = 1, of noise calibrated to (1, 10⁻⁶)", "at most 10⁻⁶", f"{delta:.3g}, exactly", delta <= DELTA
        ),
        Finding("probability that the loss exceeds ε", "more or less δ", f"{beyond:.3g}", 1 < beyond / DELTA < 100),
        Finding("that it exceeds 1.1 ε", f"at most δ/(1 − e^−0.1) = {bound:.3g}", f"{above:.3g}", above <= bound),
    ]
    for epsilon in (Fraction(1, 2), Fraction(3, 2)):
        chance, true = exceeded(here, there, float(epsilon)), divergence(here, there, epsilon).upper
        found.append(
            Finding(
                f"δ at ε = {float(epsilon):g}, beside the probability that the loss exceeds it",
                f"at most {chance:.3g}",
                f"{true:.3g}, exactly",
                true <= chance,
            )
        )
    return tuple(found)


def exceeded(one: Law, other: Law, level: float) -> float:
    """Pr[L > level] under the first law; what is not listed counts."""
    beyond = float(one.rest.upper())
    for outcome, chance in one.probabilities.items():
        p, q = float(chance.mid()), float(other.probabilities[outcome].mid())
        if p > 0 and (log(p / q) if q > 0 else inf) > level:
            beyond += p
    return beyond


CLAIM = Claim(
    name="meaning-of-delta",
    source="000 Def. 12",
    title="(ε, δ) means: the loss is within ε, more or less, but for δ",
    statement="(ε, δ)-DP is Pr[M(D) ∈ S] ≤ e^ε Pr[M(D′) ∈ S] + δ for all S. It holds if the privacy loss exceeds ε "
    "with probability at most δ; conversely, the loss exceeds ε + t with probability at most δ/(1 − e^{−t}).",
    run=run,
)
