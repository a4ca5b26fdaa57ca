"""The cost of taking part: the expected utility of a release, exactly."""

from collections.abc import Callable
from math import exp
from typing import Any

from discreet.mechanism.protocol import Law
from discreet.verify.divergence import epsilon


def expected_utility(law: Law, utility: Callable[[Any], float]) -> float:
    """E[u(A)]: the expected utility of a release with this law, for somebody with this `utility` of outcomes.

    >>> from discreet.mechanism import randomized_response
    >>> round(expected_utility(randomized_response(epsilon=1).law([1]), lambda reports: 100 * reports[0]), 1)
    73.1
    """
    return sum(float(chance.mid()) * utility(outcome) for outcome, chance in law.probabilities.items())


def least_share(with_row: Law, without: Law) -> float:
    """The smallest share of somebody's expected utility that taking part leaves, over all utilities ≥ 0: min P/Q.

    It is attained by a person who values only the outcome that taking part makes rarest. For e-DP it is at least e^−e.

    >>> from discreet.mechanism import laplace
    >>> count = laplace(epsilon=1, sensitivity=1)
    >>> round(least_share(count.law([4], beside=[[3]]), count.law([3], beside=[[4]])), 4)
    0.3679

    [000 §2]
    """
    return exp(-epsilon(without, with_row).upper)
