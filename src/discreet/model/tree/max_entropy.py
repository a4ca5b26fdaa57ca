"""The maximum-entropy fit to noisy marginals, by Gauss–Newton steps with a penalty on the relative entropy.

Measurements are grouped by scope and divided by the standard deviation of their noise: noise explains a residual of 1,
and the loss is ½‖Bμ − b‖², where μ holds the marginals of all scopes. Several measurements of one quantity become one;
their precisions add.

The log-potentials are Bᵀν, so of all distributions with its marginals the model has the largest entropy. A step solves

    (n B C Bᵀ + δ) ν = −(B μ − b)

by conjugate gradients, where C is the covariance of the cells under the model (`message_passing.differentiate`).
It minimises the linearised loss plus δ times the relative entropy to the present model: for large δ it is mirror
descent, for small δ Newton's method, and δ follows what the last step achieved (Levenberg–Marquardt).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import BadParameter, BadQuery
from discreet.model.interface import NoisyMarginal
from discreet.model.tree.message_passing import Layout, message_passes
from discreet.query.residual import axis_of
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# Products of measuring matrices with more entries than this are applied one axis after the other.
MOST_ENTRIES = 2**14


@dataclass(frozen=True, eq=False)
class _Large:
    """A measurement whose matrix is kept as Kronecker factors: where its cells and numbers lie, and the factors."""

    cells: slice
    numbers: slice
    factors: tuple[Numbers, ...]
    scale: float

    def forward(self, marginal: Numbers) -> Numbers:
        """The measuring matrix times a marginal, over the noise."""
        values = marginal.reshape([factor.shape[1] for factor in self.factors])
        for factor in self.factors:
            # The axis that is done goes to the end, so after the last all are in order again.
            values = np.tensordot(values, factor, axes=(0, 1))
        return self.scale * values.reshape(-1)

    def backward(self, numbers: Numbers) -> Numbers:
        """The transposed matrix."""
        values = numbers.reshape([factor.shape[0] for factor in self.factors])
        for factor in self.factors:
            values = np.tensordot(values, factor, axes=(0, 0))
        return self.scale * values.reshape(-1)


@dataclass(frozen=True, eq=False)
class Evidence:
    """All measurements: scopes and measured parts, the sparse part of B and its transpose, the rest of B, and b."""

    scopes: tuple[Columns, ...]
    kinds: tuple[tuple[tuple[int, ...] | None, ...], ...]
    starts: tuple[int, ...]
    sparse: Any
    turned: Any
    large: tuple[_Large, ...]
    wanted: Numbers

    @cached_property
    def steepest(self) -> float:
        """The largest entry of B."""
        sparse = float(abs(self.sparse).max()) if self.sparse.nnz else 0.0
        return max(
            [sparse, *(each.scale * prod(float(np.abs(part).max()) for part in each.factors) for each in self.large)]
        )

    def measure(self, marginals: Numbers) -> Numbers:
        """B μ."""
        found: Numbers = self.sparse @ marginals
        for each in self.large:
            found[each.numbers] = each.forward(marginals[each.cells])
        return found

    def back(self, numbers: Numbers) -> Numbers:
        """Bᵀ ν."""
        found: Numbers = self.turned @ numbers
        for each in self.large:
            found[each.cells] += each.backward(numbers[each.numbers])
        return found


def gather(
    domain: Domain, measurements: Iterable[NoisyMarginal], axes: dict[Columns, Columns] | None = None
) -> Evidence:
    """The evidence of some measurements; `axes` gives the order in which the columns of a scope lie."""
    from scipy.sparse import block_diag, csr_array, vstack

    merged = _merge(domain, measurements)
    scopes = tuple(sorted({columns for columns, _ in merged}))
    kinds = tuple(tuple(parts for columns, parts in merged if columns == scope) for scope in scopes)
    starts, blocks, large, wanted = [0], [], list[_Large](), []
    row = 0
    for scope, parts_of in zip(scopes, kinds, strict=True):
        turn = [scope.index(name) for name in (scope if axes is None else axes[scope])]
        place = slice(starts[-1], starts[-1] + prod(domain[name].size for name in scope))
        rows: list[Any] = []
        for parts in parts_of:
            values, weight = merged[scope, parts]
            wanted.append(sqrt(weight) * values.transpose(turn).reshape(-1))
            factors = None if parts is None else _factors(domain, scope, parts, turn)
            if factors is not None and prod(np.count_nonzero(factor) for factor in factors) > MOST_ENTRIES:
                large.append(_Large(place, slice(row, row + values.size), factors, sqrt(weight)))
                rows.append(csr_array((values.size, place.stop - place.start)))
            else:
                rows.append(_scaled(factors, place.stop - place.start, sqrt(weight)))
            row += values.size
        blocks.append(vstack(rows, format="csr"))
        starts.append(place.stop)
    sparse = csr_array(block_diag(blocks, format="csr")) if blocks else csr_array((0, 0))
    sparse.sum_duplicates()
    joined = np.concatenate(wanted) if wanted else np.zeros(0)
    return Evidence(scopes, kinds, tuple(starts), sparse, csr_array(sparse.T), tuple(large), joined)


def _factors(domain: Domain, scope: Columns, parts: tuple[int, ...], order: list[int]) -> tuple[Numbers, ...]:
    """The measuring matrix of each column of a scope, in the order of its axes."""
    return tuple(axis_of(domain[scope[at]]).measure(parts[at]).astype(np.float64) for at in order)


def _scaled(factors: tuple[Numbers, ...] | None, cells: int, scale: float) -> Any:
    """The rows of B for one measurement: the identity or the Kronecker product of its factors, over the noise."""
    from scipy.sparse import diags_array

    return diags_array(np.full(cells, scale), format="csr") if factors is None else scale * _kronecker(factors)


def _kronecker(factors: Sequence[Numbers]) -> Any:
    from scipy.sparse import csr_array, kron

    product = csr_array(factors[0])
    for factor in factors[1:]:
        product = csr_array(kron(product, csr_array(factor), format="csr"))
    return product


def _merge(
    domain: Domain, measurements: Iterable[NoisyMarginal]
) -> dict[tuple[Columns, tuple[int, ...] | None], tuple[Numbers, float]]:
    """One measurement for each quantity: the weighted mean of all of it, and the sum of their weights."""
    merged: dict[tuple[Columns, tuple[int, ...] | None], tuple[Numbers, float]] = {}
    for measurement in measurements:
        key = measurement.columns, measurement.parts
        values = np.asarray(measurement.values, dtype=np.float64).reshape(_shape(domain, measurement))
        if key in merged:
            before, weight = merged[key]
            values = (weight * before + measurement.weight * values) / (weight + measurement.weight)
            merged[key] = values, weight + measurement.weight
        else:
            merged[key] = values, float(measurement.weight)
    return dict(sorted(merged.items(), key=lambda pair: (pair[0][0], pair[0][1] is not None, pair[0][1] or ())))


def check_measurement(domain: Domain, measurement: NoisyMarginal) -> None:
    """Refuse a measurement whose shape, values or weight do not fit the domain."""
    shape = _shape(domain, measurement)
    values = np.asarray(measurement.values, dtype=np.float64)
    if values.size != prod(shape):
        raise BadQuery(
            f"a measurement of {measurement.columns}, parts {measurement.parts}, has {values.size} numbers; it must "
            f"have {prod(shape)}."
        )
    if not (0 < measurement.weight < np.inf and np.isfinite(values).all()):
        raise BadParameter(
            f"a measurement of {measurement.columns} has weight {measurement.weight}; a weight is 1/variance, above 0 "
            "and finite, and values are finite. Leave it out."
        )


def _shape(domain: Domain, measurement: NoisyMarginal) -> tuple[int, ...]:
    if not measurement.columns or tuple(sorted(set(measurement.columns))) != measurement.columns:
        raise BadQuery(
            f"a measurement is of {measurement.columns}; it needs columns, each once, in the order of their names."
        )
    if measurement.parts is None:
        return tuple(domain[name].size for name in measurement.columns)
    axes = [axis_of(domain[name]) for name in measurement.columns]
    if len(measurement.parts) != len(axes) or not all(
        0 < part < axis.parts for part, axis in zip(measurement.parts, axes, strict=False)
    ):
        raise BadQuery(
            f"a measurement of {measurement.columns} has parts {measurement.parts}; there must be one for each column, "
            f"from 1 to {[axis.parts - 1 for axis in axes]}."
        )
    return tuple(axis.rows(part) for axis, part in zip(axes, measurement.parts, strict=True))


@dataclass(frozen=True, slots=True)
class EntropyFitTuning:
    """Set by hand; no sweep is recorded. bench/tree.py measures how long fits take with them."""

    # Conjugate gradients solve a step to this part of what it would gain, in at most this many walks.
    solve_tolerance: float = 0.1
    solve_walks: int = 60
    # The damping δ is multiplied or divided by this.
    damping_factor: float = 2.0
    # Line search: a step that gains less than this part of its forecast is multiplied by `shrink`, down to `shortest`.
    sufficient_gain: float = 0.1
    shrink: float = 0.4
    shortest: float = 1e-3
    # A step that gains more than this part of its forecast lowers the damping.
    good_gain: float = 0.6
    # The fit ends after this many forecasts in a row of too little to gain.
    patience: int = 2
    # The most that a residual of one standard deviation moves a logarithm in a step.
    farthest: float = 5.0


ENTROPY_FIT = EntropyFitTuning()


@dataclass(frozen=True, eq=False)
class Fit:
    """Potentials on the cells of the scopes, the tables they make, the loss, and whether the fit converged."""

    potentials: Numbers
    directed: Numbers
    beliefs: Numbers
    loss: float
    converged: bool
    steps: int


class _State(NamedTuple):
    potentials: Numbers
    directed: Numbers
    beliefs: Numbers
    residual: Numbers
    loss: float


class _Walker:
    """The kernels with their workspace."""

    def __init__(self, layout: Layout, evidence: Evidence) -> None:
        self.walk = layout.walk
        cells, messages = layout.cells, int(layout.walk.shared[-1])
        self.logs, self.messages = np.empty(cells), np.empty(messages)
        self.change, self.shares = np.empty(cells), np.empty(messages)
        # Where the cells of each scope lie among those of the nodes.
        nodes = [layout.places[scope] for scope in evidence.scopes]
        self.where = np.concatenate(
            [np.arange(layout.walk.start[node], layout.walk.start[node + 1]) for node in nodes] or [np.zeros(0, int)]
        )
        self._direct, self._spread, self._differentiate = message_passes()

    def tables(self, potentials: Numbers) -> tuple[Numbers, Numbers]:
        """Conditionals and marginals."""
        self.logs[:] = 0.0
        self.logs[self.where] = potentials
        directed, beliefs = np.empty_like(self.logs), np.empty_like(self.logs)
        self._direct(self.walk, self.logs, directed, self.messages)
        self._spread(self.walk, directed, beliefs, self.shares)
        return directed, beliefs

    def covary(self, directed: Numbers, beliefs: Numbers, potentials: Numbers) -> Numbers:
        """How the marginals of the scopes change with the potentials."""
        self.logs[:] = 0.0
        self.logs[self.where] = potentials
        self._differentiate(self.walk, directed, beliefs, self.logs, self.messages, self.change, self.shares)
        return np.asarray(self.change[self.where])


def fit(layout: Layout, evidence: Evidence, total: float, potentials: Numbers, *, steps: int, tolerance: float) -> Fit:
    """Steps until the next one is forecast to gain less than tolerance²/2 for each measured number.

    The loss is ½‖Bμ − b‖², so what is left to gain bounds ½‖B(μ − μ*)‖²: at the end the residuals are, in root mean
    square, within about `tolerance` standard deviations of their noise of those at the minimum.
    """
    walker = _Walker(layout, evidence)

    def state(potentials: Numbers) -> _State:
        directed, beliefs = walker.tables(potentials)
        residual = total * evidence.measure(beliefs[walker.where]) - evidence.wanted
        return _State(potentials, directed, beliefs, residual, 0.5 * float(residual @ residual))

    # Until a step has to be cut, δ falls fast: a warm start is close to the minimum.
    now, damping, easing = state(potentials), 0.0, ENTROPY_FIT.damping_factor**2
    enough = 0.5 * tolerance**2 * evidence.wanted.size
    # With δ no less than this, a residual of one deviation moves no logarithm further than `farthest` in a step: cells
    # that are measured below zero become rare, but later measurements can still raise them.
    least = evidence.steepest / ENTROPY_FIT.farthest
    quiet, taken = 0 if evidence.wanted.size else ENTROPY_FIT.patience, 0
    while taken < steps and quiet < ENTROPY_FIT.patience:
        taken += 1
        curved = _curvature(walker, evidence, total, now)
        damping = damping or _stiffness(curved, now.residual)
        numbers, image = _solve(curved, -now.residual, damping)
        tried, length, forecast = _try(state, now, evidence.back(numbers), image)
        gained = now.loss - tried.loss
        if length < 1.0 or gained <= 0:
            damping, easing = damping * ENTROPY_FIT.damping_factor, ENTROPY_FIT.damping_factor
        elif gained > ENTROPY_FIT.good_gain * forecast:
            damping = max(damping / easing, least)
        # A gain as small as rounding cannot be realised.
        quiet = quiet + 1 if forecast <= max(enough, 1e-13 * now.loss) else 0
        if gained > 0:
            now = tried
    return Fit(now.potentials, now.directed, now.beliefs, now.loss, quiet == ENTROPY_FIT.patience, taken)


def _stiffness(curved: Callable[[Numbers], Numbers], residual: Numbers) -> float:
    """The size of H along the residual: the first damping δ."""
    image = curved(residual)
    along = float(image @ residual)
    return float(image @ image) / along if along > 0 else 1.0


def _curvature(walker: _Walker, evidence: Evidence, total: float, now: _State) -> Callable[[Numbers], Numbers]:
    """H = n B C Bᵀ at a state: how the measured numbers move with ν."""

    def curved(numbers: Numbers) -> Numbers:
        return total * evidence.measure(walker.covary(now.directed, now.beliefs, evidence.back(numbers)))

    return curved


def _try(state: Callable[[Numbers], _State], now: _State, step: Numbers, image: Numbers) -> tuple[_State, float, float]:
    """The state after a step, cut until it gains a good part of its forecast; its length; the forecast of all of it."""
    length, whole = 1.0, now.loss - 0.5 * float(np.sum((now.residual + image) ** 2))
    while True:
        forecast = now.loss - 0.5 * float(np.sum((now.residual + length * image) ** 2))
        tried = state(now.potentials + length * step)
        if now.loss - tried.loss >= ENTROPY_FIT.sufficient_gain * forecast or length < ENTROPY_FIT.shortest:
            return tried, length, whole
        length *= ENTROPY_FIT.shrink


def _solve(curved: Callable[[Numbers], Numbers], wanted: Numbers, damping: float) -> tuple[Numbers, Numbers]:
    """ν with (H + δ) ν = wanted, nearly, and H ν: conjugate gradients in the inner product of H.

    What no distribution can fit (the total of a measurement, contradictions between measurements) is in the null space
    of H. In this inner product it has length 0, so it neither hides the rest of the residual nor prolongs the steps.
    """
    found, image = np.zeros_like(wanted), np.zeros_like(wanted)
    left = wanted.copy()
    bent = curved(left)
    direction, ahead = left.copy(), bent.copy()
    size = float(left @ bent)
    enough = size * ENTROPY_FIT.solve_tolerance**2
    for _ in range(ENTROPY_FIT.solve_walks):
        if size <= enough or size <= 0.0:
            break
        pace = size / (float(ahead @ ahead) + damping * float(direction @ ahead))
        found += pace * direction
        image += pace * ahead
        left -= pace * (ahead + damping * direction)
        bent = curved(left)
        before, size = size, float(left @ bent)
        ratio = size / before
        direction = left + ratio * direction
        ahead = bent + ratio * ahead
    return found, image
