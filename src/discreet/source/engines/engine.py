"""Rows that stay where they are: DuckDB, Postgres, Spark, whatever Ibis speaks to. The engine codes, counts and groups.

For a table whose unit is the row, the raw values are grouped first wherever their type allows only about as many of
them as there are cells, and coded then: coding a thousand groups costs nothing, coding 10⁸ rows doubles the time.
Which columns these are is decided by schema and types, never by the rows.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from operator import and_
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadData, SourceChanged, SourceFailed, did_you_mean
from discreet.query.points import Boxes, Clusters, coordinates_of
from discreet.schema.column import Bins, Column
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.coding import DROPPED, check_kind
from discreet.source.engines.expression import code, is_missing, keeps, kind_of
from discreet.source.engines.origin import RowsOrigin, file_written, source_changed, source_unavailable
from discreet.source.engines.point_expression import collected, in_engine
from discreet.source.source import CellBatch, Source
from discreet.types import Columns, Ints32

Reached = TypeVar("Reached")

# How an engine's column becomes a column of cells; text files have their own way.
Coder = Callable[[Column, Any], Any]

_BATCH = 2**20
# How often a table is read again that seems to be written while it is opened.
_OPENINGS = 3

# The engine's own names: a column of the schema may have any name at all, so they are numbered here.
_ROWS, _PERSON, _RANK, _KEPT = "n", "person", "place", "kept"


class Engine(Source):
    """A table of an engine, coded by a domain inside it, with at most `unit.contributions` rows of each person.

    Of a person with more rows those are kept that `Frame` keeps. Nothing is read until a question is evaluated, except
    that every row has a key.
    """

    def __init__(
        self,
        rows: Any,
        *,
        domain: Domain,
        unit: Unit,
        coder: Coder = code,
        copy: bool = False,
        reopen: Callable[[], Any] | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(domain, unit)
        check_columns(rows.schema(), domain, unit, kinds=coder is code)
        self._rows, self._coder, self._reopen, self._place = rows, coder, reopen, place
        self._origin, self._lost = RowsOrigin(rows, place), False
        self._mark: object = None
        _see_all_numbers(rows, [*domain, *([] if unit.key is None else [unit.key])])
        self._names = {name: f"c{place}" for place, name in enumerate(domain)}
        # The state of the rows when they were opened, and the state that the cached marginals are of.
        self._opened: str | None = None
        self._pin: object = None
        # Postgres counts an edit up to some seconds late: what seems to be written now may have been written before.
        for _ in range(1 if copy else _OPENINGS):
            self._opened, self._pin = self._origin.fingerprint(), self._origin.pin()
            self._copy = self._check_rows(copy)
            if self._origin.pin() == self._pin:
                return
        raise BadData("the rows were written while they were read. Open the table when nobody writes it.")

    def _check_rows(self, copy: bool) -> Any:
        """Check that every row has a key and that the engine can code the rows; the coded rows, if they are copied."""
        if self.unit.key is not None:
            _check_keys(self._rows, self.unit.key)
        # Windows over all rows are slow, and so is reading text: an engine of our own keeps the coded rows instead.
        if copy:
            return _copy_rows(self._bounded())
        self._check_coding()
        return None

    def _check_coding(self) -> None:
        """Refuse columns that the engine cannot compare, whatever the rows are: its types may lack operations."""
        # Of DuckDB's types only its largest integers do not say what they are; for the rest of them this saves 50 ms.
        plain = self._rows.get_backend().name == "duckdb"
        doubtful = [name for name in self.domain if not plain or self._rows[name].type().is_decimal()]
        if doubtful and not self._codes(doubtful):
            names = [name for name in doubtful if not self._codes([name])]
            raise BadData(
                f"the engine cannot compare {', '.join(map(repr, names))} with what the schema declares. "
                "Declare other values, or give the engine's table another type, say by a view."
            )

    def _codes(self, names: Iterable[str]) -> bool:
        rows = self._rows.limit(0)
        try:
            coded = rows.select(**{self._names[name]: self._coder(self.domain[name], rows[name]) for name in names})
            list(_batches(coded))
        except Exception:
            return False
        return True

    def fingerprint(self) -> str | None:
        """The current fingerprint; of rows that were copied, the one at that time."""
        # This never waits for a reader: rows that are being read were checked before, so they are those opened.
        if self._copy is not None or not self._lock.acquire(blocking=False):
            return self._opened
        try:
            return self._with_retry(lambda: self._origin.fingerprint())
        finally:
            self._lock.release()

    def touch(self) -> None:
        """Reach the engine, over a new connection if the last one was lost, and check that nothing was written."""
        if self._copy is None:
            with self._lock:
                self._with_retry(self._check_state)

    def _with_retry(self, ask: Callable[[], Reached]) -> Reached:
        """Call this; if it fails, call it once more over a new connection."""
        try:
            self._reconnect()
            return ask()
        except SourceChanged:
            raise
        except Exception as error:
            first = error
        try:
            self._lost = True
            self._reconnect()
            return ask()
        except SourceChanged:
            raise
        except Exception:
            self._lost = True
            raise source_unavailable(first) from None

    def _reconnect(self) -> None:
        if self._lost and self._reopen is not None:
            self._rows = self._reopen()
            self._origin, self._mark = RowsOrigin(self._rows, self._place), None
        self._lost = False

    def _check_state(self) -> None:
        if self._origin.pin() != self._pin:
            raise source_changed()
        self._origin.reach([*self.domain, *([] if self.unit.key is None else [self.unit.key])])

    @contextmanager
    def _one_state(self) -> Iterator[None]:
        if self._copy is not None:
            yield
            return
        with ExitStack() as stack:
            with self._asking():
                self._reconnect()
                mark = stack.enter_context(self._origin.one_state())
                self._require_same_file()
            # Kept marginals of another state must not meet those of this one.
            if mark is None or mark != self._mark:
                self._kept.clear()
            self._mark = mark
            yield
            with self._asking():
                self._require_same_file()
                stack.close()

    def _require_same_file(self) -> None:
        """A file has no transactions, so it must be the one that was opened, before it is read and after."""
        if self._place is not None and self._origin.pin() != self._pin:
            raise file_written()

    def cells(self, columns: Columns) -> Iterator[CellBatch]:
        """The cells that hold rows, and how many each: one GROUP BY, streamed."""
        with self._asking():
            names = [self._names[name] for name in columns]
            # Closed even if the caller stops half-way: DuckDB answers nothing while a result is open.
            with _batches(self._query(columns)) as batches:
                for batch in batches:
                    codes = [_codes(batch.column(name)) for name in names]
                    rows = batch.column(_ROWS).to_numpy(zero_copy_only=False).astype(np.int64)
                    held = np.all([np.ones(len(rows), dtype=np.bool_), *(code != DROPPED for code in codes)], axis=0)
                    yield [code[held] for code in codes], rows[held]

    def _points(self, question: Boxes | Clusters) -> NDArray[np.int64]:
        """Boxes and Voronoi cells are found, and their points added up, by the engine."""
        coordinates = coordinates_of(self.domain, question.columns)
        names = [self._names[name] for name in question.columns]
        with self._asking():
            answer = in_engine(question, coordinates, self._query(question.columns), names, _ROWS)
            with _batches(answer) as batches:
                return collected(question, batches)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask the engine; say in our words that it failed."""
        try:
            yield
        except SourceFailed:
            raise
        except Exception as error:
            self._lost = True
            # What an engine says may quote a row.
            raise SourceFailed(
                f"the engine failed to count rows ({type(error).__name__}); nothing was released. "
                "Ask again in a moment; the owner checks that the table is there and has the columns of its schema."
            ) from None

    def coded_rows(self) -> list[Ints32]:
        """The code of every row that counts, in each column of the domain: all of them, in memory."""
        with (
            self.snapshot(),
            self._asking(),
            _batches(self._bounded() if self._copy is None else self._copy) as batches,
        ):
            pieces = [[_codes(batch.column(name)) for name in self._names.values()] for batch in batches]
        return [np.concatenate(column) for column in zip(*pieces, strict=True)] or [np.zeros(0, np.int32)] * len(
            self._names
        )

    def _query(self, columns: Columns) -> Any:
        if self._copy is None and self.unit.key is None:
            return self._grouped(columns)
        coded = self._bounded() if self._copy is None else self._copy
        return _count(coded, [self._names[name] for name in columns])

    def _grouped(self, columns: Columns) -> Any:
        """Cells and counts where every row counts: group what can be grouped raw, then code."""
        rows, floats = self._rows, []
        for name, column in self.domain.columns:
            if column.drops and name not in columns:
                if self._rows[name].type().is_floating():
                    floats.append(keeps(column, self._rows[name]))
                else:
                    rows = rows.filter(keeps(column, rows[name]))
        # To filter the rows of a Parquet file DuckDB uses the least and the greatest number, and not NaN. So
        # floats are not filtered: rows are dropped as they are counted, and cells after that.
        kept = {_KEPT: reduce(and_, floats)} if floats else {}
        late = {name for name in columns if _few_values(self.domain[name], rows[name].type())}
        names = [self._names[name] for name in columns]
        early = {self._names[name]: self._early(rows, name, late) for name in columns}
        grouped = _count(rows.select(**early, **kept) if early or kept else rows, names, kept=bool(kept))
        if not late:
            return grouped
        coded = grouped.select(
            **{self._names[name]: self._late(grouped, name, late) for name in columns}, **{_ROWS: grouped[_ROWS]}
        )
        return coded.group_by(names).aggregate(**{_ROWS: coded[_ROWS].sum().cast("int64")})

    def _early(self, rows: Any, name: str, late: set[str]) -> Any:
        return rows[name] if name in late else self._coder(self.domain[name], rows[name])

    def _late(self, grouped: Any, name: str, late: set[str]) -> Any:
        value = grouped[self._names[name]]
        return self._coder(self.domain[name], value) if name in late else value

    def _bounded(self) -> Any:
        """The coded rows that count: none dropped by the schema, and of each person the first by their cells."""
        rows, key = self._rows, self.unit.key
        if key is not None:
            rows = rows.filter(~is_missing(rows[key]))
        coded = rows.select(
            **{self._names[name]: self._coder(column, rows[name]) for name, column in self.domain.columns},
            **({} if key is None else {_PERSON: rows[key]}),
        )
        kept = [coded[self._names[name]] != DROPPED for name, column in self.domain.columns if column.drops]
        coded = coded.mutate(**{_KEPT: reduce(and_, kept)}) if kept else coded
        if key is not None:
            coded = self._first_rows(coded)
        return (coded.filter(coded[_KEPT]) if kept else coded).select(*self._names.values())

    def _first_rows(self, coded: Any) -> Any:
        """The first rows of each person by their cells; those that the schema drops come last."""
        import ibis

        order = [coded[_KEPT].desc()] if _KEPT in coded.columns else []
        order += [coded[name] for name in self._names.values()]
        rank = ibis.row_number().over(ibis.window(group_by=coded[_PERSON], order_by=order))
        ranked = coded.mutate(**{_RANK: rank})
        return ranked.filter(ranked[_RANK] < self.unit.contributions)

    def __repr__(self) -> str:
        return f"<Engine: {', '.join(self.domain)}; {self.unit.describe}>"


