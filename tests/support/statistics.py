"""Does a sampler follow its law? A test with a proved false-alarm bound at every sample size.

The statistic is n·KL(observed ‖ expected), half of the G statistic. The usual chi-square table is an asymptotic
statement and says little about an event of probability 1e-9 when a cell expects ten draws. Instead we use

    Pr[n·KL ≥ t] ≤ e^−t (e·t/(k − 1))^(k − 1)    for t > k − 1,

which holds for every n and every law on k cells [R. Agrawal, Finite-sample concentration of the multinomial in relative
entropy, IEEE Trans. Inf. Theory 66 (2020), Thm. I.2]. Half of the false-alarm budget goes to it, half to the cells
so rare that one draw there is evidence enough. Pooling cells is a map of the outcomes, so it keeps the bound; it only
serves power.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import log
from typing import Any

import numpy as np
from scipy.stats import binom

FEWEST_EXPECTED = 10


def relative_entropy_bound(cells: int, false_alarm: float) -> float:
    """The t for which n·KL ≥ t has probability at most `false_alarm`, whatever the law on so many cells and whatever n.

    >>> round(relative_entropy_bound(2, 1e-9), 2)
    24.94
    """
    free = cells - 1
    if free == 0:
        return 0.0

    def excess(t: float) -> float:
        return -t + free * (1 + log(t / free)) - log(false_alarm)

    low, high = float(free), 2.0 * free + 10.0
    while excess(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def verdict(draws: Iterable[Any], probabilities: Mapping[Any, float], false_alarm: float = 1e-9) -> str:
    """Why the draws cannot have come from this law, or an empty string."""
    counts = _count(draws)
    n = sum(counts.values())
    rest = max(0.0, 1.0 - sum(probabilities.values()))
    rest = rest if rest > 1e-12 else 0.0  # the rounding of a sum of doubles is no outcome
    unlisted = sum(count for outcome, count in counts.items() if outcome not in probabilities)

    rare, rare_mass = _rare(probabilities, false_alarm / 2 / n)
    if n * (rare_mass + rest) <= false_alarm / 2:
        rare_mass += rest
        if unlisted:
            return f"{unlisted} of {n} draws are outcomes that the law does not have"
    seen = sum(counts[outcome] for outcome in rare)
    if seen:
        return f"{seen} of {n} draws are outcomes of total probability {rare_mass:.3g}"

    observed, expected = _pool(counts, probabilities, unlisted, rest, n)
    bound = relative_entropy_bound(len(expected), false_alarm / 2)
    entropy = sum(seen * log(seen / wanted) for seen, wanted in zip(observed, expected, strict=True) if seen)
    if entropy > bound:
        return f"n·KL is {entropy:.1f} over {len(expected)} cells and {n} draws; the bound is {bound:.1f}"
    return ""


def assert_follows(draws: Iterable[Any], probabilities: Mapping[Any, float], false_alarm: float = 1e-9) -> None:
    """Raise if the draws do not follow the law; a right sampler raises with probability at most `false_alarm`."""
    why = verdict(draws, probabilities, false_alarm)
    assert not why, why


def rejects(draws: Iterable[Any], probabilities: Mapping[Any, float], false_alarm: float = 1e-9) -> bool:
    """Whether `assert_follows` would raise: for power tests."""
    return bool(verdict(draws, probabilities, false_alarm))


def assert_rate_at_least(successes: int, trials: int, rate: float, false_alarm: float = 1e-9) -> None:
    """Raise if so few successes are incredible for a success probability of at least `rate` (exact binomial tail)."""
    tail = float(binom.cdf(successes, trials, rate))
    assert tail > false_alarm, f"{successes} of {trials} successes, promised a rate of {rate}: probability {tail:.3g}"


def _count(draws: Iterable[Any]) -> Counter[Hashable]:
    if isinstance(draws, np.ndarray) and draws.ndim == 1:
        values, times = np.unique(draws, return_counts=True)
        return Counter(dict(zip(values.tolist(), times.tolist(), strict=True)))
    return Counter(draws)


def _rare(probabilities: Mapping[Any, float], mass: float) -> tuple[set[Any], float]:
    """The least likely outcomes, as many as together have at most this mass."""
    rare: set[Any] = set()
    total = 0.0
    for outcome, probability in sorted(probabilities.items(), key=lambda item: item[1]):
        if total + probability > mass:
            break
        rare.add(outcome)
        total += probability
    return rare, total


def _pool(
    counts: Counter[Any], probabilities: Mapping[Any, float], unlisted: int, rest: float, n: int
) -> tuple[list[int], list[float]]:
    """Neighbouring outcomes together until each cell expects enough draws; what is not listed is the last outcome."""
    try:
        outcomes = sorted(probabilities)
    except TypeError:
        outcomes = list(probabilities)
    total = sum(probabilities.values()) + rest
    observed, expected = [0], [0.0]
    cells = [(counts[outcome], probabilities[outcome]) for outcome in outcomes]
    for seen, probability in [*cells, (unlisted, rest)]:
        if expected[-1] >= FEWEST_EXPECTED:
            observed.append(0)
            expected.append(0.0)
        observed[-1] += seen
        expected[-1] += n * probability / total
    if len(expected) > 1 and expected[-1] < FEWEST_EXPECTED:
        last_observed, last_expected = observed.pop(), expected.pop()
        observed[-1] += last_observed
        expected[-1] += last_expected
    return observed, expected
