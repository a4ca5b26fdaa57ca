"""Posterior inference on tiny tables: all conclusions from a release, exactly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, log
from typing import Any

from discreet.errors import BadParameter

Row = int
Table = tuple[Row, ...]
# The law of a release: from a table to the probability of each outcome.
Released = Callable[[Table], Mapping[Any, float]]


@dataclass(frozen=True, slots=True)
class Belief:
    """What changes for one person: the largest factors over all outcomes that can happen.

    odds         of any two values of the person's row, to somebody who knows all the other rows
    conclusions  between the conclusions with the person's row and with another row in its place
    sure         the largest posterior probability of one value of the row, for somebody who knew all other rows
    """

    odds: float
    conclusions: float
    sure: float


def tables(rows: int, values: Sequence[Row] = (0, 1)) -> list[Table]:
    """Every table of this many rows.

    >>> tables(2)
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return list(product(values, repeat=rows))


def released(mechanism: Any, query: Callable[[Table], Sequence[int]], rows: int) -> Released:
    """The law of a mechanism on every small table, with one list of outcomes for all of them.

    >>> from discreet.mechanism import laplace
    >>> counted = released(laplace(epsilon=1, sensitivity=1), lambda table: [sum(table)], rows=2)
    >>> {outcome: round(chance, 3) for outcome, chance in counted((0, 1)).items()}
    {(0,): 0.269, (1,): 0.462, (2,): 0.269}
    """
    values = {table: tuple(query(table)) for table in tables(rows)}
    beside = sorted(set(values.values()))
    laws = {value: mechanism.law(value, beside=beside).probabilities for value in beside}
    plain = {value: {out: float(mass.mid()) for out, mass in law.items()} for value, law in laws.items()}
    return lambda table: plain[values[table]]


def without_noise(query: Callable[[Table], Any]) -> Released:
    """A release without noise: the exact answer, or a rounded one.

    >>> without_noise(sum)((0, 1))
    {1: 1.0}
    """
    return lambda table: {query(table): 1.0}


def posterior(prior: Mapping[Table, float], release: Released, outcome: Any) -> dict[Table, float]:
    """Bayes: how likely each table is to somebody with this prior who has seen this outcome.

    >>> posterior({(0,): 0.5, (1,): 0.5}, without_noise(sum), 1)
    {(0,): 0.0, (1,): 1.0}
    """
    joint = {table: chance * release(table).get(outcome, 0.0) for table, chance in prior.items()}
    total = sum(joint.values())
    if total == 0:
        raise BadParameter(f"the outcome {outcome!r} cannot happen under this prior. Take one that can.")
    return {table: chance / total for table, chance in joint.items()}


def belief(prior: Mapping[Table, float], release: Released, *, person: int = 0, instead: Row = 0) -> Belief:
    """The largest factors by which a release changes beliefs about one person.

    For an ε-DP release the odds move by e^ε at most and, for every prior, each conclusion by e^{2ε} at most:
    "conclusions" compares the posterior with the one after a release of the table in which the person's row is
    `instead`. An exact answer has no such bound.

    >>> from discreet.mechanism import laplace
    >>> prior = {table: 1 / 8 for table in tables(3)}
    >>> noisy = belief(prior, released(laplace(epsilon=1, sensitivity=1), lambda table: [sum(table)], rows=3))
    >>> round(noisy.odds, 3), noisy.conclusions < 7.39, belief(prior, without_noise(sum)).odds
    (2.718, True, inf)

    [000 Prop. 6; 002 Thm. 3.1]
    """
    known = {table: release(table) for table in prior}
    without = {table: release(_put(table, person, instead)) for table in prior}
    outcomes = {outcome for law in (*known.values(), *without.values()) for outcome in law}
    odds, conclusions, sure = 1.0, 1.0, 0.0
    for outcome in outcomes:
        chances = {table: law.get(outcome, 0.0) for table, law in known.items()}
        others = {table: law.get(outcome, 0.0) for table, law in without.items()}
        for alike in _alike(prior, person):
            moved = [_factor(chances[one], chances[other]) for one in alike for other in alike]
            odds = max(odds, *moved)
            total = sum(prior[table] * chances[table] for table in alike)
            if total > 0:
                sure = max(sure, *(prior[table] * chances[table] / total for table in alike))
        seen = sum(prior[table] * chances[table] for table in prior)
        thought = sum(prior[table] * others[table] for table in prior)
        if seen > 0 and thought > 0:
            for table in prior:
                moved = [_factor(chances[table] / seen, others[table] / thought)] if prior[table] else [1.0]
                conclusions = max(conclusions, *moved, *(1 / each if each else inf for each in moved))
        elif seen != thought:
            conclusions = inf
    return Belief(odds, conclusions, sure)


def loss_allowed(factor: float, epsilon: float, times: int = 1) -> bool:
    """Whether a factor is within e^{times·epsilon}, but for the rounding of doubles."""
    return factor != inf and log(factor) <= times * epsilon * (1 + 1e-9)


def _put(table: Table, person: int, value: Row) -> Table:
    return (*table[:person], value, *table[person + 1 :])


def _alike(prior: Mapping[Table, float], person: int) -> list[list[Table]]:
    """The tables that agree on everybody else."""
    groups: dict[Table, list[Table]] = {}
    for table, chance in prior.items():
        if chance > 0:
            groups.setdefault((*table[:person], *table[person + 1 :]), []).append(table)
    return list(groups.values())


def _factor(one: float, other: float) -> float:
    if one == other:
        return 1.0
    return inf if other == 0 else one / other


def fair_prior(rows: int) -> dict[Table, float]:
    """Every table equally likely.

    >>> fair_prior(1)
    {(0,): 0.5, (1,): 0.5}
    """
    every = tables(rows)
    return {table: float(Fraction(1, len(every))) for table in every}


def alike_prior(rows: int, *, alike: float = 0.9) -> dict[Table, float]:
    """A prior that knows a fact about people in general: with probability `alike` all rows are the same.

    >>> alike_prior(2, alike=0.8)[0, 0]
    0.45
    """
    every = tables(rows)
    return {table: (1 - alike) / len(every) + (alike / 2 if len(set(table)) == 1 else 0.0) for table in every}