def check_columns(types: Any, domain: Domain, unit: Unit, *, kinds: bool = True) -> None:
    """Refuse a table that lacks a column of the schema, or holds values of another kind."""
    for name in (*domain, *([] if unit.key is None else [unit.key])):
        if name not in types:
            raise BadData(
                f'column "{name}" of the schema is not there; {did_you_mean(name, types)} '
                "The columns of the table must match the schema."
            )
    if kinds:
        for name, column in domain.columns:
            check_kind(name, column, kind_of(types[name]), str(types[name]))


def _few_values(column: Column, dtype: Any) -> bool:
    """Whether raw values of this type are about as few as the cells of the column."""
    if dtype.is_boolean() or (dtype.is_integer() and dtype.nbytes <= 2):
        return True
    return not isinstance(column, Bins) and (dtype.is_integer() or dtype.is_string() or dtype.is_date())


def _count(rows: Any, names: list[str], *, kept: bool = False) -> Any:
    counted = _count_where(rows, rows[_KEPT]) if kept else rows.count()
    return (rows.group_by(names) if names else rows).aggregate(**{_ROWS: counted})


def _count_where(rows: Any, condition: Any) -> Any:
    # On Spark this is a sum, and the sum of no rows is not zero.
    return rows.count(where=condition).fill_null(0)


