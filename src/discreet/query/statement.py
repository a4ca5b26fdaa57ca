"""The rows of an answer before HAVING, ORDER BY and LIMIT, all of them released.

A statement as a tree: which sums are asked, for which rows, in which groups, and what is shown of what is released.

WHERE and GROUP BY decide what is asked of the private rows. HAVING, ORDER BY and LIMIT use released numbers only, so
they cost nothing and reveal nothing more.

The check of a statement against a table: whatever could fail after paying is refused before.

SQL, JSON and Python statements all go through `check_statement`. A statement that passes can be laid out from any
released numbers: names, types and operators of HAVING, ORDER BY and LIMIT are checked one by one, and then tried on
numbers of every kind.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery, DiscreetError, TooLarge, did_you_mean
from discreet.query.aggregates import AggregateQuery, count, count_present, mean, total
from discreet.query.linear import Linear, Marginal
from discreet.query.predicate import (
    And,
    Compare,
    Everyone,
    IsIn,
    IsMissing,
    Not,
    Operator,
    Or,
    Predicate,
    everyone,
    mask_of,
)
from discreet.schema.column import Categories, Column, Integers
from discreet.schema.domain import Domain
from discreet.values import readable, shortened

_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Output:
    """All rows of a table before any are chosen: the cell of each group column and the released numbers."""

    domain: Domain
    rows: int
    cells: dict[str, NDArray[np.intp]]
    numbers: dict[str, list[Any]]

    def keys(self, name: str, *, descending: bool) -> list[tuple[bool, Any]]:
        """What the rows are sorted by: first whether there is no value, so that these come last either way."""
        sign = -1 if descending else 1
        if name in self.numbers:
            return [(value is None, 0 if value is None else sign * value) for value in self.numbers[name]]
        inside = self.domain[name].inside
        return [(cell >= inside, cell if cell >= inside else sign * cell) for cell in self.cells[name].tolist()]

    def holds(self, having: Predicate) -> NDArray[np.bool_]:
        """Whether each row satisfies a predicate on the output."""
        match having:
            case Everyone():
                return np.ones(self.rows, dtype=np.bool_)
            case And(parts) | Or(parts):
                join = np.logical_and if isinstance(having, And) else np.logical_or
                return reduce(join, map(self.holds, parts))
            case Not(part):
                return ~self.holds(part)
            case Compare() | IsIn() | IsMissing() if having.column in self.cells:
                return mask_of(having, self.domain)[self.cells[having.column]]
            case Compare(name, operator, against) if name in self.numbers:
                compare = _COMPARE[operator]
                truths = [value is not None and compare(value, against) for value in self.numbers[name]]
                return np.array(truths, dtype=np.bool_)
            case IsIn(name, among) if name in self.numbers:
                return np.array([value in among for value in self.numbers[name]], dtype=np.bool_)
        raise BadQuery(f"{having!r} is about no column of the output. Name an aggregate or a group column.")


AggregateKind = Literal["count", "sum", "avg"]

# Released: one number for each cell of the groups, None where there is none.
ReleasedNumbers = Sequence[float | None] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class Group:
    """An output column that shows a group column."""

    column: str
    name: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An output column of numbers; a count without a column counts the rows, with one those that have a value."""

    kind: AggregateKind
    column: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Order:
    """Sort by an aggregate (its output name) or a group column (its own name); rows without a value come last."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT items FROM table WHERE where GROUP BY group HAVING having ORDER BY order LIMIT limit.

    `having` is a predicate on the output: its columns are names of aggregates, and group columns by their own name.

    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"smoker": Boolean()})
    >>> asked = Select("people", (Group("smoker", "smoker"), Aggregate("count", None, "n")), group=("smoker",))
    >>> asked.questions(people)
    (Marginal(columns=('smoker',)),)
    >>> asked.tabulate(people, [np.array([70, 31])])
    {'smoker': [False, True], 'n': [70, 31]}
    """

    table: str
    items: tuple[Group | Aggregate, ...]
    where: Predicate = everyone
    group: tuple[str, ...] = ()
    having: Predicate = everyone
    order: tuple[Order, ...] = ()
    limit: int | None = None

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The output columns that are asked of the rows, in order."""
        return tuple(item for item in self.items if isinstance(item, Aggregate))

    def questions(self, domain: Domain) -> tuple[AggregateQuery, ...]:
        """One question for each aggregate: with groups a Marginal, without a Linear; for an average two of them."""
        # What is asked twice, under two names, is one question.
        asked = {(each.kind, each.column): each for each in self.aggregates}
        found = {key: self._question(each, domain) for key, each in asked.items()}
        return tuple(found[each.kind, each.column] for each in self.aggregates)

    def _question(self, asked: Aggregate, domain: Domain) -> AggregateQuery:
        match asked:
            case Aggregate("avg", str(column)):
                ratio = mean(domain, column, self.where)
                return (self._grouped(ratio.numerator), self._grouped(ratio.denominator)) if self.group else ratio
            case Aggregate("sum", str(column)):
                weight = total(domain, column, self.where)
            case Aggregate("count", str(column)):
                weight = count_present(domain, column, self.where)
            case _ if self.where == everyone and self.group:
                return Marginal(self.group)
            case _:
                weight = count(domain, self.where)
        return self._grouped(weight) if self.group else weight

    def _grouped(self, weight: Linear) -> Marginal:
        return Marginal(self.group, weight)

    def tabulate(
        self, domain: Domain, values: Sequence[ReleasedNumbers], errors: Sequence[ReleasedNumbers] | None = None
    ) -> dict[str, list[Any]]:
        """The output columns by name, from the released numbers of each aggregate, one for each cell of the groups.

        Every declared cell has a row, in the order of the domain, the last column varying fastest; then HAVING, ORDER
        BY and LIMIT. A number may be None: it satisfies no comparison and comes last. With `errors`, each aggregate is
        followed by a column `name_error`.
        """
        shape = tuple(domain[name].size for name in self.group)
        cells = dict(zip(self.group, np.unravel_index(np.arange(prod(shape)), shape), strict=True)) if shape else {}
        output = Output(domain, prod(shape), cells, self._columns("", values, prod(shape)))
        beside = {} if errors is None else self._columns("_error", errors, prod(shape))
        kept = np.flatnonzero(output.holds(self.having)).tolist()
        for order in reversed(self.order):
            kept.sort(key=output.keys(order.name, descending=order.descending).__getitem__)
        kept = kept[: self.limit]
        columns = {}
        for item in self.items:
            if isinstance(item, Group):
                shown, codes = shown_values(domain[item.column]), cells[item.column]
                columns[item.name] = [shown[codes[row]] for row in kept]
                continue
            columns[item.name] = [output.numbers[item.name][row] for row in kept]
            if errors is not None:
                columns[f"{item.name}_error"] = [beside[f"{item.name}_error"][row] for row in kept]
        return columns

    def _columns(self, suffix: str, numbers: Sequence[ReleasedNumbers], rows: int) -> dict[str, list[Any]]:
        lists = [list(each.tolist() if isinstance(each, np.ndarray) else each) for each in numbers]
        if [len(each) for each in lists] != [rows] * len(self.aggregates):
            raise BadQuery(
                f"the statement has {len(self.aggregates)} aggregates and {rows} cells, and was given "
                f"{[len(each) for each in lists]} numbers. Give one list for each aggregate."
            )
        return {asked.name + suffix: each for asked, each in zip(self.aggregates, lists, strict=True)}


def shown_values(column: Column) -> list[Any]:
    """What a table shows for each cell: numbers and booleans as they are, None where missing; otherwise labels.

    >>> shown_values(Integers(1, 3)), shown_values(Integers(1, 2, outside="other"))
    ([1, 2, 3, None], ['1', '2', 'other', 'missing'])
    """
    nothing = [None] * len(column.extra)
    match column:
        case Integers() if "other" not in column.extra:
            return [*range(column.lower, column.upper + 1), *nothing]
        case Categories() if "other" not in column.extra and column.kinds in ({"number"}, {"boolean"}):
            return [*column.values, *nothing]
    return list(column.labels)


# What follows an aggregate's name in the name of the column of its errors.
ERROR_SUFFIX = "_error"
# A released number may be any of these; None is one that is not there.
_NUMBERS = (None, 0.0, -1.5, 7.0, 1e300, float("inf"))
# No name of an output column is longer.
LONGEST_OUTPUT_NAME = 1000
# No answer has more rows. Where several columns or questions are asked at once, there are no more numbers together.
MOST_ANSWER_ROWS, MOST_ANSWER_NUMBERS = 2**20, 2**18
_OPERATORS = get_args(Operator)


def check_statement(select: Select, domain: Domain) -> None:
    """Raise BadQuery unless the statement can be answered and laid out, whatever is released for it.

    >>> from discreet.query.statement import Order
    >>> from discreet.schema.column import Boolean
    >>> people = Domain({"smoker": Boolean()})
    >>> check_statement(Select("people", (Aggregate("count", None, "n"),), order=(Order("m"),)), people)
    Traceback (most recent call last):
    discreet.errors.BadQuery: ORDER BY names "m", which is no column of the output; did you mean "n"?
    """
    numbers = _numbers(select)
    _check_groups(select, domain)
    _check_names(select)
    for order in select.order:
        _require(order.name, numbers, select.group, "ORDER BY")
        if not isinstance(order.descending, bool):
            raise BadQuery(f"descending is {shortened(order.descending)}; it must be true or false.")
    for atom in _atoms(select.having):
        _check_atom(atom, numbers, select.group)
    limit = select.limit
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= 2**63):
        raise BadQuery(f"limit is {shortened(limit)}; it must be a whole number of at least 0. Write LIMIT 10.")
    _try(select, domain, numbers)


def require_numbers(numbers: int, most: int) -> None:
    """Refuse an answer, or a batch of answers, with more numbers than one reply may have.

    >>> require_numbers(2**21, MOST_ANSWER_ROWS)
    Traceback (most recent call last):
    discreet.errors.TooLarge: the answer would have 2,097,152 numbers; the limit is 1,048,576. Ask for fewer at once.
    """
    if numbers > most:
        raise TooLarge(f"the answer would have {numbers:,} numbers; the limit is {most:,}. Ask for fewer at once.")


def _numbers(select: Select) -> list[str]:
    """The names of the aggregates; there must be at least one."""
    found = []
    for item in select.items:
        match item:
            case Group(str(), str(name)) if name:
                continue
            case Aggregate("count", None, str(name)) | Aggregate("count" | "sum" | "avg", str(), str(name)) if name:
                found.append(name)
            case Aggregate():
                kinds = " or ".join(get_args(AggregateKind))
                raise BadQuery(
                    f"{shortened(item)} cannot be asked; an aggregate is a {kinds}, with a column and a name."
                )
            case _:
                raise BadQuery(f"{shortened(item)} cannot be selected; give a Group or an Aggregate, each with a name.")
    if not found:
        raise BadQuery("the statement asks for no number. Add a count, a sum or an average.")
    return found


def _check_groups(select: Select, domain: Domain) -> None:
    cells = 1
    for name in select.group:
        cells *= domain[name].size
    if len(set(select.group)) < len(select.group):
        raise BadQuery(f"GROUP BY names a column twice: {', '.join(select.group)}. Name it once.")
    if cells > MOST_ANSWER_ROWS:
        raise TooLarge(f"GROUP BY makes {cells:,} groups; the limit is {MOST_ANSWER_ROWS:,}. Group by fewer columns.")
    # Each group column may be shown once besides.
    shown = len(select.aggregates) + max(0, len(select.items) - len(select.aggregates) - len(select.group))
    if shown > 1 and cells * shown > MOST_ANSWER_NUMBERS:
        raise TooLarge(
            f"{cells:,} groups with {shown} columns have {cells * shown:,} numbers; the limit is "
            f"{MOST_ANSWER_NUMBERS:,}. Select fewer columns at once, or group by fewer."
        )
    for item in select.items:
        if isinstance(item, Group) and item.column not in select.group:
            raise BadQuery(f'column "{item.column[:60]}" is selected and is no group column. Add it to GROUP BY.')


def _check_names(select: Select) -> None:
    """Every output column has a name of its own, also among the errors' names and where case is ignored."""
    seen: dict[str, tuple[str, bool]] = {}
    for item in select.items:
        if len(readable(item.name, "an output column's name")) > LONGEST_OUTPUT_NAME:
            raise BadQuery(
                f"an output column's name has {len(item.name):,} letters; the limit is {LONGEST_OUTPUT_NAME:,}."
            )
        own = isinstance(item, Group) and item.column == item.name
        if not own and item.name in select.group:
            raise BadQuery(f'an output column is named "{item.name[:60]}" as a group column is. Name it with AS.')
        for name in [item.name, item.name + ERROR_SUFFIX] if isinstance(item, Aggregate) else [item.name]:
            other, also_own = seen.setdefault(name.casefold(), ("", own))
            # A table may have two columns whose names differ only in case: both can be shown.
            if other == name or (other and not (own and also_own)):
                raise BadQuery(
                    f'two output columns are named "{other[:60]}" and "{name[:60]}"; the error of a number is named '
                    f'like it, with "{ERROR_SUFFIX}". Name one of them otherwise with AS.'
                )
            seen[name.casefold()] = name, own


