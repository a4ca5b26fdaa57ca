"""k-means with a privacy budget, by the rules of scikit-learn. Proofs: kmeans.md"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from json import dumps, loads
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.curator import Curator
from discreet.errors import BadParameter
from discreet.learn import lecture, lloyd
from discreet.learn.look import Look
from discreet.learn.purse import Noise, Purse, purse_of
from discreet.ledger import Ledger
from discreet.ledger.failed import reading_for
from discreet.ledger.keys import own_key
from discreet.ledger.ledger import ANYONE
from discreet.parameter import Number, positive, probability, text, whole
from discreet.privacy.event import Event, Pure
from discreet.query.body import Norm, grid_of_columns
from discreet.schema.identity import Identity
from discreet.schema.unit import Neighbors, Unit
from discreet.source.points import Points, grid_of_bounds
from discreet.source.table import Table
from discreet.types import Floats

Algorithm = Literal["auto", "lecture"]


MOST_CLUSTERS, MOST_ROUNDS = 2**10, 50

# The first line of what is kept in the ledger.
MAGIC = b"discreet kmeans 1\n"


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Find the centres of k clusters, privately: `cluster_centers_` is epsilon-DP, or (epsilon, delta)-DP.

    `fit` takes an array or a frame, and then the `bounds` of its features, which must be known without looking at the
    rows: a pair (lower, upper), of numbers or of lists; with `norm="l1"` or "l2" they bound the largest such ball in
    the cube. Rows outside are moved to the edge. Or it takes a `Table` or a `Curator`, and then `columns` of numbers,
    each scaled by its declared range. `neighbors` says for arrays what one person changes: a row is added or removed,
    or it is replaced and the number of rows is public. A table says that itself.

    The default `algorithm` counts the rows in the boxes of a grid, begins at the clusters of the boxes, and improves
    them in a few rounds with noisy counts and sums; how many (`rounds`), and what each costs, follows from a forecast
    of the error. "lecture" is Algorithm 2 of the notes, with 6 rounds if you do not say; `average` is the number of
    last rounds of which it takes the means.

    The noise is discrete Laplace, or with a `delta` what is predicted to be better of that and rounded Gaussian noise.
    With a `ledger` (a Ledger, or its path), or with a Curator, everything is paid there before a row is read, as an
    epsilon at the table's delta, with the noise that its gate prices best; `table` is what the ledger calls an array.
    The same `key` gives the same centres again, without paying.

    Only what is private may be published: `cluster_centers_`, `path_` (the centres after every round), `n_iter_`,
    `event_` (what was paid). `labels_` are for whoever holds the rows, and are left out when the estimator is pickled
    or copied. There is no seed, because whoever knows it can take the noise away, and no `inertia_`.

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

        An array is read, and refused if it has a NaN, before it is paid for: that tells something to whoever gives it,
        and they hold it. From a table nothing is read before; a row without a number in one of the columns counts in no
        cluster.
        """
        self._check()
        if not isinstance(X, (Table, Curator)):
            rows = validate_data(self, X, dtype=np.float64, order="K")
            grid = grid_of_bounds(self.bounds, rows.shape[1], self.norm)
            if self.columns is not None:
                raise BadParameter(f"columns is {self.columns!r} and X is an array. Choose its columns before.")
            unit = Unit(neighbors=self.neighbors)
            points = Points(rows, grid, unit)
            with self._book(self.ledger) as ledger:
                self._fit(Look(grid, (), unit, points), ledger, Identity(self.table, unit), self.analyst)
            self.labels_ = points.labels(self._centers)
            return self
        held = X.table if isinstance(X, Curator) else X
        given = X.ledger if isinstance(X, Curator) and self.ledger is None else self.ledger
        columns = _columns(self.columns)
        grid = grid_of_columns(held.domain, columns)
        if self.bounds is not None or self.norm != "linf":
            raise BadParameter("bounds or norm are given, and X is a table; a table declares its own. Leave them out.")
        analyst = X.analyst if isinstance(X, Curator) and self.analyst == ANYONE else self.analyst
        with self._book(given) as ledger:
            self._fit(Look(grid, columns, held.unit, held), ledger, held.identity, analyst)
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.__dict__.pop("labels_", None)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Fit, and the cluster of each row: for whoever holds the rows, and not to be published."""
        if isinstance(X, (Table, Curator)):
            raise BadParameter("the rows of a table have no labels that could be told. Use fit, and predict elsewhere.")
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
            raise BadParameter("epsilon is None; private centres have a price. Give one, say epsilon=0.5.")
        positive("epsilon", self.epsilon, at_most=1000)
        probability("delta", self.delta, zero=True)
        if self.rounds is not None:
            whole("rounds", self.rounds, least=1, most=MOST_ROUNDS, next_step="Leave it out to have it chosen.")
        whole("average", self.average, least=1, most=MOST_ROUNDS)
        text("table", self.table)
        text("analyst", self.analyst)
        if self.algorithm not in ("auto", "lecture"):
            raise BadParameter(f'algorithm is {self.algorithm!r}; it must be "auto" or "lecture". Leave it out.')

    def _book(self, ledger: Any) -> AbstractContextManager[Ledger | None]:
        """The ledger, closed again if it was given as a path."""
        return nullcontext(ledger) if ledger is None or isinstance(ledger, Ledger) else Ledger(ledger)

    def _fit(self, look: Look, ledger: Ledger | None, table: Identity, analyst: str) -> None:
        if ledger is not None:
            ledger.bind(table)
        purse = self._purse(look, ledger, table.table, analyst)
        event: Event = Pure(positive("epsilon", self.epsilon)) if self.algorithm == "lecture" else purse.event
        lloyd.require_drawable(look, self.n_clusters, purse)

        def release() -> lloyd.Fit:
            if self.algorithm == "lecture":
                return lecture.lecture_fit(
                    look,
                    self.n_clusters,
                    look.unit,
                    epsilon=positive("epsilon", self.epsilon),
                    rounds=self.rounds or lecture.ROUNDS,
                    average=self.average,
                )
            return lloyd.fit(look, self.n_clusters, purse, self.rounds)

        found = self._paid(ledger, event, release, look, table, analyst)
        self._grid, self._centers, self._columns = look.grid, found.centers, look.columns
        self.cluster_centers_ = look.grid.values(np.array(found.centers, dtype=np.float64))
        self.path_ = look.grid.values(np.array(found.path, dtype=np.float64))
        self.n_iter_, self.event_, self.noise_ = found.rounds, event, purse.noise

    def _purse(self, look: Look, ledger: Ledger | None, table: str, analyst: str) -> Purse:
        """What may be spent, and the noise for it."""
        epsilon, delta = positive("epsilon", self.epsilon), probability("delta", self.delta, zero=True)
        if self.algorithm == "lecture":
            return purse_of(epsilon, Fraction(0), "laplace")
        if ledger is not None:
            if delta:
                raise BadParameter(f"delta is {self.delta} and there is a ledger; it is the table's. Leave it out.")
            kinds = {balance.gate.kind for balance in ledger.balances(table=table, analyst=analyst)}
            noise: Noise = "laplace" if "pure" in kinds or not kinds else "gaussian"
            left = ledger.remaining(table=table, analyst=analyst)
            return purse_of(epsilon, left.delta, noise)
        if not delta:
            return purse_of(epsilon, delta, "laplace")
        choices = [purse_of(epsilon, delta, noise) for noise in ("laplace", "gaussian")]
        return min(choices, key=lambda purse: lloyd.foreseen(look, self.n_clusters, purse))

    def _paid(
        self,
        ledger: Ledger | None,
        event: Event,
        release: Callable[[], lloyd.Fit],
        look: Look,
        table: Identity,
        analyst: str,
    ) -> lloyd.Fit:
        """What is released after it was paid for, or what was released before under this key."""
        if ledger is None:
            look.touch()
            with look.snapshot():
                return release()
        why = f"{self.n_clusters} clusters of {', '.join(look.columns) or f'{look.body.dimensions} features'}"
        asked = [why, repr(event), repr(look.grid), repr(look.unit), self.algorithm, self.rounds, self.average]
        body = None if self.key is None else dumps(asked).encode()
        # Pay before reading: a crash now wastes budget; the other order would hide a loss.
        if self.key is None or not ledger.is_answered(own_key(self.key), analyst=analyst):
            look.touch()
        receipt = ledger.spend(event, why, table=table, analyst=analyst, key=self.key, body=body)
        if receipt.released is not None:
            kept = loads(receipt.released.removeprefix(MAGIC))
            path = tuple(tuple(map(tuple, centers)) for centers in kept["path"])
            return lloyd.Fit(tuple(map(tuple, kept["centers"])), path)
        with reading_for(ledger, receipt, event, self.key), look.snapshot():
            found = release()
        ledger.record(receipt, MAGIC + dumps({"centers": found.centers, "path": found.path}).encode())
        return found

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Fitted twice, it has two centres: noise that could be repeated would protect nobody.
        tags.non_deterministic = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("labels_", None)
        return state


def _columns(columns: Any) -> tuple[str, ...]:
    if columns is None or isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise BadParameter(
            f"columns is {columns!r}; a table needs the names of columns. Give columns=['age', 'hours']."
        )
    return tuple(columns)
