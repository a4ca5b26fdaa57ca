"""The reference source: a table in memory, as one small integer for each row and column."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.schema.value import read
from discreet.source.coding import DROPPED, Codes, code_column
from discreet.source.kept import Columns
from discreet.source.reading import RawColumn, read_table
from discreet.source.source import Batch, Source


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
        codes = {name: code_column(name, column, raw[name]) for name, column in domain.columns}
        kept = np.flatnonzero(np.all([code != DROPPED for code in codes.values()], axis=0))
        if unit.key is not None:
            people = _people(unit.key, raw[unit.key])
            kept = kept[_first_rows(people[kept], [code[kept] for code in codes.values()], unit.contributions)]
        self._codes = {name: code[kept] for name, code in codes.items()}
        self._rows = len(kept)

    def cells(self, columns: Columns) -> Iterator[Batch]:
        """The cells of every row, as one batch."""
        if columns:
            yield [self._codes[name] for name in columns], None
        else:
            yield [], np.array([self._rows])

    @classmethod
    def of_codes(cls, codes: Iterable[Codes], *, domain: Domain, unit: Unit) -> "Frame":
        """A frame of rows that another source has coded and bounded already."""
        frame = cls.__new__(cls)
        Source.__init__(frame, domain, unit)
        frame._codes = dict(zip(domain, codes, strict=True))
        frame._rows = len(next(iter(frame._codes.values())))
        return frame

    def __repr__(self) -> str:
        return f"<Frame: {', '.join(self.domain)}; {self.unit.describe}>"


def _people(key: str, raw: RawColumn) -> NDArray[np.int64]:
    """A number for each person: equal where the key is equal."""
    if raw.values.dtype.kind in "iu" and (raw.missing is None or not raw.missing.any()):
        return np.unique(raw.values, return_inverse=True)[1].astype(np.int64)
    numbers: dict[object, int] = {}
    people = np.empty(len(raw.values), dtype=np.int64)
    for row, value in enumerate(raw.values):
        # A time stamp is a day to a question, but two people may have two times of one day.
        exact = isinstance(value, (datetime, np.datetime64, UUID, bytes))
        kind, identity = ("text", value) if exact and value == value else read(value)
        if kind in ("missing", "unreadable") or (raw.missing is not None and raw.missing[row]):
            raise BadData(
                f'column "{key}" says whose row it is, and is missing or unreadable in some row. '
                "Give every row a key: a text, a number, a date or a UUID."
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
