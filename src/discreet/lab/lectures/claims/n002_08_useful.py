"""Useful differential privacy needs ε ≫ 1/n: 002 §1.2, measured between 0ⁿ and 1ⁿ."""

from collections.abc import Callable
from fractions import Fraction
from math import tanh
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import mapped
from discreet.mechanism import laplace, randomized_response
from discreet.mechanism.protocol import Mechanism
from discreet.report.plot import Line, plot
from discreet.verify.divergence import divergence

PEOPLE = 100


def run() -> Outcome:
    """The advantage of the best test between a table of zeros and one of ones."""
    shares = [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]
    points = [(share, distance(laplace, Fraction(str(share)) / PEOPLE)) for share in shares]
    lines = [
        Line("any algorithm: at most", [(share, tanh(share / 2)) for share in shares], "cap"),
        Line("a Laplace count", points, "ours", dots=True),
    ]
    title = "Total variation distance between the answers about 0ⁿ and 1ⁿ, over εn"
    return Outcome(findings(), plot(title, lines, x="ε·n", y="total variation", log_x=True, floor=0.0, ceiling=1.05))


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The total variation distance, for epsilons below, at and above 1/n."""
    found = []
    for factor in (Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10)):
        measured, limit = distance(make, factor / PEOPLE), tanh(factor / 2)
        found.append(
            Finding(
                f"ε = {float(factor):g}/n, n = {PEOPLE}: the best test between 0ⁿ and 1ⁿ, hits less false alarms",
                f"at most (e^εn − 1)/(e^εn + 1) = {limit:.4f}",
                f"{measured:.4f}, exactly",
                measured <= limit * (1 + 1e-12) and measured > 0,
            )
        )
    survey = survey_distance(Fraction(1, 10), 9)
    found.append(
        Finding(
            "randomized response, n = 9, ε = 0.9/n: the same",
            f"at most {tanh(0.45):.4f}",
            f"{survey:.4f}, exactly",
            survey <= tanh(0.45),
        )
    )
    return tuple(found)


def distance(make: Callable[..., Mechanism[Any]], epsilon: Fraction) -> float:
    """Between a count of nobody and of everybody."""
    count = make(epsilon=epsilon, sensitivity=1)
    return divergence(count.law([0], beside=[[PEOPLE]]), count.law([PEOPLE], beside=[[0]]), 0).upper


def survey_distance(epsilon: Fraction, people: int) -> float:
    """Between reports of zeros and of ones; the number of ones says all that they say."""
    survey = randomized_response(epsilon=epsilon)
    return divergence(mapped(survey.law([0] * people), sum), mapped(survey.law([1] * people), sum), 0).upper


CLAIM = Claim(
    name="useful-epsilon",
    source="002 §1.2",
    title="Useful differential privacy needs ε ≫ 1/n",
    statement="If ε is much below 1/n, answers about any two tables are nearly the same: no test separates 0ⁿ and 1ⁿ.",
    run=run,
)
