"""The ways to make a release, what each of them would do, and which is best."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import inf
from time import thread_time
from typing import overload

from discreet.errors import BadParameter, TooLarge, did_you_mean
from discreet.model.ensemble import Tell
from discreet.model.looks import total_of
from discreet.model.protocol import Model
from discreet.parameter import Number, positive
from discreet.plan.request import Procedure
from discreet.release import forecast
from discreet.release.adaptive import adaptive
from discreet.release.brief import Brief, Forecast, Method
from discreet.release.counting import FIRST, counted
from discreet.release.direct import direct
from discreet.release.lattice import lattice
from discreet.release.pairs import pairs
from discreet.release.rounds import rounds
from discreet.release.small import small
from discreet.release.trial import tree_is_better, worthwhile

AUTO = "auto"
# Forecasts within this factor are taken for equal.
NEAR = 1.1
# Without any idea of the number of rows, a plan is made for so many.
SUPPOSED_ROWS = 10_000.0


def _mixture(brief: Brief, tell: Tell | None) -> Procedure[Model]:
    return (yield from pairs(brief.known, brief.goal, float(brief.units), tell=tell))


def _adaptive(brief: Brief, tell: Tell | None) -> Procedure[Model]:
    return (yield from adaptive(brief.known, brief.goal, brief.units, tell=tell))


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            "mixture",
            "single columns, pairs and small triples, and many mixtures of products fitted to them",
            forecast.pairs_forecast,
            _mixture,
        ),
        Method(
            "adaptive",
            "the marginals that a tree of cliques is most wrong about, found one after the other (AIM)",
            forecast.adaptive_forecast,
            _adaptive,
        ),
        Method(
            "lattice",
            "pieces of all marginals, the budget split between them as is best for noise alone",
            forecast.lattice_forecast,
            lattice,
        ),
        Method("direct", "every marginal by itself", forecast.direct_forecast, direct),
        Method(
            "mwem",
            "the counts that a table of all cells is most surprised by, one after the other",
            forecast.rounds_forecast,
            rounds,
        ),
        Method("small_db", "one small table, drawn so that a good one is likely", forecast.small_forecast, small),
    )
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a release may take: seconds of one processor, and bytes."""

    seconds: float = inf
    memory: float = inf

    def keep(self, row: Forecast) -> bool:
        """Whether a forecast is within them."""
        return row.seconds <= self.seconds and row.memory <= self.memory

    def watch(self, tell: Tell | None) -> Tell | None:
        """Tells the same, and says when the time of a fit is over, which then ends with what it has.

        The clock starts when a fit first tells: how long rows are read must not decide what is made of them.
        """
        if self.seconds == inf:
            return tell
        begun: list[float] = []

        def told(done: float) -> bool | None:
            now = thread_time()
            if not begun:
                begun.append(now)
            said = None if tell is None else tell(done)
            return said if now - begun[0] < self.seconds else False

        return told


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

    `rows` is how many rows the forecasts are for: as far as they are known, or as they were supposed.
    """

    forecasts: tuple[Forecast, ...]
    goal: str
    rows: float
    supposed: bool
    limits: Limits = NO_LIMITS

    @property
    def best(self) -> Forecast:
        """What `method="auto"` would take; raises TooLarge if nothing is possible.

        Of methods whose forecasts hardly differ it is the one that stands first in `METHODS`: forecasts are not sharp.
        """
        can = [row for row in self.forecasts if row.possible and self.limits.keep(row)]
        if can:
            near = {row.method: row for row in can if row.error <= NEAR * can[0].error}
            return next(near[method] for method in METHODS if method in near)
        raise TooLarge(
            f"no method can make this release within {self._limits}.\n{self}\n    Give more, fewer columns or "
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
                lines.append(f"{row.method:<10} {row.error:>8.3g} {row.seconds:>8.3g} {_bytes(row.memory):>9}{late}")
            else:
                lines.append(f"{row.method:<10} {'–':>8} {'–':>8} {'–':>9}  {row.why_not}")
        how = "supposed: say about how many there are" if self.supposed else "as far as is known"
        lines.append(f"For {self.goal}; {self.rows:,.0f} rows, {how}. The error is the mean L1 distance of a marginal.")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def _limits(self) -> str:
        said = [f"{self.limits.seconds:g} seconds"] if self.limits.seconds < inf else []
        said += [_bytes(self.limits.memory)] if self.limits.memory < inf else []
        return " and ".join(said) or "what a machine has"


def foreseen(brief: Brief, *, rows: float | None = None, limits: Limits = NO_LIMITS) -> ReleasePlan:
    """What each method would do, by public facts."""
    told, variance = total_of(brief.known.lattice)
    supposed = variance == inf
    number = max(1.0, rows if rows is not None else SUPPOSED_ROWS if supposed else told)
    telling = replace(brief, goal=brief.goal.telling)
    found = [method.forecast(telling, number) for method in METHODS.values()]
    found.sort(key=lambda row: (not row.possible, not limits.keep(row), row.error))
    return ReleasePlan(tuple(found), brief.goal.describe, number, supposed and rows is None, limits)


def made(brief: Brief, method: str, limits: Limits, tell: Tell | None = None) -> Procedure[tuple[Forecast, Model]]:
    """Make a release by a method, or by the one whose forecast is best; and say what was foreseen."""
    left = brief.units
    if method == AUTO and total_of(brief.known.lattice)[1] == inf:
        # What no method can do is refused before anything is paid.
        _ = foreseen(brief, limits=limits).best
        left -= yield from counted(brief.known, left * FIRST)
    now = Brief(brief.known, brief.goal, left, brief.asked)
    plan = foreseen(now, limits=limits)
    chosen = plan.best if method == AUTO else plan.of(method)
    require_possible(chosen, limits)
    other = plan.of("adaptive")
    if method == AUTO and chosen is not other and other.possible and limits.keep(other) and worthwhile(now, plan.rows):
        better, cost = yield from tree_is_better(now)
        now = replace(now, units=now.units - cost)
        chosen = other if better else chosen
    return chosen, (yield from METHODS[chosen.method].make(now, limits.watch(tell)))


def require_method(method: str) -> None:
    """Refuse a name that is of no method."""
    if method != AUTO and method not in METHODS:
        raise BadParameter(
            f'method is {method!r}; it must be "auto" or the name of a method: {did_you_mean(str(method), METHODS)}'
        )


def require_possible(row: Forecast, limits: Limits) -> None:
    """Refuse what cannot be done, or not within the limits, before anything is paid."""
    if not row.possible:
        raise TooLarge(f'the method "{row.method}" cannot make this release: {row.why_not} Take method="auto".')
    if not limits.keep(row):
        raise TooLarge(
            f'the method "{row.method}" would take about {row.seconds:.3g} seconds and {_bytes(row.memory)}, which is '
            'beyond the limits. Give more, or take method="auto".'
        )


def _bytes(number: float) -> str:
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"
