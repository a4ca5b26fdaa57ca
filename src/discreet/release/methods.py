"""The methods of release, the forecast of each, and the choice between them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import Any

from discreet.errors import BadParameter, TooLarge, did_you_mean
from discreet.model.ensemble import Tell
from discreet.model.looks import total_of
from discreet.model.protocol import Model
from discreet.plan.request import Procedure
from discreet.query.linear import Linear
from discreet.query.workload import Workload
from discreet.release import forecast
from discreet.release.adaptive import adaptive
from discreet.release.brief import (
    AUTO,
    NO_LIMITS,
    PREFERENCE,
    Brief,
    Forecast,
    Limits,
    Method,
    ReleasePlan,
    bytes_text,
)
from discreet.release.counting import FIRST, counted
from discreet.release.direct import direct
from discreet.release.energies import MOST_LISTED, asked_prefixes, asked_questions, asked_ranges, asked_subsets
from discreet.release.goal import Asked, Wanted
from discreet.release.lattice import lattice
from discreet.release.pairs import mixture
from discreet.release.trial import tree_is_better, worthwhile
from discreet.schema.domain import Domain

# Without any idea of the number of rows, a plan is made for this number.
SUPPOSED_ROWS = 10_000.0


def _mixture(brief: Brief, tell: Tell | None) -> Procedure[Model]:
    return (yield from mixture(brief.known, brief.goal, float(brief.units), tell=tell))


def _adaptive(brief: Brief, tell: Tell | None) -> Procedure[Model]:
    return (yield from adaptive(brief.known, brief.goal, brief.units, tell=tell))


def _loaded_late(module: str, name: str) -> Callable[..., Any]:
    """A function that is imported when it is first called: textbook methods are no part of the product."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            "mixture",
            "single columns, pairs and small triples, and many mixtures of products fitted to them",
            forecast.mixture_forecast,
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
            _loaded_late("discreet.release.rounds", "mwem_forecast"),
            _loaded_late("discreet.release.rounds", "rounds"),
        ),
        Method(
            "small_db",
            "one small table, drawn so that a good one is likely",
            _loaded_late("discreet.release.small", "small_db_forecast"),
            _loaded_late("discreet.release.small", "small"),
        ),
    )
}
assert tuple(METHODS) == PREFERENCE


class Forecasts:
    """What each method would do for one brief. Each forecast is made when it is first needed, and only once.

    `rows` is the number of rows they are made for: as given, as far as it is known, or `supposed`.
    """

    def __init__(self, brief: Brief, rows: float | None = None, found: Mapping[str, Forecast] | None = None) -> None:
        total, variance = total_of(brief.known.lattice)
        self.brief, self.version, self._found = brief, brief.known.version, dict(found or {})
        self.supposed = rows is None and variance == inf
        self.rows = max(1.0, SUPPOSED_ROWS if self.supposed else total if rows is None else rows)

    def of(self, method: str) -> Forecast:
        """What one method would do."""
        if method not in self._found:
            telling = replace(self.brief, goal=self.brief.goal.telling)
            self._found[method] = METHODS[method].forecast(telling, self.rows)
        return self._found[method]

    def plan(self, limits: Limits) -> ReleasePlan:
        """What every method would do, the best first."""
        rows = sorted(map(self.of, METHODS), key=lambda row: (not row.possible, not limits.keep(row), row.error))
        return ReleasePlan(tuple(rows), self.brief.goal.describe, self.rows, self.supposed, limits)

    def require(self, method: str, limits: Limits) -> None:
        """Refuse what this method, or for "auto" every method, cannot do within the limits."""
        if method != AUTO:
            require_possible(self.of(method), limits)
        elif not any(row.possible and limits.keep(row) for row in map(self.of, METHODS)):
            _ = self.plan(limits).best

    def again_for(self, brief: Brief) -> "Forecasts":
        """The forecasts for the same task later: the same ones, if nothing was learnt since."""
        same = self.version == brief.known.version and self.brief.units == brief.units
        return Forecasts(brief, found=self._found if same else None)


def plan_release(brief: Brief, *, rows: float | None = None, limits: Limits = NO_LIMITS) -> ReleasePlan:
    """What each method would do, from public facts."""
    return Forecasts(brief, rows).plan(limits)


def make_release(
    forecasts: Forecasts, method: str, limits: Limits, tell: Tell | None = None
) -> Procedure[tuple[Forecast, Model]]:
    """Make a release by a method, or by the one with the best forecast; returns that forecast too."""
    brief = forecasts.brief
    if method == AUTO:
        chosen, brief = yield from _choose(forecasts, limits)
    else:
        chosen = forecasts.of(method)
        require_possible(chosen, limits)
    return chosen, (yield from METHODS[chosen.method].make(brief, limits.watch(tell)))


def _choose(forecasts: Forecasts, limits: Limits) -> Procedure[tuple[Forecast, Brief]]:
    """The method that "auto" takes, and the brief with what is left of the budget.

    The rows are counted first if their number is unknown. A trial decides for or against "adaptive" where it may be
    better than its forecast.
    """
    brief = forecasts.brief
    if total_of(brief.known.lattice)[1] == inf:
        # What no method can do is refused before anything is paid.
        forecasts.require(AUTO, limits)
        brief = replace(brief, units=brief.units - (yield from counted(brief.known, brief.units * FIRST)))
        forecasts = Forecasts(brief)
    chosen, other = forecasts.plan(limits).best, forecasts.of("adaptive")
    if chosen is other or not other.possible or not limits.keep(other) or not worthwhile(brief, forecasts.rows):
        return chosen, brief
    better, cost = yield from tree_is_better(brief)
    return other if better else chosen, replace(brief, units=brief.units - cost)


def asked_of(wanted: Wanted, domain: Domain) -> Asked | None:
    """What is asked of the residuals, where that is not all cells of some marginals: None if it is.

    >>> from discreet.query.workload import marginals, ranges
    >>> from discreet.schema.column import Integers
    >>> people = Domain({"age": Integers(0, 99)})
    >>> asked_of(marginals(people, 1), people) is None, asked_of(ranges(people, "age"), people).answers.tolist()
    (True, [5050.0])
    """
    if isinstance(wanted, Workload) and wanted.family is not None:
        kind, column = wanted.family
        return {"prefixes": asked_prefixes, "ranges": asked_ranges, "subsets": asked_subsets}[kind](domain, column)
    if isinstance(wanted, Mapping):
        return None
    few = not isinstance(wanted, Workload) or wanted.size <= MOST_LISTED
    questions = [each for each in wanted if isinstance(each, Linear)] if few else []
    if not questions or (isinstance(wanted, Sequence) and len(questions) < len(wanted)):
        return None
    return asked_questions(questions, domain)


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
            f'the method "{row.method}" would take about {row.seconds:.3g} seconds and {bytes_text(row.memory)}, which '
            'is beyond the limits. Give more, or take method="auto".'
        )
