"""Candidate events of an audit: outcomes that one table gives often and its neighbour rarely, on half the draws.

A labelling turns draws into small labels. Each candidate set of labels is a run in some order: of the outcomes by size
(tails), or of the labels by their likelihood ratio between the two tables.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from discreet.types import Ints

# The number of draws of a label before its likelihood ratio is used.
SHRINKAGE = 10.0
# The most sets tried in one order; the best of more would hardly be better.
_TRIED = 400
# The lowest exponent of a double, and room for one more.
_LOWEST = -1100


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Draws as labels from 0, in four parts: of one table and of the other, to choose by and to score by.

    `ordered` says that the labels follow the size of the outcomes.
    """

    name: str
    parts: tuple[Ints, Ints, Ints, Ints]
    ordered: bool

    def counts(self, part: int) -> Ints:
        """How often each label was drawn."""
        return np.bincount(self.parts[part], minlength=self.size)

    @property
    def size(self) -> int:
        """The number of labels."""
        return 1 + max(int(part.max(initial=0)) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A set of labels, and its bound on the draws by which it was chosen."""

    labelling: Labelling
    labels: NDArray[np.bool_]
    words: str
    promise: float

    def hits(self, part: int) -> int:
        """The number of draws of a part that are in it."""
        return int(self.labelling.counts(part)[self.labels].sum())


def labellings_of(draws: Sequence[Any]) -> list[Labelling]:
    """Labellings of four batches of draws: by whole outcomes, by single coordinates and, of doubles, by their bits.

    A label is a function of the outcome alone, so that a set chosen on one half is an event on the other.
    """
    if not all(isinstance(part, np.ndarray) for part in draws):
        return [_labelling("the outcome", [_named(draws)[place] for place in range(4)], ordered=False)]
    tables = [part.reshape(len(part), -1) for part in draws]
    width, found = tables[0].shape[1], []
    for place in range(width):
        columns = [table[:, place] for table in tables]
        name = "the outcome" if width == 1 else f"value {place + 1}"
        found.append(_labelling(name, columns, ordered=True))
        if columns[0].dtype.kind == "f":
            found.append(_labelling(f"the last bits of {name}", [grain(column) for column in columns], ordered=False))
    if width > 1:
        whole = [np.zeros(len(table), dtype=np.int64) for table in tables]
        for labelling in [each for each in found if each.ordered]:
            joined = [before * labelling.size + part for before, part in zip(whole, labelling.parts, strict=True)]
            whole = list(_labelling("", joined, ordered=False).parts)
        found.append(_labelling("all values together", whole, ordered=False))
    return found


def grain(values: NDArray[np.float64]) -> Ints:
    """Of each double its size and its last bit, both as powers of two.

    The double 1 + x has no bits below 2^−53, x itself has: so the last bits of a noisy value reveal the exact one.

    >>> (grain(np.array([0.75])) == grain(np.array([0.75 + 2.0**-50]))).tolist()
    [False]

    [Mir12, §4]
    """
    fractions, exponents = np.frexp(np.asarray(values, dtype=np.float64))
    digits = np.abs(fractions * 2.0**53).astype(np.int64)
    lowest = digits & -digits
    last = exponents - 53 + np.where(digits > 0, np.log2(np.maximum(lowest, 1)).astype(np.int64), 0)
    return np.asarray((exponents - _LOWEST) * 4096 + (last - _LOWEST), dtype=np.int64)


def best_event(labellings: Sequence[Labelling], *, one: int, other: int, delta: float, failure: float) -> Event:
    """The event with the largest bound on epsilon on the draws of the parts `one` and `other`."""
    candidates = [
        _best_run(labelling, order, words, one=one, other=other, delta=delta, failure=failure)
        for labelling in labellings
        for order, words in _orders(labelling, one, other)
    ]
    return max(candidates, key=lambda event: event.promise)


def bounds(
    inside: NDArray[np.int64], draws: int, beside: NDArray[np.int64], others: int, delta: float, failure: float
) -> NDArray[np.float64]:
    """ln((p − δ)/q) with p from below and q from above, by Clopper and Pearson; each fails with half of `failure`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = share_above(inside, draws, failure / 2), share_below(beside, others, failure / 2)
        found = np.log(np.maximum(low - delta, 0.0) / high)
    return np.asarray(np.maximum(np.nan_to_num(found, nan=0.0, neginf=0.0), 0.0))


def share_above(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """A lower confidence bound on a probability after this many successes; it fails with `failure` [CP34].

    >>> share_above([0, 70], 100, 0.025).round(3).tolist()
    [0.0, 0.6]
    """
    seen = np.asarray(successes)
    return np.where(seen > 0, beta.ppf(failure, np.maximum(seen, 1), trials - seen + 1), 0.0)


def share_below(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """An upper confidence bound on a probability after this many successes; it fails with `failure` [CP34].

    >>> share_below([70, 100], 100, 0.025).round(3).tolist()
    [0.788, 1.0]
    """
    seen = np.asarray(successes)
    return np.where(seen < trials, beta.isf(failure, seen + 1, np.maximum(trials - seen, 1)), 1.0)


def _orders(labelling: Labelling, one: int, other: int) -> list[tuple[Ints, str]]:
    seen, beside = labelling.counts(one), labelling.counts(other)
    rare = seen + beside < 2 * SHRINKAGE
    # A label that was drawn once has no meaningful likelihood ratio: rare labels are put together.
    pooled = (seen[rare].sum() + SHRINKAGE) / (beside[rare].sum() + SHRINKAGE)
    ratio = np.where(rare, pooled, (seen + SHRINKAGE) / (beside + SHRINKAGE))
    orders = [(np.argsort(-ratio, kind="stable"), f"{labelling.name}: likely ones")]
    if labelling.ordered:
        places = np.arange(labelling.size)
        orders += [(places, f"{labelling.name}: low ones"), (places[::-1], f"{labelling.name}: high ones")]
    return orders


def _best_run(
    labelling: Labelling, order: Ints, words: str, *, one: int, other: int, delta: float, failure: float
) -> Event:
    inside, beside = np.cumsum(labelling.counts(one)[order]), np.cumsum(labelling.counts(other)[order])
    ends = _ends(inside + beside)
    found = bounds(inside[ends], int(inside[-1]), beside[ends], int(beside[-1]), delta, failure)
    best = int(np.argmax(found))
    labels = np.zeros(labelling.size, dtype=np.bool_)
    labels[order[: ends[best] + 1]] = True
    return Event(labelling, labels, words, float(found[best]))


def _ends(totals: Ints) -> Ints:
    """The ends of candidate runs: all places if there are few labels, otherwise places with evenly spaced draws."""
    if len(totals) <= _TRIED:
        return np.arange(len(totals))
    shares = np.concatenate([np.geomspace(1e-6, 0.1, _TRIED // 4), np.linspace(0.1, 0.999, _TRIED)])
    return np.unique(np.minimum(np.searchsorted(totals, shares * totals[-1]), len(totals) - 1))


def _labelling(name: str, columns: Sequence[NDArray[Any]], *, ordered: bool) -> Labelling:
    _, labels = np.unique(np.concatenate(columns), return_inverse=True)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    one, other, third, fourth = (part.astype(np.int64) for part in np.split(labels.ravel(), ends))
    return Labelling(name, (one, other, third, fourth), ordered)


def _named(draws: Sequence[Any]) -> list[Ints]:
    names: dict[Hashable, int] = {}
    return [np.array([names.setdefault(_key(each), len(names)) for each in part], dtype=np.int64) for part in draws]


def _key(outcome: Any) -> Hashable:
    return tuple(outcome) if isinstance(outcome, (list, np.ndarray)) else outcome


Draw = Callable[[Any, int], Any]
