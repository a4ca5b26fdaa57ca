"""Allocation of precision: how much better each residual is measured, by water-filling.

A residual i is known with precision p_i and a unit of precision costs c_i. Two problems are solved here:

- `fill_to_budget`: the most that a budget B buys. Precisions rise to p' = max(p, t s), with shares s and the t at which
  Σ c (p' − p) = B. For s = √(a/c) this minimises Σ a/p', the variance of the answers.
- `fill_to_targets`: the least that the wanted variances v of several questions cost. Minimises Σ c (p' − p) subject to
  Σ a_q/p' ≤ v_q for every q; there is one multiplier for each question, and no closed form. For one question there is
  one, and the planner raises popular residuals further than that: `steps.fill_to_target`.

`fill_each` spends one amount on every residual by itself: nothing is traded between them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.types import Numbers

# Rounds of the search for multipliers, and the relative error at which it ends.
_ROUNDS, _TOLERANCE = 400, 1e-5
# However little of a variance multipliers can lower, they are not moved by more than a fiftieth power.
_LEAST_SHARE = 0.02
# Up to this number of entries a dense table of questions and residuals is fastest. Larger problems get fewer rounds.
MOST_DENSE, MOST_ROUNDS, LEAST_ROUNDS = 2**14, 2**22, 20


def water_level(
    shares: Numbers, price: Numbers, known: Numbers, budget: float, *, most: Any = np.inf, divisor: Any = 1.0
) -> float:
    """The t at which Σ price · w(t) spends the budget, where w(t) = (t · share − known)/divisor, within [0, most].

    Infinite if the most of everything costs less than the budget. Residuals without a share or a price, and those that
    are known exactly, take no part. What is spent is linear in t between the levels at which a residual begins to be
    bought and at which it has its most, so t is found without a search.

    >>> water_level(np.ones(3), np.ones(3), np.array([0.0, 1.0, 5.0]), 3.0)
    2.0
    >>> water_level(np.ones(2), np.ones(2), np.zeros(2), 3.0, most=1.0)
    inf
    """
    bought = (shares > 0) & (price > 0) & (known < np.inf)
    shares, price, known = shares[bought], price[bought], known[bought]
    most, divisor = (np.broadcast_to(each, bought.shape)[bought] for each in (most, divisor))
    if float(price @ most) <= budget:
        return float("inf")
    slope = price * shares / divisor
    levels = np.concatenate([known / shares, (most * divisor + known) / shares])
    order = np.argsort(levels, kind="stable")
    order = order[np.isfinite(levels[order])]
    levels = levels[order]
    slopes = np.maximum(np.cumsum(np.concatenate([slope, -slope])[order]), 0.0)
    spent = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(levels))])
    # Beyond the last level nothing more is bought, unless something has no most.
    last = min(int(np.searchsorted(spent, budget)), len(spent) - bool(np.isfinite(most).all())) - 1
    return float(levels[last] + (budget - spent[last]) / slopes[last]) if budget > 0 else 0.0


def fill_to_budget(
    shares: Numbers, price: Numbers, precision: Numbers, budget: float, *, most: Any = np.inf
) -> Numbers:
    """The precisions max(p, min(t · share, most)) with the one t that spends the budget.

    A residual that costs nothing stays as it is.

    >>> fill_to_budget(np.ones(2), np.ones(2), np.array([0.0, 3.0]), 2.0).tolist()
    [2.0, 3.0]
    """
    bought = (shares > 0) & (price > 0) & (precision < np.inf)
    # Infinity minus infinity is NaN; such a residual is not bought.
    with np.errstate(invalid="ignore"):
        level = water_level(shares, price, precision, budget, most=np.maximum(most - precision, 0.0))
        return np.where(bought, np.maximum(precision, np.minimum(level * shares, most)), precision)


def fill_each(price: Numbers, precision: Numbers, units: float, *, least_gain: float = 1.0) -> Numbers:
    """The precision that `units` buy of each residual by itself, where it is known less well.

    A residual that would gain less than the factor `least_gain` stays as it is.
    """
    wanted = np.maximum(precision, np.divide(units, price, out=np.zeros_like(price), where=price > 0))
    return np.where(wanted > least_gain * precision, wanted, precision)


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """The energies of many questions, each in few of all residuals: row after row, and where each row starts."""

    energies: Numbers
    places: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The question of each energy."""
        lengths = np.diff(self.starts, append=len(self.energies))
        return np.repeat(np.arange(len(self.starts)), lengths)

    def dense(self, residuals: int) -> Numbers:
        """A table with a row for each question."""
        table = np.zeros((len(self.starts), residuals))
        table[self.rows, self.places] = self.energies
        return table


