"""A statement as a tree: which sums are asked, for which rows, in which groups, and what is shown of what is released.

WHERE and GROUP BY decide what is asked of the private rows. HAVING, ORDER BY and LIMIT look at released numbers only,
so they cost nothing and reveal nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadQuery
from discreet.query.ask import AggregateQuery, count, count_present, mean, total
from discreet.query.linear import Linear, Marginal
from discreet.query.output import Output
from discreet.query.predicate import Predicate, everyone
from discreet.schema.column import Categories, Column, Integers
from discreet.schema.domain import Domain

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
    """Sort by an aggregate (its output name) or a group column (its own name); what has no value comes last."""

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
