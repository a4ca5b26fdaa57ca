"""The task of a release: weighted marginals (`Goal`), a budget (`Brief`), methods, and their forecasts side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import combinations, pairwise
from math import inf, prod
from time import thread_time
from typing import overload

import numpy as np

from discreet.errors import BadQuery, TooLarge
from discreet.estimate.estimator import Estimator
from discreet.model.interface import Model
from discreet.model.mixture.ensemble import Tell
from discreet.numeric import Number, positive
from discreet.plan.plan import Procedure
from discreet.query.linear import Linear, Marginal
from discreet.query.product import column_of
from discreet.query.residual import axes_of
from discreet.query.workload import Workload
from discreet.schema.domain import Domain
from discreet.types import Columns, Ints, Numbers

# For each block of columns, the precision of each of its residuals: a tensor like that of the lattice's block.
Precisions = dict[Columns, Numbers]
# Marginals, questions, names of columns; or how much each of some columns matters.
Wanted = Workload[Marginal] | Workload[Linear] | Sequence[Marginal | Linear | Sequence[str]] | Mapping[Columns, float]

# More questions than this are not listed one by one.
MOST_GOAL_QUERIES = 1_000_000


@dataclass(frozen=True)
class Goal:
    """Marginals of a domain, each with a weight; the columns of each are sorted, and so are the marginals.

    The error of an answer is Σ weight · ‖answer − truth‖₁ over the number of rows; the weights add up to 1.
    """

    domain: Domain
    weights: tuple[tuple[Columns, float], ...]
    describe: str

    @cached_property
    def scopes(self) -> tuple[Columns, ...]:
        """The columns of each marginal."""
        return tuple(columns for columns, _ in self.weights)

    @cached_property
    def below(self) -> tuple[Columns, ...]:
        """The columns of each marginal and all their subsets but the empty one, fewest first: what may be measured."""
        found = {
            chosen for scope in self.scopes for size in range(1, len(scope) + 1) for chosen in combinations(scope, size)
        }
        return tuple(sorted(found, key=lambda each: (len(each), each)))

    @cached_property
    def informative(self) -> "Goal":
        """The same without columns of one value, which carry no information."""
        found: dict[Columns, float] = {}
        for columns, weight in self.weights:
            kept = tuple(name for name in columns if self.domain[name].size > 1)
            if kept:
                found[kept] = found.get(kept, 0.0) + weight
        whole = sum(found.values())
        weights = tuple((columns, found[columns] / whole) for columns in sorted(found))
        return self if weights == self.weights else Goal(self.domain, weights, self.describe)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All columns of the marginals, sorted."""
        return tuple(sorted({name for scope in self.scopes for name in scope}))

    def of_size(self, size: int) -> list[Columns]:
        """All sets of this many columns that are part of a marginal."""
        return [scope for scope in self.below if len(scope) == size]

    def freedom(self, columns: Columns) -> int:
        """The degrees of freedom of the residual of some columns: those that no fewer columns have."""
        return prod(self.domain[name].size - 1 for name in columns)

    def cells(self, columns: Columns) -> int:
        """The number of cells of the marginal of some columns."""
        return prod(self.domain[name].size for name in columns)

    def weights_at_depth(self, columns: int) -> dict[Columns, float]:
        """All sets of `columns` columns of the marginals, with the weight of each marginal split over its sets.

        Marginals of fewer columns are among them as they are.
        """
        found: dict[Columns, float] = {}
        for scope, weight in self.weights:
            chosen = list(combinations(scope, min(columns, len(scope))))
            for each in chosen:
                found[each] = found.get(each, 0.0) + weight / len(chosen)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ResidualWorkload:
    """A workload in terms of residuals: rows of answers, each with a weight, and the energies of their residuals.

    All residuals are in one list, block after block (`starts`; the last block ends at `size`), and within a block in
    the order of its tensor of parts. Entry i of the table says that the `answers[r]` answers of row r = `rows[i]` have
    together the energy `energies[i]` in the residual at `places[i]`.
    """

    domain: Domain
    starts: dict[Columns, int]
    size: int
    weights: Numbers
    answers: Numbers
    rows: Ints
    places: Ints
    energies: Numbers

    def demand(self, weights: Numbers) -> Numbers:
        """The factor of each residual's variance in the weighted sum of the variances of all answers.

        `weights` has a weight for each row. It is the v_V of allocate.md.
        """
        energies = self.energies * weights[self.rows]
        return np.bincount(self.places, weights=energies, minlength=self.size).astype(np.float64, copy=False)

    def variances(self, precision: Numbers) -> Numbers:
        """The summed variance of the answers of each row; infinite if a residual is unknown."""
        with np.errstate(divide="ignore"):
            inverse = 1 / precision
        energies = self.energies * inverse[self.places]
        return np.bincount(self.rows, weights=energies, minlength=len(self.weights)).astype(np.float64, copy=False)

    def split(self, numbers: Numbers) -> dict[Columns, Numbers]:
        """Numbers of all residuals as a tensor for each block."""
        ends = [*self.starts.values(), self.size]
        shapes = [_shape(self.domain, columns) for columns in self.starts]
        return {
            columns: numbers[start:end].reshape(shape)
            for columns, shape, (start, end) in zip(self.starts, shapes, pairwise(ends), strict=True)
        }

    def joined(self, blocks: dict[Columns, Numbers], otherwise: float = 0.0) -> Numbers:
        """The tensors of some blocks as numbers of all residuals; those of other blocks are `otherwise`."""
        numbers = np.full(self.size, otherwise)
        for columns, start in self.starts.items():
            found = blocks.get(columns)
            if found is not None:
                numbers[start : start + found.size] = found.ravel()
        return numbers


