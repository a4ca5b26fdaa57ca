"""The identity of a table, which the ledger checks before every payment: name, privacy unit, version, state of rows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from discreet.schema.unit import Unit

# The version of a table whose owner declares none, and of entries that were written before versions existed.
FIRST_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Identity:
    """What is public about a table and must not change unnoticed under a ledger.

    `version` is declared by the owner: what was learnt belongs to the version that was current when it was paid for.
    `fingerprint` is for the owner alone: it differs if the source is no longer what it was (another file, say), and
    is None where nobody can tell.

    >>> Identity("people").version
    '1'
    """

    table: str
    unit: Unit = field(default_factory=Unit)
    version: str = FIRST_VERSION
    shares_people_with: tuple[str, ...] = ()
    fingerprint: str | None = None


def people_groups(shares: Mapping[str, Iterable[str]]) -> Mapping[str, frozenset[str]]:
    """Of each table that shares people, all that do so with it, directly or through others, and itself.

    >>> sorted(people_groups({"a": ["b"], "c": ["b"], "d": []})["a"])
    ['a', 'b', 'c']
    """
    found: dict[str, frozenset[str]] = {}
    for name, others in shares.items():
        near = {name, *others}
        group = near.union(*(found.get(each, ()) for each in near))
        if len(group) > 1:
            found |= dict.fromkeys(group, frozenset(group))
    return found
