"""When a random measurement contradicts a claim: bounds that a true claim breaks with probability below 10⁻⁷ a line.

A claim has some ten lines at most, so that it fails falsely with probability below 10⁻⁶.
"""

from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

FALSE_ALARM = 1e-7


def often_enough(successes: int, trials: int, promised: float) -> bool:
    """Whether this number of successes is credible for a probability of at least `promised`: the exact binomial tail.

    >>> often_enough(95, 100, 0.95), often_enough(50, 100, 0.95)
    (True, False)
    """
    return bool(binom.cdf(successes, trials, promised) > FALSE_ALARM)


def seldom_enough(successes: int, trials: int, promised: float) -> bool:
    """Whether this number of successes is credible for a probability of at most `promised`.

    >>> seldom_enough(6, 100, 0.05), seldom_enough(50, 100, 0.05)
    (True, False)
    """
    return bool(binom.sf(successes - 1, trials, promised) > FALSE_ALARM)


def hoeffding_margin(trials: int, width: float = 1.0) -> float:
    """The largest deviation of the mean of `trials` independent numbers, each in a range of this width, from its
    expectation.

    >>> round(hoeffding_margin(10_000), 3)
    0.029
    """
    return width * sqrt(log(2 / FALSE_ALARM) / (2 * trials))


def median_margin(values: ArrayLike) -> tuple[float, float]:
    """An interval that holds the median of the law that independent values were drawn from, but for the false alarm.

    >>> low, high = median_margin(range(1000))
    >>> low < 500 < high
    True
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    out = int(binom.ppf(FALSE_ALARM / 2, ordered.size, 0.5))
    if out < 1:
        return float("-inf"), float("inf")
    return float(ordered[out - 1]), float(ordered[ordered.size - out])
