"""What may be asked: sums over the rows of an integer weight that depends on the row's cell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.query.product import Product, merge
from discreet.schema.domain import Domain
from discreet.types import Ints
from discreet.values import NormalForm, names_of

# The most cells of a table that is made of all weights at once.
MOST_DENSE_CELLS = 2**22


@dataclass(frozen=True, init=False, repr=False)
class Linear(NormalForm):
    """A linear query: q(table) = Σ over the rows of w(row), with w a sum of products of small tables.

    Queries are added, subtracted and multiplied by integers; equal means made of the same products.

    >>> from discreet.query.product import box
    >>> adults = Linear([box({"age": np.array([False, False, True])})])
    >>> adults.answer(np.array([5, 6, 7])), (3 * adults - adults).answer(np.array([5, 6, 7]))
    (7, 14)
    """

    products: tuple[Product, ...]

    def __init__(self, products: Iterable[Product] = ()) -> None:
        merged = merge(products)
        if sum(each.magnitude for each in merged) >= 2**63:
            raise TooLarge("the weights of this query do not fit in 64 bits. Ask for smaller multiples.")
        object.__setattr__(self, "products", merged)

    @cached_property
    def scope(self) -> tuple[str, ...]:
        """The columns that the weight depends on, sorted; it is the order of the axes of `table` and `answer`."""
        return tuple(sorted({name for each in self.products for name in each.columns}))

    def __add__(self, other: "Linear") -> "Linear":
        return Linear([*self.products, *other.products]) if isinstance(other, Linear) else NotImplemented

    def __sub__(self, other: "Linear") -> "Linear":
        return self + -1 * other if isinstance(other, Linear) else NotImplemented

    def __mul__(self, times: int) -> "Linear":
        if isinstance(times, bool) or not isinstance(times, (int, np.integer)):
            return NotImplemented
        return Linear([Product(each.factors, each.coefficient * int(times)) for each in self.products])

    __rmul__ = __mul__

    def __neg__(self) -> "Linear":
        return -1 * self

    def range(self, domain: Domain) -> tuple[int, int]:
        """The lowest and the highest weight of a row.

        Exact for one product, for sums of products on different columns, for disjoint products, and wherever the
        columns that products share have few enough cells for a table; otherwise an interval that contains it.
        """
        found: tuple[Domain, tuple[int, int]] | None = self.__dict__.get("_range")
        # One plan needs it dozens of times, mostly with the same domain.
        if found is None or found[0] is not domain:
            self._check(domain)
            ranges = [_range(group, domain) for group in _independent(self.products)]
            found = domain, (sum(low for low, _ in ranges), sum(high for _, high in ranges))
            self.__dict__["_range"] = found
        return found[1]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.products)

    def table(self, domain: Domain, columns: Sequence[str] | None = None) -> Ints:
        """The weight of every cell of `columns` (the scope, if not given; or more, in any order), as a dense array."""
        self._check(domain)
        names = self.scope if columns is None else names_of(columns)
        if not set(self.scope) <= set(names):
            raise BadQuery(f"the query is on {self.scope} and its table was asked for on {names}. Name all of them.")
        return _table(self.products, names, domain)

    def weigh(self, codes: Mapping[str, NDArray[np.integer[Any]]]) -> Ints:
        """The weight of each row, from the code of its cell in each column of the scope: q is the sum of these."""
        total = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
        for each in self.products:
            weights = np.full(len(total), each.coefficient, dtype=np.int64)
            for factor in each.factors:
                weights *= factor.weights[tuple(codes[name] for name in factor.columns)]
            total += weights
        return total

    def answer(self, marginal: NDArray[Any], columns: Sequence[str] | None = None) -> int:
        """The exact value, from the counts of all cells of `columns` (the scope, if not given; or more).

        Products are contracted one factor at a time: no table of weights is built.
        """
        names = self.scope if columns is None else tuple(columns)
        counts = np.asarray(marginal)
        if not set(self.scope) <= set(names) or counts.ndim != len(names) or counts.dtype.kind not in "iubO":
            raise BadQuery(
                f"the query is on {self.scope} and was given {counts.ndim} axes named {names}, of {counts.dtype}; "
                "it needs integer counts with an axis for each of its columns."
            )
        largest = max(int(counts.max(initial=0)), -int(counts.min(initial=0))) * counts.size
        # Exactly, always: beyond 64 bits with Python's integers.
        fits = largest * sum(each.magnitude for each in self.products) < 2**63
        counts = counts.astype(np.int64 if fits else object)
        return int(sum(each.contract(counts, names) for each in self.products))

    def _check(self, domain: Domain) -> None:
        for factor in (factor for each in self.products for factor in each.factors):
            shape = tuple(domain[name].size for name in factor.columns)
            if shape != factor.weights.shape:
                raise BadQuery(
                    f"the query was made for other columns: {factor.columns} has {shape} cells in this domain and "
                    f"{factor.weights.shape} in the query. Make it again for this domain."
                )

    def __repr__(self) -> str:
        many = f"{len(self.products)} product{'s' * (len(self.products) != 1)}"
        return f"<Linear: {many} on {', '.join(self.scope) or 'no column'}>"


@dataclass(frozen=True, slots=True)
class Ratio(NormalForm):
    """One linear query divided by another: a fraction, or a mean. It is answered from both."""

    numerator: Linear
    denominator: Linear

    def __post_init__(self) -> None:
        if not isinstance(self.numerator, Linear) or not isinstance(self.denominator, Linear):
            raise BadQuery(
                f"a ratio was given a {type(self.numerator).__name__} and a {type(self.denominator).__name__}; it is "
                "of two Linear, say count(domain, where) and count(domain)."
            )


@dataclass(frozen=True, slots=True)
class Marginal(NormalForm):
    """The vector query of all cells of some columns, the last column varying fastest; of none, one number.

    In each cell it counts the rows or, with a `weight`, adds up that linear query over the rows of the cell: what SQL
    calls GROUP BY.

    >>> Marginal(("age", "sex"))
    Marginal(columns=('age', 'sex'))
    """

    columns: tuple[str, ...]
    weight: Linear | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names_of(self.columns))
        if self.weight is not None and not isinstance(self.weight, Linear):
            raise BadQuery(f"weight is a {type(self.weight).__name__}; it must be a Linear, say count(domain, where).")

    @property
    def scope(self) -> tuple[str, ...]:
        """The columns that it depends on, sorted."""
        return tuple(sorted({*self.columns, *(() if self.weight is None else self.weight.scope)}))

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f", weight={self.weight!r}"
        return f"Marginal(columns={self.columns!r}{weight})"

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """How many cells each of the columns has."""
        return tuple(domain[name].size for name in self.columns)

    def size(self, domain: Domain) -> int:
        """How many cells there are, exactly."""
        return prod(self.shape(domain))


def _table(products: Iterable[Product], scope: Sequence[str], domain: Domain) -> Ints:
    shape = tuple(domain[name].size for name in scope)
    if prod(shape) > MOST_DENSE_CELLS:
        raise TooLarge(
            f"a table over {', '.join(scope)} has {prod(shape)} cells; the limit is {MOST_DENSE_CELLS}. "
            "Use the products."
        )
    table = np.zeros(shape, dtype=np.int64)
    for each in products:
        term = np.array(each.coefficient, dtype=np.int64)
        for factor in each.factors:
            term = term * factor.spread(scope)
        table += term
    return table


def _independent(products: Iterable[Product]) -> list[list[Product]]:
    """The products in groups that share no column, so that the range of the sum is the sum of the ranges."""
    groups: list[tuple[set[str], list[Product]]] = []
    for each in products:
        columns, members = set(each.columns), [each]
        apart = []
        for group in groups:
            if columns & group[0]:
                columns, members = columns | group[0], members + group[1]
            else:
                apart.append(group)
        groups = [*apart, (columns, members)]
    return [members for _, members in groups]


def _range(group: list[Product], domain: Domain) -> tuple[int, int]:
    if len(group) == 1:
        return group[0].range
    scope = sorted({name for each in group for name in each.columns})
    cells = prod(domain[name].size for name in scope)
    if _disjoint(group, scope):
        ranges = [each.range_on_support() for each in group]
        if sum(each.support_size(scope, domain) for each in group) < cells:
            ranges.append((0, 0))
        return min(low for low, _ in ranges), max(high for _, high in ranges)
    if cells <= MOST_DENSE_CELLS:
        table = _table(group, scope, domain)
        return int(table.min()), int(table.max())
    return sum(each.range[0] for each in group), sum(each.range[1] for each in group)


def _disjoint(group: list[Product], scope: Iterable[str]) -> bool:
    """Whether no cell has a weight from two of the products: each two are kept apart by some column."""
    meet = np.ones((len(group), len(group)), dtype=np.bool_)
    np.fill_diagonal(meet, False)
    for name in scope:
        # A product that does not name the column is not kept apart by it: no row of ones is needed for it.
        found = [(place, mask) for place, each in enumerate(group) if (mask := each.support(name)) is not None]
        places, masks = [place for place, _ in found], np.array([mask for _, mask in found], dtype=np.float32)
        # How many cells two supports share, rounded; one or more never rounds to zero.
        meet[np.ix_(places, places)] &= masks @ masks.T > 0
    return not meet.any()


def weighs_nothing(question: Linear | Marginal) -> bool:
    """Whether every row weighs 0: then the answer is 0, which is public."""
    weight = question.weight if isinstance(question, Marginal) else question
    return weight is not None and not weight.products


def counts_rows(domain: Domain, query: Linear) -> bool:
    """Whether a question counts rows: every row weighs 0 or 1."""
    low, high = query.range(domain)
    return low >= 0 and high <= 1
