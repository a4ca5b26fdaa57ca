"""Private k-means is as private as it says: exact arithmetic, sensitivity by enumeration, exact laws, replayed fits."""

from fractions import Fraction
from itertools import product
from math import isqrt
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import verify
from discreet.accounting.event import total_loss
from discreet.accounting.filter import accounting_for
from discreet.accounting.sensitivity import Sensitivity, matrix_sensitivity
from discreet.errors import BadQuery, SealBroken
from discreet.lab.textbook import lecture_kmeans
from discreet.lab.textbook.lecture_kmeans import lecture_round
from discreet.learn.kmeans import lloyd
from discreet.learn.kmeans.clustering import KMeans
from discreet.learn.kmeans.noisy_points import BudgetSplit, PrivatePoints, budget_split
from discreet.ledger import Budget
from discreet.mechanism import gaussian, laplace
from discreet.query.points import (
    CHUNK,
    FARTHEST_CENTER,
    GRID_REACH,
    Body,
    Boxes,
    Clusters,
    nearest_center,
    norms,
    shrunk,
)
from discreet.schema import Bins, Domain, Integers, Schema, Unit
from discreet.source import open as open_table
from discreet.source.array_points import Points, grid_of_bounds
from discreet.source.query_sensitivity import points_sensitivity
from discreet.source.source import unseal
from support.broken_mechanisms import pretend
from support.mechanism_values import ADD, ADD_PERSON, REPLACE, REPLACE_PERSON, UNITS
from support.neighbours import HeardLedger, HeardTable, Session, listening

NORMS = ["linf", "l1", "l2"]


def points_of(body):
    """Every point of a small body, a column each."""
    sides = [range(-side, side + 1) for side in body.reach]
    every = np.array(list(product(*sides)), dtype=np.float64).T
    return every[:, (body.clipped(every) == every).all(axis=0)]


def effects_of(question):
    """What a row at each point of the body adds: a column each."""
    points = points_of(question.body)
    return np.array([question.measure(points[:, [place]]) for place in range(points.shape[1])]).T


# --- Exact arithmetic ------------------------------------------------------------------------------------------------


def nearest_of_integers(point, centers):
    squares = [sum((int(z) - c) ** 2 for z, c in zip(point, center, strict=True)) for center in centers]
    return squares.index(min(squares))


def test_the_nearest_centre_is_that_of_integer_arithmetic_and_ties_go_to_the_first():
    rng = np.random.default_rng(1)
    for dimensions, many in ((1, 3), (2, 5), (10, 8), (40, 30)):
        centers = tuple(map(tuple, rng.integers(-FARTHEST_CENTER, FARTHEST_CENTER + 1, (many, dimensions)).tolist()))
        near = tuple(map(tuple, rng.integers(-3, 4, (many, dimensions)).tolist()))
        for places, reach in ((centers, 2 * GRID_REACH), (near, 4)):
            points = rng.integers(-reach, reach + 1, (dimensions, 300)).astype(np.float64)
            expected = [nearest_of_integers(point, places) for point in points.T]
            assert nearest_center(points, places).tolist() == expected


