"""What a release says, how sure it is, and that it is the same after it was saved."""

import json
from dataclasses import replace
from fractions import Fraction
from time import thread_time

import numpy as np
import pytest

from discreet.curator import Curator, Release
from discreet.errors import BadData, BadParameter, BadQuery, BudgetExceeded, KeyReused, TooLarge
from discreet.estimate.gaussian_estimator import GaussianLattice
from discreet.ledger import Budget
from discreet.model.dense.dense_model import Dense
from discreet.plan.plan import Measure
from discreet.query.linear import Marginal
from discreet.query.workload import all_subsets, marginals, prefixes, ranges
from discreet.release import method_choice
from discreet.release.budget_allocation import steps_within
from discreet.release.method_choice import METHODS, plan_release
from discreet.release.task import Brief, Forecast, Limits, goal_of
from discreet.schema import Boolean, Categories, Domain, Integers, Schema, Unit
from discreet.source.frame import Frame
from discreet.source.table import Table
from support.release_replay import quick_fits

DOMAIN = Domain(
    {
        "age": Integers(0, 7, missing="drop"),
        "city": Categories(["a", "b", "c"], outside="drop", missing="drop"),
        "ill": Boolean(),
        "rich": Boolean(),
    }
)
ROWS = 5_000
ONE = Budget(epsilon=1, delta=1e-6)


def rows_of(seed=3):
    rng = np.random.default_rng(seed)
    age = rng.integers(8, size=ROWS)
    ill = (age > 4) ^ (rng.random(ROWS) < 0.2)
    return {
        "age": age,
        "city": np.array(list("abc"))[np.minimum(age % 3, 2)],
        "ill": ill,
        "rich": ill ^ (rng.random(ROWS) < 0.3),
    }


DATA = rows_of()


def truth(columns):
    codes = {"age": DATA["age"], "city": np.array(["abc".index(each) for each in DATA["city"]])}
    codes |= {name: DATA[name].astype(int) for name in ("ill", "rich")}
    found = np.zeros([DOMAIN[name].size for name in columns])
    np.add.at(found, tuple(codes[name] for name in columns), 1)
    return found


def desk_of(folder, budget, unit=None):
    unit = unit or Unit()
    schema = Schema("data", DOMAIN, unit, source="somewhere/secret.csv")
    return Curator(Table(schema, Frame(DATA, domain=DOMAIN, unit=unit)), budget=budget, ledger=folder / "ledger.sqlite")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with desk_of(tmp_path_factory.mktemp("made"), Budget(epsilon=2, delta=1e-6)) as desk:
        yield desk.release(marginals(DOMAIN, 2), ONE, method="mixture")


def test_a_release_is_near_the_truth_and_in_the_order_asked(made):
    for columns in (("age", "ill"), ("ill", "age"), ("city",)):
        off = np.abs(made.marginal(columns) - truth(columns)).sum() / ROWS
        assert off < 0.1, columns
    assert made.marginal(("rich", "city")) == pytest.approx(made.marginal(("city", "rich")).T)
    assert abs(made.total - ROWS) < 200


def test_errors_of_what_was_measured_are_guaranteed(made):
    outside, asked = 0, 0
    for columns in goal_of(marginals(DOMAIN, 2), DOMAIN).scopes:
        answer = made.answer(Marginal(columns), confidence=0.9)
        assert answer.origin == "bounded"
        wrong = np.abs(answer.value - truth(columns)) > answer.error
        outside, asked = outside + int(wrong.sum()), asked + wrong.size
    # A bound of |model − measured| + error is wider than the error, so it fails far less often than one in ten.
    assert asked > 60
    assert outside <= 0.1 * asked
    (error,) = [float(made.answer("ill = TRUE", confidence=each).error) for each in (0.99,)]
    assert error > float(made.answer("ill = TRUE", confidence=0.5).error)


def test_an_error_of_what_was_not_measured_is_an_estimate(made):
    answer = made.answer("ill = TRUE AND rich = TRUE AND city = 'a'")
    assert answer.origin == "estimated"
    assert "an estimate" in str(answer)
    assert 0 < answer.error < ROWS
    wide = made.answer(Marginal(("city", "ill", "rich")))
    assert wide.origin == "estimated"
    assert wide.error.shape == wide.value.shape == (3, 2, 2)
    assert (wide.error > 0).all()


