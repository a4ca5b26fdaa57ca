"""A table as its owner declares it: its name, what a row may be, whom we protect, where the rows are."""

from dataclasses import dataclass, field

from discreet.errors import BadSchema
from discreet.schema.domain import Domain
from discreet.schema.unit import FIRST_VERSION, Unit

# The endings of files that hold a schema, a code book or the metadata of another tool.
SCHEMA_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Schema:
    """All that is public about a table. `dp.open` reads one from a file, or takes one beside the data.

    `source` is where the rows are: a path or an address (see docs/sources.md). `shares_people_with` names other tables
    in which the same people may be; the ledger then adds up what is spent on them. `version` changes whenever the rows
    have changed: what was measured on one version answers no question about another.

    >>> from discreet.schema.column import Boolean
    >>> Schema("people", Domain({"smoker": Boolean()})).unit
    Unit(key=None, contributions=1, neighbors='add_remove')
    """

    table: str
    domain: Domain
    unit: Unit = field(default_factory=Unit)
    source: str | None = None
    shares_people_with: tuple[str, ...] = ()
    version: str = FIRST_VERSION

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not self.table:
            raise BadSchema(f"table is {self.table!r}; it must be a name, a text that is not empty.")
        if not isinstance(self.domain, Domain):
            raise BadSchema(
                f"domain is a {type(self.domain).__name__}; it must be a Domain. Write Domain({{name: column, …}})."
            )
        if not isinstance(self.unit, Unit):
            raise BadSchema(f'unit is {self.unit!r}; it must be a Unit. Write Unit(key="person_id", contributions=3).')
        if self.unit.key in self.domain:
            raise BadSchema(
                f'column "{self.unit.key}" is the privacy unit and also a column that may be asked about. '
                "Remove it from the columns."
            )
        shared = self.shares_people_with
        if isinstance(shared, str) or not all(isinstance(name, str) and name for name in shared):
            raise BadSchema(f"shares_people_with is {shared!r}; it must be a list of names of tables.")
        if self.table in shared:
            raise BadSchema(f'shares_people_with names "{self.table}" itself; name the other tables only.')
        if not isinstance(self.version, str) or not self.version or not self.version.isprintable():
            raise BadSchema(f'version is {self.version!r}; it must be a text that is not empty, say "2".')
        object.__setattr__(self, "shares_people_with", tuple(shared))
