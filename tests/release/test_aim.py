"""Adaptive selection on a tree: what it asks, what that costs, and what comes of it."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.accounting.filter import loss
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.curator import Curator
from discreet.errors import BadParameter
from discreet.estimate.gaussian_estimator import GaussianLattice, selection_for
from discreet.ledger import Budget
from discreet.ledger.ledger import ANYONE
from discreet.plan.plan import Farthest, Measure, run
from discreet.release.budget_allocation import noise_after, rising_step
from discreet.release.methods.aim import adaptive, candidates_of
from discreet.release.task import goal_of
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from release.oracle import Oracle as Answering

DOMAIN = Domain(
    {
        "age": Integers(0, 7, missing="drop"),
        "city": Categories(["a", "b", "c", "d", "e"], outside="drop", missing="drop"),
        "ill": Boolean(),
        "job": Categories(["x", "y", "z"], outside="drop", missing="drop"),
        "old": Boolean(),
        "rich": Boolean(),
    }
)
NAMES = tuple(DOMAIN)
ROWS = 20_000
TRIPLES = goal_of(list(combinations(NAMES, 3)), DOMAIN)
RICH, POOR = Fraction(1, 20), Fraction(1, 2000)


def linked_rows(rows=ROWS, seed=1):
    """Codes of columns of which each follows from one or two others, most of the time; and one on its own."""
    rng = np.random.default_rng(seed)

    def mostly(exact, size, often):
        return np.where(rng.random(rows) < often, exact, rng.integers(size, size=rows))

    age = np.minimum(rng.integers(8, size=rows), rng.integers(8, size=rows))
    old = mostly(age >= 4, 2, 0.9)
    job = mostly(age % 3, 3, 0.8)
    rich = mostly(job == 2, 2, 0.8)
    ill = mostly(old ^ rich, 2, 0.7)
    city = rng.integers(5, size=rows)
    return dict(zip(NAMES, (age, city, ill, job, old, rich), strict=True))


def nobodies(rows=50):
    return {name: np.zeros(rows, dtype=np.int64) for name in NAMES}


class Oracle(Answering):
    """Makes adaptive releases; `choose` stands in for the exponential mechanism."""

    def __init__(self, rows, *, unit=None, choose=None, **named):
        super().__init__(DOMAIN, rows, Unit() if unit is None else unit, **named)
        self.choose = choose

    def chosen_of(self, scores, epsilon):
        return super().chosen_of(scores, epsilon) if self.choose is None else self.choose(scores.tolist())

    def release(self, goal=TRIPLES, units=RICH, *, rounds=16, **named):
        return run(adaptive(self.known, goal, units, rounds=rounds, **named), self)

    def selections(self):
        return [request for request in self.requests if isinstance(request, Farthest)]

    def chosen(self):
        pairs = zip(self.requests, self.said, strict=True)
        return [request.scopes[said] for request, said in pairs if isinstance(request, Farthest)]

    def whys(self):
        return [request.why for request in self.requests]


def error_of(tree, oracle, goal=TRIPLES):
    """The mean L1 distance of the goal's marginals, in parts of the rows."""
    off = [weight * np.abs(tree.marginal(scope) - oracle.marginal(scope)).sum() for scope, weight in goal.weights]
    return float(sum(off)) / len(oracle.rows["age"])


@pytest.fixture(scope="module")
def rows():
    return linked_rows()


# --- What it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [RICH, POOR, Fraction(1, 10**7)])
@pytest.mark.parametrize("at_once", [1, 3])
def test_the_budget_is_never_exceeded_and_all_but_used(rows, units, at_once):
    oracle = Oracle(rows)
    oracle.release(units=units, at_once=at_once)
    assert Fraction(999, 1000) * units <= oracle.spent <= units


@pytest.mark.parametrize("unit", [Unit(neighbors="replace_one"), Unit(key="who", contributions=3)])
def test_so_it_is_for_every_unit(rows, unit):
    oracle = Oracle(rows, unit=unit)
    if unit.neighbors == "replace_one":
        oracle.known.learn_total(ROWS)
    oracle.release()
    assert Fraction(999, 1000) * RICH <= oracle.spent <= RICH
    assert ("the number of rows, for a release" in oracle.whys()) == (unit.neighbors == "add_remove")


def test_a_ledger_lets_all_of_it_pass(rows, tmp_path):
    """The requests as the curator pays and answers them, under a budget of exactly as much."""
    values = {"city": np.array(list("abcde")), "job": np.array(list("xyz"))}
    data = {
        name: values[name][codes] if name in values else codes == 1 if DOMAIN[name].size == 2 else codes
        for name, codes in rows.items()
    }
    table = Table(Schema("people", DOMAIN, Unit()), Frame(data, domain=DOMAIN, unit=Unit()))
    with Curator(table, budget=Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "ledger.sqlite") as desk:
        executor, units = desk._executor, gaussian_limit(Fraction(1), Fraction(1, 10**9))
        tree = run(adaptive(executor.known, TRIPLES, units), lambda request: executor.answer(request, analyst=ANYONE))
        spent = sum((loss(spend.event) for spend in desk.history()), Fraction(0))
    assert Fraction(999, 1000) * units <= spent <= units
    assert error_of(tree, Oracle(rows)) < 0.1


