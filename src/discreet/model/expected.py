"""The marginals of many scopes of two or three columns, at once: of a mixture or a dense model faster than in turn."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from discreet.errors import TooLarge
from discreet.model.dense import Dense
from discreet.model.mixture import Mixture
from discreet.model.protocol import Model
from discreet.schema.domain import Domain
from discreet.types import Columns, Numbers

# No scope has more columns.
WIDEST = 3


def tables_of(model: Model, scopes: Sequence[Columns], number: int) -> Iterator[tuple[Columns, Numbers]]:
    """What is expected in each cell of each scope, of so many rows; without the scopes that the model cannot tell."""
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
    # Single precision takes half the time, and is more than whole numbers of rows ask for.
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
    """The marginals that keep the first `kept` columns, and up to three in all. What is summed out is so only once."""
    if kept == min(WIDEST, len(names)):
        yield names[:kept], cube.sum(axis=tuple(range(kept, len(names))))
        return
    yield from _of_cube(cube, names, kept + 1)
    yield from _of_cube(cube.sum(axis=kept), (*names[:kept], *names[kept + 1 :]), kept)
