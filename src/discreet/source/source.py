"""The sealed true value: integers that only a mechanism may open.

An LRU cache of true marginals, in memory on the trusted side, so that the rows are read once for each.

What every source does with coded rows: from counts of cells to true integers, sealed.

A source says which cells its rows are in, and how many rows are in each. All else follows from that, and is here: a
question about few cells is answered from a marginal, which is kept; one about many cells is summed while the cells
stream by, so that memory stays bounded.

Sums are exact. One that does not fit in 64 bits becomes the largest that does: that increases no distance between two
tables, and raises nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import prod
from threading import RLock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.sensitivity import Sensitivity
from discreet.cache import LruCache
from discreet.errors import SealBroken
from discreet.query.linear import Linear, Marginal
from discreet.query.points import CHUNK, Boxes, Clusters, coordinates_of
from discreet.query.residual import Measurement, Residual
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.query_sensitivity import (
    LARGEST_ROW_WEIGHT,
    AnyQuery,
    linear_queries,
    require_within_range,
    sensitivity_of,
    settled_query,
)
from discreet.types import CellCodes, Columns, Ints


class Exact:
    """True integers computed from private rows, with the sensitivity of how they were computed.

    It shows its shape and nothing else; it cannot be compared, hashed, copied, pickled, iterated or made an array.
    Only `mechanism/` opens it, by `unseal`, which checks that the noise was calibrated for it.
    """

    __slots__ = ("_Exact__values", "sensitivity", "stretches")
    __values: NDArray[np.int64]
    sensitivity: Sensitivity
    # If not empty, the sensitivity is that of the values divided by these standard deviations, stretch by stretch.
    stretches: tuple[tuple[Fraction, int], ...]

    def __init__(
        self, values: NDArray[np.int64], sensitivity: Sensitivity, stretches: tuple[tuple[Fraction, int], ...] = ()
    ) -> None:
        sealed = np.array(values, dtype=np.int64, ndmin=1)
        sealed.setflags(write=False)
        object.__setattr__(self, "_Exact__values", sealed)
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "stretches", stretches)

    @property
    def size(self) -> int:
        """How many integers there are; the schema decides it, so it is public."""
        return int(self.__values.size)

    def __repr__(self) -> str:
        return f"<Exact, sealed: {self.size} integer{'s' if self.size != 1 else ''}>"

    def _refuse(self, *_: object) -> NoReturn:
        raise SealBroken("an Exact is sealed: only a mechanism may open it. Pass it to a mechanism's release().")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __bool__ = __iter__ = __len__ = __getitem__ = __array__ = _refuse
    __int__ = __float__ = __index__ = __add__ = __sub__ = __mul__ = _refuse
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse
    __setattr__ = __delattr__ = _refuse


def unseal(
    exact: Exact, calibrated: Sensitivity, *, stretches: tuple[tuple[Fraction, int], ...] = ()
) -> NDArray[np.int64]:
    """The true integers, for noise calibrated to `calibrated`. Only for `mechanism/` (the architecture test checks)."""
    if not isinstance(exact, Exact):
        raise SealBroken(f"a mechanism takes an Exact from a source, not {type(exact).__name__}.")
    if exact.stretches != stretches:
        raise SealBroken(
            "the values were measured for other noise than this mechanism adds. Build it for the same measurement."
        )
    if not calibrated.covers(exact.sensitivity):
        raise SealBroken(
            f"the noise is calibrated to {calibrated} and the value moves by {exact.sensitivity}. "
            "Build the mechanism with sensitivity=exact.sensitivity."
        )
    values: NDArray[np.int64] = exact._Exact__values  # type: ignore[attr-defined]
    return values


# A quarter of a gigabyte, and no single marginal may push out more than a quarter of that.
MOST_KEPT_BYTES = 2**28


class MarginalCache:
    """Marginals by their sorted columns. What is kept depends on the earlier questions, never on the rows.

    >>> import numpy as np
    >>> kept = MarginalCache()
    >>> kept.keep(("age", "sex"), np.array([[1, 2], [3, 4]]))
    >>> kept.find(("sex",)).tolist(), kept.find(("city",))
    ([4, 6], None)
    """

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._marginals: LruCache[Columns, Ints] = LruCache(most_bytes)

    def find(self, columns: Columns) -> Ints | None:
        """The marginal of these sorted columns, if it is kept or follows from one that is."""
        counts = self._marginals.get(columns)
        if counts is not None:
            return counts
        sizes = self._marginals.sizes()
        larger = [names for names in sizes if len(names) > len(columns) and set(columns) <= set(names)]
        held = min(larger, key=sizes.__getitem__, default=None)
        counts = None if held is None else self._marginals.get(held)
        if held is None or counts is None:
            return None
        summed: Ints = counts.sum(axis=tuple(axis for axis, name in enumerate(held) if name not in columns))
        self.keep(columns, summed)
        return summed

    def clear(self) -> None:
        """Drop everything: the rows may have changed."""
        self._marginals.clear()

    def keep(self, columns: Columns, counts: Ints) -> None:
        """Keep a marginal, unless it is larger than a quarter of the cache."""
        if 4 * counts.nbytes <= self._most_bytes and columns not in self._marginals:
            self._marginals.put(columns, counts, size=counts.nbytes)


# Up to this many cells the rows are counted first and weighed then; above, the cells are weighed as they stream by.
_COUNTED_CELLS = 2**20
# Queries whose columns have together at most this many cells are answered from one pass over the rows.
_TOGETHER = 2**18
_LARGEST = 2**63 - 1

# For some rows or cells: the code of each in each column, and how many rows each is (None: each is one row).
CellBatch = tuple[Sequence[CellCodes], Ints | None]


class Source(ABC):
    """Where the rows are: it evaluates a question to true integers, sealed.

    The laws that every source keeps are in tests/source/test_laws.py.
    """

    def __init__(self, domain: Domain, unit: Unit) -> None:
        self.domain, self.unit = domain, unit
        self._kept = MarginalCache()
        self._lock = RLock()
        self._frozen = False

    def fingerprint(self) -> str | None:
        """A fingerprint of the state of the rows, changed by edits and never made of contents; None if there is none.

        For the owner: nobody else may see it, nor a hash of it without a secret. `SourceUnavailable` if it is away.
        """
        return None

    def touch(self) -> None:  # noqa: B027 (rows in memory are always there)
        """Raise `SourceUnavailable` or `SourceChanged` if the rows that were opened cannot be read now.

        To be called before every payment. It depends on the source and on edits of it, never on what is in the rows.
        """

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is evaluated within is read from one state of the table, also while others change it."""
        with self._lock:
            if self._frozen:
                yield
                return
            self._frozen = True
            try:
                with self._one_state():
                    yield
            finally:
                self._frozen = False

    @contextmanager
    def _one_state(self) -> Iterator[None]:
        """Read from one state; rows in memory have no other."""
        yield

    @abstractmethod
    def cells(self, columns: Columns) -> Iterator[CellBatch]:
        """The cells of these columns that hold rows, in batches; of no columns, the number of rows."""

    def evaluate(self, question: AnyQuery) -> Exact:
        """The true integers, sealed: one for a Linear, a vector otherwise (a marginal or a residual row by row).

        Whether it raises depends on the question and the schema, never on the rows. It is sealed with the sensitivity
        of the very object that is evaluated, which is immutable, and which was checked against it.
        """
        asked = settled_query(question)
        sensitivity = sensitivity_of(asked, self.domain, self.unit)
        require_within_range(asked, self.domain)
        with self.snapshot():
            match asked:
                case Measurement():
                    return Exact(_fit(self._residuals(asked)), sensitivity, asked.stretches(self.domain))
                case Residual():
                    return Exact(_fit(self._residual(asked)), sensitivity)
                case Boxes() | Clusters():
                    return Exact(self._points(asked), sensitivity)
                case Marginal():
                    return Exact(_fit(self._sums(asked)).ravel(), sensitivity)
            answers = [min(max(answer, -_LARGEST), _LARGEST) for answer in self._answers(linear_queries(asked))]
            return Exact(np.array(answers, dtype=np.int64), sensitivity)

    def _residuals(self, question: Measurement) -> NDArray[Any]:
        """All residuals from one reading of the rows, where their columns have few enough cells together."""
        if self._counted(question.columns):
            return question.measure(self._counts(question.columns), self.domain)
        return np.concatenate([self._residual(residual) for residual, _ in question.pieces])

    def _residual(self, residual: Residual) -> NDArray[Any]:
        return residual.measure(self._counts(residual.columns), self.domain).ravel()

    def _points(self, question: Boxes | Clusters) -> NDArray[np.int64]:
        """The sum of what all points add, while their cells stream by."""
        coordinates = coordinates_of(self.domain, question.columns)
        sums = np.zeros(question.size, dtype=np.int64)
        for codes, rows in self.cells(question.columns):
            for begin in range(0, len(codes[0]), CHUNK):
                part = slice(begin, begin + CHUNK)
                cells = [code[part] for code in codes]
                known = np.all([code < each.cells for code, each in zip(cells, coordinates, strict=True)], axis=0)
                points = np.array(
                    [
                        each.step * cell[known].astype(np.float64) + each.start
                        for cell, each in zip(cells, coordinates, strict=True)
                    ]
                )
                sums += question.measure(points, None if rows is None else rows[part][known])
        return sums

    def _sums(self, question: Marginal) -> NDArray[Any]:
        """The sum in each cell of a marginal."""
        if question.weight is None:
            return self._counts(question.columns)
        scope = question.scope
        if not self._counted(scope):
            return self._stream_sums(question.columns, question.weight)
        counts = _roomy(self._counts(scope))
        weighed = counts * question.weight.table(self.domain, scope)
        others = tuple(axis for axis, name in enumerate(scope) if name not in question.columns)
        left = [name for name in scope if name in question.columns]
        return np.asarray(weighed.sum(axis=others)).transpose([left.index(name) for name in question.columns])

    def _answers(self, queries: Sequence[Linear]) -> list[int]:
        answers = dict.fromkeys(queries, 0)
        for scope in _together({query.scope for query in queries}, self.domain):
            self._counts(scope)
        for query in answers:
            if self._counted(query.scope):
                answers[query] = query.answer(self._counts(query.scope))
        wide: dict[Columns, list[Linear]] = {}
        for query in answers:
            if not self._counted(query.scope):
                wide.setdefault(query.scope, []).append(query)
        for scope, members in wide.items():
            answers |= self._stream_answers(scope, members)
        return [answers[query] for query in queries]

    def _counted(self, scope: Iterable[str]) -> bool:
        return prod(self.domain[name].size for name in scope) <= _COUNTED_CELLS

    def _counts(self, columns: Columns) -> Ints:
        """How many rows are in each cell, with an axis for each column in the order given."""
        names = tuple(sorted(columns))
        counts = self._kept.find(names)
        if counts is None:
            counts = self._count(names)
            self._kept.keep(names, counts)
        return counts.transpose([names.index(name) for name in columns])

    def _count(self, columns: Columns) -> Ints:
        shape = tuple(self.domain[name].size for name in columns)
        counts = np.zeros(prod(shape), dtype=np.int64)
        for codes, rows in self.cells(columns):
            places = self._places(columns, codes)
            if rows is None:
                counts += np.bincount(places, minlength=counts.size)
            else:
                np.add.at(counts, places, rows)
        return counts.reshape(shape)

    def _places(self, columns: Columns, codes: Sequence[CellCodes]) -> NDArray[np.int64]:
        """The place of each cell among all cells of some columns, the last column varying fastest."""
        places = np.zeros(len(codes[0]) if codes else 1, dtype=np.int64)
        for name, code in zip(columns, codes, strict=True):
            places *= self.domain[name].size
            places += code
        return places

    def _stream_answers(self, scope: Columns, queries: Sequence[Linear]) -> dict[Linear, int]:
        answers = dict.fromkeys(queries, 0)
        for codes, rows in self.cells(scope):
            by_name = dict(zip(scope, codes, strict=True))
            for query in queries:
                weights = query.weigh(by_name)
                answers[query] += int((weights * (1 if rows is None else _roomy(rows))).sum())
        return answers

    def _stream_sums(self, columns: Columns, weight: Linear) -> NDArray[Any]:
        scope = tuple(dict.fromkeys((*columns, *weight.scope)))
        sums: NDArray[Any] = np.zeros(prod(self.domain[name].size for name in columns), dtype=np.int64)
        seen = 0
        for codes, rows in self.cells(scope):
            counts = np.ones(len(codes[0]), dtype=np.int64) if rows is None else rows
            seen += int(counts.sum())
            if seen > _LARGEST // LARGEST_ROW_WEIGHT:
                sums, counts = sums.astype(object), counts.astype(object)
            weights = weight.weigh(dict(zip(scope, codes, strict=True)))
            # Of no columns there is one cell, which all rows are in.
            places = np.broadcast_to(self._places(columns, codes[: len(columns)]), weights.shape)
            np.add.at(sums, places, weights * counts)
        return sums


def _roomy(counts: Ints) -> NDArray[Any]:
    """The counts, as Python's integers if their sum times the largest weight may leave 64 bits."""
    return counts if int(counts.sum()) <= _LARGEST // LARGEST_ROW_WEIGHT else counts.astype(object)


def _fit(values: NDArray[Any]) -> NDArray[np.int64]:
    return values if values.dtype == np.int64 else np.clip(values, -_LARGEST, _LARGEST).astype(np.int64)


def _together(scopes: Iterable[Columns], domain: Domain) -> list[Columns]:
    """Fewer scopes that contain the given ones, where these have few enough cells."""
    merged: list[Columns] = []
    for scope in sorted(scopes, key=lambda names: (-prod(domain[name].size for name in names), names)):
        for place, other in enumerate(merged):
            both = tuple(sorted({*scope, *other}))
            if prod(domain[name].size for name in both) <= _TOGETHER:
                merged[place] = both
                break
        else:
            if prod(domain[name].size for name in scope) <= _COUNTED_CELLS:
                merged.append(scope)
    return merged
