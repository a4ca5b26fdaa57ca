"""The method "adaptive" (AIM): select the marginals that a tree is most wrong about, measure them, fit again [MMSM22].

A procedure (plan/plan.py): it yields requests to measure or select, and reads no row itself.
Proof of privacy: adaptive.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt
from statistics import median

import numpy as np

from discreet.accounting.filter import loss
from discreet.errors import BadParameter, TooLarge
from discreet.estimate.estimator import Estimator
from discreet.estimate.gaussian_estimator import selection_for
from discreet.estimate.measurements import Step
from discreet.model.interface import LARGEST_WEIGHT, NoisyMarginal, noisy_marginals, total_of
from discreet.model.mixture.ensemble import Tell
from discreet.model.tree.junction_tree import fits
from discreet.model.tree.tree_model import Tree, fit_tree
from discreet.plan.model_structure import join_pairs
from discreet.plan.plan import Farthest, Measure, Procedure, Request, Steps
from discreet.query.linear import Marginal
from discreet.release.budget_allocation import noise_after, rising_step, steps_within
from discreet.release.task import Goal
from discreet.types import Columns, Ints


@dataclass(frozen=True, slots=True)
class AimTuning:
    """How the budget is paced. Set by hand; bench/release.py measures the result on public tables.

    A share is a part of the budget.
    """

    # The count of rows; a second one where the deviation of the first is more than this part of the rows.
    first_count: float = 0.002
    second_count: float = 0.03
    count_deviation: float = 0.01
    # Single columns; twice as much at this clarity: rows for each cell and unit of noise.
    singles: float = 0.1
    clarity_of_double_singles: float = 2.5
    # The part of a round that pays for selecting; the rest pays for measuring what was selected.
    selection: float = 0.1
    # Planned selections for each column, one in a round. Where the noise of a measured pair is less than `low_noise`
    # (in L1, as a part of the rows), more are planned, up to this factor, and several in a round.
    selections_per_column: int = 4
    low_noise: float = 0.045
    most_refinement: float = 4.0
    # A round that taught less than its noise makes the share of the next larger, by this factor at most, and so that
    # at least this number of rounds is left.
    largest_growth: float = 4.0
    fewest_rounds_left: float = 6.0
    # Steps of the fit in each round and of the last fit, and their tolerances in deviations of the noise.
    round_steps: int = 30
    final_steps: int = 200
    round_tolerance: float = 0.05
    final_tolerance: float = 0.01
    # Plans stay below what is left by this part, because prices are rounded up.
    rounding_margin: float = 1e-9
    # A smaller part of the budget is not worth another round.
    least_share: float = 1e-4
    # A tree this many times smaller than its limit has room for any pair, though its cliques are found greedily.
    clique_slack: int = 4
    # Candidates that one selection compares, at most.
    most_candidates: int = 5_000


AIM = AimTuning()


def adaptive(
    known: Estimator,
    goal: Goal,
    units: Fraction | float,
    *,
    most_cells: int = 2**17,
    rounds: int | None = None,
    at_once: int | None = None,
    tell: Tell | None = None,
) -> Procedure[Tree]:
    """A tree model of the marginals of a goal, for `units` of squared mu.

    Single columns are measured first. Each round then selects `at_once` marginals at a large distance from the tree,
    among those below the goal that keep the tree within `most_cells`, measures their residuals, and fits the tree
    again. After a round that changes the tree by less than its noise, the next ones are fewer and more precise.
    `rounds` is the planned number of selections; by default the noise of a measurement decides on it and on `at_once`.

    What is known already counts, and is not paid for again. All requests together cost at most `units`.

    [McKenna, Mullins, Sheldon, Miklau 2022, Alg. 4]; proof: adaptive.md
    """
    if not units > 0 or (rounds is not None and rounds < 1) or (at_once is not None and at_once < 1):
        raise BadParameter(
            f"units is {units}, rounds {rounds}, at_once {at_once}; all must be above 0. "
            "Units are the squared mu of a budget: accounting.gaussian_dp.gaussian_limit(epsilon, delta)."
        )
    work = _Work(known, goal, Fraction(units), most_cells)
    yield from work.count()
    yield from work.singles()
    planned, together = work.pace()
    yield from work.select(rounds or planned, at_once or together, tell)
    return work.fit(AIM.final_steps, tolerance=AIM.final_tolerance)


class _Work:
    """The state between requests: the budget that is left, the scopes of the tree, and the tree. It sees no row."""

    def __init__(self, known: Estimator, goal: Goal, units: Fraction, most_cells: int) -> None:
        self.known, self.units, self.left = known, units, units
        self.columns = tuple(sorted({name for scope in goal.scopes for name in scope}))
        self.sizes = {name: known.domain[name].size for name in self.columns}
        self.alone: list[Columns] = [(name,) for name in self.columns if self.sizes[name] > 1]
        self.candidates = candidates_of(known, goal)
        self.most_cells = most_cells
        self.scopes: list[Columns] = []
        self.tree = fit_tree(known.domain, [], total=1.0)
        # The expected L1 error of a marginal that the tree is wrong about, in rows.
        self.typical = 0.0

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return max(total_of(self.known.lattice)[0], 1.0)

    def ask(self, request: Request) -> Procedure[int]:
        """Yield a request within the budget, and return its noisy outcome."""
        price = loss(request.event(self.known.domain, self.known.lattice.unit))
        assert price <= self.left, "what is planned is below what is left"
        self.left -= price
        outcome: int = yield request
        return outcome

    def measure(self, steps: Sequence[Step | None], why: str) -> Procedure[None]:
        """Measure the steps that are not None."""
        found = tuple(step for step in steps if step is not None)
        if found:
            yield from self.ask(Measure(Steps(found), why))

    def count(self) -> Procedure[None]:
        """Count the rows, twice if they are few."""
        for part in (AIM.first_count, AIM.second_count):
            total, variance = total_of(self.known.lattice)
            if sqrt(variance) > AIM.count_deviation * total:
                units = (1 - AIM.rounding_margin) * part * float(self.units)
                yield from self.measure(
                    steps_within(self.known, {(): 1.0}, units).steps, "the number of rows, for a release"
                )

    def singles(self) -> Procedure[None]:
        """Measure the single columns; with the whole budget, if there are no candidates."""
        clear = self.total * sqrt(self.units) / sum(self.sizes.values())
        part = min(1.0, AIM.singles * (1 + AIM.clarity_of_double_singles / clear)) if self.candidates else 1.0
        units = min(part * float(self.units), float(self.left))
        # The noise of a column grows with its cells, though not in proportion, because many are empty.
        wanted = {scope: sqrt(self.sizes[scope[0]]) for scope in self.alone}
        blocks = {scope: self.known.lattice.block(scope) for scope in wanted}
        price = sum(wanted[scope] * float(block.price.sum()) for scope, block in blocks.items())
        each = units / price if price else 0.0
        # Their cost if nothing were known, less what is known already.
        missing = sum(
            float((block.price * np.maximum(each * wanted[scope] - block.precision, 0.0)).sum())
            for scope, block in blocks.items()
        )
        steps = steps_within(self.known, wanted, (1 - AIM.rounding_margin) * missing).steps
        yield from self.measure(steps, "single columns, for a release")
        # Pairs that were measured before, and that single columns do not explain, are in the tree from the beginning.
        found, self.tree = join_pairs(self.known, self.columns)
        for scope in found:
            if fits([*self.alone, *self.scopes], scope, self.sizes, self.most_cells):
                self.scopes.append(scope)
        if len(self.scopes) < len(found):
            self.tree = self.fit(AIM.round_steps, tolerance=AIM.round_tolerance)

    def pace(self) -> tuple[int, int]:
        """The planned number of selections, and the number per round: more where a measurement has little noise."""
        units = (1 - AIM.selection) * float(self.left) / (AIM.selections_per_column * len(self.columns))
        pairs = [scope for scope, _ in self.candidates if len(scope) == 2]
        noise = median([noise_after(self.known, pair, units) for pair in pairs] or [inf]) / self.total
        finer = min(max(AIM.low_noise / noise, 1.0), AIM.most_refinement)
        return round(finer * AIM.selections_per_column * len(self.columns)), round(2 * finer - 1)

    def select(self, rounds: int, at_once: int, tell: Tell | None) -> Procedure[None]:
        """Rounds, until nothing is left."""
        share = float(self.left) / rounds
        self.typical = self.total / 2
        while self.left > AIM.least_share * self.units:
            if float(self.left) < 2 * share * at_once:
                share = float(self.left) / at_once
            chosen = yield from self._chosen(share, at_once)
            if chosen:
                share = yield from self._round(chosen, share)
            elif share * at_once < float(self.left):
                # Candidates that are too noisy for this share may be worth a larger one.
                share *= 2
            else:
                break
            if tell is not None:
                tell(float(1 - self.left / self.units))
        yield from self._rest()

    def _round(self, chosen: Sequence[Columns], share: float) -> Procedure[float]:
        """Measure the chosen marginals, each for a share, and fit again; returns the share of the next round."""
        units = (1 - AIM.selection) * share
        noise = sum(noise_after(self.known, scope, units) for scope in chosen)
        before = [self.tree.marginal(scope) for scope in chosen]
        steps = [rising_step(self.known, scope, (1 - AIM.rounding_margin) * units) for scope in chosen]
        yield from self.measure(steps, "where a model is most wrong")
        self.scopes += [scope for scope in chosen if scope not in self.scopes]
        self.tree = self.fit(AIM.round_steps, tolerance=AIM.round_tolerance)
        learnt = sum(
            float(np.abs(self.tree.marginal(scope) - old).sum()) for scope, old in zip(chosen, before, strict=True)
        )
        self.typical = learnt / len(chosen)
        if learnt > noise:
            return share
        return share * min(
            AIM.largest_growth, max(1.0, float(self.left) / (AIM.fewest_rounds_left * share * len(chosen)))
        )

    def _chosen(self, share: float, at_once: int) -> Procedure[list[Columns]]:
        """The marginals that are selected, one after the other; fewer if there are no more."""
        epsilon = selection_for(AIM.selection * share)
        offered = self._offered((1 - AIM.selection) * share)
        chosen: list[Columns] = []
        for _ in range(min(at_once, len(offered))):
            scopes, expected, handicaps = zip(*offered, strict=True)
            request = Farthest(scopes, expected, handicaps, epsilon, "which marginal a model is most wrong about")
            place = yield from self.ask(request)
            # Marginals selected in the same round may have left no room for it.
            if fits([*self.alone, *self.scopes, *chosen], scopes[place], self.sizes, self.most_cells):
                chosen.append(scopes[place])
            else:
                self.candidates = [each for each in self.candidates if each[0] != scopes[place]]
            del offered[place]
        return chosen

    def _offered(self, units: float) -> list[tuple[Columns, Ints, int]]:
        """The candidates of a selection: what the tree expects of each, and its handicap."""
        found = []
        for scope, weight in self.candidates:
            # More than two columns only where a clique of the tree holds them: then their pairs were selected.
            held = self.tree.shape.place(scope) >= 0
            if len(scope) > 2 and not held:
                continue
            noise = noise_after(self.known, scope, units)
            if noise >= self.total or not (held or self._has_room(scope)):
                continue
            try:
                marginal = self.tree.marginal(scope)
            except TooLarge:
                continue
            # A distance cannot be weighted, but a marginal of less weight can be handicapped by a part of the
            # typical distance.
            handicap = noise + (1 - weight) * self.typical
            found.append((scope, np.rint(marginal).astype(np.int64).ravel(), round(handicap)))
        return found

    def _has_room(self, scope: Columns) -> bool:
        # With its smallest column in every clique, the tree would hold the pair.
        if min(self.sizes[name] for name in scope) * self.tree.cells <= self.most_cells / AIM.clique_slack:
            return True
        return fits([*self.alone, *self.scopes], scope, self.sizes, self.most_cells)

    def _rest(self) -> Procedure[None]:
        """Spend what is left on the marginals of the tree, when no candidate is left."""
        every = [*self.scopes, *self.alone]
        if every and self.left > AIM.least_share * self.units:
            units = (1 - AIM.rounding_margin) * float(self.left) / len(every)
            yield from self.measure([rising_step(self.known, scope, units) for scope in every], "what a model holds")

    def fit(self, steps: int, *, tolerance: float) -> Tree:
        """The tree that is fitted to all that is known of its scopes."""
        scopes = [*self.scopes, *self.alone]
        measured = [each for scope in scopes for each in marginals_known(self.known, scope)]
        total, domain = self.total, self.known.domain
        return fit_tree(domain, measured, total=total, scopes=scopes, start=self.tree, steps=steps, tolerance=tolerance)


def marginals_known(known: Estimator, scope: Columns) -> list[NoisyMarginal]:
    """What is known of a marginal, as one noisy marginal with the precision of its least known residual.

    Residuals of fewer columns are known better, and count for less than they could; but their estimates are in the
    values. Cells are fitted much faster than residuals. Where some residuals are unknown, the known ones are returned.
    """
    family = known.family(Marginal(scope))
    block = known.lattice.blocks.get(scope)
    if family is None or block is None or not block.precision.all():
        return [each for each in noisy_marginals(known.lattice, [scope]) if each.columns == scope]
    weight = min(float(block.precision.min(initial=inf)), LARGEST_WEIGHT)
    return [NoisyMarginal(scope, None, known.estimate_family(family).values, weight)] if block.precision.size else []


def candidates_of(known: Estimator, goal: Goal) -> list[tuple[Columns, float]]:
    """The marginals of two columns or more that could be measured, each with its weight; the largest weight is 1.

    The weight is the sum, over the goal's marginals, of their weight times the number of columns in common. Pairs come
    first, then marginals of large weight and few cells; at most `AIM.most_candidates` are kept.
    """
    matters: dict[str, float] = {}
    for scope, weight in goal.weights:
        for name in scope:
            matters[name] = matters.get(name, 0.0) + weight
    possible = [
        scope
        for scope in goal.below
        if len(scope) > 1
        and all(known.domain[name].size > 1 for name in scope)
        and known.lattice.view(scope) is not None
    ]
    weights = {scope: sum(matters[name] for name in scope) for scope in possible}
    most = max(weights.values(), default=1.0)
    possible.sort(key=lambda scope: (len(scope), -weights[scope], goal.cells(scope), scope))
    return [(scope, weights[scope] / most) for scope in possible[: AIM.most_candidates]]