def goal_of(wanted: Wanted, domain: Domain) -> Goal:
    """A goal, from a workload, a list of marginals, questions or columns, or a weight for each of some columns.

    >>> from discreet.query.workload import marginals
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({name: Boolean() for name in ("old", "ill", "rich")})
    >>> goal_of(marginals(people, 2), people).weights[0]
    (('ill', 'old'), 0.3333333333333333)
    >>> goal_of({("rich", "old"): 3, ("ill",): 1}, people).weights
    ((('ill',), 0.25), (('old', 'rich'), 0.75))
    """
    listed, describe = _listed(wanted)
    weights: dict[Columns, float] = {}
    for columns, weight in listed:
        for name in columns:
            column_of(domain, name)
        weights[columns] = weights.get(columns, 0.0) + weight
    if not weights:
        raise BadQuery("the workload is empty; a release needs at least one marginal. Give some pairs of columns.")
    if all(domain[name].size == 1 for columns in weights for name in columns):
        raise BadQuery(
            "no column of the workload has two values; a release is for marginals with more than one cell. Ask for the "
            "number of rows: SELECT COUNT(*)."
        )
    whole = sum(weights.values())
    return Goal(domain, tuple((columns, weights[columns] / whole) for columns in sorted(weights)), describe)


def _listed(wanted: Wanted) -> tuple[list[tuple[Columns, float]], str]:
    if isinstance(wanted, Mapping):
        pairs = [
            (_scope(columns), float(positive("weight", weight, next_step="Leave out marginals of no weight.")))
            for columns, weight in wanted.items()
        ]
        return pairs, f"{len(pairs)} weighted marginals"
    if isinstance(wanted, Workload):
        if wanted.family is not None:
            return [((wanted.family[1],), 1.0)], wanted.describe
        if wanted.size > MOST_GOAL_QUERIES:
            raise BadQuery(
                f"the workload has {wanted.size} questions; the limit is {MOST_GOAL_QUERIES}. "
                "Ask for the marginals that contain them."
            )
        return [(_scope(each), 1.0) for each in wanted], wanted.describe
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise BadQuery(
            f"the workload is a {type(wanted).__name__}; it must be a workload, a list of marginals or of lists of "
            "columns, or a dict of their weights. Give one of these, for example a list of pairs of columns."
        )
    found = [(_scope(each), 1.0) for each in wanted]
    return found, f"{len(found)} {'marginal' if len(found) == 1 else 'marginals'}"


def _scope(one: Marginal | Linear | Sequence[str]) -> Columns:
    if isinstance(one, Marginal | Linear):
        return one.scope
    return Marginal(tuple(one)).scope


def _shape(domain: Domain, columns: Columns) -> tuple[int, ...]:
    """The shape of the tensor of a block's residuals."""
    return tuple(axis.parts - 1 for axis in axes_of(domain, columns))


