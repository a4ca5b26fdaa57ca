"""k-means with a privacy budget, by the rules of scikit-learn. Proofs: kmeans.md"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from json import dumps
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.accounting.event import Event, event_to_plain
from discreet.curator import Curator
from discreet.errors import BadParameter
from discreet.learn.kmeans import lloyd
from discreet.learn.kmeans.noisy_points import BudgetSplit, NoiseKind, PrivatePoints, budget_split
from discreet.ledger import Ledger, legacy
from discreet.ledger.idempotency import key_body, own_key
from discreet.ledger.ledger import ANYONE
from discreet.ledger.transaction import Access, Codec, Payment, Record, transact
from discreet.numeric import Number, positive, probability, text, whole
from discreet.query.points import Grid, Norm, grid_of_columns
from discreet.schema.unit import Identity, Neighbors, Unit
from discreet.source.array_points import Points, grid_of_bounds
from discreet.source.table import Table
from discreet.types import Floats

Algorithm = Literal["auto", "lecture"]

MOST_CLUSTERS, MOST_LLOYD_ROUNDS = 2**10, 50

# The algorithms of the lab as module:function. The product never imports the lab; one is looked up when it is used.
LAB_ALGORITHMS = {"lecture": "discreet.lab.textbook.lecture_kmeans:lecture_fit"}


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Find the centres of k clusters, privately: `cluster_centers_` is epsilon-DP, or (epsilon, delta)-DP.

    `fit` takes an array or a frame, and then the `bounds` of its features, which must not come from the rows: a pair
    (lower, upper), of numbers or of lists; with `norm="l1"` or "l2" they bound the largest such ball in the cube. Rows
    outside are moved to the edge. Or it takes a `Table` or a `Curator`, and then `columns` of numbers, each scaled by
    its declared range. `neighbors` defines neighbouring arrays: a row is added or removed, or it is replaced and the
    number of rows is public. A table has its own.

    The default `algorithm` counts the rows in the boxes of a grid, begins at the clusters of the boxes, and improves
    them in a few rounds with noisy counts and sums; the number of `rounds` and their shares of the budget follow from a
    forecast of the error. "lecture" is Algorithm 2 of the notes, with 6 rounds by default; it averages the centres of
    its last `average` rounds.

    The noise is discrete Laplace, or with a `delta` discrete Laplace or rounded Gaussian, whichever has the smaller
    predicted error. With a `ledger` (a Ledger, or its path), or with a Curator, everything is paid there before a row
    is read, as an epsilon at the table's delta, with the noise that its gate prices best; `table` is the name of an
    array in the ledger. The same `key` gives the same centres again, without paying.

    Only private results may be published: `cluster_centers_`, `path_` (the centres after every round), `n_iter_`,
    `event_` (what was paid). `labels_` are for the holder of the rows, and are left out when the estimator is pickled
    or copied. There is no seed, because with it the noise could be subtracted, and no `inertia_`.

    >>> rows = np.repeat([[0.1, 0.1], [0.9, 0.2], [0.5, 0.8]], 1000, axis=0)
    >>> model = KMeans(3, epsilon=1, bounds=(0, 1)).fit(rows)
    >>> model.cluster_centers_.shape, model.event_
    ((3, 2), Pure(epsilon=Fraction(1, 1)))

    [BDMN05; SCLBJ16; 002 Alg. 2]; proof: kmeans.md
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        bounds: Any = None,
        norm: Norm = "linf",
        columns: Any = None,
        algorithm: Algorithm = "auto",
        rounds: int | None = None,
        average: int = 1,
        neighbors: Neighbors = "add_remove",
        ledger: Any = None,
        table: str = "points",
        analyst: str = ANYONE,
        key: str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm = norm
        self.columns = columns
        self.algorithm = algorithm
        self.rounds = rounds
        self.average = average
        self.neighbors = neighbors
        self.ledger = ledger
        self.table = table
        self.analyst = analyst
        self.key = key

    def fit(self, X: Any, y: Any = None) -> "KMeans":
        """Find the centres, and pay for them. Everything that can be refused is refused before anything is paid.

        An array is checked before it is paid for, and refused if it has a NaN: only its holder sees that. No row of a
        table is read before the payment; a row without a number in one of the columns counts in no cluster.
        """
        self._check()
        data = self._adapt(X)
        with _opened(data.ledger) as ledger:
            found = self._pay_and_fit(data._replace(ledger=ledger))
        self._grid, self._centers, self._columns = data.points.grid, found.centers, data.points.columns
        self.cluster_centers_ = self._grid.values(np.array(found.centers, dtype=np.float64))
        self.path_ = self._grid.values(np.array(found.path, dtype=np.float64))
        self.n_iter_ = found.rounds
        self.__dict__.pop("labels_", None)
        if isinstance(data.points.held, Points):
            self.labels_ = data.points.held.labels(found.centers)
        else:
            self.n_features_in_ = len(self._columns)
            self.feature_names_in_ = np.array(self._columns, dtype=object)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and the cluster of each row: for the holder of the rows, not to be published."""
        if isinstance(X, (Table, Curator)):
            raise BadParameter("the labels of the rows of a table are private. Use fit, and predict elsewhere.")
        return np.asarray(self.fit(X).labels_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each row, by the rule by which rows were counted; nothing is paid."""
        return Points(self._read(X), self._grid, Unit()).labels(self._centers)

    def transform(self, X: Any) -> Floats:
        """The distance of each row to each centre; in a table's columns, in halves of their declared ranges."""
        rows = self._read(X)
        scale = (
            np.array(self._grid.units) * np.maximum(self._grid.body.reach, 1)
            if self._columns
            else np.ones(rows.shape[1])
        )
        gaps = [np.sqrt((((rows - center) / scale) ** 2).sum(axis=1)) for center in self.cluster_centers_]
        return np.asarray(np.stack(gaps, axis=1))

    def _read(self, X: Any) -> Floats:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _check(self) -> None:
        whole("n_clusters", self.n_clusters, least=1, most=MOST_CLUSTERS)
        if self.epsilon is None:
            raise BadParameter("epsilon is None; private centres cost a budget. Give one, say epsilon=0.5.")
        positive("epsilon", self.epsilon, at_most=1000)
        probability("delta", self.delta, zero=True)
        if self.rounds is not None:
            whole("rounds", self.rounds, least=1, most=MOST_LLOYD_ROUNDS, next_step="Leave it out to have it chosen.")
        whole("average", self.average, least=1, most=MOST_LLOYD_ROUNDS)
        text("table", self.table)
        text("analyst", self.analyst)
        if self.algorithm not in ("auto", "lecture"):
            raise BadParameter(f'algorithm is {self.algorithm!r}; it must be "auto" or "lecture". Leave it out.')

    def _adapt(self, X: Any) -> "_Data":
        """The points that an array, a table or a curator holds, and who pays for them."""
        if not isinstance(X, (Table, Curator)):
            rows = validate_data(self, X, dtype=np.float64, order="K")
            grid = grid_of_bounds(self.bounds, rows.shape[1], self.norm)
            if self.columns is not None:
                raise BadParameter(f"columns is {self.columns!r} and X is an array. Choose its columns before.")
            unit = Unit(neighbors=self.neighbors)
            points = PrivatePoints(grid, (), unit, Points(rows, grid, unit))
            return _Data(points, Identity(self.table, unit), self.analyst, self.ledger)
        table = X.table if isinstance(X, Curator) else X
        columns = _columns(self.columns)
        points = PrivatePoints(grid_of_columns(table.domain, columns), columns, table.unit, table)
        if self.bounds is not None or self.norm != "linf":
            raise BadParameter("bounds or norm is given, and X is a table, which has its own. Leave them out.")
        if not isinstance(X, Curator):
            return _Data(points, table, self.analyst, self.ledger)
        analyst = X.analyst if self.analyst == ANYONE else self.analyst
        if self.ledger is None or self.ledger is X.ledger:
            return _Data(points, table, analyst, X.ledger, X)
        return _Data(points, table, analyst, self.ledger)

    def _pay_and_fit(self, data: "_Data") -> lloyd.Clustering:
        """Pay, measure and record; under a used key, return what was recorded."""
        if data.ledger is not None and data.desk is None:
            data.ledger.bind(data.table.identity if isinstance(data.table, Table) else data.table)
        budget = self._budget(data)
        lloyd.require_drawable(data.points, self.n_clusters, budget)
        payment = self._payment(data, budget.event)
        measure = partial(self._measure, data.points, budget)
        if data.desk is not None:
            # In the desk's turn and within its quantum, and only if the table is still the version in its ledger.
            found = data.desk._transact(payment, measure, _CODEC).result
        else:
            found = transact(data.ledger, payment, measure, _CODEC, Access(data.points.touch)).result
        self.event_, self.noise_ = budget.event, budget.noise
        return found

    def _measure(self, points: PrivatePoints, budget: BudgetSplit) -> lloyd.Clustering:
        """Read rows, add noise, and find centres; all rows are read from one state of the table."""
        with points.snapshot():
            if self.algorithm not in LAB_ALGORITHMS:
                return lloyd.fit_centers(points, self.n_clusters, budget, self.rounds)
            module, function = LAB_ALGORITHMS[self.algorithm].split(":")
            named = {"epsilon": budget.whole, "rounds": self.rounds, "average": self.average}
            found: lloyd.Clustering = getattr(import_module(module), function)(points, self.n_clusters, **named)
            return found

    def _budget(self, data: "_Data") -> BudgetSplit:
        """The budget, and the kind of noise that spends it."""
        epsilon, delta = positive("epsilon", self.epsilon), probability("delta", self.delta, zero=True)
        if self.algorithm in LAB_ALGORITHMS:
            return budget_split(epsilon, Fraction(0), "laplace")
        if data.ledger is not None:
            if delta:
                raise BadParameter(f"delta is {self.delta}; with a ledger, delta is the table's. Leave it out.")
            account = {"table": data.name, "analyst": data.analyst}
            kinds = {balance.gate.kind for balance in data.ledger.balances(**account)}
            noise: NoiseKind = "laplace" if "pure" in kinds or not kinds else "gaussian"
            return budget_split(epsilon, data.ledger.remaining(**account).delta, noise)
        if not delta:
            return budget_split(epsilon, delta, "laplace")
        choices = [budget_split(epsilon, delta, noise) for noise in ("laplace", "gaussian")]
        return min(choices, key=lambda budget: lloyd.predicted_error(data.points, self.n_clusters, budget))

    def _payment(self, data: "_Data", event: Event) -> Payment:
        """The payment; with a key, also the request that the key is bound to."""
        points = data.points
        why = f"{self.n_clusters} clusters of {', '.join(points.columns) or f'{points.body.dimensions} features'}"
        payment = Payment(event, why, data.table, data.analyst)
        if self.key is None:
            return payment
        how = [self.algorithm, self.rounds, self.average]
        what = {"clusters": self.n_clusters, "columns": list(points.columns), "event": event_to_plain(event)}
        body = key_body(
            "kmeans", {**what, "grid": _grid_to_plain(points.grid), "unit": _unit_to_plain(points.unit), "how": how}
        )
        older = dumps([why, *map(legacy.version_1_text, (event, points.grid, points.unit)), *how]).encode()
        return replace(payment, key=own_key(self.key), body=body, older=(older,))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Two fits give different centres: noise that could be repeated would protect nobody.
        tags.non_deterministic = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("labels_", None)
        return state


class _Data(NamedTuple):
    """The points to cluster, the table that they are of, and who pays: a desk, a ledger, or nobody."""

    points: PrivatePoints
    table: Table | Identity
    analyst: str
    ledger: Any
    desk: Curator | None = None

    @property
    def name(self) -> str:
        """The name of the table in the ledger."""
        return self.table.name if isinstance(self.table, Table) else self.table.table


def _opened(ledger: Any) -> AbstractContextManager[Ledger | None]:
    """The ledger, closed again if it was given as a path."""
    return nullcontext(ledger) if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)


def _fit_of(record: Record) -> lloyd.Clustering:
    """The centres and the path that were recorded."""
    path = tuple(tuple(map(tuple, centers)) for centers in record.fields["path"])
    return lloyd.Clustering(tuple(map(tuple, record.fields["centers"])), path)


_CODEC: Codec[lloyd.Clustering] = Codec(
    ("kmeans",), lambda found: Record("kmeans", {"centers": found.centers, "path": found.path}), _fit_of
)


def _grid_to_plain(grid: Grid) -> dict[str, Any]:
    """A grid as plain values, for the request that a key is bound to."""
    ends = {"middle": list(grid.middle), "units": list(grid.units)}
    return {**ends, "reach": list(grid.body.reach), "norm": grid.body.norm}


def _unit_to_plain(unit: Unit) -> dict[str, Any]:
    return {"key": unit.key, "contributions": unit.contributions, "neighbors": unit.neighbors}


def _columns(columns: Any) -> tuple[str, ...]:
    if columns is None or isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise BadParameter(
            f"columns is {columns!r}; a table needs the names of columns. Give columns=['age', 'hours']."
        )
    return tuple(columns)
