"""The junction-tree model: the distribution of largest entropy with the marginals that were measured.

It is a product of tables over the cliques of a tree (`junction_tree.py`), so its marginals, answers and rows are
exact, and cost what the cliques on the way cost, however many columns there are.

Rows are drawn clique by clique from the root: the new cells of each row given those it shares with the clique above.
The rows that share a state are spread over the cells in proportion, with one random start for all (systematic
sampling), and the starts of different states are spread over [0, 1) too. Each row has exactly the model's
distribution; the counts vary much less than those of independent rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from discreet.cache import LruCache
from discreet.errors import BadParameter, BadQuery, TooLarge
from discreet.model.interface import Coded, NoisyMarginal
from discreet.model.tree.elimination import Web, contraction, marginal_by_elimination, weave
from discreet.model.tree.junction_tree import CliqueForest, triangulate
from discreet.model.tree.max_entropy import Evidence, check_measurement, fit, gather
from discreet.model.tree.message_passing import Layout, layout_of
from discreet.model.tree.products import ProductTerms
from discreet.noise.sample import filler
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.types import Columns, Ints, Numbers


def draw_rows(layout: Layout, directed: Numbers, alone: dict[str, int], number: int) -> Coded:
    """Draw `number` rows; `alone` has the sizes of the columns in no clique, which are uniform."""
    uniforms = _Uniforms(number * (2 * len(layout.columns) + 2 * len(alone)) + 1)
    rows: Coded = {}
    for node in range(len(layout.columns) - 1, -1, -1):
        states, rest = int(layout.walk.states[node]), int(layout.walk.rest[node])
        columns, shape = layout.columns[node], layout.shapes[node]
        shared = [name for name in columns if name in rows]
        new = columns[len(shared) :]
        state = np.zeros(number, dtype=np.int64)
        if shared:
            state = np.ravel_multi_index([rows[name] for name in shared], shape[: len(shared)]).astype(np.int64)
        cells = _spread(state, layout.table(directed, node).reshape(states, rest), uniforms)
        rows |= zip(new, np.unravel_index(cells, shape[len(shared) :]), strict=True)
    for name, size in alone.items():
        rows[name] = _spread(np.zeros(number, dtype=np.int64), np.full((1, size), 1.0 / size), uniforms)
    return {name: np.asarray(codes, dtype=np.int64) for name, codes in rows.items()}


class _Uniforms:
    """Uniform numbers in [0, 1) of 53 random bits."""

    def __init__(self, about: int) -> None:
        self._fill = filler(about)

    def __call__(self, count: int) -> Numbers:
        words = np.empty(count, dtype=np.int64)
        self._fill(words)
        return (words.view(np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _spread(state: Ints, chances: Numbers, uniforms: _Uniforms) -> Ints:
    """A cell for each row, given its state: the rows of a state in random order on an even grid with a random start."""
    order = np.lexsort((uniforms(state.size), state))
    ranked = state[order]
    seen, first, counts = np.unique(ranked, return_index=True, return_counts=True)
    places = np.arange(state.size) - np.repeat(first, counts)
    # One start in each interval of an even grid, at random places of it.
    shuffled = np.argsort(uniforms(seen.size), kind="stable")
    starts = (shuffled + uniforms(seen.size)) / max(seen.size, 1)
    height = (places + np.repeat(starts, counts)) / np.repeat(counts, counts)
    ends = np.cumsum(chances[seen], axis=1)
    ends /= ends[:, -1:]
    # All states at once: those of state s lie between s and s + 1.
    at = np.repeat(np.arange(seen.size), counts)
    stacked = (ends + np.arange(seen.size)[:, None]).reshape(-1)
    cells = np.searchsorted(stacked, at + height, side="right") - at * chances.shape[1]
    chosen = np.empty(state.size, dtype=np.int64)
    # Rounding at the end of a state must not reach the next.
    chosen[order] = np.clip(cells, 0, chances.shape[1] - 1)
    return chosen


# No tree with more cells than this is made: fitting it takes a few hundred MB.
MOST_TREE_CELLS = 2**22
# The cache of marginals holds this many numbers of eight bytes: 32 MB.
_MOST_KEPT = 2**22
# Marginals of at most this many cells are answered cell by cell.
_FEW_CELLS = 16


@dataclass(frozen=True, eq=False)
class Potential:
    """The log-potential of a scope, and which of its parts were measured (None is all)."""

    columns: Columns
    parts: tuple[tuple[int, ...] | None, ...]
    values: Numbers


@dataclass(frozen=True, eq=False)
class Tree:
    """A maximum-entropy distribution over measured scopes, times a number of rows. It meets `Model`.

    `loss` is Σ weight/2 · ‖M m − values‖² at the end of the fit; `converged` says whether the fit converged within
    its tolerance, after `steps` steps. Columns that were never measured are uniform and cost nothing.
    """

    domain: Domain
    total: float
    shape: CliqueForest
    potentials: tuple[Potential, ...] = field(repr=False)
    loss: float
    converged: bool
    steps: int
    layout: Layout = field(repr=False)
    directed: Numbers = field(repr=False)
    beliefs: Numbers = field(repr=False)

    @property
    def cells(self) -> int:
        """The number of cells of all clique tables, as `predicted_cells` predicted."""
        return int(self.directed.size)

    @cached_property
    def entropy(self) -> float:
        """The entropy of one row, in nats."""
        chances = np.maximum(self.directed, 1e-300)
        known = -float(np.sum(self.beliefs * np.log(chances)))
        return known + sum(float(np.log(size)) for size in self._alone.values())

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns; refused if a table on the way is too large."""
        wanted = tuple(columns)
        if isinstance(columns, str) or len(set(wanted)) < len(wanted):
            raise BadQuery(f'columns is {columns!r}; it must be a list of names, each once. Write ["age", "sex"].')
        found = self._marginals.get(wanted)
        if found is None:
            shape = tuple([self.domain[name].size for name in wanted])
            if wanted and prod(shape) <= _FEW_CELLS:
                found = self.total * self._cell_by_cell(wanted, shape)
            else:
                sizes = dict(zip(wanted, shape, strict=True)) | self.shape.size_of
                found = self.total * marginal_by_elimination(self.layout, self.directed, self.beliefs, wanted, sizes)
            found.setflags(write=False)
            self._marginals.put(wanted, found, size=found.size + 64)
        return found

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""
        return float(self.answers([query])[0])

    def answers(self, queries: Iterable[Linear]) -> Numbers:
        """The expected values of many queries, in one walk of the kernel."""
        terms = ProductTerms(self.domain, self._number)
        count = 0
        for query in queries:
            for product in query.products:
                terms.add(count, product)
            count += 1
        found: Numbers = np.zeros(count)
        if terms.owners:
            values = self._contract(*terms.arrays()) * np.array(terms.coefficients, dtype=np.float64)
            found += self.total * np.bincount(terms.owners, values, minlength=count)
        for owner, product in terms.whole:
            found[owner] += product.contract(self.marginal(product.columns), product.columns)
        return found

    def characters(self, sets: Iterable[Sequence[str]]) -> Numbers:
        """For each set of columns of two cells, the expected sum of Π ±1: the first cell counts 1 and the other −1.

        It is what a measurement with parts (1, …, 1) measures.
        """
        begins, columns = [0], []
        for names in sets:
            columns += [self._number[name] for name in names]
            begins.append(len(columns))
        flat = np.array(columns, dtype=np.int64)
        if flat.size and (self._web.sizes[flat] != 2).any():
            raise BadQuery("a character is asked of columns of two cells; one of these has another number of cells.")
        places = np.zeros(flat.size, dtype=np.int64)
        return self.total * self._contract(np.array(begins, dtype=np.int64), flat, places, np.array([1.0, -1.0]))

    def rows(self, number: int) -> Coded:
        """Draw `number` rows; their counts vary less than those of independent rows."""
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
            raise BadParameter(f"number is {number!r}; it must be a whole number of rows, at least 0.")
        drawn = draw_rows(self.layout, self.directed, self._alone, int(number))
        return {name: drawn[name] for name in self.domain}

    def _cell_by_cell(self, columns: Columns, shape: tuple[int, ...]) -> Numbers:
        """The probability of each cell of a few: as products of indicators, which need no table on the way."""
        codes = np.indices(shape).reshape(len(shape), -1).T
        offsets = np.cumsum([0, *(size * size for size in shape)])[:-1]
        weights = np.concatenate([np.zeros(0), *(np.eye(size).reshape(-1) for size in shape)])
        places = (offsets + codes * np.array(shape, dtype=np.int64)).reshape(-1)
        numbers = np.tile(np.array([self._number[name] for name in columns], dtype=np.int64), len(codes))
        return self._contract(np.arange(len(codes) + 1) * len(shape), numbers, places, weights).reshape(shape)

    def _contract(self, begins: Ints, columns: Ints, places: Ints, weights: Numbers) -> Numbers:
        found: Numbers = contraction()(
            self.layout.walk, self._web, self.directed, self.beliefs, begins, columns, places, weights
        )
        return found

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.domain)}

    @cached_property
    def _alone(self) -> dict[str, int]:
        return {name: self.domain[name].size for name in self.domain if name not in self.shape.size_of}

    @cached_property
    def _web(self) -> Web:
        return weave(self.layout, tuple(self.domain), self.domain.shape)

    @cached_property
    def _marginals(self) -> LruCache[Columns, Numbers]:
        return LruCache(_MOST_KEPT)


