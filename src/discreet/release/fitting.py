"""One model of everything that is known of a goal's columns: pieces of the lattice, and marginals measured whole."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from discreet.known.family import axes_of
from discreet.known.known import Known, Told
from discreet.known.lattice import MOST_PIECES, Lattice
from discreet.model.ensemble import Tell, fit_ensemble
from discreet.model.features import MOST_FEATURES
from discreet.model.looks import noisy_marginals, total_of
from discreet.model.mixture import Mixture
from discreet.query.axis import axis_of
from discreet.query.linear import Marginal
from discreet.query.residual import Residual
from discreet.release.goal import Goal
from discreet.release.pairs import MEMBERS, STEPS, components_of, worth
from discreet.types import Columns

# A mixture is fitted to no more numbers than this: it looks at all of them again and again.
MOST_CELLS = 2**22


def too_large(goal: Goal) -> str:
    """Why the marginals of a goal cannot be measured whole and fitted; empty if they can.

    >>> from discreet.release.goal import goal_of
    >>> from discreet.schema.column import Integers
    >>> from discreet.schema.domain import Domain
    >>> wide = Domain({name: Integers(1, 2500, outside="drop", missing="drop") for name in "ab"})
    >>> too_large(goal_of([["a", "b"]], wide)).split(".")[0]
    'the marginals have 6250000 cells together; the limit is 4194304'
    """
    cells = sum(goal.cells(scope) for scope in goal.scopes)
    if cells > MOST_CELLS:
        return (
            f"the marginals have {cells} cells together; the limit is {MOST_CELLS}. Ask for fewer columns at once, "
            "or declare coarser ones."
        )
    deepest = max(goal.scopes, key=lambda scope: _pieces_in(goal, scope))
    if _pieces_in(goal, deepest) > MOST_PIECES:
        return (
            f"the marginal of {', '.join(deepest)} has {_pieces_in(goal, deepest)} pieces; the limit is {MOST_PIECES}. "
            "Ask for fewer columns at once."
        )
    features = 1 + sum(axis_of(goal.domain[name]).starts[-1] for name in _names(goal))
    if features > MOST_FEATURES:
        return (
            f"the single columns have {features} features together; a mixture is fitted to {MOST_FEATURES}. "
            "Leave out columns with many cells, or declare coarser ones."
        )
    return ""


def fitted_to_all(known: Known, goal: Goal, units: float, tell: Tell | None = None) -> Mixture:
    """The model of all that is known of a goal's columns, of however many at once. `units` are squared mu.

    Marginals that were measured by themselves are taken apart into the same pieces as the lattice's, which loses
    nothing, and joined to these by precision. Counts of conditions that were measured by themselves are not used.
    """
    everything = joined(known, goal)
    rows, _ = total_of(everything)
    return fit_ensemble(
        goal.domain,
        noisy_marginals(everything, list(everything.blocks)),
        total=max(rows, 1.0),
        members=MEMBERS,
        components=components_of(rows, max(units, worth(everything, goal))),
        steps=STEPS,
        tell=tell,
    )


def joined(known: Known, goal: Goal) -> Lattice:
    """What the lattice and whole marginals say together of a goal's columns."""
    names = {*_names(goal)}
    blocks = {
        columns: replace(block, precision=block.precision.copy(), values=block.values.copy())
        for columns, block in known.lattice.blocks.items()
        if block.values is not None and names.issuperset(columns)
    }
    found = Lattice(known.domain, known.lattice.unit, blocks)
    for question, told in known.told.items():
        if isinstance(question, Marginal) and question.weight is None and names.issuperset(question.columns):
            for residual, variance, numbers in _pieces(question, told, known):
                found.add(residual, variance=variance, values=numbers)
    return found


def _pieces(question: Marginal, told: Told, known: Known) -> Iterator[tuple[Residual, float, NDArray[np.int64]]]:
    """Every piece of a marginal with the same noise in all cells, the variance of its noise, and its numbers."""
    columns: Columns = question.scope
    order = [question.columns.index(name) for name in columns]
    counts = told.values.reshape(question.shape(known.domain)).transpose(order)
    axes = axes_of(known.domain, columns)
    for parts in product(*(range(axis.parts) for axis in axes)):
        others = tuple(place for place, part in enumerate(parts) if not part)
        # A sum over the other columns has the noise of all their cells; a measuring matrix multiplies it by its gain.
        gain = prod(axis.gain(part) for axis, part in zip(axes, parts, strict=True) if part)
        numbers = counts.sum(axis=others, keepdims=True)
        for place, (axis, part) in enumerate(zip(axes, parts, strict=True)):
            if part:
                numbers = axis.apply(part, numbers, place)
        residual = Residual(tuple((name, part) for name, part in zip(columns, parts, strict=True) if part))
        variance = told.variance * gain * prod(counts.shape[place] for place in others)
        # A lattice takes whole numbers. Only what was measured twice, and averaged, is none.
        yield residual, variance, np.rint(numbers).ravel().astype(np.int64)


def _pieces_in(goal: Goal, scope: Columns) -> int:
    return prod(axis.parts for axis in axes_of(goal.domain, scope))


def _names(goal: Goal) -> list[str]:
    return sorted({name for scope in goal.scopes for name in scope})
