"""Rows as bits: where a question is a product of conditions, its answer is the AND of bitmaps and a count of ones.

A bitmap has a bit for each row: whether the row meets a condition on one column, or on a few. Any eight conditions on
10⁶ rows are eight bitmaps of 125 kB, which are read in some 50 µs, whatever the columns; the marginal of eight columns
takes 20 ms and serves these eight alone. Other weights than 0 and 1 are cut into binary digits: a sum is that of its
digits' counts, 2^i times the i-th.

The reference source: a table in memory, as one small integer for each row and column.

A question is answered from the marginal of its columns if that is kept, and from bitmaps otherwise. Bitmaps serve any
columns, so they come first; a marginal serves all questions about its columns, so it is counted once the bitmaps that
had to be made for them have cost as much. What was asked and how many rows there are decides, not what is in them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import product as choices
from math import prod
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from discreet.cache import LruCache
from discreet.errors import BadData
from discreet.query.linear import Linear
from discreet.query.product import Factor, Product
from discreet.schema.column import Column
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.coding import DROPPED, RawColumn, code_column, read_table
from discreet.source.source import MOST_KEPT_BYTES, CellBatch, Source
from discreet.types import CellCodes, Columns, Ints, Ints32, Words
from discreet.values import read_value

# A weight is the sum of these multiples of bitmaps; where there is None instead, of every row.
WeightDigits = tuple[tuple[int, Words | None], ...]

# The most counts that a product is expanded to.
MOST_BITMAP_TERMS = 64
# Up to this many cells of a column are compared one by one, which numpy does sixteen at a time; more are looked up.
_FEW = 8
# Words that are combined at a time: with those that they are combined with, they stay in the processor's cache.
_BLOCK = 2**15


class Bitmaps:
    """The rows of a frame, for questions: bitmaps are made when asked for, and kept in an LRU cache.

    Which are kept depends on the questions and on the number of rows.

    >>> bits = Bitmaps({"sex": np.array([0, 1, 1]), "smoker": np.array([1, 1, 0])}, 3)
    >>> women, smokers = Factor(("sex",), np.array([0, 1])), Factor(("smoker",), np.array([0, 1]))
    >>> bits.answer(Linear([Product((women, smokers), 5)]))
    5
    """

    def __init__(self, codes: Mapping[str, CellCodes], rows: int, most_bytes: int | None = None) -> None:
        self._codes, self._rows = codes, rows
        self._words = -(-rows // 64)
        # Room for all cells of all columns with two cells, however many rows there are.
        if most_bytes is None:
            most_bytes = max(MOST_KEPT_BYTES, 16 * self._words * len(codes))
        self._kept: LruCache[Factor, WeightDigits] = LruCache(most_bytes)
        self._single: dict[str, list[Factor]] = {}
        self._both = np.empty(min(self._words, _BLOCK), dtype=np.uint64)
        self._ones = np.empty(min(self._words, _BLOCK), dtype=np.uint8)

    def missing(self, queries: Iterable[Linear]) -> int:
        """How many bitmaps would have to be made to answer these."""
        kept = self._kept
        factors = [each for query in queries for term in query.products for each in term.factors if each not in kept]
        return sum(map(_digits, dict.fromkeys(factors)))

    def answer(self, query: Linear) -> int:
        """The exact value."""
        return sum(self._sum(each) for each in query.products)

    def count(self, columns: Columns, shape: Sequence[int]) -> Ints:
        """How many rows are in each cell of some columns that have these many."""
        *others, final = [self._cells(name, size) for name, size in zip(columns, shape, strict=True)]
        counts = np.empty(shape, dtype=np.int64)
        for places in np.ndindex(*shape[:-1]):
            chosen = [cells[place] for cells, place in zip(others, places, strict=True)]
            before = [self._and(chosen)] if chosen else []
            ones = [self._ones_in([*before, cell]) for cell in final[:-1]]
            # Every row is in one of the cells of the last column.
            counts[places] = [*ones, self._ones_in(before) - sum(ones)]
        return counts

    def _sum(self, each: Product) -> int:
        if each.factors and all(_is_sign(factor) for factor in each.factors):
            return each.coefficient * self._signs(each)
        masks: list[Words] = []
        weights: list[WeightDigits] = []
        for factor in each.factors:
            digits = self._find(factor)
            if len(digits) == 1 and digits[0][0] == 1 and digits[0][1] is not None:
                masks.append(digits[0][1])
            else:
                weights.append(digits)
        if not weights:
            return each.coefficient * self._ones_in(masks)
        masks = [self._and(masks)] if masks else []
        total = 0
        for term in choices(*weights):
            bitmaps = [bitmap for _, bitmap in term if bitmap is not None]
            total += prod(multiple for multiple, _ in term) * self._ones_in([*masks, *bitmaps])
        return each.coefficient * total

    def _signs(self, each: Product) -> int:
        """The sum of a product of signs: it is +1 or −1, as the number of its pluses is like that of its factors."""
        pluses = [self._find(factor)[1][1] for factor in each.factors]
        odd = self._ones_in([bitmap for bitmap in pluses if bitmap is not None], np.bitwise_xor)
        return (1 if len(pluses) % 2 == 0 else -1) * (self._rows - 2 * odd)

    def _find(self, factor: Factor) -> WeightDigits:
        digits = self._kept.get(factor)
        if digits is None:
            digits = self._make(factor)
            self._kept.put(factor, digits, size=8 * self._words * len(digits))
        return digits

    def _make(self, factor: Factor) -> WeightDigits:
        low, _ = factor.range
        # Modulo 2^64, where the difference fits and the weights may not.
        above = factor.weights.astype(np.uint64) - np.uint64(low % 2**64)
        codes = [self._codes[name] for name in factor.columns]
        made = [
            (2**digit, self._bitmap((above >> np.uint64(digit) & np.uint64(1)).astype(np.bool_), codes))
            for digit in range(_digits(factor))
        ]
        return (*made, *([(low, None)] if low else []))

    def _bitmap(self, mask: NDArray[np.bool_], codes: Sequence[CellCodes]) -> Words:
        """The rows whose cell is in the mask."""
        cells, others = np.flatnonzero(mask), np.flatnonzero(~mask)
        if len(codes) > 1 or min(len(cells), len(others)) > _FEW:
            met = mask[tuple(codes)]
        elif len(cells) <= len(others):
            met = _any_of(codes[0], cells)
        else:
            met = ~_any_of(codes[0], others)
        packed = np.zeros(8 * self._words, dtype=np.uint8)
        packed[: -(-self._rows // 8)] = np.packbits(met)
        return packed.view(np.uint64)

    def _cells(self, name: str, size: int) -> list[Words]:
        """The rows in each cell of one column."""
        if size == 1:
            return [self._bitmap(np.ones(1, dtype=np.bool_), [self._codes[name]])]
        if name not in self._single:
            self._single[name] = [Factor((name,), one) for one in np.eye(size, dtype=np.int64)]
        return [bitmap for factor in self._single[name] for _, bitmap in self._find(factor) if bitmap is not None]

    def _and(self, bitmaps: Sequence[Words]) -> Words:
        return bitmaps[0] if len(bitmaps) == 1 else np.bitwise_and.reduce(bitmaps)

    def _ones_in(self, bitmaps: Sequence[Words], combine: Any = np.bitwise_and) -> int:
        """The number of rows that are in all of these bitmaps; with xor, in an odd number of them."""
        if not bitmaps:
            return self._rows
        total = 0
        for start in range(0, self._words, _BLOCK):
            block = slice(start, min(start + _BLOCK, self._words))
            both, ones = self._both[: block.stop - start], self._ones[: block.stop - start]
            met = bitmaps[0][block]
            for bitmap in bitmaps[1:]:
                met = combine(met, bitmap[block], out=both)
            total += int(np.bitwise_count(met, out=ones).sum())
        return total


def expanded_terms(query: Linear) -> int:
    """To how many counts the largest product of a query is expanded."""
    return max((_terms(each) for each in query.products), default=0)


def _terms(each: Product) -> int:
    if each.factors and all(map(_is_sign, each.factors)):
        return 1
    return prod(_digits(factor) + (factor.range[0] != 0) for factor in each.factors)


def _is_sign(factor: Factor) -> bool:
    """Whether every weight is +1 or −1. (A factor is not constant, so it has both.)"""
    return factor.range == (-1, 1) and bool(np.all(factor.weights != 0))


def _digits(factor: Factor) -> int:
    low, high = factor.range
    return (high - low).bit_length()


def _any_of(codes: CellCodes, cells: Iterable[Any]) -> NDArray[np.bool_]:
    # With Python's integers the comparison stays among small numbers.
    return reduce(np.logical_or, (codes == int(cell) for cell in cells), np.zeros(len(codes), dtype=np.bool_))


# Counting one column takes as long as making this many bitmaps.
_BITMAPS_PER_COLUMN = 2
# Below this many bits, counting ones in bitmaps is quicker than finding and contracting a cached marginal.
_FEW_BITS = 2**24
# Up to this many cells, with a thousand rows for each, a marginal is counted sooner from bitmaps.
_FEW_CELLS, _MANY_ROWS = 64, 2**10


class Frame(Source):
    """Rows in memory, coded by a domain, with at most `unit.contributions` rows of each person.

    Of a person with more rows, those are kept that come first when the person's rows are sorted by their cells, in the
    order of the domain's columns: a rule that depends on no one else's rows and not on the order of the table. It
    favours early cells, so choose `contributions` such that it seldom acts. A row dropped by the schema is dropped
    before.

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