@settings(max_examples=60)
@given(
    vector=st.lists(st.integers(-(2**16), 2**16), min_size=1, max_size=6),
    radius=st.integers(1, 2**17),
    norm=st.sampled_from(NORMS),
)
def test_shrinking_is_exact_and_never_leaves_the_ball(vector, radius, norm):
    squares = sum(v * v for v in vector)
    up = isqrt(squares) + (isqrt(squares) ** 2 < squares)
    length = {"linf": max(map(abs, vector)), "l1": sum(map(abs, vector)), "l2": up}[norm]
    column = np.array(vector, dtype=np.float64)[:, None]
    assert norms(column, norm).tolist() == [length]
    found = [int(v) for v in shrunk(column, radius, norm)[:, 0]]
    assert found == [(abs(v) * radius // max(length, radius)) * (1 if v >= 0 else -1) for v in vector]
    after = {"linf": max(map(abs, found)), "l1": sum(map(abs, found)), "l2": sum(v * v for v in found)}[norm]
    assert after <= (radius**2 if norm == "l2" else radius)


def test_quotients_are_exact_up_to_the_edge_of_the_lemma():
    """a/b is rounded down right for a + b ≤ 2^53, whatever a·b is: the products that are asked are far above 2^53."""
    rng = np.random.default_rng(4)
    for _ in range(3000):
        below = int(2 ** rng.uniform(0.0, 51.0))
        # Just below a multiple is where a quotient is nearest to being rounded up.
        edge = 2**53 // below * below - below - 1
        assert 0 < edge + below <= 2**53
        for above in (edge, edge - below, int(rng.integers(2**53 - below))):
            assert int(np.trunc(np.float64(max(above, 0)) / np.float64(below))) == max(above, 0) // below


def test_a_quotient_beyond_the_edge_is_rounded_up():
    """So the lemma needs its bound: here a is a double, and a + b is 2^54."""
    above, below = 2**54 - 2, 3
    assert float(above) == above
    assert any(
        int(np.trunc(np.float64(above - 2 * place) / np.float64(below))) != (above - 2 * place) // below
        for place in range(20)
    )


def test_shrinking_is_exact_for_the_largest_vectors_and_radii_that_are_asked():
    rng = np.random.default_rng(5)
    for norm, radius in product(NORMS, (1, 3, 2**14 - 1, 2**16 - 1, 2**27 - 1)):
        vectors = rng.integers(-(2**16), 2**16 + 1, (2**12, 8)).astype(np.float64)
        vectors[:, 0] = 2**16
        lengths, found = norms(vectors, norm), shrunk(vectors, radius, norm)
        for vector, length, short in zip(vectors.T, lengths, found.T, strict=True):
            whole = max(int(length), radius)
            exact = [int(np.sign(place)) * (abs(int(place)) * radius // whole) for place in vector]
            assert [int(place) for place in short] == exact


def test_a_body_too_large_for_exact_sums_is_refused():
    assert Clusters(Body((2 * GRID_REACH,)), ((0,),), 1).size == 2
    with pytest.raises(BadQuery, match="exact"):
        Clusters(Body((2 * GRID_REACH + 1,)), ((0,),), 1)


@pytest.mark.parametrize("radius", [None, 5000])
@pytest.mark.parametrize("norm", NORMS)
def test_what_a_row_adds_does_not_depend_on_the_rows_beside_it(norm, radius):
    rng = np.random.default_rng(2)
    grid = grid_of_bounds((0, 1), 3, norm)
    rows = rng.uniform(-0.5, 1.5, (2 * CHUNK + 17, 3))
    centers = tuple(map(tuple, rng.integers(-GRID_REACH, GRID_REACH, (6, 3)).tolist()))
    question = Clusters(grid.body, centers, 777, radius, "l2")
    order, few = rng.permutation(len(rows)), rng.choice(len(rows), 200, replace=False)
    sensitivity = points_sensitivity(question, ADD)

    def opened(some):
        return unseal(Points(some, grid, ADD).evaluate(question), sensitivity)

    whole = opened(rows)
    assert (whole == opened(rows[order])).all()
    assert (whole == opened(np.asfortranarray(rows))).all()
    one_by_one = sum(question.measure(grid.rounded(rows[[place]])) for place in few)
    assert (opened(np.delete(rows, few, axis=0)) + one_by_one == whole).all()


@pytest.mark.parametrize("norm", NORMS)
def test_every_row_becomes_a_point_of_the_body_whatever_it_is(norm):
    grid = grid_of_bounds(([-3, -3], [5, 5]), 2, norm)
    odd = [0.0, 1e308, -1e308, np.inf, -np.inf, np.nan, 5.0, -3.0, 4.9999, 1e-300]
    points = grid.rounded(np.array(list(product(odd, odd))))
    assert (np.rint(points) == points).all()
    limit = {"linf": np.abs(points).max(), "l1": np.abs(points).sum(axis=0).max()}
    limit["l2"] = np.sqrt((points**2).sum(axis=0).max())
    assert limit[norm] <= GRID_REACH
    assert grid.values(np.array([[0.0, 0.0]])).tolist() == [[1.0, 1.0]]


# --- Sensitivity -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
@pytest.mark.parametrize("norm", NORMS)
def test_no_two_neighbours_are_further_apart_than_the_sensitivity(norm, unit):
    rng = np.random.default_rng(3)
    body = Body((2, 2), norm)
    for radius, cut, many, weight in [*product((1, 2), NORMS, (1, 3), (2,)), (None, "l1", 1, 1), (None, "l1", 3, 3)]:
        centers = tuple(map(tuple, rng.integers(-2, 3, (many, 2)).tolist()))
        question = Clusters(body, centers, weight, radius, cut)
        for droppable in (False, True):
            declared = points_sensitivity(question, unit, droppable=droppable)
            assert declared.covers(matrix_sensitivity(effects_of(question), unit, droppable=droppable))


def true_and_declared(question, unit):
    return matrix_sensitivity(effects_of(question), unit), points_sensitivity(question, unit)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe)
def test_the_sensitivity_is_attained(unit):
    apart = Clusters(Body((2, 1)), ((-2, -1), (2, 1)), weight=4)
    together = Clusters(Body((2, 1)), ((0, 0), (2, 1)), weight=1, radius=None)
    corner = Clusters(Body((2, 1)), ((0, 0), (FARTHEST_CENTER, 0)), weight=1)
    true, declared = true_and_declared(apart, unit)
    assert (true.l1, true.l2_squared) == (declared.l1, declared.l2_squared)
    assert true_and_declared(together, unit)[0].l2_squared <= true_and_declared(together, unit)[1].l2_squared
    # Opposite corners of one cluster: 4B is more than 2(w² + B), and two clusters' worth of L1 is not needed.
    true, declared = true_and_declared(corner, unit)
    assert true.l2_squared == declared.l2_squared


def test_boxes_are_a_histogram():
    for unit in UNITS:
        question = Boxes(Body((2, 3)), (2, 3))
        true = matrix_sensitivity(effects_of(question), unit)
        assert points_sensitivity(question, unit) == true
    assert points_sensitivity(Boxes(Body((2, 3)), (1, 1)), REPLACE).l1 == 0


# --- Exact laws ------------------------------------------------------------------------------------------------------

EPSILON = Fraction(1)
PAIR = Clusters(Body((1,)), ((-1,), (1,)), weight=1)
CUT = Clusters(Body((1,)), ((-1,), (0,)), weight=2, radius=1)
PLANE = Clusters(Body((1, 1), "l1"), ((0, 0),), weight=1)


def default_round(question, unit):
    return lambda moves: budget_split(2 * EPSILON, Fraction(0), "laplace").mechanism(EPSILON, moves)


def as_in_the_notes(question, unit):
    return lambda _: lecture_round(question, unit, epsilon=3 * EPSILON, rounds=3)


def verdict(question, unit, make, *, sensitivity=None, rows=2):
    matrix = effects_of(question)
    declared = points_sensitivity(question, unit) if sensitivity is None else sensitivity
    return verify.check(make, matrix, unit, rows=rows, sensitivity=declared)


@pytest.mark.parametrize("make", [default_round, as_in_the_notes], ids=["default", "lecture"])
@pytest.mark.parametrize("unit", [ADD, REPLACE, ADD_PERSON, REPLACE_PERSON], ids=lambda unit: unit.describe)
@pytest.mark.parametrize("question", [PAIR, CUT, PLANE], ids=["two clusters", "cut off", "one in the plane"])
def test_one_round_is_as_private_as_it_says_on_all_small_tables(question, unit, make):
    found = verdict(question, unit, make(question, unit))
    assert found.holds, found
    assert found.pairs > 1


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_the_price_of_a_round_is_tight(unit):
    assert verdict(PAIR, unit, default_round(PAIR, unit)).tight
    notes = verdict(PAIR, unit, as_in_the_notes(PAIR, unit))
    # The notes' noise is for exchanged rows; a row that is added moves half as much.
    assert notes.tight if unit == REPLACE else notes.exact.upper < 0.51 * notes.claimed


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_a_round_with_gaussian_noise_is_as_private_as_it_says(unit):
    question = Clusters(Body((1,)), ((0,),), weight=1)
    budget = BudgetSplit("gaussian", Fraction(2))
    found = verify.check(
        lambda moves: budget.mechanism(Fraction(1), moves),
        effects_of(question),
        unit,
        rows=1,
        sensitivity=points_sensitivity(question, unit),
        epsilon=Fraction(1, 2),
    )
    assert found.holds, found
    assert found.exact.lower > 0.5 * found.claimed


def sums_forgotten(question, unit):
    """Noise for the counts alone."""
    counts = points_sensitivity(Boxes(Body((1,)), (2,)), unit)
    return lambda moves: pretend(
        laplace(epsilon=EPSILON, sensitivity=moves).event, laplace(epsilon=EPSILON, sensitivity=counts).law
    )


def half_the_noise(question, unit):
    return lambda moves: pretend(
        laplace(epsilon=EPSILON, sensitivity=moves).event, laplace(epsilon=2 * EPSILON, sensitivity=moves).law
    )


@pytest.mark.parametrize("wrong", [sums_forgotten, half_the_noise], ids=["sums forgotten", "half the noise"])
@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_wrong_noise_is_refuted(unit, wrong):
    assert verdict(PAIR, unit, wrong(PAIR, unit)).refuted


def test_bounds_taken_from_the_rows_are_refuted():
    """The twin scales by the largest row, and believes that its body is the unit ball."""

    def measured(table):
        places = np.repeat(np.arange(len(table)), table)
        most = max(1, int(places.max())) if len(places) else 1
        return [len(places), int(sum(4 * place // most for place in places))]

    declared = points_sensitivity(Clusters(Body((4,)), ((0,),), weight=1), ADD)
    found = verify.check(
        lambda moves: laplace(epsilon=EPSILON, sensitivity=moves),
        measured,
        ADD,
        rows=4,
        cells=5,
        sensitivity=declared,
    )
    assert found.refuted


def test_the_forgotten_case_of_the_exchange_is_refuted():
    """Two rows of one cluster at opposite ends move the sum by 2r: squared 4r², where 2(w² + r²) is often believed."""
    question = Clusters(Body((2,)), ((0,),), weight=1)
    believed = Sensitivity(Fraction(6), Fraction(10), Fraction(4))
    found = verify.check(
        lambda moves: gaussian(sigma=2, sensitivity=moves),
        effects_of(question),
        REPLACE,
        rows=1,
        sensitivity=believed,
        epsilon=Fraction(1, 2),
    )
    assert found.refuted
    assert not believed.covers(points_sensitivity(question, REPLACE))


def test_the_noise_of_the_lecture_is_that_of_the_lecture():
    epsilon, rounds = Fraction(1, 2), 6
    body = grid_of_bounds((-1, 1), 2, "l1").body
    question = Clusters(body, ((0, 0),) * 3, weight=body.l1)
    event = lecture_round(question, REPLACE, epsilon=epsilon, rounds=rounds).event
    assert event.scale == GRID_REACH * 2 / (epsilon / (2 * rounds))
    assert event.sensitivity / event.scale == epsilon / rounds
    assert lecture_round(question, ADD, epsilon=epsilon, rounds=rounds).event == event


# --- The whole -------------------------------------------------------------------------------------------------------


def look_at(rows, unit, norm="linf"):
    grid = grid_of_bounds((0, 1), rows.shape[1], norm)
    return PrivatePoints(grid, (), unit, Points(rows, grid, unit))


def made_up(rng, rows=300):
    middles = rng.uniform(0.2, 0.8, (3, 2))
    return middles[rng.integers(3, size=rows)] + rng.normal(scale=0.1, size=(rows, 2))


def heard(rows, unit, fit, first=None, seed=0):
    session = Session()
    with listening(session, np.random.default_rng(seed), first):
        found = fit(look_at(rows, unit))
    session.calls.append(("found", found))
    return session


BUDGET_SPLITS = [BudgetSplit("laplace", Fraction(1)), BudgetSplit("gaussian", Fraction(1, 10))]


@pytest.fixture(params=["laplace", "gaussian", "lecture"])
def fitting(request, monkeypatch):
    """A fit of three clusters, and what it may cost."""
    if request.param == "lecture":
        starts = np.random.default_rng(5).integers(-GRID_REACH, GRID_REACH, (3, 2)).tolist()
        monkeypatch.setattr(lecture_kmeans, "uniform_centers", lambda body, many: tuple(map(tuple, starts)))
        return lambda look: lecture_kmeans.lecture_fit(look, 3, epsilon=Fraction(1)), BUDGET_SPLITS[0]
    budget = BUDGET_SPLITS[request.param == "gaussian"]
    return lambda look: lloyd.fit_centers(look, 3, budget), budget


def losses(one, other, budget):
    """What each release lost: the distance of the true values over the scale of the noise that was drawn."""
    for before, after in zip(one.releases, other.releases, strict=True):
        moved = np.array(before.values) - np.array(after.values)
        if not before.draws:
            assert not moved.any()
            continue
        ((_, scale, _),) = before.draws
        yield (
            Fraction(int(np.abs(moved).sum())) / scale
            if budget.noise == "laplace"
            else int((moved**2).sum()) / scale**2
        )


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_on_a_neighbour_a_fit_does_the_same_and_loses_no_more_than_was_paid(fitting, unit):
    fit, budget = fitting
    rng = np.random.default_rng(6)
    most = Fraction(0)
    for seed in range(4):
        rows = made_up(rng)
        # A corner, or a row far outside: whoever is most unlike the others.
        other = rows[1:] if unit == ADD else np.vstack([rows[1:], rng.choice([-9.0, 9.0], (1, 2))])
        first = heard(rows, unit, fit, seed=seed)
        second = heard(other, unit, fit, first=first, seed=seed)
        assert first.calls == second.calls
        most = max(most, sum(losses(first, second, budget), Fraction(0)))
    assert 0 < most <= budget.whole


def heard_on_a_ledger(rows, unit, budget, folder, first=None):
    domain = Domain({"x": Integers(0, 99, outside="drop"), "y": Bins(list(range(0, 100, 10)), upper=99)})
    data = {"x": rows[:, 0], "y": rows[:, 1], "who": rows[:, 2]}
    table = open_table(data, schema=Schema("people", domain, unit))
    session = Session()
    with listening(session, np.random.default_rng(0), first), HeardLedger(folder / f"{uuid4().hex}.sqlite") as ledger:
        ledger.session = session
        ledger.cap(budget, table="people")
        model = KMeans(3, epsilon=0.5, columns=["x", "y"], ledger=ledger, key="k")
        model.fit(HeardTable(table.schema, table.source, session))
    session.calls.append(("found", model.cluster_centers_.tolist(), model.n_iter_, model.event_))
    return session


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)], ids=lambda each: each.gate)
@pytest.mark.parametrize("unit", [ADD, REPLACE, Unit("who", 2), Unit("who", 2, "replace_one")], ids=str)
def test_a_table_is_paid_for_before_it_is_read_and_a_neighbour_sees_the_same(unit, budget, tmp_path):
    rng = np.random.default_rng(10)
    rows = np.column_stack([rng.integers(-5, 130, (200, 2)), np.arange(200) // 2])
    other = rows[2:] if unit.key else rows[1:]
    if unit.neighbors == "replace_one":
        other = np.vstack([other, [[0, 99, 500]] * (2 if unit.key else 1)])
    first = heard_on_a_ledger(rows, unit, budget, tmp_path)
    second = heard_on_a_ledger(other, unit, budget, tmp_path, first)
    assert first.calls == second.calls
    kinds = [call[0] for call in first.calls]
    assert kinds[0] == "spend"
    assert kinds[-2:] == ["record", "found"]
    assert kinds.count("spend") == kinds.count("record") == 1
    split = BudgetSplit("laplace" if budget.gate == "pure" else "gaussian", Fraction(1))
    paid = first.calls[-1][-1]
    assert (
        0
        < sum(losses(first, second, split), Fraction(0))
        <= (paid.epsilon if budget.gate == "pure" else paid.squared_sensitivity)
    )


def test_a_replay_sees_a_fit_that_looks_at_its_rows():
    """A twin that measures the spread of its true rows to decide where to cut."""

    def looking(look):
        rows = look.held._rows
        centers = ((0, 0), (GRID_REACH // 2, 0))
        question = Clusters(look.body, centers, 1000, radius=int(1e4 * rows.std()), norm="l1")
        mechanism = BUDGET_SPLITS[0].mechanism(Fraction(1, 2), look.sensitivity(question))
        return mechanism.release(look.evaluate(question)).tolist()

    rows = made_up(np.random.default_rng(7))
    rows[0] = 9.0
    first = heard(rows, ADD, looking)
    assert first.calls != heard(rows[1:], ADD, looking, first=first).calls


@pytest.mark.parametrize("rounds", [None, 1, 50])
@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=lambda unit: unit.describe)
def test_a_budget_is_never_overdrawn(monkeypatch, unit, rounds):
    rng = np.random.default_rng(8)
    for budget, rows, clusters in product(
        BUDGET_SPLITS, (made_up(rng), np.zeros((0, 2)), rng.uniform(size=(40, 20))), (4,)
    ):
        taken = []

        def listen(self, amount, sensitivity, taken=taken, real=BudgetSplit.mechanism):
            taken.append(amount)
            return real(self, amount, sensitivity)

        monkeypatch.setattr(BudgetSplit, "mechanism", listen)
        found = lloyd.fit_centers(look_at(rows, unit), clusters, budget, rounds)
        assert len(taken) >= found.rounds >= 1
        assert Fraction(9, 10) * budget.whole < sum(taken) <= budget.whole
        monkeypatch.undo()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_what_is_paid_is_the_budget_and_not_more(noise):
    epsilon, delta = Fraction(1, 2), Fraction(0) if noise == "laplace" else Fraction(1, 10**6)
    accounting = accounting_for("pure" if noise == "laplace" else "gaussian")
    event = budget_split(epsilon, delta, noise).event
    assert epsilon * Fraction(999, 1000) < accounting.epsilon(total_loss(event, accounting), delta) <= epsilon


def test_the_event_of_a_part_costs_no_more_than_the_part():
    moves = points_sensitivity(PAIR, REPLACE_PERSON)
    for share in (0.01, 0.3, 1.0):
        for budget in BUDGET_SPLITS:
            event = budget.mechanism(budget.part(share), moves).event
            by = accounting_for("pure" if budget.noise == "laplace" else "gaussian")
            assert total_loss(event, by) <= budget.part(share)


def test_the_seal_refuses_noise_of_another_round():
    grid = grid_of_bounds((0, 1), 2)
    small = Clusters(grid.body, ((0, 0),), weight=1, radius=100)
    large = Clusters(grid.body, ((0, 0),), weight=1)
    noise = BUDGET_SPLITS[0].mechanism(Fraction(1), points_sensitivity(small, Unit()))
    with pytest.raises(SealBroken):
        noise.release(Points(np.ones((3, 2)), grid, Unit()).evaluate(large))
