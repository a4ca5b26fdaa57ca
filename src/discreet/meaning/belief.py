"""Beliefs after a release, with a person's row and without it: exactly, and under the worst prior.

Fix a release a. For a table x let r(x) = Pr[A(x) = a]/Pr[A(x without me) = a]. By Bayes' rule

    p(x | a)/p₋ᵢ(x | a) = r(x)/Σ p₋ᵢ(y | a) r(y),

which is largest for a prior that gives nearly all weight to the table with the smallest r, and very little to that with
the largest. So the worst prior moves a conclusion by the factor max r/min r, and no prior moves one further.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

from flint import arb

from discreet.errors import BadParameter
from discreet.mechanism.protocol import Law, Mechanism
from discreet.numeric import precision, probability, whole
from discreet.verify.divergence import DIVERGENCE_BITS, Interval, Span

# One row for each person, in order.
RowTuple = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Worlds:
    """The law of a release on every possible table: with a person's row, and with a default in its place."""

    with_row: Mapping[RowTuple, Law]
    without: Mapping[RowTuple, Law]

    @property
    def outcomes(self) -> tuple[Any, ...]:
        """All possible outcomes, on any table."""
        laws = [*self.with_row.values(), *self.without.values()]
        return tuple(dict.fromkeys(outcome for law in laws for outcome in law.probabilities))


@dataclass(frozen=True, slots=True)
class Shift:
    """The largest change of a conclusion, under the worst prior: the logarithm of the factor, and where it happens.

    After `outcome`, the table `more` is believed more with the person's row than without, and `less` is believed less.
    """

    reach: Interval
    outcome: Any
    more: RowTuple
    less: RowTuple

    def prior(self, share: float) -> dict[RowTuple, float]:
        """A prior that nearly attains it: this share to `more`, the rest to `less`; smaller shares come closer."""
        small = float(probability("share", share))
        return {self.more: small, self.less: 1 - small}


def possible_worlds(
    mechanism: Mechanism[Any],
    tables: Iterable[RowTuple],
    *,
    person: int,
    default: int,
    query: Callable[[RowTuple], Sequence[int]] = tuple,
) -> Worlds:
    """The exact laws of a mechanism on all these tables, with the row of `person` and with `default` in its place.

    `query` computes from a table the integers that the mechanism makes noisy.

    >>> from discreet.mechanism import randomized_response
    >>> possible_worlds(randomized_response(epsilon=1), [(0,), (1,)], person=0, default=0).outcomes
    ((0,), (1,))
    """
    every = list(tables)
    place = whole("person", person, least=0, most=min(map(len, every), default=1) - 1)
    removed = {rows: (*rows[:place], default, *rows[place + 1 :]) for rows in every}
    values = {rows: tuple(query(rows)) for rows in {*every, *removed.values()}}
    # Laws taken beside each other have the same outcomes.
    beside = sorted(set(values.values()))
    laws = {value: mechanism.law(value, beside=beside) for value in beside}
    return Worlds({rows: laws[values[rows]] for rows in every}, {rows: laws[values[removed[rows]]] for rows in every})


def posteriors(
    worlds: Worlds, prior: Mapping[RowTuple, float], outcome: Any
) -> tuple[dict[RowTuple, float], dict[RowTuple, float]]:
    """The posteriors of somebody with this prior after a release: if the person's row was used, and if it was not.

    >>> from discreet.mechanism import randomized_response
    >>> worlds = possible_worlds(randomized_response(epsilon=1), [(0,), (1,)], person=0, default=0)
    >>> used, unused = posteriors(worlds, {(0,): 0.5, (1,): 0.5}, (1,))
    >>> round(used[(1,)], 3), round(unused[(1,)], 3)
    (0.731, 0.5)

    [002, (4) and (5)]
    """
    return _bayes(worlds.with_row, prior, outcome), _bayes(worlds.without, prior, outcome)


