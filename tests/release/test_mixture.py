"""The main method of releases: what it asks, what that costs, and what comes of it."""

from fractions import Fraction
from itertools import combinations, pairwise
from math import inf, pi, prod, sqrt

import numpy as np
import pytest

from discreet.model.interface import total_of
from discreet.model.mixture.ensemble import fit_ensemble
from discreet.plan.plan import Distances, Measure, run
from discreet.query.residual import axis_of
from discreet.release.methods import fitting
from discreet.release.methods import mixture as module
from discreet.release.methods.fitting import fit_low_order
from discreet.release.methods.mixture import mixture, shares_of
from discreet.release.task import goal_of
from discreet.schema import Boolean, Categories, Domain, Integers, Unit
from release.oracle import Oracle as Answering

DOMAIN = Domain(
    {
        "age": Integers(0, 7, missing="drop"),
        "city": Categories(["a", "b", "c", "d", "e"], outside="drop", missing="drop"),
        "ill": Boolean(),
        "job": Categories(["x", "y", "z"], outside="drop", missing="drop"),
        "rich": Boolean(),
    }
)
NAMES = tuple(DOMAIN)
ROWS = 20_000
SINGLES, PAIRS, TRIPLES = (goal_of(list(combinations(NAMES, size)), DOMAIN) for size in (1, 2, 3))
ADD, REPLACE, PERSONS = Unit(), Unit(neighbors="replace_one"), Unit(key="who", contributions=3)
# Rows that hardly stand out of the noise, that do, and that do so much that triples are looked at.
POOR, FAIR, RICH = Fraction(1, 10**6), Fraction(1, 10**3), Fraction(1, 2)


def linked_rows(rows=ROWS, seed=1):
    """Codes of columns of which each follows from one or two others, most of the time; and one on its own."""
    rng = np.random.default_rng(seed)

    def mostly(exact, size, often):
        return np.where(rng.random(rows) < often, exact, rng.integers(size, size=rows))

    age = np.minimum(rng.integers(8, size=rows), rng.integers(8, size=rows))
    job = mostly(age % 3, 3, 0.8)
    rich = mostly(job == 2, 2, 0.8)
    ill = mostly((age > 3) ^ (rich == 1), 2, 0.7)
    return dict(zip(NAMES, (age, rng.integers(5, size=rows), ill, job, rich), strict=True))


def rows_that_go_together(rows=ROWS, seed=1):
    """Codes of columns all of which follow from the same hidden number, most of the time."""
    rng = np.random.default_rng(seed)
    hidden, found = rng.integers(8, size=rows), {}
    for name in NAMES:
        size = DOMAIN[name].size
        found[name] = np.where(rng.random(rows) < 0.9, hidden * size // 8, rng.integers(size, size=rows))
    return found


class Oracle(Answering):
    """Makes releases of pairs; where people are exchanged, the number of rows is public."""

    def __init__(self, rows, *, unit=ADD, first=None, **named):
        super().__init__(DOMAIN, rows, unit, first=first, **named)
        if unit.neighbors == "replace_one" and not total_of(self.known.lattice)[0]:
            self.known.learn_total(len(rows["age"]) if first is None else len(first.rows["age"]))

    def release(self, goal=TRIPLES, units=FAIR, **named):
        return run(mixture(self.known, goal, float(units), **named), self)

    def looked(self):
        """Of all steps together: the columns of each."""
        steps = [step for request in self.requests if isinstance(request, Measure) for step in request.steps.steps]
        return {step.measurement.columns for step in steps}


def error_of(model, rows, goal=TRIPLES):
    """The error of a goal, as it says."""
    oracle = Oracle(rows)
    off = [weight * np.abs(model.marginal(scope) - oracle.marginal(scope)).sum() for scope, weight in goal.weights]
    return float(sum(off)) / len(rows["age"])


@pytest.fixture(scope="module")
def rows():
    return linked_rows()


@pytest.fixture(scope="module", autouse=True)
def _few_members():
    """Models are fitted in a fraction of the time, and are nearly as good on so small a table."""

    def quick(*args, **named):
        return fit_ensemble(*args, **{**named, "members": 6, "components": min(named["components"], 16), "steps": 120})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "fit_ensemble", quick)
        yield


