"""One round of private k-means, exactly, on small grids: 002 Proposition 2.1."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from discreet.accounting.event import Laplace
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.textbook.lecture_kmeans import lecture_round
from discreet.mechanism import laplace
from discreet.mechanism.protocol import Mechanism
from discreet.query.points import Body, Clusters
from discreet.schema.unit import Unit
from discreet.verify import check_pairs

EPSILON, ROUNDS, UNIT = Fraction(1), 6, Unit(neighbors="replace_one")
CASES = {
    "a line of 5 points, 2 centres": (Body((2,), "l1"), ((-1,), (2,))),
    "a line of 5 points, 3 centres": (Body((2,), "l1"), ((-2,), (0,), (2,))),
    "the plane, ‖x‖₁ ≤ 1, 2 centres": (Body((1, 1), "l1"), ((-1, 0), (1, 0))),
}

Round = Callable[[Clusters], Mechanism[Any]]


def run() -> Outcome:
    """All neighbouring tables of two rows on small grids."""
    return Outcome(findings(), note=NOTE)


NOTE = """A round releases k noisy counts and k noisy sums. Replacing a row changes two counts by 1 each and two sums by
at most ‖x‖₁ = 1 each. Some pair of tables does exactly that, so a round costs ε/T and no less; T rounds cost ε by
basic composition, as each is private for whatever centres came before."""


def _round(question: Clusters) -> Mechanism[Any]:
    return lecture_round(question, UNIT, epsilon=EPSILON, rounds=ROUNDS)


def findings(one_round: Round = _round) -> tuple[Finding, ...]:
    """The exact loss of a round on each grid, and the scale of its noise."""
    found = []
    for name, (body, centers) in CASES.items():
        question = Clusters(body, centers, weight=body.l1)
        mechanism = one_round(question)
        verdict = check_pairs(mechanism, _pairs(question))
        claimed = float(EPSILON) / ROUNDS
        found.append(
            Finding(
                f"loss of a round, {name}, ε = 1, T = {ROUNDS}",
                f"at most ε/T = {claimed:.6f}",
                f"{verdict.exact.upper:.6f}, exactly, over {verdict.pairs} pairs of tables",
                0.4 * claimed < verdict.exact.upper <= claimed * (1 + 2**-40),
            )
        )
    assert isinstance(mechanism.event, Laplace), "a round has Laplace noise"
    scale, wanted = mechanism.event.scale / body.l1, 4 * ROUNDS / EPSILON
    found.append(
        Finding(
            "scale of the noise, in rows and in units of ‖x‖₁ = 1",
            f"2/ε′ = 4T/ε = {float(wanted):g}",
            f"{float(scale):g}",
            scale == wanted,
        )
    )
    return tuple(found)


def _pairs(question: Clusters) -> list[tuple[list[int], list[int]]]:
    """What a round sees of every table of two rows, and of every table in which one of them is another."""
    reach = question.body.reach
    points = [
        point
        for point in product(*(range(-side, side + 1) for side in reach))
        if sum(map(abs, point)) <= question.body.l1
    ]
    found: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    for kept, (one, other) in product(points, combinations_with_replacement(points, 2)):
        seen = [question.measure(np.array([kept, row], dtype=np.float64).T).tolist() for row in (one, other)]
        # The loss depends on the difference only; one pair represents all that have it.
        away = tuple(a - b for a, b in zip(*seen, strict=True))
        if any(away):
            found.setdefault(min(away, tuple(-each for each in away)), (seen[0], seen[1]))
    return list(found.values())


def half_noise(question: Clusters) -> Mechanism[Any]:
    """A wrong round, for a test: the noise of counts alone, as if the sums were free."""
    return laplace(epsilon=EPSILON / ROUNDS, sensitivity=2 * question.body.l1)


CLAIM = Claim(
    name="private-k-means",
    source="002 Prop. 2.1",
    title="Private k-means is ε-DP, round by round",
    statement="Algorithm 2, T rounds of noisy counts and sums with noise Lap(2/ε′), ε′ = ε/(2T), is ε-DP: each round "
    "is ε/T-DP for all centres of the round before.",
    run=run,
)
