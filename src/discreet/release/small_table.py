"""SmallDB as a request: the mechanism that chooses a small table for some queries, and what it reads of the rows."""

from collections.abc import Sequence

import numpy as np

from discreet.errors import TooLarge
from discreet.mechanism.protocol import Mechanism
from discreet.mechanism.smalldb import answers, small_table
from discreet.numeric import Number
from discreet.query.linear import Linear
from discreet.query.product import Product
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import sensitivity_of

# Queries times cells: the matrix is held in memory, eight bytes each. Each imbalance is a question to the source.
MOST_HELD_WEIGHTS, MOST_ASKED_IMBALANCES = 2**25, 2**16


def choosing(
    queries: Sequence[Linear], domain: Domain, unit: Unit, *, epsilon: Number, rows: int
) -> tuple[Mechanism[tuple[int, ...]], list[Linear]]:
    """The mechanism that chooses a table of `rows` rows, and what it reads: the imbalances of all queries.

    Raises TooLarge if there are too many tables to enumerate, answers to ask for, or weights to hold.
    """
    require_held(len(queries), domain)
    effects = np.array([query.table(domain, sorted(domain)).ravel() for query in queries])
    # Too many tables are refused here, before the imbalances are computed.
    small_table(effects, epsilon=epsilon, sensitivity=1, rows=rows)
    _require_few(sum(len(answers(weights, rows)) for weights in effects), rows)
    everyone = Linear([Product(())])
    pairs = zip(queries, effects, strict=True)
    imbalances = [rows * query - a * everyone for query, weights in pairs for a in answers(weights, rows)]
    moves = sensitivity_of(imbalances, domain, unit)
    return small_table(effects, epsilon=epsilon, sensitivity=moves, rows=rows), imbalances


def require_held(queries: int, domain: Domain) -> None:
    """Refuse queries whose matrix cannot be held."""
    if queries * domain.size > MOST_HELD_WEIGHTS:
        raise TooLarge(
            f"{queries} queries on {domain.size} cells are a matrix of {8 * queries * domain.size} bytes; the limit is "
            f"{8 * MOST_HELD_WEIGHTS}. Ask for less, or open the table with fewer columns."
        )


def _require_few(imbalances: int, rows: int) -> None:
    if imbalances > MOST_ASKED_IMBALANCES:
        raise TooLarge(
            f"{rows} rows can give {imbalances} different answers, and each is a query to the table; the limit is "
            f"{MOST_ASKED_IMBALANCES}. Take fewer rows, or ask for less."
        )