def test_errors_hold_together_where_the_numbers_choose_the_rows(made):
    asked = "SELECT age, COUNT(*) AS people FROM data GROUP BY age"
    alone, chosen = (made.answer(asked + more) for more in ("", " HAVING people > 0"))
    assert chosen.columns["age"] == alone.columns["age"]
    each, together = (np.array(answer.columns["people_error"]) for answer in (alone, chosen))
    assert (together > each).all()
    wide = "SELECT city, ill, rich, COUNT(*) AS people FROM data GROUP BY city, ill, rich"
    alone, chosen = (np.max(made.answer(wide + more).columns["people_error"]) for more in ("", " HAVING people > 0"))
    assert chosen > alone


def test_a_mean_by_groups_is_answered(made):
    answer = made.answer("SELECT ill, AVG(age), COUNT(*) FROM data GROUP BY ill")
    true = [DATA["age"][DATA["ill"] == each].mean() for each in (False, True)]
    mean, error = np.array(answer.columns["avg_age"]), np.array(answer.columns["avg_age_error"])
    assert answer.columns["ill"] == [False, True]
    assert (np.abs(mean - true) <= error).all()
    assert error.max() < 3


def test_a_question_that_makes_no_sense_is_refused(made):
    with pytest.raises(BadQuery, match="height"):
        made.answer("height > 3")
    with pytest.raises(BadParameter, match="confidence"):
        made.answer("ill = TRUE", confidence=2)


def test_rows_have_raw_values_and_the_models_counts(made):
    rows = made.rows()
    assert len(rows) == round(made.total)
    assert set(rows.raw["city"]) <= {"a", "b", "c"}
    found = np.bincount(rows.codes["age"], minlength=8) / len(rows)
    assert np.abs(found - made.marginal(["age"]) / made.total).sum() < 0.01
    assert len(made.rows(17)) == 17


def test_a_saved_release_is_the_same_and_says_nothing_of_where_the_rows_are(made, tmp_path):
    made.save(tmp_path / "out")
    again = Release.load(tmp_path / "out")
    for question in ("ill = TRUE AND age > 3", "ill = TRUE AND rich = TRUE AND city = 'a'"):
        one, other = made.answer(question), again.answer(question)
        assert (one.value, one.error, one.origin) == pytest.approx((other.value, other.error, other.origin))
    assert again.card == made.card
    assert again.bill.grains == made.bill.grains
    assert again.errors == made.errors
    assert again.method == "mixture"
    assert again.goal == made.goal
    for file in (tmp_path / "out").iterdir():
        assert b"secret.csv" not in file.read_bytes(), file.name


def test_a_folder_is_not_written_over_by_accident(made, tmp_path):
    made.save(tmp_path)
    with pytest.raises(BadParameter, match="force=True"):
        made.save(tmp_path)
    made.save(tmp_path, force=True)


def test_a_folder_without_a_release_or_with_a_damaged_one_is_refused(made, tmp_path):
    with pytest.raises(BadData, match="no release"):
        Release.load(tmp_path / "nothing")
    made.save(tmp_path)
    said = json.loads((tmp_path / "release.json").read_text())
    (tmp_path / "release.json").write_text(json.dumps(said | {"form": "discreet release 99"}))
    with pytest.raises(BadData, match="99"):
        Release.load(tmp_path)
    del said["model"]
    (tmp_path / "release.json").write_text(json.dumps(said))
    with pytest.raises(BadData, match="damaged"):
        Release.load(tmp_path)


def test_a_pure_release_is_saved_with_its_bounds(tmp_path):
    with quick_fits(), desk_of(tmp_path, Budget(epsilon=2)) as desk:
        made = desk.release([["age", "ill"], ["city"]], Budget(epsilon=1))
    made.save(tmp_path / "out")
    one, other = (each.answer("ill = TRUE AND age > 3") for each in (made, Release.load(tmp_path / "out")))
    assert (one.value, one.error, one.origin) == (other.value, other.error, "bounded")
    assert abs(one.value - (DATA["ill"] & (DATA["age"] > 3)).sum()) <= one.error


