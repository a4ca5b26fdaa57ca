"""What is said of the population: by which bound, and how far off; decided before a row is read. Proofs: transfer.md"""

from dataclasses import dataclass
from math import floor
from typing import Literal

from discreet.cache import memoize
from discreet.learn.design import ComparisonDesign
from discreet.learn.statistic import GRID
from discreet.learn.transfer import chernoff_interval, description_nats, deviation, jung, log_all_transcripts

PopulationBound = Literal["description length [DFHPRR15b]", "transfer theorem [JLNRSS20]"]

# Released values are multiples of one of these fractions. The finest is taken whose worst error is at most this factor
# above the least one.
_FINER = 1.03
_VALUES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
# The statistic as given and as rounded to the grid have means that differ by at most half a step.
_ROUNDING = 0.5 / GRID


@dataclass(frozen=True, slots=True)
class Population:
    """How far an answer may be from the population, for all answers together.

    `values` is the number of steps from 0 to 1 on the grid of released values. By description length the interval grows
    with what the analyst has learnt: `asked` answers, `hits` of them hits.
    """

    bound: PopulationBound
    rows: int
    queries: int
    checks: int
    values: int
    failure: float
    carried: float
    transfer: float
    rising: bool = False

    def told(self, steps: int) -> float:
        """A noisy sum as the value that is released: on the grid, from 0 to 1."""
        return min(max(floor(steps * self.values / (self.rows * GRID) + 0.5), 0), self.values) / self.values

    def interval(self, value: float, off: tuple[float, float], *, asked: int, hits: int) -> tuple[float, float]:
        """Where the mean of the population is, if that of the held rows is from value − off[0] to value + off[1]."""
        if self.bound == "transfer theorem [JLNRSS20]":
            low, high = value - self.transfer, value + self.transfer
        else:
            low, high = chernoff_interval(
                value - off[0], value + off[1], rows=self.rows, nats=self._nats(asked=asked, hits=hits)
            )
        return max(low - _ROUNDING, 0.0), min(high + _ROUNDING, 1.0)

    def half_width(self, off: float, *, asked: int, hits: int) -> float:
        """The largest error that an answer can have, whatever its value."""
        if self.bound == "transfer theorem [JLNRSS20]":
            return self.transfer
        return min(off + deviation(self.rows, self._nats(asked=asked, hits=hits)) + _ROUNDING, 1.0)

    @property
    def nats(self) -> float:
        """ln of the number of all transcripts, for sessions on the same rows that come after this one."""
        return self.carried + log_all_transcripts(self.queries, self.checks, self.values + 1, rising=self.rising)

    def _nats(self, *, asked: int, hits: int) -> float:
        return description_nats(
            asked=asked,
            hits=hits,
            queries=self.queries,
            checks=self.checks,
            values=self.values + 1,
            failure=self.failure,
            carried=self.carried,
            rising=self.rising,
        )


def population_of(
    design: ComparisonDesign, *, rows: int, failure: float, carried: float = 0.0, rising: bool = False
) -> Population:
    """The bound with the smallest worst error, and the grid of values with which it is so.

    `failure` is all that may fail: by description length half of it, the other half being that of the noise.
    """
    terms, whole = design.terms, rows * GRID
    passing, telling = design.pass_error / whole, design.value_error / whole

    def described(values: int) -> Population:
        return Population(
            "description length [DFHPRR15b]",
            rows,
            terms.queries,
            terms.checks,
            values,
            failure / 2,
            carried,
            0.0,
            rising,
        )

    def worst(values: int) -> float:
        off = max(passing, telling + 0.5 / values)
        return described(values).half_width(off, asked=terms.queries - 1, hits=min(terms.checks, terms.queries) - 1)

    least = min(map(worst, _VALUES))
    best = max(values for values in _VALUES if worst(values) <= _FINER * least)
    found = described(best)
    # What was paid for earlier sessions is not in this one's epsilon.
    if carried == 0 and (shift := _transfer(design, whole, failure, less_than=worst(best))) < worst(best):
        bound: PopulationBound = "transfer theorem [JLNRSS20]"
        return Population(bound, rows, terms.queries, terms.checks, _VALUES[-1], failure, 0.0, shift, rising)
    return found


def _transfer(design: ComparisonDesign, whole: int, failure: float, *, less_than: float) -> float:
    """What `jung` says, or 1 if it cannot say less than this."""

    @memoize(2**12)
    def accuracy(chance: float) -> float:
        passing, telling = design.errors(chance)
        return max(passing / whole, telling / whole + 0.5 / _VALUES[-1])

    epsilon, delta = float(design.terms.gate.epsilon), float(design.terms.gate.delta)
    # The theorem asks for more than this, whatever its free parameters are; the search takes seconds.
    if epsilon + accuracy(failure) >= less_than:
        return 1.0
    return min(jung(accuracy, epsilon=epsilon, delta=delta, failure=failure), 1.0)
