"""The true answers, by DuckDB on the rows, without protection: only a demonstration can show them.

The rows are counted once for each set of columns that is asked about; a question is then a sum over that small table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.data import ADULT
from discreet.lab.demo.questions import Condition, Question
from discreet.schema.column import Bins, Column
from discreet.schema.domain import Domain

Counts = dict[tuple[Any, ...], int]


class Truth:
    """The true answers to questions about the bundled table."""

    def __init__(self, domain: Domain) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute(f"CREATE TABLE adult AS FROM '{ADULT.with_suffix('.parquet')}'")
        self.rows: int = self._connection.execute("SELECT COUNT(*) FROM adult").fetchall()[0][0]
        self._domain = domain
        self._tables: dict[tuple[str, ...], _Table] = {}
        self._answers: dict[Question, Counts] = {}

    def of(self, question: Question) -> Counts:
        """The count of each group, by the values of the group columns; of a question without groups, one count.

        Groups of nobody are left out.
        """
        if question not in self._answers:
            if question.columns not in self._tables:
                self._tables[question.columns] = self._counted(question.columns)
            self._answers[question] = self._tables[question.columns].answer(question)
        return self._answers[question]

    def _counted(self, columns: Sequence[str]) -> "_Table":
        rows = self._connection.execute(f"SELECT {', '.join(columns)}, COUNT(*) FROM adult GROUP BY ALL").fetchall()
        *values, counts = zip(*rows, strict=True)
        coded = {name: _Coded(each, self._domain[name]) for name, each in zip(columns, values, strict=True)}
        return _Table(coded, np.array(counts))


class _Coded:
    """A column of the small table: its distinct values, which of them each row has, and how an answer shows them."""

    def __init__(self, values: Sequence[Any], column: Column) -> None:
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        self.values = list(places)
        self.codes = np.array([places[value] for value in values])
        self.shown = [_shown(value, column) for value in self.values]

    def holds(self, condition: Condition) -> NDArray[np.bool_]:
        holds: NDArray[np.bool_] = np.array([condition.holds(value) for value in self.values])[self.codes]
        return holds


class _Table:
    def __init__(self, columns: dict[str, _Coded], counts: NDArray[np.int64]) -> None:
        self._columns, self._counts = columns, counts

    def answer(self, question: Question) -> Counts:
        holds = np.ones(len(self._counts), dtype=np.bool_)
        for condition in question.conditions:
            holds &= self._columns[condition.column].holds(condition)
        counts = self._counts * holds
        if not question.groups:
            return {(): int(counts.sum())}
        groups = [self._columns[name] for name in question.groups]
        shape = tuple(len(group.values) for group in groups)
        cells = np.ravel_multi_index(tuple(group.codes for group in groups), shape)
        sums = np.bincount(cells, weights=counts, minlength=int(np.prod(shape))).reshape(shape)
        found: Counts = {}
        for place in np.argwhere(sums):
            row = tuple(group.shown[code] for group, code in zip(groups, place, strict=True))
            # Values of one bin are shown as one.
            found[row] = found.get(row, 0) + int(sums[tuple(place)])
        return found


def _shown(value: Any, column: Column) -> Any:
    if value is None:
        return "missing"
    return column.label(column.locate(value)) if isinstance(column, Bins) else value