def worst_shift(worlds: Worlds) -> Shift:
    """The largest factor, over all priors and releases, between the beliefs with a person's row and without.

    For an e-DP mechanism its logarithm is at most 2e. It is infinite where a release is possible with the row and
    impossible without it, or the other way round. Laws that leave outcomes out have no bound from above.

    >>> from itertools import product
    >>> from discreet.mechanism import laplace
    >>> tables, total = list(product((0, 1), repeat=2)), lambda rows: [sum(rows)]
    >>> worst_shift(possible_worlds(laplace(epsilon=1, sensitivity=1), tables, person=0, default=0, query=total))
    Shift(reach=Interval(lower=1.9999999999999998, upper=2.0000000000000004), outcome=(1,), more=(1, 0), less=(1, 1))

    [000 Prop. 6; 002 Thm. 3.1]; proof that no prior is worse: the head of this file
    """
    with precision(DIVERGENCE_BITS):
        complete = all(law.rest == 0 for law in (*worlds.with_row.values(), *worlds.without.values()))
        lower, upper, place = arb(0), arb(0), None
        for outcome in worlds.outcomes:
            ratios = {rows: _ratio(worlds, rows, outcome) for rows in worlds.with_row}
            known = {rows: ratio for rows, ratio in ratios.items() if ratio is not None}
            if not known:
                continue
            certain = next((rows for rows, (above, below) in known.items() if above == 0 or below == 0), None)
            if certain is not None:
                return Shift(Interval(inf, inf), outcome, certain, certain)
            more, less = (
                max(known, key=lambda rows: _middle(known[rows])),
                min(known, key=lambda rows: _middle(known[rows])),
            )
            factors = [above / below for above, below in known.values()]
            least = max(factors, key=lambda each: each.lower()).lower() / min(factors, key=lambda each: each.upper())
            most = max(factors, key=lambda each: each.upper()) / min(factors, key=lambda each: each.lower()).lower()
            if place is None or least.log().lower() > lower:
                place = outcome, more, less
            lower, upper = max(lower, least.log().lower()), max(upper, most.log().upper())
        if place is None:
            raise BadParameter("no release is possible on these tables; at least one must be. Give more tables.")
        return Shift(Span(lower, upper if complete else None).rounded(), *place)


def attained_shift(worlds: Worlds, prior: Mapping[RowTuple, float], outcome: Any) -> float:
    """The largest |ln p(x | a)/p₋ᵢ(x | a)| over all tables, for one prior and one release.

    >>> from discreet.mechanism import randomized_response
    >>> worlds = possible_worlds(randomized_response(epsilon=1), [(0,), (1,)], person=0, default=0)
    >>> round(attained_shift(worlds, {(0,): 0.999, (1,): 0.001}, (1,)), 3)   # of 1: no prior reaches 2 here
    0.998
    """
    used, unused = posteriors(worlds, prior, outcome)
    pairs = [(used[rows], unused[rows]) for rows in used if used[rows] or unused[rows]]
    return max((abs(log(one / other)) if one and other else inf) for one, other in pairs)


def _bayes(laws: Mapping[RowTuple, Law], prior: Mapping[RowTuple, float], outcome: Any) -> dict[RowTuple, float]:
    weights = {rows: weight * _chance(laws[rows], outcome) for rows, weight in prior.items()}
    total = sum(weights.values())
    if not total > 0:
        raise BadParameter(f"the release is {outcome!r}, which this prior says is impossible. Give another release.")
    return {rows: weight / total for rows, weight in weights.items()}


def _chance(law: Law, outcome: Any) -> float:
    listed = law.probabilities.get(outcome)
    return 0.0 if listed is None else float(listed.mid())


def _ratio(worlds: Worlds, rows: RowTuple, outcome: Any) -> tuple[arb, arb] | None:
    """Numerator and denominator of r(x); none where the release is possible in neither world."""
    above = worlds.with_row[rows].probabilities.get(outcome, arb(0))
    below = worlds.without[rows].probabilities.get(outcome, arb(0))
    return None if above == 0 and below == 0 else (above, below)


def _middle(ratio: tuple[arb, arb]) -> float:
    above, below = ratio
    return float((above / below).mid())
