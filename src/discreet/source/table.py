"""A table under protection: what its rows may be, whom it protects, and where the rows are."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

from discreet.errors import BadData, BadSchema
from discreet.schema.domain import Domain
from discreet.schema.unit import Unit
from discreet.source.effect import Question
from discreet.source.exact import Exact
from discreet.source.frame import Frame
from discreet.source.source import Source


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A domain, a privacy unit and a source."""

    domain: Domain
    unit: Unit
    source: Source

    def evaluate(self, question: Question) -> Exact:
        """The true integers, sealed; only a mechanism opens them."""
        return self.source.evaluate(question)

    def __repr__(self) -> str:
        return f"<Table: {', '.join(self.domain)}; {self.unit.describe}>"


def open(data: Any, *, domain: Domain, unit: Unit | None = None) -> Table:
    """A table in memory, put under protection: pandas, polars, pyarrow, a dict of lists, a list of dicts, numpy.

    The rows are coded by the domain now and the original is not kept. Without a `unit`, each row is a person.

    >>> from discreet.schema.column import Integers
    >>> open({"age": [31, 64]}, domain=Domain({"age": Integers(0, 99)}))
    <Table: age; one row is added or removed>
    """
    if isinstance(data, (str, bytes, PathLike)):
        raise BadData(
            "open() was given a path or an address; files and databases cannot be opened yet. "
            "Read it into a DataFrame and give that."
        )
    if not isinstance(domain, Domain):
        raise BadSchema(f"domain is a {type(domain).__name__}; it must be a Domain. Write Domain({{name: column, …}}).")
    if unit is not None and not isinstance(unit, Unit):
        raise BadSchema(f'unit is {unit!r}; it must be a Unit. Write Unit(key="person_id", contributions=3).')
    unit = Unit() if unit is None else unit
    return Table(domain, unit, Frame(data, domain=domain, unit=unit))