def fit_tree(
    domain: Domain,
    measurements: Iterable[NoisyMarginal],
    *,
    total: float,
    scopes: Iterable[Sequence[str]] | None = None,
    start: Tree | None = None,
    steps: int = 200,
    tolerance: float = 0.01,
) -> Tree:
    """The distribution of largest entropy whose marginals m minimise Σ weight/2 · ‖M m − values‖² over measurements.

    The cliques are made for the columns measured together, or for `scopes`, which must hold all of them. `start` is an
    earlier fit on the same domain: the potentials of what it shares with these measurements carry over. The fit ends
    when the residuals are, in root mean square, within about `tolerance` noise standard deviations of the minimum. The
    same input gives the same bits.

    >>> from discreet.schema.column import Boolean
    >>> both = NoisyMarginal(("a", "b"), None, np.array([[40.0, 10.0], [20.0, 30.0]]), weight=1.0)
    >>> tree = fit_tree(Domain({name: Boolean() for name in "abc"}), [both], total=100)
    >>> tree.marginal(["b", "c"]).round().tolist(), tree.converged
    ([[30.0, 30.0], [20.0, 20.0]], True)
    """
    listed = list(measurements)
    if not 0 <= total < np.inf or not tolerance > 0 or steps < 0:
        raise BadParameter(
            f"total is {total}, tolerance {tolerance}, steps {steps}; total and steps must be at least 0, "
            "tolerance above 0."
        )
    for measurement in listed:
        check_measurement(domain, measurement)
    measured = sorted({measurement.columns for measurement in listed})
    shape = _shape(domain, measured, measured if scopes is None else [tuple(sorted(scope)) for scope in scopes])
    layout = layout_of(shape, measured)
    evidence = gather(domain, listed, {scope: layout.columns[layout.places[scope]] for scope in measured})
    begin = _carry(start, evidence, layout, domain)
    found = fit(layout, evidence, float(total), begin, steps=steps, tolerance=tolerance)
    cliques = layout_of(shape)
    nodes = [layout.slice(layout.places[tuple(sorted(columns))]) for columns in cliques.columns]
    return Tree(
        domain,
        float(total),
        shape,
        tuple(_potentials(found.potentials, evidence, layout)),
        found.loss,
        found.converged,
        found.steps,
        cliques,
        np.concatenate([found.directed[node] for node in nodes] or [np.zeros(0)]),
        np.concatenate([found.beliefs[node] for node in nodes] or [np.zeros(0)]),
    )


