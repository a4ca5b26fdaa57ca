"""Mixtures of product distributions: within a component the columns are independent. Any number of columns is possible.

Marginals of pairs do not determine a mixture: many agree on them and differ on eight columns. The mean of several
fits, or of several models p = Σ share · model, has a smaller error than each of them where their errors differ.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadParameter, BadQuery
from discreet.jit import on_one_processor
from discreet.model.interface import Coded, Model, NoisyMarginal, shape_of
from discreet.model.mixture.block_features import row_products
from discreet.model.mixture.features import Features, mixture_features
from discreet.model.quasi_random import roots_of_primes, uniform
from discreet.numeric import positive, rational, whole
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema.domain import Domain
from discreet.types import Numbers, Reals

# Numbers that are multiplied at once when many questions are answered: 8 MB.
_AT_ONCE = 2**20
# Columns of at most this many cells are searched cell by cell.
_FEW = 64
# Up to this many cells of a column are compared one after the other, before a search is faster.
_FEW_STEPS = 8


@dataclass(frozen=True, slots=True)
class MixtureStart:
    """Set by hand; no sweep is recorded."""

    # The distance of the starting components from the product of the single columns, in logarithms.
    start_spread: float = 1.0
    # A cell starts with at least this part of an equal share: multiplicative steps never leave 0.
    start_floor: float = 0.01
    # Steps for the first component, which only has to find the single columns.
    first_steps: int = 60


MIXTURE_START = MixtureStart()


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    """p(x) = Σ_k w_k Π_c θ_{k,c}(x_c), times `total` rows.

    `weights` has an entry for each component; `tables` a row for each cell of each column, in the order of the domain,
    with an entry for each component, so that a conjunction multiplies a few rows. `misfit` is its distance from
    the measurements that it was fitted to: the mean of (measured − value)²/variance over their numbers, about 1 if the
    only difference is their noise.

    >>> from discreet.query.aggregates import count
    >>> from discreet.query.predicate import col
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "smoker": Boolean()})
    >>> model = Mixture(people, 100.0, np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]] * 2))
    >>> model.marginal(["old", "smoker"]).round(6).tolist()
    [[41.0, 9.0], [9.0, 41.0]]
    >>> round(model.answer(count(people, (col("old") == True) & (col("smoker") == True))), 6)
    41.0
    """

    domain: Domain
    total: float
    weights: Numbers
    tables: Numbers
    misfit: float = field(default=float("nan"))

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([0, *self.domain.shape]).tolist()
        return {name: slice(*ends[at : at + 2]) for at, name in enumerate(self.domain)}

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns, with an axis for each in the order given."""
        shape = shape_of(self.domain, columns)
        tables = [self.tables[self._places[name]] for name in columns]
        # Two halves of about as many cells, so that one matrix product does nearly all the work.
        half = min(range(len(shape) + 1), key=lambda at: prod(shape[:at]) + prod(shape[at:]))
        ones: Numbers = np.ones((1, len(self.weights)))
        first, second = reduce(row_products, tables[:half], ones), reduce(row_products, tables[half:], ones)
        return self.total * ((first * self.weights) @ second.T).reshape(shape)

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""
        return self.total * sum(each.coefficient * self._mean(each) for each in query.products)

    def answers(self, queries: Iterable[Linear]) -> Numbers:
        """The expected values of many queries. Weights of a column that come again are looked up."""
        rows: dict[tuple[object, ...], int] = {}
        # The first row is all ones: products of fewer factors are filled up with it.
        means, lists, owners, coefficients = [np.ones(len(self.weights))], [], [], []
        asked = 0
        for asked, query in enumerate(queries, start=1):
            for each in query.products:
                places = []
                for factor in each.factors:
                    key = (factor.columns, factor.weights.tobytes())
                    place = rows.get(key)
                    if place is None:
                        place = rows[key] = len(means)
                        means.append(self._factor(factor))
                    places.append(place)
                lists.append(places)
                owners.append(asked - 1)
                coefficients.append(float(each.coefficient))
        found = np.array(coefficients) * self._products(np.array(means), lists)
        summed = np.zeros(asked)
        np.add.at(summed, owners, found)
        return self.total * summed

    def rows(self, number: int) -> Coded:
        """Draw `number` rows from the distribution."""
        count = whole("number", number)
        last = len(self.weights) - 1
        component = np.minimum(np.searchsorted(np.cumsum(self.weights), uniform(count), side="right"), last)
        rows: Coded = {}
        for name, place in self._places.items():
            steps, drawn = np.cumsum(self.tables[place], axis=0)[:-1], uniform(count)
            if len(steps) < _FEW_STEPS:
                rows[name] = np.zeros(count, dtype=np.int64)
                for step in steps:
                    rows[name] += drawn >= step[component]
            else:
                # Those of component k lie between k and k + 1, so one search serves all components.
                edges = (steps.clip(max=1.0) + np.arange(last + 1)).T.ravel()
                found = np.searchsorted(edges, component + drawn, side="right") - component * len(steps)
                # A sum that was rounded up to k + 1 may have passed edges of the next component.
                rows[name] = np.minimum(found, len(steps))
        return rows

    def _mean(self, product: Product) -> float:
        single, means = [], self.weights
        for factor in product.factors:
            cell = self._cell(factor)
            if cell is None:
                means = means * self._factor(factor)
            else:
                single.append(cell)
        if single:
            return float(means @ np.multiply.reduce(self.tables.take(single, axis=0)))
        return float(means.sum())

    def _cell(self, factor: Factor) -> int | None:
        """The row of the tables that a factor picks, if it is 1 on one cell of one column and 0 on the others."""
        if len(factor.columns) == 1 and factor.range == (0, 1) and len(factor.weights) <= _FEW:
            # A list of a few numbers is searched before numpy has begun.
            weights, place = factor.weights.tolist(), self._places.get(factor.columns[0])
            if place is not None and place.stop - place.start == len(weights) and weights.count(0) == len(weights) - 1:
                return int(place.start + weights.index(1))
        return None

    def _factor(self, factor: Factor) -> Numbers:
        """The mean of a factor in each component."""
        sizes = tuple(self.domain[name].size for name in factor.columns)
        if factor.weights.shape != sizes:
            raise BadQuery(
                f"the query was made for other columns: {factor.columns} has {sizes} cells in this domain and "
                f"{factor.weights.shape} in the query. Make it again for this domain."
            )
        first, *others = (self.tables[self._places[name]] for name in factor.columns)
        means: Numbers = np.tensordot(factor.weights.astype(np.float64), first, axes=(0, 0))
        for table in others:
            means = np.einsum("c...k,ck->...k", means, table)
        return means

    def _products(self, means: Numbers, lists: Sequence[Sequence[int]]) -> Numbers:
        """Σ_k w_k Π of rows of `means`, for each list of rows."""
        places = np.zeros((len(lists), max(map(len, lists), default=0)), dtype=np.int64)
        for row, each in zip(places, lists, strict=True):
            row[: len(each)] = each
        found = np.empty(len(lists))
        step = max(1, _AT_ONCE // len(self.weights))
        for start in range(0, len(lists), step):
            here = places[start : start + step]
            product = np.broadcast_to(self.weights, (len(here), len(self.weights))).copy()
            for column in here.T:
                product *= means[column]
            found[start : start + step] = product.sum(axis=1)
        return found

    def __repr__(self) -> str:
        return f"<Mixture: {len(self.weights)} products of {len(self.domain)} columns; {self.total:g} rows>"


@on_one_processor
def fit_mixture(
    domain: Domain,
    measurements: Iterable[NoisyMarginal],
    *,
    total: float,
    components: int = 16,
    fits: int = 8,
    steps: int = 400,
    start: Mixture | None = None,
    misfit: float = 1.0,
) -> Mixture:
    """The mean of several mixtures, each fitted to all measurements until its error is their noise.

    Each minimises Σ weight/2 ‖M m − values‖² over all measurements by quasi-Newton steps, and stops when that is
    `misfit`/2 for each number (the true table has a mean of 1/2; a fit that goes below learns the noise) or after
    `steps`. With `start` the given mixture is fitted further, as one. Nothing is drawn at random: the same measurements
    give the same mixture.

    All measurements of one and two columns cost one matrix product a step; those of more are multiplied one by one. A
    few of these help much: they distinguish mixtures that agree on all pairs.

    where M is the measuring matrix of a measurement and m the marginal of its columns.
    """
    positive("total", total, next_step="Estimate the number of rows, and give 1 if that is less.")
    features = mixture_features(measurements, domain)
    if start is not None:
        if start.domain != domain:
            raise BadParameter(f"start is a mixture over {list(start.domain)}; it must be over {list(domain)}.")
        begun = [(start.tables, start.weights)]
    else:
        number = whole("components", components, least=1)
        begun = _starts(domain, features, total, number, whole("fits", fits, least=1))
    target = misfit * features.numbers / 2
    fitted = [_descend(domain, features, total, each, target=target, steps=steps) for each in begun]
    tables = np.concatenate([each for each, _ in fitted], axis=1)
    weights = np.concatenate([each for _, each in fitted]) / len(fitted)
    loss = features.loss(tables, weights, total)[0]
    return Mixture(domain, float(total), weights, tables, 2 * loss / max(features.numbers, 1))


Parameters = tuple[Numbers, Numbers]


def _starts(domain: Domain, features: Features, total: float, components: int, fits: int) -> list[Parameters]:
    """Components around the product of the single columns, each cell moved along a sequence of its own."""
    sizes = np.array(domain.shape)
    equal = np.repeat(1.0 / sizes, sizes)[:, None]
    single, _ = _descend(domain, features, total, (equal, np.ones(1)), target=0.0, steps=MIXTURE_START.first_steps)
    centre = np.log((single + MIXTURE_START.start_floor * equal) / (1 + MIXTURE_START.start_floor))
    # Multiples of square roots of primes, modulo 1: evenly spread in every few dimensions (Kronecker's sequence).
    roots = roots_of_primes(len(centre))[:, None]
    starts = []
    for each in range(fits):
        index = np.arange(1, components + 1) + each * components
        moved = centre + MIXTURE_START.start_spread * np.sqrt(3.0) * (2.0 * (roots * index % 1.0) - 1.0)
        starts.append((_softmax(moved, domain.shape), np.full(components, 1.0 / components)))
    return starts


def _descend(
    domain: Domain, features: Features, total: float, start: Parameters, *, target: float, steps: int
) -> Parameters:
    """Downhill from a point until the loss is the target: L-BFGS on the logarithms of tables and weights."""
    from scipy.optimize import OptimizeResult, minimize

    tables, weights = start
    cells, cut = tables.shape, tables.size
    shape = domain.shape

    def point(logs: Numbers) -> Parameters:
        return _softmax(logs[:cut].reshape(cells), shape), _softmax(logs[cut:, None], (len(weights),))[:, 0]

    def slope(logs: Numbers) -> tuple[float, Numbers]:
        tables, weights = point(logs)
        loss, along_tables, along_weights = features.loss(tables, weights, total)
        steepest = _softmax_slope(tables, along_tables, shape).ravel()
        return loss, np.concatenate([steepest, weights * (along_weights - weights @ along_weights)])

    def stop(intermediate_result: OptimizeResult) -> None:
        if intermediate_result.fun <= target:
            raise StopIteration

    floor = np.finfo(np.float64).tiny
    logs = np.log(np.concatenate([tables.ravel(), weights]).clip(min=floor))
    if features.numbers == 0 or slope(logs)[0] <= target:
        return start
    found = minimize(
        slope, logs, jac=True, method="L-BFGS-B", callback=stop, options={"maxiter": steps, "maxfun": 2 * steps}
    )
    return point(found.x)


def _softmax(logs: Numbers, shape: tuple[int, ...]) -> Numbers:
    """exp(logs), each column of the domain normalised in each component."""
    starts = np.cumsum([0, *shape[:-1]])
    owner = np.repeat(np.arange(len(shape)), shape)
    powers = np.exp(logs - np.maximum.reduceat(logs, starts, axis=0)[owner])
    return np.asarray(powers / np.add.reduceat(powers, starts, axis=0)[owner])


def _softmax_slope(tables: Numbers, along: Reals, shape: tuple[int, ...]) -> Numbers:
    """The slope along the logarithms, from that along the tables."""
    starts = np.cumsum([0, *shape[:-1]])
    owner = np.repeat(np.arange(len(shape)), shape)
    weighed = tables * along
    return np.asarray(weighed - tables * np.add.reduceat(weighed, starts, axis=0)[owner])


@dataclass(frozen=True, eq=False, repr=False)
class Blend:
    """Σ share · model, over models of one domain. The shares are scaled to add up to 1.

    >>> from discreet.model.rows import Rows
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean()})
    >>> young, old = Rows(people, {"old": np.zeros(8)}), Rows(people, {"old": np.ones(8)})
    >>> blend = Blend([young, old], [3, 1])
    >>> blend.total, blend.marginal(["old"]).tolist(), sorted(blend.rows(4)["old"].tolist())
    (8.0, [6.0, 2.0], [0, 0, 0, 1])
    """

    models: Sequence[Model]
    shares: Sequence[float]

    def __post_init__(self) -> None:
        models, shares = tuple(self.models), tuple(float(rational("share", share)) for share in self.shares)
        if not models or len(models) != len(shares) or min(shares) < 0 or sum(shares) == 0:
            raise BadParameter(
                f"there are {len(models)} models and the shares {list(shares)}; there must be at least one model, and "
                "a share for each: not negative, and not all 0. Leave out models that should not count."
            )
        if any(model.domain != models[0].domain for model in models):
            raise BadParameter("the models have different domains. Blend models of the same columns.")
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "shares", tuple(share / sum(shares) for share in shares))

    @property
    def domain(self) -> Domain:
        """What a row may be."""
        return self.models[0].domain

    @cached_property
    def total(self) -> float:
        """The estimated number of rows: the mean of the models' totals, by their shares."""
        return sum(share * model.total for model, share in self._parts)

    def marginal(self, columns: Sequence[str]) -> Numbers:
        """The expected number of rows in each cell of some columns, with an axis for each in the order given."""
        found = [share * model.marginal(columns) for model, share in self._parts]
        return np.asarray(sum(found[1:], start=found[0]))

    def answer(self, query: Linear) -> float:
        """The expected value of a query."""
        return sum(share * model.answer(query) for model, share in self._parts)

    def answers(self, queries: Iterable[Linear]) -> Numbers:
        """The expected values of many queries: at once of models that can, else one by one."""
        listed = list(queries)
        found: Numbers = np.zeros(len(listed))
        for model, share in self._parts:
            at_once = getattr(model, "answers", None)
            found += share * (at_once(listed) if at_once else np.array([model.answer(query) for query in listed]))
        return found

    def rows(self, number: int) -> Coded:
        """Draw `number` rows, from each model its share of them; the rows of one model are adjacent."""
        drawn = [model.rows(int(each)) for model, each in zip(self.models, self.split(number), strict=True)]
        return {name: np.concatenate([rows[name] for rows in drawn]) for name in self.domain}

    def split(self, number: int) -> NDArray[np.int64]:
        """The number of rows from each model: its expected number, rounded up or down at random."""
        count = whole("number", number)
        parts = np.array([share * model.total for model, share in zip(self.models, self.shares, strict=True)])
        if parts.sum() <= 0:
            parts = np.array(self.shares)
        return rounded(count * parts / parts.sum(), count)

    @property
    def _parts(self) -> list[tuple[Model, float]]:
        return [(model, share) for model, share in zip(self.models, self.shares, strict=True) if share]

    def __repr__(self) -> str:
        return f"<Blend: {' + '.join(f'{share:.3g} {model!r}' for model, share in self._parts)}>"


def rounded(expected: Numbers, number: int) -> NDArray[np.int64]:
    """Each number rounded up or down, on average right, so that they add up to `number` (systematic sampling).

    >>> rounded(np.array([1.0, 2.0, 3.0]), 6).tolist()
    [1, 2, 3]
    """
    # A sum of doubles that should be whole is nearly so: a start in the middle of the others would miss by one.
    ends = np.floor(np.cumsum(expected).round(9) + uniform(1)).clip(0, number)
    ends[-1] = number
    return np.diff(ends, prepend=0).astype(np.int64)
