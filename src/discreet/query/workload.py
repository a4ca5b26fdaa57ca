"""Many questions as one value: a sequence that computes its i-th query when asked, however many there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from typing import Generic, Literal, TypeVar, overload

import numpy as np

from discreet.errors import BadQuery
from discreet.numeric import whole
from discreet.query.linear import Linear, Marginal
from discreet.query.product import box, column_of
from discreet.schema.column import Categories, Column
from discreet.schema.domain import Domain
from discreet.values import read_value

_Query = TypeVar("_Query", covariant=True)
FamilyKind = Literal["prefixes", "ranges", "subsets"]


@dataclass(frozen=True, repr=False)
class Workload(Generic[_Query]):
    """A sequence of queries on a domain, by formula.

    It has `size` queries; `len()` is not offered, because Python's stops at 2**63 and workloads do not. A slice is a
    workload. `family` is (kind, column) where the workload is all prefixes, ranges or subsets of one column.

    >>> forty = Domain({f"b{i}": Categories([False, True]) for i in range(40)})
    >>> everything = monotone_conjunctions(forty)
    >>> everything.size == 2**40, everything[3]
    (True, <Linear: 1 product on b0, b1>)
    """

    describe: str
    domain: Domain
    indices: range
    make: Callable[[int], _Query] = field(compare=False)
    family: tuple[FamilyKind, str] | None = None

    @property
    def size(self) -> int:
        """How many queries there are, exactly."""
        indices = self.indices
        return max(0, -((indices.start - indices.stop) // indices.step))

    @overload
    def __getitem__(self, index: int) -> _Query: ...
    @overload
    def __getitem__(self, index: slice) -> "Workload[_Query]": ...
    def __getitem__(self, index: int | slice) -> "_Query | Workload[_Query]":
        if isinstance(index, slice):
            chosen = self.indices[index]
            return Workload(
                self.describe, self.domain, chosen, self.make, self.family if chosen == self.indices else None
            )
        return self.make(self.indices[index])

    def __iter__(self) -> Iterator[_Query]:
        return map(self.make, self.indices)

    def __repr__(self) -> str:
        # Python refuses to write out integers of more than some thousand digits.
        many = str(self.size) if self.size < 2**63 else f"about 2^{self.size.bit_length() - 1}"
        return f"<Workload: {self.describe}; {many} {'query' if self.size == 1 else 'queries'}>"


def marginals(domain: Domain, k: int) -> Workload[Marginal]:
    """The marginals of every k columns: C(d, k) vector queries.

    >>> list(marginals(Domain({"a": Categories([0]), "b": Categories([0]), "c": Categories([0])}), 2))[-1]
    Marginal(columns=('b', 'c'))
    """
    names = list(domain)
    choose = _Choices([1] * len(names), whole("k", k, least=0, most=len(names)))
    return Workload(
        f"all {k}-way marginals of {len(names)} columns",
        domain,
        range(choose.size),
        lambda index: Marginal(tuple(names[place] for place, _ in choose[index])),
    )


def point_histogram(domain: Domain, columns: Iterable[str] | None = None) -> Workload[Linear]:
    """One query for each cell of some columns (all, if not given): how many rows are in it."""
    within = domain if columns is None else domain.project(columns)
    names, shape = list(within), within.shape
    return Workload(
        f"one count for each cell of {', '.join(names)}",
        domain,
        range(within.size),
        lambda index: _conjunction(domain, zip(names, _digits(index, shape), strict=True)),
    )


def conjunctions(domain: Domain, k: int) -> Workload[Linear]:
    """Every conjunction of k columns, each equal to one of its cells: e_k(sizes) queries.

    Ordered by columns, then by cells; e_k is the elementary symmetric polynomial, Σ over k columns of Π of their sizes.
    """
    names = list(domain)
    choose = _Choices(domain.shape, whole("k", k, least=0, most=len(names)))
    return Workload(
        f"all {k}-way conjunctions of {len(names)} columns",
        domain,
        range(choose.size),
        lambda index: _conjunction(domain, [(names[place], cell) for place, cell in choose[index]]),
    )


def monotone_conjunctions(domain: Domain, k: int | None = None) -> Workload[Linear]:
    """Every conjunction of k boolean columns being true: C(d, k) queries; of any number of them, 2^d."""
    names = list(domain)
    truths = [_truth(name, domain[name]) for name in names]
    if k is None:

        def subset(index: int) -> Linear:
            return _conjunction(
                domain, [pair for bit, pair in enumerate(zip(names, truths, strict=True)) if index >> bit & 1]
            )

        return Workload(f"all conjunctions of {len(names)} true columns", domain, range(2 ** len(names)), subset)
    choose = _Choices([1] * len(names), whole("k", k, least=0, most=len(names)))
    return Workload(
        f"all {k}-way conjunctions of {len(names)} true columns",
        domain,
        range(choose.size),
        lambda index: _conjunction(domain, [(names[place], truths[place]) for place, _ in choose[index]]),
    )


def prefixes(domain: Domain, column: str) -> Workload[Linear]:
    """How many rows are in the first cell, the first two, … of an ordered column: n queries, its extra cells apart."""
    cells = _ordered(domain, column).inside
    return Workload(
        f"all prefixes of {column}",
        domain,
        range(cells),
        lambda index: _interval(domain, column, 0, index + 1),
        ("prefixes", column),
    )


def ranges(domain: Domain, column: str) -> Workload[Linear]:
    """How many rows are from one cell to another of an ordered column: n(n + 1)/2 queries, its extra cells apart."""
    cells = _ordered(domain, column).inside

    def interval(index: int) -> Linear:
        # Intervals that end before cell e number e(e + 1)/2.
        end = (isqrt(8 * index + 1) - 1) // 2
        return _interval(domain, column, index - end * (end + 1) // 2, end + 1)

    number = cells * (cells + 1) // 2
    return Workload(f"all ranges of {column}", domain, range(number), interval, ("ranges", column))


def all_subsets(domain: Domain, column: str) -> Workload[Linear]:
    """How many rows are in some of the cells of a column, for every subset of them: 2^n queries."""
    cells = column_of(domain, column).size

    def subset(index: int) -> Linear:
        bits = np.frombuffer(index.to_bytes((cells + 7) // 8, "little"), dtype=np.uint8)
        return Linear([box({column: np.unpackbits(bits, count=cells, bitorder="little").astype(np.bool_)})])

    every = range(2**cells)
    return Workload(f"all subsets of the cells of {column}", domain, every, subset, ("subsets", column))


class _Choices:
    """The ways to choose k places and a cell at each, numbered in order of places and then of cells.

    `ways[j][i]` counts those with j more places from place i on: it is e_j(sizes[i:]).
    """

    def __init__(self, sizes: Sequence[int], k: int) -> None:
        self.sizes, self.k = sizes, k
        self.ways = [[1] * (len(sizes) + 1)]
        for _ in range(k):
            row = [0]
            for size, fewer in zip(reversed(sizes), reversed(self.ways[-1][1:]), strict=True):
                row.append(row[-1] + size * fewer)
            self.ways.append(row[::-1])
        self.size = self.ways[k][0]

    def __getitem__(self, index: int) -> list[tuple[int, int]]:
        places: list[int] = []
        place, cells = 0, 1
        while len(places) < self.k:
            with_this = cells * self.sizes[place] * self.ways[self.k - len(places) - 1][place + 1]
            if index < with_this:
                places.append(place)
                cells *= self.sizes[place]
            else:
                index -= with_this
            place += 1
        return list(zip(places, _digits(index, [self.sizes[each] for each in places]), strict=True))


def _digits(index: int, sizes: Sequence[int]) -> list[int]:
    """The cell of each column, the last varying fastest."""
    digits = []
    for place in range(len(sizes)):
        digit, index = divmod(index, prod(sizes[place + 1 :]))
        digits.append(digit)
    return digits


def _conjunction(domain: Domain, cells: Iterable[tuple[str, int]]) -> Linear:
    return Linear([box({name: np.arange(column_of(domain, name).size) == cell for name, cell in cells})])


def _interval(domain: Domain, column: str, start: int, stop: int) -> Linear:
    cells = np.arange(domain[column].size)
    return Linear([box({column: (start <= cells) & (cells < stop)})])


def _ordered(domain: Domain, name: str) -> Column:
    column = column_of(domain, name)
    if not column.ordered:
        raise BadQuery(
            f'column "{name}" has categories without an order. Choose another; the owner can declare an order.'
        )
    return column


def _truth(name: str, column: Column) -> int:
    if not isinstance(column, Categories) or any(kind != "boolean" for kind, _ in map(read_value, column.values)):
        raise BadQuery(f'column "{name}" is not boolean; conjunctions of true columns need booleans. Ask about those.')
    return column.locate(True)
