"""The reference source: a table in memory, as one small integer for each row and column."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData
from discreet.query.linear import Linear, Marginal
from discreet.query.product import Product
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.schema.value import read
from discreet.source.coding import DROPPED, Codes, code_column
from discreet.source.effect import MOST_ROWS, Question, linears, sensitivity_of
from discreet.source.exact import Exact
from discreet.source.reading import RawColumn, read_table

# Up to this many cells the rows are counted first and weighed then; above, each row is weighed.
_COUNTED_CELLS = 2**20


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Frame:
    """Rows in memory, coded by a domain, with at most `unit.contributions` rows of each person.

    Of a person with more rows, those are kept that come first when the person's rows are sorted by their cells, in the
    order of the domain's columns: a rule that looks at no one else's rows and at no order of the table. It favours
    early cells, so choose `contributions` such that it seldom acts. A row dropped by the schema is dropped before.

    >>> from discreet.schema.column import Boolean
    >>> table = Frame({"smoker": [True, False, True]}, domain=Domain({"smoker": Boolean()}))
    >>> table, table.evaluate(Marginal(("smoker",)))
    (<Frame: smoker; one row is added or removed>, <Exact, sealed: 2 integers>)
    """

    domain: Domain
    unit: Unit
    _codes: dict[str, Codes]
    _rows: int

    def __init__(self, data: Any, *, domain: Domain, unit: Unit | None = None) -> None:
        unit = Unit() if unit is None else unit
        raw = read_table(data, dict.fromkeys([*domain, *([] if unit.key is None else [unit.key])]))
        if len(next(iter(raw.values())).values) > MOST_ROWS:
            raise BadData(f"the table has too many rows to hold in memory; the limit is {MOST_ROWS}.")
        codes = {name: code_column(name, column, raw[name]) for name, column in domain.columns}
        kept = np.flatnonzero(np.all([code != DROPPED for code in codes.values()], axis=0))
        if unit.key is not None:
            people = _people(unit.key, raw[unit.key])
            kept = kept[_first_rows(people[kept], [code[kept] for code in codes.values()], unit.contributions)]
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "_codes", {name: code[kept] for name, code in codes.items()})
        object.__setattr__(self, "_rows", len(kept))

    def evaluate(self, question: Question) -> Exact:
        """The true integers, sealed: one for a Linear, a vector otherwise (a marginal row by row).

        Whether it raises depends on the question and the schema, never on the rows.
        """
        sensitivity = sensitivity_of(question, self.domain, self.unit)
        if isinstance(question, Marginal):
            return Exact(self._counts(question.columns), sensitivity)
        return Exact(self._answers(linears(question)), sensitivity)

    def _answers(self, queries: Sequence[Linear]) -> NDArray[np.int64]:
        scope = tuple(sorted({name for query in queries for name in query.scope}))
        if self._counted(scope):
            counts = self._marginal(scope)
            return np.array([query.answer(counts, scope) for query in queries], dtype=np.int64)
        return np.array([self._answer(query) for query in queries], dtype=np.int64)

    def _answer(self, query: Linear) -> int:
        if self._counted(query.scope):
            return query.answer(self._marginal(query.scope))
        # Each sum may wrap around 2^64; their total does not, so it is right when taken modulo 2^64.
        total = sum(each.coefficient * int(self._weights(each).sum()) for each in query.products)
        return (total + 2**63) % 2**64 - 2**63

    def _counted(self, scope: Sequence[str]) -> bool:
        return prod(self.domain[name].size for name in scope) <= _COUNTED_CELLS

    def _marginal(self, columns: Sequence[str]) -> NDArray[np.int64]:
        return self._counts(columns).reshape([self.domain[name].size for name in columns])

    def _counts(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """How many rows are in each cell of some columns, the last column varying fastest."""
        sizes = [self.domain[name].size for name in columns]
        cell = np.zeros(self._rows, dtype=np.int64)
        for name, size in zip(columns, sizes, strict=True):
            cell *= size
            cell += self._codes[name]
        return np.bincount(cell, minlength=prod(sizes))

    def _weights(self, product: Product) -> NDArray[np.int64]:
        """The weight of each row, without the coefficient."""
        weights = np.ones(self._rows, dtype=np.int64)
        for factor in product.factors:
            weights *= factor.weights[tuple(self._codes[name] for name in factor.columns)]
        return weights

    def __repr__(self) -> str:
        return f"<Frame: {', '.join(self.domain)}; {self.unit.describe}>"


def _people(key: str, raw: RawColumn) -> NDArray[np.int64]:
    """A number for each person: equal where the key is equal."""
    if raw.values.dtype.kind in "iu" and (raw.missing is None or not raw.missing.any()):
        return np.unique(raw.values, return_inverse=True)[1].astype(np.int64)
    numbers: dict[object, int] = {}
    people = np.empty(len(raw.values), dtype=np.int64)
    for row, value in enumerate(raw.values):
        kind, identity = read(value)
        if kind in ("missing", "unreadable") or (raw.missing is not None and raw.missing[row]):
            raise BadData(
                f'column "{key}" says whose row it is, and is missing or unreadable in some row. '
                "Give every row a key: a text, a number or a date."
            )
        people[row] = numbers.setdefault((kind, identity), len(numbers))
    return people


def _first_rows(people: NDArray[np.int64], codes: list[Codes], most: int) -> NDArray[np.int64]:
    """The rows that are among the first `most` of their person, in the order of their cells."""
    order = np.lexsort(np.stack([*reversed(codes), people]))
    sorted_people = people[order]
    starts = np.flatnonzero(np.r_[True, sorted_people[1:] != sorted_people[:-1]][: len(order)])
    lengths = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, lengths)
    return order[rank < most]
