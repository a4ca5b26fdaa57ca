"""The reference source: a table in memory, as one small integer for each row and column.

A question is answered from the marginal of its columns if that is kept, and from bitmaps otherwise. Bitmaps serve any
columns, so they come first; a marginal serves all questions about its columns, so it is counted once the bitmaps that
had to be made for them have cost as much. What was asked and how many rows there are decides, not what is in them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import prod
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData
from discreet.query.linear import Linear
from discreet.schema.column import Column
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.schema.value import read_value
from discreet.source.bits import MOST_BITMAP_TERMS, Bitmaps, expanded_terms
from discreet.source.coding import DROPPED, code_column
from discreet.source.reading import RawColumn, read_table
from discreet.source.source import CellBatch, Source
from discreet.types import CellCodes, Columns, Ints, Ints32

# Counting one column takes as long as making this many bitmaps.
_BITMAPS_PER_COLUMN = 2
# Below this many bits, counting ones in bitmaps is quicker than finding and contracting a cached marginal.
_FEW_BITS = 2**24
# Up to this many cells, with a thousand rows for each, a marginal is counted sooner from bitmaps.
_FEW_CELLS, _MANY_ROWS = 64, 2**10


class Frame(Source):
    """Rows in memory, coded by a domain, with at most `unit.contributions` rows of each person.

    Of a person with more rows, those are kept that come first when the person's rows are sorted by their cells, in the
    order of the domain's columns: a rule that looks at no one else's rows and at no order of the table. It favours
    early cells, so choose `contributions` such that it seldom acts. A row dropped by the schema is dropped before.

    >>> from discreet.query.linear import Marginal
    >>> from discreet.schema.column import Boolean
    >>> table = Frame({"smoker": [True, False, True]}, domain=Domain({"smoker": Boolean()}))
    >>> table, table.evaluate(Marginal(("smoker",)))
    (<Frame: smoker; one row is added or removed>, <Exact, sealed: 2 integers>)
    """

    def __init__(self, data: Any, *, domain: Domain, unit: Unit | None = None) -> None:
        unit = Unit() if unit is None else unit
        super().__init__(domain, unit)
        raw = read_table(data, dict.fromkeys([*domain, *([] if unit.key is None else [unit.key])]))
        codes = {name: _small(code_column(name, column, raw[name]), column) for name, column in domain.columns}
        kept = np.flatnonzero(np.all([code != DROPPED for code in codes.values()], axis=0))
        if unit.key is not None:
            people = _people(unit.key, raw[unit.key])
            kept = kept[_first_rows(people[kept], [code[kept] for code in codes.values()], unit.contributions)]
        self._hold({name: code[kept] for name, code in codes.items()})

    def _hold(self, codes: dict[str, CellCodes]) -> None:
        self._codes = codes
        self._rows = len(next(iter(codes.values())))
        self._bits = Bitmaps(codes, self._rows)
        self._made: Counter[Columns] = Counter()
        self._fingerprint: str | None = None

    def cells(self, columns: Columns) -> Iterator[CellBatch]:
        """The cells of every row, as one batch."""
        if columns:
            yield [self._codes[name] for name in columns], None
        else:
            yield [], np.array([self._rows])

    @classmethod
    def of_codes(
        cls, codes: Iterable[Ints32], *, domain: Domain, unit: Unit, fingerprint: str | None = None
    ) -> "Frame":
        """A frame of rows that another source has coded and bounded already; its fingerprint was the one given."""
        frame = cls.__new__(cls)
        Source.__init__(frame, domain, unit)
        frame._hold({name: _small(code, domain[name]) for name, code in zip(domain, codes, strict=True)})
        frame._fingerprint = fingerprint
        return frame

    def fingerprint(self) -> str | None:
        """That of the file or table that was read; None for rows that were given, which have nothing but themselves."""
        return self._fingerprint

    def _answers(self, queries: Sequence[Linear]) -> list[int]:
        answers = [0] * len(queries)
        by_scope: dict[Columns, list[int]] = {}
        for place, query in enumerate(queries):
            by_scope.setdefault(query.scope, []).append(place)
        counted: list[int] = []
        for scope, places in by_scope.items():
            if self._by_bits(scope, [queries[place] for place in places]):
                for place in places:
                    answers[place] = self._bits.answer(queries[place])
            else:
                counted += places
        if counted:
            for place, answer in zip(counted, super()._answers([queries[place] for place in counted]), strict=True):
                answers[place] = answer
        return answers

    def _by_bits(self, scope: Columns, queries: Sequence[Linear]) -> bool:
        """Whether to answer these questions, all about the same columns, from bitmaps."""
        missing = self._bits.missing(queries)
        if not missing and self._rows * len(scope) <= _FEW_BITS:
            return True
        if max(map(expanded_terms, queries)) > MOST_BITMAP_TERMS:
            return False
        if not self._counted(scope):
            return True
        if missing:
            self._made[scope] += missing
        return self._made[scope] <= _BITMAPS_PER_COLUMN * len(scope) and self._kept.find(scope) is None

    def _count(self, columns: Columns) -> Ints:
        shape = [self.domain[name].size for name in columns]
        if columns and prod(shape) <= min(_FEW_CELLS, self._rows // _MANY_ROWS):
            return self._bits.count(columns, shape)
        return super()._count(columns)

    def __repr__(self) -> str:
        return f"<Frame: {', '.join(self.domain)}; {self.unit.describe}>"


def _small(codes: Ints32, column: Column) -> CellCodes:
    """The codes in as few bytes as hold the column's cells and DROPPED."""
    return codes.astype(np.min_scalar_type(-column.size), copy=False)


def _people(key: str, raw: RawColumn) -> NDArray[np.int64]:
    """A number for each person: equal where the key is equal."""
    if raw.values.dtype.kind in "iu" and (raw.missing is None or not raw.missing.any()):
        return np.unique(raw.values, return_inverse=True)[1].astype(np.int64)
    numbers: dict[object, int] = {}
    people = np.empty(len(raw.values), dtype=np.int64)
    for row, value in enumerate(raw.values):
        # A time stamp is a day to a question, but two people may have two times of one day.
        exact = isinstance(value, (datetime, np.datetime64, UUID, bytes))
        kind, identity = ("text", value) if exact and value == value else read_value(value)
        if kind in ("missing", "unreadable") or (raw.missing is not None and raw.missing[row]):
            raise BadData(
                f'column "{key}" says whose row it is, and is missing or unreadable in some row. '
                "Give every row a key: a text, a number, a date or a UUID."
            )
        people[row] = numbers.setdefault((kind, identity), len(numbers))
    return people


def _first_rows(people: NDArray[np.int64], codes: list[CellCodes], most: int) -> NDArray[np.int64]:
    """The rows that are among the first `most` of their person, in the order of their cells."""
    order = np.lexsort(np.stack([*reversed(codes), people]))
    sorted_people = people[order]
    starts = np.flatnonzero(np.r_[True, sorted_people[1:] != sorted_people[:-1]][: len(order)])
    lengths = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, lengths)
    return order[rank < most]
