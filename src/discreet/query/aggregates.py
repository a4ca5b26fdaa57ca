r"""A predicate as disjoint boxes: sets of rows that allow each column some of its cells, independently.

A conjunction is one box. What is left of box A without box B falls into disjoint boxes by the first column in which a
row leaves B (first-difference decomposition):

    A \ B  =  (A, b₁ left)  ∪  (A, b₁ kept, b₂ left)  ∪  (A, b₁ and b₂ kept, b₃ left)  ∪  …

where bᵢ is what B asks of its i-th column. So OR and NOT are sums of disjoint boxes, with no table over all columns.

Aggregates as linear queries: counts, totals, fractions and means over the rows that satisfy a predicate.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, TooLarge
from discreet.query.linear import Linear, Marginal, Ratio
from discreet.query.predicate import (
    And,
    Compare,
    Everyone,
    IsIn,
    IsMissing,
    Not,
    Or,
    Predicate,
    columns_of,
    everyone,
    mask_of,
)
from discreet.query.product import Factor, Product, box, column_of, merge
from discreet.schema.column import Integers
from discreet.schema.domain import Domain
from discreet.types import Bools, Ints

# Above this many boxes one dense table is faster. No query has more weights than this, in boxes or in a table: each is
# written to the ledger.
MOST_DISJOINT_BOXES = 256
MOST_TABLE_WEIGHTS = 2**21
# The most comparisons of masks while boxes are cut, counted by the column and by the thousand cells; and the most
# truth values in a table, one for each comparison and cell.
MOST_CUTS, MOST_TRUTHS = 2**18, 2**28

Box = dict[str, Bools]


class _TooManyBoxesError(Exception):
    """The decomposition has grown past its limit; nothing is wrong, another form is needed."""


class _Cuts:
    """The work done, counted and bounded: the analyst's condition decides how much there is."""

    def __init__(self) -> None:
        self.made = 0

    @property
    def spent(self) -> bool:
        """Whether the limit is exceeded."""
        return self.made > MOST_CUTS

    def add(self, *boxes: Box) -> None:
        """Count a comparison of some boxes."""
        self.made += sum(1 + mask.size // 1024 for each in boxes for mask in each.values())
        if self.spent:
            raise _TooManyBoxesError


_SHARED: ContextVar[_Cuts | None] = ContextVar("cuts", default=None)


@contextmanager
def shared_work() -> Iterator[None]:
    """Conditions that are decomposed inside the block (a batch) share the work that one condition may take."""
    before = _SHARED.set(_Cuts())
    try:
        yield
    finally:
        _SHARED.reset(before)


def decompose(predicate: Predicate, domain: Domain) -> tuple[Product, ...]:
    """Disjoint products that weigh 1 where the predicate is true, and 0 elsewhere.

    >>> from discreet.query.predicate import col
    >>> from discreet.schema.column import Boolean
    >>> len(decompose((col("a") == True) | (col("b") == True), Domain({"a": Boolean(), "b": Boolean()})))
    2
    """
    if not isinstance(domain, Domain):
        raise BadQuery(f"a query is made for a Domain, not for a {type(domain).__name__}. Give table.domain.")
    if isinstance(predicate, And) and all(isinstance(part, (Compare, IsIn, IsMissing)) for part in predicate.parts):
        # The usual condition: one box, without a decomposition.
        return _one_box(predicate.parts, domain)
    scope = columns_of(predicate)
    for name in scope:
        column_of(domain, name)
    cuts = _SHARED.get() or _Cuts()
    try:
        boxes = _boxes(predicate, domain, cuts)
        # Merging compares boxes with each other too.
        cuts.add(*boxes, *boxes)
        return merge(map(box, boxes))
    except _TooManyBoxesError:
        if cuts is _SHARED.get() and cuts.spent:
            raise TooLarge(
                "the conditions of this batch take too much work together. Ask in several batches, or simpler "
                "conditions."
            ) from None
        cells = prod(domain[name].size for name in scope)
        if cells > MOST_TABLE_WEIGHTS:
            raise TooLarge(
                f"the predicate needs more than {MOST_DISJOINT_BOXES} disjoint boxes or {MOST_TABLE_WEIGHTS} weights, "
                f"and the {cells} cells of its columns {', '.join(scope)} are more than {MOST_TABLE_WEIGHTS}. "
                "Ask about fewer columns, or in several questions."
            ) from None
        return (Product((Factor(scope, _bounded_truth(predicate, domain).astype(np.int64)),)),)


def _bounded_truth(predicate: Predicate, domain: Domain) -> NDArray[np.bool_]:
    """The truth of the predicate in every cell; refused if comparisons times cells are too many."""
    scope, atoms = columns_of(predicate), _atoms(predicate)
    cells = prod(domain[name].size for name in scope)
    if atoms * cells > MOST_TRUTHS:
        raise TooLarge(
            f"the predicate has {atoms} comparisons, on {cells} cells of {', '.join(scope)}: together more than "
            f"{MOST_TRUTHS} to check. Use IN, or ask about fewer columns, or in several questions."
        )
    return truth(predicate, domain)


def _atoms(predicate: Predicate) -> int:
    """How many comparisons there are."""
    match predicate:
        case And(parts) | Or(parts):
            return sum(map(_atoms, parts))
        case Not(part):
            return _atoms(part)
    return 1


def _one_box(atoms: Iterable[Any], domain: Domain) -> tuple[Product, ...]:
    """A conjunction of comparisons: of each column the cells that satisfy all of them."""
    masks: Box = {}
    for atom in atoms:
        mask = mask_of(atom, domain)
        masks[atom.column] = masks[atom.column] & mask if atom.column in masks else mask
    return (box(masks),) if all(mask.any() for mask in masks.values()) else ()


def truth(predicate: Predicate, domain: Domain, scope: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """The truth of a predicate in every cell of `scope`, which holds its columns: a dense table, for small scopes."""
    scope = columns_of(predicate) if scope is None else scope
    shape = tuple(domain[name].size for name in scope)
    match predicate:
        case Everyone():
            return np.ones(shape, dtype=np.bool_)
        case Compare() | IsIn() | IsMissing():
            mask = mask_of(predicate, domain)
            if len(scope) == 1:
                return mask
            axes = [-1 if name == predicate.column else 1 for name in scope]
            return np.broadcast_to(mask.reshape(axes), shape)
        case And(parts):
            return reduce(np.logical_and, (truth(part, domain, scope) for part in parts))
        case Or(parts):
            return reduce(np.logical_or, (truth(part, domain, scope) for part in parts))
        case Not(part):
            return ~truth(part, domain, scope)
    raise BadQuery(f"{predicate!r} is not a predicate.")


def _boxes(predicate: Predicate, domain: Domain, cuts: _Cuts) -> list[Box]:
    scope = columns_of(predicate)
    if len(scope) == 1:
        mask = _bounded_truth(predicate, domain)
        return [{scope[0]: mask}] if mask.any() else []
    match predicate:
        case Everyone():
            return [{}]
        case And(parts):
            found = (_boxes(part, domain, cuts) for part in _one_per_column(And, parts))
            return reduce(lambda left, right: _both(left, right, cuts), found)
        case Or(parts):
            pieces = (_boxes(part, domain, cuts) for part in _one_per_column(Or, parts))
            return reduce(lambda before, new: _limited([*before, *_without(new, before, cuts)]), pieces)
        case Not(part):
            return _without([{}], _boxes(part, domain, cuts), cuts)
    raise BadQuery(f"{predicate!r} is not a predicate.")


def _one_per_column(kind: type[And] | type[Or], parts: Iterable[Predicate]) -> list[Predicate]:
    """Parts about the same one column, taken together: they are one mask, not many boxes."""
    groups: dict[object, list[Predicate]] = {}
    for place, part in enumerate(parts):
        scope = columns_of(part)
        groups.setdefault(scope if len(scope) == 1 else place, []).append(part)
    return [group[0] if len(group) == 1 else kind(tuple(group)) for group in groups.values()]


def _both(left: list[Box], right: list[Box], cuts: _Cuts) -> list[Box]:
    return _limited([met for a in left for b in right if (met := _intersection(a, b, cuts)) is not None])


def _intersection(a: Box, b: Box, cuts: _Cuts) -> Box | None:
    cuts.add(a, b)
    met = {**a, **{name: (a[name] & mask if name in a else mask) for name, mask in b.items()}}
    return met if all(mask.any() for mask in met.values()) else None


def _without(boxes: list[Box], removed: list[Box], cuts: _Cuts) -> list[Box]:
    for hole in removed:
        boxes = _limited([piece for each in boxes for piece in _difference(each, hole, cuts)])
    return boxes


def _difference(whole: Box, hole: Box, cuts: _Cuts) -> list[Box]:
    if _intersection(whole, hole, cuts) is None:
        return [whole]
    pieces, rest = [], whole
    for name, mask in hole.items():
        left = rest[name] & ~mask if name in rest else ~mask
        if left.any():
            pieces.append({**rest, name: left})
        rest = {**rest, name: rest[name] & mask if name in rest else mask}
    return pieces


def _limited(boxes: list[Box]) -> list[Box]:
    if (
        len(boxes) > MOST_DISJOINT_BOXES
        or sum(mask.size for each in boxes for mask in each.values()) > MOST_TABLE_WEIGHTS
    ):
        raise _TooManyBoxesError
    return boxes


# What one aggregate asks: one number, two, a vector, or two vectors. An average is a sum and the number of its values.
AggregateQuery = Linear | Ratio | Marginal | tuple[Marginal, Marginal]


def count(domain: Domain, where: Predicate = everyone) -> Linear:
    """How many rows satisfy a predicate: weight 1 for those, 0 for the others.

    >>> from discreet.query.predicate import col
    >>> people = Domain({"age": Integers(0, 99), "city": Integers(0, 9)})
    >>> count(people, (col("age") >= 65) & (col("city") == 3))
    <Linear: 1 product on age, city>
    """
    return Linear(decompose(where, domain))


def count_present(domain: Domain, name: str, where: Predicate = everyone) -> Linear:
    """How many rows satisfy a predicate and have a value in the column."""
    column = column_of(domain, name)
    present = (np.arange(column.size) < column.inside).astype(np.int64)
    return Linear([each.times(name, present) for each in decompose(where, domain)])


def total(domain: Domain, column: str, where: Predicate = everyone) -> Linear:
    """The sum of a bounded integer column over the rows that satisfy a predicate.

    Rows in an extra cell ("other", "missing") have no value and add nothing, as in SQL.

    >>> total(Domain({"children": Integers(0, 3)}), "children").table(Domain({"children": Integers(0, 3)}))
    array([0, 1, 2, 3, 0])
    """
    values, _ = _values(domain, column)
    return _weighed(column, values, decompose(where, domain))


def fraction(domain: Domain, where: Predicate) -> Ratio:
    """The fraction of all rows that satisfy a predicate."""
    return Ratio(count(domain, where), count(domain))


def mean(domain: Domain, column: str, where: Predicate = everyone) -> Ratio:
    """The mean of a bounded integer column over the rows that satisfy a predicate and have a value, as in SQL."""
    values, present = _values(domain, column)
    boxes = decompose(where, domain)
    return Ratio(_weighed(column, values, boxes), _weighed(column, present, boxes))


def _weighed(column: str, weights: Ints, boxes: Sequence[Product]) -> Linear:
    """Products times the weights of a column; refused before it is made if it has too many weights to be kept."""
    if len(boxes) > 1 and len(boxes) * weights.size > MOST_TABLE_WEIGHTS:
        raise TooLarge(
            f'"{column}" has {weights.size:,} values, and the condition falls into {len(boxes)} boxes: together more '
            f"than {MOST_TABLE_WEIGHTS:,} weights. Ask a simpler condition, or several questions."
        )
    return Linear([each.times(column, weights) for each in boxes])


def _values(domain: Domain, name: str) -> tuple[Ints, Ints]:
    """The value of each cell and whether it has one."""
    column = column_of(domain, name)
    if not isinstance(column, Integers):
        raise BadQuery(
            f'column "{name}" is declared as {type(column).__name__}, whose cells are not single integers. '
            "Ask for counts of it; the owner can declare it as integers to allow totals and means."
        )
    present = np.zeros(column.size, dtype=np.int64)
    present[: column.inside] = 1
    values = present.copy()
    values[: column.inside] = column.lower + np.arange(column.inside, dtype=np.int64)
    return values, present


def describe(asked: AggregateQuery, domain: Domain) -> str:
    """The form in which a question is computed, for the plan: products of small tables, or one dense table.

    >>> from discreet.query.predicate import col
    >>> people = Domain({"age": Integers(0, 99), "city": Integers(0, 9)})
    >>> describe(count(people, (col("age") >= 65) | (col("city") == 3)), people)
    '2 disjoint products on age, city'
    """
    match asked:
        case Ratio(numerator, denominator):
            return f"{describe(numerator, domain)}; divided by {describe(denominator, domain)}"
        case (numerators, denominators):
            return f"{describe(numerators, domain)}; divided by {describe(denominators, domain)}"
        case Marginal(columns, None):
            return f"the {asked.size(domain):,} cells of {', '.join(columns)}"
        case Marginal(columns, Linear() as weight):
            return f"the {asked.size(domain):,} cells of {', '.join(columns)}, each with {describe(weight, domain)}"
        case Linear(products):
            largest = max((f.weights.size for each in products for f in each.factors if len(f.columns) > 1), default=0)
            if largest:
                return (
                    f"one dense table of {largest:,} cells on {', '.join(asked.scope)}, "
                    f"because more than {MOST_DISJOINT_BOXES} disjoint products would be needed"
                )
            on = f" on {', '.join(asked.scope)}" if asked.scope else ", the same for every row"
            return "1 product" + on if len(products) == 1 else f"{len(products)} disjoint products" + on
    raise BadQuery(f"a {type(asked).__name__} is not a question of a statement. Give one of select.questions(domain).")
