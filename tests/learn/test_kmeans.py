"""The estimator: near the best clusters, by the rules of scikit-learn, on the ledger, from every kind of table."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from threading import Event
from time import monotonic, sleep

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Plain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet.errors import BadParameter, BadSchema, BudgetExceeded, KeyReused, TableChanged
from discreet.lab.textbook import lecture_kmeans
from discreet.learn.kmeans.seeding import choose_bins, nearest_counts, partition, scattered_seeds
from discreet.ledger.transaction import record_of
from discreet.query.points import Body
from discreet.source.array_points import grid_of_bounds

MIDDLES = np.array([[0.2, 0.25], [0.75, 0.3], [0.5, 0.8]])


def blobs(rows=2000, seed=0, middles=MIDDLES, spread=0.07):
    rng = np.random.default_rng(seed)
    return middles[rng.integers(len(middles), size=rows)] + rng.normal(scale=spread, size=(rows, middles.shape[1]))


def inertia(rows, centers):
    return float(((rows[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).min(axis=1).sum())


def ratio(rows, model):
    best = Plain(len(model.cluster_centers_), n_init=4, random_state=0).fit(rows).inertia_
    return inertia(rows, model.cluster_centers_) / best


# --- How good --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [{}, {"delta": 1e-6}, {"neighbors": "replace_one"}], ids=str)
def test_centres_are_nearly_as_good_as_without_privacy(named):
    found = [
        ratio(rows, dp.KMeans(3, epsilon=0.5, bounds=(0, 1), **named).fit(rows)) for rows in map(_seeded, range(7))
    ]
    assert np.median(found) < 1.1


def _seeded(seed):
    return blobs(seed=seed)


def test_with_many_rows_they_are_as_good_and_the_lecture_is_behind():
    rows = blobs(40_000)
    ours = [ratio(rows, dp.KMeans(3, epsilon=0.5, bounds=(0, 1)).fit(rows)) for _ in range(3)]
    notes = [ratio(blobs(), _lecture().fit(blobs())) for _ in range(7)]
    assert np.median(ours) < 1.01
    assert np.median(notes) > 1.1


def _lecture(**named):
    return dp.KMeans(3, epsilon=0.5, bounds=(0, 1), algorithm="lecture", neighbors="replace_one", **named)


def test_more_columns_and_more_clusters_work():
    rng = np.random.default_rng(3)
    rows = blobs(20_000, middles=rng.uniform(0.2, 0.8, (6, 6)), spread=0.05)
    assert ratio(rows, dp.KMeans(6, epsilon=2, bounds=(0, 1)).fit(rows)) < 1.3


def test_far_too_many_columns_for_a_grid_still_give_centres():
    rows = np.random.default_rng(4).uniform(size=(500, 30))
    model = dp.KMeans(4, epsilon=1, bounds=(0, 1)).fit(rows)
    assert model.cluster_centers_.shape == (4, 30)
    assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_hardly_any_rows_give_centres_all_the_same(rows):
    table = dp.open({"a": [3] * rows, "b": [5] * rows}, domain=dp.Domain({n: dp.Integers(0, 9) for n in "ab"}))
    for algorithm in ("auto", "lecture"):
        model = dp.KMeans(5, epsilon=0.1, columns=["a", "b"], algorithm=algorithm).fit(table)
        assert model.cluster_centers_.shape == (5, 2)
        assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize("columns", [["one"], ["one", "a"]])
def test_a_column_of_one_value_is_a_coordinate_too(columns):
    domain = dp.Domain({"one": dp.Integers(5, 5, missing="drop"), "a": dp.Integers(0, 9)})
    table = dp.open({"one": [5] * 500, "a": [2] * 250 + [8] * 250}, domain=domain)
    for algorithm in ("auto", "lecture"):
        model = dp.KMeans(2, epsilon=5, columns=columns, algorithm=algorithm).fit(table)
        assert np.isfinite(model.transform(pd.DataFrame({name: [5] for name in columns}))).all()
        assert algorithm == "lecture" or (model.cluster_centers_[:, 0] == 5).all()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_balls_are_bounds_too(norm):
    rows = blobs(20_000, middles=np.array([[-0.3, 0.2], [0.4, 0.1]]), spread=0.05)
    model = dp.KMeans(2, epsilon=2, bounds=(-1, 1), norm=norm).fit(rows)
    assert ratio(rows, model) < 1.05


def test_features_with_other_bounds_keep_their_unit():
    rows = np.column_stack([np.repeat([100.0, 900.0], 4000), np.tile([3.0, 7.0], 4000)])
    model = dp.KMeans(2, epsilon=2, bounds=([0, 0], [1000, 10])).fit(rows)
    assert sorted(model.cluster_centers_[:, 0].round(-2)) == [100, 900]
    assert np.abs(model.cluster_centers_[:, 1] - 5).max() < 1.5


# --- The pieces ------------------------------------------------------------------------------------------------------


def test_weighted_places_are_parted_as_by_scikit_learn_and_the_same_way_every_time():
    rng = np.random.default_rng(5)
    for many in (1, 2, 7):
        places, weights = rng.uniform(size=(200, 3)), rng.uniform(size=200)
        best = Plain(many, n_init=4, random_state=0).fit(places, sample_weight=weights).inertia_
        found = partition(places, weights, many)
        assert found.cost * weights.sum() < 1.05 * best
        assert found.weights.sum() == pytest.approx(weights.sum())
        assert (partition(places, weights, many).centers == found.centers).all()


def test_nearest_counts_are_the_nearest():
    rng = np.random.default_rng(6)
    for _ in range(20):
        noisy = rng.normal(scale=20, size=8)
        found = nearest_counts(noisy, 50.0)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(50)
        others = rng.dirichlet(np.full(8, 0.4), size=300) * 50
        assert ((found - noisy) ** 2).sum() <= ((others - noisy) ** 2).sum(axis=1).min()


def test_a_grid_has_as_many_boxes_as_the_rows_can_fill():
    box = Body((16384, 16384))
    sizes = [choose_bins(box, 3, rows, 7.0)[0] for rows in (0, 2000, 20_000, 10**6)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 3
    assert choose_bins(Body((16384, 1638)), 3, 10**6, 7.0)[1] < choose_bins(box, 3, 10**6, 7.0)[0] / 5
    assert choose_bins(Body((16384,) * 30), 3, 10**9, 7.0) == (1,) * 30


def test_scattered_seeds_are_inside_and_apart():
    for norm in ("linf", "l1", "l2"):
        body = Body((1000,) * 5, norm)
        centers = scattered_seeds(body, 100.0, 6).centers
        assert (body.clipped(centers.T) == centers.T).all()
        gaps = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
        assert gaps[~np.eye(6, dtype=bool)].min() > 300**2 / 5


@pytest.mark.parametrize("norm", ["linf", "l1", "l2"])
def test_the_first_centres_of_the_lecture_are_uniform(norm):
    """A smaller copy of a body, half as long in two dimensions, holds a quarter of it."""
    body = Body((10_000, 10_000), norm)
    drawn = np.array(lecture_kmeans.uniform_centers(body, 20_000)).T
    half = Body((5000, 5000), norm)
    inside = (half.clipped(drawn.astype(float)) == drawn).all(axis=0).mean()
    # Hoeffding: off by more with probability 1e-9.
    assert abs(inside - 0.25) < 0.0235


def test_the_lecture_draws_a_centre_anew_where_hardly_anybody_is(monkeypatch):
    asked = []
    real = lecture_kmeans.uniform_centers
    monkeypatch.setattr(lecture_kmeans, "uniform_centers", lambda body, many: asked.append(1) or real(body, many))
    rows = np.full((2000, 2), 0.1)
    model = dp.KMeans(3, epsilon=50, bounds=(0, 1), algorithm="lecture", rounds=4).fit(rows)
    # Two of three have no rows: they are somewhere else after every round, the third is where the rows are.
    near = np.abs(model.path_[1:] - 0.1).max(axis=2) < 0.01
    assert (near.sum(axis=1) >= 1).all()
    assert len(asked) == 5
    assert model.n_iter_ == 4


def test_the_lecture_averages_its_last_rounds():
    model = dp.KMeans(2, epsilon=1, bounds=(0, 1), algorithm="lecture", rounds=5, average=3).fit(blobs(500))
    assert np.allclose(model.cluster_centers_, model.path_[-3:].mean(axis=0), atol=1e-3)
    assert _lecture().fit(blobs(100)).n_iter_ == 6


# --- scikit-learn ----------------------------------------------------------------------------------------------------


def test_it_keeps_the_rules_of_scikit_learn():
    """Those that hold for an estimator that is not random; with so much budget that twenty rows have clusters."""
    never = {"check_fit_idempotent": "fitted twice it draws new noise: what could be repeated would protect nobody"}
    results = check_estimator(dp.KMeans(3, epsilon=100, bounds=(-10, 10)), expected_failed_checks=never, on_skip=None)
    by_status = {status: [r["check_name"] for r in results if r["status"] == status] for status in ("passed", "xfail")}
    assert len(by_status["passed"]) >= 40
    assert by_status["xfail"] == ["check_fit_idempotent"]
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_pipeline_consistency", "check_transformer_data_not_an_array", "check_transformer_general"}


def test_frames_and_pipelines_work():
    rows = blobs(3000)
    for frame in (pd.DataFrame(rows, columns=["x", "y"]), pl.DataFrame(rows, schema=["x", "y"])):
        model = dp.KMeans(3, epsilon=5, bounds=(0, 1)).fit(frame)
        # scikit-learn reads no names off polars.
        assert list(getattr(model, "feature_names_in_", "xy")) == ["x", "y"]
        assert (model.predict(frame) == model.labels_).all()
    line = make_pipeline(MaxAbsScaler(), dp.KMeans(3, epsilon=5, bounds=(-1, 1))).fit(rows)
    assert line.transform(rows).shape == (3000, 3)
    assert list(line.get_feature_names_out()) == ["kmeans0", "kmeans1", "kmeans2"]


def test_labels_are_those_of_the_nearest_centre():
    rows = blobs(2000)
    model = dp.KMeans(3, epsilon=5, bounds=(0, 1))
    labels = model.fit_predict(rows)
    assert (labels == model.labels_).all()
    distances = model.transform(rows)
    assert (distances[np.arange(2000), labels] <= distances.min(axis=1) + 1e-3).all()


def test_what_is_not_private_is_not_in_a_pickle_or_a_copy():
    model = dp.KMeans(3, epsilon=1, bounds=(0, 1)).fit(blobs(1000))
    assert len(model.labels_) == 1000
    for other in (pickle.loads(pickle.dumps(model)), copy(model)):
        assert not hasattr(other, "labels_")
        assert (other.cluster_centers_ == model.cluster_centers_).all()
    assert not hasattr(model, "inertia_")
    assert not hasattr(clone(model), "cluster_centers_")
    # Nothing that is left is as long as the rows.
    assert max(np.size(value) for name, value in vars(model).items() if name != "labels_") < 100


def test_there_is_no_seed():
    assert not {"random_state", "seed"} & set(dp.KMeans().get_params())
    rows = blobs(200)
    fits = {dp.KMeans(3, epsilon=0.5, bounds=(0, 1)).fit(rows).cluster_centers_.tobytes() for _ in range(4)}
    assert len(fits) == 4


# --- Budgets ---------------------------------------------------------------------------------------------------------

DOMAIN = dp.Domain(
    {
        "age": dp.Integers(0, 99, missing="drop"),
        "hours": dp.Bins(list(range(0, 100, 5)), upper=99),
        "city": dp.Categories(["a", "b"]),
        "uneven": dp.Bins([0, 1, 5], upper=9),
    }
)
COLUMNS = ["age", "hours"]


def people(rows=3000, unit=None):
    rng = np.random.default_rng(9)
    group = rng.integers(2, size=rows)
    age = rng.normal(np.where(group, 30, 65), 5).astype(int).clip(0, 99)
    hours = rng.normal(np.where(group, 42, 12), 4).astype(int).clip(0, 99)
    data = {"age": age, "hours": hours, "city": ["a"] * rows, "uneven": [1] * rows, "who": np.arange(rows)}
    return dp.open(data, schema=dp.Schema("people", DOMAIN, dp.Unit() if unit is None else unit))


BUDGETS = [
    dp.Budget(epsilon=1),
    dp.Budget(epsilon=1, delta=1e-6),
    dp.Budget(epsilon=1, delta=1e-6, gate="renyi"),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.gate)
def test_a_desk_pays_in_its_own_gate_and_a_key_pays_once(tmp_path, budget):
    with dp.Curator(people(), budget=budget, ledger=tmp_path / "l.sqlite", analyst="ana") as desk:
        before = desk.ledger.remaining(table="people", analyst="ana").epsilon
        model = dp.KMeans(2, epsilon=0.4, columns=COLUMNS, key="once").fit(desk)
        left = desk.ledger.remaining(table="people", analyst="ana").epsilon
        assert left < before
        assert model.noise_ == ("laplace" if budget.gate == "pure" else "gaussian")
        if budget.gate == "pure":
            assert before - left == Fraction(4, 10)
        ages = sorted(model.cluster_centers_[:, 0])
        assert abs(ages[0] - 30) < 6
        assert abs(ages[1] - 65) < 6
        again = dp.KMeans(2, epsilon=0.4, columns=COLUMNS, key="once").fit(desk)
        assert (again.cluster_centers_ == model.cluster_centers_).all()
        assert (again.path_ == model.path_).all()
        assert desk.ledger.remaining(table="people", analyst="ana").epsilon == left
        spend = desk.ledger.history(table="people")[-1]
        assert (spend.analyst, spend.event) == ("ana", model.event_)
        # The desk goes on, and begins again, with what it did not do itself in its ledger.
        assert desk.ask("age >= 50", error=400).origin in ("direct", "measured")
        with dp.Curator(people(), ledger=desk.ledger, analyst="ana") as restarted:
            assert restarted.ask("age >= 50", error=400).origin == "known"
        with pytest.raises(KeyReused):
            dp.KMeans(3, epsilon=0.4, columns=COLUMNS, key="once").fit(desk)


def test_a_desk_fits_again_from_its_ledger_after_a_restart_when_nothing_is_left(tmp_path):
    with dp.Curator(people(), budget=dp.Budget(epsilon=1), ledger=tmp_path / "l.sqlite") as desk:
        model = dp.KMeans(2, epsilon=0.4, columns=COLUMNS, key="once").fit(desk)
        dp.KMeans(2, epsilon=0.6, columns=COLUMNS).fit(desk)
        assert record_of(desk.history()[0].released).kind == "kmeans"
        with pytest.raises(BudgetExceeded):
            dp.KMeans(2, epsilon=0.4, columns=COLUMNS, key="twice").fit(desk)
    with dp.Curator(people(), ledger=tmp_path / "l.sqlite") as again, no_row_is_read(again.table):
        found = dp.KMeans(2, epsilon=0.4, columns=COLUMNS, key="once").fit(again)
    assert (found.cluster_centers_ == model.cluster_centers_).all()
    assert (found.path_ == model.path_).all()
    assert (found.n_iter_, found.event_, found.noise_) == (model.n_iter_, model.event_, model.noise_)


def test_a_key_is_bound_to_everything_that_decides_what_is_fitted(tmp_path):
    with dp.Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.cap(dp.Budget(epsilon=9), table="points")
        how = {"n_clusters": 2, "epsilon": 1, "bounds": (0, 1), "ledger": ledger, "key": "once"}
        first = dp.KMeans(**how).fit(blobs(200)).cluster_centers_
        others = [{"n_clusters": 3}, {"epsilon": 2}, {"bounds": (0, 2)}, {"norm": "l2"}, {"rounds": 2}]
        # Another unit is refused in any case.
        for other in (*others, {"algorithm": "lecture"}, {"algorithm": "lecture", "rounds": 3, "average": 2}):
            with pytest.raises(KeyReused):
                dp.KMeans(**how | other).fit(blobs(200))
        assert (dp.KMeans(**how).fit(blobs(200)).cluster_centers_ == first).all()
        assert ledger.remaining(table="points").epsilon == 8


@contextmanager
def no_row_is_read(table):
    right, table.source.evaluate = table.source.evaluate, None
    yield
    table.source.evaluate = right


def test_a_desk_fits_in_its_turn_and_says_what_is_known_meanwhile(tmp_path):
    table = people()
    begun, may_end, right = Event(), Event(), table.source.evaluate

    def evaluate(question):
        begun.set()
        assert may_end.wait(20)
        return right(question)

    opened = dp.Curator(table, budget=dp.Budget(epsilon=4), ledger=tmp_path / "l.sqlite")
    with opened as desk, ThreadPoolExecutor(2) as crowd:
        desk.ask("age >= 50", error=100)
        table.source.evaluate = evaluate
        fitting = crowd.submit(dp.KMeans(2, epsilon=1, columns=COLUMNS).fit, desk)
        assert begun.wait(20)
        assert desk.ask("age >= 50", error=200).origin == "known"
        paying = crowd.submit(desk.ask, "hours >= 50", error=100)
        sleep(0.05)
        assert [spend.why for spend in desk.history()] == ["age >= 50", "2 clusters of age, hours"], (
            "one pays at a time"
        )
        may_end.set()
        assert fitting.result(20).cluster_centers_.shape == (2, 2)
        assert paying.result(20).origin in ("direct", "measured")


def test_a_desk_fits_within_its_quantum(tmp_path):
    table = people()
    with dp.Curator(table, budget=dp.Budget(epsilon=4), ledger=tmp_path / "l.sqlite", quantum=0.4) as desk:
        begun = monotonic()
        dp.KMeans(2, epsilon=1, columns=COLUMNS, key="once").fit(desk)
        assert monotonic() - begun >= 0.4
        begun = monotonic()
        dp.KMeans(2, epsilon=1, columns=COLUMNS, key="once").fit(desk)
        assert monotonic() - begun < 0.4, "what is kept reads no row"


def test_a_desk_of_an_older_version_does_not_fit(tmp_path):
    with dp.Curator(people(), budget=dp.Budget(epsilon=4), ledger=tmp_path / "l.sqlite") as desk:
        desk.ledger.bind(replace(desk.table.identity, version="2"))
        head = desk.ledger.head
        with pytest.raises(TableChanged):
            dp.KMeans(2, epsilon=1, columns=COLUMNS).fit(desk)
        assert desk.ledger.head == head


def test_a_cap_of_one_analyst_holds_for_clusters(tmp_path):
    with dp.Curator(people(), budget=dp.Budget(epsilon=4), ledger=tmp_path / "l.sqlite") as desk:
        desk.ledger.cap(dp.Budget(epsilon=1), table="people", analyst="ana")
        dp.KMeans(2, epsilon=1, columns=COLUMNS).fit(desk.seen_by("ana"))
        with pytest.raises(BudgetExceeded, match='analyst "ana"'):
            dp.KMeans(2, epsilon=1, columns=COLUMNS).fit(desk.seen_by("ana"))
        dp.KMeans(2, epsilon=1, columns=COLUMNS).fit(desk.seen_by("ben"))


def test_nothing_is_read_before_it_is_paid_and_nothing_paid_if_it_is_refused(tmp_path):
    table = people()
    asked = []
    real = table.source.evaluate
    table.source.evaluate = lambda question: asked.append(question) or real(question)
    with dp.Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.cap(dp.Budget(epsilon=1), table="people")
        refused = [
            ({"epsilon": 2}, BudgetExceeded),
            ({"epsilon": None}, BadParameter),
            ({"epsilon": 1e-14}, BadParameter),
            ({"columns": ["age", "city"]}, BadSchema),
            ({"columns": ["uneven"]}, BadSchema),
            ({"columns": None}, BadParameter),
            ({"columns": "age"}, BadParameter),
            ({"delta": 1e-6}, BadParameter),
            ({"bounds": (0, 1)}, BadParameter),
            ({"n_clusters": 0}, BadParameter),
            ({"rounds": 0}, BadParameter),
            ({"algorithm": "best"}, BadParameter),
        ]
        for named, error in refused:
            with pytest.raises(error):
                dp.KMeans(**{"n_clusters": 2, "epsilon": 0.5, "columns": COLUMNS, "ledger": ledger, **named}).fit(table)
        assert not asked
        assert ledger.remaining(table="people").epsilon == 1
        dp.KMeans(2, epsilon=0.5, columns=COLUMNS, ledger=ledger).fit(table)
        assert asked
        assert ledger.remaining(table="people").epsilon == Fraction(1, 2)


def test_an_array_pays_under_the_name_that_it_is_given(tmp_path):
    path = tmp_path / "l.sqlite"
    with dp.Ledger(path) as ledger:
        ledger.cap(dp.Budget(epsilon=1), table="blobs")
    model = dp.KMeans(3, epsilon=0.75, bounds=(0, 1), ledger=path, table="blobs")
    model.fit(blobs(500))
    with pytest.raises(BudgetExceeded):
        clone(model).fit(blobs(500))
    with dp.Ledger(path) as ledger:
        assert ledger.remaining(table="blobs").epsilon == Fraction(1, 4)


@pytest.mark.parametrize("unit", [dp.Unit(key="who", contributions=2), dp.Unit(neighbors="replace_one")], ids=str)
def test_a_table_says_whom_it_protects(unit):
    model = dp.KMeans(2, epsilon=4, columns=COLUMNS).fit(people(unit=unit))
    assert abs(sorted(model.cluster_centers_[:, 0])[0] - 30) < 6
    assert not hasattr(model, "labels_")
    with pytest.raises(BadParameter, match="labels of the rows of a table are private"):
        model.fit_predict(people())


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"epsilon": None}, "epsilon is None; private centres cost a budget"),
        ({"bounds": None}, "bounds is None; it must be a pair"),
        ({"bounds": (1, 0)}, "lower is below upper"),
        ({"bounds": ([0], [1])}, "have 1 numbers and there are 2 features"),
        ({"bounds": (0, float("inf"))}, "must be a finite number"),
        ({"bounds": ([0, 0], [1, 2]), "norm": "l2"}, "a ball has one radius"),
        ({"norm": "l3"}, "norm is 'l3'"),
        ({"columns": ["x"]}, "Choose its columns before"),
        ({"neighbors": "none"}, "neighbors is 'none'"),
    ],
)
def test_mistakes_are_told_with_the_next_step(named, says):
    with pytest.raises(dp.Mistake, match=says):
        dp.KMeans(**{"n_clusters": 3, "epsilon": 1, "bounds": (0, 1), **named}).fit(blobs(20))


def test_the_grid_of_a_table_is_the_grid_of_its_values():
    table = people()
    model = dp.KMeans(2, epsilon=4, columns=COLUMNS).fit(table)
    assert model.n_features_in_ == 2
    values = pd.DataFrame({"age": [30, 65], "hours": [42, 12]})
    assert len(set(model.predict(values))) == 2
    assert grid_of_bounds((0, 1), 1).values(np.array([[0.0]])).tolist() == [[0.5]]
