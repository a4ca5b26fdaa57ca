"""The two selection problems of the lectures: the most common condition, and the best price of a digital good."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import Sensitivity, scalar_sensitivity
from discreet.errors import BadParameter
from discreet.mechanism.calibration import opened, require_size
from discreet.mechanism.noisy_max import SelectionNoise, noisy_max, race_of
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import Number, whole
from discreet.schema.unit import Unit
from discreet.source.source import Exact

Name = TypeVar("Name", bound=Hashable)


def most_common(
    conditions: Sequence[Name], *, epsilon: Number, unit: Unit, noise: SelectionNoise = "exponential"
) -> Mechanism[Name]:
    """Choose a condition whose count of rows is nearly the largest.

    Releases noisy_max over the counts n_j = #{rows with condition j}. It is e-DP, though one row can have all the
    conditions and so move every count: only the largest single move matters, and for `add_remove` all move one way.

    where e is `epsilon`. The exact vector holds the counts (`condition_effects`).

    `error(confidence)` is in rows: a bound on the largest count minus the chosen one.

    >>> common = most_common(["flu", "cold", "asthma"], epsilon=1, unit=Unit())
    >>> common.event, round(common.error(0.95), 2)
    (Pure(epsilon=Fraction(1, 1)), 3.0)
    >>> common.law([10, 8, 2])
    Law(flu: 0.93218, cold: 0.0676601, asthma: 0.000160165)

    [004 Example 1]; proof: choose.md
    """
    return _named(conditions, "conditions", epsilon, scalar_sensitivity(0, 1, unit), noise)


def condition_effects(conditions: int) -> NDArray[np.int64]:
    """What a row adds to each condition's count: cell x is the set of the conditions whose bits are set in x.

    >>> condition_effects(2).tolist()
    [[0, 1, 0, 1], [0, 0, 1, 1]]
    """
    count = whole("conditions", conditions, least=1, most=20)
    return (np.arange(2**count) >> np.arange(count)[:, None]) & 1


def best_price(
    prices: Sequence[int], *, epsilon: Number, unit: Unit, noise: SelectionNoise = "exponential"
) -> Mechanism[int]:
    """Choose a price that would earn nearly as much as any other.

    Releases noisy_max over the revenues p·#{x ≥ p}, in cents. It is e-DP.

    where e is `epsilon`, p runs over `prices` in whole cents and x over what each row would pay. The exact vector holds
    the revenues (`price_effects`); a row moves one by at most the highest price.

    `error(confidence)` is in cents: a bound on the best revenue minus the chosen one.

    >>> price = best_price(range(1, 100), epsilon=1, unit=Unit())
    >>> price.event, round(price.error(0.95))
    (Pure(epsilon=Fraction(1, 1)), 682)

    [004 Example 2]; proof: choose.md
    """
    cents = [whole("price", price, least=1, next_step="Give prices in whole cents.") for price in prices]
    return _named(cents, "prices", epsilon, scalar_sensitivity(0, max(cents, default=1), unit), noise)


def price_effects(prices: Sequence[int], willing: Sequence[int]) -> NDArray[np.int64]:
    """What a row adds to the revenue at each price: cell x is a person who would pay `willing[x]` cents.

    >>> price_effects([1, 2], willing=[0, 1, 2]).tolist()
    [[0, 1, 1], [0, 0, 2]]
    """
    asked = np.array(prices, dtype=np.int64)[:, None]
    return asked * (np.array(willing, dtype=np.int64) >= asked)


def _named(
    names: Sequence[Name], what: str, epsilon: Number, sensitivity: Sensitivity, noise: SelectionNoise
) -> Mechanism[Name]:
    if not names or len(set(names)) < len(names):
        raise BadParameter(f"{what} lists {len(names)}; it must list at least one, and all different. Give each once.")
    choose = noisy_max(epsilon=epsilon, sensitivity=sensitivity, noise=noise)
    race = race_of(noise, epsilon=epsilon, sensitivity=sensitivity)

    def release(exact: Exact) -> Name:
        require_size(exact, len(names), len(names), what=what)
        return names[race(opened(exact, sensitivity, "linf"))]

    def error(confidence: Number) -> float:
        return choose.error(confidence, candidates=len(names))

    def law(scores: Sequence[int], beside: Sequence[Sequence[int]] = ()) -> Law:
        plain = choose.law(scores)
        return Law({names[place]: mass for place, mass in plain.probabilities.items()}, plain.rest)

    return Mechanism(choose.event, release, error, law)
