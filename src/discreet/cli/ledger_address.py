"""Where the ledger of a table is if nobody says so. Tables that share people have one together."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.output import printable
from discreet.errors import BadParameter, DiscreetError

if TYPE_CHECKING:
    from discreet.ledger import Ledger

# Beside the schema files: the ledger of all tables of a folder that share people.
SHARED = "shared.ledger.sqlite"


def ledger_of(schema: Path, given: str | None) -> str:
    """The address of a table's ledger: the one given, the table's own, or the one of all that share people.

    Refuses to choose where a new ledger would forget what was spent on the same people before.
    """
    if given is not None:
        return given
    from discreet.schema.yaml.schema_file import people_of, schemas_beside

    own, shared = _own_ledger(schema), schema.with_name(SHARED)
    if not schema.exists():
        return str(own)
    found = schemas_beside(schema)
    table = found[schema].table
    declared = people_of(table, found)
    # What a schema once said is remembered, also if its line, or the file itself, is gone.
    books = [ledger for ledger in sorted(schema.parent.glob("*.ledger.sqlite")) if ledger != shared]
    people = declared.union(*(_sharing(ledger, table) for ledger in (*books, shared) if ledger.exists()))
    if len(people) == 1:
        return str(own)
    if missing := declared - {each.table for each in found.values()}:
        raise _no_schema(table, declared, missing, [each.table for each in found.values()])
    own_ones = {_own_ledger(file) for file, each in found.items() if each.table in people}
    earlier = [ledger for ledger in books if ledger in own_ones or _knows(ledger, people)]
    if not earlier:
        return str(shared)
    # The owner has set one budget for all of them where nothing else is forgotten: in the one old ledger, or in theirs.
    for ledger in (shared, *(earlier if len(earlier) == 1 else ())):
        if ledger.exists() and _counts_all(ledger, people):
            return str(ledger)
    raise _used_before(table, people, earlier)


def _no_schema(table: str, people: frozenset[str], missing: frozenset[str], declared: list[str]) -> BadParameter:
    others = [each for each in declared if each != table]
    close = [match for name in sorted(missing) for match in get_close_matches(name, others, n=1)]
    hint = f' (did you mean "{printable(close[0])}"?)' if close else ""
    return BadParameter(
        f'table "{printable(table)}" shares people with {_listed(people - {table})}, and no schema beside it declares '
        f"{_listed(missing)}{hint}: so it is not clear where their common ledger is. Check the "
        "names; if the other schemas are in other folders, say --ledger ADDRESS, the same one for all of them."
    )


def _used_before(table: str, people: frozenset[str], earlier: list[Path]) -> BadParameter:
    flags = " ".join(f"--table {printable(name)}" for name in sorted(people))
    together = (
        f'the people of table "{printable(table)}" have one budget, together with all tables that share them, and '
        f"{' and '.join(printable(each.name) for each in earlier)} {'was' if len(earlier) == 1 else 'were'} used "
        "before: a new ledger would forget what was spent."
    )
    if len(earlier) == 1:
        old = printable(str(earlier[0]))
        return BadParameter(
            f"{together} To go on with the old one, set one budget in it (discreet ledger cap {old} --epsilon 1 "
            f"--delta 1e-9 {flags}) and say --ledger {old} for all of these tables."
        )
    new = printable(str(earlier[0].with_name(SHARED)))
    return BadParameter(
        f"{together} None of them counts what the others spent. See what each has spent (discreet ledger budget FILE), "
        "and set what is left of the budget of these people, less all of that, in one ledger: discreet ledger cap "
        f"{new} --epsilon LEFT --delta LEFT {flags}. From then on it is theirs."
    )


def _own_ledger(schema: Path) -> Path:
    return schema.with_name(f"{schema.stem}.ledger.sqlite")


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f'"{printable(name)}"' for name in sorted(names))


def _sharing(ledger: Path, table: str) -> frozenset[str]:
    """The tables that share people with this one as a ledger remembers it."""
    with _open(ledger) as book:
        return frozenset(book.sharing(table))


def _knows(ledger: Path, people: frozenset[str]) -> bool:
    """Whether a ledger has something of one of these tables."""
    with _open(ledger) as book:
        capped = {name for scope in book.caps for name in scope.tables or ()}
        return bool(people & {*book.tables, *capped})


def _counts_all(ledger: Path, people: frozenset[str]) -> bool:
    """Whether one budget in a ledger names all of these tables, and is for all analysts together."""
    from discreet.ledger.accounts import covers

    with _open(ledger) as book:
        return any(scope.tables is not None and covers(scope, people) for scope in book.caps)


def _open(path: Path) -> "Ledger":
    """A ledger beside a schema. One that cannot be read may remember these people: then nothing is chosen."""
    from discreet.ledger import Ledger

    try:
        return Ledger(path, create=False)
    except DiscreetError as error:
        raise BadParameter(
            f"{printable(path.name)} lies beside the schema and cannot be read, so it is not clear whether it counts "
            f"the same people: {error} Mend it or move it away, or say --ledger ADDRESS."
        ) from error