@pytest.fixture(scope="module")
def fair(rows):
    oracle = Oracle(rows)
    return oracle, oracle.release()


@pytest.fixture
def unfitted(monkeypatch):
    """For what is asked alone: no model is made of it."""
    monkeypatch.setattr(module, "fit_low_order", lambda *_: None)


# --- What it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSONS], ids=lambda unit: unit.describe)
@pytest.mark.parametrize("units", [POOR, FAIR, RICH])
@pytest.mark.parametrize("goal", [SINGLES, PAIRS, TRIPLES], ids=["singles", "pairs", "triples"])
@pytest.mark.usefixtures("unfitted")
def test_the_budget_is_never_exceeded_and_all_but_used(rows, goal, units, unit):
    oracle = Oracle(rows, unit=unit)
    oracle.release(goal, units)
    assert Fraction(999, 1000) * units < oracle.spent <= units


@pytest.mark.parametrize("count", [30, 300, 3000])
@pytest.mark.usefixtures("unfitted")
def test_so_it_is_where_few_rows_are_counted_again_and_again(rows, count):
    """Their number gets more than its share there; the others get theirs of what is left."""
    few = {name: codes[:count] for name, codes in rows.items()}
    for power in range(16):
        units = Fraction(1, 2**power)
        for goal in (PAIRS, TRIPLES):
            oracle = Oracle(few, seed=power)
            oracle.release(goal, units)
            assert Fraction(999, 1000) * units < oracle.spent <= units


@pytest.mark.usefixtures("unfitted")
def test_the_number_of_rows_is_counted_where_it_is_private_and_only_there(rows):
    for unit, private in ((ADD, True), (PERSONS, True), (REPLACE, False)):
        oracle = Oracle(rows, unit=unit)
        oracle.release()
        assert (() in oracle.looked()) == private
        assert total_of(oracle.known.lattice)[0] == pytest.approx(ROWS, rel=0.1)


@pytest.mark.usefixtures("unfitted")
def test_persons_with_several_rows_get_as_much_more_noise(rows):
    """Three rows a person cost nine times as much: the same precisions for nine times the units."""
    one, three = Oracle(rows), Oracle(rows, unit=PERSONS)
    one.release(SINGLES, FAIR)
    three.release(SINGLES, 9 * FAIR)
    for name in NAMES:
        found, expected = (oracle.known.lattice.block((name,)).precision for oracle in (three, one))
        np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.mark.usefixtures("unfitted")
def test_what_is_known_is_not_paid_again_and_the_others_get_it(rows):
    first, fresh = Oracle(rows), Oracle(rows)
    first.release(goal_of([("age",)], DOMAIN), 100 * FAIR)
    second = Oracle(rows, known=first.known)
    for oracle in (second, fresh):
        oracle.release(SINGLES, FAIR)
    assert ("age",) in fresh.looked()
    assert ("age",) not in second.looked()
    assert second.spent <= FAIR
    for name in ("city", "ill", "job", "rich"):
        more, less = (oracle.known.lattice.block((name,)).precision for oracle in (second, fresh))
        assert more.min() > 1.2 * less.max()


@pytest.mark.usefixtures("unfitted")
def test_what_was_known_before_stays_known_and_adds_up(rows):
    oracle = Oracle(rows)
    for seed in range(2):
        before = {scope: block.precision.copy() for scope, block in oracle.known.lattice.blocks.items()}
        again = Oracle(rows, known=oracle.known, seed=seed)
        again.release(units=FAIR)
        for scope in again.looked() - {()}:
            block = oracle.known.lattice.block(scope)
            assert (block.precision >= before.get(scope, 0)).all()
            assert block.precision.max() > np.max(before.get(scope, 0))