def test_a_public_number_of_rows_is_exact_and_the_card_says_so(tmp_path):
    unit, domain = Unit(neighbors="replace_one"), Domain({"ill": Boolean(), "rich": Boolean()})
    data = {name: DATA[name] for name in domain}
    table = Table(Schema("data", domain, unit), Frame(data, domain=domain, unit=unit))
    with Curator(table, budget=ONE, ledger=tmp_path / "ledger.sqlite") as desk:
        made = desk.release([["ill", "rich"]], ONE)
    assert made.total == ROWS
    assert made.card.rows_error == 0
    assert made.answer("SELECT COUNT(*) FROM data").error == 0


def test_ranges_and_subsets_are_asked_of_the_lattice(tmp_path):
    with quick_fits(), desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        for wanted in (ranges(DOMAIN, "age"), all_subsets(DOMAIN, "city")):
            made = desk.release(wanted, Budget(epsilon=0.5, delta=1e-6), method="lattice")
            assert made.goal.describe == wanted.describe
        assert desk.ask("age >= 2 AND age <= 5").origin == "known"


def test_a_key_is_of_one_workload_though_another_has_the_same_columns(tmp_path):
    half = Budget(epsilon=0.5, delta=1e-6)
    with quick_fits(), desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        first = desk.release(ranges(DOMAIN, "age"), half, method="mixture", key="monday")
        spent = desk.spent
        with pytest.raises(KeyReused):
            desk.release(prefixes(DOMAIN, "age"), half, method="mixture", key="monday")
        again = desk.release(ranges(DOMAIN, "age"), half, method="mixture", key="monday")
        assert desk.spent == spent
        assert not desk.ledger.holds
    assert again.marginal(["age"]).tolist() == first.marginal(["age"]).tolist()


@pytest.mark.parametrize(("times", "fits"), [(0.99, True), (1.01, False)])
def test_a_method_that_wants_more_than_its_budget_is_refused_though_the_table_has_more(
    tmp_path, monkeypatch, times, fits
):
    def greedy(brief, tell):
        for part in (0.5, times - 0.5):
            yield Measure(steps_within(brief.known, {("age",): 1.0}, part * float(brief.units)), "more and more")
        return Dense(brief.goal.domain, total=1.0)

    monkeypatch.setitem(METHODS, "lattice", replace(METHODS["lattice"], make=greedy))
    with desk_of(tmp_path, Budget(epsilon=10, delta=1e-6)) as desk:
        if fits:
            assert desk.release([["age"]], ONE, method="lattice").bill.spent.epsilon <= 1
        else:
            with pytest.raises(BudgetExceeded, match="more than its budget"):
                desk.release([["age"]], ONE, method="lattice")
        assert 0 < desk.spent.epsilon <= 1
        assert not desk.ledger.holds


# Plans.


@pytest.mark.parametrize(("method", "known", "most"), [("auto", False, 5), ("auto", True, 4), ("direct", False, 1)])
def test_no_forecast_is_made_twice_for_a_release(tmp_path, monkeypatch, method, known, most):
    """One is enough to see that something is possible before the rows are counted; then each method has one."""
    made = []

    def counting(each):
        def forecast(brief, rows):
            made.append((each.name, rows))
            return each.forecast(brief, rows)

        return replace(each, forecast=forecast)

    monkeypatch.setattr(method_choice, "METHODS", {name: counting(each) for name, each in METHODS.items()})
    with desk_of(tmp_path, Budget(epsilon=10, delta=1e-6)) as desk:
        if known:
            desk.ask("SELECT COUNT(*) FROM data", error=50)
        desk.release([["age"]], ONE, method=method)
    assert len(made) == len(set(made)) == most


def brief(wanted, units, known=None):
    return Brief(known or GaussianLattice.nothing(DOMAIN, Unit()), goal_of(wanted, DOMAIN), units)


def test_a_plan_lists_every_method_the_best_first_and_costs_nothing(tmp_path):
    with desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        before = desk.ledger.head.sequence
        plan = desk.plan(marginals(DOMAIN, 2), budget=ONE)
        assert desk.ledger.head.sequence == before
    assert {row.method for row in plan} == set(METHODS)
    errors = [row.error for row in plan]
    assert errors == sorted(errors)
    assert plan.supposed
    assert "supposed" in str(plan)
    assert all(row.method in str(plan) for row in plan)
    assert plan.best.error <= 1.1 * plan[0].error


