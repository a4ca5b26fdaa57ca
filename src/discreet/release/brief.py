"""A release as a task: what a method is given, what is forecast of it, and how methods compare."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from math import inf
from time import thread_time
from typing import overload

from discreet.errors import TooLarge
from discreet.known.known import Known
from discreet.model.ensemble import Tell
from discreet.model.protocol import Model
from discreet.parameter import Number, positive
from discreet.plan.request import Procedure
from discreet.release.goal import Asked, Goal

AUTO = "auto"
# Of methods with about the same forecast, the one that is listed first is chosen: forecasts are not sharp.
PREFERENCE = ("mixture", "adaptive", "lattice", "direct", "mwem", "small_db")
# Forecasts within this factor of the best are about the same.
ABOUT_THE_SAME = 1.1


@dataclass(frozen=True, slots=True, eq=False)
class Brief:
    """The goal of a release, what is known of the table, and a budget of `units`.

    Units are squared mu, or epsilon where delta is 0 (`known.accounting`). `asked` is set where the workload does not
    ask for all cells of the goal's marginals, but, say, for ranges.
    """

    known: Known
    goal: Goal
    units: Fraction
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a method would do, from public facts alone.

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
    """A way to make a release. `forecast` is given the number of rows, about, and reads none of them."""

    name: str
    describe: str
    forecast: Callable[[Brief, float], Forecast]
    make: Callable[[Brief, Tell | None], Procedure[Model]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a release may take: seconds of one processor, and bytes."""

    seconds: float = inf
    memory: float = inf

    def keep(self, row: Forecast) -> bool:
        """Whether a forecast is within them."""
        return row.seconds <= self.seconds and row.memory <= self.memory

    def watch(self, tell: Tell | None) -> Tell | None:
        """Reports the same progress, and ends a fit when its time is over: it then returns what it has.

        The clock starts with the first report of a fit: how long rows are read must not decide what is made of them.
        """
        if self.seconds == inf:
            return tell
        begun: list[float] = []

        def report(done: float) -> bool | None:
            now = thread_time()
            if not begun:
                begun.append(now)
            said = None if tell is None else tell(done)
            return said if now - begun[0] < self.seconds else False

        return report

    def __str__(self) -> str:
        said = [f"{self.seconds:g} seconds"] if self.seconds < inf else []
        said += [bytes_text(self.memory)] if self.memory < inf else []
        return " and ".join(said) or "what a machine has"


NO_LIMITS = Limits()


def limits_of(seconds: Number | None, memory: Number | None) -> Limits:
    """The limits that were given; what is left out has none."""
    return Limits(
        inf if seconds is None else float(positive("seconds", seconds, next_step="Leave it out for no limit.")),
        inf if memory is None else float(positive("memory", memory, next_step="Give bytes, say 2e9.")),
    )


@dataclass(frozen=True, repr=False)
class ReleasePlan(Sequence[Forecast]):
    """What each method would do for a goal, the best first. Nothing was read and nothing was spent.

    `rows` is the number of rows that the forecasts are for: as far as it is known, or as it was supposed.
    """

    forecasts: tuple[Forecast, ...]
    goal: str
    rows: float
    supposed: bool
    limits: Limits = NO_LIMITS

    @property
    def best(self) -> Forecast:
        """What `method="auto"` would take; raises TooLarge if nothing is possible."""
        can = [row for row in self.forecasts if row.possible and self.limits.keep(row)]
        if can:
            near = {row.method: row for row in can if row.error <= ABOUT_THE_SAME * can[0].error}
            return next(near[method] for method in PREFERENCE if method in near)
        raise TooLarge(
            f"no method can make this release within {self.limits}.\n{self}\n    Give more, fewer columns or "
            "smaller marginals."
        )

    def of(self, method: str) -> Forecast:
        """What one method would do."""
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
