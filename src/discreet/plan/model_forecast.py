"""A forecast of what future questions will cost, and whether a model would be cheaper: arithmetic on public values.

A unit is the price of one direct answer with the wanted error, and all prices here are in units. The error of a model
on public questions like those that were asked predicts its error on those to come.
"""

from dataclasses import dataclass, field
from math import comb, expm1, log1p

import numpy as np

from discreet.model.interface import Model
from discreet.model.quasi_random import roots_of_primes
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.query.residual import axes_of
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# What a model pays for the number of rows, for each residual of one column, for each residual of two; then for the
# pairs that join, for each column about; and for the rest, selections and probes. Measured on 40 columns
# (bench/wide.py).
TOTAL_UNITS, SINGLE_UNITS, PAIR_UNITS = 16.0, 4.0, 1 / 10
JOINED, REST = 2.0, 90.0
# A model is built if the forecast says that it saves this factor times its price.
WORTH = 2.0
# A stream has shown its columns when this number of questions in a row brought no new one.
SETTLED = 6
# Questions on fewer columns than this are cheap for the lattice, and say nothing about a need for a model.
WIDE = 3


def lattice_units(columns: int, width: float, questions: float) -> float:
    """About what the lattice pays for random questions, each on `width` of `columns` two-valued columns.

    L(Q) = 4^−k (Σ_j √(C(k, j) N_j))², N_j = C(d, j) (1 − (1 − C(k, j)/C(d, j))^Q): the optimum when every residual that
    is needed is measured once, as well as all questions need; online, the cost is about a tenth higher.

    where d is `columns`, k is `width` and Q is `questions`.

    >>> round(lattice_units(40, 8, 1)), round(lattice_units(40, 8, 10**5), -2)
    (1, 6000.0)
    """
    whole = min(round(width), columns)
    if questions <= 0:
        return 0.0
    total = 0.0
    for size in range(whole + 1):
        mine, all_pieces = comb(whole, size), comb(columns, size)
        missed = questions * log1p(-mine / all_pieces) if mine < all_pieces else float("-inf")
        total += (mine * all_pieces * -expm1(missed)) ** 0.5
    return float(total**2 / 4**whole)


def model_units(columns: Columns, domain: Domain) -> float:
    """About what a model of some columns costs to build: every residual of one and of two of them, and what joins it.

    >>> from discreet.schema.column import Boolean
    >>> forty = Domain({f"b{i}": Boolean() for i in range(40)})
    >>> round(model_units(tuple(forty), forty))
    424
    """
    parts = [axis.parts - 1 for axis in axes_of(domain, columns)]
    pairs = (sum(parts) ** 2 - sum(part**2 for part in parts)) / 2
    return TOTAL_UNITS + SINGLE_UNITS * sum(parts) + PAIR_UNITS * pairs + JOINED * len(parts) + REST


@dataclass
class Stream:
    """What the questions so far say about those to come: how many columns each has, and which there are."""

    asked: int = 0
    widths: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    factors: dict[str, dict[Factor, None]] = field(default_factory=dict)
    since_new: int = 0

    def see(self, question: Linear) -> None:
        """Count a question that was not known; only wide ones are informative."""
        scope = question.scope
        if len(scope) < WIDE:
            return
        self.asked += 1
        self.widths += len(scope)
        new = [name for name in scope if name not in self.columns]
        self.since_new = 0 if new else self.since_new + 1
        for name in scope:
            self.columns[name] = self.columns.get(name, 0) + 1
        for each in question.products:
            for factor in each.factors:
                if len(factor.columns) == 1:
                    seen = self.factors.setdefault(factor.columns[0], {})
                    if len(seen) < 64:
                        seen[factor] = None

    @property
    def width(self) -> float:
        """How many columns a question has on average."""
        return self.widths / self.asked if self.asked else 0.0

    @property
    def settled(self) -> bool:
        """Whether the columns seem to be all."""
        return self.since_new >= SETTLED

    def pays(self, domain: Domain, *, to_come: int | None, spent: float) -> bool:
        """Whether a model is likely to be cheaper than the lattice.

        If the number of questions `to_come` is given: when the forecast for them exceeds twice the model's price.
        If not: once as much was `spent` as a model costs, because a long stream is likely to go on (ski rental).
        """
        if not self.settled:
            return False
        price = model_units(tuple(sorted(self.columns)), domain)
        if to_come is None:
            return spent >= price
        count = len(self.columns)
        ahead = lattice_units(count, self.width, self.asked + to_come) - lattice_units(count, self.width, self.asked)
        return ahead > WORTH * price


def probes(stream: Stream, columns: Columns, model: Model, count: int) -> tuple[Linear, ...]:
    """`count` conjunctions, each on as many columns as a question has on average, with weights that were asked for.

    A column without such weights is asked for its most common cell. Which columns go together follows
    from a sequence that fills their space evenly; it depends on nothing but the arguments.
    """
    width = min(max(1, round(stream.width)), len(columns))
    choices = [_choices(stream, name, model) for name in columns]
    spread = _spread(count, len(columns) + 1)
    found = []
    for row in spread:
        chosen = np.sort(np.argsort(row[:-1], kind="stable")[:width])
        turn = int(row[-1] * 2**20)
        factors = []
        for place in chosen.tolist():
            # The low bits of such a sequence hardly vary.
            turn = (turn * 1_103_515_245 + 12_345) % 2**31
            factors.append(choices[place][(turn >> 16) % len(choices[place])])
        found.append(Linear([Product(tuple(factors))]))
    return tuple(found)


def _choices(stream: Stream, name: str, model: Model) -> list[Factor]:
    seen = list(stream.factors.get(name, ()))
    if seen:
        return seen
    cells = model.marginal((name,))
    return [Factor((name,), (np.arange(cells.size) == int(np.argmax(cells))).astype(np.int64))]


def _spread(count: int, dimensions: int) -> Numbers:
    """Points that fill a cube evenly: multiples of the roots of primes, modulo 1."""
    points: Numbers = np.mod(np.outer(np.arange(1, count + 1), roots_of_primes(dimensions) % 1.0), 1.0)
    return points
