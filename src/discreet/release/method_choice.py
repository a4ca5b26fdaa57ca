"""The methods of release, and the choice between them.

A public forecast chooses between most methods. Between a tree and mixtures it cannot: on some tables a few pairs of
columns depend strongly on each other, and a tree (`adaptive`) is the better model; on others all columns depend weakly
on each other, and mixtures are. So a trial spends a small part of the budget: both models are fitted to a first
measurement of all pairs, and their distances from the table are measured.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from math import inf
from typing import Any

import numpy as np

from discreet.errors import BadParameter, TooLarge, did_you_mean
from discreet.estimate.estimator import Estimator
from discreet.model.interface import Model, NoisyMarginal, noisy_marginals, total_of
from discreet.model.mixture.ensemble import Tell, fit_ensemble
from discreet.model.mixture.independent_model import product_of
from discreet.model.mixture.mixture_model import Mixture
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import Tree, fit_tree
from discreet.plan.plan import Measure, Procedure
from discreet.query.linear import Linear
from discreet.query.workload import Workload
from discreet.release import forecast
from discreet.release.budget_allocation import (
    ALLOCATION,
    deviation_for,
    distances_for,
    measure_row_count,
    price_of_request,
    steps_within,
)
from discreet.release.error.interactions import clarity, sampled
from discreet.release.methods.aim import adaptive
from discreet.release.methods.direct import direct_release
from discreet.release.methods.fitting import ENSEMBLE_FIT, components_of
from discreet.release.methods.mixture import mixture
from discreet.release.methods.residual_planner import lattice
from discreet.release.methods.residual_workload import (
    MOST_LISTED_QUESTIONS,
    asked_prefixes,
    asked_questions,
    asked_ranges,
    asked_subsets,
)
from discreet.release.task import (
    AUTO,
    NO_LIMITS,
    PREFERENCE,
    Brief,
    Forecast,
    Goal,
    Limits,
    Method,
    ReleasePlan,
    ResidualWorkload,
    Wanted,
    bytes_text,
)
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers


@dataclass(frozen=True, slots=True)
class TrialTuning:
    """Constants of the trial, chosen on drawn tables: with few strong pairs, and many weak ones (bench/release.py)."""

    # The first measurement reaches this clarity (`interactions.clarity`), for a share of the budget within these
    # limits. Single columns get this part of it, and a pair gets more by this power of its degrees of freedom.
    clarity: float = 7.0
    least_share: float = 0.002
    most_share: float = 0.02
    singles: float = 0.3
    freedom_power: float = 0.4
    # The share of the verdict. It compares at most this many marginals, and is measured only if the deviation of its
    # noise is below this part of the rows.
    verdict_share: float = 0.005
    verdict_marginals: int = 60
    verdict_deviation: float = 0.01
    # The tree wins if its distance is less than this part of that of the mixtures.
    tree_ratio: float = 0.97
    # The most cells of the tree. It holds strong pairs: this many deviations of the noise further from independence
    # than chance. There is no tree if more than `most_strong` of all pairs are strong, or it would hold more than
    # `most_in_tree` of them.
    tree_cells: int = 2**14
    strong_deviations: float = 3.0
    most_strong: float = 0.8
    most_in_tree: float = ENSEMBLE_FIT.most_pairs_in_tree
    # The ensemble that is compared with it: quicker than that of a release.
    members: int = 6
    components_in_all: int = 400
    steps: int = 300
    # With more pairs than this `adaptive` takes minutes.
    most_pairs: int = 500


TRIAL = TrialTuning()


def worthwhile(brief: Brief, rows: float) -> bool:
    """Whether the noise of a trial would be small enough to decide, by public facts."""
    goal = brief.goal
    if not brief.known.measures_residuals or not 3 <= len(goal.of_size(2)) <= TRIAL.most_pairs:
        return False
    judged = 2 * [scope for scope, _ in sampled(goal, TRIAL.verdict_marginals)]
    # The noise of a mean is smaller than that of each.
    noise = deviation_for(brief.known, judged, TRIAL.verdict_share * float(brief.units)) / len(judged) ** 0.5
    return bool(noise <= TRIAL.verdict_deviation * rows)


def tree_is_better(brief: Brief) -> Procedure[tuple[bool, Fraction]]:
    """Whether a tree is closer to the goal's marginals than mixtures, and the cost of the trial.

    It costs at most a fortieth of the budget, so its verdict is noisy.
    """
    known, goal, units = brief.known, brief.goal, float(brief.units)
    rows, _ = total_of(known.lattice)
    part = min(TRIAL.most_share, max(TRIAL.least_share, (TRIAL.clarity / clarity(goal, rows, units)) ** 2))
    spent = Fraction(0)
    for size, share in ((1, TRIAL.singles), (2, 1 - TRIAL.singles)):
        wanted = {scope: goal.freedom(scope) ** TRIAL.freedom_power for scope in goal.of_size(size)}
        steps = steps_within(known, wanted, share * part * units)
        if steps.steps:
            request = Measure(steps, "a first look, for a release")
            yield request
            spent += price_of_request(known, request)
    mixtures, tree = _models(known, goal, max(rows, 1.0), part * units)
    if tree is None:
        return False, spent
    scopes, expected = _expected(goal, (mixtures, tree))
    why = "whether a tree or mixtures are nearer"
    verdict = distances_for(known, scopes, expected, TRIAL.verdict_share * units, why)
    distances = yield verdict
    of_mixtures, of_tree = np.reshape(distances, (2, -1)).sum(axis=1)
    return bool(of_tree < TRIAL.tree_ratio * of_mixtures), spent + price_of_request(known, verdict)


def _models(known: Estimator, goal: Goal, rows: float, units: float) -> tuple[Mixture, Tree | None]:
    """Mixtures and a tree, fitted to what is known of pairs; no tree if no pair is strong, or most are."""
    measured = noisy_marginals(known.lattice, goal.of_size(2))
    components = components_of(rows, units)
    members = max(TRIAL.members, TRIAL.components_in_all // components)
    mixtures = fit_ensemble(
        goal.domain, measured, total=rows, members=members, components=components, steps=TRIAL.steps
    )
    scopes = _strong(goal, measured, rows)
    strong = sum(len(scope) == 2 for scope in scopes)
    if len(mixtures.weights) == 1 or not 0 < strong <= TRIAL.most_in_tree * len(goal.of_size(2)):
        return mixtures, None
    held = [each for each in measured if each.columns in set(scopes)]
    return mixtures, fit_tree(goal.domain, held, total=rows, scopes=scopes)


def _strong(goal: Goal, measured: Sequence[NoisyMarginal], rows: float) -> list[Columns]:
    """The single columns and the strongest pairs, as many as a tree can hold, unless most pairs are strong."""
    alone = product_of(goal.domain, measured, total=rows)
    sizes = {name: goal.domain[name].size for name in goal.names}
    beyond: dict[Columns, float] = {}
    for pair in goal.of_size(2):
        off = [
            each.weight**0.5 * each.residual(alone.marginal(pair), goal.domain)
            for each in measured
            if each.columns == pair
        ]
        squares = np.concatenate([each.ravel() ** 2 for each in off] or [np.zeros(0)])
        # The squares of normal numbers add up to their number, give or take √2 times its root.
        deviations = float((squares.sum() - squares.size) / (2 * max(squares.size, 1)) ** 0.5)
        if squares.size and deviations > TRIAL.strong_deviations:
            beyond[pair] = deviations
    scopes: list[Columns] = [(name,) for name in goal.names]
    if len(beyond) > TRIAL.most_strong * len(goal.of_size(2)):
        return scopes
    for pair in sorted(beyond, key=lambda each: (-beyond[each], each)):
        if fits(scopes, pair, sizes, max(TRIAL.tree_cells, sum(sizes.values()))):
            scopes.append(pair)
    return scopes


def _expected(goal: Goal, models: Sequence[Model]) -> tuple[list[Columns], list[Numbers]]:
    """Some of the goal's marginals that all models can compute, and what each model expects of them."""
    found: list[tuple[Columns, list[Numbers]]] = []
    for scope, _ in sampled(goal, TRIAL.verdict_marginals):
        try:
            found.append((scope, [model.marginal(scope) for model in models]))
        except TooLarge:
            continue
    return [scope for scope, _ in found] * len(models), [each[at] for at in range(len(models)) for _, each in found]


