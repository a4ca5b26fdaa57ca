"""Where the ledger of a table is if nobody says so. Tables that share people have one together."""

from pathlib import Path

from discreet.cli.terminal import visible
from discreet.errors import BadParameter

# Beside the schema files: the ledger of all tables of a folder that share people.
SHARED = "shared.ledger.sqlite"


def ledger_of(schema: Path, given: str | None) -> str:
    """The address of a table's ledger: the one given, the table's own, or the one of all that share people.

    Refuses to choose where a choice would begin at zero for people of whom something was told already.
    """
    if given is not None:
        return given
    from discreet.schema.beside import people_of, schemas_beside

    own, shared = _own(schema), schema.with_name(SHARED)
    if not schema.exists():
        return str(own)
    found = schemas_beside(schema)
    table = found[schema].table
    people = people_of(table, found)
    if len(people) == 1:
        if not shared.exists() or not _knows(shared, table):
            return str(own)
        files = [schema]
    else:
        missing = people - {each.table for each in found.values()}
        if missing:
            raise BadParameter(
                f'table "{visible(table)}" shares people with {_listed(people - {table})}, and no schema beside it '
                f"declares {_listed(missing)}: so it is not clear where their common ledger is. Say --ledger ADDRESS, "
                "the same one for all of them."
            )
        files = [file for file, each in found.items() if each.table in people]
    if earlier := [ledger for ledger in map(_own, files) if ledger.exists()]:
        flags = " ".join(f"--table {visible(name)}" for name in sorted(people))
        raise BadParameter(
            f'the people of table "{visible(table)}" have their budget in {visible(SHARED)}, together with all tables '
            f"that share them, and {', '.join(visible(each.name) for each in earlier)} was used before: a new ledger "
            "would forget what was told. To go on with the old one, set one budget in it (discreet ledger cap "
            f"{visible(str(earlier[0]))} --epsilon 1 --delta 1e-9 {flags}) and say --ledger {visible(str(earlier[0]))} "
            "for all of these tables."
        )
    return str(shared)


def _own(schema: Path) -> Path:
    return schema.with_name(f"{schema.stem}.ledger.sqlite")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f'"{visible(name)}"' for name in sorted(names))


def _knows(ledger: Path, table: str) -> bool:
    from discreet.ledger import Ledger

    with Ledger(ledger, create=False) as book:
        return table in book.tables
