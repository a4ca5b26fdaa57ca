"""The unit of privacy: a row, or a person with a bounded number of rows; and when two tables are neighbours.

The identity of a table, which the ledger checks before every payment: name, privacy unit, version, state of rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from discreet.errors import BadSchema
from discreet.numeric import whole

Neighbors = Literal["add_remove", "replace_one"]


@dataclass(frozen=True, slots=True)
class Unit:
    """What one person can change.

    `key` names the column that identifies a person; without one, each row is a person. A person has at most
    `contributions` rows (further ones are dropped by the source). Two tables are neighbours if one person's rows are
    in one and not in the other (`add_remove`: the number of rows is private), or if one person's rows are exchanged
    for another's (`replace_one`; with rows as persons, the number of rows is public).

    >>> Unit()
    Unit(key=None, contributions=1, neighbors='add_remove')
    >>> Unit(key="person_id", contributions=3).describe
    'one "person_id" with up to 3 rows is added or removed'
    """

    key: str | None = None
    contributions: int = 1
    neighbors: Neighbors = "add_remove"

    def __post_init__(self) -> None:
        if self.neighbors not in ("add_remove", "replace_one"):
            raise BadSchema(
                f'neighbors is {self.neighbors!r}; it must be "add_remove" (one person is added or removed) '
                'or "replace_one" (one person is exchanged). The default is "add_remove".'
            )
        if self.key is not None and (not isinstance(self.key, str) or not self.key):
            raise BadSchema(f"key is {self.key!r}; it must be the name of a column. Leave it out to protect rows.")
        whole("contributions", self.contributions, least=1, most=10**6)
        if self.key is None and self.contributions != 1:
            raise BadSchema(
                f"contributions is {self.contributions} and there is no key; a row has one contribution. "
                "Name the column that identifies a person with key=…"
            )

    @property
    def describe(self) -> str:
        """The relation in words, for answers and cards."""
        rows = "one row" if self.contributions == 1 else f"up to {self.contributions} rows"
        who = "one row" if self.key is None else f'one "{self.key}" with {rows}'
        return f"{who} is {'added or removed' if self.neighbors == 'add_remove' else 'replaced'}"


# The version of a table whose owner declares none, and of entries that were written before versions existed.
FIRST_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Identity:
    """What is public about a table and must not change unnoticed under a ledger.

    `version` is declared by the owner: what was learnt belongs to the version that was current when it was paid for.
    `fingerprint` is for the owner alone: it differs if the source is no longer what it was (another file, say), and
    is None where there is no way to know.

    >>> Identity("people").version
    '1'
    """

    table: str
    unit: Unit = field(default_factory=Unit)
    version: str = FIRST_VERSION
    shares_people_with: tuple[str, ...] = ()
    fingerprint: str | None = None


def people_groups(shares: Mapping[str, Iterable[str]]) -> Mapping[str, frozenset[str]]:
    """For each table that shares people: all tables it shares them with, directly or through others, and itself.

    >>> sorted(people_groups({"a": ["b"], "c": ["b"], "d": []})["a"])
    ['a', 'b', 'c']
    """
    found: dict[str, frozenset[str]] = {}
    for name, others in shares.items():
        direct = {name, *others}
        group = direct.union(*(found.get(each, ()) for each in direct))
        if len(group) > 1:
            found |= dict.fromkeys(group, frozenset(group))
    return found