# If nothing is known of the number of rows, a plan is made for this number.
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
            "residuals of all marginals, the budget split between them for the least noise",
            forecast.lattice_forecast,
            lattice,
        ),
        Method("direct", "every marginal by itself", forecast.direct_forecast, direct_release),
        Method(
            "mwem",
            "the counts that a table of all cells is most surprised by, one after the other",
            _loaded_late("discreet.lab.textbook.mwem_release", "mwem_forecast"),
            _loaded_late("discreet.lab.textbook.mwem_release", "rounds"),
        ),
        Method(
            "small_db",
            "one small table, drawn so that a good one is likely",
            _loaded_late("discreet.lab.textbook.small_db", "small_db_forecast"),
            _loaded_late("discreet.lab.textbook.small_db", "small"),
        ),
    )
}
assert tuple(METHODS) == PREFERENCE
# What "auto" chooses among. In 408 forecasts (tables of 1 to 6 columns, 30 to 10^6 rows, epsilon 0.1 to 10, with and
# without delta) no textbook method was best; an owner who wants one names it.
AUTOMATIC = ("mixture", "adaptive", "lattice", "direct")


class Forecasts:
    """The forecasts of the methods for one brief. Each is computed when it is first needed, and only once.

    `rows` is the number of rows that they are for: the given one, the known estimate, or else a `supposed` number.
    """

    def __init__(self, brief: Brief, rows: float | None = None, found: Mapping[str, Forecast] | None = None) -> None:
        total, variance = total_of(brief.known.lattice)
        self.brief, self.version, self._found = brief, brief.known.version, dict(found or {})
        self.supposed = rows is None and variance == inf
        self.rows = max(1.0, SUPPOSED_ROWS if self.supposed else total if rows is None else rows)

    def of(self, method: str) -> Forecast:
        """The forecast of one method."""
        if method not in self._found:
            informative = replace(self.brief, goal=self.brief.goal.informative)
            self._found[method] = METHODS[method].forecast(informative, self.rows)
        return self._found[method]

    def plan(self, limits: Limits, methods: Iterable[str] = METHODS) -> ReleasePlan:
        """The forecasts of these methods, the best first."""
        rows = sorted(map(self.of, methods), key=lambda row: (not row.possible, not limits.keep(row), row.error))
        return ReleasePlan(tuple(rows), self.brief.goal.describe, self.rows, self.supposed, limits)

    def require(self, method: str, limits: Limits) -> None:
        """Raise if this method, or for "auto" every method, cannot make the release within the limits."""
        if method != AUTO:
            require_possible(self.of(method), limits)
        elif not any(row.possible and limits.keep(row) for row in map(self.of, AUTOMATIC)):
            _ = self.plan(limits, AUTOMATIC).best

    def again_for(self, brief: Brief) -> "Forecasts":
        """The forecasts for the same task later: the same ones, if nothing was learnt since."""
        same = self.version == brief.known.version and self.brief.units == brief.units
        return Forecasts(brief, found=self._found if same else None)


