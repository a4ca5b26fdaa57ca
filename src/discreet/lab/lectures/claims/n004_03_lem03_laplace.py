"""The Laplace mechanism is ε-DP, and k of them are kε-DP: no less."""

from fractions import Fraction

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import equals
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.mechanism import laplace
from discreet.verify import Interval


def measure(scale: Fraction, times: int) -> Interval:
    """The exact loss when a count is asked so often, each time with fresh noise of this scale; neighbours move it by 1.

    Releasing the same count k times is releasing a vector that moves by k in L1.
    """
    return worst_loss(laplace(epsilon=times / scale, sensitivity=times), [([3] * times, [4] * times)])


def judge(epsilon: Fraction, times: int, found: Interval) -> Finding:
    """The loss is k·ε, exactly."""
    claimed = float(times * epsilon)
    what = f"Lap(1/ε), ε = {epsilon}, {'once' if times == 1 else f'{times} times'}"
    return Finding(what, f"{claimed:g}", f"{shown(found)}, exactly", equals(found, claimed))


def run() -> Outcome:
    """One to six answers, for a small and a large epsilon."""
    cases = [(Fraction(1, 10), 1), (Fraction(1), 1), (Fraction(1), 2), (Fraction(1, 10), 6), (Fraction(2), 6)]
    findings = tuple(judge(epsilon, times, measure(1 / epsilon, times)) for epsilon, times in cases)
    return Outcome(findings, note="Definition 2 of the notes calls the sensitivity Δ and then writes c for it.")


CLAIM = Claim(
    name="laplace-repeated",
    source="004 Lemma 3",
    title="Laplace noise, once and k times",
    statement="Adding Lap(Δ/ε) is ε-DP. Repeated k times, with fresh noise, it is kε-DP.",
    run=run,
)
