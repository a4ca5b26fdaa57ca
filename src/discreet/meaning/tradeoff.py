"""The best test of "were you in it?": the trade-off between false alarms and misses."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import NormalDist

from discreet.accounting.group import group_budget
from discreet.meaning.guarantee import best_power
from discreet.mechanism.protocol import Law
from discreet.numeric import Number, positive, probability, whole


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The trade-off of the best test between two laws: a convex polygon of (false alarms, misses) by its corners."""

    corners: tuple[tuple[float, float], ...]

    def misses(self, false_alarm: float) -> float:
        """The fewest misses at this rate of false alarms; between corners a coin decides which of two tests is run."""
        alarms = [alarm for alarm, _ in self.corners]
        place = min(max(bisect_right(alarms, false_alarm), 1), len(alarms) - 1)
        (left, high), (right, low) = self.corners[place - 1], self.corners[place]
        share = 1.0 if right == left else min(max((false_alarm - left) / (right - left), 0.0), 1.0)
        return high + share * (low - high)

    @property
    def advantage(self) -> float:
        """The largest difference of hits and false alarms: the total variation distance."""
        return max(1 - alarm - miss for alarm, miss in self.corners)


def promised_misses(*, epsilon: Number, delta: Number = 0, false_alarm: float, people: int = 1) -> float:
    """The fewest misses that (epsilon, delta)-DP leaves to any test of whether a group took part.

    max(0, 1 − δ − e^ε α, e^{−ε}(1 − δ − α)), at the ε and δ of the group.

    where α is `false_alarm`.

    >>> [round(promised_misses(epsilon=1, false_alarm=0.05, people=people), 3) for people in (1, 2, 3)]
    [0.864, 0.631, 0.047]

    [WZ10; DRS22, Prop. 2.5 and Thm. 2.14]
    """
    shared, spill = group_budget(epsilon=epsilon, delta=delta, people=people)
    return 1 - best_power(epsilon=float(shared), delta=float(spill), false_alarm=false_alarm)


def gaussian_misses(*, mu: Number, false_alarm: float, people: int = 1) -> float:
    """The fewest misses of any test between N(0, 1) and N(μ, 1): Φ(Φ⁻¹(1 − α) − kμ) for a group of k.

    where α is `false_alarm`, μ is `mu` and k is `people`.

    >>> round(gaussian_misses(mu=1, false_alarm=0.05), 3)
    0.74

    [DRS22, Def. 2.6 and Thm. 2.14]
    """
    distance = float(positive("mu", mu)) * whole("people", people, least=1)
    alarm = float(probability("false_alarm", false_alarm))
    return NormalDist().cdf(-NormalDist().inv_cdf(alarm) - distance)


def best_test(without: Law, with_row: Law) -> Tradeoff:
    """The most powerful tests between two laws: accuse where the likelihood ratio is largest (Neyman and Pearson).

    Outcomes that the laws do not list are counted for the tester.

    >>> from discreet.mechanism import laplace
    >>> count = laplace(epsilon=1, sensitivity=1)
    >>> test = best_test(count.law([3], beside=[[4]]), count.law([4], beside=[[3]]))
    >>> round(test.misses(0.05), 3), round(test.advantage, 3)
    (0.864, 0.462)
    """
    chances = {
        outcome: (_mass(without, outcome), _mass(with_row, outcome))
        for outcome in dict.fromkeys([*with_row.probabilities, *without.probabilities])
    }
    ranked = sorted(chances.values(), key=lambda pair: -(pair[1] / pair[0] if pair[0] else inf))
    alarm, missed = 0.0, 1.0 - float(with_row.rest.upper())
    corners = [(alarm, missed)]
    for innocent, guilty in ranked:
        alarm, missed = alarm + innocent, missed - guilty
        corners.append((min(alarm, 1.0), max(missed, 0.0)))
    return Tradeoff((*_straightened(corners), (1.0, 0.0)))


def _mass(law: Law, outcome: object) -> float:
    listed = law.probabilities.get(outcome)
    return 0.0 if listed is None else float(listed.mid())


def _straightened(corners: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without the points that lie on a line between their neighbours."""
    kept = [corners[0]]
    for (x, y), (later, lower) in pairwise(corners[1:]):
        left, high = kept[-1]
        if abs((x - left) * (lower - high) - (later - left) * (y - high)) > 1e-15:
            kept.append((x, y))
    return [*kept, corners[-1]]
