"""Looks gathered by scope, in units of their noise: B μ − b, where μ holds the marginals of all scopes.

Each number is divided by the standard deviation of its noise, so noise explains a residual of 1, and the loss is
½‖Bμ − b‖². Looks at the same thing are first made one: precisions add.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any

import numpy as np

from discreet.errors import BadParameter, BadQuery
from discreet.model.protocol import NoisyMarginal
from discreet.query.axis import axis_of
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# Products of measuring matrices with more entries than this are applied one axis after the other.
MOST_ENTRIES = 2**14


@dataclass(frozen=True, eq=False)
class _Large:
    """A look whose matrix is kept in factors: where its cells and its numbers lie, and the matrix of each axis."""

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
    """All looks: the scopes and what was measured of them, the sparse part of B and its transpose, the rest of B, b."""

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


def gather(domain: Domain, looks: Iterable[NoisyMarginal], axes: dict[Columns, Columns] | None = None) -> Evidence:
    """The evidence of some looks; `axes` gives the order in which the columns of a scope lie."""
    from scipy.sparse import block_diag, csr_array, vstack

    merged = _merge(domain, looks)
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
    """The rows of B for one look: the identity or the Kronecker product of its factors, over the noise."""
    from scipy.sparse import diags_array

    return diags_array(np.full(cells, scale), format="csr") if factors is None else scale * _kronecker(factors)


def _kronecker(factors: Sequence[Numbers]) -> Any:
    from scipy.sparse import csr_array, kron

    product = csr_array(factors[0])
    for factor in factors[1:]:
        product = csr_array(kron(product, csr_array(factor), format="csr"))
    return product


def _merge(
    domain: Domain, looks: Iterable[NoisyMarginal]
) -> dict[tuple[Columns, tuple[int, ...] | None], tuple[Numbers, float]]:
    """One look for each thing that was looked at: the mean with weights, and the sum of these."""
    merged: dict[tuple[Columns, tuple[int, ...] | None], tuple[Numbers, float]] = {}
    for look in looks:
        key = look.columns, look.parts
        values = np.asarray(look.values, dtype=np.float64).reshape(_shape(domain, look))
        if key in merged:
            before, weight = merged[key]
            values = (weight * before + look.weight * values) / (weight + look.weight)
            merged[key] = values, weight + look.weight
        else:
            merged[key] = values, float(look.weight)
    return dict(sorted(merged.items(), key=lambda pair: (pair[0][0], pair[0][1] is not None, pair[0][1] or ())))


def check(domain: Domain, look: NoisyMarginal) -> None:
    """Refuse a look that makes no sense."""
    shape = _shape(domain, look)
    values = np.asarray(look.values, dtype=np.float64)
    if values.size != prod(shape):
        raise BadQuery(
            f"a look at {look.columns}, parts {look.parts}, has {values.size} numbers; it must have {prod(shape)}."
        )
    if not (0 < look.weight < np.inf and np.isfinite(values).all()):
        raise BadParameter(
            f"a look at {look.columns} has weight {look.weight}; a weight is 1/variance, above 0 and finite, and "
            "values are finite. Leave it out."
        )


def _shape(domain: Domain, look: NoisyMarginal) -> tuple[int, ...]:
    if not look.columns or tuple(sorted(set(look.columns))) != look.columns:
        raise BadQuery(f"a look is at {look.columns}; it needs columns, each once, in the order of their names.")
    if look.parts is None:
        return tuple(domain[name].size for name in look.columns)
    axes = [axis_of(domain[name]) for name in look.columns]
    if len(look.parts) != len(axes) or not all(
        0 < part < axis.parts for part, axis in zip(look.parts, axes, strict=False)
    ):
        raise BadQuery(
            f"a look at {look.columns} has parts {look.parts}; there is one for each column, from 1 to "
            f"{[axis.parts - 1 for axis in axes]}."
        )
    return tuple(axis.rows(part) for axis, part in zip(axes, look.parts, strict=True))
