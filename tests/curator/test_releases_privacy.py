"""Record and replay of whole releases on neighbours, for every method; and that what is broken is seen."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import discreet.curator.release_run
import discreet.model.mixture.ensemble
import discreet.plan.plan
import discreet.release.method_choice
import discreet.release.methods.mixture
from discreet.accounting.event import Nothing, Selection
from discreet.accounting.filter import TICK
from discreet.accounting.gaussian_dp import gaussian_limit
from discreet.curator.release_run import Releasing, RequestExecutor
from discreet.errors import BudgetExceeded
from discreet.ledger import Budget, Ledger
from discreet.plan.plan import Measure
from discreet.query.linear import Marginal
from discreet.release.method_choice import METHODS
from discreet.release.task import Forecast
from discreet.schema import Unit
from discreet.source.frame import Frame
from discreet.source.source import Source, unseal
from support.neighbours import DROPS, KEEPS, UNITS, random_pair, random_questions
from support.release_replay import broken_promises, random_goal, recorded

EVERY = ["adaptive", "direct", "lattice", "mixture", "mwem", "small_db"]
GAUSSIAN, RENYI = Budget(epsilon=40, delta=1e-6), Budget(epsilon=40, delta=1e-6, gate="renyi")
PURE = Budget(epsilon=40)
ADD, REPLACE = Unit(), Unit(neighbors="replace_one")
PAIRS = [("age", "city"), ("age", "sex"), ("city", "sex")]
EPSILONS = [0.3, 3, 12, 30]
# Why a trial asks for distances.
VERDICT = "whether a tree or mixtures are nearer"


@pytest.fixture
def _possible(monkeypatch):
    """Every method is taken, whatever is foreseen of it."""

    def instead(method):
        return replace(method, forecast=lambda brief, rows: Forecast(method.name, 0.1, 1.0, 1.0))

    everything = {name: instead(METHODS[name]) for name in EVERY}
    monkeypatch.setattr(discreet.release.method_choice, "METHODS", everything)


@pytest.fixture
def _tried(monkeypatch):
    """Where the best method is taken, a trial goes on to its verdict, however few rows there are."""
    trial = discreet.release.method_choice
    # However much noise the verdict has, however few pairs or many are in the tree, and however little they stand out.
    lenient = replace(trial.TRIAL, verdict_deviation=1e9, most_in_tree=1.0, most_strong=1.0, strong_deviations=-1e9)
    monkeypatch.setattr(trial, "TRIAL", lenient)
    # However well columns alone explain what was seen.
    ensemble = discreet.model.mixture.ensemble
    monkeypatch.setattr(ensemble, "TUNING", replace(ensemble.TUNING, doubtful_misfit=0.0))


def work_of(rng, domain, method, budget):
    """Sometimes questions before, always a release, sometimes questions or another release after."""
    share = Budget(epsilon=float(rng.choice(EPSILONS)), delta=budget.delta)
    release = "release", random_goal(rng, domain), {"budget": share, "method": method}
    before = random_questions(rng, domain, int(rng.integers(3)))
    after = [release] if rng.random() < 0.2 else random_questions(rng, domain, int(rng.integers(2)))
    return [*before, release, *after]


def check(method, budget, seeds, folder):
    """All promises hold on a pair of neighbours for each seed; how many requests there were of each kind and why."""
    requests = Counter()
    for seed in seeds:
        # The relation, the contributions and what is done with values outside come in turn.
        unit, domain = UNITS[seed % len(UNITS)], (KEEPS, DROPS)[seed // len(UNITS) % 2]
        rng = np.random.default_rng([seed, 5])
        pair = random_pair(rng, unit=unit, domain=domain)
        work = work_of(rng, domain, method, budget)
        broken, first = broken_promises(pair.tables(), work, folder=folder, budget=budget, seed=seed)
        assert broken == [], f"seed {seed}"
        requests.update((type(request).__name__, request.why) for request in first.requests)
    return requests


def test_no_method_is_forgotten():
    assert sorted(METHODS) == EVERY


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize("method", EVERY)
def test_neighbours_are_asked_the_same_and_tell_apart_no_more_than_was_paid(method, tmp_path):
    assert check(method, GAUSSIAN, range(8), tmp_path)


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize("method", ["direct", "mwem", "small_db"])
def test_so_it_is_where_delta_is_0(method, tmp_path):
    assert check(method, PURE, range(4), tmp_path)


@pytest.mark.parametrize("budget", [GAUSSIAN, PURE], ids=["delta above 0", "delta 0"])
def test_so_it_is_where_the_best_method_is_taken(budget, tmp_path):
    """Which one is best depends on what was released of the number of rows."""
    assert check("auto", budget, range(4), tmp_path)


@pytest.mark.usefixtures("_tried")
def test_so_it_is_where_a_trial_finds_out_which_method_is_best(tmp_path):
    asked = check("auto", GAUSSIAN, range(6), tmp_path)
    assert asked["Distances", VERDICT] >= 2


@pytest.mark.usefixtures("_possible")
def test_so_it_is_under_renyi_accounting(tmp_path):
    assert check("adaptive", RENYI, range(6), tmp_path)


@pytest.mark.usefixtures("_possible")
@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "budget"),
    [
        *((method, GAUSSIAN) for method in EVERY),
        *((method, PURE) for method in ("direct", "mwem", "small_db")),
        ("adaptive", RENYI),
    ],
)
def test_so_it_is_for_a_hundred_pairs_of_neighbours(method, budget, tmp_path):
    asked = check(method, budget, range(8, 108), tmp_path)
    assert sum(asked.values()) >= 100


@pytest.mark.long
@pytest.mark.parametrize("budget", [GAUSSIAN, PURE], ids=["delta above 0", "delta 0"])
def test_so_it_is_for_a_hundred_pairs_and_the_best_method(budget, tmp_path):
    asked = check("auto", budget, range(8, 108), tmp_path)
    assert sum(asked.values()) >= 100


@pytest.mark.long
@pytest.mark.usefixtures("_tried")
def test_so_it_is_for_a_hundred_pairs_and_a_trial(tmp_path):
    asked = check("auto", GAUSSIAN, range(8, 108), tmp_path)
    assert asked["Distances", VERDICT] >= 30


@pytest.mark.usefixtures("_possible")
def test_every_kind_of_request_is_made_for_some_release(tmp_path):
    """Power: there is something to compare."""
    asked = Counter()
    for method in ("adaptive", "mixture", "mwem", "small_db"):
        pair = random_pair(np.random.default_rng([0, 7]), unit=ADD, domain=KEEPS, persons=200)
        work = [("release", PAIRS, {"budget": Budget(epsilon=30, delta=1e-6), "method": method})]
        session = recorded(pair.tables()[0], work, folder=tmp_path, budget=GAUSSIAN)
        asked.update(type(request).__name__ for request in session.requests)
        assert session.bills
    assert set(asked) == {"Measure", "Distances", "Farthest", "Choose", "SmallTable"}


# --- What is broken is seen -------------------------------------------------------------------------------------------


def seen(method, folder, *, unit=ADD, tries=2, budget=GAUSSIAN, source=Frame, persons=200):
    """What is seen to be wrong on some of a few pairs of neighbours."""
    found = set()
    for seed in range(tries):
        pair = random_pair(np.random.default_rng([seed, 7]), unit=unit, domain=KEEPS, persons=persons)
        work = [("release", PAIRS, {"budget": Budget(epsilon=30, delta=budget.delta), "method": method})]
        found |= set(broken_promises(pair.tables(source), work, folder=folder, budget=budget, seed=seed)[0])
    return found


def twice_the_rate(right):
    """The same claim, and half the noise in the scores."""

    def eager(*args, **named):
        return replace(right(*args, **{**named, "epsilon": 2 * named["epsilon"]}), event=Selection(named["epsilon"]))

    return eager


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
@pytest.mark.parametrize(("method", "name"), [("adaptive", "farthest"), ("mwem", "largest_surprise")])
def test_a_selection_that_takes_distances_for_monotone_is_seen(method, name, unit, tmp_path, monkeypatch):
    """So is one with half the sensitivity: both are twice the rate."""
    executor = discreet.curator.release_run
    monkeypatch.setattr(executor, name, twice_the_rate(getattr(executor, name)))
    assert seen(method, tmp_path, unit=unit, tries=1 if method == "mwem" else 2) == {"more than paid"}


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize(("unit", "times"), [(ADD, 4), (REPLACE, 2)])
def test_a_small_table_that_is_chosen_too_sharply_is_seen(unit, times, tmp_path, monkeypatch):
    right = discreet.curator.release_run.choosing

    def eager(*args, **named):
        mechanism, imbalances = right(*args, **{**named, "epsilon": times * named["epsilon"]})
        return replace(mechanism, event=Selection(named["epsilon"])), imbalances

    monkeypatch.setattr(discreet.curator.release_run, "choosing", eager)
    assert seen("small_db", tmp_path, unit=unit, persons=30) == {"more than paid"}


def test_half_the_noise_of_a_look_is_seen(tmp_path, monkeypatch):
    right = discreet.curator.release_run.noisy_distances

    def narrow(**named):
        return replace(right(**{**named, "sigma": named["sigma"] / 2}), event=right(**named).event)

    monkeypatch.setattr(discreet.curator.release_run, "noisy_distances", narrow)
    assert seen("mixture", tmp_path, unit=REPLACE) == {"more than paid"}


@pytest.mark.usefixtures("_tried")
def test_a_trial_that_sees_how_near_its_models_truly_are_is_seen(tmp_path, monkeypatch):
    """Next to no noise, and the price of much."""
    right, do, why = discreet.curator.release_run.noisy_distances, RequestExecutor.do, []

    def hears(self, request, *more):
        why.append(request.why)
        return do(self, request, *more)

    def bare(**named):
        sigma = named["sigma"] / 10**6 if why[-1] == VERDICT else named["sigma"]
        return replace(right(**{**named, "sigma": sigma}), event=right(**named).event)

    monkeypatch.setattr(RequestExecutor, "do", hears)
    assert seen("auto", tmp_path, tries=1) == set()
    assert VERDICT in why
    monkeypatch.setattr(discreet.curator.release_run, "noisy_distances", bare)
    assert seen("auto", tmp_path, tries=1) == {"more than paid"}


@pytest.mark.usefixtures("_tried")
def test_a_trial_whose_verdict_depends_on_the_rows_is_seen(tmp_path, monkeypatch):
    right, brief, tables = discreet.release.method_choice.tree_is_better, Releasing._brief, []

    def hears(self, *arguments):
        tables.append(self.executor.table)
        return brief(self, *arguments)

    def peeks(told):
        _, cost = yield from right(told)
        return number_of_rows(tables[-1]) % 2 == 1, cost

    monkeypatch.setattr(Releasing, "_brief", hears)
    monkeypatch.setattr(discreet.release.method_choice, "tree_is_better", peeks)
    assert seen("auto", tmp_path, tries=1) & {"another request", "another outcome"}


def too_many_rows(rows, *, domain, unit):
    """A source that keeps up to four rows of a person and declares fewer."""
    frame = Frame(rows, domain=domain, unit=Unit(key=unit.key, contributions=4, neighbors=unit.neighbors))
    frame.unit = unit
    return frame


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize("method", EVERY)
def test_contributions_that_are_forgotten_are_seen(method, tmp_path):
    found = seen(method, tmp_path, unit=Unit(key="who"), source=too_many_rows)
    assert {"more than declared", "more than paid"} <= found


def number_of_rows(table):
    exact = Source.evaluate(table.source, Marginal(()))
    return int(unseal(exact, exact.sensitivity)[0])


def test_a_choice_that_depends_on_the_rows_is_seen(tmp_path, monkeypatch):
    right = Releasing._brief

    def peeks(self, *arguments):
        brief = right(self, *arguments)
        return replace(brief, units=brief.units / 2) if number_of_rows(self.executor.table) % 2 else brief

    monkeypatch.setattr(Releasing, "_brief", peeks)
    assert seen("mixture", tmp_path) & {"another reserve", "another request"}


def test_what_is_known_of_rows_without_paying_is_seen(tmp_path, monkeypatch):
    """As when a maker is given what somebody else knows of the table, or knows of another table with the same rows."""
    right = RequestExecutor.known_at

    def knows_more(self, sequence):
        known = right(self, sequence)
        known.learn_total(number_of_rows(self.table))
        return known

    monkeypatch.setattr(RequestExecutor, "known_at", knows_more)
    assert seen("mixture", tmp_path) & {"another request", "another outcome"}


def test_reading_before_paying_is_seen(tmp_path, monkeypatch):
    right = RequestExecutor.transact

    def early(self, *arguments, **named):
        self.table.evaluate(Marginal(()))
        return right(self, *arguments, **named)

    monkeypatch.setattr(RequestExecutor, "transact", early)
    assert seen("mixture", tmp_path, tries=1) == {"evaluate before it is paid"}


@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize("method", ["direct", "lattice", "mixture"])
def test_half_the_price_is_seen(method, tmp_path, monkeypatch):
    right = discreet.plan.plan.step_event

    def cheaper(*arguments):
        event = right(*arguments)
        return replace(event, squared_sensitivity=event.squared_sensitivity / 2)

    monkeypatch.setattr(discreet.plan.plan, "step_event", cheaper)
    assert "more than paid" in seen(method, tmp_path)


def test_a_look_that_is_not_paid_is_seen(tmp_path, monkeypatch):
    right = RequestExecutor.transact

    def forgetful(self, payment, measure, **named):
        less = replace(payment, event=Nothing()) if "independent" in payment.why else payment
        return right(self, less, measure, **named)

    monkeypatch.setattr(RequestExecutor, "transact", forgetful)
    assert "more than paid" in seen("mixture", tmp_path)


def test_a_hold_that_is_left_open_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(Ledger, "close_hold", lambda self, hold: None)
    assert "a hold is open" in seen("mixture", tmp_path, tries=1)


def test_another_bill_than_was_paid_is_seen(tmp_path, monkeypatch):
    right = Releasing._bill

    def flatters(self, begun, budget, maker, analyst):
        maker.events.pop()
        return right(self, begun, budget, maker, analyst)

    monkeypatch.setattr(Releasing, "_bill", flatters)
    assert seen("mixture", tmp_path, tries=1) == {"another bill"}


def test_a_method_that_asks_for_more_than_it_was_given_gets_no_more(tmp_path, monkeypatch):
    """The ledger refuses: what is charged in the end fits what was set aside."""
    monkeypatch.setattr(discreet.release.methods.mixture, "_measure", _forgets_what_it_paid)
    pair = random_pair(np.random.default_rng(0), unit=ADD, domain=KEEPS, persons=200)
    budget = Budget(epsilon=1, delta=1e-6)
    session = recorded(
        pair.tables()[0], [("release", PAIRS, {"budget": budget, "method": "mixture"})], folder=tmp_path, budget=budget
    )
    assert session.refusals == [BudgetExceeded]
    assert session.open_holds == 0
    assert session.ticks[0] * TICK <= gaussian_limit(budget.epsilon, budget.delta)


def _forgets_what_it_paid(steps, why):
    yield Measure(steps, why)
    return 0.0
