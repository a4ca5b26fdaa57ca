"""Whether a tree is nearer than mixtures: a trial tells, for a small part of a budget, where it can."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.estimate.laplace_estimator import estimator_for
from discreet.plan.plan import Distances, Measure, run
from discreet.query.residual import Residual
from discreet.release import method_choice
from discreet.release.budget_allocation import steps_within
from discreet.release.method_choice import METHODS, TRIAL, Forecasts, make_release, tree_is_better, worthwhile
from discreet.release.task import NO_LIMITS, Brief, goal_of
from discreet.schema import Categories, Domain, Unit
from release.oracle import Oracle

ROWS, CELLS = 20_000, 6
ADD, REPLACE, PERSONS = Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=3)
FIRST, LAST = "a first look, for a release", "whether a tree or mixtures are nearer"
FAIR, RICH = Fraction(1, 50), Fraction(1, 5)


def domain_of(*sizes):
    return Domain(
        {f"x{n:02}": Categories([*range(size)], outside="drop", missing="drop") for n, size in enumerate(sizes)}
    )


DOMAIN = domain_of(*[CELLS] * 7)
NAMES = tuple(DOMAIN)
GOAL = goal_of(list(combinations(NAMES, 3)), DOMAIN)


def chains(seed, length=3):
    """Columns of which so many in a row tell each other nearly, and nothing else."""
    rng, found = np.random.default_rng(seed), []
    for place in range(len(NAMES)):
        fresh = rng.integers(CELLS, size=ROWS)
        if place % length:
            fresh = np.where(rng.random(ROWS) < 0.9, rng.permutation(CELLS)[found[-1]], fresh)
        found.append(fresh)
    return dict(zip(NAMES, found, strict=True))


def couples(seed):
    return chains(seed, length=2)


def kinds(seed, number=4):
    """Some kinds of people, each with columns that are independent."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(number, size=ROWS)
    below = [rng.dirichlet(np.full(CELLS, 0.7), size=number).cumsum(axis=1)[:, :-1] for _ in NAMES]
    return {name: (rng.random(ROWS)[:, None] > each[kind]).sum(axis=1) for name, each in zip(NAMES, below, strict=True)}