AUTO = "auto"
# Of methods with about the same forecast, the one that is listed first is chosen: forecasts are not sharp.
PREFERENCE = ("mixture", "adaptive", "lattice", "direct", "mwem", "small_db")
# Forecasts within this factor of the best are about the same.
EQUAL_FORECASTS = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class Brief:
    """The goal of a release, what is known of the table, and a budget of `units`.

    Units are squared mu, or epsilon where delta is 0 (`known.accounting`). `asked` is set where the workload does not
    ask for all cells of the goal's marginals, but, say, for ranges.
    """

    known: Estimator
    goal: Goal
    units: Fraction
    asked: ResidualWorkload | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected error, time and memory of a method, from public facts alone.

    `error` is the mean L1 error of the goal's marginals, weighted, as a share of the rows; `seconds` are of one
    processor and `memory` is in bytes. A method that cannot be used has an infinite error, and `why_not` says why.
    """

    method: str
    error: float
    seconds: float
    memory: float
    why_not: str = ""

    @property
    def possible(self) -> bool:
        """Whether the method can be used."""
        return self.error < inf


@dataclass(frozen=True, slots=True)
class Method:
    """A way to make a release. `forecast` is given an approximate number of rows, and reads none of them."""

    name: str
    describe: str
    forecast: Callable[[Brief, float], Forecast]
    make: Callable[[Brief, Tell | None], Procedure[Model]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a release: seconds of one processor, and bytes."""

    seconds: float = inf
    memory: float = inf

    def keep(self, row: Forecast) -> bool:
        """Whether a forecast is within them."""
        return row.seconds <= self.seconds and row.memory <= self.memory

    def watch(self, tell: Tell | None) -> Tell | None:
        """Reports the same progress, and ends a fit when its time is over: it then returns the model it has.

        The clock starts with the first report of a fit, because the time of reading rows must not influence the model.
        """
        if self.seconds == inf:
            return tell
        begun: list[float] = []

        def report(done: float) -> bool | None:
            now = thread_time()
            if not begun:
                begun.append(now)
            goes_on = None if tell is None else tell(done)
            return goes_on if now - begun[0] < self.seconds else False

        return report

    def __str__(self) -> str:
        said = [f"{self.seconds:g} seconds"] if self.seconds < inf else []
        said += [bytes_text(self.memory)] if self.memory < inf else []
        return " and ".join(said) or "what a machine has"


NO_LIMITS = Limits()


def limits_of(seconds: Number | None, memory: Number | None) -> Limits:
    """The limits that were given; None is no limit."""
    return Limits(
        inf if seconds is None else float(positive("seconds", seconds, next_step="Leave it out for no limit.")),
        inf if memory is None else float(positive("memory", memory, next_step="Give bytes, say 2e9.")),
    )


@dataclass(frozen=True, repr=False)
class ReleasePlan(Sequence[Forecast]):
    """The forecasts of all methods for a goal, the best first. Nothing was read and nothing was spent.

    `rows` is the number of rows that the forecasts are for: the known estimate, or else a supposed number.
    """

    forecasts: tuple[Forecast, ...]
    goal: str
    rows: float
    supposed: bool
    limits: Limits = NO_LIMITS

    @property
    def best(self) -> Forecast:
        """The forecast of the method that `method="auto"` would take; raises TooLarge if no method is possible."""
        can = [row for row in self.forecasts if row.possible and self.limits.keep(row)]
        if can:
            equal = {row.method: row for row in can if row.error <= EQUAL_FORECASTS * can[0].error}
            return next(equal[method] for method in PREFERENCE if method in equal)
        raise TooLarge(
            f"no method can make this release within {self.limits}.\n{self}\n    Give more, fewer columns or "
            "smaller marginals."
        )

    def of(self, method: str) -> Forecast:
        """The forecast of one method."""
        return next(row for row in self.forecasts if row.method == method)

    @overload
    def __getitem__(self, index: int) -> Forecast: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Forecast]: ...
    def __getitem__(self, index: int | slice) -> Forecast | Sequence[Forecast]:
        return self.forecasts[index]

    def __len__(self) -> int:
        return len(self.forecasts)

    def __iter__(self) -> Iterator[Forecast]:
        return iter(self.forecasts)

    def __str__(self) -> str:
        """A table for people."""
        lines = [f"{'method':<10} {'error':>8} {'seconds':>8} {'memory':>9}"]
        for row in self.forecasts:
            if row.possible:
                late = "" if self.limits.keep(row) else "  beyond the limits"
                memory = bytes_text(row.memory)
                lines.append(f"{row.method:<10} {row.error:>8.3g} {row.seconds:>8.3g} {memory:>9}{late}")
            else:
                lines.append(f"{row.method:<10} {'–':>8} {'–':>8} {'–':>9}  {row.why_not}")
        how = "supposed: say about how many there are" if self.supposed else "as far as is known"
        lines.append(f"For {self.goal}; {self.rows:,.0f} rows, {how}. The error is the mean L1 distance of a marginal.")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def bytes_text(number: float) -> str:
    """An amount of memory for people."""
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"