def test_what_is_known_is_not_paid_again(rows):
    first = Oracle(rows)
    first.release(units=10 * RICH, rounds=4)
    second = Oracle(rows, known=first.known)
    second.release(units=POOR)
    assert "single columns, for a release" not in second.whys()
    assert "the number of rows, for a release" not in second.whys()
    assert second.selections()


@pytest.mark.parametrize("units", [1e-4, 0.03, 2.0])
def test_a_selection_costs_what_it_is_given(units):
    assert 0.999 * units <= loss(Farthest((), (), (), selection_for(units), "").event(DOMAIN, Unit())) <= units


@pytest.mark.parametrize("named", [{"units": 0}, {"units": RICH, "rounds": 0}, {"units": RICH, "at_once": 0}])
def test_nonsense_is_refused(rows, named):
    with pytest.raises(BadParameter, match="above 0"):
        Oracle(rows).release(**named)


# --- What it asks ----------------------------------------------------------------------------------------------------


def same(one, other):
    if type(one) is not type(other) or one.why != other.why:
        return False
    if isinstance(one, Measure):
        return one.steps == other.steps
    told = (one.scopes, one.handicaps, one.epsilon) == (other.scopes, other.handicaps, other.epsilon)
    return told and all(map(np.array_equal, one.expected, other.expected))


def test_what_is_asked_depends_only_on_what_was_said(rows):
    first = Oracle(rows)
    tree = first.release(at_once=2)
    second = Oracle(nobodies(), first=first)
    again = second.release(at_once=2)
    assert len(second.requests) == len(first.requests)
    assert all(map(same, first.requests, second.requests))
    assert all(tree.marginal(scope).tobytes() == again.marginal(scope).tobytes() for scope in TRIPLES.scopes)


def test_another_table_is_asked_otherwise(rows):
    """Power: the comparison above tells procedures apart."""
    first, nobody = Oracle(rows), Oracle(nobodies())
    first.release()
    nobody.release()
    assert not all(map(same, first.requests, nobody.requests))


@pytest.mark.parametrize("goal", [TRIPLES, goal_of({("age", "old", "rich"): 3, ("city", "ill"): 1}, DOMAIN)])
def test_only_what_is_below_the_goal_is_asked(rows, goal):
    oracle = Oracle(rows)
    oracle.release(goal)
    assert oracle.selections()
    for request in oracle.selections():
        for scope, expected in zip(request.scopes, request.expected, strict=True):
            assert scope in goal.below
            assert len(scope) > 1
            assert len(expected) == goal.cells(scope)
        assert len(set(request.scopes)) == len(request.scopes)
    looked = {step.measurement.columns for request in oracle.requests for step in _steps(request)}
    assert looked <= {(), *goal.below}


def _steps(request):
    return request.steps.steps if isinstance(request, Measure) else ()


@pytest.mark.parametrize("at_once", [1, 4])
def test_the_tree_keeps_within_its_cells(rows, at_once):
    oracle = Oracle(rows)
    assert oracle.release(most_cells=60, at_once=at_once).cells <= 60
    # Power: with more room it takes more.
    roomy = Oracle(rows)
    assert roomy.release(at_once=at_once).cells > 60
    # So it does with what was known before.
    assert Oracle(rows, known=roomy.known).release(most_cells=60, at_once=at_once).cells <= 60


def test_pairs_that_were_known_before_are_in_the_tree_from_the_beginning(rows):
    first = Oracle(rows)
    first.release()
    second = Oracle(rows, known=first.known)
    tree = second.release(units=Fraction(1, 10**7))
    assert tree.shape.place(("age", "old")) >= 0
    assert error_of(tree, second) < 0.1


def test_without_a_number_of_rounds_the_noise_decides(rows):
    """The less noise a look has, the finer are the shares, and the more are selected at once."""
    few, many = Oracle(rows), Oracle(rows)
    few.release(units=POOR, rounds=None)
    many.release(units=RICH, rounds=None)
    assert len(many.selections()) > 1.5 * len(few.selections())
    assert _run_of_selections(few) == 1 < _run_of_selections(many)


def _run_of_selections(oracle):
    """How many selections there are before the first look at what was selected."""
    begin = oracle.requests.index(oracle.selections()[0])
    return next(place for place, one in enumerate(oracle.requests[begin:]) if isinstance(one, Measure))


def test_larger_marginals_are_offered_once_the_tree_holds_their_columns(rows):
    oracle = Oracle(rows)
    oracle.release(rounds=None)
    assert {len(scope) for scope in oracle.selections()[0].scopes} == {2}
    assert {len(scope) for scope in oracle.selections()[-1].scopes} == {2, 3}


