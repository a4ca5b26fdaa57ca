"""A model's answers to many queries at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.model.protocol import Model
from discreet.query.linear import Linear
from discreet.schema.domain import Domain
from discreet.types import Numbers

# Up to so many weights are computed, and so many that are not zero are kept, twelve bytes each.
MOST_WEIGHTS, MOST_KEPT = 2**30, 2**26


class Batch:
    """The queries as one sparse matrix over the cells of the domain, if it is small enough; otherwise one by one.

    >>> from discreet.model.dense import Dense
    >>> from discreet.query.workload import monotone_conjunctions
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"old": Boolean(), "smoker": Boolean()})
    >>> Batch(list(monotone_conjunctions(people)), people).answers(Dense(people, total=100)).tolist()
    [100.0, 50.0, 50.0, 25.0]
    """

    def __init__(self, queries: Sequence[Linear], domain: Domain) -> None:
        self._queries, self._names = queries, sorted(domain)
        self._matrix = _matrix(queries, domain) if len(queries) * domain.size <= MOST_WEIGHTS else None

    def answers(self, model: Model) -> Numbers:
        """The expected value of each query."""
        if self._matrix is None:
            return np.array([model.answer(query) for query in self._queries])
        found: Numbers = self._matrix @ model.marginal(self._names).ravel()
        return found


def _matrix(queries: Sequence[Linear], domain: Domain) -> Any:
    """A row for each query, or None if there are too many weights other than zero."""
    from scipy.sparse import csr_array

    names = sorted(domain)
    places, weights, ends = list[NDArray[Any]](), list[NDArray[Any]](), [0]
    for query in queries:
        table = query.table(domain, names).ravel()
        cells = np.flatnonzero(table)
        places.append(cells.astype(np.int32))
        weights.append(table[cells].astype(np.float64))
        ends.append(ends[-1] + cells.size)
        if ends[-1] > MOST_KEPT:
            return None
    shape = (len(queries), domain.size)
    return csr_array((np.concatenate(weights), np.concatenate(places), np.array(ends)), shape=shape)