def _shape(domain: Domain, measured: list[Columns], scopes: list[Columns]) -> CliqueForest:
    """The cliques for some scopes, which must hold all that was measured; refuses those that are too large."""
    sizes = {name: domain[name].size for scope in (*measured, *scopes) for name in scope}
    shape = triangulate(scopes, sizes)
    if shape.cells > MOST_TREE_CELLS:
        raise TooLarge(
            f"the cliques of these measurements have {shape.cells} cells; the limit is {MOST_TREE_CELLS}. Leave out "
            "scopes: `junction_tree.fits` says beforehand which can be added."
        )
    for scope in measured:
        if shape.place(scope) < 0:
            raise BadQuery(f"a measurement is of {scope}, which no clique holds. Name it among the scopes.")
    return shape


def _order(scope: Columns, layout: Layout) -> list[int]:
    """The axes of the table of a scope, as places among its sorted columns."""
    return [scope.index(name) for name in layout.columns[layout.places[scope]]]


def _potentials(values: Numbers, evidence: Evidence, layout: Layout) -> Iterable[Potential]:
    for at, (scope, kinds) in enumerate(zip(evidence.scopes, evidence.kinds, strict=True)):
        order = _order(scope, layout)
        table = values[evidence.starts[at] : evidence.starts[at + 1]].reshape(layout.shapes[layout.places[scope]])
        # A constant adds nothing to a distribution; left in, it would grow from fit to fit.
        yield Potential(scope, kinds, (table - table.mean()).transpose(np.argsort(order)))


def _carry(start: Tree | None, evidence: Evidence, layout: Layout, domain: Domain) -> Numbers:
    """The potentials at the start: those of an earlier fit whose scope and parts are still measured, else 0."""
    begin = np.zeros(evidence.starts[-1])
    if start is None:
        return begin
    if start.domain != domain:
        raise BadParameter("start was fitted on another domain. Begin without it.")
    before = {each.columns: each for each in start.potentials}
    for at, (scope, kinds) in enumerate(zip(evidence.scopes, evidence.kinds, strict=True)):
        found = before.get(scope)
        # The maximum-entropy potentials lie in the span of what is measured.
        if found is not None and (None in kinds or set(found.parts) <= set(kinds)):
            values = found.values.transpose(_order(scope, layout)).reshape(-1)
            begin[evidence.starts[at] : evidence.starts[at + 1]] = values
    return begin
