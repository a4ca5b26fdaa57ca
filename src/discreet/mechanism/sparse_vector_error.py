"""How likely a sparse vector fails one of many comparisons, from the exact tails of its discrete noise.

All comparisons of a run share the noise of its threshold; given that, they are independent. So the probability that at
least one of k goes wrong is at most Σ_z Pr[a = z] (1 − (1 − p(z))^k), with p(z) the tail of the noise of one comparison
and a the noise of the threshold: of several runs, that of the worst one, since how long a run lasts may depend on it.
It is summed here over the values of z, or over blocks of them with the worst end of each, which only makes it larger.
"""

from collections.abc import Callable
from math import ceil, exp, log

import numpy as np

from discreet.errors import BadParameter
from discreet.types import Numbers

# Blocks of values of the threshold's noise, and how many times its scale they reach; beyond lies less than 2^−57.
_BLOCKS, _REACH = 2048, 40
# Doubles are exact to 2^−52; thousands of them are added up.
_ROUNDING = 1.0 + 1e-9


def discrete_laplace_tail(least: Numbers | float, scale: float) -> Numbers:
    """Pr[X ≥ least] for discrete Laplace noise and whole numbers.

    >>> discrete_laplace_tail(np.array([-1.0, 0.0, 1.0]), 2.0).round(4).tolist()
    [0.771, 0.6225, 0.3775]
    """
    ratio = exp(-1.0 / scale)
    below = np.asarray(least, dtype=np.float64)
    distance = np.where(below >= 1, below, 1 - below)
    chance = np.exp(-distance / scale) / (1.0 + ratio)
    return np.where(below >= 1, chance, 1.0 - chance)


def pass_chance(*, scales: tuple[float, float], threshold: int, error: int, queries: int, runs: int) -> float:
    """At most: Pr[a model that is off by more than `error` passes at least one of these tests].

    A test of a model that is off by v passes if v + b < T + a; worst is v = error + 1 every time, behind the highest
    of the runs' thresholds.
    """
    first, second = scales
    return _joint(first, lambda z: discrete_laplace_tail(error + 2 - threshold - z, second), queries, runs, rising=True)


def alarm_chance(*, scales: tuple[float, float], threshold: int, off: int, queries: int, runs: int) -> float:
    """At most: Pr[a model that is off by at most `off` fails at least one of these tests], up or down."""
    first, second = scales

    def either_side(z: Numbers) -> Numbers:
        return np.minimum(
            discrete_laplace_tail(threshold + z - off, second) + discrete_laplace_tail(threshold + z + off, second), 1.0
        )

    return _joint(first, either_side, queries, runs, rising=False)


def _joint(scale: float, chance: Callable[[Numbers], Numbers], times: int, runs: int, *, rising: bool) -> float:
    """Σ_z Pr[a = z] (1 − (1 − chance(z))^times), with a the largest of several draws if the chance rises with z.

    If it falls, a is the smallest of them.
    """
    reach = ceil((_REACH + log(runs)) * scale) + 1
    width = ceil(reach / _BLOCKS)
    starts = np.arange(-reach, reach + 1, width, dtype=np.float64)
    edges = discrete_laplace_tail(np.append(starts, starts[-1] + width), scale)
    # Pr[largest < edge] = (1 − tail)^runs, Pr[smallest ≥ edge] = tail^runs.
    with np.errstate(divide="ignore"):
        mass = np.diff(np.exp(runs * np.log1p(-edges))) if rising else -np.diff(np.exp(runs * np.log(edges)))
        fails = -np.expm1(times * np.log1p(-chance(starts + width - 1 if rising else starts)))
    beyond = 2.0 * runs * float(discrete_laplace_tail(float(reach + 1), scale))
    return min(1.0, float(mass @ fails) * _ROUNDING + beyond)


def least_whole(holds: Callable[[int], bool], least: int = 0, *, most: int = 2**50) -> int:
    """The smallest whole number that satisfies a monotone condition.

    >>> least_whole(lambda n: n * n >= 1000)
    32
    """
    step, low = 1, least - 1
    while not holds(low + step):
        low, step = low + step, 2 * step
        if low > most:
            raise BadParameter(f"no number up to {most} is large enough. Give a larger epsilon, or fewer questions.")
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
