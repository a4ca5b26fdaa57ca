"""Conclusions with and without person i, for every event: 002 Theorem 3.1 and Exercise 3.2."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from math import log
from typing import Any

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.random import uniforms
from discreet.meaning import Worlds, possible_worlds, posteriors, worst_shift
from discreet.mechanism import laplace, noisy_max, randomized_response
from discreet.mechanism.protocol import Mechanism

TABLES = list(product((0, 1), repeat=3))
PRIORS = 150


def run() -> Outcome:
    """Three mechanisms on all tables of three people, every person, and the worst prior; random priors beside it."""
    return Outcome(findings())


def findings(count: Callable[..., Mechanism[Any]] = laplace) -> tuple[Finding, ...]:
    """The worst shift over people, for each mechanism; then random priors with dependent rows, and all events."""
    epsilon = Fraction(1, 2)
    cases: dict[str, tuple[Mechanism[Any], Callable[[tuple[int, ...]], Sequence[int]]]] = {
        "Laplace count": (count(epsilon=epsilon, sensitivity=1), lambda rows: [sum(rows)]),
        "randomized response": (randomized_response(epsilon=epsilon), tuple),
        "noisy max of two counts": (noisy_max(epsilon=epsilon, sensitivity=1), lambda rows: [sum(rows), 3 - sum(rows)]),
    }
    found = []
    for name, (mechanism, query) in cases.items():
        worlds = [possible_worlds(mechanism, TABLES, person=i, default=0, query=query) for i in range(3)]
        shifts = [worst_shift(each) for each in worlds]
        most = max(shift.reach.upper for shift in shifts)
        found.append(
            Finding(
                f"{name}, ε = 1/2: worst |ln p₋ᵢ/p| over all priors, outputs and i",
                "at most 2ε = 1",
                f"{most:.9g}, exactly",
                all(at_most(shift.reach, 1.0) for shift in shifts),
            )
        )
        if name == "Laplace count":
            found.append(random_priors(worlds[0]))
    return tuple(found)


def random_priors(worlds: Worlds) -> Finding:
    """Every event, for random priors in which the rows depend on each other."""
    events = list(chain.from_iterable(combinations(TABLES, size) for size in range(1, len(TABLES))))
    largest = 0.0
    for weights in uniforms(PRIORS, len(TABLES)) ** 6:
        prior = dict(zip(TABLES, (weights / weights.sum()).tolist(), strict=True))
        for outcome in worlds.outcomes:
            used, unused = posteriors(worlds, prior, outcome)
            ratios = [log(sum(used[x] for x in event) / sum(unused[x] for x in event)) for event in events]
            largest = max(largest, *map(abs, ratios))
    return Finding(
        f"the same for {PRIORS} random priors and all {len(events)} events E ⊂ {{0,1}}³",
        "at most 1",
        f"{largest:.4f}",
        0 < largest <= 1 + 1e-9,
    )


CLAIM = Claim(
    name="posterior-with-and-without",
    source="002 Thm. 3.1",
    title="Whatever they know, they conclude the same with my data and without",
    statement="If A is ε-DP then p₋ᵢ(· | a) ≈_{2ε} p(· | a): for every prior on tables, rows may depend on each other, "
    "every output a and every person i, all events.",
    run=run,
)