def test_a_goal_of_single_columns_gets_them_and_nothing_is_selected(rows):
    oracle = Oracle(rows)
    goal = goal_of([(name,) for name in NAMES], DOMAIN)
    tree = oracle.release(goal)
    assert not oracle.selections()
    assert oracle.spent >= Fraction(999, 1000) * RICH
    assert error_of(tree, oracle, goal) < 0.01


def test_a_budget_too_poor_for_pairs_is_spent_on_single_columns(rows):
    oracle = Oracle(rows)
    oracle.release(units=Fraction(1, 10**8))
    assert not oracle.selections()


def test_what_matters_less_has_a_handicap(rows):
    goal = goal_of({("ill", "old"): 9, ("ill", "rich"): 1, ("old", "rich"): 1}, DOMAIN)
    oracle = Oracle(rows)
    oracle.release(goal)
    handicaps = dict(zip(oracle.selections()[0].scopes, oracle.selections()[0].handicaps, strict=True))
    assert handicaps["ill", "old"] < handicaps["ill", "rich"] == pytest.approx(handicaps["old", "rich"], rel=1e-3)


def test_a_marginal_matters_by_what_it_shares_with_the_goal():
    goal = goal_of({("age", "old", "rich"): 3, ("city", "ill"): 1}, DOMAIN)
    found = dict(candidates_of(GaussianLattice.nothing(DOMAIN, Unit()), goal))
    assert found == pytest.approx(
        {
            ("age", "old", "rich"): 1,
            ("age", "old"): 2 / 3,
            ("age", "rich"): 2 / 3,
            ("old", "rich"): 2 / 3,
            ("city", "ill"): 2 / 9,
        }
    )


def test_it_tells_how_much_is_done(rows):
    heard = []
    Oracle(rows).release(tell=heard.append)
    assert heard == sorted(heard)
    assert 0 < heard[0] < heard[-1] <= 1
    assert heard[-1] > 0.99


# --- What comes of it ------------------------------------------------------------------------------------------------


def test_it_is_far_better_than_independent_columns_and_than_a_selection_that_does_not_look(rows):
    """Power: always taking the first candidate is worse, for the same budget."""
    oracle, blind = Oracle(rows), Oracle(rows, choose=lambda scores: 0)
    good, bad = oracle.release(units=POOR), blind.release(units=POOR)
    alone = Oracle(rows).release(goal_of([(name,) for name in NAMES], DOMAIN), units=POOR)
    assert error_of(good, oracle) < 0.4 * error_of(alone, oracle)
    assert error_of(good, oracle) < 0.7 * error_of(bad, oracle)
    assert {("age", "old"), ("age", "job")} <= set(oracle.chosen())


def test_a_richer_budget_is_better(rows):
    oracles = [Oracle(rows) for _ in range(3)]
    budgets = (POOR, RICH, 20 * RICH)
    trees = [oracle.release(units=units, rounds=None) for oracle, units in zip(oracles, budgets, strict=True)]
    errors = [error_of(tree, oracles[0]) for tree in trees]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


# --- What a share buys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [("city", "job"), ("age", "ill"), ("age", "job", "old")])
@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=2)])
def test_a_look_costs_nearly_what_it_may(scope, unit):
    known = GaussianLattice.nothing(DOMAIN, unit)
    for units in (1e-4, 1e-2):
        step = rising_step(known, scope, units)
        assert 0.999 * units <= step.price <= units


@pytest.mark.parametrize("scope", [("city", "job"), ("age", "ill"), ("ill", "old", "rich")])
def test_the_noise_of_a_look_is_as_forecast(rows, scope):
    """Within five deviations of the mean of 60 looks; they are small enough to tell it from half or twice as much."""
    off, forecast = [], 0.0
    for seed in range(60):
        oracle = Oracle(rows, seed=seed)
        oracle.known.learn_total(ROWS)
        forecast = noise_after(oracle.known, scope, 1e-3)
        step = rising_step(oracle.known, scope, 1e-3)
        oracle.known.learn(step, oracle._looked(step.measurement))
        seen = known_marginal(oracle.known, scope)
        off.append(np.abs(seen - oracle.marginal(scope)).sum())
    deviation = np.std(off) / len(off) ** 0.5
    assert abs(np.mean(off) - forecast) < 5 * deviation < forecast / 3


def known_marginal(known, scope):
    from discreet.query.linear import Marginal

    return known.estimate_family(known.family(Marginal(scope))).values


def test_pieces_that_are_known_better_are_left_alone(rows):
    oracle = Oracle(rows)
    for name in ("city", "job"):
        step = rising_step(oracle.known, (name,), 1.0)
        oracle.known.learn(step, oracle._looked(step.measurement))
    fresh = noise_after(GaussianLattice.nothing(DOMAIN, Unit()), ("city", "job"), 1e-3)
    assert noise_after(oracle.known, ("city", "job"), 1e-3) < fresh
    step = rising_step(oracle.known, ("city", "job"), 1e-3)
    assert [residual.columns for residual, _ in step.measurement.pieces] == [("city", "job")]
