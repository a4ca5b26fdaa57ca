"""p = e^ε/(1 + e^ε) is close to 1/2 + ε/4, and not to (1 + ε)/2: 000 §3.1, after Proposition 7."""

from collections.abc import Callable
from math import exp, log

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.report.plot import Line, plot


def run() -> Outcome:
    """Both approximations beside the probability, and what they would promise."""
    epsilons = [0.02 * place for place in range(1, 46)]
    lines = [
        Line("(1 + ε)/2, as in the notes", [(e, loss_of((1 + e) / 2)) for e in epsilons], "third"),
        Line("1/2 + ε/4", [(e, loss_of(0.5 + e / 4)) for e in epsilons], "ours"),
        Line("what was wanted", [(e, e) for e in epsilons], "cap"),
    ]
    title = "The true loss of randomized response whose p is set by an approximation"
    return Outcome(findings(), plot(title, lines, x="ε that was wanted", y="ε that one gets", ceiling=3.2), NOTE)


NOTE = """1/(1 + e^−ε) = 1/2 + ε/4 − ε³/48 + …, so the notes' p ≈ (1 + ε)/2 is wrong in the first order: p set by
it promises ε and gives about 2ε. With 1/2 + ε/4 the loss is ε(1 + ε²/12 + …), a little more than ε too; the product
sets p exactly."""


def exact(epsilon: float) -> float:
    """e^ε/(1 + e^ε)."""
    return exp(epsilon) / (1 + exp(epsilon))


def findings(setting: Callable[[float], float] = exact) -> tuple[Finding, ...]:
    """The error of each approximation of a setting of p, and the loss that it leads to."""
    found = []
    for epsilon in (0.1, 0.01, 0.001):
        p = setting(epsilon)
        right, notes = 0.5 + epsilon / 4, (1 + epsilon) / 2
        found += [
            Finding(
                f"p at ε = {epsilon:g}",
                f"1/2 + ε/4 = {right:.7f}, to within ε³/48; the notes: {notes:.7f}",
                f"{p:.7f}",
                abs(p - right) <= epsilon**3 / 48 * 1.01 + 1e-15 and abs(p - notes) > 20 * abs(p - right),
            ),
            Finding(
                f"loss ln(p/(1−p)) at the notes' p, ε = {epsilon:g}",
                f"about 2ε = {2 * epsilon:g}, and not ε",
                f"{loss_of(notes):.6f}",
                1.99 * epsilon < loss_of(notes) < 2.01 * epsilon,
            ),
        ]
    return tuple(found)


def loss_of(p: float) -> float:
    """What randomized response with this p promises."""
    return log(p / (1 - p))


CLAIM = Claim(
    name="randomized-response-setting",
    source="000 Prop. 7",
    title="The right p is about 1/2 + ε/4",
    statement="For ε-DP set p = e^ε/(1 + e^ε) ≈ (1 + ε/2)/2. The notes say ≈ (1 + ε)/2, which gives 2ε.",
    run=run,
    correction=True,
)