# --- What it asks -----------------------------------------------------------------------------------------------------


def same(one, other):
    if type(one) is not type(other) or one.why != other.why:
        return False
    if isinstance(one, Measure):
        return one.steps == other.steps
    return (one.scopes, one.sigma) == (other.scopes, other.sigma) and all(
        map(np.array_equal, one.expected, other.expected)
    )


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
@pytest.mark.parametrize("units", [POOR, FAIR, RICH])
@pytest.mark.usefixtures("unfitted")
def test_what_is_asked_depends_only_on_what_was_said(rows, units, unit):
    first = Oracle(rows, unit=unit)
    first.release(units=units)
    nobody = {name: np.zeros(ROWS if unit is REPLACE else 50, dtype=np.int64) for name in NAMES}
    second, third = Oracle(nobody, unit=unit, first=first), Oracle(nobody, unit=unit)
    second.release(units=units)
    assert len(second.requests) == len(first.requests)
    assert all(map(same, first.requests, second.requests))
    # Power: on its own that table is asked otherwise, but where nothing is asked of what was said before.
    third.release(units=units)
    if units != POOR or unit is ADD:
        assert len(third.requests) != len(first.requests) or not all(map(same, first.requests, third.requests))


@pytest.mark.parametrize(
    "goal", [SINGLES, PAIRS, TRIPLES, goal_of({("age", "ill", "rich"): 3, ("city", "job"): 1}, DOMAIN)]
)
@pytest.mark.parametrize("units", [POOR, FAIR, RICH])
@pytest.mark.usefixtures("unfitted")
def test_only_what_is_below_the_goal_is_asked(rows, goal, units):
    oracle = Oracle(rows)
    oracle.release(goal, units)
    assert oracle.looked() <= {(), *goal.below}
    for request in oracle.requests:
        if isinstance(request, Distances):
            assert set(request.scopes) <= {scope for scope in goal.below if len(scope) == 2}
            assert [middle.size for middle in request.expected] == [goal.cells(scope) for scope in request.scopes]


@pytest.mark.usefixtures("unfitted")
def test_columns_that_no_marginal_names_are_left_alone(rows):
    oracle = Oracle(rows)
    oracle.release(goal_of([("age", "ill"), ("ill", "rich")], DOMAIN), RICH)
    assert {name for scope in oracle.looked() for name in scope} == {"age", "ill", "rich"}


@pytest.mark.usefixtures("unfitted")
def test_the_order_of_the_goal_does_not_matter(rows):
    ways = [list(combinations(NAMES, 3)), [each[::-1] for each in combinations(NAMES[::-1], 3)]]
    first, second = (Oracle(rows) for _ in ways)
    for oracle, way in zip((first, second), ways, strict=True):
        oracle.release(goal_of(way, DOMAIN), FAIR)
    assert len(first.requests) == len(second.requests)
    assert all(map(same, first.requests, second.requests))


@pytest.mark.usefixtures("unfitted")
def test_pairs_that_go_together_get_more_than_those_that_do_not(rows):
    oracle = Oracle(rows)
    oracle.release(PAIRS, FAIR)
    linked, apart = (oracle.known.lattice.block(pair).precision.max() for pair in (("age", "job"), ("age", "city")))
    assert linked > apart


@pytest.mark.usefixtures("unfitted")
def test_what_matters_more_gets_more(rows):
    # Both columns have two values; nothing else tells the pairs apart.
    uniform = {name: np.random.default_rng(0).integers(DOMAIN[name].size, size=ROWS) for name in NAMES}
    oracle = Oracle(uniform)
    oracle.release(goal_of({("age", "ill"): 20, ("age", "rich"): 1}, DOMAIN), FAIR)
    heavy, light = (oracle.known.lattice.block(("age", name)).precision.min() for name in ("ill", "rich"))
    assert heavy > 1.5 * light


