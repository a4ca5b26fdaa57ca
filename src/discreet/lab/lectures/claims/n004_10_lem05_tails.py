"""The tail of one exponential variable is e^−t; that of the largest of d is at most e^−t, and never equal."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.noise.law import exp_minus
from discreet.numeric import ball, precision
from discreet.report.plot import Line, plot

BITS = 128
TIMES = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(10))
NUMBERS = (2, 10, 1000)
Tail = Callable[[int, Fraction], arb]


def largest_tail(number: int, t: Fraction) -> arb:
    """Pr[max of d exponential variables > λ(ln d + t)] = 1 − (1 − e^−t/d)^d, by independence."""
    return 1 - (1 - exp_minus(t) / number) ** number


def measured_tail(number: int, t: Fraction) -> arb:
    """The same by integrating the density of the maximum, d(1 − e^−x)^(d−1) e^−x, term by term: an independent way."""
    start = ball(t) + arb(number).log()
    # ∫ d e^−x (1 − e^−x)^(d−1) dx from s on, with u = e^−x: ∫₀^{e^−s} d (1 − u)^(d−1) du.
    edge = (-start).exp()
    total, power = arb(0), arb(1)
    for place in range(number):
        power *= edge
        sign = -1 if place % 2 else 1
        total += sign * arb(number) * arb(number - 1).bin(place) * power / (place + 1)
    return total


def judge_one(t: Fraction, tail: Tail) -> Finding:
    """Part 1: equality for one variable."""
    with precision(BITS):
        found, claimed = tail(1, t), exp_minus(t)
        same = bool(found.overlaps(claimed)) and float((found - claimed).abs_upper()) < 1e-30
    return Finding(f"one variable, t = {float(t):g}", f"{float(claimed.mid()):.6g}", f"{float(found.mid()):.6g}", same)


def judge_largest(number: int, t: Fraction, tail: Tail) -> Finding:
    """Part 2 as corrected: at most e^−t, strictly, and at least 1 − exp(−e^−t), which it tends to."""
    with precision(BITS):
        found, claimed = tail(number, t), exp_minus(t)
        least = 1 - (-claimed).exp()
        holds = bool(found < claimed) and bool(found > least)
    return Finding(
        f"the largest of {number:,}, t = {float(t):g}",
        f"below {float(claimed.mid()):.6g}, above {float(least.mid()):.6g}",
        f"{float(found.mid()):.6g}",
        holds,
    )


def run() -> Outcome:
    """Both parts at some t, and the second as a curve."""
    findings = [judge_one(t, largest_tail) for t in TIMES[1:4]]
    # The sum alternates: its digits are enough for ten variables, the closed form for any number.
    findings += [judge_largest(10, t, measured_tail) for t in TIMES[:2]]
    findings += [judge_largest(number, t, largest_tail) for number in NUMBERS for t in TIMES[::2]]
    steps = [Fraction(step, 10) for step in range(41)]
    bound = Line("e⁻ᵗ, the notes", [(float(t), float(exp_minus(t).mid())) for t in steps], "third")
    exact = [
        Line(f"exact, d = {number:,}", [(float(t), float(largest_tail(number, t).mid())) for t in steps], style)
        for number, style in ((2, "second"), (1000, "ours"))
    ]
    figure = plot("The tail of the largest of d", [bound, *exact], x="t", y="probability")
    return Outcome(tuple(findings), figure)


CLAIM = Claim(
    name="exponential-tails",
    source="004 Lemma 5",
    title="Tails of exponential noise",
    statement="Pr[Z ≥ tλ] = e^−t for one Exp(λ) variable. For the largest of d the notes write "
    "Pr[max Zᵢ > λ(ln d + t)] = e^−t; it is 1 − (1 − e^−t/d)^d, which is less: their proof is a union bound.",
    run=run,
    correction=True,
)
