"""Two harmless counts, one secret: 000 §1, Matt the Belieber."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.accounting.sensitivity import scalar_sensitivity
from discreet.lab.lectures.chance import often_enough, seldom_enough
from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.random import integers, truths
from discreet.mechanism import laplace
from discreet.schema.unit import Unit
from discreet.source.source import Exact
from discreet.verify.divergence import divergence

PEOPLE, TRIALS, EPSILON = 500, 4000, Fraction(1)
ONE = scalar_sensitivity(0, 1, Unit(neighbors="replace_one"))

Answer = Callable[[int], int]


def run() -> Outcome:
    """Ask both counts of many random tables, exactly and with noise; Matt is a fan in half of them."""
    return Outcome(findings(lambda count: count, noisy), note=NOTE)


NOTE = """The attacker says "fan" if the difference of the two answers is at least 1. The best test between the noisy
answers about a table with Matt as a fan and one with Matt as none is right with probability (1 + TV)/2, where TV is the
total variation distance of their exact laws; any other is right less often."""


def findings(exact: Answer, private: Answer) -> tuple[Finding, ...]:
    """How often the difference reveals who is a fan, from exact answers and from private ones."""
    limit = (1 + _distance(EPSILON)) / 2
    certain, guessed = hits(exact), hits(private)
    return (
        Finding("right about Matt, from exact counts", "always", f"{certain:,} of {TRIALS:,}", certain == TRIALS),
        Finding(
            f"right about Matt, from counts that are {float(EPSILON):g}-DP together",
            f"at most {limit:.1%} in the long run",
            f"{guessed / TRIALS:.1%} of {TRIALS:,}",
            seldom_enough(guessed, TRIALS, limit),
        ),
        Finding(
            "and still better than a coin",
            "more than 50 %",
            f"{guessed / TRIALS:.1%}",
            often_enough(guessed, TRIALS, 0.5),
        ),
    )


def hits(answer: Answer) -> int:
    """The number of tables in which the difference of two answers reveals whether Matt is a fan."""
    fans, matt = integers(PEOPLE, TRIALS).tolist(), truths(0.5, TRIALS).tolist()
    return sum(
        (answer(others + is_fan) - answer(others) >= 1) == is_fan for others, is_fan in zip(fans, matt, strict=True)
    )


def noisy(count: int) -> int:
    """One of two counts that share the budget."""
    half = laplace(epsilon=EPSILON / 2, sensitivity=ONE)
    return int(half.release(Exact(np.array([count]), ONE))[0])


def _distance(epsilon: Fraction) -> float:
    """The total variation distance between the two answers if Matt is a fan and if not: only the first count moves."""
    count = laplace(epsilon=epsilon / 2, sensitivity=ONE)
    return divergence(count.law([1], beside=[[0]]), count.law([0], beside=[[1]]), 0).upper


CLAIM = Claim(
    name="differencing",
    source="000 §1",
    title="Two harmless counts reveal whether Matt is a fan",
    statement="How many are Justin Bieber fans? How many are fans and not named Matt Weinberg? The difference of two "
    "exact answers reveals whether Matt is one; private answers hardly do.",
    run=run,
)