def _copy_rows(rows: Any) -> Any:
    """The rows, in a table of the engine's memory that is gone with the connection."""
    return rows.get_backend().create_table("discreet_rows", rows, temp=True)


def _codes(column: Any) -> Ints32:
    codes: Ints32 = column.to_numpy(zero_copy_only=False).astype(np.int32)
    return codes


def _batches(query: Any) -> Any:
    engine = query.get_backend()
    if engine.name == "duckdb":
        # What Ibis 12 calls for this is gone in DuckDB 2.
        return engine.con.sql(engine.compile(query)).to_arrow_reader(_BATCH)
    return query.to_pyarrow_batches(chunk_size=_BATCH)


def _see_all_numbers(rows: Any, columns: list[str]) -> None:
    """Keep DuckDB from using a Parquet file's statistics of floats: they leave out NaN.

    A column that is 0 or NaN would count as 0 throughout, and missing keys in it would not be found.
    """
    engine, types = rows.get_backend(), rows.schema()
    if engine.name == "duckdb" and any(types[name].is_floating() for name in columns):
        ((off,),) = engine.con.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        names = dict.fromkeys([*filter(None, off.split(",")), "statistics_propagation"])
        engine.con.execute(f"SET disabled_optimizers = '{','.join(names)}'")


def _check_keys(rows: Any, key: str) -> None:
    """Refuse a table in which it is not clear whose row each row is."""
    dtype = rows[key].type()
    if not (kind_of(dtype) or dtype.is_uuid() or dtype.is_binary()):
        raise BadData(
            f'column "{key}" says whose row it is, and holds {dtype}. A key is a text, a number, a date or a UUID.'
        )
    # Counted, not filtered: see _grouped.
    if int(_count_where(rows, is_missing(rows[key])).execute()):
        raise BadData(f'column "{key}" says whose row it is, and is missing in some row. Give every row a key.')
