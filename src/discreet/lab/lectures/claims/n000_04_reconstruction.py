"""From many counts to everybody's secret: 000 §1, after Dinur and Nissim."""

from collections.abc import Callable
from math import exp, sqrt

import numpy as np

from discreet.accounting.sensitivity import matrix_sensitivity
from discreet.lab.attack.reconstruction import reconstruct
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers, uniforms
from discreet.mechanism import laplace
from discreet.report.plot import Line, plot
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.types import Floats

PEOPLE, QUESTIONS = 200, 800


def run() -> Outcome:
    """Random subsets of people, counted exactly, with bounded errors, and with noise for ε = 1 in all."""
    scales = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
    points = [(scale, share_right(bounded_error(scale * sqrt(PEOPLE)))) for scale in scales]
    lines = [Line("bits found", points, "third", dots=True), Line("a guess", [(0.0, 0.5), (4.0, 0.5)], "cap")]
    title = "The share of secret bits that are found, over the error of the answers"
    figure = plot(
        title, lines, x="largest error of an answer, in units of √n", y="share right", floor=0.4, ceiling=1.03
    )
    return Outcome(findings(), figure)


def findings(private: Callable[[Floats], Floats] | None = None) -> tuple[Finding, ...]:
    """The share of bits that least squares finds."""
    root = sqrt(PEOPLE)
    exact, near = share_right(lambda counts: counts), share_right(bounded_error(root / 4))
    rounded = share_right(lambda counts: 5 * np.rint(counts / 5))
    ours, limit = share_right(private or noisy), exp(1) / (1 + exp(1))
    asked = f"{QUESTIONS} random counts about {PEOPLE} people"
    return (
        Finding(f"bits found from {asked}, exact", "all", f"{exact:.1%}", exact == 1),
        Finding("from counts rounded to fives", "nearly all", f"{rounded:.1%}", rounded >= 0.95),
        Finding(f"from counts with errors up to √n/4 = {root / 4:.1f}", "nearly all", f"{near:.1%}", near >= 0.95),
        Finding(
            "from counts that are 1-DP together",
            f"at most e/(1 + e) = {limit:.1%} on average; a guess has 50 %",
            f"{ours:.1%}",
            ours <= limit,
        ),
    )


def share_right(answer: Callable[[Floats], Floats]) -> float:
    """Ask, reconstruct, and count the bits that are right."""
    bits = integers(2, PEOPLE)
    matrix = integers(2, QUESTIONS * PEOPLE).reshape(QUESTIONS, PEOPLE).astype(np.float64)
    guess = reconstruct(matrix, answer(matrix @ bits), method="squares")
    return float(np.mean((guess > 0.5) == (bits == 1)))


def bounded_error(most: float) -> Callable[[Floats], Floats]:
    """Answers with an error that is uniform up to this much."""
    return lambda counts: counts + most * (2 * uniforms(len(counts)) - 1)


def noisy(counts: Floats) -> Floats:
    """All answers in one release of ε = 1: a person is in all of them."""
    sensitivity = matrix_sensitivity([[0, 1]] * len(counts), Unit(neighbors="replace_one"))
    return (
        laplace(epsilon=1, sensitivity=sensitivity).release(Exact(counts.astype(np.int64), sensitivity)).astype(float)
    )


CLAIM = Claim(
    name="reconstruction",
    source="000 §1",
    title="Many approximate counts give away everybody's secret",
    statement="From approximate answers (errors well below √n) to an almost linear number of random counting queries, "
    "nearly all of n secret bits can be reconstructed [DN03]; from private answers they cannot.",
    run=run,
)