def evenly(seed):
    """Every column has a little to do with every other."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(CELLS, size=ROWS)
    return {
        name: np.where(rng.random(ROWS) < 0.35, rng.permutation(CELLS)[hidden], rng.integers(CELLS, size=ROWS))
        for name in NAMES
    }


def alone(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.integers(CELLS, size=ROWS) for name in NAMES}


class Trial:
    """A trial on a table whose rows were counted, and all that it asked."""

    def __init__(self, codes, units=FAIR, *, unit=ADD, goal=GOAL, seed=0, first=None, known=None):
        self.units = Fraction(units)
        self.oracle = Oracle(goal.domain, codes, unit, seed=seed, known=known, first=first)
        if unit.neighbors == "replace_one":
            self.oracle.known.learn_total(ROWS)
        elif known is None:
            self.oracle(Measure(steps_within(self.oracle.known, {(): 1.0}, 0.002 * float(units)), "the number of rows"))
        self.before, begun = len(self.oracle.requests), self.oracle.spent
        self.brief = Brief(self.oracle.known, goal, self.units)
        self.better, self.cost = run(tree_is_better(self.brief), self.oracle)
        self.spent = self.oracle.spent - begun

    @property
    def requests(self):
        return self.oracle.requests[self.before :]

    @property
    def whys(self):
        return [request.why for request in self.requests]


# --- What it says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "seed", "units"), [(chains, 0, FAIR), (chains, 1, RICH), (couples, 2, FAIR)])
def test_where_few_columns_go_together_closely_a_tree_is_nearer(rows, seed, units):
    trial = Trial(rows(seed), units, seed=seed)
    assert trial.better is True
    assert trial.whys == [FIRST, FIRST, LAST]


@pytest.mark.parametrize("units", [FAIR, RICH])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rows", [kinds, evenly, alone])
def test_where_all_columns_go_together_a_little_or_not_at_all_it_is_not(rows, seed, units):
    assert Trial(rows(seed), units, seed=seed).better is False


def test_the_verdict_is_what_was_heard():
    """Told that the mixtures are as near as the tree was, it says the opposite."""
    first = Trial(chains(0)).oracle
    assert isinstance(first.requests[-1], Distances)
    halves = np.reshape(first.said[-1], (2, -1))
    for said, better in ((halves[::-1], False), (halves[[1, 1]], False)):
        first.said[-1] = said.ravel()
        assert Trial(chains(0), first=first).better is better


def test_both_models_are_asked_about_the_same_marginals():
    trial = Trial(chains(0))
    asked = trial.requests[-1]
    half = len(asked.scopes) // 2
    assert asked.scopes[:half] == asked.scopes[half:]
    assert set(asked.scopes) <= set(GOAL.scopes)
    assert half == min(TRIAL.verdict_marginals, len(GOAL.scopes))
    assert any(not np.array_equal(*both) for both in zip(asked.expected[:half], asked.expected[half:], strict=True))


def test_without_a_tree_there_is_no_verdict():
    trial = Trial(alone(0))
    assert trial.better is False
    assert set(trial.whys) == {FIRST}


# --- What it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSONS], ids=lambda unit: unit.describe)
@pytest.mark.parametrize(("rows", "units"), [(chains, FAIR), (evenly, FAIR / 1000), (evenly, 1000 * FAIR)])
def test_it_costs_what_its_requests_cost_and_never_more_than_a_small_part(units, rows, unit):
    trial = Trial(rows(0), units, unit=unit)
    assert trial.cost == trial.spent
    assert 0 < trial.cost <= Fraction(TRIAL.most_share + TRIAL.verdict_share) * units


def test_what_is_known_exactly_is_not_paid_again():
    codes = chains(0)
    exact = Oracle(DOMAIN, codes, ADD)
    exact.known.learn_total(ROWS)
    for scope in GOAL.below:
        if len(scope) < 3:
            piece = Residual(tuple((name, 1) for name in scope))
            values = piece.measure(exact.marginal(scope), DOMAIN)
            exact.known.lattice.add(piece, variance=0.0, values=values.ravel())
    trial = Trial(codes, known=exact.known)
    assert FIRST not in trial.whys
    assert trial.cost == trial.spent <= Fraction(TRIAL.verdict_share) * FAIR


def same(one, other):
    if isinstance(one, Measure):
        return one == other
    return (one.scopes, one.sigma, one.why) == (other.scopes, other.sigma, other.why) and all(
        map(np.array_equal, one.expected, other.expected)
    )


@pytest.mark.parametrize("rows", [chains, kinds])
def test_what_is_asked_depends_only_on_what_was_said(rows):
    first = Trial(rows(0))
    nobody = {name: np.zeros(50, dtype=np.int64) for name in NAMES}
    second, third = Trial(nobody, first=first.oracle), Trial(nobody)
    assert (second.better, second.cost) == (first.better, first.cost)
    assert len(second.requests) == len(first.requests)
    assert all(map(same, first.requests, second.requests))
    # Power: on its own that table is asked otherwise.
    assert len(third.requests) != len(first.requests) or not all(map(same, first.requests, third.requests))


# --- Where it is made -------------------------------------------------------------------------------------------------


def brief_of(units=FAIR, *, domain=DOMAIN, ways=2, pure=False):
    known = estimator_for("pure" if pure else "gaussian", domain, ADD)
    return Brief(known, goal_of(list(combinations(domain, ways)), domain), Fraction(units))


def test_it_is_worthwhile_where_the_verdict_is_sharp_and_there_are_pairs_to_choose_from():
    assert worthwhile(brief_of(), ROWS)
    assert not worthwhile(brief_of(), ROWS / 100)
    assert not worthwhile(brief_of(FAIR / 10**4), ROWS)
    assert worthwhile(brief_of(FAIR * 10**4), ROWS / 100)
    assert not worthwhile(brief_of(pure=True), ROWS)
    assert not worthwhile(brief_of(domain=domain_of(6, 6)), ROWS)
    assert not worthwhile(brief_of(ways=1), ROWS)
    assert worthwhile(brief_of(domain=domain_of(6, 6, 6)), ROWS)
    many = next(number for number in range(2, 99) if number * (number - 1) / 2 > TRIAL.most_pairs)
    assert worthwhile(brief_of(domain=domain_of(*[2] * (many - 1))), ROWS)
    assert not worthwhile(brief_of(domain=domain_of(*[2] * many)), ROWS)


def release(codes, units, monkeypatch, method="auto"):
    """A release that ends before its method asks for anything: the method, what it was left, and who was asked."""
    left = []

    def nothing(brief, tell):
        left.append(brief.units)
        return None
        yield

    idle = {name: replace(each, make=nothing) for name, each in METHODS.items()}
    monkeypatch.setattr(method_choice, "METHODS", idle)
    oracle = Oracle(DOMAIN, codes, ADD)
    chosen, _ = run(make_release(Forecasts(Brief(oracle.known, GOAL, Fraction(units))), method, NO_LIMITS), oracle)
    return chosen.method, left[0], oracle


def test_a_release_takes_the_better_one_with_what_the_trial_left(monkeypatch):
    for rows, better in ((chains, True), (kinds, False)):
        method, left, oracle = release(rows(0), FAIR, monkeypatch)
        assert (method == "adaptive") == better
        whys = [request.why for request in oracle.requests]
        assert whys.count(FIRST) == 2
        assert LAST in whys or not better
        assert left == FAIR - oracle.spent


def test_where_it_is_not_worthwhile_or_the_method_is_given_nothing_is_asked_for_it(monkeypatch):
    few = {name: codes[:40] for name, codes in chains(0).items()}
    for codes, method in ((few, "auto"), (chains(0), "mixture"), (chains(0), "adaptive")):
        _, left, oracle = release(codes, FAIR, monkeypatch, method)
        assert not {FIRST, LAST} & {request.why for request in oracle.requests}
        assert left == FAIR - oracle.spent
    # Power: of many rows, it is.
    assert FIRST in {request.why for request in release(chains(0), FAIR, monkeypatch)[2].requests}


# --- Odd tables -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_table_of_hardly_any_rows_gets_an_answer_all_the_same(count):
    for seed in range(3):
        few = {name: codes[:count] for name, codes in chains(0).items()}
        trial = Trial(few, seed=seed)
        assert trial.cost == trial.spent <= Fraction(TRIAL.most_share + TRIAL.verdict_share) * FAIR


@pytest.mark.filterwarnings("error")
def test_columns_of_one_value_are_no_trouble():
    domain = domain_of(6, 6, 6, 6, 1, 2)
    codes = dict(zip(domain, couples(0).values(), strict=False))
    codes |= {"x04": np.zeros(ROWS, dtype=np.int64), "x05": np.random.default_rng(0).integers(2, size=ROWS)}
    for ways in (2, 3):
        trial = Trial(codes, RICH, goal=goal_of(list(combinations(domain, ways)), domain))
        assert trial.better is True
        assert trial.cost == trial.spent