# From multipliers: the precisions; of each question, variance over target, and the share of it that they can lower.
_Reached = Callable[[Numbers], tuple[Numbers, Numbers, Numbers]]


def fill_to_targets(
    energies: Numbers | Sparse, price: Numbers, precision: Numbers, targets: Sequence[float]
) -> Numbers:
    """The cheapest precisions at which every one of some questions meets its own target variance.

    Minimises Σ c (p' − p) subject to Σ a_q/p' ≤ target_q for each q. At the optimum p' = max(p, √(Σ_q λ_q a_q/c)) with
    multipliers λ that vanish for questions with room to spare; they are found by scaling each with the ratio of its
    question's variance to the target, and the result is scaled up so that all targets hold. Energies are a table with a
    row for each question, or `Sparse`: then time and memory are linear in those that are not 0.
    """
    aims = np.array(targets)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(energies, Sparse) and len(energies.starts) * len(price) > MOST_DENSE:
            rounds = max(LEAST_ROUNDS, min(_ROUNDS, MOST_ROUNDS // len(energies.energies)))
            return _search(*_sparse(energies, price, precision, aims), rounds)
        table = energies.dense(len(price)) if isinstance(energies, Sparse) else energies
        return _search(*_dense(table, price, precision, aims), _ROUNDS)


def _search(reached: _Reached, multipliers: Numbers, rounds: int) -> Numbers:
    """The precisions of the best multipliers found in some rounds; every target holds in any case."""
    multipliers = np.maximum(multipliers, 1e-300)
    for _ in range(rounds):
        wanted, ratio, share = reached(multipliers)
        idle = multipliers < 1e-12 * multipliers.max()
        if ratio.max() <= 1 + _TOLERANCE and np.all((ratio > 1 - 10 * _TOLERANCE) | idle):
            break
        multipliers = np.clip(multipliers * ratio ** (1 / share), 1e-300, 1e300)
    for _ in range(rounds):
        wanted, ratio, share = reached(multipliers)
        worst = int(ratio.argmax())
        if ratio[worst] <= 1:
            return wanted
        # One small factor for all, so that residuals that were not raised stay so, and a small top-up stays small.
        multipliers = multipliers * max(float(ratio[worst] ** (1 / share[worst])), 1 + 1e-9)
    # Twice the precision is half the variance, whatever the multipliers are.
    return np.asarray(wanted * max(1.0, float(ratio.max())))


def _dense(table: Numbers, price: Numbers, precision: Numbers, aims: Numbers) -> tuple[_Reached, Numbers]:
    """The function from multipliers to variances, and first multipliers, by tables of all questions and residuals."""
    scaled = np.where(price > 0, table / price, 0.0)

    def reached(multipliers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        wanted = np.maximum(precision, np.sqrt(multipliers @ scaled))
        parts = np.where(table > 0, table / wanted, 0.0)
        total = parts.sum(axis=1)
        share = np.where(wanted > precision, parts, 0.0).sum(axis=1) / np.maximum(total, 1e-300)
        return wanted, total / aims, np.maximum(share, _LEAST_SHARE)

    alone = np.array([float(np.sqrt(row * price).sum()) ** 2 for row in table])
    return reached, 1 / (aims * len(aims)) ** 2 * alone


def _sparse(energies: Sparse, price: Numbers, precision: Numbers, aims: Numbers) -> tuple[_Reached, Numbers]:
    """The same by the energies that are not 0."""
    parts, rows, places, starts = energies.energies, energies.rows, energies.places, energies.starts
    scaled = np.where(price[places] > 0, parts / price[places], 0.0)

    def reached(multipliers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        wanted = np.sqrt(np.bincount(places, weights=multipliers[rows] * scaled, minlength=len(price)))
        wanted = np.maximum(precision, wanted)
        each = np.where(parts > 0, parts / wanted[places], 0.0)
        total = np.add.reduceat(each, starts)
        lowered = np.add.reduceat(np.where(wanted > precision, 1.0, 0.0)[places] * each, starts)
        return wanted, total / aims, np.maximum(lowered / np.maximum(total, 1e-300), _LEAST_SHARE)

    alone = np.add.reduceat(np.sqrt(parts * price[places]), starts) ** 2
    return reached, alone / (aims * len(aims)) ** 2