def worth_of(known, scope):
    """What is known of some columns together, in units, piece by piece."""
    block = known.lattice.block(scope)
    return float((block.price * block.precision).sum())


@pytest.mark.usefixtures("unfitted")
def test_triples_are_looked_at_where_the_budget_is_rich(rows):
    poor, rich = Oracle(rows), Oracle(rows)
    poor.release(TRIPLES, POOR)
    rich.release(TRIPLES, RICH)
    assert max(map(len, poor.looked())) < 3
    # Not with crumbs.
    assert sum(worth_of(rich.known, scope) for scope in TRIPLES.scopes) > 0.1 * float(RICH)


def triples_by_budget(rows):
    """For budgets from poor to rich: the pairs and the triples that are looked at."""
    found = []
    for power in np.arange(-5, 0, 0.5):
        oracle = Oracle(rows)
        oracle.release(TRIPLES, Fraction(10.0**power))
        found.append([{scope for scope in oracle.looked() if len(scope) == size} for size in (2, 3)])
    return found


def are_the_smallest(chosen, others):
    return max(map(TRIPLES.cells, chosen), default=0) <= min(map(TRIPLES.cells, others), default=inf)


@pytest.mark.usefixtures("unfitted")
def test_the_larger_a_triple_the_richer_the_budget_must_be():
    """Somewhere in between small triples are looked at and large ones are not, if all columns go together."""
    found = triples_by_budget(rows_that_go_together())
    # Otherwise only some pairs are looked at, and which ones is a matter of noise: see the next test.
    assert {len(both) for both, _ in found} == {10}
    triples = [each for _, each in found]
    assert all(less <= more for less, more in pairwise(triples))
    assert not triples[0]
    assert triples[-1] == set(TRIPLES.scopes)
    some = [each for each in triples if each and len(each) < len(TRIPLES.scopes)]
    assert len({len(each) for each in some}) > 1
    assert all(are_the_smallest(each, set(TRIPLES.scopes) - each) for each in some)


@pytest.mark.usefixtures("unfitted")
def test_of_columns_few_of_which_go_together_only_triples_with_two_such_pairs_are_looked_at(rows):
    """Of these, small ones at poorer budgets than large ones."""
    found = triples_by_budget(rows)
    for both, triples in found:
        joined = {each for each in TRIPLES.scopes if sum(pair in both for pair in combinations(each, 2)) > 1}
        assert triples <= joined
        assert are_the_smallest(triples, joined - triples)
    # Power: at a rich budget nothing else keeps the others from being looked at.
    both, triples = found[-1]
    assert 1 < len(both) < 10
    assert 0 < len(triples) < len(TRIPLES.scopes)
    assert not are_the_smallest(triples, set(TRIPLES.scopes) - triples)


@pytest.mark.usefixtures("unfitted")
def test_where_the_number_of_rows_is_public_nothing_is_kept_for_it(rows):
    oracle = Oracle(rows, unit=REPLACE)
    oracle.release(SINGLES, FAIR)
    assert sum(worth_of(oracle.known, (name,)) for name in NAMES) > 0.999 * float(FAIR)


@pytest.mark.parametrize("goal", [SINGLES, PAIRS, TRIPLES], ids=["singles", "pairs", "triples"])
@pytest.mark.parametrize("public", [False, True])
def test_the_parts_of_a_budget_add_up_to_1(goal, public):
    for count in (1.0, 100.0, 1e4, 1e7):
        for units in (1e-9, 1e-3, 1.0, 50.0):
            shares = shares_of(goal, count, units, public=public)
            parts = (shares.total, shares.singles, shares.distances, shares.pairs, shares.triples)
            assert sum(parts) == pytest.approx(1)
            assert min(parts) >= 0
            assert (shares.total == 0) == public


