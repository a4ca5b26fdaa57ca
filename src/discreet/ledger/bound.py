"""The identity of each table as the log has it: its unit never changes, its versions never come back.

One place compares what a caller says of a table with what the log has: `require_same`. Why that is enough: ledger.md.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from discreet.errors import BadParameter, BadSchema, TableChanged
from discreet.schema.identity import FIRST_VERSION, Identity
from discreet.schema.unit import Unit


class Bound(NamedTuple):
    """A table in the log: its identity now, with every table that it was ever said to share people with.

    Spends up to the entry `since` are of earlier versions. `versions` has all that were declared, the current one last.
    """

    identity: Identity
    since: int
    versions: tuple[str, ...]
    at: str


def bound_after(before: Bound | None, sequence: int, fields: Mapping[str, Any]) -> Bound:
    """A table after an entry about it; a ValueError if no right program would have written the entry."""
    unit, at = Unit(**fields["unit"]), fields["at"]
    versions: tuple[str, ...]
    version, shared, seen = fields["version"], fields["shares_people_with"], fields["fingerprint"]
    if not all(isinstance(word, str) and word for word in (fields["table"], version, *shared)):
        raise ValueError("names and versions are texts")
    if before is None:
        # What was told before versions were declared is of the first.
        since, versions = (0 if version == FIRST_VERSION else sequence), (version,)
    elif version == before.identity.version:
        since, versions, at = before.since, before.versions, before.at
        seen = before.identity.fingerprint if seen is None else seen
    else:
        since, versions = sequence, (*before.versions, version)
    if before is not None and (unit != before.identity.unit or version in before.versions[:-1]):
        raise ValueError("a unit never changes, and a version never comes back")
    every = {*shared, *(() if before is None else before.identity.shares_people_with)}
    return Bound(Identity(fields["table"], unit, version, tuple(sorted(every)), seen), since, versions, at)


def adds(bound: Bound, identity: Identity, *, confirm: bool = False) -> bool:
    """Whether an identity says something that the log does not have: a version, tables that share people, a source."""
    mine, seen = identity.fingerprint, bound.identity.fingerprint
    return (
        identity.version != bound.identity.version
        or not set(identity.shares_people_with) <= set(bound.identity.shares_people_with)
        or (mine is not None and mine != seen and (confirm or seen is None))
    )


def require_same(bound: Bound, identity: Identity, *, confirm: bool = False) -> None:
    """Refuse a table that is not the one that the log has: another unit, an older version, another source."""
    require_unit(bound, identity)
    current, table = bound.identity, identity.table
    if identity.version != current.version:
        raise TableChanged(
            f'version "{current.version}" of table "{table}" was declared at {bound.at}, and this is version '
            f'"{identity.version}", which is over. Nothing was charged. Open the table again with its newest schema; '
            "versions never come back."
        )
    mine, seen = identity.fingerprint, current.fingerprint
    if mine is not None and seen is not None and mine != seen and not confirm:
        raise changed(table, current.version)


def require_bound(tables: Mapping[str, Bound], table: str | Identity) -> None:
    """Refuse to pay for a table that is not the one in the log.

    Its name alone does not say for which unit is paid: it will do only for a table that was never bound.
    """
    name = table.table if isinstance(table, Identity) else table
    bound = tables.get(name)
    if isinstance(table, Identity):
        if bound is None:
            raise BadParameter(
                f'table "{name}" is not bound in this ledger. Bind it first: ledger.bind(table.identity).'
            )
        require_same(bound, table)
    elif bound is not None:
        raise BadParameter(
            f'table "{name}" is bound to its unit and its version in this ledger, and its name alone does not say for '
            "which it is paid. Give table.identity instead of the name."
        )


def changed(table: str, version: str) -> TableChanged:
    """The refusal when the source is no longer what was asked. The sentence is the same whatever has changed."""
    return TableChanged(
        f'the data of table "{table}" is no longer what was asked as version "{version}", and its owner has not '
        "declared a new version. Nothing was charged, and what was spent stays spent. The owner writes a new version "
        f"into the schema (version: {_next(version)}) and opens it again, or brings back the data; if the rows are "
        "the same: discreet schema confirm SCHEMA (with --ledger if you gave one). Who has the table open, a server "
        "too, opens it again."
    )


def require_unit(bound: Bound, identity: Identity) -> None:
    """Refuse a table whose unit is another than the one for which was paid."""
    if identity.unit != bound.identity.unit:
        raise BadSchema(
            f'table "{identity.table}" was asked in this ledger for the unit: {bound.identity.unit.describe}. Now its '
            f"unit is: {identity.unit.describe}. What was told was priced for the first and would be promised for the "
            "second. Declare the unit as it was; or give the table another name: its promise then begins anew, and "
            "does not cover what was told before."
        )


def _next(version: str) -> str:
    """The version that one would write next."""
    return str(int(version) + 1) if version.isascii() and version.isdigit() else f"{version}-2"
