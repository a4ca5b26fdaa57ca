"""What a file says of a column, which may not be enough to make one: drafts and other formats leave gaps."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from discreet.schema.column import Bins, Boolean, Categories, Column, Integers
from discreet.values import Readable

ColumnType = Literal["integer", "number", "text", "date", "boolean"]


@dataclass(frozen=True)
class PartialColumn:
    """The settings of a column as a schema file has them. What is not said is None.

    >>> PartialColumn("integer", lower=0).gaps
    ('upper',)
    >>> PartialColumn("integer", lower=0, upper=9).column()
    Integers(lower=0, upper=9, outside='clip', missing='missing')
    """

    kind: ColumnType | None = None
    lower: Readable | None = None
    upper: Readable | None = None
    bins: tuple[Readable, ...] | None = None
    values: tuple[Readable, ...] | None = None
    ordered: bool = False
    outside: Readable | None = None
    missing: Readable | None = None

    @property
    def gaps(self) -> tuple[str, ...]:
        """The settings without which there is no column."""
        if self.values is not None or self.kind == "boolean":
            return ()
        if self.kind is None:
            return ("type",)
        if self.kind == "text":
            return ("values",)
        needed = ("lower", "upper") if self.kind == "integer" and self.bins is None else ("bins", "upper")
        return tuple(name for name in needed if getattr(self, name) is None)

    def column(self) -> Column:
        """The column, if there are no gaps."""
        rules: Any = {name: rule for name in ("outside", "missing") if (rule := getattr(self, name)) is not None}
        if self.values is not None:
            return Categories(self.values, ordered=self.ordered, **rules)
        if self.kind == "boolean":
            return Boolean(**rules)
        upper: Any = self.upper
        if self.bins is not None:
            return Bins(tuple(map(self._edge, self.bins)), upper=self._edge(upper), **rules)
        lower: Any = self.lower
        return Integers(lower, upper, **rules)

    def _edge(self, edge: Readable) -> Readable:
        # Bins between integers round down; a column of numbers with edges 0 and 1 must not.
        return Decimal(edge) if self.kind == "number" and isinstance(edge, int) else edge

    def filled(self, other: "PartialColumn") -> "PartialColumn":
        """This sketch, with what is not said here taken from another.

        >>> PartialColumn("integer").filled(PartialColumn(lower=0, upper=9)).gaps
        ()
        """
        said = {name: value for name, value in vars(other).items() if value is not None and name != "ordered"}
        mine = {name: value for name, value in vars(self).items() if value is not None and name != "ordered"}
        return replace(self, **(said | mine), ordered=self.ordered or other.ordered)


def partial_column_of(column: Column) -> PartialColumn:
    """The settings that make this column again, without those that are the default.

    >>> partial_column_of(Integers(0, 9, missing="drop")).missing
    'drop'
    """
    bare = _bare(column)
    usual = bare.column()
    rules = {name: getattr(column, name) for name in ("outside", "missing") if _differs(column, usual, name)}
    return replace(bare, **rules)


def _bare(column: Column) -> PartialColumn:
    match column:
        case Categories(values=(False, True), ordered=False) if all(isinstance(value, bool) for value in column.values):
            return PartialColumn("boolean")
        case Categories():
            return PartialColumn(values=column.values, ordered=column.ordered)
        case Integers():
            return PartialColumn("integer", lower=column.lower, upper=column.upper)
        case Bins():
            return PartialColumn(_kind(column), bins=column.starts, upper=column.upper)


def _kind(column: Bins) -> ColumnType:
    if column.kind == "date":
        return "date"
    return "integer" if column.whole else "number"


def _differs(column: Column, usual: Column, name: str) -> bool:
    mine, other = getattr(column, name), getattr(usual, name)
    # False == 0 in Python, and a rule that names the value 0 is not one that names False.
    return isinstance(mine, bool) != isinstance(other, bool) or bool(mine != other)
