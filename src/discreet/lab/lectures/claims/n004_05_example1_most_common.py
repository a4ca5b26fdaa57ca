"""The most common of d conditions, by a noisy maximum: ε-DP though one person may move all the counts."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from discreet.lab.lectures.claim import Claim, Finding, Outcome
from discreet.lab.lectures.laws import at_most
from discreet.lab.lectures.worst import shown, worst_loss
from discreet.lab.random import uniforms
from discreet.mechanism import condition_effects, most_common
from discreet.mechanism.protocol import Law
from discreet.schema.unit import Unit
from discreet.verify import Interval

EPSILON, CONFIDENCE, PEOPLE = Fraction(1), 0.95, 200
CONDITIONS = ("flu", "cold", "asthma", "measles", "gout", "mumps")
UNIT = Unit(neighbors="replace_one")


def study() -> list[int]:
    """How many of two hundred made-up people have each condition; some have several."""
    has = uniforms(PEOPLE, len(CONDITIONS)) < np.linspace(0.4, 0.1, len(CONDITIONS))
    return [int(count) for count in has.sum(axis=0)]


def measure_loss(epsilon: Fraction) -> Interval:
    """The exact loss for three conditions, over all counts up to 2 and all ways in which a person can be exchanged."""
    effects = condition_effects(3).T
    moves = {tuple((a - b).tolist()) for a in effects for b in effects} - {(0, 0, 0)}
    starts = product(range(3), repeat=3)
    pairs = [(start, [s + m for s, m in zip(start, move, strict=True)]) for start in starts for move in moves]
    return worst_loss(most_common(CONDITIONS[:3], epsilon=epsilon, unit=UNIT), pairs)


def miss(counts: Sequence[int], law: Law, bound: float) -> float:
    """The exact probability that the chosen condition is rarer than the commonest by more than the bound."""
    chances = {name: float(chance.upper()) for name, chance in law.probabilities.items()}
    return sum(chances[name] for name, count in zip(CONDITIONS, counts, strict=True) if max(counts) - count > bound)


def judge(loss: Interval, missed: float, bound: float) -> tuple[Finding, ...]:
    """The loss is at most ε; the error is more than the bound seldom enough."""
    return (
        Finding("loss for three conditions", f"at most {EPSILON}", f"{shown(loss)}, exactly", at_most(loss, 1.0)),
        Finding(
            f"the chosen one is more than {bound:.1f} of {PEOPLE} people below the commonest",
            f"with probability at most {1 - CONFIDENCE:.2f}",
            f"{missed:.2g}, exactly, on a made-up study",
            missed <= 1 - CONFIDENCE,
        ),
    )


def run() -> Outcome:
    """A study of six conditions."""
    counts = study()
    choose = most_common(CONDITIONS, epsilon=EPSILON, unit=UNIT)
    bound = choose.error(CONFIDENCE)
    return Outcome(judge(measure_loss(EPSILON), miss(counts, choose.law(counts), bound), bound))


CLAIM = Claim(
    name="most-common-condition",
    source="004 Example 1",
    title="The most common medical condition",
    statement="Counts q(j; s) = #{i : j ∈ xᵢ} are 1-sensitive each, so a noisy maximum finds, with ε-DP, a condition "
    "that nearly as many people have as the commonest; that a person may have all d of them costs nothing.",
    run=run,
)
