"""The finite set of rows that may exist: named columns, in order."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod

from discreet.errors import BadQuery, BadSchema, did_you_mean
from discreet.schema.column import Bins, Categories, Cells, Column, Integers


@dataclass(frozen=True, init=False, repr=False)
class Domain:
    """Named columns in order. A row is one cell for each; there are `size` different ones.

    >>> people = Domain({"age": Bins([17, 25, 65], upper=90), "smoker": Categories([False, True])})
    >>> people.shape, people.size, list(people)
    ((4, 3), 12, ['age', 'smoker'])
    >>> people["aeg"]
    Traceback (most recent call last):
    discreet.errors.BadQuery: no column "aeg" in the domain; did you mean "age"?
    """

    columns: tuple[tuple[str, Column], ...]

    def __init__(self, columns: Mapping[str, Cells] | Iterable[tuple[str, Cells]]) -> None:
        pairs = tuple(columns.items() if isinstance(columns, Mapping) else columns)
        if not pairs:
            raise BadSchema("the domain has no columns; it needs at least one. Declare those that may be asked about.")
        seen: set[str] = set()
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise BadSchema(f"the domain has {pair!r}; it must be made of pairs (name, column).")
            name, column = pair
            if not isinstance(name, str) or not name:
                raise BadSchema(f"a column is named {name!r}; a name is a text that is not empty.")
            if not isinstance(column, (Categories, Integers, Bins)):
                raise BadSchema(f'column "{name}" is {column!r}; it must be Categories, Boolean, Integers or Bins.')
            if name in seen:
                raise BadSchema(f'column "{name}" is there twice; names are unique. Rename or remove one.')
            seen.add(name)
        object.__setattr__(self, "columns", pairs)
        object.__setattr__(self, "_named", dict(pairs))

    def __hash__(self) -> int:
        # A column may have a million values, and values cached for a domain are looked up many times.
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.columns)

    @property
    def _by_name(self) -> dict[str, Column]:
        named: dict[str, Column] = self.__dict__["_named"]
        return named

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(column.size for _, column in self.columns)

    @property
    def size(self) -> int:
        """How many different rows there are: the product of the shape, exactly."""
        return prod(self.shape)

    @cached_property
    def drops(self) -> bool:
        """Whether some row of a table may belong to no cell, because a column says "drop"."""
        return any(column.drops for _, column in self.columns)

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except (KeyError, TypeError):
            raise BadQuery(f'no column "{name}" in the domain; {did_you_mean(str(name), self)}') from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self.columns)

    def project(self, names: Iterable[str]) -> "Domain":
        """The domain of these columns alone, in the order given.

        >>> Domain({"a": Integers(0, 1), "b": Integers(0, 2)}).project(["b"])
        Domain({'b': Integers(lower=0, upper=2, outside='clip', missing='missing')})
        """
        if isinstance(names, str):
            raise BadQuery(f'"{names}" is one text; a projection takes a list of names. Write ["{names}"].')
        return Domain([(name, self[name]) for name in names])

    def merge(self, other: "Domain") -> "Domain":
        """The columns of both; a column in both must be the same in both.

        >>> Domain({"a": Integers(0, 1)}).merge(Domain({"a": Integers(0, 2)}))
        Traceback (most recent call last):
        discreet.errors.BadSchema: column "a" is declared in two ways: …
        """
        for name, column in other.columns:
            if name in self and self[name] != column:
                raise BadSchema(f'column "{name}" is declared in two ways: {self[name]} and {column}. Rename one.')
        return Domain([*self.columns, *(pair for pair in other.columns if pair[0] not in self)])

    def __repr__(self) -> str:
        return f"Domain({self._by_name!r})"


# Ledgers hold prints of columns: these names and fields are data, and never change with a class.
_WRITTEN = {
    Categories: ("Categories", ("values", "ordered", "outside", "missing")),
    Integers: ("Integers", ("lower", "upper", "outside", "missing")),
    Bins: ("Bins", ("starts", "upper", "outside", "missing")),
}


def column_text(column: Column) -> str:
    """A declared column as a text that stays the same in every version.

    >>> column_text(Integers(0, 99))
    "Integers(lower=0, upper=99, outside='clip', missing='missing')"
    """
    name, fields = _WRITTEN[type(column)]
    # The values are numbers, texts and dates: what Python writes for them is no name of ours.
    return f"{name}({', '.join(f'{field}={getattr(column, field)!r}' for field in fields)})"


def column_print(column: Column) -> str:
    """A short hash that distinguishes a column from columns that are declared otherwise."""
    return sha256(column_text(column).encode()).hexdigest()[:16]