# --- What comes of it -------------------------------------------------------------------------------------------------


def test_the_model_is_one_table_with_about_as_many_rows(fair):
    _, model = fair
    assert model.total == pytest.approx(ROWS, rel=0.1)
    whole = model.marginal(NAMES)
    assert whole.min() >= 0
    assert whole.sum() == pytest.approx(model.total)
    for scope in (("age",), ("city", "rich"), ("ill", "job", "rich")):
        others = tuple(place for place, name in enumerate(NAMES) if name not in scope)
        np.testing.assert_allclose(model.marginal(scope), whole.sum(axis=others), rtol=1e-3, atol=1e-2)


def test_the_same_answers_give_the_same_model(fair, rows):
    first, model = fair
    again = Oracle(rows, first=first).release()
    for scope in TRIPLES.scopes:
        assert model.marginal(scope).tobytes() == again.marginal(scope).tobytes()


def test_it_is_far_better_than_columns_on_their_own(fair, rows):
    _, model = fair
    alone = Oracle(rows).release(SINGLES)
    assert error_of(model, rows) < 0.5 * error_of(alone, rows)


def test_a_richer_budget_is_better(fair, rows):
    errors = [error_of(Oracle(rows).release(units=units), rows) for units in (POOR, RICH)]
    assert errors[0] > 1.5 * error_of(fair[1], rows) > 2 * errors[1]


def test_what_was_known_before_makes_it_better(rows):
    first = Oracle(rows)
    first.release(PAIRS, 20 * FAIR)
    models = [Oracle(rows, known=known, seed=1).release(PAIRS, FAIR / 10) for known in (first.known, None)]
    later, fresh = (error_of(model, rows, PAIRS) for model in models)
    assert later < 0.3 * fresh


def test_pairs_that_were_only_glanced_at_are_as_a_look_saw_them(rows, monkeypatch):
    """A column on its own tells nothing of others, measured or not; of what nobody looked at, mixtures say anything."""
    oracle, heard = Oracle(rows), []
    monkeypatch.setattr(module, "fit_low_order", lambda *arguments: heard.append(arguments))
    oracle.release(PAIRS, 20 * FAIR)
    known, goal, units, seen, _ = heard[0]
    missing = {pair for pair in PAIRS.scopes if not known.lattice.block(pair).precision.any()}
    assert missing
    assert all("city" in pair for pair in missing)
    looks = fitting._supposed_independent(known, seen)
    assert {look.columns for look in looks} == missing
    errors = []
    for told in (seen, None):
        model = fit_low_order(known, goal, units, told)
        off = [np.abs(model.marginal(pair) - oracle.marginal(pair)).sum() / ROWS for pair in missing]
        errors.append(np.mean(off))
    assert errors[0] < 0.8 * errors[1]
    # Normal numbers of such a deviation are so far from zero as was seen, all together.
    about = dict(zip(seen.pairs, seen.about, strict=True))
    for look in looks:
        np.testing.assert_allclose(look.residual(seen.alone.marginal(look.columns), DOMAIN), 0.0, atol=1e-6)
        gain = prod(axis_of(DOMAIN[name]).gain(part) for name, part in zip(look.columns, look.parts, strict=True))
        deviation = (look.weight * gain) ** -0.5
        assert sqrt(2 / pi) * deviation * PAIRS.cells(look.columns) == pytest.approx(about[look.columns])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_table_of_hardly_any_rows_makes_a_model_all_the_same(count):
    few = {name: codes[:count] for name, codes in linked_rows(10).items()}
    oracle = Oracle(few)
    model = oracle.release(units=FAIR)
    assert oracle.spent <= FAIR
    assert model.total >= 1
    assert model.marginal(NAMES).min() >= 0


def test_it_tells_how_much_is_done(rows):
    heard = []
    Oracle(rows).release(PAIRS, FAIR, tell=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1