def _require(name: Any, numbers: list[str], group: tuple[str, ...], clause: str) -> None:
    if name not in numbers and name not in group:
        known = [*numbers, *group]
        raise BadQuery(
            f'{clause} names "{str(name)[:60]}", which is no column of the output; {did_you_mean(str(name), known)}'
        )


def _atoms(having: Predicate) -> Iterator[Compare | IsIn | IsMissing]:
    match having:
        case Everyone():
            return
        case And(parts) | Or(parts) if parts:
            for part in parts:
                yield from _atoms(part)
        case Not(part):
            yield from _atoms(part)
        case Compare() | IsIn() | IsMissing():
            yield having
        case _:
            raise BadQuery(f"{shortened(having)} is no condition on the output. Compare an aggregate with a number.")


def _check_atom(atom: Compare | IsIn | IsMissing, numbers: list[str], group: tuple[str, ...]) -> None:
    _require(atom.column, numbers, group, "HAVING")
    if isinstance(atom, Compare) and atom.operator not in _OPERATORS:
        raise BadQuery(f"{shortened(atom.operator)} is no comparison; {did_you_mean(str(atom.operator), _OPERATORS)}")
    if atom.column in group:
        return
    if isinstance(atom, IsMissing):
        raise BadQuery(f'"{atom.column}" is a released number and is never missing. Compare it with a number.')
    for kind, _ in [atom.reading] if isinstance(atom, Compare) else atom.readings:
        if kind != "number":
            raise BadQuery(f'"{atom.column}" is a released number; it was compared with a {kind}. Give a number.')


def _try(select: Select, domain: Domain, numbers: list[str]) -> None:
    """Choose and sort rows of made-up numbers: whatever is wrong is wrong with these too."""
    rows = len(_NUMBERS)
    cells = {name: np.zeros(rows, dtype=np.intp) for name in select.group}
    output = Output(domain, rows, cells, {name: list(_NUMBERS) for name in numbers})
    try:
        output.holds(select.having)
        for order in select.order:
            sorted(output.keys(order.name, descending=order.descending))
    except DiscreetError:
        raise
    except Exception as error:
        raise BadQuery(
            f"HAVING or ORDER BY cannot be computed ({type(error).__name__}). Compare names of the output with numbers."
        ) from None