def plan_release(brief: Brief, *, rows: float | None = None, limits: Limits = NO_LIMITS) -> ReleasePlan:
    """The forecasts of all methods, from public facts."""
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
        cost = yield from measure_row_count(brief.known, brief.units * ALLOCATION.first_count)
        brief = replace(brief, units=brief.units - cost)
        forecasts = Forecasts(brief)
    chosen, other = forecasts.plan(limits, AUTOMATIC).best, forecasts.of("adaptive")
    if chosen is other or not other.possible or not limits.keep(other) or not worthwhile(brief, forecasts.rows):
        return chosen, brief
    better, cost = yield from tree_is_better(brief)
    return other if better else chosen, replace(brief, units=brief.units - cost)


def asked_of(wanted: Wanted, domain: Domain) -> ResidualWorkload | None:
    """The workload in terms of residuals; None if it asks for all cells of some marginals.

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
    few = not isinstance(wanted, Workload) or wanted.size <= MOST_LISTED_QUESTIONS
    questions = [each for each in wanted if isinstance(each, Linear)] if few else []
    if not questions or (isinstance(wanted, Sequence) and len(questions) < len(wanted)):
        return None
    return asked_questions(questions, domain)


def require_method(method: str) -> None:
    """Raise if no method has this name."""
    if method != AUTO and method not in METHODS:
        raise BadParameter(
            f'method is {method!r}; it must be "auto" or the name of a method: {did_you_mean(str(method), METHODS)}'
        )


def require_possible(row: Forecast, limits: Limits) -> None:
    """Raise if a method is impossible, or not within the limits, before anything is paid."""
    if not row.possible:
        raise TooLarge(f'the method "{row.method}" cannot make this release: {row.why_not} Take method="auto".')
    if not limits.keep(row):
        raise TooLarge(
            f'the method "{row.method}" would take about {row.seconds:.3g} seconds and {bytes_text(row.memory)}, which '
            'is beyond the limits. Give more, or take method="auto".'
        )
