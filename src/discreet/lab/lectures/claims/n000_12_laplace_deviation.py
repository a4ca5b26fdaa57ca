"""The error of the Laplace mechanism beside sampling error and randomized response: 000 §3.2."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, sqrt
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import moments
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.report.plot import Line, plot

SIZES = (100, 1000, 10_000, 100_000)


def run() -> Outcome:
    """The exact deviation of the noise; the other two by their formulas."""
    sizes = [10.0**power for power in (2, 2.5, 3, 3.5, 4, 4.5, 5)]
    spread = deviation(laplace, Fraction(1, 2))
    lines = [
        Line("randomized response", [(n, response_deviation(0.5, n)) for n in sizes], "third"),
        Line("sampling error, 1/(2√n)", [(n, 0.5 / sqrt(n)) for n in sizes], "cap"),
        Line("Laplace", [(n, spread / n) for n in sizes], "ours"),
    ]
    title = "Standard deviations of the answer to one counting query, ε = 0.5"
    return Outcome(findings(), plot(title, lines, x="people", y="standard deviation", log_x=True, log_y=True))


def findings(make: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The deviation against √2/ε, and the slopes of the three errors in n."""
    found = []
    for epsilon in (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)):
        measured, claimed = deviation(make, epsilon), sqrt(2) / float(epsilon)
        # Discrete noise has variance 2a/(1 − a)², which is below 2/ε² and above 2/ε² − 1/6.
        found.append(
            Finding(
                f"standard deviation of a count, ε = {float(epsilon):g}",
                f"√2/ε = {claimed:.5g}",
                f"{measured:.5g}, exactly",
                claimed**2 - 1 / 6 <= measured**2 * (1 + 1e-9) and measured <= claimed * (1 + 1e-9),
            )
        )
    spread = deviation(make, Fraction(1, 2))
    for n in (100, 10_000):
        ours, sampling = spread / n, 0.5 / sqrt(n)
        found.append(
            Finding(
                f"n = {n:,}, ε = 0.5: Laplace beside the sampling error 1/(2√n)",
                f"its square, times 4√2/ε: {4 * sqrt(2) / 0.5 * sampling**2:.6f}",
                f"{ours:.6f} beside {sampling:.6f}; randomized response {response_deviation(0.5, n):.4f}",
                0.9 < ours / (4 * sqrt(2) / 0.5 * sampling**2) <= 1,
            )
        )
    return tuple(found)


def deviation(make: Callable[..., Mechanism[Any]], epsilon: Fraction) -> float:
    """Of the noise of a count, from its exact law (but for 2^−64 of it)."""
    return moments(make(epsilon=epsilon, sensitivity=1).law([0]), lambda outcome: outcome[0])[1]


def response_deviation(epsilon: float, n: float) -> float:
    """√(p(1−p))/((2p−1)√n)."""
    p = exp(epsilon) / (1 + exp(epsilon))
    return sqrt(p * (1 - p)) / ((2 * p - 1) * sqrt(n))


CLAIM = Claim(
    name="laplace-deviation",
    source="000 §3.2",
    title="Laplace noise is quadratically smaller than the sampling error",
    statement="The Laplace mechanism is unbiased with standard deviation √2/(nε): of the order of the square of the "
    "sampling error 1/√n, which is also the order of randomized response.",
    run=run,
)
