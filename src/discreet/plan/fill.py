"""How much more to learn of each piece, so that questions are answered well enough at the least price."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.known.reading import Numbers

# Steps and exactness of the search for joint prices.
_ROUNDS, _EXACT = 400, 1e-5
# However little of a variance multipliers can lower, they are not moved by more than a fiftieth power.
_LEAST_SHARE = 0.02
# Up to so many numbers a table of all questions and pieces is the fastest; the rounds over more entries are fewer.
MOST_DENSE, MOST_ROUNDS, LEAST_ROUNDS = 2**14, 2**22, 20


def fill(energies: Numbers, price: Numbers, precision: Numbers, uses: Numbers, target: float) -> Numbers:
    """The precisions at which Σ energy/precision meets the target variance, at a small price.

    p' = max(p, k √((1 + uses) a/c)) with the one k that meets the target: for uses 0 this is the cheapest way (water
    filling: the square root of energy over price). Pieces that many questions have paid for are raised further than
    this question needs; it is a little dearer now, and far cheaper for the questions to come.

    where a is `energies`, c is `price`, p is `precision`.

    >>> fill(np.array([1.0, 4.0]), np.ones(2), np.zeros(2), np.zeros(2), target=1.0)
    array([3., 6.])
    """
    raised = (energies > 0) & (precision < np.inf)
    shares = np.sqrt((1 + uses) * energies / np.where(price > 0, price, np.inf))
    # The variance that a raised piece leaves at k = 1.
    left = np.divide(energies, shares, out=np.zeros_like(energies), where=shares > 0)
    result = precision.copy()
    while raised.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            fixed = float(np.sum(np.where(raised | (energies == 0), 0.0, energies / precision)))
        factor = float(left[raised].sum()) / (target - fixed)
        wanted = factor * shares
        enough = raised & (wanted <= precision)
        if not enough.any():
            result[raised] = wanted[raised]
            return result
        raised &= ~enough
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """The energies of many questions, each in few of all pieces: one question after the other, and where it starts."""

    energies: Numbers
    places: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def rows(self) -> NDArray[np.int64]:
        """The question of each energy."""
        lengths = np.diff(self.starts, append=len(self.energies))
        return np.repeat(np.arange(len(self.starts)), lengths)

    def dense(self, pieces: int) -> Numbers:
        """A table with a row for each question."""
        table = np.zeros((len(self.starts), pieces))
        table[self.rows, self.places] = self.energies
        return table


def fill_many(energies: Sparse, price: Numbers, precision: Numbers, targets: Sequence[float]) -> Numbers:
    """What `fill_jointly` finds, in time and memory linear in the energies that are not 0.

    A search for the multipliers that takes too long ends early: every target holds all the same, for a little more.
    """
    if len(energies.starts) * len(price) <= MOST_DENSE:
        return fill_jointly(energies.dense(len(price)), price, precision, targets)
    aims, rows, places, starts = np.array(targets), energies.rows, energies.places, energies.starts
    parts = energies.energies
    rounds = max(LEAST_ROUNDS, min(_ROUNDS, MOST_ROUNDS // len(parts)))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(price[places] > 0, parts / price[places], 0.0)

        def reached(multipliers: Numbers) -> tuple[Numbers, Numbers, Numbers]:
            wanted = np.sqrt(np.bincount(places, weights=multipliers[rows] * scaled, minlength=len(price)))
            wanted = np.maximum(precision, wanted)
            each = np.where(parts > 0, parts / wanted[places], 0.0)
            total = np.add.reduceat(each, starts)
            lowered = np.add.reduceat(np.where(wanted > precision, 1.0, 0.0)[places] * each, starts)
            return wanted, total / aims, np.maximum(lowered / np.maximum(total, 1e-300), _LEAST_SHARE)

        alone = np.add.reduceat(np.sqrt(parts * price[places]), starts) ** 2
        multipliers = np.maximum(alone / (aims * len(aims)) ** 2, 1e-300)
        for _ in range(rounds):
            wanted, ratio, share = reached(multipliers)
            idle = multipliers < 1e-12 * multipliers.max()
            if ratio.max() <= 1 + _EXACT and np.all((ratio > 1 - 10 * _EXACT) | idle):
                break
            multipliers = np.clip(multipliers * ratio ** (1 / share), 1e-300, 1e300)
        for _ in range(rounds):
            wanted, ratio, share = reached(multipliers)
            worst = int(ratio.argmax())
            if ratio[worst] <= 1:
                return wanted
            multipliers = multipliers * max(float(ratio[worst] ** (1 / share[worst])), 1 + 1e-9)
    # Twice the precision is half the variance, whatever the multipliers are.
    return np.asarray(wanted * max(1.0, float(ratio.max())))


def fill_jointly(
    energies: Sequence[Numbers] | Numbers, price: Numbers, precision: Numbers, targets: Sequence[float]
) -> Numbers:
    """The cheapest precisions at which every one of some questions meets its own target variance.

    Minimises Σ c (p' − p) subject to Σ a_q/p' ≤ target_q for each q. At the optimum p' = max(p, √(Σ_q λ_q a_q/c)) with
    multipliers λ that vanish for questions with room to spare; they are found by scaling each with how far its question
    is from its target, and the result is scaled up so that all targets hold.
    """
    table, aims = np.array(energies), np.array(targets)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(price > 0, table / price, 0.0)
        multipliers = 1 / (aims * len(aims)) ** 2 * np.array([float(np.sqrt(a * price).sum()) ** 2 for a in table])
        multipliers = np.maximum(multipliers, 1e-300)
        for _ in range(_ROUNDS):
            wanted, ratio, share = _reached(table, aims, precision, scaled, multipliers)
            idle = multipliers < 1e-12 * multipliers.max()
            if ratio.max() <= 1 + _EXACT and np.all((ratio > 1 - 10 * _EXACT) | idle):
                break
            multipliers = np.clip(multipliers * ratio ** (1 / share), 1e-300, 1e300)
        for _ in range(_ROUNDS):
            wanted, ratio, share = _reached(table, aims, precision, scaled, multipliers)
            worst = int(ratio.argmax())
            if ratio[worst] <= 1:
                break
            # All at once and a little, so that what was not raised is not raised now: a small top-up stays small.
            multipliers = multipliers * max(float(ratio[worst] ** (1 / share[worst])), 1 + 1e-9)
    return wanted


def _reached(
    table: Numbers, aims: Numbers, precision: Numbers, scaled: Numbers, multipliers: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """The precisions of some multipliers; of each question, variance over target, and the share that they can lower."""
    wanted = np.maximum(precision, np.sqrt(multipliers @ scaled))
    parts = np.where(table > 0, table / wanted, 0.0)
    total = parts.sum(axis=1)
    share = np.where(wanted > precision, parts, 0.0).sum(axis=1) / np.maximum(total, 1e-300)
    return wanted, total / aims, np.maximum(share, _LEAST_SHARE)