@pytest.mark.filterwarnings("error")
def test_a_plan_for_single_columns_has_a_forecast_for_each_method_that_can():
    plan = plan_release(brief([["age"], ["city"]], Fraction(1, 10)), rows=1000)
    assert {row.method for row in plan if row.possible} >= {"mixture", "adaptive", "lattice", "direct"}
    assert all(0 < row.error <= 2 for row in plan if row.possible)


@pytest.mark.filterwarnings("error")
def test_a_column_of_one_value_does_not_spoil_a_forecast():
    domain = Domain({"one": Categories(["x"], outside="drop", missing="drop"), "ill": Boolean(), "rich": Boolean()})
    known = GaussianLattice.nothing(domain, Unit())
    goals = [goal_of(scopes, domain) for scopes in ([["ill", "rich"]], [["ill", "rich"], ["one", "ill"]])]
    plain, spoilt = (plan_release(Brief(known, goal, Fraction(1, 10)), rows=1000) for goal in goals)
    assert plain.of("lattice").possible
    assert spoilt.of("lattice").possible
    assert spoilt.of("lattice").error < 2 * plain.of("lattice").error


def test_a_plan_is_for_as_many_rows_as_are_known_or_said(tmp_path):
    with quick_fits(), desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        assert desk.plan(marginals(DOMAIN, 2), budget=ONE, rows=123).rows == 123
        desk.ask("SELECT COUNT(*) FROM data", error=50)
        told = desk.plan(marginals(DOMAIN, 2), budget=ONE)
    assert abs(told.rows - ROWS) < 200
    assert not told.supposed


def test_limits_rule_methods_out_and_what_nothing_keeps_is_refused(tmp_path):
    plan = plan_release(brief(marginals(DOMAIN, 2), Fraction(1, 10)), rows=1000)
    quick = min(plan, key=lambda row: row.seconds)
    limited = plan_release(
        brief(marginals(DOMAIN, 2), Fraction(1, 10)), rows=1000, limits=Limits(seconds=quick.seconds)
    )
    assert limited.best.seconds <= quick.seconds
    with desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        before = desk.ledger.head.sequence
        with pytest.raises(TooLarge, match="no method can make this release within 1 MB"):
            desk.release(marginals(DOMAIN, 2), ONE, memory=1e6)
        with pytest.raises(TooLarge, match="beyond the limits"):
            desk.release(marginals(DOMAIN, 2), ONE, method="mixture", memory=1e6)
        with pytest.raises(BadParameter, match="adaptive"):
            desk.release(marginals(DOMAIN, 2), ONE, method="adaptiv")
        with pytest.raises(BadParameter, match="both are 0, or neither is"):
            desk.release(marginals(DOMAIN, 2), Budget(epsilon=1))
        assert desk.ledger.head.sequence == before


def test_a_fit_that_is_told_that_it_is_enough_ends_with_what_it_has(tmp_path):
    heard = []

    def enough(done):
        heard.append(done)
        return False

    with desk_of(tmp_path, Budget(epsilon=2, delta=1e-6)) as desk:
        made = desk.release(marginals(DOMAIN, 2), ONE, method="mixture", tell=enough)
        assert not desk.ledger.holds
    # One group of mixtures, after a few steps.
    assert len(heard) <= 2
    assert 0 < heard[0] < 1
    assert (made.marginal(["age", "ill"]) >= 0).all()
    assert made.bill.spent.epsilon <= 1


def test_a_watch_says_when_the_time_is_over():
    heard = []
    assert Limits().watch(heard.append) == heard.append
    patient, hasty = (Limits(seconds=each).watch(heard.append) for each in (1000, 1e-3))
    # What is done before a fit, reading rows, does not count.
    work(0.002)
    assert [patient(0.1), hasty(0.2)] == [None, None]
    work(0.002)
    assert [patient(0.3), hasty(0.4)] == [None, False]
    assert heard == [0.1, 0.2, 0.3, 0.4]


def work(seconds):
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def test_a_method_that_cannot_is_named_with_the_reason():
    row = Forecast("mwem", float("inf"), 0.0, 0.0, "too many cells.")
    assert not row.possible
