"""Synthetic rows whose counts are much closer to a model's expectation than those of independent draws.

Independent draws give a count of n rows the sampling noise √n, which is often more than the noise that privacy needs.
So rows are drawn by stratified sampling, values are moved until the single columns are right, and then values are
exchanged between rows, which keeps the single columns, as long as the counts of pairs and triples come closer to the
model's (`local_search.py`). The marginals of all these scopes are computed together where the model allows it. This is
post-processing: it reads the model and nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, TooLarge
from discreet.model.dense.dense_model import Dense
from discreet.model.interface import Coded, Model
from discreet.model.mixture.mixture_model import Blend, Mixture, rounded
from discreet.model.quasi_random import uniform
from discreet.model.synthesis import local_search
from discreet.noise.sample import word
from discreet.numeric import whole
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# No scope has more columns.
WIDEST = 3


def tables_of(model: Model, scopes: Sequence[Columns], number: int) -> Iterator[tuple[Columns, Numbers]]:
    """The expected counts of `number` rows in each scope, without the scopes that the model cannot answer."""
    if isinstance(model, Mixture):
        found = _of_mixture(model, scopes)
    elif isinstance(model, Dense):
        names, wanted = tuple(model.domain), frozenset(scopes)
        found = (each for each in _of_cube(model.marginal(names), names, 0) if each[0] in wanted)
    else:
        found = _in_turn(model, scopes)
    for scope, table in found:
        total = float(table.sum())
        if total > 0:
            yield scope, table * (number / total)


def places_of(domain: Domain) -> dict[str, slice]:
    """Where the cells of each column are, among those of all columns."""
    ends = np.cumsum([0, *domain.shape]).tolist()
    return {name: slice(*bounds) for name, bounds in zip(domain, pairwise(ends), strict=True)}


def _in_turn(model: Model, scopes: Sequence[Columns]) -> Iterator[tuple[Columns, Numbers]]:
    for scope in scopes:
        try:
            yield scope, model.marginal(scope)
        except TooLarge:
            continue


def _of_mixture(model: Mixture, scopes: Sequence[Columns]) -> Iterator[tuple[Columns, Numbers]]:
    # Single precision takes half the time, and is more than enough for whole numbers of rows.
    tables, weights = model.tables.astype(np.float32), model.weights.astype(np.float32)
    blocks = {name: tables[place] for name, place in places_of(model.domain).items()}
    for scope in scopes:
        # The largest column last: the product that is made for each component has the fewest cells.
        order = sorted(range(len(scope)), key=lambda at: len(blocks[scope[at]]))
        crossed = np.broadcast_to(weights, (1, len(weights)))
        for at in order[:-1]:
            crossed = (crossed[:, None] * blocks[scope[at]]).reshape(-1, len(weights))
        flat = crossed @ blocks[scope[order[-1]]].T
        cube = flat.reshape([len(blocks[scope[at]]) for at in order]).transpose(np.argsort(order))
        yield scope, cube.astype(np.float64)


def _of_cube(cube: Numbers, names: Columns, kept: int) -> Iterator[tuple[Columns, Numbers]]:
    """The marginals that keep the first `kept` columns, and up to three in all. Each column is summed out only once."""
    if kept == min(WIDEST, len(names)):
        yield names[:kept], cube.sum(axis=tuple(range(kept, len(names))))
        return
    yield from _of_cube(cube, names, kept + 1)
    yield from _of_cube(cube.sum(axis=kept), (*names[:kept], *names[kept + 1 :]), kept)


@dataclass(frozen=True, slots=True)
class SearchTuning:
    """Set by hand; no sweep is recorded. bench/release.py measures the rows of releases.

    One has a recorded reason: with `most_lookups`, rows of Adult at rich budgets are within 5 % of the model.
    """

    # Cells of all pairs, and of all scopes with the triples: eight bytes each, few enough for the processor's cache.
    most_cells_of_pairs: int = 2**22
    most_cells: int = 2**21
    # Triples are used if at least this part of them fits, and if there are at most this many columns.
    enough_triples: float = 0.25
    most_columns_of_triples: int = 64
    # A row exchanges values with one of this many rows after it.
    neighborhood: int = 64
    # At most this many scopes are looked up in all: about four seconds. A round of all columns looks up at least
    # the second number: fewer would not show whether it pays.
    most_lookups: int = 400_000_000
    least_lookups: int = 10_000_000
    # The search ends when a round would lower the distance by less than this part, or a cell's distance is small.
    least_gain: float = 0.0005
    small_distance: float = 0.001


SEARCH = SearchTuning()


@dataclass(frozen=True, slots=True, eq=False)
class Scopes:
    """The counts that matter, in the form of `local_search`, and the expected value of each; no row is counted yet."""

    begins: NDArray[np.int64]
    terms: local_search.TermArray
    state: local_search.CellArray

    def count(self, cells: NDArray[np.int32]) -> None:
        """Add the rows to the state."""
        owners = np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))
        first = (owners < self.terms["first"]) & (owners < self.terms["second"])
        local_search.machine_code(local_search.count_rows)(cells, owners[first], self.terms[first], self.state)

    @property
    def distance(self) -> float:
        """Σ (count − expected)²/(expected + 1)."""
        return float(np.vdot(self.state["excess"] ** 2, self.state["weight"]))


def synthesize(model: Model, number: int, *, domain: Domain | None = None) -> Coded:
    """Make `number` rows whose counts are close to the model's; of all its columns, or of those in `domain`.

    The count of each value of each column is what the model expects, rounded up or down. Among such rows, those are
    sought that make Σ (count − expected)²/(expected + 1) small, over all pairs of columns and over the triples, the
    smallest first, that fit in a few megabytes. Rows come in random order, and differ each time.

    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "smoker": Boolean()})
    >>> model = Mixture(people, 1.0, np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]] * 2))
    >>> rows = synthesize(model, 100)
    >>> np.bincount(2 * rows["old"] + rows["smoker"]).tolist()
    [41, 9, 9, 41]
    """
    count, kept = whole("number", number), model.domain if domain is None else domain
    for name, column in kept.columns:
        if column != model.domain[name]:
            raise BadParameter(f'column "{name}" is another one in the model. Give some of its own columns.')
    drawn = stratified(model, count)
    if count == 0:
        return {name: drawn[name] for name in kept}
    cells = np.stack([drawn[name] for name in kept], axis=1).astype(np.int32)
    counter = np.array([word()], dtype=np.uint64)
    scopes = _scopes(model, kept, count)
    scopes.count(cells)
    for at, name in enumerate(kept):
        expected = model.marginal((name,))
        # A model of no rows expects nothing.
        if expected.sum() > 0:
            _mend(cells, at, expected * (count / expected.sum()), scopes, counter)
    _search(cells, scopes, counter)
    order = np.argsort(uniform(count))
    return {name: cells[order, at].astype(np.int64) for at, name in enumerate(kept)}


def stratified(model: Model, number: int) -> Coded:
    """A stratified sample: each component of a mixture has its share of the rows, and each value its share of those."""
    if isinstance(model, Blend):
        parts = [stratified(each, int(size)) for each, size in zip(model.models, model.split(number), strict=True)]
        return {name: np.concatenate([part[name] for part in parts]) for name in model.domain}
    if not isinstance(model, Mixture):
        return model.rows(number)
    sizes = rounded(number * model.weights / model.weights.sum(), number)
    component, starts = np.repeat(np.arange(len(sizes)), sizes), np.cumsum(sizes) - sizes
    rows: Coded = {}
    for name, place in places_of(model.domain).items():
        # In each component: a random order on an even grid that starts at random.
        rank = np.empty(number)
        rank[np.argsort(component + uniform(number))] = np.arange(number)
        height = (rank - starts[component] + uniform(len(sizes))[component]) / sizes[component]
        steps = np.cumsum(model.tables[place], axis=0)[:-1]
        # Those of component k lie between k and k + 1, so one search serves all components.
        edges = (steps.clip(max=1.0) + np.arange(len(sizes))).T.ravel()
        found = np.searchsorted(edges, component + height, side="right") - component * len(steps)
        # A sum that was rounded may have passed an edge of the component before or after.
        rows[name] = found.clip(0, len(steps)).astype(np.int64)
    return rows


def _mend(cells: NDArray[np.int32], at: int, expected: Numbers, scopes: Scopes, counter: NDArray[np.uint64]) -> None:
    """Move values of one column until their counts are those expected, rounded up or down."""
    excess = np.bincount(cells[:, at], minlength=len(expected)) - rounded(expected, len(cells))
    holders = np.argsort(cells[:, at], kind="stable")
    starts = np.searchsorted(cells[holders, at], np.arange(len(expected) + 1))
    move = local_search.machine_code(local_search.move)
    move(cells, at, scopes.begins, scopes.terms, scopes.state, counter, excess, holders, starts)


def _search(cells: NDArray[np.int32], scopes: Scopes, counter: NDArray[np.uint64]) -> None:
    """Exchange values as long as it pays, always of the column where it paid most when last tried."""
    per_column = np.diff(scopes.begins)
    if len(cells) < 2 or not per_column.any():
        return
    paid = np.where(per_column > 0, np.inf, 0.0)
    usual = np.zeros(cells.shape[1], dtype=np.float32)
    exchange, window = local_search.machine_code(local_search.exchange), min(SEARCH.neighborhood, len(cells) - 1)
    # Every column has its turn a few times.
    proposals = max(
        SEARCH.least_lookups // len(scopes.terms), min(len(cells) // 2, SEARCH.most_lookups // 4 // len(scopes.terms))
    )
    distance, left = scopes.distance, SEARCH.most_lookups
    while (
        left > 0 and distance > SEARCH.small_distance * len(scopes.state) and paid.sum() > SEARCH.least_gain * distance
    ):
        column = int(np.argmax(paid))
        paid[column] = exchange(
            cells, column, scopes.begins, scopes.terms, scopes.state, usual, counter, proposals, window
        )
        distance -= paid[column]
        left -= proposals * int(per_column[column])


def _scopes(model: Model, domain: Domain, number: int) -> Scopes:
    """All pairs of columns and the smaller triples, where they fit and the model has them."""
    names, shape = list(domain), domain.shape
    terms: list[list[tuple[int, ...]]] = [[] for _ in names]
    values, begin = [np.zeros(0)], 0
    for scope, expected in tables_of(model, _chosen(domain), number):
        places = [names.index(name) for name in scope]
        strides = [prod(shape[place] for place in places[at + 1 :]) for at in range(len(places))]
        for place, stride in zip(places, strides, strict=True):
            others = [each for each in zip(places, strides, strict=True) if each[0] != place]
            (first, along), (second, across) = others if len(others) == 2 else (others[0], (others[0][0], 0))
            terms[place].append((first, second, begin, along, across, stride))
        values.append(expected.reshape(-1))
        begin += expected.size
    flat = np.concatenate(values)
    state = np.empty(flat.size, dtype=local_search.CELL)
    state["excess"], state["weight"] = -flat, 1 / (flat + 1)
    return Scopes(
        np.cumsum([0, *map(len, terms)]),
        np.array([term for each in terms for term in each], dtype=local_search.TERM),
        state,
    )


def _chosen(domain: Domain) -> list[Columns]:
    """The pairs, and the triples if enough of them fit; the smallest first."""
    several = [name for name, column in domain.columns if column.size > 1]
    chosen: list[Columns] = []
    room = SEARCH.most_cells_of_pairs
    for order, most in ((2, SEARCH.most_cells_of_pairs), (3, SEARCH.most_cells)):
        room = min(room, most)
        if order == 3 and len(several) > SEARCH.most_columns_of_triples:
            break
        sized = sorted(
            (prod(domain[name].size for name in scope), at, scope)
            for at, scope in enumerate(combinations(several, order))
        )
        ends = np.cumsum([size for size, _, _ in sized])
        fits = int(np.searchsorted(ends, room, side="right"))
        if fits >= SEARCH.enough_triples * len(sized):
            chosen += [scope for _, _, scope in sized[:fits]]
            room -= int(ends[fits - 1]) if fits else 0
    return chosen
